/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's part when a program resets a GPU (cudaDeviceReset): its memory is gone without a
 * free of its blocks, and the driver hands the same addresses out again. What is remembered of
 * them would make false findings, so it is forgotten; these blocks get no verdict.
 *
 * Memory of the host that the reset gives back too is not forgotten: its GPU is not known.
 *
 * Cost: one pass over all rows, under the engine's lock.
 */
#include "diag/engine_impl.h"
#include "diag/row.h"

static bool is_on(const rmm_diag_engine_t *engine, uint32_t index, int32_t device)
{
    const rmm_live_node_t *node = &engine->map.nodes[index];

    return node->start != node->end &&
           RMM_ROW_GET(&engine->rows[index], device) == device;
}

void rmm__diag_engine_reset(rmm_diag_engine_t *engine, int32_t device)
{
    uint64_t count = 0;

    rmm__mutex_lock(&engine->lock);
    for (uint32_t i = 0; i < engine->map.fresh; i++) {
        if (is_on(engine, i, device)) {
            rmm__diag_forget_block_locked(engine, i);
            count++;
        }
    }
    /* of all GPUs: an error may be missed, none is invented */
    rmm__freed_take(&engine->freed, 0, UINT64_MAX);
    rmm__bounds_forget_pools(&engine->bounds);
    RMM_ROW_ADD(&engine->header->device_resets, 1);
    RMM_ROW_ADD(&engine->header->blocks_reset, count);
    rmm__mutex_unlock(&engine->lock);
}
