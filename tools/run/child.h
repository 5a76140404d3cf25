/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program as a child and ends as it ended.
 *
 * The terminal sends Ctrl-C to both; the child decides what follows. Other signals that ask a
 * process to end or to do something are passed on to the child.
 */
#ifndef RMM_TOOLS_RUN_CHILD_H
#define RMM_TOOLS_RUN_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct run_child {
    pid_t pid;
    int status;        /* as waitpid(2) has it */
    uint64_t since_ns; /* CLOCK_REALTIME before it was started; the caller's */
} run_child_t;

/* Called each RUN_LOOK_SECONDS while the program runs, and once after its end. */
#define RUN_LOOK_SECONDS 1
typedef void (*run_look_fn)(void *arg);

/* Runs argv[0], found on PATH, and waits for its end. 0, or the errno for which it could not be
 * run. One call a process. */
int run_child(char **argv, run_child_t *child_out, run_look_fn look, void *arg);

/* Ends this process with the child's exit status, or by the signal that ended the child. */
void run_end_like(const run_child_t *child) __attribute__((noreturn));

#endif /* RMM_TOOLS_RUN_CHILD_H */
