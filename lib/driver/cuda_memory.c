/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies, where managed memory lies, and the driver's own memory pools, through the CUDA
 * runtime. CUDA 13 changed how a location is named and added pools of managed memory.
 */
#include "driver/cuda_internal.h"

#include <assert.h>
#include <string.h>

static_assert(cudaCpuDeviceId == RMM_DRIVER_HOST, "value of RMM_DRIVER_HOST");

/*
 * Of mapped memory and that of memory pools cudaMemcpyAsync() makes "invalid argument" where the
 * stream's device has no access to it. A copy that names both devices goes through the host
 * there. Other invalid arguments stay what they are.
 */
static int copy_between_devices(
    void *dst, const void *src, size_t bytes, rmm_stream_t stream, int refusal)
{
    struct cudaPointerAttributes to, from;

    if (CALL(cudaPointerGetAttributes(&to, dst)) != RMM_DRIVER_OK ||
        CALL(cudaPointerGetAttributes(&from, src)) != RMM_DRIVER_OK ||
        to.type != cudaMemoryTypeDevice || from.type != cudaMemoryTypeDevice ||
        to.device == from.device) {
        return refusal;
    }
    return RMM_DRIVER_WAITS(
        CALL(cudaMemcpyPeerAsync(dst, to.device, src, from.device, bytes, stream)));
}

int rmm__cuda_memcpy_async(
    void *dst, const void *src, size_t bytes, rmm_stream_t stream)
{
    int error = RMM_DRIVER_WAITS(
        CALL(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, stream)));

    return error != RMM_DRIVER_INVALID_VALUE
               ? error
               : copy_between_devices(dst, src, bytes, stream, error);
}

int rmm__cuda_memset_async(void *dst, int value, size_t bytes, rmm_stream_t stream)
{
    return CALL(cudaMemsetAsync(dst, value, bytes, stream));
}

/* ---- locations ---- */

#if CUDART_VERSION >= 13000

static struct cudaMemLocation place_of(int device)
{
    struct cudaMemLocation location = {.type = cudaMemLocationTypeDevice, .id = device};

    if (device == RMM_DRIVER_HOST) {
        location.type = cudaMemLocationTypeHost;
        location.id = 0;
    }
    return location;
}

int rmm__cuda_mem_prefer(void *ptr, size_t bytes, int device)
{
    return RMM_DRIVER_WAITS(CALL(cudaMemAdvise(
        ptr, bytes, cudaMemAdviseSetPreferredLocation, place_of(device))));
}

int rmm__cuda_mem_prefetch(
    const void *ptr, size_t bytes, int device, rmm_stream_t stream)
{
    return RMM_DRIVER_WAITS(
        CALL(cudaMemPrefetchAsync(ptr, bytes, place_of(device), 0, stream)));
}

#else

int rmm__cuda_mem_prefer(void *ptr, size_t bytes, int device)
{
    return RMM_DRIVER_WAITS(
        CALL(cudaMemAdvise(ptr, bytes, cudaMemAdviseSetPreferredLocation, device)));
}

int rmm__cuda_mem_prefetch(
    const void *ptr, size_t bytes, int device, rmm_stream_t stream)
{
    return RMM_DRIVER_WAITS(CALL(cudaMemPrefetchAsync(ptr, bytes, device, stream)));
}

#endif

/* CUDA denies that a device is a peer of itself. */
int rmm__cuda_peer_can_access(int device, int peer, int *can)
{
    int answer;
    int error = CALL(cudaDeviceCanAccessPeer(&answer, device, peer));

    if (error == RMM_DRIVER_OK) {
        *can = answer != 0 || device == peer;
    }
    return error;
}

/* ---- pools ---- */

static cudaMemPool_t native_pool(rmm_driver_mempool_t pool)
{
    return (cudaMemPool_t)(void *)pool;
}

/* cudaMemLocationType, of which the headers of CUDA 12.0 know devices only */
enum { LOCATION_HOST = 2, LOCATION_HOST_NUMA = 3 };
#if CUDART_VERSION >= 13000
static_assert((int)cudaMemLocationTypeHost == LOCATION_HOST, "value of LOCATION_HOST");
static_assert(
    (int)cudaMemLocationTypeHostNuma == LOCATION_HOST_NUMA,
    "value of LOCATION_HOST_NUMA");
