/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeats and interleaves: of a group of workloads each is measured once on each resource,
 * then all again, so that what changes in the machine meanwhile changes for all of them.
 * Every trial has a resource of its own, made for it.
 */
#ifndef RMM_TOOLS_BENCH_BENCH_H
#define RMM_TOOLS_BENCH_BENCH_H

#include "bench/sample.h"
#include "bench/workload.h"
#include "common/progress.h"

#define BENCH_REPETITIONS_MAX 1000

typedef struct bench_result {
    const workload_t *workload;
    const char *resource; /* borrowed */
    double *values;       /* of each repetition */
    uint32_t *p99_ns;     /* of single operations of each repetition; 0: of none */
    size_t value_count;
    latencies_t latencies; /* of all repetitions, in rising order at the end */
    uint64_t operations;   /* of one repetition, the last one */
    size_t cut_ops;        /* not 0: only so many of the script's were played */
    bool unsupported;
    char problem[TRIAL_PROBLEM_MAX]; /* not "": not measured */
} bench_result_t;

typedef struct bench {
    trial_scale_t scale;
    uint64_t repetitions, seed;
    bench_result_t *results;
    size_t result_count, capacity;
    progress_t progress;
} bench_t;

/* One more to measure; in the order of the table. False: no host memory. */
bool bench_add(bench_t *bench, const workload_t *workload, const char *resource);

/* True: every figure is there, but for what a resource cannot do. */
bool bench_run(bench_t *bench);

/* The result of another workload on the same resource; NULL: not measured. */
const bench_result_t *
bench_result_of(const bench_t *bench, const char *workload, const char *resource);

/* The median of what each repetition took more than the one of `against`; false: there is
 * nothing to compare with. */
bool bench_difference(
    const bench_t *bench, const bench_result_t *result, double *difference);

void bench_fini(bench_t *bench);

#endif /* RMM_TOOLS_BENCH_BENCH_H */
