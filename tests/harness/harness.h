/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every cmocka test includes first: cmocka with the headers that it needs, in its
 * order.
 */
#ifndef RMM_TESTS_HARNESS_HARNESS_H
#define RMM_TESTS_HARNESS_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A status that must be RMM_OK; prints the last error if it is not. */
#define assert_ok(expression)                                                          \
    do {                                                                               \
        rmm_status_t status_ = (expression);                                           \
        if (status_ != RMM_OK) {                                                       \
            fail_msg(                                                                  \
                "%s: %s: %s", #expression, rmm_status_name(status_),                   \
                rmm_last_error_message());                                             \
        }                                                                              \
    } while (0)

#endif /* RMM_TESTS_HARNESS_HARNESS_H */
