/* SPDX-License-Identifier: Apache-2.0 */
/* A library that a program loads late, and through which it allocates: see test_leaks.c. */

void *rmm_test_call_through(void *(*function)(void *), void *argument);

static void *volatile result; /* the call is no jump */

void *rmm_test_call_through(void *(*function)(void *), void *argument)
{
    result = function(argument);
    return result;
}
