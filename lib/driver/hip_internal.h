/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files over HIP.
 *
 *   hip_types.h         HIP's types and values, declared here
 *   hip_functions.def   the functions that are called
 *   hip_library.c       libamdhip64: finding it, and the functions in it
 *   hip.c               memory, streams, events, the table, opening
 *   hip_device.c        devices: which there are, and what they can do
 *   hip_streams.c       which stream a handle names; captures
 *   hip_memory.c        copies, where managed memory lies, memory pools, virtual memory
 */
#ifndef RMM_DRIVER_HIP_INTERNAL_H
#define RMM_DRIVER_HIP_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"
#include "driver/hip_types.h"

/* Functions of HIP that may be missing, in groups, and how a message calls each group. */
#define HIP_GROUP_MAP(X)                                                               \
    X(UUID, "uuids of devices")                                                        \
    X(POOLS, "memory pools")                                                           \
    X(VIRTUAL, "virtual memory")                                                       \
    X(USER_OBJECTS, "user objects of graphs")                                          \
    X(STREAM_IDS, "ids of streams")

typedef enum hip_group {
    HIP_GROUP_MUST, /* is complete once the driver is open */
#define X(group, text) HIP_GROUP_##group,
    HIP_GROUP_MAP(X)
#undef X
        HIP_GROUP_COUNT
} hip_group_t;

/* Filled by rmm__hip_load(), before the table is handed out; constant after that. */
typedef struct hip_library {
    const char *file; /* that was loaded: "libamdhip64.so.6" */
    int version;      /* HIP_VERSION of the runtime; 0: unknown */
    int device_count;
    bool has[HIP_GROUP_COUNT]; /* all functions of the group */
#define HIP(need, result, name, parameters) result(*name) parameters;
#include "driver/hip_functions.def"
#undef HIP
} hip_library_t;

extern hip_library_t rmm__hip;

/* Load libamdhip64 and find its functions. RMM_OK, or RMM_ERR_NO_DEVICE with the last error
 * set: what was tried and what is missing. */
rmm_status_t rmm__hip_load(void);

/* "6.2.41134", of rmm__hip.version. */
#define HIP_VERSION_BYTES 40
void rmm__hip_format_version(char text[HIP_VERSION_BYTES]);

/* As rmm__cuda_exits (cuda_internal.h): the process exits, and HIP with it. */
extern atomic_bool rmm__hip_exits;

static inline bool rmm__hip_is_exiting(void)
{
    return atomic_load_explicit(&rmm__hip_exits, memory_order_relaxed);
}

/* A failed call's code, with the runtime's last error cleared. */
static inline int rmm__hip_cleared(hip_error_t error)
{
    if (error != RMM_DRIVER_OK) {
        (void)rmm__hip.hipGetLastError();
    }
    return (int)error;
}

/* CALL(rmm__hip.hipFunction(...)): the call, unless the process exits. */
#define CALL(call)                                                                     \
    (rmm__hip_is_exiting() ? RMM_DRIVER_UNLOADING : rmm__hip_cleared(call))

