/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of a pool's users: allocate, free and trim, as requests to its engine. Its
 * accounting follows in the engine's callbacks (pool_life.c).
 */
#include "resources/pool_resource.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/count.h"
#include "base/diag_attach.h"
#include "log/log.h"

/* --- allocate ------------------------------------------------------------------------ */

/* An allocation of no bytes, or its free: counted, and nothing else. */
RMM_COLD static void
count_nothing(pool_resource_t *self, const rmm_request_t *request, bool is_free)
{
    rmm__mutex_lock(rmm__engine_mutex(self->engine));
    if (is_free) {
        rmm__count_free_locked(&self->base, request->user, 0, 0);
    } else {
        rmm__count_alloc_locked(&self->base, request->user, 0, 0);
    }
    rmm__mutex_unlock(rmm__engine_mutex(self->engine));
}

RMM_COLD static rmm_status_t
too_large(pool_resource_t *self, const rmm_request_t *request)
{
    rmm__accounting_oom(&self->base.accounting);
    if (self->block_units != 0) {
        return rmm__error(
            RMM_ERR_OUT_OF_MEMORY,
            "%s '%s': %zu bytes exceed its block size of %" PRIu64 " bytes",
            rmm_resource_type(&self->base), self->base.name, request->bytes,
            (uint64_t)(self->block_units - self->gap_units) * RMM_BLOCKS_UNIT);
    }
    return rmm__error(
        RMM_ERR_OUT_OF_MEMORY, "pool '%s': %zu bytes exceed what a pool can manage",
        self->base.name, request->bytes);
}

/* The request in units; those of a whole block where all blocks have one size. */
static inline rmm_status_t
measure(pool_resource_t *self, const rmm_request_t *request, engine_alloc_t *alloc)
{
    uint64_t units = (request->bytes + self->round_bytes) / RMM_BLOCKS_UNIT;
    uint32_t fixed = self->block_units;

    if (units > (fixed != 0 ? fixed : ENGINE_RUN_BYTES / RMM_BLOCKS_UNIT)) {
        return too_large(self, request);
    }
    alloc->bytes = request->bytes;
    alloc->block.units = fixed != 0 ? fixed : (uint32_t)units;
    alloc->block.align_units = (uint32_t)(request->align / RMM_BLOCKS_UNIT);
    alloc->stream = request->stream;
    alloc->is_marked = request->user;
    return RMM_OK;
}

RMM_COLD rmm_status_t
rmm__pool_unknown_stream(const pool_resource_t *self, rmm_stream_t stream, int error)
{
    return rmm__error_cuda(
        RMM_ERR_BAD_ALLOC, error,
        "%s '%s': querying the id of stream %p failed: %s (%d)",
        rmm_resource_type(&self->base), self->base.name, (void *)stream,
        self->driver->error_name(error), error);
}

RMM_COLD void rmm__pool_log_news(pool_resource_t *self)
{
    const engine_news_t news = rmm__engine_news(self->engine);

    if (news.grown_bytes != 0) {
        rmm__log_info(
            "%s '%s' (%" PRIu32 "): grew by %" PRIu64 " bytes to %" PRIu64,
            rmm_resource_type(&self->base), self->base.name, self->base.instance_id,
            news.grown_bytes,
            RMM_ACCOUNTING_GET(&self->base.accounting, reserved_bytes));
    }
    if (news.stuck_bytes != 0) {
        rmm__log_error(
            "%s '%s' (%" PRIu32 "): %" PRIu64
            " bytes could not be unmapped or released; "
            "neither it nor the device can use them",
            rmm_resource_type(&self->base), self->base.name, self->base.instance_id,
            news.stuck_bytes);
    }
    if (news.shut_out != 0) {
        char what[64];

        snprintf(
            what, sizeof(what), "pool '%.32s' (%" PRIu32 ")", self->base.name,
            self->base.instance_id);
        rmm__driver_warn_shut_out(
            what, self->driver, self->base.device, news.shut_out, news.shut_out_error);
    }
}

/* Rather a block without its gap than none. */
RMM_COLD static rmm_status_t alloc_failed(
    pool_resource_t *self, const rmm_request_t *request, engine_alloc_t *alloc,
    rmm_status_t status, void **ptr_out)
{
    if (status == RMM_ERR_OUT_OF_MEMORY && self->gap_units != 0 &&
        self->block_units == 0) {
        alloc->block.units -= self->gap_units;
        status = rmm__engine_alloc(self->engine, alloc, ptr_out);
    }
    return status == RMM_OK ? RMM_OK : rmm__pool_give_up(self, request, status);
}

rmm_status_t
rmm__pool_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    pool_resource_t *self = pool_from_base(mr);
    engine_alloc_t alloc;
    rmm_status_t status;
    int error;

    if (request->bytes == 0) {
        count_nothing(self, request, false);
        *ptr_out = NULL;
        return RMM_OK;
    }
    status = measure(self, request, &alloc);
    if (status != RMM_OK) {
        return status;
    }
    error = self->driver->stream_key(request->stream, &alloc.key);
    if (error != RMM_DRIVER_OK) {
        return rmm__pool_unknown_stream(self, request->stream, error);
    }
    status = rmm__engine_alloc(self->engine, &alloc, ptr_out);
    if (status == RMM_ERR_OUT_OF_MEMORY || status == RMM_ERR_BAD_ALLOC ||
        status == RMM_ERR_CUDA) {
        status = alloc_failed(self, request, &alloc, status, ptr_out);
    }
    if (status == RMM_OK) {
        rmm__request_tell_kept(
            request,
            (uintptr_t)*ptr_out + (uint64_t)alloc.block.units * RMM_BLOCKS_UNIT);
    }
    rmm__pool_log_changes(self);
    return status;
}

/* --- free ---------------------------------------------------------------------------- */

RMM_COLD static const char *free_late(pool_resource_t *self, const engine_free_t *freed)
{
    uint64_t most_bytes = rmm__diag_quarantine_bytes(), kept_bytes;
    const char *refusal;

    if (most_bytes == 0) {
        return rmm__engine_free(self->engine, freed);
    }
    refusal = rmm__engine_free_late(self->engine, freed, &kept_bytes);
    if (kept_bytes > most_bytes) {
        (void)rmm__engine_synchronise(
            self->engine); /* else they wait for the next one */
    }
    return refusal;
}

void rmm__pool_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    pool_resource_t *self = pool_from_base(mr);
    engine_free_t freed = {
        .ptr = ptr, .bytes = request->bytes, .stream = request->stream};
    const char *refusal;

    if (ptr == NULL) {
        count_nothing(self, request, true);
        return;
    }
    freed.has_key =
        self->driver->stream_key(request->stream, &freed.key) == RMM_DRIVER_OK;
    refusal = __builtin_expect(self->may_quarantine, false)
                  ? free_late(self, &freed)
                  : rmm__engine_free(self->engine, &freed);
    if (__builtin_expect(refusal != NULL, false)) {
        rmm__resource_refuse_free(mr, ptr, request, refusal);
    }
}

/* --- trim ---------------------------------------------------------------------------- */

rmm_status_t rmm__pool_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    pool_resource_t *self = pool_from_base(mr);
    rmm_status_t status = rmm__engine_trim(self->engine, keep_bytes);

    rmm__pool_log_changes(self);
    return status;
}
