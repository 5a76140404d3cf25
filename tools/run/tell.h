/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells what the diagnosis found in a run: in the program, and in the processes that it started.
 * The summary has a paragraph for each and a last line over all; the files get one after the other.
 */
#ifndef RMM_TOOLS_RUN_TELL_H
#define RMM_TOOLS_RUN_TELL_H

#include <stdbool.h>
#include <stdint.h>

#include "run/files.h"
#include "run/job.h"
#include "run/left.h"
#include "run/suppressions.h"

typedef struct run_tell {
    const char *program; /* as it was called */
    pid_t pid;
    const run_left_t *left;
    const run_job_t *job;
    const char *only; /* a glob for the commands of reported processes; NULL: all */
    run_suppressions_t *suppressions;
    bool summary;  /* on stderr */
    bool is_brief; /* the summary: see quick.h */
    run_files_t *files;
} run_tell_t;

typedef struct run_told {
    bool has_summary;   /* it was printed, or not asked for */
    uint32_t processes; /* that were looked at */
    uint64_t findings;  /* of all, hints excepted */
    uint64_t leaks;
    char why[256]; /* no process was looked at */
} run_told_t;

/* False: no memory. */
bool run_tell(const run_tell_t *tell, run_told_t *told_out);

#endif /* RMM_TOOLS_RUN_TELL_H */
