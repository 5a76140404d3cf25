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

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "log/log.h"

static void note_exit(void)
{
    atomic_store_explicit(&rmm__hip_exits, true, memory_order_relaxed);
}

/* ---- devices ---- */

static int hip_device_count(int *count)
{
    int answer;
    int error = CALL(rmm__hip.hipGetDeviceCount(&answer));

    if (error == RMM_DRIVER_OK) {
        *count = answer;
    }
    return error;
}

static int hip_device_get(int *device)
{
    int answer;
    int error = CALL(rmm__hip.hipGetDevice(&answer));

    if (error == RMM_DRIVER_OK) {
        *device = answer;
    }
    return error;
}

static int hip_device_set(int device)
{
    return CALL(rmm__hip.hipSetDevice(device));
}

static bool is_hexadecimal(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (!isxdigit((unsigned char)text[i])) {
            return false;
        }
    }
    return true;
}

/*
 * As ROCm's tools print it: the 16 bytes are the hexadecimal digits. Devices without a
 * number of their own have "XX" or zeros there, and HIP before 5.1 tells none: then the place
 * on the bus, which is unique in a machine as well.
 */
static void format_uuid(char out[48], const hip_uuid_t *uuid, const char *bus_id)
{
    static const char zeros[] = "0000000000000000";
    bool is_known = is_hexadecimal(uuid->bytes, sizeof(uuid->bytes)) &&
                    memcmp(uuid->bytes, zeros, sizeof(uuid->bytes)) != 0;

    if (is_known) {
        snprintf(out, 48, "GPU-%.16s", uuid->bytes);
        return;
    }
    snprintf(out, 48, "PCI-%.40s", bus_id);
    for (char *c = out; *c != '\0'; c++) {
        *c = *c == ':' ? '-' : *c; /* it becomes the name of a file */
    }
}

static int hip_device_info(int device, rmm_device_info_t *info)
{
    rmm_device_info_t answer = {.uuid = ""};
    hip_uuid_t uuid = {.bytes = ""};
    char name[256] = "";
    size_t bytes;
    int error = CALL(rmm__hip.hipDeviceGetName(name, (int)sizeof(name), device));

    if (error == RMM_DRIVER_OK) {
        error = CALL(rmm__hip.hipDeviceGetPCIBusId(
            answer.pci_bus_id, (int)sizeof(answer.pci_bus_id), device));
    }
    if (error == RMM_DRIVER_OK) {
        error = CALL(rmm__hip.hipDeviceTotalMem(&bytes, device));
    }
    if (error != RMM_DRIVER_OK) {
        return error;
    }
    (void)CALL_IF(UUID, rmm__hip.hipDeviceGetUuid(&uuid, device));
    format_uuid(answer.uuid, &uuid, answer.pci_bus_id);
    snprintf(
        answer.name, sizeof(answer.name), "%.63s", name[0] != '\0' ? name : "AMD GPU");
    answer.capacity_bytes = bytes;
    *info = answer;
    return RMM_DRIVER_OK;
}

/* Attributes that older versions do not know are those of what they cannot do. */
static int
ask_attribute(hip_attribute_t attribute, bool may_be_unknown, int device, int *value)
{
    int answer;
    int error = CALL(rmm__hip.hipDeviceGetAttribute(&answer, attribute, device));

    if (error == RMM_DRIVER_INVALID_VALUE && may_be_unknown) {
        error = RMM_DRIVER_OK;
        answer = 0;
    }
    if (error == RMM_DRIVER_OK) {
        *value = answer;
    }
    return error;
}

static int
hip_device_attribute(rmm_driver_attribute_t attribute, int device, int *value)
{
    bool has_pools = rmm__hip.has[HIP_GROUP_POOLS];
    bool is_missing = false;

    if (rmm__hip_is_exiting()) {
        return RMM_DRIVER_UNLOADING;
    }
    if (device < 0 || device >= rmm__hip.device_count) { /* HIP: an invalid value */
        return RMM_DRIVER_INVALID_DEVICE;
    }
    switch (attribute) {
    case RMM_ATTRIBUTE_MANAGED_MEMORY:
        return ask_attribute(HIP_ATTRIBUTE_MANAGED_MEMORY, false, device, value);
    case RMM_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
        return ask_attribute(
            HIP_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, false, device, value);
    case RMM_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
        return ask_attribute(
            HIP_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, false, device, value);
    case RMM_ATTRIBUTE_VIRTUAL_MEMORY:
        is_missing = !rmm__hip.has[HIP_GROUP_VIRTUAL];
        break;
    case RMM_ATTRIBUTE_MEMORY_POOLS:
    case RMM_ATTRIBUTE_MEMORY_POOL_HANDLE_TYPES:
        is_missing = !has_pools;
        break;
    }
    if (is_missing) {
        *value = 0;
        return RMM_DRIVER_OK;
    }
    return ask_attribute(
        attribute == RMM_ATTRIBUTE_VIRTUAL_MEMORY ? HIP_ATTRIBUTE_VIRTUAL_MEMORY
        : attribute == RMM_ATTRIBUTE_MEMORY_POOLS
            ? HIP_ATTRIBUTE_MEMORY_POOLS
            : HIP_ATTRIBUTE_MEMORY_POOL_HANDLE_TYPES,
        true, device, value);
}

