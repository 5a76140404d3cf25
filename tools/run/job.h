/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a run: the program, and all that it started in turn, by whatever launcher, as
 * far as they use a GPU. Each has the run's name in its side file, which it got in RMM_RUN.
 *
 * The files of a process that has ended are removed after a minute. So they are looked for while
 * the program runs, and held open: a file stays readable without a name.
 */
#ifndef RMM_TOOLS_RUN_JOB_H
#define RMM_TOOLS_RUN_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "diag/diag_reader.h"
#include "segment/segment_reader.h"

#define RUN_JOB_VARIABLE "RMM_RUN"
#define RUN_JOB_PROCESSES_MAX 16384u

typedef struct run_process {
    pid_t pid;
    uint64_t made_ns; /* CLOCK_REALTIME */
    char command[32];
    char segment[RMM_SEGMENT_NAME_BYTES];
    rmm_diag_file_t diag; /* as it was when it was found; see run_process_read() */
    bool is_live;         /* it has not ended, as far as run_job_settle() saw */
} run_process_t;

typedef struct run_job {
    char name[40];
    int dirfd; /* of the runtime directory; -1: it cannot be read */
    run_process_t *processes;
    uint32_t count, capacity;
    uint32_t left_out; /* that no descriptor or memory was left for */
    char **
        seen; /* names of segments that need no other look; the first ones are sorted */
    uint32_t seen_count, seen_sorted, seen_capacity;
} run_job_t;

/* Sets RMM_RUN for the program. False with errno: no memory. run_job_close() in any case. */
bool run_job_open(run_job_t *job, uint64_t now_ns);
void run_job_look(run_job_t *job);
/* After the last look: what has ended is known, and the order is by rank, then by start. */
void run_job_settle(run_job_t *job);
void run_job_close(run_job_t *job);

/* What the side file says now. False: it cannot be read any more. */
bool run_process_read(const run_process_t *process, rmm_diag_file_t *file_out);

#endif /* RMM_TOOLS_RUN_JOB_H */
