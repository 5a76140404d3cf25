/* SPDX-License-Identifier: Apache-2.0 */
/* Found under libunwind's name, without what libunwind has: see test_tracking_adaptor.c. */

int rmm_test_useless_unwinder(void);

int rmm_test_useless_unwinder(void)
{
    return 0;
}
