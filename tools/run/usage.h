/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the report that says what memory was used for: what the peaks were made of,
 * and which blocks wasted memory.
 */
#ifndef RMM_TOOLS_RUN_USAGE_H
#define RMM_TOOLS_RUN_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "diag/diag_reader.h"
#include "run/sites.h"

#define RUN_PEAKS_MAX 16u
#define RUN_SHARES_MAX 64u    /* of a peak; the largest */
#define RUN_VERDICTS_MAX 256u /* the worst */

typedef struct run_share {
    uint64_t bytes, count;
    uint32_t resource_id;
    rmm_diag_resource_name_t resource;
    char first_user[RMM_DIAG_NAME_BYTES]; /* empty: never used, or not known */
    const run_stack_t *stack;             /* of the allocation; in run_usage_t.sites */
} run_share_t;

typedef struct run_peak {
    int32_t device; /* -1: host memory */
    uint64_t bytes, count;
    uint64_t other_bytes; /* in none of the shares */
    run_share_t *shares;  /* most bytes first */
    uint32_t share_count;
} run_peak_t;

typedef struct run_verdict {
    uint32_t verdict;       /* rmm_diag_verdict_t */
    const char *confidence; /* static */
    int32_t device;
    uint32_t resource_id;
    rmm_diag_resource_name_t resource;
    uint64_t bytes, count, largest, byte_ms;
    char first_user[RMM_DIAG_NAME_BYTES]; /* empty: never used, or not known */
    const run_stack_t *stack;             /* as of a share */
} run_verdict_t;

typedef struct run_usage {
    run_peak_t peaks[RUN_PEAKS_MAX];
    uint32_t peak_count;
    run_verdict_t *verdicts; /* the most bytes x time first */
    uint32_t verdict_count;
    uint64_t sites_dropped; /* allocations whose stack was not kept */
    uint64_t device_resets; /* by the program, of GPUs */
    uint64_t blocks_reset;  /* that were live then */
    run_sites_t sites;
    uint64_t verdicts_dropped; /* verdicts on blocks, that are in none of these */
    uint64_t leaked_count, leaked_bytes; /* blocks that the program has not freed */
} run_usage_t;

/* False: no memory. run_usage_free() it in any case. */
bool run_usage_read(
    run_usage_t *usage, const rmm_diag_file_t *file, run_symbols_t *symbols);
void run_usage_free(run_usage_t *usage);

void run_usage_print(const run_usage_t *usage, FILE *out);
/* The leaks alone. */
void run_usage_print_leaks(const run_usage_t *usage, FILE *out);

/* "peaks", "verdicts" and what was dropped; false: no memory. */
bool run_usage_put_json(const run_usage_t *usage, json_t *object);

#endif /* RMM_TOOLS_RUN_USAGE_H */
