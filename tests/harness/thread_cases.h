/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cases of a program that start threads, by the variable RMM_TEST_THREADS: patterns of the
 * shell with '|' between them. Under the thread sanitizer only these run, because it has
 * nothing to find where a case has one thread. In all other builds a case fails that starts a
 * thread and that no pattern names: otherwise that sanitizer would never see it.
 *
 * Only threads of the program and of the children that it forks are seen, not those of programs
 * that it starts.
 */
#ifndef RMM_TESTS_HARNESS_THREAD_CASES_H
#define RMM_TESTS_HARNESS_THREAD_CASES_H

#include "harness/harness.h"

#include <stdbool.h>

/* The patterns, and NULL; NULL without the variable. */
char **thread_cases_patterns(void);

/* From now on the cases, which run in this order, are watched, except those that are threaded. */
void thread_cases_watch(
    struct CMUnitTest *tests, size_t count, const bool *is_threaded);

#endif /* RMM_TESTS_HARNESS_THREAD_CASES_H */
