/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table through which every CUDA call of the library goes, so that there is one
 * place to fake, fault, count and port. cuda.c fills it from cudart and the driver's
 * entry points, hip.c from AMD's runtime, and librmm-sim, a library of its own, with the
 * simulated GPU (sim/): this header is all that the two libraries share.
 *
 * Contract of every function:
 *  - returns a cudaError_t value as int; RMM_DRIVER_OK (0) is success. A failure leaves
 *    no "last error" behind in the CUDA runtime.
 *  - outputs are written on success only.
 *  - may be called from any thread; applies to the calling thread's current device
 *    unless it names one.
 *  - never call any of them with a lock of this library held.
 */
#ifndef RMM_DRIVER_TABLE_H
#define RMM_DRIVER_TABLE_H

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
    X(posix_handles, RMM_ATTRIBUTE_POSIX_HANDLES,                                      \
      CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103)            \
    X(rdma, RMM_ATTRIBUTE_RDMA,                                                        \
      CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 110)                \
    X(memory_pools, RMM_ATTRIBUTE_MEMORY_POOLS, cudaDevAttrMemoryPoolsSupported, 115)  \
    X(memory_pool_handle_types, RMM_ATTRIBUTE_MEMORY_POOL_HANDLE_TYPES,                \
      cudaDevAttrMemoryPoolSupportedHandleTypes, 119)

/* The same, which the headers have since CUDA 13 at the latest. An older driver does not know them:
 * then the answer is what that driver can do. */
#define RMM_DRIVER_HOST_ATTRIBUTE_MAP(X)                                               \
    X(fabric_handles, RMM_ATTRIBUTE_FABRIC_HANDLES,                                    \
      CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 128)                           \
    X(host_numa_id, RMM_ATTRIBUTE_HOST_NUMA_ID, cudaDevAttrHostNumaId,                 \
      134) /* the node that is nearest to the device; -1: unknown */                   \
    X(host_numa_memory_pools, RMM_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS,                    \
      cudaDevAttrHostNumaMemoryPoolsSupported, 142)                                    \
    X(host_memory_pools, RMM_ATTRIBUTE_HOST_MEMORY_POOLS,                              \
      cudaDevAttrHostMemoryPoolsSupported, 144)

typedef enum rmm_driver_attribute {
#define X(name, ours, cuda, value) ours = value,
    RMM_DRIVER_ATTRIBUTE_MAP(X) RMM_DRIVER_HOST_ATTRIBUTE_MAP(X)
#undef X
} rmm_driver_attribute_t;

typedef struct rmm_driver_event *rmm_driver_event_t;     /* cudaEvent_t, timing off */
typedef struct rmm_driver_mempool *rmm_driver_mempool_t; /* cudaMemPool_t */
typedef uint64_t rmm_driver_physical_t; /* CUmemGenericAllocationHandle */

#define RMM_DRIVER_HOST (-1) /* a location for memory: the host, not a device */

/* The node of a memory pool: of the current device. Else RMM_DRIVER_HOST, any NUMA node of the
 * host, or the number of one, from 0. */
#define RMM_DRIVER_ON_DEVICE (-2)

/* Uses that physical memory is made for, or-ed: handles of these types for other processes, which
 * are values of cudaMemAllocationHandleType, and network cards that access it (GPUDirect RDMA). */
#define RMM_DRIVER_HANDLE_POSIX 0x1u
#define RMM_DRIVER_HANDLE_FABRIC 0x8u
#define RMM_DRIVER_RDMA 0x100u

#define RMM_DRIVER_HANDLE_BYTES 64 /* CUmemFabricHandle */

/* Names memory of this process for another one. */
typedef struct rmm_driver_handle {
    uint32_t type;                                /* one RMM_DRIVER_HANDLE_* */
    int fd;                                       /* POSIX */
    unsigned char bytes[RMM_DRIVER_HANDLE_BYTES]; /* FABRIC */
} rmm_driver_handle_t;

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

    /* Called once, outside of the library's locks, when the table is that of the process: from then
     * on what it loads may call the library. NULL: nothing to do. */
    void (*opened)(void);

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

    /* Stream-ordered memory. A pool of pinned-type memory: of the current device, or of the
     * host, on `node` (RMM_DRIVER_ON_DEVICE, ...), which no device can use before
     * mempool_access(). INVALID_VALUE: no such node, or no pools of the host.
     * handle_types are cudaMemAllocationHandleType bits. The managed pool is the
     * device's own default one (CUDA 13): never destroyed. NOT_SUPPORTED where the
     * runtime or the driver has none. On a stream that captures, an allocation and a
     * free become nodes of the graph, and only what the same capture allocated can be
     * freed. Elsewhere both ruin a capture that another thread has under way in global
     * mode, as mem_alloc() does, unless this thread's mode is relaxed. 0 bytes are no
     * block: NULL, which may be freed. A destroyed pool stays until its last block is
     * free. A block that mem_free() took may count as used for a while. A trim gives back
     * what some synchronisation has seen to be done with. */
    int (*mempool_create)(uint32_t handle_types, int node, rmm_driver_mempool_t *pool);
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
     * is no peer. The host's memory needs no peers. */
    int (*mempool_access)(rmm_driver_mempool_t pool, uint32_t devices);

    /* Between processes, of a pool that was created for handles of `type`: its handle, as that of
     * physical_export(), and the data that names a block of it. An imported pool gives no memory;
     * its blocks are freed by mempool_free(), before the exporter frees them, and it is destroyed
     * as any other. */
    int (*mempool_export)(
        rmm_driver_mempool_t pool, uint32_t type, rmm_driver_handle_t *handle);
    int (*mempool_export_pointer)(
        const void *ptr, unsigned char data[RMM_DRIVER_HANDLE_BYTES]);
    int (*mempool_import)(
        const rmm_driver_handle_t *handle, rmm_driver_mempool_t *pool);
    int (*mempool_import_pointer)(
        rmm_driver_mempool_t pool, const unsigned char data[RMM_DRIVER_HANDLE_BYTES],
        void **ptr);

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
    int (*physical_create)(
        size_t bytes, uint32_t flags, rmm_driver_physical_t *physical);
    int (*physical_release)(rmm_driver_physical_t physical);
    /* A handle of `type`, one of those that the memory was created for. A descriptor is the
     * caller's to close, above those of the standard streams and closed by an exec; it keeps the
     * memory as a mapping does. A fabric handle keeps nothing. An import borrows the handle; what
     * it gives is released as what create() gave. The size is for the caller to know: a mapping
     * of more is refused. */
    int (*physical_export)(
        rmm_driver_physical_t physical, uint32_t type, rmm_driver_handle_t *handle);
    int (*physical_import)(
        const rmm_driver_handle_t *handle, rmm_driver_physical_t *physical);
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
 * The function that librmm-sim exports beside <rmm/sim.h>, under the name RMM_SIM_ENTRY: the table
 * of the simulated GPU. NULL, with a status and a message, if an RMM_SIM_* variable is malformed,
 * or if `version` is not that of librmm-sim: the table has no other mark of its layout.
 */
#define RMM_SIM_ENTRY "rmm_sim_driver"
typedef const rmm_driver_t *(*rmm_sim_driver_fn)(
    const char *version, rmm_status_t *status_out, char *message, size_t message_bytes);

#endif /* RMM_DRIVER_TABLE_H */
