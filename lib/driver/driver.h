/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table through which every CUDA call of the library goes, so that there is one
 * place to fake, fault, count and port. cuda.c fills it from cudart and the driver's
 * entry points, hip.c from AMD's runtime, sim.c with the simulated GPU.
 *
 * Contract of every function:
 *  - returns a cudaError_t value as int; RMM_DRIVER_OK (0) is success. A failure leaves
 *    no "last error" behind in the CUDA runtime.
 *  - outputs are written on success only.
 *  - may be called from any thread; applies to the calling thread's current device
 *    unless it names one.
 *  - never call any of them with a lock of this library held.
 *
 * The table is chosen once, at the first call of rmm__driver(), by RMM_DRIVER.
 */
#ifndef RMM_DRIVER_DRIVER_H
#define RMM_DRIVER_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmm/status.h>
#include <rmm/stream.h>
#include <rmm/sys/diag.h>

/* Values of cudaError_t that the library looks at; cuda.c asserts them. */
enum {
    RMM_DRIVER_OK = 0,
    RMM_DRIVER_INVALID_VALUE = 1,
    RMM_DRIVER_MEMORY_ALLOCATION = 2,
    RMM_DRIVER_UNLOADING = 4, /* the runtime is shutting down: process exit */
    RMM_DRIVER_INSUFFICIENT_DRIVER = 35,
    RMM_DRIVER_NO_DEVICE = 100,
    RMM_DRIVER_INVALID_DEVICE = 101,
    RMM_DRIVER_INVALID_HANDLE = 400,
    RMM_DRIVER_NOT_READY = 600,
    RMM_DRIVER_NOT_SUPPORTED = 801,
    RMM_DRIVER_CAPTURE_UNSUPPORTED = 900,
    RMM_DRIVER_CAPTURE_INVALIDATED = 901,
    RMM_DRIVER_CAPTURE_IMPLICIT = 906
};

/* cudaStreamCaptureMode */
enum {
    RMM_CAPTURE_MODE_GLOBAL = 0,
    RMM_CAPTURE_MODE_THREAD_LOCAL = 1,
    RMM_CAPTURE_MODE_RELAXED = 2
};

/* cudaDeviceAttr: name for RMM_SIM_ATTRIBUTES, ours, CUDA's, value. */
#define RMM_DRIVER_ATTRIBUTE_MAP(X)                                                    \
    X(managed_memory, RMM_ATTRIBUTE_MANAGED_MEMORY, cudaDevAttrManagedMemory, 83)      \
    X(pageable_memory_access, RMM_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,                    \
      cudaDevAttrPageableMemoryAccess, 88)                                             \
    X(concurrent_managed_access, RMM_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,              \
      cudaDevAttrConcurrentManagedAccess, 89)                                          \
    X(virtual_memory, RMM_ATTRIBUTE_VIRTUAL_MEMORY,                                    \
      CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102)                    \
    X(memory_pools, RMM_ATTRIBUTE_MEMORY_POOLS, cudaDevAttrMemoryPoolsSupported, 115)  \
    X(memory_pool_handle_types, RMM_ATTRIBUTE_MEMORY_POOL_HANDLE_TYPES,                \
      cudaDevAttrMemoryPoolSupportedHandleTypes, 119)

typedef enum rmm_driver_attribute {
#define X(name, ours, cuda, value) ours = value,
    RMM_DRIVER_ATTRIBUTE_MAP(X)
#undef X
} rmm_driver_attribute_t;

typedef struct rmm_driver_event *rmm_driver_event_t;     /* cudaEvent_t, timing off */
typedef struct rmm_driver_mempool *rmm_driver_mempool_t; /* cudaMemPool_t */
typedef uint64_t rmm_driver_physical_t; /* CUmemGenericAllocationHandle */

#define RMM_DRIVER_HOST (-1) /* a location for memory: the host, not a device */

/* A set of devices: bit d is device d. Further devices are in none. */
#define RMM_DRIVER_SET_DEVICES 32
#define RMM_DRIVER_DEVICE(device) (UINT32_C(1) << (device))

typedef struct rmm_driver_mempool_figures {
    uint64_t reserved_bytes; /* held from the device now */
    uint64_t used_bytes;     /* handed out now */
} rmm_driver_mempool_figures_t;

