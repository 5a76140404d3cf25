/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What harness/run.c promises to somebody who starts a test program by hand. The program is
 * this one, started again with an empty environment.
 */
#include "harness/in_child.h"
#include "harness/program.h"

#include <dlfcn.h>
#include <pthread.h>

/* What it printed and how it ended, until the next call. */
static const program_t *run_again(const char *arguments)
{
    static program_t program;
    char command[256];

    (void)snprintf(command, sizeof(command), "/proc/self/exe %s", arguments);
    program_run(&program, command);
    return &program;
}

static void assert_refused(const char *arguments, const char *why)
{
    const program_t *program = run_again(arguments);

    program_assert_status(program, 2);
    assert_string_equal(program->out, "");
    assert_non_null(strstr(program->err, why));
    assert_ptr_equal(strchr(program->err, '\n') + 1, strchr(program->err, '\0'));
}

static void assert_ran(const program_t *program, const char *name, bool expected)
{
    char line[64];

    (void)snprintf(line, sizeof(line), "[       OK ] %s\n", name);
    assert_true((strstr(program->out, line) != NULL) == expected);
}

static void has_the_variables_of_its_test(void **state)
{
    assert_non_null(getenv("RMM_TEST_HARNESS"));
    assert_string_equal(getenv("RMM_TEST_HARNESS"), "a=b:c");
}

static void is_another_case(void **state)
{
}

static void lists_the_names_of_its_cases(void **state)
{
    const program_t *program = run_again("--list");

    program_assert_status(program, 0);
    assert_ptr_equal(
        strstr(program->out, "has_the_variables_of_its_test\nis_another_case\nlists_"),
        program->out);
}

static void runs_the_cases_that_are_named(void **state)
{
    const program_t *program;

    assert_int_equal(unsetenv("RMM_TEST_HARNESS"), 0);
    program = run_again("is_another_case has_the_variables_of_its_test");
    program_assert_status(program, 0);
    assert_ran(program, "is_another_case", true);
    assert_ran(program, "has_the_variables_of_its_test", true);
    assert_non_null(strstr(program->out, " Running 2 test(s)."));
}

static void a_pattern_names_what_it_matches(void **state)
{
    const program_t *program = run_again("is_an*");

    program_assert_status(program, 0);
    assert_ran(program, "is_another_case", true);
    assert_ran(program, "has_the_variables_of_its_test", false);
}

static void keeps_a_variable_that_is_set(void **state)
{
    assert_int_equal(setenv("RMM_TEST_HARNESS", "another", 1), 0);
    program_assert_status(run_again("has_the_variables_of_its_test"), 1);
}

static void refuses_what_is_no_case(void **state)
{
    assert_refused("is_another_case is_no_case", "no case 'is_no_case'");
    assert_refused("--lists", "no case '--lists'");
}

static void *do_nothing(void *unused)
{
    return unused;
}

static int start_a_thread(void)
{
    pthread_t thread;

    return pthread_create(&thread, NULL, do_nothing, NULL) != 0 ||
           pthread_join(thread, NULL) != 0;
}

static void starts_a_thread(void **state)
{
    assert_int_equal(start_a_thread(), 0);
}

static void starts_a_thread_in_a_child(void **state)
{
    assert_int_equal(in_child(start_a_thread), 0);
}

/* As a CUDA driver does: the body is in a library. */
static void starts_a_thread_of_a_library(void **state)
{
    pthread_t thread;
    void *(*body)(void *);

    *(void **)&body = dlsym(RTLD_DEFAULT, "free");
    assert_non_null(body);
    assert_int_equal(pthread_create(&thread, NULL, body, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

#ifndef __SANITIZE_THREAD__
static void run_with_threads(const char *patterns, const char *arguments, int status)
{
    assert_int_equal(setenv("RMM_TEST_THREADS", patterns, 1), 0);
    program_assert_status(run_again(arguments), status);
    assert_int_equal(unsetenv("RMM_TEST_THREADS"), 0);
}

static void fails_a_case_that_starts_threads_and_is_not_named(void **state)
{
    run_with_threads("is_another_case", "starts_a_thread is_another_case", 1);
    run_with_threads(
        "is_another_case", "is_another_case starts_a_thread_in_a_child", 1);
    run_with_threads("starts_*", "is_another_case starts_a_thread", 0);
}

static void a_thread_of_a_library_does_not_count(void **state)
{
    run_with_threads("is_another_case", "starts_a_thread_of_a_library", 0);
}

static void refuses_threads_of_what_is_no_case(void **state)
{
    run_with_threads("starts_a_thread|is_no_case", "is_another_case", 2);
}
#endif

static void says_how_it_is_used(void **state)
{
    const program_t *program = run_again("--help");

    program_assert_status(program, 0);
    assert_non_null(strstr(program->out, "[--list | --help | CASE...]"));
    assert_non_null(strstr(program->out, "  RMM_TEST_HARNESS=a=b:c\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_the_variables_of_its_test),
        cmocka_unit_test(is_another_case),
        cmocka_unit_test(lists_the_names_of_its_cases),
        cmocka_unit_test(runs_the_cases_that_are_named),
        cmocka_unit_test(a_pattern_names_what_it_matches),
        cmocka_unit_test(keeps_a_variable_that_is_set),
        cmocka_unit_test(refuses_what_is_no_case),
        cmocka_unit_test(says_how_it_is_used),
        cmocka_unit_test(starts_a_thread),
        cmocka_unit_test(starts_a_thread_in_a_child),
        cmocka_unit_test(starts_a_thread_of_a_library),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(fails_a_case_that_starts_threads_and_is_not_named),
        cmocka_unit_test(a_thread_of_a_library_does_not_count),
        cmocka_unit_test(refuses_threads_of_what_is_no_case),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
