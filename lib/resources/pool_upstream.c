/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that pools and arenas take from an upstream (pool_resource.h). Each call of upstream is
 * made without any lock.
 */
#include "resources/pool_resource.h"

#include <inttypes.h>
#include <string.h>

#include <rmm/stream.h>

#include "base/diag_attach.h"
#include "log/log.h"

static rmm_request_t upstream_request(rmm_stream_t stream, uint64_t bytes)
{
    return (rmm_request_t){
        .bytes = bytes,
        .align = RMM_ALIGN_DEFAULT,
        .stream = stream,
        .user = false, /* the pool holds it; its users are counted by the pool */
    };
}

static bool is_in_stream_order(const rmm_resource_t *upstream)
{
    return upstream != NULL &&
           !atomic_load_explicit(&upstream->ops, memory_order_relaxed)
                ->ready_on_all_streams;
}

rmm_status_t rmm__pool_open_stream(pool_resource_t *self)
{
    rmm_driver_scope_t scope;
    rmm_status_t status;

    self->upstream_stream = RMM_STREAM_LEGACY;
    if (!is_in_stream_order(self->base.upstream)) {
        return RMM_OK;
    }
    status = rmm__driver_scope_enter(&scope, self->driver, self->base.device);
    if (status == RMM_OK) {
        status = rmm_stream_create(
            RMM_STREAM_NON_BLOCKING | RMM_STREAM_NEVER_CAPTURES,
            &self->upstream_stream);
        rmm__driver_scope_leave(&scope);
    }
    return status;
}

void rmm__pool_close_stream(const pool_resource_t *self)
{
    rmm_driver_scope_t scope;

    if (!rmm_stream_is_default(self->upstream_stream) &&
        rmm__driver_scope_enter(&scope, self->driver, self->base.device) == RMM_OK) {
        (void)!rmm_stream_destroy(self->upstream_stream);
        rmm__driver_scope_leave(&scope);
    }
}

/* Is its memory, through whatever hands it on, what cudaMalloc() or cudaMallocManaged() gave? */
static bool is_of_cuda(const rmm_resource_t *mr)
{
    while (mr->upstream != NULL) {
        mr = mr->upstream;
    }
    return strcmp(rmm_resource_type(mr), "cuda") == 0 ||
           strcmp(rmm_resource_type(mr), "managed") == 0;
}

/* It comes from a function of the program, which may use the memory by itself. */
static bool is_of_program(const rmm_resource_t *mr)
{
    while (mr->upstream != NULL) {
        mr = mr->upstream;
    }
    return strcmp(rmm_resource_type(mr), "custom") == 0 ||
           strcmp(rmm_resource_type(mr), "callback") == 0;
}

static rmm_status_t obtain(void *owner, uint64_t bytes, void **ptr_out)
{
    const pool_resource_t *self = owner;
    const rmm_resource_t *mr = &self->base;
    rmm_request_t request = upstream_request(self->upstream_stream, bytes);
    rmm_status_t status = rmm__resource_alloc(mr->upstream, &request, ptr_out);

    if (status != RMM_OK) {
        return status;
    }
    if (is_in_stream_order(mr->upstream)) {
        /* it is ours on one stream only, until that is done. The wait is for the device:
         * functions of the program may have used another stream all the same */
        status = rmm__driver_wait_device(self->driver, mr->device);
    }
    if (status != RMM_OK) {
        rmm__resource_dealloc(mr->upstream, *ptr_out, &request);
        return status;
    }
    if (rmm__diag_is_attached() && !is_of_program(mr->upstream)) {
        rmm__diag_report_pool(*ptr_out, bytes);
    }
    if (rmm__annotate_is_on()) {
        rmm__annotate_chunk(mr->device, *ptr_out, bytes, is_of_cuda(mr->upstream));
    }
    return RMM_OK;
}

static void give_back(void *owner, void *ptr, uint64_t bytes)
{
    const pool_resource_t *self = owner;
    rmm_request_t request = upstream_request(self->upstream_stream, bytes);

    rmm__diag_on_gone(ptr, bytes);
    rmm__annotate_chunk_gone(self->base.device, ptr, bytes);
    rmm__resource_dealloc(self->base.upstream, ptr, &request);
}

const engine_upstream_t rmm__pool_upstream = {obtain, give_back};

void rmm__pool_leave_memory(rmm_resource_t *mr)
{
    rmm__log_error(
        "%s '%s' (%" PRIu32 "): %" PRIu64
        " bytes stay allocated: another device, which could not be waited for, may "
        "still use them",
        rmm_resource_type(mr), mr->name, mr->instance_id,
        RMM_ACCOUNTING_GET(&mr->accounting, reserved_bytes));
    (void)rmm_resource_retain(mr->upstream);
}