/* The identity of a stream: handles are reused after a destroy, ids are not. */
typedef struct rmm_stream_key {
    uint64_t stream_id;  /* 0: legacy default stream; else unique in the process, while
                            it captures among the streams that do */
    uint64_t capture_id; /* 0: not capturing; else unique to this capture */
} rmm_stream_key_t;

/* The capture_id of every capture that a call has ruined: its graph will never run. */
#define RMM_CAPTURE_RUINED UINT64_MAX

typedef struct rmm_device_info {
    char uuid[48];       /* "GPU-xxxxxxxx-xxxx-..." or "SIM-0" */
    char pci_bus_id[20]; /* "0000:3b:00.0"; simulated: "" */
    char name[64];
    uint64_t capacity_bytes;
} rmm_device_info_t;

typedef struct rmm_driver {
    const char *name; /* "cuda", "hip" or "sim" */

    int (*device_count)(int *count);
    int (*device_get)(int *device);
    int (*device_set)(int device);
    int (*device_info)(int device, rmm_device_info_t *info);
    int (*device_attribute)(rmm_driver_attribute_t attribute, int device, int *value);
    /* 0: the primary context of the device, the runtime's, is not in use, and has no work.
     * Makes none. A context of cuCtxCreate() is not seen. HIP does not know, and returns 1. */
    int (*device_active)(int device, int *active);
    int (*device_synchronize)(void); /* ruins captures: see rmm__driver_barrier() */
    int (*memory_info)(uint64_t *free_bytes, uint64_t *total_bytes);

    int (*mem_alloc)(void **ptr, size_t bytes); /* 256-byte aligned at least */
    int (*mem_free)(void *ptr);                 /* waits for the device, as cudaFree */
    int (*managed_alloc)(void **ptr, size_t bytes); /* freed by mem_free() */
    int (*host_alloc)(void **ptr, size_t bytes);    /* pinned, for every device */
    int (*host_free)(void *ptr);

    /* Copies and fills as cudaMemcpyAsync (default kind) and cudaMemsetAsync: any device
     * or host address, in the stream's order. A copy between two devices needs no access of
     * one to the other's memory. */
    int (*memcpy_async)(void *dst, const void *src, size_t bytes, rmm_stream_t stream);
    int (*memset_async)(void *dst, int value, size_t bytes, rmm_stream_t stream);

    /* Where managed or system memory should lie (cudaMemAdviseSetPreferredLocation), and
     * bringing it there. A device, or RMM_DRIVER_HOST. INVALID_VALUE for other memory,
     * INVALID_DEVICE where concurrent_managed_access is missing. A stream that captures
     * takes no prefetch, which ruins the capture. */
    int (*mem_prefer)(void *ptr, size_t bytes, int device);
    int (*mem_prefetch)(const void *ptr, size_t bytes, int device, rmm_stream_t stream);

    /* Stream-ordered memory. A pool of pinned-type device memory on the current device;
     * handle_types are cudaMemAllocationHandleType bits. The managed pool is the
     * device's own default one (CUDA 13): never destroyed. NOT_SUPPORTED where the
     * runtime or the driver has none. On a stream that captures, an allocation and a
     * free become nodes of the graph, and only what the same capture allocated can be
     * freed. Elsewhere both ruin a capture that another thread has under way in global
     * mode, as mem_alloc() does, unless this thread's mode is relaxed. 0 bytes are no
     * block: NULL, which may be freed. A destroyed pool stays until its last block is
     * free. A block that mem_free() took may count as used for a while. A trim gives back
     * what some synchronisation has seen to be done with. */
    int (*mempool_create)(uint32_t handle_types, rmm_driver_mempool_t *pool);
    int (*mempool_destroy)(rmm_driver_mempool_t pool);
    int (*mempool_managed)(rmm_driver_mempool_t *pool);
    int (*mempool_get_threshold)(rmm_driver_mempool_t pool, uint64_t *bytes);
    int (*mempool_set_threshold)(rmm_driver_mempool_t pool, uint64_t bytes);
    int (*mempool_figures)(
        rmm_driver_mempool_t pool, rmm_driver_mempool_figures_t *figures);
    int (*mempool_trim)(rmm_driver_mempool_t pool, size_t keep_bytes);
    int (*mempool_alloc)(
        rmm_driver_mempool_t pool, void **ptr, size_t bytes, rmm_stream_t stream);
    int (*mempool_free)(void *ptr, rmm_stream_t stream); /* cudaFreeAsync */
    /* Let other devices read and write what the pool has and what it will have
     * (cudaMemPoolSetAccess). Access that was enabled between two devices for memory of
     * mem_alloc() does not count here, nor for mapped memory. INVALID_DEVICE: one of them
     * is no peer. */
    int (*mempool_access)(rmm_driver_mempool_t pool, uint32_t devices);

    /* Virtual memory of the current device. Sizes are multiples of the granularity.
     * What address_map() maps cannot be accessed until address_access() lets a set of devices
     * read and write it: whole mappings, one or more beside each other. address_unmap() takes
     * away what one address_map() made, and waits for nothing: the caller knows that no
     * work uses the range. (CUDA also takes several mappings or none at all; the simulated GPU
     * refuses those, as they are more likely a mistake.) Released memory lives while it is
     * mapped. */
    int (*virtual_granularity)(size_t *bytes);
    int (*address_reserve)(void **ptr, size_t bytes);
    int (*address_free)(void *ptr, size_t bytes);
    int (*physical_create)(size_t bytes, rmm_driver_physical_t *physical);
    int (*physical_release)(rmm_driver_physical_t physical);
    int (*address_map)(void *ptr, size_t bytes, rmm_driver_physical_t physical);
    int (*address_unmap)(void *ptr, size_t bytes);
    int (*address_access)(void *ptr, size_t bytes, uint32_t devices);

    /* May `device` read and write memory of `peer`? */
    int (*peer_can_access)(int device, int peer, int *can);

    int (*stream_create)(uint32_t flags, rmm_stream_t *stream);
    int (*stream_destroy)(rmm_stream_t stream);
    int (*stream_flags)(rmm_stream_t stream, uint32_t *flags);
    int (*stream_synchronize)(rmm_stream_t stream);
    int (*stream_wait_event)(rmm_stream_t stream, rmm_driver_event_t event);
    /* No call at all for the legacy default stream. One of 7 ns for those that
     * rmm_stream_create() made (stream_ids.h), two for others. While a stream captures,
     * stream_id is its handle: CUDA refuses to tell the id then. */
    int (*stream_key)(rmm_stream_t stream, rmm_stream_key_t *key);

    /* 0 while a blocking stream of the current device captures: work on the legacy default
     * stream would ruin that capture. The question does not. */
    int (*legacy_is_open)(int *is_open);

    int (*event_create)(rmm_driver_event_t *event);
    int (*event_destroy)(rmm_driver_event_t event);
    int (*event_record)(rmm_driver_event_t event, rmm_stream_t stream);
    int (*event_query)(rmm_driver_event_t event); /* OK: done; NOT_READY: pending */
    int (*event_synchronize)(rmm_driver_event_t event);

    /* Sets this thread's mode, returns the previous one in *mode. While any thread
     * captures in global mode, another thread's cudaMalloc fails and ruins the capture
     * unless its own mode is relaxed. */
    int (*capture_mode_exchange)(int *mode);

    /*
     * gone(context) is called once, when the graph that this stream captures into can run
     * no more: it, its copies and its executables are destroyed and their launches have
     * ended, or the capture was ruined. That may be on any thread, at any time, also while
     * the process exits; gone() calls nothing of the driver and waits for nothing. It is
     * called once as well if this fails. Leaves the capture whole (docs/decisions/0008).
     */
    int (*capture_watch)(
        rmm_stream_t stream, void (*gone)(void *context), void *context);

    const char *(*error_name)(int error); /* "cudaErrorMemoryAllocation"; static */
    const char *(*error_text)(int error);

    /* Simulated GPU: send its events to fn; NULL for a real one. */
    void (*observe)(rmm_diag_event_fn fn, void *context);
    /* The same: work that is no event (rmm/sys/diag.h). */
    int (*queue)(
        int device, rmm_stream_t stream, rmm_diag_work_fn fn, const void *parameter,
        size_t bytes);
} rmm_driver_t;

