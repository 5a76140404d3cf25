/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base that every resource embeds as its FIRST member, and its ops table.
 *
 * Rules for implementers:
 *  - ops tables are static const; one per concrete type. Every op but refresh(),
 *    is_equal() and list_blocks() is mandatory; an op that the type does not support returns
 *    RMM_ERR_UNSUPPORTED.
 *  - The public wrappers in resource.c have already checked arguments: bytes is at most
 *    PTRDIFF_MAX, align is a power of two from RMM_ALIGN_DEFAULT to RMM_ALIGN_MAX,
 *    pointers are not NULL (but for a free of 0 bytes).
 *  - 0 bytes: alloc() counts one allocation and yields NULL, dealloc() of NULL counts it
 *    as freed.
 *  - alloc() writes *ptr_out only when it returns RMM_OK. The resource that obtains a block
 *    counts it up (base/count.h), and the same resource counts it down. If it then cannot
 *    return the block, it frees it as the user would.
 *  - dealloc() first checks the free. If it is invalid, dealloc() calls
 *    rmm__resource_refuse_free() and changes nothing. Else it counts the block down before
 *    it can be allocated again.
 *  - A resource that allocates from its upstream for itself (a pool's chunk) passes a request
 *    with `user` false. One that passes a request through (an adaptor) passes the caller's
 *    request, and the user's bytes are counted once.
 *  - No call of upstream, the driver or a callback while a lock is held.
 *  - destroy() frees what the resource holds, calls rmm__resource_fini(), frees itself.
 *
 * Fork: in a child of a process that has resources every ops table is replaced by one
 * that refuses (resource.c), because neither CUDA nor another thread's locks survive.
 */
#ifndef RMM_BASE_RESOURCE_IMPL_H
#define RMM_BASE_RESOURCE_IMPL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmm/resource.h>
#include <rmm/sys/diag.h>

#include "core/error.h"
#include "core/options.h"
#include "publish/accounting.h"
#include "publish/requests.h"

/* One call, as the user or a resource above made it. */
typedef struct rmm_request {
    size_t bytes;
    size_t align;
    rmm_stream_t stream;
    bool user;     /* counted at the location: a user holds this memory */
    bool sync;     /* requested by rmm_resource_alloc_sync() or _dealloc_sync() */
    bool *refused; /* set true by a refused free; NULL: the caller need not know */
    struct rmm_block_facts
        *facts_out; /* an allocation: for a diagnosis; NULL: for none */
} rmm_request_t;

/* The program frees a block with another size than it has, and the resource is about to free it all
 * the same. For a diagnosis. */
void rmm__resource_tell_wrong_size(
    rmm_resource_t *mr, const void *ptr, const rmm_request_t *request, size_t bytes);

/* Facts about a block that only the resource knows that it comes from. */
typedef struct rmm_block_facts {
    uintptr_t end;  /* up to here memory is the block's alone; 0: unknown */
    uint32_t flags; /* RMM_DIAG_BLOCK_KEPT or RMM_DIAG_BLOCK_RETURNED */
} rmm_block_facts_t;

/* The block of this request is one of the driver's, up to `end`, and goes back to it. */
static inline void
rmm__request_tell_returned(const rmm_request_t *request, uintptr_t end)
{
    if (__builtin_expect(request->facts_out != NULL, false)) {
        *request->facts_out = (rmm_block_facts_t){end, RMM_DIAG_BLOCK_RETURNED};
    }
}

/* The same of a resource that keeps the memory when the block is freed, and calls
 * rmm__diag_on_gone() before it gives that back. */
static inline void rmm__request_tell_kept(const rmm_request_t *request, uintptr_t end)
{
    if (__builtin_expect(request->facts_out != NULL, false)) {
        *request->facts_out = (rmm_block_facts_t){end, RMM_DIAG_BLOCK_KEPT};
    }
}

struct rmm_block_list;
struct rmm_sharing_request;
struct rmm_shared;

typedef struct rmm_resource_ops {
    const char *type_name; /* "pool": stable, shown in /rmm */
    rmm_status_t (*alloc)(
        rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out);
    void (*dealloc)(rmm_resource_t *mr, void *ptr, const rmm_request_t *request);
    rmm_status_t (*trim)(rmm_resource_t *mr, size_t keep_bytes);
    void (*destroy)(rmm_resource_t *mr);
    /* Before somebody reads the accounting: bring up to date what only the driver knows.
     * Writes nothing but the accounting. NULL: they always are. */
    void (*refresh)(const rmm_resource_t *mr);
    /* What alloc() returns may be used on every stream at once (cudaMalloc), not only
     * in the order of the stream of the request. */
    bool ready_on_all_streams;
    /* The blocks are its own, and it counts them. False for what only passes requests on to its
     * upstream (an adaptor). */
    bool owns_blocks;
    /* Two resources whose tables have the same function, which are not the same. NULL: a
     * resource equals itself only. */
    bool (*is_equal)(const rmm_resource_t *a, const rmm_resource_t *b);
    /* It waits by itself where a request is `sync`: the caller need not synchronise a stream. */
    bool waits_for_sync;
    /* Add its chunks and blocks to a report, in the calls of block_list.h: an operator looks.
     * NULL: it has none of its own. */
    void (*list_blocks)(rmm_resource_t *mr, struct rmm_block_list *list);
    /* Describe memory of a block for other processes. is_mine: this resource shares its memory;
     * else its upstream may, and nothing else was written. NULL: it never does. */
    rmm_status_t (*share)(
        rmm_resource_t *mr, const struct rmm_sharing_request *request,
        struct rmm_shared *shared, bool *is_mine_out);
} rmm_resource_ops_t;

#define RMM_RESOURCE_MAGIC 0x4d4d5252u /* arbitrary, never zero */

struct rmm_resource {
    uint32_t magic; /* cleared at the end: use after release asserts in debug builds */
    uint32_t instance_id;
    _Atomic(const rmm_resource_ops_t *) ops; /* replaced in a forked child */
    _Atomic(uint32_t) references;
    uint32_t properties;      /* RMM_*_ACCESSIBLE */
    int device;               /* CUDA ordinal; -1: needs no driver */
    rmm_resource_t *upstream; /* retained; NULL for a base resource */
    char *name;               /* owned */
    rmm_accounting_t accounting;
    _Atomic(uint64_t) zero_count; /* live allocations of no bytes */
    _Atomic(uint64_t) null_bytes; /* live and NULL: a base resource counts its own */
    _Atomic(uint64_t)
        promised_bytes;           /* of allocations under way, while there is a limit */
    _Atomic(uint64_t) limit_told; /* limits.c */
    _Atomic(void *) user_data;    /* the program's */
    rmm_resource_t *next, *previous; /* all resources of the process (resource.c) */
};

#define RMM_CONTAINER_OF(ptr, type, member)                                            \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

typedef struct rmm_resource_desc {
    const rmm_resource_ops_t *ops;
    const char *name;         /* NULL: the type's */
    rmm_resource_t *upstream; /* retained by init */
    uint32_t properties;
    int device;          /* where its driver calls are made; -1: it makes none */
    bool in_host_memory; /* counted at the host's location, whatever the device is */
} rmm_resource_desc_t;

/*
 * Fill the base: name, accounting, one reference, the process's list. Opens the segment and the
 * location when first needed.
 * Returns RMM_OK, RMM_ERR_OUT_OF_HOST_MEMORY, or the driver's error about the device.
 */
rmm_status_t rmm__resource_init(rmm_resource_t *mr, const rmm_resource_desc_t *desc);

/* The same for one of its upstream's device and properties. */
rmm_status_t rmm__resource_init_over(
    rmm_resource_t *mr, const rmm_resource_ops_t *ops, const char *name,
    rmm_resource_t *upstream);

/* The checks that a creator over an upstream begins with: RMM_ERR_INVALID_ARGUMENT where
 * upstream or out is NULL, else rmm__options_copy() into *opts, a struct that no release has
 * enlarged. */
#define RMM_OPTIONS_OVER(upstream, out, opts, options)                                 \
    ((upstream) == NULL                                                                \
         ? rmm__error_check(RMM_ERR_INVALID_ARGUMENT, __func__, "upstream is NULL")    \
     : (out) == NULL                                                                   \
         ? rmm__error_check(RMM_ERR_INVALID_ARGUMENT, __func__, "out is NULL")         \
         : rmm__options_copy((opts), sizeof(*(opts)), (options), sizeof(*(opts))))

/* One more reference, unless the last one is gone already (for shared instances). */
bool rmm__resource_try_retain(rmm_resource_t *mr);

/* In a forked child: made before the fork, it refuses all and makes no driver call. Code
 * that would call the driver for it checks this first. */
bool rmm__resource_is_forked(const rmm_resource_t *mr);

/* It passes requests on to its upstream, and keeps no memory. Bins keep some. */
bool rmm__resource_is_adaptor(const rmm_resource_t *mr);

/* Undo init: for the error path of a creator, and the end of release. */
void rmm__resource_fini(rmm_resource_t *mr);

/* The first one after `last`, in the order of creation, that the program has allocated from, so
 * that its own creation is over; retained. NULL: there is none. last: the one before, which is
 * released; or NULL. */
rmm_resource_t *rmm__resource_next_used(rmm_resource_t *last);

/* No limit applies to it, as far as the caller knows. */
static inline rmm_status_t rmm__resource_alloc_unlimited(
    rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    /* relaxed: the table itself is constant */
    return atomic_load_explicit(&mr->ops, memory_order_relaxed)
        ->alloc(mr, request, ptr_out);
}

/* With limits and trims of /rmm: limits.c. */
rmm_status_t
rmm__limits_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out);

