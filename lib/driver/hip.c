/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver table over HIP, AMD's runtime, which has nearly CUDA's functions by other
 * names. What differs, and what that means for the library: docs/decisions/0021.
 *
 * Never run on AMD hardware so far: the tests run it over tests/hip, which has HIP's
 * functions on the simulated GPU.
 *
 * Every failure clears HIP's last error, as cuda.c does. HIP before 7.0 also forgets it in
 * each call that succeeds, which the library cannot prevent.
 */
#include "driver/hip_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "log/log.h"

static void note_exit(void)
{
    atomic_store_explicit(&rmm__hip_exits, true, memory_order_relaxed);
}

/* ---- memory ---- */

static int hip_memory_info(uint64_t *free_bytes, uint64_t *total_bytes)
{
    size_t free_now;
    size_t total;
    int error = RMM_DRIVER_WAITS(CALL(rmm__hip.hipMemGetInfo(&free_now, &total)));

    if (error == RMM_DRIVER_OK) {
        *free_bytes = free_now;
        *total_bytes = total;
    }
    return error;
}

/* HIP writes NULL when it fails. */
static int fresh_memory(int error, void *fresh, void **ptr)
{
    if (error == RMM_DRIVER_OK) {
        *ptr = fresh;
    }
    return error;
}

static int hip_mem_alloc(void **ptr, size_t bytes)
{
    void *fresh = NULL;
    int error = RMM_DRIVER_WAITS(CALL(rmm__hip.hipMalloc(&fresh, bytes)));

    return fresh_memory(error, fresh, ptr);
}

static int hip_mem_free(void *ptr)
{
    return RMM_DRIVER_WAITS(CALL(rmm__hip.hipFree(ptr)));
}

static int hip_managed_alloc(void **ptr, size_t bytes)
{
    void *fresh = NULL;
    int error = RMM_DRIVER_WAITS(
        CALL(rmm__hip.hipMallocManaged(&fresh, bytes, HIP_MANAGED_ATTACH_GLOBAL)));

    return fresh_memory(error, fresh, ptr);
}

static int hip_host_alloc(void **ptr, size_t bytes)
{
    void *fresh = NULL;
    int error = RMM_DRIVER_WAITS(
        CALL(rmm__hip.hipHostMalloc(&fresh, bytes, HIP_HOST_PORTABLE)));

    return fresh_memory(error, fresh, ptr);
}

static int hip_host_free(void *ptr)
{
    return RMM_DRIVER_WAITS(CALL(rmm__hip.hipHostFree(ptr)));
}

/* ---- streams and events ---- */

static int hip_stream_create(uint32_t flags, rmm_stream_t *stream)
{
    hip_stream_t fresh = NULL;
    int error =
        RMM_DRIVER_WAITS(CALL(rmm__hip.hipStreamCreateWithFlags(&fresh, flags)));

    if (error == RMM_DRIVER_OK) {
        *stream = (rmm_stream_t)(void *)fresh;
    }
    return error;
}

static int hip_stream_destroy(rmm_stream_t stream)
{
    /* before another stream gets the handle */
    rmm__hip_stream_forget(rmm__hip_stream(stream));
    return RMM_DRIVER_WAITS(CALL(rmm__hip.hipStreamDestroy(rmm__hip_stream(stream))));
}

/* HIP refuses to tell those of the legacy default stream, which has none. */
static int hip_stream_flags(rmm_stream_t stream, uint32_t *flags)
{
    unsigned answer = 0;
    int error = RMM_DRIVER_OK;

    if (rmm__hip_is_exiting()) {
        return RMM_DRIVER_UNLOADING;
    }
    if (!rmm_stream_is_default(stream)) {
        error = CALL(rmm__hip.hipStreamGetFlags(rmm__hip_stream(stream), &answer));
    }
    if (error == RMM_DRIVER_OK) {
        *flags = answer;
    }
    return error;
}

