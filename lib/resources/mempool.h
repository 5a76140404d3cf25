/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of the resources over CUDA's memory pools (async, async_view,
 * async_managed), whose blocks the driver allocates in stream order.
 *
 * A pool's memory may be the host's. Then the device is the one that frees and waits are ordered
 * with, and needs access like any other.
 *
 * Every pool in use has one rmm_mempool_t, however many resources use it. The location
 * counts the pool's bytes once, and each of these resources shows them in its own slot.
 * A pool that an async resource made is destroyed with the last resource over it, so a
 * view never outlives it. A pool and all its resources belong to one device, that of
 * the first resource.
 *
 * Only the driver knows how many bytes a pool holds. The resource queries it when the
 * live bytes exceed the last answer, at every MEMPOOL_ASK_EVERY-th allocation, at a
 * trim, and when a program reads the statistics through this library. So /rmm may lag
 * by that many allocations.
 *
 * Cost of an allocation on a stream that the program made: one driver call, and the map
 * of blocks (tracked.h). The legacy default stream costs four calls more, which make
 * the resource's device current.
 *
 * A free on the legacy default stream needs the pool's device to be current. If it cannot be,
 * the block is kept, and freed by the next call that uses that stream, by a trim, or at the end.
 * CUDA refuses the free of a block in a capture that did not allocate it. Such a block is kept
 * until the pool ends, because the graph may use it at each launch.
 *
 * Locking: as tracked.h; `pools_lock` (mempool.c) protects the list of pools and their
 * references. No lock is held during a driver call.
 */
#ifndef RMM_RESOURCES_MEMPOOL_H
#define RMM_RESOURCES_MEMPOOL_H

#include <stdatomic.h>

#include "driver/driver.h"
#include "resources/tracked.h"

#define MEMPOOL_STEP_BYTES ((uint64_t)32 << 20) /* CUDA 13 on an H200 grows a pool so */
#define MEMPOOL_ASK_EVERY 64u /* a power of two; asking costs about as much as a free */

/* The end of a pool when its last resource ends; each value includes the ones before. All but
 * the first wait for the device, as cudaFree does. */
typedef enum rmm_mempool_end {
    RMM_MEMPOOL_LEAVE,  /* nothing: it belongs to the program */
    RMM_MEMPOOL_TRIM,   /* return unused memory to the device */
    RMM_MEMPOOL_DESTROY /* destroy it: a resource created it */
} rmm_mempool_end_t;

/* A block whose free failed: on the legacy default stream, before the driver was called, or in a
 * capture. */
typedef struct rmm_mempool_kept {
    struct rmm_mempool_kept *next;
    void *ptr;
    size_t bytes;
} rmm_mempool_kept_t;

typedef struct rmm_mempool {
    struct rmm_mempool *next;
    const rmm_driver_t *driver;
    rmm_driver_mempool_t handle;
    int device;
    uint32_t location;                /* where its bytes are counted */
    rmm_mempool_end_t end;            /* protected by pools_lock */
    uint32_t references;              /* protected by pools_lock */
    _Atomic(uint64_t) reserved_bytes; /* as counted at the location */
    atomic_bool keeps_barrier;        /* a block for rmm__driver_barrier() */
    /* Lists, which are taken as a whole: what is freed as soon as possible, and at the end. */
    _Atomic(rmm_mempool_kept_t *) kept, kept_to_end;
} rmm_mempool_t;

typedef struct rmm_mempool_resource {
    rmm_tracked_t tracked; /* first member */
    rmm_mempool_t *pool;   /* one reference */
    bool waits;            /* before it refuses a request */
    uint32_t handle_types; /* by which other processes get its blocks; 0: none do */
} rmm_mempool_resource_t;

/* The plan for a new resource. */
typedef struct rmm_mempool_plan {
    const rmm_resource_ops_t *ops; /* made by RMM_MEMPOOL_OPS */
    const char *name;              /* NULL: the type's */
    uint32_t properties;
    const rmm_driver_t *driver;
    int device;
    rmm_driver_mempool_t handle;
    bool in_host_memory;       /* as rmm_resource_desc_t */
    rmm_mempool_end_t end;     /* on failure nothing becomes of it */
    uint32_t handle_types;     /* for other processes; 0: the pool is not shared */
    bool waits;                /* RMM_ASYNC_WAIT_BEFORE_REFUSAL */
    bool keeps_barrier;        /* the pool has memory already */
    rmm_tracked_t **instances; /* shared by all creators; NULL: not shared */
    uint64_t instance_key;
} rmm_mempool_plan_t;