#endif

#define HOST_NUMA_POOLS_SINCE 12060 /* the driver; the attribute is of 12.9 */

static bool driver_is_at_least(int version)
{
    int installed = 0;

    return CALL(cudaDriverGetVersion(&installed)) == RMM_DRIVER_OK &&
           installed >= version;
}

int rmm__cuda_host_attribute(rmm_driver_attribute_t attribute, int device, int *value)
{
    int error = rmm__cuda_driver_attribute((int)attribute, device, value);

    if (error != RMM_DRIVER_INVALID_VALUE) {
        return error;
    }
    /* the driver does not know it */
    *value = attribute == RMM_ATTRIBUTE_HOST_NUMA_ID ? -1
             : attribute == RMM_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS
                 ? driver_is_at_least(HOST_NUMA_POOLS_SINCE)
                 : 0;
    return RMM_DRIVER_OK;
}

/* Memory that the decompression engine of newer GPUs can use: an older driver refuses to
 * make a pool that asks for it. */
static int
create_decompressible(struct cudaMemPoolProps *properties, cudaMemPool_t *pool)
{
#if CUDART_VERSION >= 12080
    if (driver_is_at_least(12080)) {
        int error;

        properties->usage = cudaMemPoolCreateUsageHwDecompress;
        error = RMM_DRIVER_WAITS(CALL(cudaMemPoolCreate(pool, properties)));
        properties->usage = 0;
        return error;
    }
#else
    (void)properties;
    (void)pool;
#endif
    return RMM_DRIVER_NOT_SUPPORTED;
}

static int create_on_device(struct cudaMemPoolProps *properties, cudaMemPool_t *pool)
{
    int error = CALL(cudaGetDevice(&properties->location.id));

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    error = create_decompressible(properties, pool);
    return error == RMM_DRIVER_OK
               ? error
               : RMM_DRIVER_WAITS(CALL(cudaMemPoolCreate(pool, properties)));
}

static int
create_on_host(struct cudaMemPoolProps *properties, int node, cudaMemPool_t *pool)
{
    properties->location.type = (enum cudaMemLocationType)(
        node == RMM_DRIVER_HOST ? LOCATION_HOST : LOCATION_HOST_NUMA);
    properties->location.id = node == RMM_DRIVER_HOST ? 0 : node;
    return RMM_DRIVER_WAITS(CALL(cudaMemPoolCreate(pool, properties)));
}

int rmm__cuda_mempool_create(
    uint32_t handle_types, int node, rmm_driver_mempool_t *pool)
{
    struct cudaMemPoolProps properties = {
        .allocType = cudaMemAllocationTypePinned,
        .handleTypes = (enum cudaMemAllocationHandleType)handle_types,
        .location = {.type = cudaMemLocationTypeDevice}};
    cudaMemPool_t fresh;
    int error = node == RMM_DRIVER_ON_DEVICE
                    ? create_on_device(&properties, &fresh)
                    : create_on_host(&properties, node, &fresh);

    if (error == RMM_DRIVER_OK) {
        *pool = (rmm_driver_mempool_t)(void *)fresh;
    }
    return error;
}

int rmm__cuda_mempool_destroy(rmm_driver_mempool_t pool)
{
    return RMM_DRIVER_WAITS(CALL(cudaMemPoolDestroy(native_pool(pool))));
}

#if CUDART_VERSION >= 13000

int rmm__cuda_mempool_managed(rmm_driver_mempool_t *pool)
{
    struct cudaMemLocation location = {.type = cudaMemLocationTypeDevice};
    cudaMemPool_t found;
    int error = CALL(cudaGetDevice(&location.id));

    if (error == RMM_DRIVER_OK && !driver_is_at_least(13000)) {
        error = RMM_DRIVER_NOT_SUPPORTED;
    }
    if (error == RMM_DRIVER_OK) {
        error = CALL(
            cudaMemGetDefaultMemPool(&found, &location, cudaMemAllocationTypeManaged));
    }
    if (error == RMM_DRIVER_OK) {
        *pool = (rmm_driver_mempool_t)(void *)found;
    }
    return error;
}

#else

