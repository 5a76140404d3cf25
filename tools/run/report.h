/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what the diagnosis found in a program that has ended, for people or as JSON. It reads the
 * side file that the program left, which exists also when the program was killed.
 *
 * A report is about one process; tell.h puts together those of a run.
 */
#ifndef RMM_TOOLS_RUN_REPORT_H
#define RMM_TOOLS_RUN_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "common/json.h"
#include "diag/diag_reader.h"
#include "run/left.h"
#include "run/stacks.h"
#include "run/unseen.h"
#include "run/usage.h"

#define RUN_FINDINGS_MAX 1024u
#define RUN_REPORT_SCHEMA 1 /* rises when a key of the JSON changes its meaning */

typedef struct run_report {
    pid_t pid;
    const char *program;             /* as it was called; borrowed */
    char rank[24];                   /* as its launcher says; empty: none */
    bool is_live;                    /* it has not ended */
    char missing[160];               /* why there are no results; empty: there are */
    char modes[RMM_DIAG_MODES_TEXT]; /* what was looked for */
    char source[96];                 /* "active", or why nothing was seen */
    uint64_t launches;
    uint64_t findings_total;   /* every occurrence */
    uint64_t findings_dropped; /* occurrences without a finding of their own */
    uint64_t suppressed;       /* occurrences that are in no finding and no total */
    uint32_t unreadable;       /* findings that the program had not finished writing */
    rmm_diag_finding_info_t *findings; /* oldest first */
    run_stacks_t *stacks;              /* of each of them */
    uint32_t finding_count;
    run_usage_t usage;
    run_unseen_t unseen;
    run_python_state_t python;
} run_report_t;

/* False: no memory; nothing to free. */
bool run_report_read(
    run_report_t *report, const char *program, pid_t pid, const run_left_t *left);
void run_report_free(run_report_t *report);

/* False: "no findings" means nothing. */
bool run_report_has_looked(const run_report_t *report);

/* NULL: no memory. */
json_t *run_report_json(const run_report_t *report);

/* The begin of a title: the program, its rank and its pid. */
void run_report_print_name(const run_report_t *report, FILE *out);
/* A paragraph for each finding, and how many are not shown. */
void run_report_print_findings(const run_report_t *report, FILE *out);
/* False: it could not be written. The title alone, or all. */
bool run_report_print_title(const run_report_t *report, FILE *out);
bool run_report_print(const run_report_t *report, FILE *out);

#endif /* RMM_TOOLS_RUN_REPORT_H */