/*
 * The table of this process, or NULL with the thread's last error set: RMM_ERR_NO_DEVICE
 * (no usable GPU, message names RMM_DRIVER) or RMM_ERR_INVALID_ARGUMENT (RMM_DRIVER says
 * none of cuda, hip and sim, or an RMM_SIM_* variable is malformed). A failure to find a GPU
 * is final for the process. Thread-safe; after the first call one load.
 */
const rmm_driver_t *rmm__driver(rmm_status_t *status_out);

/* Each returns NULL on failure and sets the last error. Used by driver.c only. */
const rmm_driver_t *rmm__driver_cuda_open(rmm_status_t *status_out);
const rmm_driver_t *rmm__driver_hip_open(rmm_status_t *status_out);
const rmm_driver_t *rmm__driver_sim_open(rmm_status_t *status_out);

/* Logs which HIP was found and what it lacks; called once, after the table is in place. */
void rmm__driver_hip_announce(void);

/* Loads what CUDA_INJECTION64_PATH names, as the real driver does; called once, after the
 * table is in place, because the loaded library may call back into this one. */
void rmm__driver_sim_inject(void);

/* Set the thread's last error from a failed driver call; returns OUT_OF_MEMORY for
 * MEMORY_ALLOCATION, NO_DEVICE for NO_DEVICE and INSUFFICIENT_DRIVER, else CUDA. */