int rmm__cuda_mempool_managed(rmm_driver_mempool_t *pool)
{
    (void)pool;
    return rmm__cuda_is_exiting() ? RMM_DRIVER_UNLOADING : RMM_DRIVER_NOT_SUPPORTED;
}

#endif

static int
get_attribute(rmm_driver_mempool_t pool, enum cudaMemPoolAttr attribute, uint64_t *out)
{
    cuuint64_t value = 0;
    int error = CALL(cudaMemPoolGetAttribute(native_pool(pool), attribute, &value));

    if (error == RMM_DRIVER_OK) {
        *out = value;
    }
    return error;
}

int rmm__cuda_mempool_get_threshold(rmm_driver_mempool_t pool, uint64_t *bytes)
{
    return get_attribute(pool, cudaMemPoolAttrReleaseThreshold, bytes);
}

int rmm__cuda_mempool_set_threshold(rmm_driver_mempool_t pool, uint64_t bytes)
{
    cuuint64_t value = bytes;

    return RMM_DRIVER_WAITS(CALL(cudaMemPoolSetAttribute(
        native_pool(pool), cudaMemPoolAttrReleaseThreshold, &value)));
}

int rmm__cuda_mempool_figures(
    rmm_driver_mempool_t pool, rmm_driver_mempool_figures_t *figures)
{
    rmm_driver_mempool_figures_t now;
    int error =
        get_attribute(pool, cudaMemPoolAttrReservedMemCurrent, &now.reserved_bytes);

    if (error == RMM_DRIVER_OK) {
        error = get_attribute(pool, cudaMemPoolAttrUsedMemCurrent, &now.used_bytes);
    }
    if (error == RMM_DRIVER_OK) {
        *figures = now;
    }
    return error;
}

int rmm__cuda_mempool_trim(rmm_driver_mempool_t pool, size_t keep_bytes)
{
    return RMM_DRIVER_WAITS(CALL(cudaMemPoolTrimTo(native_pool(pool), keep_bytes)));
}

int rmm__cuda_mempool_access(rmm_driver_mempool_t pool, uint32_t devices)
{
    struct cudaMemAccessDesc access[RMM_DRIVER_SET_DEVICES];
    size_t count = 0;

    for (int device = 0; device < RMM_DRIVER_SET_DEVICES; device++) {
        if ((devices & RMM_DRIVER_DEVICE(device)) != 0) {
            access[count++] = (struct cudaMemAccessDesc){
                .location = {.type = cudaMemLocationTypeDevice, .id = device},
                .flags = cudaMemAccessFlagsProtReadWrite};
        }
    }
    return CALL(cudaMemPoolSetAccess(native_pool(pool), access, count));
}

/* ---- between processes ---- */

static_assert(
    sizeof(struct cudaMemPoolPtrExportData) == RMM_DRIVER_HANDLE_BYTES,
    "size of RMM_DRIVER_HANDLE_BYTES");

int rmm__cuda_mempool_export(
    rmm_driver_mempool_t pool, uint32_t type, rmm_driver_handle_t *handle)
{
    bool is_fd = type == RMM_DRIVER_HANDLE_POSIX;
    rmm_driver_handle_t fresh = {.type = type, .fd = -1};
    int error = RMM_DRIVER_WAITS(CALL(cudaMemPoolExportToShareableHandle(
        is_fd ? (void *)&fresh.fd : fresh.bytes, native_pool(pool),
        (enum cudaMemAllocationHandleType)type, 0)));

    if (error == RMM_DRIVER_OK && is_fd) {
        fresh.fd = rmm__cuda_own_descriptor(fresh.fd);
        error = fresh.fd >= 0 ? RMM_DRIVER_OK : (int)cudaErrorOperatingSystem;
    }
    if (error == RMM_DRIVER_OK) {
        *handle = fresh;
    }
    return error;
}

int rmm__cuda_mempool_export_pointer(
    const void *ptr, unsigned char data[RMM_DRIVER_HANDLE_BYTES])
{
    struct cudaMemPoolPtrExportData fresh;
    int error = RMM_DRIVER_WAITS(
        CALL(cudaMemPoolExportPointer(&fresh, (void *)(uintptr_t)ptr)));

    if (error == RMM_DRIVER_OK) {
        memcpy(data, &fresh, sizeof(fresh));
    }
    return error;
}

