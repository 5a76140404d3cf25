/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libamdhip64 over the simulated GPU: HIP's functions, as the version
 * HIP_VERSION of it has them, so that lib/driver/hip.c is tested without an AMD GPU. It
 * behaves in the worst way that HIP documents, or that its versions are known for:
 *
 *  - functions and attributes that the version does not have are missing;
 *  - the legacy default stream is NULL only; HIP before 6.2 crashes on the handle 1;
 *  - before 7.0 every call sets the last error, one that succeeds and "not ready" too;
 *  - before 7.0 hipFreeAsync() refuses NULL;
 *  - outputs of failed calls are overwritten.
 *
 * The simulated GPU is that of the test program, whose rmm_sim_driver() comes before the one of
 * this library; in another program a copy of its own. Faults are planned with RMM_SIM_FAIL, which
 * counts its calls.
 *
 * Locking: `lock` protects the list of streams.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/version.h>

#include "driver/sim/control.h"
#include "hip/standin.h"

/* Is it loaded by programs that call HIP themselves (standin_program.c)? */
#ifdef HIP_STANDIN_FOR_PROGRAMS
#define IS_FOR_PROGRAMS true
#else
#define IS_FOR_PROGRAMS false
#endif

const rmm_driver_t *sim;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local hip_error_t last_error;

static void open_sim(void)
{
    rmm_status_t status;
    char message[256];

    sim = rmm_sim_driver(rmm_version_string(), &status, message, sizeof(message));
    if (sim == NULL) {
        fprintf(stderr, "stand-in for HIP: %s\n", message);
    }
}

bool is_open(void)
{
    pthread_once(&once, open_sim);
    return sim != NULL;
}

hip_error_t done(int error)
{
    if (HIP_VERSION < 70000000 ||
        (error != RMM_DRIVER_OK && error != RMM_DRIVER_NOT_READY)) {
        last_error = (hip_error_t)error;
    }
    return (hip_error_t)error;
}

/* ---- devices ---- */

hip_error_t hipGetDeviceCount(int *count)
{
    *count = 0;
    return SIM(sim->device_count(count));
}

hip_error_t hipGetDevice(int *device)
{
    *device = -1;
    return SIM(sim->device_get(device));
}

hip_error_t hipSetDevice(int device)
{
    return SIM(sim->device_set(device));
}

hip_error_t hipDeviceGetName(char *name, int bytes, hip_device_t device)
{
    rmm_device_info_t info = {.name = ""};
    hip_error_t error = SIM(sim->device_info(device, &info));

    snprintf(name, (size_t)bytes, "AMD on a %s", info.name);
    return error;
}

hip_error_t hipDeviceGetPCIBusId(char *id, int bytes, int device)
{
    rmm_device_info_t info;
    hip_error_t error = SIM(sim->device_info(device, &info));

    snprintf(id, (size_t)bytes, "0000:%02x:00.0", (unsigned)device + 0x43);
    return error;
}

hip_error_t hipDeviceTotalMem(size_t *bytes, hip_device_t device)
{
    rmm_device_info_t info = {.capacity_bytes = 0};
    hip_error_t error = SIM(sim->device_info(device, &info));

    *bytes = info.capacity_bytes;
    return error;
}

/* The attribute of ours that HIP's number means; 0: this version does not know it. */
static int attribute_of(hip_attribute_t attribute)
{
    switch (attribute) {
    case HIP_ATTRIBUTE_MANAGED_MEMORY:
        return RMM_ATTRIBUTE_MANAGED_MEMORY;
    case HIP_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
        return RMM_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS;
    case HIP_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
        return RMM_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
    case HIP_ATTRIBUTE_MEMORY_POOLS:
        return HIP_VERSION >= 50100000 ? RMM_ATTRIBUTE_MEMORY_POOLS : 0;
    case HIP_ATTRIBUTE_VIRTUAL_MEMORY:
        return HIP_VERSION >= 50300000 ? RMM_ATTRIBUTE_VIRTUAL_MEMORY : 0;
    case HIP_ATTRIBUTE_MEMORY_POOL_HANDLE_TYPES:
        return HIP_VERSION >= 60100000 ? RMM_ATTRIBUTE_MEMORY_POOL_HANDLE_TYPES : 0;
    default:
        return 0;
    }
}

hip_error_t hipDeviceGetAttribute(int *value, hip_attribute_t attribute, int device)
{
    int ours = attribute_of(attribute);

    *value = 0;
    if (ours == 0) {
        return done(RMM_DRIVER_INVALID_VALUE);
    }
    return SIM(sim->device_attribute((rmm_driver_attribute_t)ours, device, value));
}

