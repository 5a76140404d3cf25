/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of CUDA's memory pools, as resources: see mempool.h.
 *
 * Locking: as tracked.h; no lock is held during a driver call.
 */
#include <rmm/async_resource.h>

#include "base/diag_attach.h"
#include "base/limits.h"
#include "core/assert.h"
#include "core/host_memory.h"
#include "core/round.h"
#include "log/log.h"
#include "resources/mempool.h"

static rmm_mempool_resource_t *from_tracked(rmm_tracked_t *tracked)
{
    return RMM_CONTAINER_OF(tracked, rmm_mempool_resource_t, tracked);
}

static const rmm_mempool_resource_t *from_const_base(const rmm_resource_t *mr)
{
    return (const rmm_mempool_resource_t *)(const void *)mr; /* first members */
}

/* --- one block ---------------------------------------------------------------------- */

/* Where the pool holds more than is live, a synchronise may let the request succeed. */
static const char *advice(const rmm_mempool_resource_t *self, int error)
{
    const rmm_accounting_t *accounting = &self->tracked.base.accounting;

    if (error != RMM_DRIVER_MEMORY_ALLOCATION ||
        rmm__mempool_ask(self->pool, accounting) != RMM_DRIVER_OK ||
        atomic_load_explicit(&self->pool->reserved_bytes, memory_order_relaxed) <=
            RMM_ACCOUNTING_GET(accounting, current_bytes)) {
        return "";
    }
    return self->waits ? "; the pool has unused memory: synchronise the streams that "
                         "freed it, and try again"
                       : "; the pool has unused memory: synchronise, and try again, or "
                         "create the resource with RMM_ASYNC_WAIT_BEFORE_REFUSAL "
                         "(async:wait in RMM_RESOURCE)";
}

static bool is_on_host(const rmm_mempool_t *pool)
{
    return pool->location == RMM_SEGMENT_HOST_LOCATION;
}

RMM_COLD static rmm_status_t
alloc_error(const rmm_mempool_resource_t *self, int error, size_t bytes)
{
    const rmm_mempool_t *pool = self->pool;

    if (error == RMM_DRIVER_NOT_SUPPORTED && is_on_host(pool)) {
        return rmm__error_cuda(
            RMM_ERR_UNSUPPORTED, error,
            "a graph capture cannot allocate %zu bytes from a CUDA pool of the host's "
            "memory: use a pool on top of it",
            bytes);
    }
    return rmm__error_cuda(
        error == RMM_DRIVER_MEMORY_ALLOCATION ? RMM_ERR_OUT_OF_MEMORY
                                              : RMM_ERR_BAD_ALLOC,
        error,
        "cudaMallocFromPoolAsync of %zu bytes on device %d failed: %s (%d): %s%s",
        bytes, pool->device, pool->driver->error_name(error), error,
        pool->driver->error_text(error), advice(self, error));
}

RMM_COLD static rmm_status_t too_aligned(const rmm_tracked_t *tracked, size_t align)
{
    return rmm__error(
        RMM_ERR_BAD_ALLOC,
        "the %s resource aligns to %zu, not %zu: use a pool on top of it",
        rmm_resource_type(&tracked->base), RMM_ALIGN_DEFAULT, align);
}

/* *bytes: with a guard if there is room. RMM_OK with the driver's error, or RMM_ERR_CUDA. */
static rmm_status_t take(
    rmm_mempool_t *pool, const rmm_request_t *request, size_t *bytes, void **ptr_out,
    int *error_out)
{
    const rmm_driver_t *driver = pool->driver;
    rmm_stream_t stream = request->stream;
    rmm_driver_scope_t scope;

    if (!rmm__driver_relax_enter(&scope, driver, pool->device, stream)) {
        return RMM_ERR_CUDA; /* the last error says why */
    }
    if (rmm_stream_is_default(stream)) {
        rmm__mempool_free_kept(pool, RMM_STREAM_LEGACY);
    }
    *error_out = driver->mempool_alloc(pool->handle, ptr_out, *bytes, stream);
    if (*error_out == RMM_DRIVER_MEMORY_ALLOCATION && *bytes != request->bytes) {
        *bytes = request->bytes; /* no room for the guard: try the block without one */
        *error_out = driver->mempool_alloc(pool->handle, ptr_out, *bytes, stream);
    }
    rmm__driver_relax_leave(&scope);
    return RMM_OK;
}

