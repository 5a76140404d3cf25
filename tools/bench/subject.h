/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resources that workloads are measured on, by the words of RMM_RESOURCE.
 */
#ifndef RMM_TOOLS_BENCH_SUBJECT_H
#define RMM_TOOLS_BENCH_SUBJECT_H

#include "bench/workload.h"

#define SUBJECT_SPEC_MAX 128 /* longest of --resource */
#define SUBJECTS_MAX 32

/* The usual ones, raw cudaMalloc and cudaMallocAsync first; ends with NULL. */
extern const char *const subjects_usual[];

/* Is it measured with this resource, if that was named (else by default)? */
bool subject_suits(const char *spec, const workload_t *workload, bool was_named);

/* False: see the last error. */
bool subject_open(
    const char *spec, const workload_t *workload, const trial_scale_t *scale,
    rmm_resource_t **out);

#endif /* RMM_TOOLS_BENCH_SUBJECT_H */