static int hip_device_synchronize(void)
{
    return CALL(rmm__hip.hipDeviceSynchronize());
}

/* As with CUDA, a device is a peer of itself. */
static int hip_peer_can_access(int device, int peer, int *can)
{
    int answer;
    int error = CALL(rmm__hip.hipDeviceCanAccessPeer(&answer, device, peer));

    if (error == RMM_DRIVER_OK) {
        *can = answer != 0 || device == peer;
    }
    return error;
}

/* ---- memory ---- */

static int hip_memory_info(uint64_t *free_bytes, uint64_t *total_bytes)
{
    size_t free_now;
    size_t total;
    int error = CALL(rmm__hip.hipMemGetInfo(&free_now, &total));

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
    int error = CALL(rmm__hip.hipMalloc(&fresh, bytes));

    return fresh_memory(error, fresh, ptr);
}

static int hip_mem_free(void *ptr)
{
    return CALL(rmm__hip.hipFree(ptr));
}

static int hip_managed_alloc(void **ptr, size_t bytes)
{
    void *fresh = NULL;
    int error =
        CALL(rmm__hip.hipMallocManaged(&fresh, bytes, HIP_MANAGED_ATTACH_GLOBAL));

    return fresh_memory(error, fresh, ptr);
}

static int hip_host_alloc(void **ptr, size_t bytes)
{
    void *fresh = NULL;
    int error = CALL(rmm__hip.hipHostMalloc(&fresh, bytes, HIP_HOST_PORTABLE));

    return fresh_memory(error, fresh, ptr);
}

static int hip_host_free(void *ptr)
{
    return CALL(rmm__hip.hipHostFree(ptr));
}

/* ---- streams and events ---- */

static int hip_stream_create(uint32_t flags, rmm_stream_t *stream)
{
    hip_stream_t fresh = NULL;
    int error = CALL(rmm__hip.hipStreamCreateWithFlags(&fresh, flags));

    if (error == RMM_DRIVER_OK) {
        *stream = (rmm_stream_t)(void *)fresh;
    }
    return error;
}

static int hip_stream_destroy(rmm_stream_t stream)
{
    /* before another stream gets the handle */
    rmm__hip_stream_forget(rmm__hip_stream(stream));
    return CALL(rmm__hip.hipStreamDestroy(rmm__hip_stream(stream)));
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
    return CALL(rmm__hip.hipStreamSynchronize(rmm__hip_stream(stream)));
}

static int hip_stream_wait_event(rmm_stream_t stream, rmm_driver_event_t event)
{
    return CALL(
        rmm__hip.hipStreamWaitEvent(rmm__hip_stream(stream), rmm__hip_event(event), 0));
}

static int hip_event_create(rmm_driver_event_t *event)
{
    hip_event_t fresh = NULL;
    int error =
        CALL(rmm__hip.hipEventCreateWithFlags(&fresh, HIP_EVENT_DISABLE_TIMING));

    if (error == RMM_DRIVER_OK) {
        *event = (rmm_driver_event_t)(void *)fresh;
    }
    return error;
}

static int hip_event_destroy(rmm_driver_event_t event)
{
    return CALL(rmm__hip.hipEventDestroy(rmm__hip_event(event)));
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
    return CALL(rmm__hip.hipEventSynchronize(rmm__hip_event(event)));
}

static const char *hip_error_name(int error)
{
    return rmm__hip.hipGetErrorName((hip_error_t)error);
}

static const char *hip_error_text(int error)
{
    return rmm__hip.hipGetErrorString((hip_error_t)error);
}

static const rmm_driver_t hip_table = {
    .name = "hip",
    .device_count = hip_device_count,
    .device_get = hip_device_get,
    .device_set = hip_device_set,
    .device_info = hip_device_info,
    .device_attribute = hip_device_attribute,
    .device_synchronize = hip_device_synchronize,
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
    .virtual_granularity = rmm__hip_virtual_granularity,
    .address_reserve = rmm__hip_address_reserve,
    .address_free = rmm__hip_address_free,
    .physical_create = rmm__hip_physical_create,
    .physical_release = rmm__hip_physical_release,
    .address_map = rmm__hip_address_map,
    .address_unmap = rmm__hip_address_unmap,
    .address_access = rmm__hip_address_access,
    .peer_can_access = hip_peer_can_access,
    .stream_create = hip_stream_create,
    .stream_destroy = hip_stream_destroy,
    .stream_flags = hip_stream_flags,
    .stream_synchronize = hip_stream_synchronize,
    .stream_wait_event = hip_stream_wait_event,
    .stream_key = rmm__hip_stream_key,
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
        "no usable AMD GPU: %s (HIP %s) answers hipGetDeviceCount with %s (%s, %d); "
        "check "
        "that /dev/kfd is there and may be opened, and HIP_VISIBLE_DEVICES",
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
        status = rmm__error(RMM_ERR_OUT_OF_HOST_MEMORY, "no room for an exit handler");
    }
    if (status != RMM_OK) {
        *status_out = status;
        return NULL;
    }
    return &hip_table;
}

void rmm__driver_hip_announce(void)
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
