/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of a run say of the run itself, beside what was found in its processes.
 */
#ifndef RMM_TOOLS_RUN_ABOUT_H
#define RMM_TOOLS_RUN_ABOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RUN_COMMAND_BYTES 128u

typedef struct run_about {
    const char *program;             /* as it was called */
    char command[RUN_COMMAND_BYTES]; /* its name and arguments, cut and clean */
    pid_t pid;
    uint64_t since_ns; /* CLOCK_REALTIME before it was started */
    double seconds;    /* that it ran */
    int wait_status;   /* as waitpid(2) has it */
    bool fails_on_finding, fails_on_leak;
} run_about_t;

/* How the run ended, which is known when all processes have been looked at. */
typedef struct run_end {
    const char *why;   /* nothing was diagnosed; NULL: something was */
    int status;        /* of rmm-run; 0: that of the program */
    uint32_t left_out; /* processes that there was no room to look at */
} run_end_t;

/* The name of argv[0] without its folder, and the arguments. */
void run_about_command(char **argv, char command[RUN_COMMAND_BYTES]);

#endif /* RMM_TOOLS_RUN_ABOUT_H */
