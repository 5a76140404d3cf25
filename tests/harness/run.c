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
#include "harness/thread_cases.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define USAGE_ERROR 2

static harness_case_t *cases;
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

/* What the patterns select, all if there are none. */
static size_t select_cases(
    const struct CMUnitTest *tests, size_t count, char **patterns,
    struct CMUnitTest *selected)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        if (*patterns == NULL || is_selected(&tests[i], patterns)) {
            selected[found++] = tests[i];
        }
    }
    return found;
}

static void watch(struct CMUnitTest *tests, size_t count, char **threaded)
{
    bool *is_threaded = calloc(count, sizeof(*is_threaded));

    if (is_threaded == NULL) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        is_threaded[i] = is_selected(&tests[i], threaded);
    }
    thread_cases_watch(tests, count, is_threaded);
    free(is_threaded);
}

/* Segment, log and the like stay open until the program ends. */
#define OPEN_FOR_LIFE 4

static size_t count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    size_t count = 0;

    while (folder != NULL && readdir(folder) != NULL) {
        count++;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

/* A real driver opens devices when it likes. */
static bool leaves_descriptors(size_t open_before)
{
    const char *driver = getenv("RMM_DRIVER");
    size_t open_after = count_descriptors();

    if (open_after <= open_before + OPEN_FOR_LIFE ||
        (driver != NULL && strcmp(driver, "sim") != 0)) {
        return false;
    }
    fprintf(stderr, "the cases left %zu descriptors open\n", open_after - open_before);
    return true;
}

static int run_cases(
    const char *group, const struct CMUnitTest *tests, size_t count,
    CMFixtureFunction setup, CMFixtureFunction teardown)
{
    char **patterns = arguments + before_cases, **threaded = thread_cases_patterns();
    struct CMUnitTest *selected = calloc(count, sizeof(*selected));
    size_t selected_count, open_before;
    int failed;

    if (selected == NULL) {
        abort();
    }
    if (!all_are_cases(patterns, tests, count) ||
        (threaded != NULL && !all_are_cases(threaded, tests, count))) {
        free(selected);
        return USAGE_ERROR;
    }
#ifdef __SANITIZE_THREAD__
    if (*patterns == NULL && threaded != NULL) {
        patterns = threaded;
    }
#endif
    selected_count = select_cases(tests, count, patterns, selected);
    if (threaded != NULL) {
        watch(selected, selected_count, threaded);
    }
    open_before = count_descriptors();
    failed = _cmocka_run_group_tests(group, selected, selected_count, setup, teardown);
    failed += leaves_descriptors(open_before);
    free(selected);
    return failed;
}

int harness_run_group(
    const char *group, const struct CMUnitTest *tests, size_t count,
    CMFixtureFunction setup, CMFixtureFunction teardown)
{
    const char *first = arguments[before_cases];

    if (first != NULL && strcmp(first, "--help") == 0) {
        return print_usage();
    }
    if (first != NULL && strcmp(first, "--list") == 0) {
        for (size_t i = 0; i < count; i++) {
            puts(tests[i].name);
        }
        return EXIT_SUCCESS;
    }
    return run_cases(group, tests, count, setup, teardown);
}

/* Constructors of one file may run in any order. */
void harness_add_case(harness_case_t *added)
{
    harness_case_t **place = &cases;

    while (*place != NULL && (*place)->line < added->line) {
        place = &(*place)->next;
    }
    added->next = *place;
    *place = added;
}

int harness_run_cases(CMFixtureFunction setup, CMFixtureFunction teardown)
{
    size_t count = 0;
    struct CMUnitTest *tests;
    int failed;

    for (const harness_case_t *one = cases; one != NULL; one = one->next) {
        count++;
    }
    if (count == 0) {
        fprintf(stderr, "%s has no case\n", program_invocation_short_name);
        return USAGE_ERROR;
    }
    tests = calloc(count, sizeof(*tests));
    if (tests == NULL) {
        abort();
    }
    count = 0;
    for (const harness_case_t *one = cases; one != NULL; one = one->next) {
        tests[count++] = one->test;
    }
    failed =
        harness_run_group(program_invocation_short_name, tests, count, setup, teardown);
    free(tests);
    return failed;
}

/* Programs that define main() have their own. */
__attribute__((weak)) int main(void)
{
    return harness_run_cases(NULL, NULL);
}