static int hip_stream_synchronize(rmm_stream_t stream)
{
    return RMM_DRIVER_WAITS(
        CALL(rmm__hip.hipStreamSynchronize(rmm__hip_stream(stream))));
}

static int hip_stream_wait_event(rmm_stream_t stream, rmm_driver_event_t event)
{
    return CALL(
        rmm__hip.hipStreamWaitEvent(rmm__hip_stream(stream), rmm__hip_event(event), 0));
}

static int hip_event_create(rmm_driver_event_t *event)
{
    hip_event_t fresh = NULL;
    int error = RMM_DRIVER_WAITS(
        CALL(rmm__hip.hipEventCreateWithFlags(&fresh, HIP_EVENT_DISABLE_TIMING)));

    if (error == RMM_DRIVER_OK) {
        *event = (rmm_driver_event_t)(void *)fresh;
    }
    return error;
}

static int hip_event_destroy(rmm_driver_event_t event)
{
    return RMM_DRIVER_WAITS(CALL(rmm__hip.hipEventDestroy(rmm__hip_event(event))));
}

static int hip_event_record(rmm_driver_event_t event, rmm_stream_t stream)
{
    return CALL(
        rmm__hip.hipEventRecord(rmm__hip_event(event), rmm__hip_stream(stream)));
}

/* "Not ready" is no failure. Some versions keep it as the last error, over the program's own;
 * it is cleared there only. */
static int hip_event_query(rmm_driver_event_t event)
{
    hip_error_t error;

    if (rmm__hip_is_exiting()) {
        return RMM_DRIVER_UNLOADING;
    }
    error = rmm__hip.hipEventQuery(rmm__hip_event(event));
    if (error == RMM_DRIVER_NOT_READY &&
        rmm__hip.hipPeekAtLastError() != RMM_DRIVER_NOT_READY) {
        return RMM_DRIVER_NOT_READY;
    }
    return rmm__hip_cleared(error);
}

static int hip_event_synchronize(rmm_driver_event_t event)
{
    return RMM_DRIVER_WAITS(CALL(rmm__hip.hipEventSynchronize(rmm__hip_event(event))));
}

static const char *hip_error_name(int error)
{
    return rmm__hip.hipGetErrorName((hip_error_t)error);
}

static const char *hip_error_text(int error)
{
    return rmm__hip.hipGetErrorString((hip_error_t)error);
}

/* Logs which HIP was found and what it lacks. */
static void log_version(void)
{
    static const char *const texts[] = {
        "",
#define X(group, text) text,
        HIP_GROUP_MAP(X)
#undef X
    };
    char version[HIP_VERSION_BYTES];
    char missing[160] = "";

    for (int i = HIP_GROUP_MUST + 1; i < HIP_GROUP_COUNT; i++) {
        size_t length = strlen(missing);

        if (!rmm__hip.has[i]) {
            snprintf(
                missing + length, sizeof(missing) - length, "%s%s",
                length == 0 ? "; it has no " : ", no ", texts[i]);
        }
    }
    rmm__hip_format_version(version);
    rmm__log_info(
        "driver hip: %s, HIP %s, %d devices%s; this driver of rmm-c has not been run "
        "on "
        "AMD hardware yet",
        rmm__hip.file, version, rmm__hip.device_count, missing);
}