rmm_status_t rmm__driver_error(const rmm_driver_t *driver, int error, const char *call);

/* RMM_OK for RMM_DRIVER_OK, else what rmm__driver_error() returns. */
static inline rmm_status_t
rmm__driver_status(const rmm_driver_t *driver, int error, const char *call)
{
    return error == RMM_DRIVER_OK ? RMM_OK : rmm__driver_error(driver, error, call);
}

/* An attribute of a device; untouched on failure, which is what rmm__driver_error() says of
 * `call`. */
rmm_status_t rmm__driver_attribute(
    const rmm_driver_t *driver, rmm_driver_attribute_t attribute, int device,
    const char *call, int *value_out);

/* RMM_OK if the device has this ability, an attribute of its own; else RMM_ERR_UNSUPPORTED, and
 * the last error is "device 0 " and `lacks`. */
rmm_status_t rmm__driver_require(
    const rmm_driver_t *driver, rmm_driver_attribute_t attribute, int device,
    const char *lacks);

/*
 * A scope in which any slow call of the driver is allowed: the resource's device is
 * current, and this thread's capture mode is relaxed, so that an allocation here does
 * not ruin a graph capture that another thread has under way. Restores both. Not for the
 * fast path (two calls at least).
 */
typedef struct rmm_driver_scope {
    const rmm_driver_t *driver;
    int previous_device; /* -1: it was current already */
    int previous_mode;
} rmm_driver_scope_t;

/* RMM_OK, or what the driver answered, with the last error set; then do not leave. */
rmm_status_t rmm__driver_scope_enter(
    rmm_driver_scope_t *scope, const rmm_driver_t *driver, int device);
void rmm__driver_scope_leave(rmm_driver_scope_t *scope);

/*
 * Around a call with a stream of the caller's. The legacy default stream is that of the
 * current device; for a resource it always means that of its own, which is made current.
 * No call at all for other streams. False: it cannot be; then do not leave.
 */
static inline bool rmm__driver_stream_enter(
    rmm_driver_scope_t *scope, const rmm_driver_t *driver, int device,
    rmm_stream_t stream)
{
    return !rmm_stream_is_default(stream) ||
           rmm__driver_scope_enter(scope, driver, device) == RMM_OK;
}

static inline void
rmm__driver_stream_leave(rmm_driver_scope_t *scope, rmm_stream_t stream)
{
    if (rmm_stream_is_default(stream)) {
        rmm__driver_scope_leave(scope);
    }
}

/*
 * The same around a call that would ruin the capture of another thread: the mode is relaxed
 * for every stream. Two calls of a few ns for other streams than the legacy default one.
 * False, with the last error set: do not leave.
 */
bool rmm__driver_relax_enter(
    rmm_driver_scope_t *scope, const rmm_driver_t *driver, int device,
    rmm_stream_t stream);

static inline void rmm__driver_relax_leave(rmm_driver_scope_t *scope)
{
    rmm__driver_scope_leave(scope);
}

/*
 * Wait for all work on the current device, also that of destroyed streams, and leave the
 * graph captures of other threads alone. In a scope only. Returns a driver's error.
 */
int rmm__driver_barrier(const rmm_driver_t *driver);

/*
 * Is all work over that was queued on other devices than `device` before this call? `waits`: if
 * not, wait for these devices, without a call that ruins captures. Else true only if no primary
 * context of any of them is in use; work in other contexts is not seen. In a scope only.
 *
 * Work of another device may itself wait for what this thread is yet to queue: kernels of a
 * collective operation do. Such a wait never ends. So wait only in place of a refusal, and at a
 * pool's end, when memory that others may use goes back.
 */
