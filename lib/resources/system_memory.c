/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's pages for the device: see system_memory.h.
 */
#include "resources/system_memory.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/assert.h"
#include "core/host_memory.h"
#include "log/log.h"

rmm_status_t rmm__system_no_memory(const rmm_request_t *request)
{
    return rmm__error(
        RMM_ERR_OUT_OF_MEMORY,
        "no system memory for %zu bytes aligned to %zu: the process or the machine is "
        "at its limit",
        request->bytes, request->align);
}

rmm_status_t rmm__system_heap_alloc(const rmm_request_t *request, void **ptr_out)
{
    if (rmm__host_memory_should_fail() ||
        posix_memalign(ptr_out, request->align, request->bytes) != 0) {
        return rmm__system_no_memory(request);
    }
    return RMM_OK;
}

/* --- waiting before a free ---------------------------------------------------------- */

/* A stream that captures cannot be waited for: what it has queued runs with the graph,
 * whose memory is the program's to keep. */
static bool wait_for_stream(const rmm_driver_t *driver, rmm_stream_t stream)
{
    rmm_stream_key_t key;

    return driver->stream_key(stream, &key) == RMM_DRIVER_OK && key.capture_id == 0 &&
           rmm__driver_wait_stream(driver, stream) == RMM_DRIVER_OK;
}

bool rmm__system_wait(
    const rmm_system_memory_t *self, const void *ptr, const rmm_request_t *request)
{
    int device = self->tracked.base.device;
    bool waited = rmm_stream_is_default(request->stream)
                      ? rmm__driver_wait_default_stream(device) == RMM_OK
                      : wait_for_stream(self->driver, request->stream);

    if (waited || rmm__driver_wait_device(self->driver, device) == RMM_OK) {
        return true;
    }
    if (rmm_last_cuda_error() != RMM_DRIVER_UNLOADING) { /* at exit that is harmless */
        rmm__log_error(
            "device %d: %p bytes %zu stay allocated, because waiting for their last "
            "use failed: %s",
            device, ptr, request->bytes, rmm_last_error_message());
    }
    return false;
}

void rmm__system_destroy(rmm_resource_t *mr)
{
    rmm_tracked_t *tracked = rmm__tracked_from_base(mr);

    /* what is still out may be in use on any stream */
    if (tracked->blocks.count != 0) {
        (void)rmm__driver_wait_all_devices(
            rmm__system_from_tracked(tracked)->driver, mr->device);
    }
    rmm__tracked_destroy(mr);
}

/* --- creation ----------------------------------------------------------------------- */

static rmm_status_t check_device(const rmm_driver_t *driver, int device)
{
    rmm_status_t status = rmm__driver_require(
        driver, RMM_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, device,
        "cannot use the host's pageable memory (cudaDevAttrPageableMemoryAccess is "
        "0): it needs a kernel and driver with HMM, or a machine with ATS; use the "
        "managed or the pinned resource");

    return status == RMM_OK && device >= (int)RMM_SEGMENT_DEVICES
               ? rmm__error(
                     RMM_ERR_UNSUPPORTED, "device %d: only %u devices are supported",
                     device, RMM_SEGMENT_DEVICES)
               : status;
}

rmm_status_t rmm__system_create(const rmm_system_plan_t *plan, rmm_resource_t **out)
{
    rmm_system_memory_t model = {
        .tracked = {.source = plan->source, .instance_key = plan->headroom_bytes},
        .headroom_bytes = plan->headroom_bytes,
        .page_bytes = (size_t)sysconf(_SC_PAGESIZE)};
    rmm_resource_desc_t desc = {
        .ops = plan->ops,
        .name = plan->name,
        .properties = RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE};
    rmm_status_t status = rmm__driver_here(&model.driver, &desc.device);

    if (status == RMM_OK) {
        status = check_device(model.driver, desc.device);
    }
    return status == RMM_OK ? rmm__tracked_get(
                                  &plan->instances[desc.device], &model.tracked,
                                  sizeof(model), &desc, out)
                            : status;
}