static const rmm_driver_t hip_table = {
    .name = "hip",
    .opened = log_version,
    .device_count = rmm__hip_device_count,
    .device_get = rmm__hip_device_get,
    .device_set = rmm__hip_device_set,
    .device_info = rmm__hip_device_info,
    .device_attribute = rmm__hip_device_attribute,
    .device_active = rmm__hip_device_active,
    .device_synchronize = rmm__hip_device_synchronize,
    .memory_info = hip_memory_info,
    .mem_alloc = hip_mem_alloc,
    .mem_free = hip_mem_free,
    .managed_alloc = hip_managed_alloc,
    .host_alloc = hip_host_alloc,
    .host_free = hip_host_free,
    .memcpy_async = rmm__hip_memcpy_async,
    .memset_async = rmm__hip_memset_async,
    .mem_prefer = rmm__hip_mem_prefer,
    .mem_prefetch = rmm__hip_mem_prefetch,
    .mempool_create = rmm__hip_mempool_create,
    .mempool_destroy = rmm__hip_mempool_destroy,
    .mempool_managed = rmm__hip_mempool_managed,
    .mempool_get_threshold = rmm__hip_mempool_get_threshold,
    .mempool_set_threshold = rmm__hip_mempool_set_threshold,
    .mempool_figures = rmm__hip_mempool_figures,
    .mempool_trim = rmm__hip_mempool_trim,
    .mempool_alloc = rmm__hip_mempool_alloc,
    .mempool_free = rmm__hip_mempool_free,
    .mempool_access = rmm__hip_mempool_access,
    .mempool_export = rmm__hip_mempool_export,
    .mempool_export_pointer = rmm__hip_mempool_export_pointer,
    .mempool_import = rmm__hip_mempool_import,
    .mempool_import_pointer = rmm__hip_mempool_import_pointer,
    .virtual_granularity = rmm__hip_virtual_granularity,
    .address_reserve = rmm__hip_address_reserve,
    .address_free = rmm__hip_address_free,
    .physical_create = rmm__hip_physical_create,
    .physical_export = rmm__hip_physical_export,
    .physical_import = rmm__hip_physical_import,
    .physical_release = rmm__hip_physical_release,
    .address_map = rmm__hip_address_map,
    .address_unmap = rmm__hip_address_unmap,
    .address_access = rmm__hip_address_access,
    .peer_can_access = rmm__hip_peer_can_access,
    .stream_create = hip_stream_create,
    .stream_destroy = hip_stream_destroy,
    .stream_flags = hip_stream_flags,
    .stream_synchronize = hip_stream_synchronize,
    .stream_wait_event = hip_stream_wait_event,
    .stream_key = rmm__hip_stream_key,
    .legacy_is_open = rmm__hip_legacy_is_open,
    .event_create = hip_event_create,
    .event_destroy = hip_event_destroy,
    .event_record = hip_event_record,
    .event_query = hip_event_query,
    .event_synchronize = hip_event_synchronize,
    .capture_mode_exchange = rmm__hip_capture_mode_exchange,
    .capture_watch = rmm__hip_capture_watch,
    .error_name = hip_error_name,
    .error_text = hip_error_text,
    .observe = NULL,
    .queue = NULL,
};

/* ---- opening ---- */

static rmm_status_t find_device(void)
{
    char version[HIP_VERSION_BYTES];
    int error = rmm__hip_cleared(rmm__hip.hipGetDeviceCount(&rmm__hip.device_count));

    if (error == RMM_DRIVER_OK && rmm__hip.device_count <= 0) {
        error = RMM_DRIVER_NO_DEVICE;
    }
    if (error == RMM_DRIVER_OK) {
        return RMM_OK;
    }
    rmm__hip_format_version(version);
    return rmm__error_cuda(
        RMM_ERR_NO_DEVICE, error,
        "no usable AMD GPU: hipGetDeviceCount of %s (HIP %s) failed: %s (%s, %d); "
        "check HIP_VISIBLE_DEVICES, and that /dev/kfd exists and can be opened",
        rmm__hip.file, version, hip_error_text(error), hip_error_name(error), error);
}

const rmm_driver_t *rmm__driver_hip_open(rmm_status_t *status_out)
{
    rmm_status_t status = rmm__hip_load();

    if (status == RMM_OK) {
        status = find_device();
    }
    /* behind HIP's own handlers, which came when it was loaded: called before them */
    if (status == RMM_OK && atexit(note_exit) != 0) {
        status = rmm__error(
            RMM_ERR_OUT_OF_HOST_MEMORY,
            "cannot register an exit handler: no host memory");
    }
    if (status != RMM_OK) {
        *status_out = status;
        return NULL;
    }
    return &hip_table;
}
