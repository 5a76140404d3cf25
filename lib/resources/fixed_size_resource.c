/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of one size: a pool whose requests are all made one size and whose chunks are
 * whole numbers of them, so that nothing is ever left over. How blocks change streams, the
 * accounting and the locking are the pool's (pool_resource.h).
 */
#include <rmm/fixed_size_resource.h>

#include <inttypes.h>

#include "core/assert.h"
#include "resources/pool_resource.h"

#define BLOCK_BYTES_DEFAULT ((uint64_t)1024 * 1024)
#define BLOCKS_PER_CHUNK_DEFAULT 128

/* Defaults filled in and block_bytes rounded up, or why it cannot be. */
static rmm_status_t check_options(rmm_fixed_size_options_t *options)
{
    uint64_t block = options->block_bytes;
    uint64_t count = options->blocks_per_chunk;

    block = block != 0 ? block : BLOCK_BYTES_DEFAULT;
    count = count != 0 ? count : BLOCKS_PER_CHUNK_DEFAULT;
    if (block > ENGINE_BLOCK_BYTES) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "block_bytes %" PRIu64 " is more than %" PRIu64 ": use a pool", block,
            ENGINE_BLOCK_BYTES);
    }
    block = (block + RMM_BLOCKS_UNIT - 1) / RMM_BLOCKS_UNIT * RMM_BLOCKS_UNIT;
    if (count > ENGINE_RUN_BYTES / block) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "%" PRIu64 " blocks of %" PRIu64
            " bytes exceed a chunk's maximum of %" PRIu64
            " bytes: lower blocks_per_chunk",
            count, block, ENGINE_RUN_BYTES);
    }
    options->block_bytes = block;
    options->blocks_per_chunk = count;
    return RMM_OK;
}

static const rmm_resource_ops_t fixed_size_ops = RMM_POOL_OPS("fixed_size");

static rmm_status_t create(
    rmm_resource_t *upstream, const rmm_fixed_size_options_t *options,
    rmm_resource_t **out)
{
    return rmm__pool_create(
        upstream,
        &(pool_plan_t){
            .ops = &fixed_size_ops,
            .name = options->name,
            .engine =
                {.maximum_bytes = UINT64_MAX / RMM_BLOCKS_UNIT * RMM_BLOCKS_UNIT,
                 .block_units = (uint32_t)(options->block_bytes / RMM_BLOCKS_UNIT),
                 .growth_bytes = options->block_bytes * options->blocks_per_chunk}},
        out);
}

rmm_status_t rmm_fixed_size_resource_create(
    rmm_resource_t *upstream, const rmm_fixed_size_options_t *options,
    rmm_resource_t **out)
{
    rmm_fixed_size_options_t opts;
    rmm_status_t status = RMM_OPTIONS_OVER(upstream, out, &opts, options);

    if (status == RMM_OK) {
        status = check_options(&opts);
    }
    return status == RMM_OK ? create(upstream, &opts, out) : status;
}

static rmm_status_t check(const rmm_resource_t *mr, const uint64_t *out)
{
    RMM_CHECK_ARG(mr != NULL, "the resource is NULL");
    RMM_CHECK_ARG(
        atomic_load_explicit(&mr->ops, memory_order_relaxed) == &fixed_size_ops,
        "the resource is not a fixed_size resource");
    RMM_CHECK_ARG(out != NULL, "the output pointer is NULL");
    return RMM_OK;
}

/* As the program requested them: without the gap. */
static uint64_t block_bytes(const rmm_resource_t *mr)
{
    const pool_resource_t *self = (const pool_resource_t *)mr;

    return (uint64_t)(self->block_units - self->gap_units) * RMM_BLOCKS_UNIT;
}

rmm_status_t
rmm_fixed_size_get_block_bytes(const rmm_resource_t *mr, uint64_t *bytes_out)
{
    rmm_status_t status = check(mr, bytes_out);

    if (status == RMM_OK) {
        *bytes_out = block_bytes(mr);
    }
    return status;
}

rmm_status_t
rmm_fixed_size_get_blocks_per_chunk(const rmm_resource_t *mr, uint64_t *count_out)
{
    rmm_status_t status = check(mr, count_out);

    if (status == RMM_OK) {
        const pool_resource_t *self = (const pool_resource_t *)mr;

        *count_out =
            self->chunk_bytes / (self->block_units * (uint64_t)RMM_BLOCKS_UNIT);
    }
    return status;
}