/* The same for a function of a group, which may be missing. */
#define CALL_IF(group, call)                                                           \
    (rmm__hip.has[HIP_GROUP_##group] ? RMM_DRIVER_WAITS(CALL(call))                    \
                                     : RMM_DRIVER_NOT_SUPPORTED)

/* HIP before 6.2 has no handle for the legacy default stream but NULL. */
static inline hip_stream_t rmm__hip_stream(rmm_stream_t stream)
{
    return rmm_stream_is_default(stream) ? NULL : (hip_stream_t)(void *)stream;
}

static inline hip_event_t rmm__hip_event(rmm_driver_event_t event)
{
    return (hip_event_t)(void *)event;
}

/* ---- hip_device.c ---- */

int rmm__hip_device_count(int *count);
int rmm__hip_device_get(int *device);
int rmm__hip_device_set(int device);
int rmm__hip_device_info(int device, rmm_device_info_t *info);
int rmm__hip_device_attribute(rmm_driver_attribute_t attribute, int device, int *value);
int rmm__hip_device_active(int device, int *active);
int rmm__hip_device_synchronize(void);
int rmm__hip_peer_can_access(int device, int peer, int *can);

/* ---- hip_streams.c ---- */

/* The stream of this handle is about to end by a call of the library. */
void rmm__hip_stream_forget(hip_stream_t handle);
int rmm__hip_stream_key(rmm_stream_t stream, rmm_stream_key_t *key);
int rmm__hip_legacy_is_open(int *is_open);
int rmm__hip_capture_mode_exchange(int *mode);
int rmm__hip_capture_watch(
    rmm_stream_t stream, void (*gone)(void *context), void *context);

/* ---- hip_memory.c ---- */

int rmm__hip_memcpy_async(
    void *dst, const void *src, size_t bytes, rmm_stream_t stream);
int rmm__hip_memset_async(void *dst, int value, size_t bytes, rmm_stream_t stream);
int rmm__hip_mem_prefer(void *ptr, size_t bytes, int device);
int rmm__hip_mem_prefetch(
    const void *ptr, size_t bytes, int device, rmm_stream_t stream);
int rmm__hip_mempool_create(
    uint32_t handle_types, int node, rmm_driver_mempool_t *pool);
int rmm__hip_mempool_destroy(rmm_driver_mempool_t pool);
int rmm__hip_mempool_managed(rmm_driver_mempool_t *pool);
int rmm__hip_mempool_get_threshold(rmm_driver_mempool_t pool, uint64_t *bytes);
int rmm__hip_mempool_set_threshold(rmm_driver_mempool_t pool, uint64_t bytes);
int rmm__hip_mempool_figures(
    rmm_driver_mempool_t pool, rmm_driver_mempool_figures_t *figures);
int rmm__hip_mempool_trim(rmm_driver_mempool_t pool, size_t keep_bytes);
int rmm__hip_mempool_alloc(
    rmm_driver_mempool_t pool, void **ptr, size_t bytes, rmm_stream_t stream);
int rmm__hip_mempool_free(void *ptr, rmm_stream_t stream);
int rmm__hip_mempool_access(rmm_driver_mempool_t pool, uint32_t devices);
int rmm__hip_mempool_export(
    rmm_driver_mempool_t pool, uint32_t type, rmm_driver_handle_t *handle);
int rmm__hip_mempool_export_pointer(
    const void *ptr, unsigned char data[RMM_DRIVER_HANDLE_BYTES]);
int rmm__hip_mempool_import(
    const rmm_driver_handle_t *handle, rmm_driver_mempool_t *pool);
int rmm__hip_mempool_import_pointer(
    rmm_driver_mempool_t pool, const unsigned char data[RMM_DRIVER_HANDLE_BYTES],
    void **ptr);
int rmm__hip_virtual_granularity(size_t *bytes);
int rmm__hip_address_reserve(void **ptr, size_t bytes);
int rmm__hip_address_free(void *ptr, size_t bytes);
int rmm__hip_physical_create(
    size_t bytes, uint32_t flags, rmm_driver_physical_t *physical);
/* NOT_SUPPORTED: memory is shared over CUDA only. */
int rmm__hip_physical_export(
    rmm_driver_physical_t physical, uint32_t type, rmm_driver_handle_t *handle);
int rmm__hip_physical_import(
    const rmm_driver_handle_t *handle, rmm_driver_physical_t *physical);
int rmm__hip_physical_release(rmm_driver_physical_t physical);
int rmm__hip_address_map(void *ptr, size_t bytes, rmm_driver_physical_t physical);
int rmm__hip_address_unmap(void *ptr, size_t bytes);
int rmm__hip_address_access(void *ptr, size_t bytes, uint32_t devices);

#endif /* RMM_DRIVER_HIP_INTERNAL_H */
