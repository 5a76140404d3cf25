/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated GPU: a device model that finds bugs. The table, the devices, and what
 * every call has in common. See internal.h for the other files.
 *
 * Every call through the table: the fault plan first, then the call itself, which begins
 * with rmm__sim_enter() and ends with rmm__sim_leave(). The tests' own calls
 * (api.c) go past the fault plan.
 *
 * Fork: the lock is held over it, so the child has a copy of a simulator at rest, with
 * its memory and its queued work.
 */
#include "driver/sim/internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rmm/version.h>

#include "core/error.h"
#include "core/fork.h"

static atomic_bool is_open; /* written under rmm__sim_lock */

/* ---- devices ---- */

static int sim_device_count(int *count)
{
    int error = rmm__sim_fault(SIM_FN_device_count);

    if (error == RMM_DRIVER_OK) {
        *count = rmm__sim_device_count();
    }
    return error;
}

static int sim_device_get(int *device)
{
    int error = rmm__sim_fault(SIM_FN_device_get);

    if (error == RMM_DRIVER_OK) {
        *device = rmm__sim_thread.device;
    }
    return error;
}

static int sim_device_set(int device)
{
    int error = rmm__sim_fault(SIM_FN_device_set);

    return error != RMM_DRIVER_OK ? error : rmm__sim_device_choose(device);
}

static int sim_device_info(int device, rmm_device_info_t *info)
{
    int error = rmm__sim_fault(SIM_FN_device_info);

    if (error == RMM_DRIVER_OK && (device < 0 || device >= rmm__sim_device_count())) {
        error = RMM_DRIVER_INVALID_DEVICE;
    }
    if (error == RMM_DRIVER_OK) {
        *info = (rmm_device_info_t){
            .name = "Simulated GPU", .capacity_bytes = rmm__sim_device_bytes()};
        snprintf(info->uuid, sizeof(info->uuid), "SIM-%d", device);
    }
    return error;
}

static int
sim_device_attribute(rmm_driver_attribute_t attribute, int device, int *value)
{
    int error = rmm__sim_fault(SIM_FN_device_attribute);

    if (error == RMM_DRIVER_OK && (device < 0 || device >= rmm__sim_device_count())) {
        error = RMM_DRIVER_INVALID_DEVICE;
    }
    if (error == RMM_DRIVER_OK) {
        *value = rmm__sim_attribute(attribute);
        if (attribute == RMM_ATTRIBUTE_HOST_NUMA_ID) {
            *value = *value != 0 ? device % SIM_NODES : -1;
        }
    }
    return error;
}

static int sim_device_active(int device, int *active)
{
    int error = rmm__sim_fault(SIM_FN_device_active);

    if (error == RMM_DRIVER_OK && (device < 0 || device >= rmm__sim_device_count())) {
        error = RMM_DRIVER_INVALID_DEVICE;
    }
    if (error == RMM_DRIVER_OK) {
        *active = rmm__sim_device_is_active(device);
    }
    return error;
}

static int sim_peer_can_access(int device, int peer, int *can)
{
    int error = rmm__sim_fault(SIM_FN_peer_can_access);

    if (error == RMM_DRIVER_OK && (device < 0 || device >= rmm__sim_device_count() ||
                                   peer < 0 || peer >= rmm__sim_device_count())) {
        error = RMM_DRIVER_INVALID_DEVICE;
    }
    if (error == RMM_DRIVER_OK) {
        *can = device == peer || rmm__sim_attribute(SIM_PEERS) != 0;
    }
    return error;
}

/* ---- the table: each call behind the fault plan ---- */