static rmm_status_t
obtain(rmm_tracked_t *tracked, const rmm_request_t *request, void **ptr_out)
{
    rmm_mempool_resource_t *self = from_tracked(tracked);
    rmm_mempool_t *pool = self->pool;
    size_t bytes = rmm__diag_guarded_bytes(
        request->bytes, request->facts_out != NULL && !is_on_host(pool));
    rmm_status_t status;
    int error;

    if (request->align > RMM_ALIGN_DEFAULT) {
        return too_aligned(tracked, request->align);
    }
    if (!is_on_host(pool)) { /* which takes none of the device's memory */
        rmm__mempool_keep_barrier(pool);
    }
    status = take(pool, request, &bytes, ptr_out, &error);
    if (status == RMM_OK && error == RMM_DRIVER_MEMORY_ALLOCATION && self->waits &&
        rmm__mempool_wait(pool, request->stream)) {
        status = take(pool, request, &bytes, ptr_out, &error);
    }
    if (status != RMM_OK) {
        return status;
    }
    if (error != RMM_DRIVER_OK) {
        return alloc_error(self, error, request->bytes);
    }
    rmm__request_tell_returned(request, (uintptr_t)*ptr_out + bytes);
    return RMM_OK;
}

/* A graph can free only memory of its own. */
static bool
is_refused_in_capture(const rmm_driver_t *driver, rmm_stream_t stream, int error)
{
    rmm_stream_key_t key;

    return error == RMM_DRIVER_CAPTURE_INVALIDATED ||
           (error == RMM_DRIVER_INVALID_VALUE && !rmm_stream_is_default(stream) &&
            driver->stream_key(stream, &key) == RMM_DRIVER_OK && key.capture_id != 0);
}

static void give_back(rmm_tracked_t *tracked, void *ptr, const rmm_request_t *request)
{
    rmm_mempool_t *pool = from_tracked(tracked)->pool;
    bool is_default = rmm_stream_is_default(request->stream);
    rmm_driver_scope_t scope;
    int error;

    if (rmm__driver_relax_enter(&scope, pool->driver, pool->device, request->stream)) {
        if (is_default) {
            rmm__mempool_free_kept(pool, RMM_STREAM_LEGACY);
        }
        error = pool->driver->mempool_free(ptr, request->stream);
        rmm__driver_relax_leave(&scope);
    } else { /* the stream would be another device's, or a capture would be ruined */
        error = rmm_last_cuda_error();
        if (is_default && rmm__mempool_keep(pool, ptr, request->bytes, false)) {
            return;
        }
    }
    if (is_refused_in_capture(pool->driver, request->stream, error) &&
        rmm__mempool_keep(pool, ptr, request->bytes, true)) {
        rmm__log_warn(
            "device %d: %p bytes %zu was freed in a capture, but not allocated in it: "
            "it stays allocated until its resource ends",
            pool->device, ptr, request->bytes);
        return;
    }
    rmm__mempool_log_free(pool, ptr, request->bytes, error);
}

static void destroy(rmm_tracked_t *tracked)
{
    rmm__mempool_close(from_tracked(tracked)->pool, false);
}

static const rmm_tracked_source_t source = {
    .obtain = obtain,
    .give_back = give_back,
    .destroy = destroy,
    .keeps_reserve = true};

/* --- the ops ------------------------------------------------------------------------ */

/* By how much the pool must grow for this block, by the driver's current figures, if its free
 * memory can be used. */
static uint64_t growth_for(const rmm_resource_t *mr, uint64_t bytes)
{
    const rmm_mempool_t *pool = from_const_base(mr)->pool;
    uint64_t used = RMM_ACCOUNTING_GET(&mr->accounting, current_bytes) + bytes;
    uint64_t reserved;

    rmm__mempool_refresh(mr);
    reserved = atomic_load_explicit(&pool->reserved_bytes, memory_order_relaxed);
    return used > reserved ? rmm__round_up(used - reserved, MEMPOOL_STEP_BYTES) : 0;
}

