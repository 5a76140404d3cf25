/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver table over the CUDA runtime, linked statically: the library loads on a
 * machine without a driver and returns cudaErrorInsufficientDriver there.
 *
 * Calls on the fast path (which stream is this, does it capture) go to the driver's own
 * entry points: cuStreamGetId 15 ns against 47 through the runtime.
 *
 * Every failure clears the runtime's last error, which belongs to the program: a failed
 * growth of a pool must not show up in its next cudaGetLastError(). An event is queried
 * through the driver, because "not ready" is no failure and must not clear an error that
 * the program has not read yet.
 */
#include "driver/cuda_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/assert.h"
#include "core/error.h"
#include "driver/stream_ids.h"

#define SAME(cuda, ours) static_assert((int)(cuda) == (int)(ours), "value of " #ours)
SAME(cudaSuccess, RMM_DRIVER_OK);
SAME(cudaErrorInvalidValue, RMM_DRIVER_INVALID_VALUE);
SAME(cudaErrorMemoryAllocation, RMM_DRIVER_MEMORY_ALLOCATION);
SAME(cudaErrorCudartUnloading, RMM_DRIVER_UNLOADING);
SAME(cudaErrorInsufficientDriver, RMM_DRIVER_INSUFFICIENT_DRIVER);
SAME(cudaErrorNoDevice, RMM_DRIVER_NO_DEVICE);
SAME(cudaErrorInvalidDevice, RMM_DRIVER_INVALID_DEVICE);
SAME(cudaErrorInvalidResourceHandle, RMM_DRIVER_INVALID_HANDLE);
SAME(cudaErrorNotReady, RMM_DRIVER_NOT_READY);
SAME(cudaErrorNotSupported, RMM_DRIVER_NOT_SUPPORTED);
SAME(cudaErrorStreamCaptureUnsupported, RMM_DRIVER_CAPTURE_UNSUPPORTED);
SAME(cudaErrorStreamCaptureInvalidated, RMM_DRIVER_CAPTURE_INVALIDATED);
SAME(cudaErrorStreamCaptureImplicit, RMM_DRIVER_CAPTURE_IMPLICIT);
SAME(CU_STREAM_CAPTURE_MODE_GLOBAL, RMM_CAPTURE_MODE_GLOBAL);
SAME(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, RMM_CAPTURE_MODE_THREAD_LOCAL);
SAME(CU_STREAM_CAPTURE_MODE_RELAXED, RMM_CAPTURE_MODE_RELAXED);
SAME(cudaStreamNonBlocking, RMM_STREAM_NON_BLOCKING);

#define X(name, ours, cuda, value) SAME(cuda, ours);
RMM_DRIVER_ATTRIBUTE_MAP(X)
#if CUDART_VERSION >= 13000
RMM_DRIVER_HOST_ATTRIBUTE_MAP(X)
#endif
#undef X

typedef CUresult (*stream_get_id_fn)(CUstream, unsigned long long *);
typedef CUresult (*stream_is_capturing_fn)(CUstream, CUstreamCaptureStatus *);
typedef CUresult (*stream_capture_info_fn)(/* as of CUDA 11.3, and 12.3 */
                                           CUstream, CUstreamCaptureStatus *,
                                           cuuint64_t *id, CUgraph *,
                                           const CUgraphNode **dependencies,
                                           void *count_or_edges, size_t *none_or_count);
typedef CUresult (*event_query_fn)(CUevent);
typedef CUresult (*exchange_mode_fn)(CUstreamCaptureMode *);
typedef CUresult (*context_state_fn)(CUdevice, unsigned *flags, int *active);
typedef CUresult (*context_current_fn)(CUcontext *);

/* Filled by rmm__driver_cuda_open() before the table is handed out. */
static struct {
    stream_get_id_fn stream_get_id;
    stream_is_capturing_fn stream_is_capturing;
    stream_capture_info_fn stream_capture_info;
    event_query_fn event_query;
    exchange_mode_fn exchange_mode;
    context_state_fn context_state;
    context_current_fn context_current;
} entry;

