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

rmm_status_t rmm__pool_open_stream(const rmm_resource_t *mr, rmm_stream_t *out)
{
    rmm_driver_scope_t scope;
    rmm_status_t status = RMM_OK;
    const rmm_driver_t *driver;

    *out = RMM_STREAM_LEGACY;
    if (!is_in_stream_order(mr->upstream)) {
        return RMM_OK;
    }
    driver = rmm__driver(&status);
    if (driver != NULL) {
        status = rmm__driver_scope_enter(&scope, driver, mr->device);
    }
    if (status != RMM_OK) {
        return status;
    }
    status =
        rmm_stream_create(RMM_STREAM_NON_BLOCKING | RMM_STREAM_NEVER_CAPTURES, out);
    rmm__driver_scope_leave(&scope);
    return status;
}

void rmm__pool_close_stream(const rmm_resource_t *mr, rmm_stream_t stream)
{
    rmm_driver_scope_t scope;
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);

    if (!rmm_stream_is_default(stream) && driver != NULL &&
        rmm__driver_scope_enter(&scope, driver, mr->device) == RMM_OK) {
        (void)!rmm_stream_destroy(stream);
        rmm__driver_scope_leave(&scope);
    }
}

/* Memory of a stream-ordered upstream is ours on one stream only, until that is done. The wait is
 * for the device: functions of the program may have used another stream all the same. */
static rmm_status_t wait_until_ready(const rmm_resource_t *mr)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);

    return driver != NULL ? rmm__driver_wait_device(driver, mr->device) : status;
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

rmm_status_t rmm__pool_obtain(
    rmm_resource_t *mr, rmm_stream_t stream, uint64_t bytes, void **ptr_out)
{
    rmm_request_t request = upstream_request(stream, bytes);
    rmm_status_t status = rmm__resource_alloc(mr->upstream, &request, ptr_out);

    if (status != RMM_OK) {
        return status;
    }
    if (is_in_stream_order(mr->upstream)) {
        status = wait_until_ready(mr);
    }
    if (status != RMM_OK) {
        rmm__resource_dealloc(mr->upstream, *ptr_out, &request);
        return status;
    }
    if (rmm__annotate_is_on()) {
        rmm__annotate_chunk(mr->device, *ptr_out, bytes, is_of_cuda(mr->upstream));
    }
    return RMM_OK;
}

void rmm__pool_give_back(
    rmm_resource_t *mr, rmm_stream_t stream, void *ptr, uint64_t bytes)
{
    rmm_request_t request = upstream_request(stream, bytes);

    rmm__diag_on_gone(ptr, bytes);
    rmm__annotate_chunk_gone(mr->device, ptr, bytes);
    rmm__resource_dealloc(mr->upstream, ptr, &request);
}

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
