/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trials about the memory of a resource and not about one block: a full one that cannot
 * serve what it has enough free bytes for, one that grows from nothing, one that gives
 * back, one that may not grow further and has all it needs in parts.
 */
#include "bench/workload.h"

#include <stdlib.h>

#include "common/clock.h"

#define FULL_BLOCK_BYTES 4096
#define FULL_ATTEMPTS 1000
#define GROWTH_BLOCKS 64

typedef struct blocks {
    rmm_resource_t *resource;
    void **ptr; /* NULL: not in use */
    size_t count, capacity, bytes;
} blocks_t;

/* Until all are there or one fails. */
static rmm_status_t fill(blocks_t *blocks)
{
    rmm_status_t status = RMM_OK;
    while (blocks->count < blocks->capacity && status == RMM_OK) {
        status = rmm_resource_alloc(
            blocks->resource, blocks->bytes, 0, RMM_STREAM_LEGACY,
            &blocks->ptr[blocks->count]);
        blocks->count += status == RMM_OK;
    }
    return status;
}

static void free_every(blocks_t *blocks, size_t step)
{
    for (size_t i = 0; i < blocks->count; i += step) {
        if (blocks->ptr[i] != NULL) {
            rmm_resource_dealloc(
                blocks->resource, blocks->ptr[i], blocks->bytes, 0, RMM_STREAM_LEGACY);
            blocks->ptr[i] = NULL;
        }
    }
}

static bool make_blocks(trial_t *trial, size_t capacity, size_t bytes, blocks_t *out)
{
    *out = (blocks_t){
        .resource = trial->resource,
        .ptr = calloc(capacity, sizeof *out->ptr),
        .capacity = capacity,
        .bytes = bytes};
    if (out->ptr == NULL) {
        trial_refuse(trial, "no host memory");
    }
    return out->ptr != NULL;
}

/* Requests twice the size of a block, which fit nowhere: no two free blocks are neighbours. */
static void fail_often(trial_t *trial)
{
    uint64_t begin_ns = clock_ns(), before_ns = begin_ns;
    if (!latencies_reserve(trial->latencies, FULL_ATTEMPTS)) {
        trial_refuse(trial, "no host memory");
        return;
    }
    for (size_t i = 0; i < FULL_ATTEMPTS; i++) {
        void *ptr;
        size_t bytes = (size_t)2 * FULL_BLOCK_BYTES;
        rmm_status_t status =
            rmm_resource_alloc(trial->resource, bytes, 0, RMM_STREAM_LEGACY, &ptr);
        if (status == RMM_OK) {
            rmm_resource_dealloc(trial->resource, ptr, bytes, 0, RMM_STREAM_LEGACY);
            trial_refuse(
                trial,
                "the resource was not full: it served a request that should not fit");
            return;
        }
        if (status != RMM_ERR_OUT_OF_MEMORY) {
            trial_fail(trial, status);
            return;
        }
        uint64_t now_ns = clock_ns();
        latencies_add(trial->latencies, now_ns - before_ns);
        before_ns = now_ns;
    }
    trial->operations = FULL_ATTEMPTS;
    trial->value = (double)(before_ns - begin_ns) / FULL_ATTEMPTS;
}

/* The largest request that `free_blocks` free blocks can serve, in blocks; 0: an error. */
static size_t largest_served(trial_t *trial, const blocks_t *blocks, size_t free_blocks)
{
    for (size_t count = free_blocks; count > 0; count--) {
        void *ptr;
        size_t bytes = count * blocks->bytes;
        rmm_status_t status =
            rmm_resource_alloc(blocks->resource, bytes, 0, RMM_STREAM_LEGACY, &ptr);
        trial->operations++;
        if (status == RMM_OK) {
            rmm_resource_dealloc(blocks->resource, ptr, bytes, 0, RMM_STREAM_LEGACY);
            return count;
        }
        if (status != RMM_ERR_OUT_OF_MEMORY) {
            trial_fail(trial, status);
            return 0;
        }
    }
    trial_refuse(trial, "a request of one block failed although blocks are free");
    return 0;
}

/* The pool is at its maximum, so a request can be served from freed blocks only. A pool whose
 * chunks are scattered may not reach its maximum: then it has fewer blocks. */
void run_largest(const workload_t *workload, trial_t *trial)
{
    size_t bytes = (size_t)trial->scale->growth_bytes / GROWTH_BLOCKS;
    size_t step = (size_t)workload->amount;
    blocks_t blocks;
    if (!make_blocks(trial, GROWTH_BLOCKS, bytes, &blocks)) {
        return;
    }
    rmm_status_t status = fill(&blocks);
    size_t free_blocks = (blocks.count + step - 1) / step;
    if (status == RMM_OK || (status == RMM_ERR_OUT_OF_MEMORY && blocks.count > 0)) {
        free_every(&blocks, step);
        status = rmm_stream_synchronize(RMM_STREAM_LEGACY);
    }
    if (status == RMM_OK) {
        size_t served = largest_served(trial, &blocks, free_blocks);
        trial->value = 100.0 * (double)served / (double)free_blocks;
    }
    trial_fail(trial, status);
    free_every(&blocks, 1);
    free(blocks.ptr);
}

void run_full(const workload_t *workload, trial_t *trial)
{
    /* a pool may round its size up: there is room for some blocks more than planned */
    size_t capacity = trial->scale->full_blocks + 1024;
    blocks_t blocks;
    (void)workload;
    if (!make_blocks(trial, capacity, FULL_BLOCK_BYTES, &blocks)) {
        return;
    }
    rmm_status_t status = fill(&blocks);
    if (status == RMM_OK) {
        trial_refuse(
            trial, "the resource does not become full: it is larger than requested");
    } else if (status != RMM_ERR_OUT_OF_MEMORY) {
        trial_fail(trial, status);
    } else {
        free_every(&blocks, 2);
        fail_often(trial);
    }
    free_every(&blocks, 1);
    free(blocks.ptr);
}

/* From nothing to growth_bytes and back; which half counts? */
static void grow_and_trim(trial_t *trial, bool trim_counts)
{
    size_t bytes = (size_t)trial->scale->growth_bytes / GROWTH_BLOCKS;
    blocks_t blocks;
    if (!make_blocks(trial, GROWTH_BLOCKS, bytes, &blocks)) {
        return;
    }
    uint64_t begin_ns = clock_ns();
    rmm_status_t status = fill(&blocks);
    uint64_t elapsed_ns = clock_ns() - begin_ns;
    free_every(&blocks, 1);
    free(blocks.ptr);
    if (status == RMM_OK) {
        status = rmm_stream_synchronize(RMM_STREAM_LEGACY);
    }
    if (status == RMM_OK && trim_counts) {
        begin_ns = clock_ns();
        status = rmm_resource_trim(trial->resource, 0);
        elapsed_ns = clock_ns() - begin_ns;
    }
    trial->unsupported = status == RMM_ERR_UNSUPPORTED;
    trial_fail(trial, status);
    trial->operations = trim_counts ? 1 : GROWTH_BLOCKS;
    trial->value = (double)elapsed_ns / 1e3;
}

void run_growth(const workload_t *workload, trial_t *trial)
{
    (void)workload;
    grow_and_trim(trial, false);
}

void run_trim(const workload_t *workload, trial_t *trial)
{
    (void)workload;
    grow_and_trim(trial, true);
}