atomic_bool rmm__cuda_exits;

static void note_exit(void)
{
    atomic_store_explicit(&rmm__cuda_exits, true, memory_order_relaxed);
}

static cudaEvent_t native_event(rmm_driver_event_t event)
{
    return (cudaEvent_t)(void *)event;
}

static int cuda_device_count(int *count)
{
    return CALL(cudaGetDeviceCount(count));
}

static int cuda_device_get(int *device)
{
    return CALL(cudaGetDevice(device));
}

static int cuda_device_set(int device)
{
    return RMM_DRIVER_WAITS(CALL(cudaSetDevice(device)));
}

/* "GPU-" and the 16 bytes in groups of 4-2-2-2-6, as nvidia-smi prints them. */
static void format_uuid(char out[48], const char bytes[16])
{
    const unsigned char *b = (const unsigned char *)bytes;

    snprintf(
        out, 48,
        "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
        b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
        b[13], b[14], b[15]);
}

static int cuda_device_info(int device, rmm_device_info_t *info)
{
    struct cudaDeviceProp properties;
    char bus_id[sizeof(info->pci_bus_id)];
    int error = RMM_DRIVER_WAITS(CALL(cudaGetDeviceProperties(&properties, device)));

    if (error == RMM_DRIVER_OK) {
        error = CALL(cudaDeviceGetPCIBusId(bus_id, (int)sizeof(bus_id), device));
    }
    if (error != RMM_DRIVER_OK) {
        return error;
    }
    format_uuid(info->uuid, properties.uuid.bytes);
    memcpy(info->pci_bus_id, bus_id, sizeof(bus_id));
    snprintf(info->name, sizeof(info->name), "%.63s", properties.name);
    info->capacity_bytes = properties.totalGlobalMem;
    return RMM_DRIVER_OK;
}

static int
cuda_device_attribute(rmm_driver_attribute_t attribute, int device, int *value)
{
    int answer;
    int error;

    switch (attribute) {
    case RMM_ATTRIBUTE_VIRTUAL_MEMORY: /* the runtime does not know it */
    case RMM_ATTRIBUTE_POSIX_HANDLES:
    case RMM_ATTRIBUTE_RDMA:
        return rmm__cuda_driver_attribute((int)attribute, device, value);
    case RMM_ATTRIBUTE_FABRIC_HANDLES:
    case RMM_ATTRIBUTE_HOST_NUMA_ID:
    case RMM_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS:
    case RMM_ATTRIBUTE_HOST_MEMORY_POOLS:
        return rmm__cuda_host_attribute(attribute, device, value);
    case RMM_ATTRIBUTE_MANAGED_MEMORY:
    case RMM_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
    case RMM_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case RMM_ATTRIBUTE_MEMORY_POOLS:
    case RMM_ATTRIBUTE_MEMORY_POOL_HANDLE_TYPES:
        break;
    }
    error =
        CALL(cudaDeviceGetAttribute(&answer, (enum cudaDeviceAttr)attribute, device));
    if (error == RMM_DRIVER_OK) {
        *value = answer;
    }
    return error;
}

/* Asks for the primary context, which is the one that the runtime uses. */
static int cuda_device_active(int device, int *active)
{
    unsigned flags;

    return rmm__cuda_is_exiting() ? RMM_DRIVER_UNLOADING
                                  : (int)entry.context_state(device, &flags, active);
}

static int cuda_device_synchronize(void)
{
    return RMM_DRIVER_WAITS(CALL(cudaDeviceSynchronize()));
}

static int cuda_memory_info(uint64_t *free_bytes, uint64_t *total_bytes)
{
    size_t free_now;
    size_t total;
    int error = RMM_DRIVER_WAITS(CALL(cudaMemGetInfo(&free_now, &total)));

    if (error == RMM_DRIVER_OK) {
        *free_bytes = free_now;
        *total_bytes = total;
    }
    return error;
}

static int cuda_mem_alloc(void **ptr, size_t bytes)
{
    void *fresh;
    int error = OWN(CALL(cudaMalloc(&fresh, bytes)));

    if (error == RMM_DRIVER_OK) {
        *ptr = fresh;
    }
    return error;
}