bool rmm__driver_others_idle(const rmm_driver_t *driver, int device, bool waits);

/*
 * The barrier needs one free block of the device, or its fallback ruins captures. Between
 * keep and drop, which count, one is kept for it, if the device has one. Keep it before the
 * first memory is taken that may fill the device. When one thread keeps and another drops,
 * the drop may come first.
 */
void rmm__driver_barrier_keep(const rmm_driver_t *driver, int device);
void rmm__driver_barrier_drop(const rmm_driver_t *driver, int device);
/* Take the block if it is missing, as after keep() on a full device. No driver call if it is
 * there. */
void rmm__driver_barrier_refill(const rmm_driver_t *driver, int device);
/* An allocation of so many bytes has failed. Free the block if only its memory is missing, and
 * only the caller keeps it. True: try again, then refill. The last error stays. */
bool rmm__driver_barrier_yield(const rmm_driver_t *driver, int device, uint64_t bytes);
/* What taking the block would cost the device at most; 0: it is there. */
uint64_t rmm__driver_barrier_need(int device);

/* Wait for the device's legacy default stream, leaving captures alone. RMM_OK or why not. */
rmm_status_t rmm__driver_wait_default_stream(int device);

/*
 * Wait for a stream of the caller's, leaving the captures of other threads alone: while one
 * captures in global mode, cudaStreamSynchronize of any stream ruins it unless this
 * thread's mode is relaxed (docs/decisions/0004). Returns a driver's error.
 */
int rmm__driver_wait_stream(const rmm_driver_t *driver, rmm_stream_t stream);

/* The process sees no other device: nothing of it is used elsewhere. No driver call but the
 * first time. */
bool rmm__driver_has_one_device(const rmm_driver_t *driver);

/*
 * Before memory is freed by a call that waits for one device alone: wait for the stream that
 * it is freed on, which may be another's. A stream that captures has nothing queued; the legacy
 * default one is that of the resource's own device, for which the free waits. Returns a driver's
 * error.
 */
int rmm__driver_wait_before_free(const rmm_driver_t *driver, rmm_stream_t stream);

/* What a device has free. */
rmm_status_t
rmm__driver_free_memory(const rmm_driver_t *driver, int device, uint64_t *bytes_out);

/* Wait for all work on this device, leaving captures alone. RMM_OK or why not. */
rmm_status_t rmm__driver_wait_device(const rmm_driver_t *driver, int device);

/*
 * The other devices of this process that can access the memory of `device`. Empty, with a
 * warning, if the driver does not say. Warns as well, once for each, of a device that is in use
 * and cannot: mapped memory and that of memory pools is out of its reach, which the error of a
 * copy would not tell. One call in a process that sees one device, else two for each device.
 */
uint32_t rmm__driver_peers(const rmm_driver_t *driver, int device);

/* Warns that these devices get no access to memory of `what`, which is on `device`, because the
 * driver answered with an error. */
void rmm__driver_warn_shut_out(
    const char *what, const rmm_driver_t *driver, int device, uint32_t shut_out,
    int error);

/*
 * At the end of a resource with live blocks, which any stream of any device may use: wait for
 * this device and, as far as rmm__driver_others_idle() can, for the others. RMM_OK or why not.
 */
rmm_status_t rmm__driver_wait_all_devices(const rmm_driver_t *driver, int device);

/* The table and the calling thread's current device. RMM_OK or why not. */
rmm_status_t rmm__driver_here(const rmm_driver_t **driver_out, int *device_out);

/*
 * Around a driver call that may wait in the kernel, so that the thread is not cancelled in it
 * (core/uncancelled.h). leave() returns its argument.
 */
void rmm__driver_wait_enter(void);
int rmm__driver_wait_leave(int error);
#define RMM_DRIVER_WAITS(call)                                                         \
    (rmm__driver_wait_enter(), rmm__driver_wait_leave((int)(call)))

/*
 * The same around a driver call by which the library itself takes memory or gives it back: a
 * tool that watches the driver's calls from outside leaves it out, since a resource counts it.
 */
void rmm__driver_own_enter(void);
int rmm__driver_own_leave(int error);
/* True if the calling thread is in such a call. */
bool rmm__driver_in_own(void);

#endif /* RMM_DRIVER_DRIVER_H */
