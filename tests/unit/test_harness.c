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

TEST_CASE(has_the_variables_of_its_test)
{
    assert_non_null(getenv("RMM_TEST_HARNESS"));
    assert_string_equal(getenv("RMM_TEST_HARNESS"), "a=b:c");
}

TEST_CASE(is_another_case)
{
}

TEST_CASE(lists_the_names_of_its_cases)
{
    const program_t *program = run_again("--list");

    program_assert_status(program, 0);
    assert_ptr_equal(
        strstr(program->out, "has_the_variables_of_its_test\nis_another_case\nlists_"),
        program->out);
}

TEST_CASE(runs_the_cases_that_are_named)
{
    const program_t *program;

    assert_int_equal(unsetenv("RMM_TEST_HARNESS"), 0);
    program = run_again("is_another_case has_the_variables_of_its_test");
    program_assert_status(program, 0);
    assert_ran(program, "is_another_case", true);
    assert_ran(program, "has_the_variables_of_its_test", true);
    assert_non_null(strstr(program->out, " Running 2 test(s)."));
}

TEST_CASE(a_pattern_names_what_it_matches)
{
    const program_t *program = run_again("is_an*");

    program_assert_status(program, 0);
    assert_ran(program, "is_another_case", true);
    assert_ran(program, "has_the_variables_of_its_test", false);
}

TEST_CASE(keeps_a_variable_that_is_set)
{
    assert_int_equal(setenv("RMM_TEST_HARNESS", "another", 1), 0);
    program_assert_status(run_again("has_the_variables_of_its_test"), 1);
}

TEST_CASE(refuses_an_unknown_case)
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

TEST_CASE(starts_a_thread)
{
    assert_int_equal(start_a_thread(), 0);
}

TEST_CASE(starts_a_thread_in_a_child)
{
    assert_int_equal(in_child(start_a_thread), 0);
}

/* As a CUDA driver does: the body is in a library. */
TEST_CASE(starts_a_thread_of_a_library)
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

TEST_CASE(fails_a_case_that_starts_threads_and_is_not_named)
{
    run_with_threads("is_another_case", "starts_a_thread is_another_case", 1);
    run_with_threads(
        "is_another_case", "is_another_case starts_a_thread_in_a_child", 1);
    run_with_threads("starts_*", "is_another_case starts_a_thread", 0);
}

TEST_CASE(a_thread_of_a_library_does_not_count)
{
    run_with_threads("is_another_case", "starts_a_thread_of_a_library", 0);
}

TEST_CASE(refuses_threads_of_an_unknown_case)
{
    run_with_threads("starts_a_thread|is_no_case", "is_another_case", 2);
}
#endif

TEST_CASE(says_how_it_is_used)
{
    const program_t *program = run_again("--help");

    program_assert_status(program, 0);
    assert_non_null(strstr(program->out, "[--list | --help | CASE...]"));
    assert_non_null(strstr(program->out, "  RMM_TEST_HARNESS=a=b:c\n"));
}
