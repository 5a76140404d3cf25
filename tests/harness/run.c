/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes a test program usable by hand: it knows the environment of its test, and runs
 * the cases that its arguments name. rmm_test_program() of RmmTargets.cmake adds this file to
 * each program, and environment.c with the test's variables.
 *
 * A variable that is set already stays, so that RMM_DRIVER=cuda or RMM_TEST_SHARED=1 before
 * the program's name is obeyed. The sanitizers read their options before any code of the
 * program runs: with them the program starts itself again when a variable was missing.
 */
#include "harness/environment.h"
#include "harness/harness.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define USAGE_ERROR 2

static char **arguments;     /* of main(), and NULL */
static int before_cases = 1; /* how many of them are not names of cases */

/* Whether it was missing. */
static bool add_variable(const char *definition)
{
    const char *value = strchr(definition, '=');
    char *name = strndup(definition, (size_t)(value - definition));
    bool missing;

    if (name == NULL) {
        abort();
    }
    missing = getenv(name) == NULL;
    if (missing && setenv(name, value + 1, 1) != 0) {
        abort();
    }
    free(name);
    return missing;
}

/* Before the constructors of the library, which may read the environment. glibc gives
 * constructors the arguments of main(). */
__attribute__((constructor(101))) static void begin(int argc, char **argv)
{
    bool missing = false;

    (void)argc;
    arguments = argv;
    for (size_t i = 0; harness_environment[i] != NULL; i++) {
        missing = add_variable(harness_environment[i]) || missing;
    }
#ifdef RMM_TEST_SANITIZED
    if (missing) {
        execv("/proc/self/exe", argv);
        perror("cannot start the program again with the variables of its test");
        _exit(1);
    }
#endif
}

#ifdef RMM_TEST_SANITIZED
const char *__tsan_default_options(void);

/* Programs of tests fork beside threads, and threads of some run until the end: the sanitizer would
 * let them do so for a second. As in CMakePresets.json. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void)
{
    return "die_after_fork=0:atexit_sleep_ms=50";
}
#endif

void harness_own_arguments(int count)
{
    before_cases = 1 + count;
}

static int print_usage(void)
{
    for (int i = 0; i < before_cases; i++) {
        printf("%s%s", i == 0 ? "usage: " : " ", arguments[i]);
    }
    printf(
        " [--list | --help | CASE...]\n"
        "Runs the cases that are named, all of them if none is; CASE may be a pattern "
        "of the shell.\n"
        "--list prints the names.\n");
    for (size_t i = 0; harness_environment[i] != NULL; i++) {
        printf(
            "%s  %s\n", i == 0 ? "Sets, unless they are set:\n" : "",
            harness_environment[i]);
    }
    return EXIT_SUCCESS;
}

static bool is_selected(const struct CMUnitTest *test, char **patterns)
{
    for (; *patterns != NULL; patterns++) {
        if (fnmatch(*patterns, test->name, 0) == 0) {
            return true;
        }
    }
    return false;
}

/* Each pattern names a case, or one line says which does not. */
static bool all_are_cases(char **patterns, const struct CMUnitTest *tests, size_t count)
{
    for (; *patterns != NULL; patterns++) {
        char *only[] = {*patterns, NULL};
        bool found = false;

        for (size_t i = 0; i < count && !found; i++) {
            found = is_selected(&tests[i], only);
        }
        if (!found) {
            fprintf(
                stderr, "%s: there is no case '%s'; --list prints the names\n",
                arguments[0], *patterns);
            return false;
        }
    }
    return true;
}

static int run_selected(
    const char *group, const struct CMUnitTest *tests, size_t count,
    CMFixtureFunction setup, CMFixtureFunction teardown)
{
    struct CMUnitTest *selected;
    size_t selected_count = 0;
    int failed;

    if (!all_are_cases(arguments + before_cases, tests, count)) {
        return USAGE_ERROR;
    }
    selected = calloc(count, sizeof(*selected));
    if (selected == NULL) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        if (is_selected(&tests[i], arguments + before_cases)) {
            selected[selected_count++] = tests[i];
        }
    }
    failed = _cmocka_run_group_tests(group, selected, selected_count, setup, teardown);
    free(selected);
    return failed;
}

int harness_run_group(
    const char *group, const struct CMUnitTest *tests, size_t count,
    CMFixtureFunction setup, CMFixtureFunction teardown)
{
    const char *first = arguments[before_cases];

    if (first == NULL) {
        return _cmocka_run_group_tests(group, tests, count, setup, teardown);
    }
    if (strcmp(first, "--help") == 0) {
        return print_usage();
    }
    if (strcmp(first, "--list") == 0) {
        for (size_t i = 0; i < count; i++) {
            puts(tests[i].name);
        }
        return EXIT_SUCCESS;
    }
    return run_selected(group, tests, count, setup, teardown);
}