#define FAULTED(name, parameters, arguments)                                           \
    static int sim_##name parameters                                                   \
    {                                                                                  \
        int error = rmm__sim_fault(SIM_FN_##name);                                     \
                                                                                       \
        return error != RMM_DRIVER_OK ? error : rmm__sim_##name arguments;             \
    }

FAULTED(device_synchronize, (void), ())
FAULTED(memory_info, (uint64_t * free, uint64_t *total), (free, total))
FAULTED(mem_alloc, (void **ptr, size_t bytes), (ptr, bytes))
FAULTED(mem_free, (void *ptr), (ptr))
FAULTED(managed_alloc, (void **ptr, size_t bytes), (ptr, bytes))
FAULTED(host_alloc, (void **ptr, size_t bytes), (ptr, bytes))
FAULTED(host_free, (void *ptr), (ptr))
FAULTED(
    memcpy_async, (void *dst, const void *src, size_t bytes, rmm_stream_t stream),
    (dst, src, bytes, stream))
FAULTED(
    memset_async, (void *dst, int value, size_t bytes, rmm_stream_t stream),
    (dst, value, bytes, stream))
FAULTED(mem_prefer, (void *ptr, size_t bytes, int device), (ptr, bytes, device))
FAULTED(
    mem_prefetch, (const void *ptr, size_t bytes, int device, rmm_stream_t stream),
    (ptr, bytes, device, stream))
FAULTED(
    mempool_create, (uint32_t handle_types, int node, rmm_driver_mempool_t *pool),
    (handle_types, node, pool))
FAULTED(mempool_destroy, (rmm_driver_mempool_t pool), (pool))
FAULTED(mempool_managed, (rmm_driver_mempool_t * pool), (pool))
FAULTED(
    mempool_get_threshold, (rmm_driver_mempool_t pool, uint64_t *bytes), (pool, bytes))
FAULTED(
    mempool_set_threshold, (rmm_driver_mempool_t pool, uint64_t bytes), (pool, bytes))
FAULTED(
    mempool_figures, (rmm_driver_mempool_t pool, rmm_driver_mempool_figures_t *figures),
    (pool, figures))
FAULTED(
    mempool_trim, (rmm_driver_mempool_t pool, size_t keep_bytes), (pool, keep_bytes))
FAULTED(
    mempool_alloc,
    (rmm_driver_mempool_t pool, void **ptr, size_t bytes, rmm_stream_t stream),
    (pool, ptr, bytes, stream))
FAULTED(mempool_free, (void *ptr, rmm_stream_t stream), (ptr, stream))
FAULTED(mempool_access, (rmm_driver_mempool_t pool, uint32_t devices), (pool, devices))
FAULTED(
    mempool_export,
    (rmm_driver_mempool_t pool, uint32_t type, rmm_driver_handle_t *handle),
    (pool, type, handle))
FAULTED(
    mempool_export_pointer,
    (const void *ptr, unsigned char data[RMM_DRIVER_HANDLE_BYTES]), (ptr, data))
FAULTED(
    mempool_import, (const rmm_driver_handle_t *handle, rmm_driver_mempool_t *pool),
    (handle, pool))
FAULTED(
    mempool_import_pointer,
    (rmm_driver_mempool_t pool, const unsigned char data[RMM_DRIVER_HANDLE_BYTES],
     void **ptr),
    (pool, data, ptr))
FAULTED(virtual_granularity, (size_t * bytes), (bytes))
FAULTED(address_reserve, (void **ptr, size_t bytes), (ptr, bytes))
FAULTED(address_free, (void *ptr, size_t bytes), (ptr, bytes))
FAULTED(
    physical_create, (size_t bytes, uint32_t flags, rmm_driver_physical_t *physical),
    (bytes, flags, physical))
FAULTED(
    physical_export,
    (rmm_driver_physical_t physical, uint32_t type, rmm_driver_handle_t *handle),
    (physical, type, handle))
FAULTED(
    physical_import,
    (const rmm_driver_handle_t *handle, rmm_driver_physical_t *physical),
    (handle, physical))
FAULTED(physical_release, (rmm_driver_physical_t physical), (physical))
FAULTED(
    address_map, (void *ptr, size_t bytes, rmm_driver_physical_t physical),
    (ptr, bytes, physical))
FAULTED(address_unmap, (void *ptr, size_t bytes), (ptr, bytes))
FAULTED(
    address_access, (void *ptr, size_t bytes, uint32_t devices), (ptr, bytes, devices))
FAULTED(stream_create, (uint32_t flags, rmm_stream_t *stream), (flags, stream))
FAULTED(stream_destroy, (rmm_stream_t stream), (stream))
FAULTED(stream_flags, (rmm_stream_t stream, uint32_t *flags), (stream, flags))
FAULTED(stream_synchronize, (rmm_stream_t stream), (stream))
FAULTED(
    stream_wait_event, (rmm_stream_t stream, rmm_driver_event_t event), (stream, event))
FAULTED(stream_key, (rmm_stream_t stream, rmm_stream_key_t *key), (stream, key))
FAULTED(legacy_is_open, (int *open_out), (open_out))
FAULTED(event_record, (rmm_driver_event_t event, rmm_stream_t stream), (event, stream))
FAULTED(event_query, (rmm_driver_event_t event), (event))
FAULTED(event_synchronize, (rmm_driver_event_t event), (event))
FAULTED(capture_mode_exchange, (int *mode), (mode))

#undef FAULTED

/* rmm__sim_library_events() */
static _Atomic(uint64_t) library_events;

static int sim_event_create(rmm_driver_event_t *event)
{
    int error = rmm__sim_fault(SIM_FN_event_create);

    error = error == RMM_DRIVER_OK ? rmm__sim_event_create(event) : error;
    if (error == RMM_DRIVER_OK) {
        atomic_fetch_add_explicit(&library_events, 1, memory_order_relaxed);
    }
    return error;
}

static int sim_event_destroy(rmm_driver_event_t event)
{
    int error = rmm__sim_fault(SIM_FN_event_destroy);

    atomic_fetch_sub_explicit(&library_events, 1, memory_order_relaxed);
    return error == RMM_DRIVER_OK ? rmm__sim_event_destroy(event) : error;
}

uint64_t rmm__sim_library_events(void)
{
    return atomic_load_explicit(&library_events, memory_order_relaxed);
}

/* `gone` is called after a failure as well. */
static int
sim_capture_watch(rmm_stream_t stream, void (*gone)(void *context), void *context)
{
    int error = rmm__sim_fault(SIM_FN_capture_watch);

    if (error == RMM_DRIVER_OK) {
        return rmm__sim_capture_watch(stream, gone, context);
    }
    gone(context);
    return error;
}

static const rmm_driver_t sim_driver = {
    .name = "sim",
    .opened = rmm__sim_inject,
#define X(name) .name = sim_##name,
    SIM_FUNCTION_MAP(X)
#undef X
        .error_name = rmm__sim_error_name,
    .error_text = rmm__sim_error_text,
    .observe = rmm__sim_observe,
    .queue = rmm__sim_queue_work};

/* ---- opening ---- */

/* Not when this library is loaded, as the parts of librmm-c join: its handlers run before those of
 * librmm-c, which may hold the lock of driver.c and wait here for this one. */
static void join_forks(void)
{
    rmm__sim_fault_join_forks();
    rmm__fork_join(RMM_FORK_SIM, &rmm__sim_lock, rmm__sim_violations_in_child);
}

static rmm_status_t open_locked(void)
{
    sim_config_t config;
    rmm_status_t status = rmm__sim_env_read(&config);
    int failed;

    if (status != RMM_OK) {
        return status;
    }
    rmm__sim_configure(&config);
    failed = rmm__sim_streams_open();
    if (failed == 0 && !rmm__fork_is_watched()) {
        failed = ENOMEM;
    }
    if (failed != 0) {
        return rmm__error(
            RMM_ERR_OUT_OF_HOST_MEMORY, "simulated GPU: %s", strerror(failed));
    }
    rmm__sim_violations_open(config.on_violation);
    rmm__sim_reseed_locked(config.seed);
    join_forks();
    /* release: pairs with rmm__sim_is_open() */
    atomic_store_explicit(&is_open, true, memory_order_release);
    return RMM_OK;
}

bool rmm__sim_is_open(void)
{
    /* acquire: what open_locked() has set up */
    return atomic_load_explicit(&is_open, memory_order_acquire);
}

const rmm_driver_t *rmm__sim_open(rmm_status_t *status_out)
{
    rmm_status_t status = RMM_OK;

    rmm__mutex_lock(&rmm__sim_lock);
    if (!rmm__sim_is_open()) {
        status = open_locked();
    }
    rmm__mutex_unlock(&rmm__sim_lock);
    *status_out = status;
    return status == RMM_OK ? &sim_driver : NULL;
}

RMM_API const rmm_driver_t *rmm_sim_driver(
    const char *version, rmm_status_t *status_out, char *message, size_t message_bytes)
{
    const rmm_driver_t *driver;

    if (strcmp(version, rmm_version_string()) != 0) {
        *status_out = RMM_ERR_UNSUPPORTED;
        snprintf(
            message, message_bytes,
            "librmm-sim is of version %s, librmm-c of version %s", rmm_version_string(),
            version);
        return NULL;
    }
    driver = rmm__sim_open(status_out);
    if (driver == NULL) {
        snprintf(message, message_bytes, "%s", rmm__error_message());
    }
    return driver;
}
