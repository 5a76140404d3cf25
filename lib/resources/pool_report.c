/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool's reports about its state: the error message when all steps of the slow path failed,
 * and the list of its blocks.
 */
#include "resources/pool_resource.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "core/clock.h"
#include "log/log.h"
#include "pool/listing.h"
#include "publish/block_list.h"

#define AGE_NS 100000000u /* how long an answer is reused */

/* The query may take longer than the rest of a failing request. So if requests fail one after
 * another, a recent answer is used again. 0: the driver does not answer. *since_out: "" if it was
 * queried now, else when. /rmm shows the answer from now on. */
static uint64_t device_free_lately(pool_resource_t *self, const char **since_out)
{
    device_free_t *known = &self->device_free;
    uint64_t asked_ns = atomic_load_explicit(&known->asked_ns, memory_order_relaxed);
    uint64_t bytes = 0;

    if (asked_ns != 0 && rmm__clock_ns(CLOCK_MONOTONIC_COARSE) - asked_ns <= AGE_NS) {
        *since_out = " a moment ago";
        return atomic_load_explicit(&known->bytes, memory_order_relaxed);
    }
    *since_out = "";
    if (rmm__driver_free_memory(self->driver, self->base.device, &bytes) == RMM_OK) {
        rmm__location_device_free(self->base.accounting.location, bytes);
    }
    atomic_store_explicit(&known->bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(
        &known->asked_ns, rmm__clock_ns(CLOCK_MONOTONIC_COARSE), memory_order_relaxed);
    return bytes;
}

rmm_status_t rmm__pool_say_no_room(
    pool_resource_t *self, const rmm_request_t *request, rmm_status_t status, int error,
    const engine_figures_t *figures, const char *reason)
{
    const rmm_resource_t *mr = &self->base;
    const double free_bytes = (double)figures->free_bytes;
    const char *since;
    uint64_t device_free = device_free_lately(self, &since);

    if (status == RMM_ERR_OUT_OF_MEMORY) {
        rmm__accounting_oom(&self->base.accounting);
    }
    return rmm__error_cuda(
        status, error,
        "%s '%s': no room for %zu bytes: largest free %" PRIu64 ", total free %" PRIu64
        ", reserved %" PRIu64 ", device free %" PRIu64 "%s, fragmentation %.3f; %s",
        rmm_resource_type(mr), mr->name, request->bytes, figures->largest_free_bytes,
        figures->free_bytes, figures->reserved_bytes, device_free, since,
        figures->free_bytes != 0
            ? 1.0 - (double)figures->largest_free_bytes / free_bytes
            : 0.0,
        reason);
}

rmm_status_t rmm__pool_give_up(
    pool_resource_t *self, const rmm_request_t *request, rmm_status_t status)
{
    int error = rmm_last_cuda_error();
    char reason[RMM_ERROR_BYTES];
    engine_figures_t figures;

    snprintf(reason, sizeof(reason), "%.300s", rmm_last_error_message());
    rmm__engine_figures(self->engine, &figures);
    return rmm__pool_say_no_room(self, request, status, error, &figures, reason);
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
    uint32_t bound = rmm__engine_list_bound(engine);

    /* for blocks that are added while no lock is held */
    rmm__block_list_reserve(list, bound + bound / 8 + 64);
    rmm__block_list_moving(list, rmm__engine_list(engine, note_block, list));
}