#define RMM_MEMPOOL_OPS(type)                                                          \
    {                                                                                  \
        .type_name = (type), .alloc = rmm__mempool_alloc,                              \
        .dealloc = rmm__tracked_dealloc, .trim = rmm__mempool_trim,                    \
        .destroy = rmm__mempool_destroy, .refresh = rmm__mempool_refresh,              \
        .ready_on_all_streams = false, .owns_blocks = true,                            \
        .share = rmm__mempool_share_block,                                             \
    }

/* The ops. */
rmm_status_t
rmm__mempool_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out);
rmm_status_t rmm__mempool_trim(rmm_resource_t *mr, size_t keep_bytes);
void rmm__mempool_destroy(rmm_resource_t *mr);
void rmm__mempool_refresh(const rmm_resource_t *mr);
rmm_status_t rmm__mempool_share_block(
    rmm_resource_t *mr, const struct rmm_sharing_request *request,
    struct rmm_shared *shared, bool *is_mine_out);

/* RMM_OK, or RMM_ERR_UNSUPPORTED where the device has no memory pools. */
rmm_status_t rmm__mempool_require(const rmm_driver_t *driver, int device);

/* The end of every creator. RMM_OK, RMM_ERR_OUT_OF_HOST_MEMORY, or what the driver
 * answers. */
rmm_status_t
rmm__mempool_resource_create(const rmm_mempool_plan_t *plan, rmm_resource_t **out);

/* Let every device that can access this one's memory use that of the pool, also what it has
 * already. What fails is logged as a warning, once for each pool: the pool serves its own device
 * all the same. In a scope. */
void rmm__mempool_share(
    const rmm_driver_t *driver, int device, rmm_driver_mempool_t pool);
/* The same of a pool in the host's memory: every device of the process. */
void rmm__mempool_share_host(
    const rmm_driver_t *driver, int device, rmm_driver_mempool_t pool);

/* --- mempool.c: the pools themselves ------------------------------------------------ */

/* The pool with this handle, one reference. RMM_OK or RMM_ERR_OUT_OF_HOST_MEMORY. */
rmm_status_t
rmm__mempool_open(const rmm_mempool_plan_t *plan, rmm_mempool_t **pool_out);
/* Drop a reference. The last one subtracts the pool's bytes from the location and ends it;
 * keep_native, after a failure: the driver's pool stays as it is. */
void rmm__mempool_close(rmm_mempool_t *pool, bool keep_native);

/* Before the pool takes memory: keep a block for rmm__driver_barrier(), which must not fail because
 * the pool has all memory of the device. Once; until the pool's end. */
void rmm__mempool_keep_barrier(rmm_mempool_t *pool);
/* Wait for the device, for a trim to return all freed memory. In a scope. A driver's error. */
int rmm__mempool_see_frees(rmm_mempool_t *pool);

/* Wait for the device and `stream`, unless it captures, and return what is unused to the device.
 * True: an allocation may succeed now. */
bool rmm__mempool_wait(rmm_mempool_t *pool, rmm_stream_t stream);

/* Keep a block that was freed on the legacy default stream, or, until the pool's end, one that was
 * freed in a capture. False: no host memory. */
bool rmm__mempool_keep(rmm_mempool_t *pool, void *ptr, size_t bytes, bool to_end);
/* Free the kept blocks on `stream`: the legacy default stream, or one that is ordered after it. In
 * a scope. */
void rmm__mempool_free_kept(rmm_mempool_t *pool, rmm_stream_t stream);
/* Log an error of mempool_free(). */
void rmm__mempool_log_free(
    const rmm_mempool_t *pool, const void *ptr, size_t bytes, int error);

/* Ask the driver what the pool holds, for the location and this slot. RMM_DRIVER_OK or its
 * error. */
int rmm__mempool_ask(rmm_mempool_t *pool, const rmm_accounting_t *accounting);

#endif /* RMM_RESOURCES_MEMPOOL_H */