static int cuda_mem_free(void *ptr)
{
    return OWN(CALL(cudaFree(ptr)));
}

static int cuda_managed_alloc(void **ptr, size_t bytes)
{
    void *fresh;
    int error = OWN(CALL(cudaMallocManaged(&fresh, bytes, cudaMemAttachGlobal)));

    if (error == RMM_DRIVER_OK) {
        *ptr = fresh;
    }
    return error;
}

/* Portable: pinned for the contexts of all devices. */
static int cuda_host_alloc(void **ptr, size_t bytes)
{
    void *fresh;
    int error = OWN(CALL(cudaHostAlloc(&fresh, bytes, cudaHostAllocPortable)));

    if (error == RMM_DRIVER_OK) {
        *ptr = fresh;
    }
    return error;
}

static int cuda_host_free(void *ptr)
{
    return OWN(CALL(cudaFreeHost(ptr)));
}

static int cuda_stream_create(uint32_t flags, rmm_stream_t *stream)
{
    return RMM_DRIVER_WAITS(CALL(cudaStreamCreateWithFlags(stream, flags)));
}

static int cuda_stream_destroy(rmm_stream_t stream)
{
    return RMM_DRIVER_WAITS(CALL(cudaStreamDestroy(stream)));
}

static int cuda_stream_flags(rmm_stream_t stream, uint32_t *flags)
{
    unsigned answer;
    int error = CALL(cudaStreamGetFlags(stream, &answer));

    if (error == RMM_DRIVER_OK) {
        *flags = answer;
    }
    return error;
}

static int cuda_stream_synchronize(rmm_stream_t stream)
{
    return RMM_DRIVER_WAITS(CALL(cudaStreamSynchronize(stream)));
}

static int cuda_stream_wait_event(rmm_stream_t stream, rmm_driver_event_t event)
{
    return CALL(cudaStreamWaitEvent(stream, native_event(event), 0));
}

/* The driver's entry point needs a current context; the runtime makes one. */
static int stream_id(rmm_stream_t stream, unsigned long long *id)
{
    if (entry.stream_get_id(stream, id) == CUDA_SUCCESS) {
        return RMM_DRIVER_OK;
    }
    return CALL(cudaStreamGetId(stream, id));
}

/*
 * The calling thread has one per-thread default stream in each context, for as long as both
 * exist. The driver is asked for its id once, and not at each allocation: which context is
 * current costs a third of that. A context that gets the address of a destroyed one inherits
 * an id that no other stream has or will have.
 */
static int per_thread_id(uint64_t *id)
{
    static _Thread_local struct {
        CUcontext context; /* NULL: none yet */
        uint64_t id;
    } known;
    CUcontext context = NULL;
    unsigned long long answer = 0;
    int error;

    if (entry.context_current(&context) == CUDA_SUCCESS && context != NULL &&
        context == known.context) {
        *id = known.id;
        return RMM_DRIVER_OK;
    }
    error = stream_id(RMM_STREAM_PER_THREAD, &answer); /* may make a context current */
    if (error == RMM_DRIVER_OK &&
        entry.context_current(&known.context) == CUDA_SUCCESS) {
        known.id = answer;
    }
    *id = answer;
    return error;
}

