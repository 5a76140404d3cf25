/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pool reports about its state: the error message when all steps of the ladder failed,
 * and the list of its blocks.
 */
#include "resources/pool_resource.h"

#include <inttypes.h>
#include <stdio.h>

#include "log/log.h"
#include "pool/listing.h"
#include "publish/block_list.h"

RMM_COLD rmm_status_t rmm__pool_give_up(
    pool_resource_t *self, const rmm_request_t *request, rmm_status_t status)
{
    const rmm_resource_t *mr = &self->base;
    char reason[RMM_ERROR_BYTES];
    engine_figures_t figures;
    const char *since;
    uint64_t device_free;
    uint64_t free_bytes, largest_bytes;

    snprintf(reason, sizeof(reason), "%.300s", rmm_last_error_message());
    device_free = rmm__device_free_lately(&self->device_free, mr, self->driver, &since);
    rmm__engine_figures(self->engine, &figures);
    free_bytes = figures.free_bytes;
    largest_bytes = figures.largest_free_bytes;
    if (status == RMM_ERR_OUT_OF_MEMORY) {
        rmm__accounting_oom(&self->base.accounting);
    }
    return rmm__error_cuda(
        status, rmm_last_cuda_error(),
        "%s '%s': no room for %zu bytes: largest free %" PRIu64 ", total free %" PRIu64
        ", reserved %" PRIu64 ", device free %" PRIu64 "%s, fragmentation %.3f; %s",
        rmm_resource_type(mr), mr->name, request->bytes, largest_bytes, free_bytes,
        figures.reserved_bytes, device_free, since,
        free_bytes != 0 ? 1.0 - (double)largest_bytes / (double)free_bytes : 0.0,
        reason);
}

/* --- blocks -------------------------------------------------------------------------- */

static void note_block(void *context, const engine_listed_t *listed)
{
    static const uint32_t states[] = {[ENGINE_BLOCK_CHUNK] = RMM_BLOCK_CHUNK,
                                      [ENGINE_BLOCK_USED] = RMM_BLOCK_USED,
                                      [ENGINE_BLOCK_FREE] = RMM_BLOCK_FREE,
                                      [ENGINE_BLOCK_CACHED] = RMM_BLOCK_CACHED,
                                      [ENGINE_BLOCK_GRAPH] = RMM_BLOCK_GRAPH,
                                      [ENGINE_BLOCK_LOST] = RMM_BLOCK_LOST};

    rmm__block_list_add(
        context, (rmm_blocks_row_t){
                     .address = listed->address,
                     .bytes = listed->bytes,
                     .stream = listed->stream,
                     .padding = (uint32_t)listed->padding,
                     .state = states[listed->state]});
}

void rmm__pool_list_blocks(rmm_resource_t *mr, rmm_block_list_t *list)
{
    engine_t *engine = pool_from_base(mr)->engine;
    uint64_t moving = 0;
    uint32_t bound = rmm__engine_list_bound(engine);

    /* what comes meanwhile, while no lock is held */
    rmm__block_list_reserve(list, bound + bound / 8 + 64);
    (void)rmm__engine_list(engine, note_block, list, &moving);
    rmm__block_list_moving(list, moving);
}