hip_error_t hipDeviceSynchronize(void)
{
    return SIM(sim->device_synchronize());
}

hip_error_t hipDeviceCanAccessPeer(int *can, int device, int peer)
{
    hip_error_t error;

    *can = 0;
    error = SIM(sim->peer_can_access(device, peer, can));
    *can = *can != 0 && device != peer; /* HIP denies that a device is its own peer */
    return error;
}

hip_error_t hipRuntimeGetVersion(int *version)
{
    *version = HIP_VERSION;
    return done(RMM_DRIVER_OK);
}

/* ---- errors ---- */

hip_error_t hipGetLastError(void)
{
    hip_error_t error = last_error;

    last_error = RMM_DRIVER_OK;
    return error;
}

hip_error_t hipPeekAtLastError(void)
{
    return last_error;
}

const char *hipGetErrorName(hip_error_t error)
{
    switch ((int)error) {
    case RMM_DRIVER_OK:
        return "hipSuccess";
    case RMM_DRIVER_INVALID_VALUE:
        return "hipErrorInvalidValue";
    case RMM_DRIVER_MEMORY_ALLOCATION:
        return "hipErrorOutOfMemory";
    case RMM_DRIVER_NO_DEVICE:
        return "hipErrorNoDevice";
    case RMM_DRIVER_INVALID_DEVICE:
        return "hipErrorInvalidDevice";
    case RMM_DRIVER_INVALID_HANDLE:
        return "hipErrorInvalidHandle";
    case RMM_DRIVER_NOT_READY:
        return "hipErrorNotReady";
    case RMM_DRIVER_NOT_SUPPORTED:
        return "hipErrorNotSupported";
    case RMM_DRIVER_CAPTURE_UNSUPPORTED:
        return "hipErrorStreamCaptureUnsupported";
    case RMM_DRIVER_CAPTURE_INVALIDATED:
        return "hipErrorStreamCaptureInvalidated";
    default:
        return "hipErrorUnknown";
    }
}

const char *hipGetErrorString(hip_error_t error)
{
    return is_open() ? sim->error_text((int)error) : "the simulated GPU is not open";
}

/* ---- memory ---- */

hip_error_t hipMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    uint64_t free_now = 0;
    uint64_t total = 0;
    hip_error_t error = SIM(sim->memory_info(&free_now, &total));

    *free_bytes = free_now;
    *total_bytes = total;
    return error;
}

hip_error_t hipMalloc(void **ptr, size_t bytes)
{
    *ptr = NULL;
    return SIM(sim->mem_alloc(ptr, bytes));
}

hip_error_t hipFree(void *ptr)
{
    return SIM(sim->mem_free(ptr));
}

hip_error_t hipMallocManaged(void **ptr, size_t bytes, unsigned int flags)
{
    *ptr = NULL;
    return flags != HIP_MANAGED_ATTACH_GLOBAL ? done(RMM_DRIVER_INVALID_VALUE)
                                              : SIM(sim->managed_alloc(ptr, bytes));
}

hip_error_t hipHostMalloc(void **ptr, size_t bytes, unsigned int flags)
{
    *ptr = NULL;
    return flags != HIP_HOST_PORTABLE ? done(RMM_DRIVER_INVALID_VALUE)
                                      : SIM(sim->host_alloc(ptr, bytes));
}

hip_error_t hipHostFree(void *ptr)
{
    return SIM(sim->host_free(ptr));
}

/* ---- streams ---- */

typedef struct made {
    hip_stream_t stream;
    int device;
} made_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static made_t *streams;
static size_t stream_count, stream_capacity;

/* The device on which a stream was made; -1: by no call of ours. */
static int device_of(hip_stream_t stream)
{
    int device = -1;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < stream_count; i++) {
        device = streams[i].stream == stream ? streams[i].device : device;
    }
    pthread_mutex_unlock(&lock);
    return device;
}

/* A handle that was there before has the newest device. */
static void note_stream(hip_stream_t stream)
{
    int device = -1;
    size_t i = 0;

    (void)sim->device_get(&device);
    pthread_mutex_lock(&lock);
    while (i < stream_count && streams[i].stream != stream) {
        i++;
    }
    if (i == stream_capacity) {
        stream_capacity = stream_capacity == 0 ? 64 : 2 * stream_capacity;
        streams = realloc(streams, stream_capacity * sizeof(*streams));
        if (streams == NULL) {
            abort();
        }
    }
    streams[i] = (made_t){stream, device};
    stream_count += i == stream_count;
    pthread_mutex_unlock(&lock);
}