static bool is_capturing(rmm_stream_t stream)
{
    CUstreamCaptureStatus status;

    return entry.stream_is_capturing(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/*
 * Asking for the id of a capturing stream ruins the capture (900). Its handle names it as
 * well, because a stream cannot end before its capture; but the handle of a per-thread
 * default stream is the same for every thread and device, and two of them may be in one
 * capture.
 */
static int capturing_id(rmm_stream_t stream, uint64_t *id)
{
    int device;
    int error;

    if (!rmm_stream_is_per_thread_default(stream)) {
        *id = (uint64_t)(uintptr_t)stream;
        return RMM_DRIVER_OK;
    }
    error = cuda_device_get(&device);
    if (error == RMM_DRIVER_OK) {
        *id = rmm__stream_id_of_thread(device);
    }
    return error;
}

/*
 * A ruined capture has no id any more, and its graph will never run. The last argument is
 * for the version of CUDA 12.3, which the runtimes of 12.3 and 12.4 answer with; others do
 * not look at it.
 */
static int capture_key(rmm_stream_t stream, rmm_stream_key_t *key)
{
    CUstreamCaptureStatus status;
    cuuint64_t capture;
    uint64_t id;
    int error = (int)entry.stream_capture_info(
        stream, &status, &capture, NULL, NULL, NULL, NULL);

    if (error == RMM_DRIVER_OK) {
        error = capturing_id(stream, &id);
    }
    if (error == RMM_DRIVER_OK) {
        key->stream_id = id;
        key->capture_id =
            status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? capture : RMM_CAPTURE_RUINED;
    }
    return error;
}

static int cuda_stream_key(rmm_stream_t stream, rmm_stream_key_t *key)
{
    unsigned long long id;
    uint64_t known;
    int error;

    if (rmm_stream_is_default(stream)) { /* cannot capture */
        *key = (rmm_stream_key_t){0, 0};
        return RMM_DRIVER_OK;
    }
    if (rmm__cuda_is_exiting()) {
        return RMM_DRIVER_UNLOADING;
    }
    if (rmm_stream_is_per_thread_default(stream)) {
        key->capture_id = 0;
        return is_capturing(stream) ? capture_key(stream, key)
                                    : per_thread_id(&key->stream_id);
    }
    known = rmm__stream_id_find(stream); /* by rmm_stream_create() */
    if ((known & RMM_STREAM_ID_NEVER_CAPTURES) != 0) {
        RMM_ASSERT(!is_capturing(stream) && "RMM_STREAM_NEVER_CAPTURES");
        *key = (rmm_stream_key_t){known & ~RMM_STREAM_ID_NEVER_CAPTURES, 0};
        return RMM_DRIVER_OK;
    }
    if (is_capturing(stream)) {
        return capture_key(stream, key);
    }
    if (known != 0) {
        *key = (rmm_stream_key_t){known, 0};
        return RMM_DRIVER_OK;
    }
    error = stream_id(stream, &id);
    if (error == RMM_DRIVER_OK) {
        *key = (rmm_stream_key_t){id, 0};
    }
    return error;
}

static int cuda_legacy_is_open(int *is_open)
{
    enum cudaStreamCaptureStatus status;
    int error = CALL(cudaStreamIsCapturing(cudaStreamLegacy, &status));

    if (error == RMM_DRIVER_OK || error == RMM_DRIVER_CAPTURE_IMPLICIT) {
        *is_open = error == RMM_DRIVER_OK;
        return RMM_DRIVER_OK;
    }
    return error;
}

static int cuda_event_create(rmm_driver_event_t *event)
{
    cudaEvent_t fresh;
    int error = RMM_DRIVER_WAITS(
        CALL(cudaEventCreateWithFlags(&fresh, cudaEventDisableTiming)));

    if (error == RMM_DRIVER_OK) {
        *event = (rmm_driver_event_t)(void *)fresh;
    }
    return error;
}

static int cuda_event_destroy(rmm_driver_event_t event)
{
    return RMM_DRIVER_WAITS(CALL(cudaEventDestroy(native_event(event))));
}

static int cuda_event_record(rmm_driver_event_t event, rmm_stream_t stream)
{
    return CALL(cudaEventRecord(native_event(event), stream));
}

static int cuda_event_query(rmm_driver_event_t event)
{
    CUresult result;

    if (rmm__cuda_is_exiting()) {
        return RMM_DRIVER_UNLOADING;
    }
    result = entry.event_query(native_event(event));
    return result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY
               ? (int)result
               : rmm__cuda_cleared(cudaEventQuery(native_event(event)));
}

static int cuda_event_synchronize(rmm_driver_event_t event)
{
    return RMM_DRIVER_WAITS(CALL(cudaEventSynchronize(native_event(event))));
}

/* The thread's mode is the driver's, for both APIs; this is on the path of each allocation
 * from CUDA's pools. */
static int cuda_capture_mode_exchange(int *mode)
{
    CUstreamCaptureMode native = (CUstreamCaptureMode)*mode;
    CUresult result;

    if (rmm__cuda_is_exiting()) {
        return RMM_DRIVER_UNLOADING;
    }
    result = entry.exchange_mode(&native);
    if (result == CUDA_SUCCESS) {
        *mode = (int)native;
    }
    return (int)result;
}

/* The graph that the stream captures into. */
static int captured_graph(rmm_stream_t stream, cudaGraph_t *graph)
{
    CUstreamCaptureStatus status;
    cuuint64_t id;
    int error;

    if (rmm__cuda_is_exiting()) {
        return RMM_DRIVER_UNLOADING;
    }
    error =
        (int)entry.stream_capture_info(stream, &status, &id, graph, NULL, NULL, NULL);
    return error == RMM_DRIVER_OK && status != CU_STREAM_CAPTURE_STATUS_ACTIVE
               ? RMM_DRIVER_CAPTURE_INVALIDATED
               : error;
}

/* A user object is what CUDA keeps for the graph, its copies and executables, and for
 * launches that run on. */
static int
cuda_capture_watch(rmm_stream_t stream, void (*gone)(void *context), void *context)
{
    cudaUserObject_t object;
    cudaGraph_t graph;
    int error = captured_graph(stream, &graph);

    if (error == RMM_DRIVER_OK) {
        error = RMM_DRIVER_WAITS(CALL(cudaUserObjectCreate(
            &object, context, gone, 1, cudaUserObjectNoDestructorSync)));
    }
    if (error != RMM_DRIVER_OK) {
        gone(context);
        return error;
    }
    error = CALL(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
    if (error != RMM_DRIVER_OK) {
        (void)CALL(cudaUserObjectRelease(object, 1)); /* calls gone() */
    }
    return error;
}

static const char *cuda_error_name(int error)
{
    return cudaGetErrorName((cudaError_t)error);
}

static const char *cuda_error_text(int error)
{
    return cudaGetErrorString((cudaError_t)error);
}

static const rmm_driver_t cuda_table = {
    .name = "cuda",
    .device_count = cuda_device_count,
    .device_get = cuda_device_get,
    .device_set = cuda_device_set,
    .device_info = cuda_device_info,
    .device_attribute = cuda_device_attribute,
    .device_active = cuda_device_active,
    .device_synchronize = cuda_device_synchronize,
    .memory_info = cuda_memory_info,
    .mem_alloc = cuda_mem_alloc,
    .mem_free = cuda_mem_free,
    .managed_alloc = cuda_managed_alloc,
    .host_alloc = cuda_host_alloc,
    .host_free = cuda_host_free,
    .memcpy_async = rmm__cuda_memcpy_async,
    .memset_async = rmm__cuda_memset_async,
    .mem_prefer = rmm__cuda_mem_prefer,
    .mem_prefetch = rmm__cuda_mem_prefetch,
    .mempool_create = rmm__cuda_mempool_create,
    .mempool_destroy = rmm__cuda_mempool_destroy,
    .mempool_managed = rmm__cuda_mempool_managed,
    .mempool_get_threshold = rmm__cuda_mempool_get_threshold,
    .mempool_set_threshold = rmm__cuda_mempool_set_threshold,
    .mempool_figures = rmm__cuda_mempool_figures,
    .mempool_trim = rmm__cuda_mempool_trim,
    .mempool_alloc = rmm__cuda_mempool_alloc,
    .mempool_free = rmm__cuda_mempool_free,
    .mempool_access = rmm__cuda_mempool_access,
    .mempool_export = rmm__cuda_mempool_export,
    .mempool_export_pointer = rmm__cuda_mempool_export_pointer,
    .mempool_import = rmm__cuda_mempool_import,
    .mempool_import_pointer = rmm__cuda_mempool_import_pointer,
    .virtual_granularity = rmm__cuda_virtual_granularity,
    .address_reserve = rmm__cuda_address_reserve,
    .address_free = rmm__cuda_address_free,
    .physical_create = rmm__cuda_physical_create,
    .physical_export = rmm__cuda_physical_export,
    .physical_import = rmm__cuda_physical_import,
    .physical_release = rmm__cuda_physical_release,
    .address_map = rmm__cuda_address_map,
    .address_unmap = rmm__cuda_address_unmap,
    .address_access = rmm__cuda_address_access,
    .peer_can_access = rmm__cuda_peer_can_access,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .stream_flags = cuda_stream_flags,
    .stream_synchronize = cuda_stream_synchronize,
    .stream_wait_event = cuda_stream_wait_event,
    .stream_key = cuda_stream_key,
    .legacy_is_open = cuda_legacy_is_open,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_query = cuda_event_query,
    .event_synchronize = cuda_event_synchronize,
    .capture_mode_exchange = cuda_capture_mode_exchange,
    .capture_watch = cuda_capture_watch,
    .error_name = cuda_error_name,
    .error_text = cuda_error_text,
    .observe = NULL,
    .queue = NULL,
};

int rmm__cuda_find_entry(const char *name, unsigned cuda_version, void **function)
{
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaError_t error;

#if CUDART_VERSION >= 12050
    error = cudaGetDriverEntryPointByVersion(
        name, function, cuda_version, cudaEnableLegacyStream, &found);
#else
    (void)cuda_version; /* CUDA 12.0 to 12.4 answer with functions that fit as well */
    error = cudaGetDriverEntryPoint(name, function, cudaEnableLegacyStream, &found);
#endif
    if (error == cudaSuccess && found != cudaDriverEntryPointSuccess) {
        error = cudaErrorSymbolNotFound;
    }
    return rmm__cuda_cleared(error);
}

static int find_entries(void)
{
    static const struct {
        const char *name;
        unsigned cuda_version;
        void *place; /* in `entry`; a function's pointer has the size of an object's */
    } wanted[] = {
        {"cuStreamGetId", 12000, &entry.stream_get_id},
        {"cuStreamIsCapturing", 10000, &entry.stream_is_capturing},
        {"cuStreamGetCaptureInfo", 11030, &entry.stream_capture_info},
        {"cuEventQuery", 2000, &entry.event_query},
        {"cuThreadExchangeStreamCaptureMode", 10010, &entry.exchange_mode},
        {"cuDevicePrimaryCtxGetState", 7000, &entry.context_state},
        {"cuCtxGetCurrent", 4000, &entry.context_current},
    };
    int error = RMM_DRIVER_OK;

    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        void *found;

        error = rmm__cuda_find_entry(wanted[i].name, wanted[i].cuda_version, &found);
        if (error != RMM_DRIVER_OK) {
            break;
        }
        memcpy(wanted[i].place, &found, sizeof(found));
    }
    return error;
}

const rmm_driver_t *rmm__driver_cuda_open(rmm_status_t *status_out)
{
    int count = 0;
    int error = rmm__cuda_cleared(cudaGetDeviceCount(&count));

    if (error == RMM_DRIVER_OK && count == 0) {
        error = RMM_DRIVER_NO_DEVICE;
    }
    if (error == RMM_DRIVER_OK) {
        error = find_entries();
    }
    if (error == RMM_DRIVER_OK && atexit(note_exit) != 0) {
        *status_out = rmm__error(
            RMM_ERR_OUT_OF_HOST_MEMORY,
            "cannot register an exit handler: no host memory");
        return NULL;
    }
    if (error != RMM_DRIVER_OK) {
        *status_out = rmm__error_cuda(
            RMM_ERR_NO_DEVICE, error,
            "no usable GPU: %s (%s, %d); check the NVIDIA driver, or set "
            "RMM_DRIVER=sim "
            "to use the simulated GPU",
            cuda_error_text(error), cuda_error_name(error), error);
        return NULL;
    }
    rmm__cuda_mempool_open();
    rmm__cuda_virtual_open();
    return &cuda_table;
}
