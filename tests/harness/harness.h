/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every cmocka test includes first: cmocka with the headers that it needs, in its
 * order, and a runner of cases that obeys the program's arguments (run.c).
 */
#ifndef RMM_TESTS_HARNESS_HARNESS_H
#define RMM_TESTS_HARNESS_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/*
 * Defines a case, and adds it to those that the program runs:
 *
 *     TEST_CASE(refuses_above_limit_and_recovers)
 *     {
 *
 * They run in the order of the file. A program needs a main() of its own only if something
 * comes before or after all cases.
 */
#define TEST_CASE(name) TEST_CASE_WITH(name, NULL, NULL)
#define TEST_CASE_WITH(name, setup, teardown)                                          \
    static void name(void **state);                                                    \
    __attribute__((constructor)) static void add_case_##name(void)                     \
    {                                                                                  \
        static harness_case_t added = {                                                \
            .test = cmocka_unit_test_setup_teardown(name, setup, teardown),            \
            .line = __LINE__};                                                         \
        harness_add_case(&added);                                                      \
    }                                                                                  \
    static void name(void **state)

typedef struct harness_case {
    struct CMUnitTest test;
    int line;
    struct harness_case *next;
} harness_case_t;

void harness_add_case(harness_case_t *added);

/* Runs the cases of the file, as harness_run_group() does. */
int harness_run_cases(CMFixtureFunction setup, CMFixtureFunction teardown);

/* The first `count` arguments of the program are main()'s own: names of cases come later. */
void harness_own_arguments(int count);

/* Run the cases that the arguments name, or all. Returns how many failed, or 2 when an
 * argument names no case; with --list and --help 0. */
int harness_run_group(
    const char *group, const struct CMUnitTest *tests, size_t count,
    CMFixtureFunction setup, CMFixtureFunction teardown);

#undef cmocka_run_group_tests
#define cmocka_run_group_tests(tests, setup, teardown)                                 \
    harness_run_group(                                                                 \
        #tests, tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)
#undef cmocka_run_group_tests_name
#define cmocka_run_group_tests_name(name, tests, setup, teardown)                      \
    harness_run_group(name, tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)

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
