/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies, where managed memory lies, HIP's memory pools, and virtual memory.
 *
 * Memory pools came with HIP 5.1. Virtual memory is used from 5.3 on: the attribute that
 * says whether a device has it came together with the layout of hip_allocation_t, and
 * hip_device_attribute() returns 0 without it.
 */
#include "driver/hip_internal.h"

int rmm__hip_memcpy_async(void *dst, const void *src, size_t bytes, rmm_stream_t stream)
{
    return RMM_DRIVER_WAITS(CALL(rmm__hip.hipMemcpyAsync(
        dst, src, bytes, HIP_COPY_DEFAULT, rmm__hip_stream(stream))));
}

int rmm__hip_memset_async(void *dst, int value, size_t bytes, rmm_stream_t stream)
{
    return CALL(rmm__hip.hipMemsetAsync(dst, value, bytes, rmm__hip_stream(stream)));
}

/* The host is device -1 for HIP, as it is in the table. */
int rmm__hip_mem_prefer(void *ptr, size_t bytes, int device)
{
    return RMM_DRIVER_WAITS(
        CALL(rmm__hip.hipMemAdvise(ptr, bytes, HIP_ADVICE_PREFERRED_LOCATION, device)));
}

int rmm__hip_mem_prefetch(
    const void *ptr, size_t bytes, int device, rmm_stream_t stream)
{
    return RMM_DRIVER_WAITS(CALL(
        rmm__hip.hipMemPrefetchAsync(ptr, bytes, device, rmm__hip_stream(stream))));
}

/* ---- pools ---- */

static size_t
describe_access(uint32_t devices, hip_access_t access[RMM_DRIVER_SET_DEVICES])
{
    size_t count = 0;

    for (int device = 0; device < RMM_DRIVER_SET_DEVICES; device++) {
        if ((devices & RMM_DRIVER_DEVICE(device)) != 0) {
            access[count++] = (hip_access_t){
                .location = {.type = HIP_LOCATION_DEVICE, .id = device},
                .flags = HIP_ACCESS_READ_WRITE};
        }
    }
    return count;
}

static hip_pool_t native_pool(rmm_driver_mempool_t pool)
{
    return (hip_pool_t)(void *)pool;
}

/* Creates pools of a device only: HIP has none of the host's memory. */
int rmm__hip_mempool_create(uint32_t handle_types, int node, rmm_driver_mempool_t *pool)
{
    hip_pool_properties_t properties = {
        .allocType = HIP_ALLOCATION_PINNED,
        .handleTypes = handle_types,
        .location = {.type = HIP_LOCATION_DEVICE}};
    hip_pool_t fresh = NULL;
    int error = CALL(rmm__hip.hipGetDevice(&properties.location.id));

    if (error == RMM_DRIVER_OK && node != RMM_DRIVER_ON_DEVICE) {
        error = RMM_DRIVER_NOT_SUPPORTED;
    }
    if (error == RMM_DRIVER_OK) {
        error = CALL_IF(POOLS, rmm__hip.hipMemPoolCreate(&fresh, &properties));
    }
    if (error == RMM_DRIVER_OK) {
        *pool = (rmm_driver_mempool_t)(void *)fresh;
    }
    return error;
}

int rmm__hip_mempool_destroy(rmm_driver_mempool_t pool)
{
    return CALL_IF(POOLS, rmm__hip.hipMemPoolDestroy(native_pool(pool)));
}

/* HIP has no pools of managed memory. */
int rmm__hip_mempool_managed(rmm_driver_mempool_t *pool)
{
    (void)pool;
    return rmm__hip_is_exiting() ? RMM_DRIVER_UNLOADING : RMM_DRIVER_NOT_SUPPORTED;
}

static int
get_attribute(rmm_driver_mempool_t pool, hip_pool_attribute_t attribute, uint64_t *out)
{
    uint64_t value = 0;
    int error = CALL_IF(
        POOLS, rmm__hip.hipMemPoolGetAttribute(native_pool(pool), attribute, &value));

    if (error == RMM_DRIVER_OK) {
        *out = value;
    }
    return error;
}

int rmm__hip_mempool_get_threshold(rmm_driver_mempool_t pool, uint64_t *bytes)
{
    return get_attribute(pool, HIP_POOL_RELEASE_THRESHOLD, bytes);
}

int rmm__hip_mempool_set_threshold(rmm_driver_mempool_t pool, uint64_t bytes)
{
    uint64_t value = bytes;

    return CALL_IF(
        POOLS, rmm__hip.hipMemPoolSetAttribute(
                   native_pool(pool), HIP_POOL_RELEASE_THRESHOLD, &value));
}

int rmm__hip_mempool_figures(
    rmm_driver_mempool_t pool, rmm_driver_mempool_figures_t *figures)
{
    rmm_driver_mempool_figures_t now;
    int error = get_attribute(pool, HIP_POOL_RESERVED_BYTES, &now.reserved_bytes);

    if (error == RMM_DRIVER_OK) {
        error = get_attribute(pool, HIP_POOL_USED_BYTES, &now.used_bytes);
    }
    if (error == RMM_DRIVER_OK) {
        *figures = now;
    }
    return error;
}

int rmm__hip_mempool_trim(rmm_driver_mempool_t pool, size_t keep_bytes)
{
    return CALL_IF(POOLS, rmm__hip.hipMemPoolTrimTo(native_pool(pool), keep_bytes));
}

int rmm__hip_mempool_alloc(
    rmm_driver_mempool_t pool, void **ptr, size_t bytes, rmm_stream_t stream)
{
    void *fresh = NULL;
    int error = CALL_IF(
        POOLS, rmm__hip.hipMallocFromPoolAsync(
                   &fresh, bytes, native_pool(pool), rmm__hip_stream(stream)));

    if (error == RMM_DRIVER_OK) {
        *ptr = fresh;
    }
    return error;
}