/* Reserves the growth under the limit. If that trims this very pool to make room, the pool must
 * then grow by more: reserves the larger growth again. */
static rmm_status_t
begin_growth(rmm_resource_t *mr, uint64_t bytes, uint64_t *promised_out)
{
    rmm_status_t status = rmm__growth_begin(mr, growth_for(mr, bytes), promised_out);

    if (status == RMM_OK && *promised_out != 0 &&
        growth_for(mr, bytes) > *promised_out) {
        rmm__growth_end(mr, *promised_out);
        status = rmm__growth_begin(mr, growth_for(mr, bytes), promised_out);
    }
    if (status != RMM_OK) {
        rmm__accounting_oom(&mr->accounting);
    }
    return status;
}

/* The pool grew by more than expected, and exceeds the limit: frees the block and trims. */
static void undo(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    rmm_error_kept_t kept;

    rmm__error_keep(&kept);
    rmm__accounting_oom(&mr->accounting);
    rmm__tracked_dealloc(mr, ptr, request);
    (void)rmm__mempool_trim(mr, 0);
    rmm__error_restore(&kept);
}

/* An allocation under a limit of the location, which the driver does not know. */
RMM_COLD static rmm_status_t
alloc_limited(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    const rmm_mempool_t *pool = from_const_base(mr)->pool;
    uint64_t before, promised;
    void *ptr;
    rmm_status_t status = begin_growth(mr, request->bytes, &promised);

    if (status != RMM_OK) {
        return status;
    }
    before = atomic_load_explicit(&pool->reserved_bytes, memory_order_relaxed);
    status = rmm__tracked_alloc(mr, request, &ptr);
    rmm__mempool_refresh(mr);
    rmm__growth_end(mr, promised);
    if (status != RMM_OK) {
        return status;
    }
    if (atomic_load_explicit(&pool->reserved_bytes, memory_order_relaxed) > before) {
        status = rmm__growth_check(mr, request->bytes);
    }
    if (status != RMM_OK) {
        undo(mr, ptr, request);
        return status;
    }
    *ptr_out = ptr;
    return RMM_OK;
}

rmm_status_t
rmm__mempool_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    rmm_accounting_t *accounting = &mr->accounting;
    rmm_status_t status = rmm__requests_pending()
                              ? alloc_limited(mr, request, ptr_out)
                              : rmm__tracked_alloc(mr, request, ptr_out);

    if (status == RMM_OK &&
        (RMM_ACCOUNTING_GET(accounting, current_bytes) >
             RMM_ACCOUNTING_GET(accounting, reserved_bytes) ||
         RMM_ACCOUNTING_GET(accounting, total_count) % MEMPOOL_ASK_EVERY == 0)) {
        rmm__mempool_refresh(mr);
    }
    return status;
}

/* If the driver call fails, the figure keeps its value. */
void rmm__mempool_refresh(const rmm_resource_t *mr)
{
    (void)rmm__mempool_ask(from_const_base(mr)->pool, &mr->accounting);
}

rmm_status_t rmm__mempool_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    rmm_mempool_t *pool = from_const_base(mr)->pool;
    rmm_driver_scope_t scope;
    rmm_status_t status = rmm__driver_scope_enter(&scope, pool->driver, pool->device);
    int error;

    if (status != RMM_OK) {
        return status;
    }
    error = rmm__mempool_see_frees(pool);
    if (error == RMM_DRIVER_OK) {
        error = pool->driver->mempool_trim(pool->handle, keep_bytes);
    }
    rmm__driver_scope_leave(&scope);
    rmm__mempool_refresh(mr);
    return rmm__driver_status(pool->driver, error, "trimming the memory pool");
}

