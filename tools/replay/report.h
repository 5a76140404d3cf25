/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the results of a replay, as a table or as one JSON object.
 */
#ifndef RMM_TOOLS_REPLAY_REPORT_H
#define RMM_TOOLS_REPLAY_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "replay/capacity.h"

typedef struct report {
    const char *log;
    const char *resource;
    const char *driver;  /* "cuda", "hip" or "sim" */
    uint64_t operations; /* of one run */
    uint64_t repeats;
    uint64_t threads;
    uint64_t streams;
    double ns_per_operation;      /* mean over all runs; < 0: not measured */
    double best_ns_per_operation; /* of the fastest run; < 0: not measured */
    uint64_t peak_bytes;          /* as the resource counted */
    uint64_t log_peak_bytes;      /* as the log says */
    uint64_t reserved_bytes;      /* held from the driver at the end */
    uint64_t left_bytes;
    uint64_t left_count;
    uint64_t capacity_bytes; /* 0: not measured */
    bool curve_is_known;
    capacity_curve_t curve; /* if known */
    uint64_t failed_allocations;
    uint64_t logged_failures;
    uint64_t skipped_rows;
    bool verified;
    uint64_t mismatched_words;
} report_t;

void report_print_table(const report_t *report, FILE *out);

/* False: no host memory. */
bool report_print_json(const report_t *report, FILE *out);

#endif /* RMM_TOOLS_REPLAY_REPORT_H */