int rmm__cuda_mempool_import(
    const rmm_driver_handle_t *handle, rmm_driver_mempool_t *pool)
{
    rmm_driver_handle_t copy = *handle;
    cudaMemPool_t fresh;
    int error = RMM_DRIVER_WAITS(CALL(cudaMemPoolImportFromShareableHandle(
        &fresh,
        handle->type == RMM_DRIVER_HANDLE_POSIX ? (void *)(uintptr_t)handle->fd
                                                : copy.bytes,
        (enum cudaMemAllocationHandleType)handle->type, 0)));

    if (error == RMM_DRIVER_OK) {
        *pool = (rmm_driver_mempool_t)(void *)fresh;
    }
    return error;
}

int rmm__cuda_mempool_import_pointer(
    rmm_driver_mempool_t pool, const unsigned char data[RMM_DRIVER_HANDLE_BYTES],
    void **ptr)
{
    struct cudaMemPoolPtrExportData copy;
    void *fresh;
    int error;

    memcpy(&copy, data, sizeof(copy));
    error = RMM_DRIVER_WAITS(
        CALL(cudaMemPoolImportPointer(&fresh, native_pool(pool), &copy)));
    if (error == RMM_DRIVER_OK) {
        *ptr = fresh;
    }
    return error;
}

/* ---- a pool's blocks: through the driver where it has them, some 30 ns less a call ---- */

typedef CUresult (*alloc_from_pool_fn)(CUdeviceptr *, size_t, CUmemoryPool, CUstream);
typedef CUresult (*free_async_fn)(CUdeviceptr, CUstream);

/* Filled before the table is handed out; NULL: through the runtime. */
static alloc_from_pool_fn alloc_from_pool;
static free_async_fn free_async;

void rmm__cuda_mempool_open(void)
{
    void *found = NULL;

    if (rmm__cuda_find_entry("cuMemAllocFromPoolAsync", 11020, &found) ==
        RMM_DRIVER_OK) {
        memcpy(&alloc_from_pool, &found, sizeof(found));
    }
    found = NULL;
    if (rmm__cuda_find_entry("cuMemFreeAsync", 11020, &found) == RMM_DRIVER_OK) {
        memcpy(&free_async, &found, sizeof(found));
    }
}

/* The driver wants a current context, which the runtime would make. Nothing was done yet.
 * Other results are the runtime's, number for number. */
static bool wants_the_runtime(CUresult result)
{
    return result == CUDA_ERROR_INVALID_CONTEXT ||
           result == CUDA_ERROR_NOT_INITIALIZED ||
           result == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

int rmm__cuda_mempool_alloc(
    rmm_driver_mempool_t pool, void **ptr, size_t bytes, rmm_stream_t stream)
{
    CUdeviceptr address;
    CUresult result = CUDA_ERROR_NOT_INITIALIZED;
    void *fresh;
    int error;

    if (rmm__cuda_is_exiting()) {
        return RMM_DRIVER_UNLOADING;
    }
    if (alloc_from_pool != NULL &&
        bytes != 0) { /* the runtime knows what 0 bytes are */
        result = OWN(alloc_from_pool(&address, bytes, native_pool(pool), stream));
    }
    if (result == CUDA_SUCCESS) {
        *ptr = (void *)(uintptr_t)address;
    }
    if (!wants_the_runtime(result)) {
        return (int)result;
    }
    error =
        OWN(CALL(cudaMallocFromPoolAsync(&fresh, bytes, native_pool(pool), stream)));
    if (error == RMM_DRIVER_OK) {
        *ptr = fresh;
    }
    return error;
}

int rmm__cuda_mempool_free(void *ptr, rmm_stream_t stream)
{
    CUresult result = CUDA_ERROR_NOT_INITIALIZED;

    if (rmm__cuda_is_exiting()) {
        return RMM_DRIVER_UNLOADING;
    }
    if (free_async != NULL && ptr != NULL) {
        result = OWN(free_async((CUdeviceptr)(uintptr_t)ptr, stream));
    }
    return wants_the_runtime(result) ? OWN(CALL(cudaFreeAsync(ptr, stream)))
                                     : (int)result;
}