hip_error_t hipStreamCreateWithFlags(hip_stream_t *stream, unsigned int flags)
{
    rmm_stream_t fresh = NULL;
    hip_error_t error = SIM(sim->stream_create(flags, &fresh));

    *stream = (hip_stream_t)(void *)fresh;
    if (error == RMM_DRIVER_OK) {
        note_stream(*stream);
    }
    return error;
}

hip_error_t hipStreamDestroy(hip_stream_t stream)
{
    return stream == NULL ? done(RMM_DRIVER_INVALID_HANDLE)
                          : ON(stream, sim->stream_destroy(of(stream)));
}

hip_error_t hipStreamGetFlags(hip_stream_t stream, unsigned int *flags)
{
    uint32_t answer = 0;
    hip_error_t error;

    if (stream == NULL) { /* as HIP does */
        return done(RMM_DRIVER_INVALID_VALUE);
    }
    error = ON(stream, sim->stream_flags(of(stream), &answer));
    *flags = answer;
    return error;
}

int hipGetStreamDeviceId(hip_stream_t stream)
{
    int device = -1;

    if (is_bad(stream) || !is_open()) {
        return -1;
    }
    if (stream == NULL || rmm_stream_is_per_thread_default(of(stream))) {
        return sim->device_get(&device) == RMM_DRIVER_OK ? device : -1;
    }
    return device_of(stream);
}

hip_error_t hipStreamSynchronize(hip_stream_t stream)
{
    return ON(stream, sim->stream_synchronize(of(stream)));
}

hip_error_t
hipStreamWaitEvent(hip_stream_t stream, hip_event_t event, unsigned int flags)
{
    if (flags != 0) {
        return done(RMM_DRIVER_INVALID_VALUE);
    }
    return ON(
        stream, sim->stream_wait_event(of(stream), (rmm_driver_event_t)(void *)event));
}

#if HIP_VERSION >= 70100000
hip_error_t hipStreamGetId(hip_stream_t stream, unsigned long long *id)
{
    rmm_stream_key_t key = {0, 0};
    hip_error_t error = ON(stream, sim->stream_key(of(stream), &key));

    *id = key.stream_id;
    return error;
}
#endif

/* ---- captures ---- */

static hip_error_t
capture_of(hip_stream_t stream, hip_capture_status_t *status, unsigned long long *id)
{
    rmm_stream_key_t key = {0, 0};
    hip_error_t error = ON(stream, sim->stream_key(of(stream), &key));

    *status = key.capture_id == 0                    ? HIP_CAPTURE_STATUS_NONE
              : key.capture_id != RMM_CAPTURE_RUINED ? HIP_CAPTURE_STATUS_ACTIVE
                                                     : HIP_CAPTURE_STATUS_ACTIVE + 1;
    *id = key.capture_id != RMM_CAPTURE_RUINED ? key.capture_id : 0;
    return error;
}

hip_error_t hipStreamIsCapturing(hip_stream_t stream, hip_capture_status_t *status)
{
    unsigned long long id;
    int open = 1;

    if (rmm_stream_is_default(of(stream))) {
        const hip_error_t error = SIM(sim->legacy_is_open(&open));

        *status = HIP_CAPTURE_STATUS_NONE;
        return open != 0 ? error : done(RMM_DRIVER_CAPTURE_IMPLICIT);
    }
    return capture_of(stream, status, &id);
}

/* A graph's handle is that of the stream that captures into it. */
hip_error_t hipStreamGetCaptureInfo_v2(
    hip_stream_t stream, hip_capture_status_t *status, unsigned long long *id,
    hip_graph_t *graph, const hip_graph_node_t **dependencies, size_t *count)
{
    if (dependencies != NULL || count != NULL) {
        return done(RMM_DRIVER_NOT_SUPPORTED);
    }
    if (graph != NULL) {
        *graph = (hip_graph_t)(void *)stream;
    }
    return capture_of(stream, status, id);
}

#ifndef HIP_STANDIN_LACKING /* a version before 5.0 */
hip_error_t hipThreadExchangeStreamCaptureMode(hip_capture_mode_t *mode)
{
    int ours = (int)*mode;
    hip_error_t error = SIM(sim->capture_mode_exchange(&ours));

    *mode = (hip_capture_mode_t)ours;
    return error;
}
#endif

#if HIP_VERSION >= 50300000
struct hipUserObject {
    atomic_uint references;
    hip_host_fn_t destroy;
    void *context;
};

