/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool of one piece of addresses, reduced to its policy: which free block serves a
 * request. Offsets only; streams do not matter, a freed block is free at once.
 *
 * FIT_BEST is RMM's pool: the smallest free block that is large enough, the one at the
 * lowest address among equal ones. FIT_FIRST takes the lowest address that is large
 * enough. Both round sizes up to 256 bytes, take the front of the block, and merge a freed
 * block with its free neighbours at once.
 *
 * A free block is found by looking at each, which is quick for some thousands of them.
 */
#ifndef RMM_TESTS_CAPACITY_FIT_MODEL_H
#define RMM_TESTS_CAPACITY_FIT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIT_UNIT 256

typedef enum fit_policy { FIT_BEST, FIT_FIRST } fit_policy_t;

typedef struct fit_block {
    uint64_t offset;
    uint64_t bytes;
} fit_block_t;

typedef struct fit_model {
    fit_policy_t policy;
    fit_block_t *blocks; /* free ones, by address; no two touch */
    size_t count;
    size_t room;
} fit_model_t;

/* What a block of this size takes: a multiple of FIT_UNIT. */
uint64_t fit_rounded(uint64_t bytes);

/* All free; the capacity is rounded down to FIT_UNIT. False: no memory, nothing held. */
bool fit_init(fit_model_t *model, fit_policy_t policy, uint64_t capacity_bytes);
void fit_fini(fit_model_t *model);

/* False: no free block is large enough. */
bool fit_alloc(fit_model_t *model, uint64_t bytes, uint64_t *offset);

/* A block of fit_alloc() with its size. False: no memory, the block is lost. */
bool fit_dealloc(fit_model_t *model, uint64_t offset, uint64_t bytes);

#endif /* RMM_TESTS_CAPACITY_FIT_MODEL_H */
