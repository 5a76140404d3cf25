/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table of the workloads that can be measured. A workload is run once on a resource that
 * is made for it (a trial) and finds one figure; bench.c repeats and interleaves trials.
 *
 * Threads: trials run one at a time.
 */
#ifndef RMM_TOOLS_BENCH_WORKLOAD_H
#define RMM_TOOLS_BENCH_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include <rmm/resource.h>

#include "bench/sample.h"

#define TRIAL_PROBLEM_MAX 256

/* How long and how large; --quick makes both less. */
typedef struct trial_scale {
    uint64_t warm_ns;  /* a script that takes longer is cut there */
    uint64_t run_ns;   /* a script that takes less is played again until then */
    uint64_t setup_ns; /* what must be there first may take so long */
    size_t churn_steps, mix_allocations, full_blocks;
    uint64_t growth_bytes;
} trial_scale_t;

typedef struct trial {
    const trial_scale_t *scale;
    uint64_t seed;
    rmm_resource_t *resource;
    latencies_t *latencies; /* those of single operations are added */
    size_t cut_ops;         /* not 0: an earlier trial cut the script there */

    double value;        /* in the workload's unit */
    uint64_t operations; /* that it comes from */
    size_t cut_to_ops;   /* not 0: it was too slow for the whole script */
    bool unsupported;    /* with a problem: the resource has no such ability */
    char problem[TRIAL_PROBLEM_MAX]; /* not "": there is no figure */
} trial_t;

/* Which resources a workload is measured on unless some are named. */
typedef enum workload_resources {
    WORKLOAD_EACH,  /* each of the usual ones */
    WORKLOAD_POOL,  /* the pool */
    WORKLOAD_SIZED, /* those of a fixed size: pools, arena */
    WORKLOAD_GROWN, /* those that grow to a size that they are given: pools */
    WORKLOAD_TRIM   /* those that give memory back */
} workload_resources_t;

typedef enum workload_stream {
    WORKLOAD_LEGACY,
    WORKLOAD_CREATED,
    WORKLOAD_NEVER_CAPTURES, /* created, and said never to capture */
    WORKLOAD_FOREIGN,        /* made by CUDA, not by the library */
    WORKLOAD_PER_THREAD,
    WORKLOAD_OWN /* of each thread one */
} workload_stream_t;

typedef struct workload workload_t;
struct workload {
    const char *name;
    const char *group; /* trials of a group are interleaved */
    const char *unit;
    const char *about;
    void (*run)(const workload_t *workload, trial_t *trial);
    uint64_t amount; /* live blocks, largest bytes or threads, as `run` has it */
    workload_stream_t stream;
    workload_resources_t resources;
    /* An adaptor to put on the resource, or NULL; false: see the last error. */
    bool (*wrap)(rmm_resource_t *base, rmm_resource_t **out);
    const char *against;   /* the workload whose figure is the measure of this one */
    uint64_t block_bytes;  /* largest block */
    uint64_t device_bytes; /* memory that it needs */
    bool has_reader;       /* meanwhile another thread reads the segment */
};

extern const workload_t workloads[];
extern const size_t workload_count;

/* NULL: there is none of this name. */
const workload_t *workload_find(const char *name);

/* A problem of a trial: the last error, or what it says. */
void trial_fail(trial_t *trial, rmm_status_t status);
void trial_refuse(trial_t *trial, const char *why);

/* The largest live_bytes of a mix: RMM's 16000 MiB. */
#define MIX_LIVE_BYTES (UINT64_C(16000) << 20)

/* The kinds of trials. */
void run_pair(const workload_t *workload, trial_t *trial);
void run_churn(const workload_t *workload, trial_t *trial);
void run_mix(const workload_t *workload, trial_t *trial);
void run_threads(const workload_t *workload, trial_t *trial);
void run_handoff(const workload_t *workload, trial_t *trial);
void run_full(const workload_t *workload, trial_t *trial);
void run_growth(const workload_t *workload, trial_t *trial);
void run_trim(const workload_t *workload, trial_t *trial);
void run_largest(const workload_t *workload, trial_t *trial);

#endif /* RMM_TOOLS_BENCH_WORKLOAD_H */
