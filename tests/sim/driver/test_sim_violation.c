/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a program that did what no correct program does learns of it: what it prints, and its
 * exit status. Each case is a process of its own; the parent never opens the driver.
 */
#include "harness/harness.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rmm/sim.h>

#define OWN_STATUS 3

static char out[1024], err[1024];

static void read_back(FILE *file, char text[1024])
{
    ssize_t length = pread(fileno(file), text, 1023, 0);

    assert_true(length >= 0);
    text[length] = '\0';
    fclose(file);
}

/* The wait status of a process in which `body` runs with RMM_SIM_VIOLATION set to `value`
 * (NULL: not at all), then exit(OWN_STATUS); fills out and err. */
static int run(const char *value, void (*body)(void))
{
    FILE *files[2] = {tmpfile(), tmpfile()};
    int status = -1;
    pid_t child;

    assert_true(files[0] != NULL && files[1] != NULL);
    fflush(NULL);
    child = fork();
    if (child == 0) {
        const struct rlimit no_core = {0, 0};

        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGABRT, SIG_DFL); /* the harness may catch it */
        dup2(fileno(files[0]), STDOUT_FILENO);
        dup2(fileno(files[1]), STDERR_FILENO);
        setenv("RMM_DRIVER", "sim", 1);
        unsetenv("RMM_SIM_VIOLATION");
        if (value != NULL) {
            setenv("RMM_SIM_VIOLATION", value, 1);
        }
        body();
        exit(OWN_STATUS);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    read_back(files[0], out);
    read_back(files[1], err);
    return status;
}

static void assert_exits(int status, int expected)
{
    if (!WIFEXITED(status) || WEXITSTATUS(status) != expected) {
        fail_msg("wait status %#x, expected exit %d\n%s", status, expected, err);
    }
}

/* Two violations of different text. */
static void violate_twice(void)
{
    rmm_sim_event_t event;

    printf("buffered");
    if (rmm_sim_active() && rmm_sim_event_create(&event) == 0) {
        (void)rmm_sim_event_destroy(event);
        (void)rmm_sim_event_destroy(event);
        (void)rmm_sim_event_record(event, NULL);
    }
}

static void behave(void)
{
    (void)rmm_sim_active();
    (void)rmm_sim_device_synchronize();
}

/* A child that behaves, and the parent's violations of before. */
static void violate_and_fork(void)
{
    int status = -1;
    pid_t child;

    violate_twice();
    fflush(NULL);
    child = fork();
    if (child == 0) {
        exit(0);
    }
    waitpid(child, &status, 0);
    printf(", child %d", status);
}

static void violate_at_exit(void)
{
    atexit(violate_twice);
    behave();
}

TEST_CASE(the_number_is_printed_at_exit)
{
    assert_exits(run(NULL, violate_twice), OWN_STATUS);
    assert_non_null(strstr(err, "\nrmm-sim: 2 violations found\n"));
    assert_exits(run(NULL, behave), OWN_STATUS);
    assert_string_equal(err, "");
}

TEST_CASE(exit_shows_them_in_the_status)
{
    assert_exits(run("exit", violate_twice), 70);
    assert_non_null(strstr(err, "2 violations"));
    assert_string_equal(out, "buffered");
    assert_exits(run("exit", violate_at_exit), 70);
    assert_exits(run("exit", behave), OWN_STATUS);
    assert_string_equal(err, "");
}

TEST_CASE(abort_stops_at_the_first)
{
    int status = run("abort", violate_twice);

    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(err, "rmm-sim: event_destroy"));
    assert_non_null(strstr(err, "RMM_SIM_VIOLATION=abort"));
    assert_null(strstr(err, "event_record"));
    assert_exits(run("abort", behave), OWN_STATUS);
}

TEST_CASE(a_forked_child_reports_only_its_own)
{
    assert_exits(run("exit", violate_and_fork), 70);
    assert_string_equal(out, "buffered, child 0");
    assert_non_null(strstr(err, " found"));
    assert_null(strstr(strstr(err, " found") + 1, " found"));
}