void rmm__mempool_destroy(rmm_resource_t *mr)
{
    const rmm_mempool_t *pool = from_const_base(mr)->pool;

    /* live blocks are freed on another stream than those that used them */
    if (rmm__tracked_from_base(mr)->blocks.count != 0) {
        (void)rmm__driver_wait_all_devices(pool->driver, pool->device);
    }
    rmm__tracked_destroy(mr);
}

/* --- creation ----------------------------------------------------------------------- */

rmm_status_t rmm__mempool_require(const rmm_driver_t *driver, int device)
{
    return rmm__driver_require(
        driver, RMM_ATTRIBUTE_MEMORY_POOLS, device,
        "has no memory pools (cudaDevAttrMemoryPoolsSupported is 0): use a pool "
        "resource over the cuda resource");
}

/* Reads for the first time how much the pool holds. If that fails, the pool is unchanged. */
static rmm_status_t look(rmm_mempool_t *pool, rmm_tracked_t *self)
{
    int error = rmm__mempool_ask(pool, &self->base.accounting);

    if (error != RMM_DRIVER_OK) {
        rmm__resource_fini(&self->base);
        rmm__free(self);
        return rmm__driver_error(pool->driver, error, "reading the memory pool");
    }
    return RMM_OK;
}

/* A view of a pool of the host's memory that a resource made is of that memory, too. */
static rmm_status_t make(const rmm_mempool_plan_t *plan, rmm_tracked_t **out)
{
    bool is_on_host;
    rmm_mempool_resource_t model = {
        .tracked = {.source = &source, .instance_key = plan->instance_key},
        .waits = plan->waits,
        .handle_types = plan->handle_types};
    rmm_status_t status = rmm__mempool_open(plan, &model.pool);

    if (status != RMM_OK) {
        return status;
    }
    is_on_host = model.pool->location == RMM_SEGMENT_HOST_LOCATION;
    status = rmm__tracked_create(
        &model.tracked, sizeof(model),
        &(rmm_resource_desc_t){
            .ops = plan->ops,
            .name = plan->name,
            .properties = plan->properties | (is_on_host ? RMM_HOST_ACCESSIBLE : 0),
            .device = model.pool->device,
            .in_host_memory = is_on_host,
        },
        out);
    if (status == RMM_OK) {
        status = look(model.pool, *out);
    }
    if (status != RMM_OK) {
        rmm__mempool_close(model.pool, true);
    }
    return status;
}

rmm_status_t
rmm__mempool_resource_create(const rmm_mempool_plan_t *plan, rmm_resource_t **out)
{
    rmm_tracked_t *fresh;
    rmm_status_t status;

    if (plan->instances != NULL) {
        rmm_resource_t *shared =
            rmm__tracked_share(plan->instances, plan->instance_key);

        if (shared != NULL) {
            *out = shared;
            return RMM_OK;
        }
    }
    status = make(plan, &fresh);
    if (status != RMM_OK) {
        return status;
    }
    *out = plan->instances != NULL ? rmm__tracked_install(plan->instances, fresh)
                                   : &fresh->base;
    return RMM_OK;
}

void *rmm_async_resource_pool_handle(const rmm_resource_t *mr)
{
    void (*refresh)(const rmm_resource_t *);

    if (mr == NULL) {
        return NULL;
    }
    refresh = atomic_load_explicit(&mr->ops, memory_order_relaxed)->refresh;
    return refresh == rmm__mempool_refresh ? (void *)from_const_base(mr)->pool->handle
                                           : NULL;
}

rmm_status_t
rmm_async_get_release_threshold(const rmm_resource_t *mr, uint64_t *bytes_out)
{
    const rmm_mempool_t *pool;
    uint64_t threshold;
    int error;

    RMM_CHECK_ARG(
        rmm_async_resource_pool_handle(mr) != NULL,
        "the resource does not use a CUDA memory pool");
    RMM_CHECK_ARG(bytes_out != NULL, "bytes_out is NULL");
    pool = from_const_base(mr)->pool;
    error = pool->driver->mempool_get_threshold(pool->handle, &threshold);
    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(
            pool->driver, error, "querying the pool's release threshold");
    }
    *bytes_out = threshold;
    return RMM_OK;
}
