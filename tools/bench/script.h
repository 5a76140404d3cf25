/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocations and frees of a workload, of numbered handles, decided before the clock starts.
 * Pure.
 *
 * The first setup_count operations fill the handles and are not measured. The others may be
 * run any number of times: each ends with the same handles in use as it begins with.
 */
#ifndef RMM_TOOLS_BENCH_SCRIPT_H
#define RMM_TOOLS_BENCH_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct script_op {
    uint32_t handle;
    uint32_t bytes; /* of an allocation; 0: free the handle */
} script_op_t;

typedef struct script {
    script_op_t *ops;
    size_t op_count, setup_count;
    size_t handle_count;
    unsigned ops_per_unit; /* of what the figures count: a pair is two operations */
} script_t;

/* False from each: no host memory. */

/* Allocate and free one block, `pairs` times. */
bool script_pair(uint32_t bytes, size_t pairs, script_t *out);

/* With `live` blocks: free one at random and allocate another, of 2^8 to 2^22 bytes
 * (uniform in the exponent), `steps` times. */
bool script_churn(size_t live, size_t steps, uint64_t seed, script_t *out);

/* RMM's random mix: 73 of 100 operations allocate, uniformly 1 to max_bytes, as long as no
 * more than live_bytes are out; the others free one at random. At the end all is freed. */
typedef struct script_mix {
    size_t allocations;
    uint32_t max_bytes;
    uint64_t live_bytes;
    uint64_t seed;
} script_mix_t;

bool script_mix(const script_mix_t *mix, script_t *out);

void script_fini(script_t *script);

/* A step of the generator (splitmix64). */
uint64_t script_random(uint64_t *state);

#endif /* RMM_TOOLS_BENCH_SCRIPT_H */