/* The calls of one resource on another: no argument checks, `user` as the request says. */
static inline rmm_status_t
rmm__resource_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    return rmm__requests_pending()
               ? rmm__limits_alloc(mr, request, ptr_out)
               : rmm__resource_alloc_unlimited(mr, request, ptr_out);
}

static inline void
rmm__resource_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    atomic_load_explicit(&mr->ops, memory_order_relaxed)->dealloc(mr, ptr, request);
}

/* Subtract an amount from a figure; false, and no change, if the figure is smaller. */
bool rmm__figure_take(_Atomic(uint64_t) *figure, uint64_t amount);

/* Upstream returned NULL for 1 byte or more (rmm/custom_resource.h, unchecked). `mr` cannot
 * remember NULL: free it. Returns RMM_ERR_BAD_ALLOC. */
rmm_status_t rmm__resource_refuse_null(
    rmm_resource_t *mr, rmm_resource_t *upstream, const rmm_request_t *request);

/* Put an event of this call into the trace, which is on (trace.h). */
void rmm__resource_trace(
    const rmm_resource_t *mr, uint32_t action, const void *ptr,
    const rmm_request_t *request);

/* Count and log an invalid free, and tell the caller through the request; `why` completes
 * "refused free of ...". */
void rmm__resource_refuse_free(
    rmm_resource_t *mr, const void *ptr, const rmm_request_t *request, const char *why);

/* Log that this block, which the resource remembers as live, was freed at its upstream. */
void rmm__resource_warn_stale(const rmm_resource_t *mr, const void *ptr, size_t bytes);

#endif /* RMM_BASE_RESOURCE_IMPL_H */