hip_error_t hipUserObjectCreate(
    hip_user_object_t *object, void *context, hip_host_fn_t destroy,
    unsigned int references, unsigned int flags)
{
    *object = NULL;
    if (flags != HIP_USER_OBJECT_NO_DESTRUCTOR_SYNC || references == 0) {
        return done(RMM_DRIVER_INVALID_VALUE);
    }
    *object = malloc(sizeof(**object));
    if (*object == NULL) {
        return done(RMM_DRIVER_MEMORY_ALLOCATION);
    }
    atomic_init(&(*object)->references, references);
    (*object)->destroy = destroy;
    (*object)->context = context;
    return done(RMM_DRIVER_OK);
}

static void release(void *context)
{
    hip_user_object_t object = context;

    if (atomic_fetch_sub(&object->references, 1) == 1) {
        object->destroy(object->context);
        free(object);
    }
}

hip_error_t hipUserObjectRelease(hip_user_object_t object, unsigned int count)
{
    while (count-- > 0) {
        release(object);
    }
    return done(RMM_DRIVER_OK);
}

/* The simulated GPU calls release() after a failure as well; the caller's reference, which
 * is to move, stays the caller's then. */
hip_error_t hipGraphRetainUserObject(
    hip_graph_t graph, hip_user_object_t object, unsigned int count, unsigned int flags)
{
    rmm_stream_t stream = (rmm_stream_t)(void *)graph;
    hip_error_t error;

    if (count != 1 || flags != HIP_GRAPH_USER_OBJECT_MOVE) {
        return done(RMM_DRIVER_INVALID_VALUE);
    }
    atomic_fetch_add(&object->references, 1);
    error = SIM(sim->capture_watch(stream, release, object));
    if (error == RMM_DRIVER_OK) {
        release(object);
    }
    return error;
}
#endif

/* ---- events ---- */

static rmm_driver_event_t event_of(hip_event_t event)
{
    return (rmm_driver_event_t)(void *)event;
}

/* The library's events measure no time; a program's may. */
static bool is_event_flag(unsigned flags)
{
    return flags == HIP_EVENT_DISABLE_TIMING || (IS_FOR_PROGRAMS && flags == 0);
}

hip_error_t hipEventCreateWithFlags(hip_event_t *event, unsigned flags)
{
    rmm_driver_event_t fresh = NULL;
    hip_error_t error = !is_event_flag(flags) ? done(RMM_DRIVER_INVALID_VALUE)
                                              : SIM(sim->event_create(&fresh));

    *event = (hip_event_t)(void *)fresh;
    return error;
}

hip_error_t hipEventDestroy(hip_event_t event)
{
    return SIM(sim->event_destroy(event_of(event)));
}

hip_error_t hipEventRecord(hip_event_t event, hip_stream_t stream)
{
    return ON(stream, sim->event_record(event_of(event), of(stream)));
}

hip_error_t hipEventQuery(hip_event_t event)
{
    return SIM(sim->event_query(event_of(event)));
}

hip_error_t hipEventSynchronize(hip_event_t event)
{
    return SIM(sim->event_synchronize(event_of(event)));
}

/* ---- work ---- */

/* The library leaves it to HIP where memory is; a program may say it. */
static bool is_kind(hip_copy_kind_t kind)
{
    return kind == HIP_COPY_DEFAULT || (IS_FOR_PROGRAMS && kind < HIP_COPY_DEFAULT);
}

hip_error_t hipMemcpyAsync(
    void *dst, const void *src, size_t bytes, hip_copy_kind_t kind, hip_stream_t stream)
{
    return is_kind(kind) ? ON(stream, sim->memcpy_async(dst, src, bytes, of(stream)))
                         : done(RMM_DRIVER_INVALID_VALUE);
}

hip_error_t hipMemsetAsync(void *dst, int value, size_t bytes, hip_stream_t stream)
{
    return ON(stream, sim->memset_async(dst, value, bytes, of(stream)));
}

hip_error_t hipMemAdvise(const void *ptr, size_t bytes, hip_advice_t advice, int device)
{
    if (advice != HIP_ADVICE_PREFERRED_LOCATION) {
        return done(RMM_DRIVER_INVALID_VALUE);
    }
    return SIM(sim->mem_prefer((void *)(uintptr_t)ptr, bytes, device));
}

hip_error_t
hipMemPrefetchAsync(const void *ptr, size_t bytes, int device, hip_stream_t stream)
{
    return ON(stream, sim->mem_prefetch(ptr, bytes, device, of(stream)));
}
