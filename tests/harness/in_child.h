/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases of which a part runs in a forked child: how the child ends is the result.
 */
#ifndef RMM_TESTS_HARNESS_IN_CHILD_H
#define RMM_TESTS_HARNESS_IN_CHILD_H

#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Waits for the end of a child. A child that a signal ended fails the case. */
static inline int exit_status_of(pid_t pid)
{
    int status = -1;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status)) {
        fail_msg("the child ended with wait status %d", status);
    }
    return WEXITSTATUS(status);
}

/* fork() without output that both processes would write. */
static inline pid_t fork_child(void)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    return pid;
}

/* Runs body in a child that ends with exit(); its exit status. */
static inline int in_child(int (*body)(void))
{
    pid_t pid = fork_child();

    if (pid == 0) {
        exit(body());
    }
    return exit_status_of(pid);
}

#endif /* RMM_TESTS_HARNESS_IN_CHILD_H */