/* HIP before 7.0 refuses to free NULL. */
int rmm__hip_mempool_free(void *ptr, rmm_stream_t stream)
{
    if (rmm__hip_is_exiting()) {
        return RMM_DRIVER_UNLOADING;
    }
    if (ptr == NULL) {
        return RMM_DRIVER_OK;
    }
    return CALL_IF(POOLS, rmm__hip.hipFreeAsync(ptr, rmm__hip_stream(stream)));
}

int rmm__hip_mempool_access(rmm_driver_mempool_t pool, uint32_t devices)
{
    hip_access_t access[RMM_DRIVER_SET_DEVICES];
    size_t count = describe_access(devices, access);

    return CALL_IF(
        POOLS, rmm__hip.hipMemPoolSetAccess(native_pool(pool), access, count));
}

/* Memory is shared over CUDA only. */
int rmm__hip_mempool_export(
    rmm_driver_mempool_t pool, uint32_t type, rmm_driver_handle_t *handle)
{
    (void)pool;
    (void)type;
    (void)handle;
    return RMM_DRIVER_NOT_SUPPORTED;
}

int rmm__hip_mempool_export_pointer(
    const void *ptr, unsigned char data[RMM_DRIVER_HANDLE_BYTES])
{
    (void)ptr;
    (void)data;
    return RMM_DRIVER_NOT_SUPPORTED;
}

int rmm__hip_mempool_import(
    const rmm_driver_handle_t *handle, rmm_driver_mempool_t *pool)
{
    (void)handle;
    (void)pool;
    return RMM_DRIVER_NOT_SUPPORTED;
}

int rmm__hip_mempool_import_pointer(
    rmm_driver_mempool_t pool, const unsigned char data[RMM_DRIVER_HANDLE_BYTES],
    void **ptr)
{
    (void)pool;
    (void)data;
    (void)ptr;
    return RMM_DRIVER_NOT_SUPPORTED;
}

/* ---- virtual memory ---- */

static int allocation_here(hip_allocation_t *properties)
{
    *properties = (hip_allocation_t){
        .type = HIP_ALLOCATION_PINNED, .location = {.type = HIP_LOCATION_DEVICE}};
    return CALL(rmm__hip.hipGetDevice(&properties->location.id));
}

int rmm__hip_virtual_granularity(size_t *bytes)
{
    hip_allocation_t properties;
    size_t answer = 0;
    int error = allocation_here(&properties);

    if (error == RMM_DRIVER_OK) {
        error = CALL_IF(
            VIRTUAL, rmm__hip.hipMemGetAllocationGranularity(
                         &answer, &properties, HIP_GRANULARITY_MINIMUM));
    }
    if (error == RMM_DRIVER_OK) {
        *bytes = answer;
    }
    return error;
}

int rmm__hip_address_reserve(void **ptr, size_t bytes)
{
    void *fresh = NULL;
    int error =
        CALL_IF(VIRTUAL, rmm__hip.hipMemAddressReserve(&fresh, bytes, 0, NULL, 0));

    if (error == RMM_DRIVER_OK) {
        *ptr = fresh;
    }
    return error;
}

int rmm__hip_address_free(void *ptr, size_t bytes)
{
    return CALL_IF(VIRTUAL, rmm__hip.hipMemAddressFree(ptr, bytes));
}

int rmm__hip_physical_create(
    size_t bytes, uint32_t flags, rmm_driver_physical_t *physical)
{
    hip_allocation_t properties;
    hip_memory_t fresh = NULL;
    int error = flags == 0 ? allocation_here(&properties) : RMM_DRIVER_NOT_SUPPORTED;

    if (error == RMM_DRIVER_OK) {
        error = CALL_IF(VIRTUAL, rmm__hip.hipMemCreate(&fresh, bytes, &properties, 0));
    }
    if (error == RMM_DRIVER_OK) {
        *physical = (rmm_driver_physical_t)(uintptr_t)fresh;
    }
    return error;
}

int rmm__hip_physical_export(
    rmm_driver_physical_t physical, uint32_t type, rmm_driver_handle_t *handle)
{
    (void)physical;
    (void)type;
    (void)handle;
    return RMM_DRIVER_NOT_SUPPORTED;
}

int rmm__hip_physical_import(
    const rmm_driver_handle_t *handle, rmm_driver_physical_t *physical)
{
    (void)handle;
    (void)physical;
    return RMM_DRIVER_NOT_SUPPORTED;
}

static hip_memory_t native_memory(rmm_driver_physical_t physical)
{
    return (hip_memory_t)(uintptr_t)physical;
}

int rmm__hip_physical_release(rmm_driver_physical_t physical)
{
    return CALL_IF(VIRTUAL, rmm__hip.hipMemRelease(native_memory(physical)));
}

int rmm__hip_address_map(void *ptr, size_t bytes, rmm_driver_physical_t physical)
{
    return CALL_IF(
        VIRTUAL, rmm__hip.hipMemMap(ptr, bytes, 0, native_memory(physical), 0));
}

int rmm__hip_address_unmap(void *ptr, size_t bytes)
{
    return CALL_IF(VIRTUAL, rmm__hip.hipMemUnmap(ptr, bytes));
}

int rmm__hip_address_access(void *ptr, size_t bytes, uint32_t devices)
{
    hip_access_t access[RMM_DRIVER_SET_DEVICES];
    size_t count = describe_access(devices, access);

    return CALL_IF(VIRTUAL, rmm__hip.hipMemSetAccess(ptr, bytes, access, count));
}
