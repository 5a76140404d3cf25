/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A resource around an engine (pool/engine.h): `pool` and `fixed_size` are options for it, and
 * share its operations and its accounting. `arena` has an engine's memory in common with them,
 * and operations of its own (arena_impl.h).
 */
#ifndef RMM_RESOURCES_POOL_RESOURCE_H
#define RMM_RESOURCES_POOL_RESOURCE_H

#include "base/resource_impl.h"
#include "pool/engine.h"

/* The device's free memory as it was queried last, for a refusal (pool_report.c). Relaxed: any
 * answer of the last moment will do. */
typedef struct device_free {
    _Atomic(uint64_t) bytes, asked_ns; /* 0: never */
} device_free_t;

typedef struct pool_resource {
    rmm_resource_t base; /* first member */
    const rmm_driver_t *driver;
    engine_t *engine;
    rmm_stream_t upstream_stream;        /* rmm__pool_open_stream() */
    uint64_t maximum_bytes, chunk_bytes; /* as planned */
    uint32_t block_units; /* every block has this size, its gap included; 0: any */
    uint32_t gap_units;   /* behind every block; 1 for a tool or for guards, else 0 */
    uint64_t round_bytes; /* added to a request before its units are counted */
    bool is_range;        /* its memory is counted as held where it is mapped */
    bool may_quarantine;  /* a diagnosis may keep what is freed from use for a while */
    device_free_t device_free;
    _Atomic(rmm_resource_t *) sleep_host; /* pinned memory; NULL: it has not slept */
} pool_resource_t;

/* The plan for a new pool. */
typedef struct pool_plan {
    const rmm_resource_ops_t *ops; /* of its type */
    const engine_owner_t
        *owner_ops;       /* NULL: accounting of a pool, under the engine's lock */
    const char *name;     /* NULL: the type's */
    engine_plan_t engine; /* sizes, and a range or not; the rest is the pool's to say */
} pool_plan_t;

static inline pool_resource_t *pool_from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, pool_resource_t, base);
}

/* --- pool_life.c --------------------------------------------------------------------- */

/* As rmm_pool_resource_create(), the arguments checked. */
rmm_status_t rmm__pool_create(
    rmm_resource_t *upstream, const pool_plan_t *plan, rmm_resource_t **out);

void rmm__pool_destroy(rmm_resource_t *mr);

/* The same with an object of the caller's, all zero, that begins with a pool_resource_t. is_used:
 * as of rmm__engine_close(). */
rmm_status_t rmm__pool_init(
    pool_resource_t *self, rmm_resource_t *upstream, const pool_plan_t *plan);
void rmm__pool_fini(pool_resource_t *self, bool is_used);

/* For rmm__engine_close(): a diagnosis learns that a block still out ends with its resource,
 * the owner. */
void rmm__pool_report_left(void *owner, void *ptr, uint64_t bytes);

/* --- pool_upstream.c ----------------------------------------------------------------- */

/*
 * The stream on which a resource calls its upstream. For an upstream in stream order it is a
 * stream of the resource's own, which is part of no capture: an operation on the legacy stream
 * would ruin the capture of every blocking stream. close() after the last call of upstream.
 */
rmm_status_t rmm__pool_open_stream(pool_resource_t *self);
void rmm__pool_close_stream(const pool_resource_t *self);

/* An upstream's memory for the engine of a pool_resource_t: counted for both sides, ready for
 * every stream, and annotated. */
extern const engine_upstream_t rmm__pool_upstream;

/* At the end of a resource whose memory stays allocated, because another device may still use
 * it: its upstream never ends either, because that would free the memory. */
void rmm__pool_leave_memory(rmm_resource_t *mr);

/* --- pool_requests.c ----------------------------------------------------------------- */

/* Logs the events that the engine reports, when no lock is held. */
RMM_COLD void rmm__pool_log_news(pool_resource_t *self);

static inline void rmm__pool_log_changes(pool_resource_t *self)
{
    if (__builtin_expect(rmm__engine_has_news(self->engine), false)) {
        rmm__pool_log_news(self);
    }
}

RMM_COLD rmm_status_t
rmm__pool_unknown_stream(const pool_resource_t *self, rmm_stream_t stream, int error);

rmm_status_t
rmm__pool_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out);
void rmm__pool_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request);
rmm_status_t rmm__pool_trim(rmm_resource_t *mr, size_t keep_bytes);

/* --- pool_share.c -------------------------------------------------------------------- */

rmm_status_t rmm__pool_share(
    rmm_resource_t *mr, const struct rmm_sharing_request *request,
    struct rmm_shared *shared, bool *is_mine_out);

/* The table of both. */
#define RMM_POOL_OPS(name)                                                             \
    {                                                                                  \
        .type_name = (name), .alloc = rmm__pool_alloc, .dealloc = rmm__pool_dealloc,   \
        .trim = rmm__pool_trim, .destroy = rmm__pool_destroy,                          \
        .ready_on_all_streams = false, .owns_blocks = true,                            \
        .list_blocks = rmm__pool_list_blocks, .share = rmm__pool_share,                \
    }

/* --- pool_sleep.c -------------------------------------------------------------------- */

/* At the end, when the engine has given its buffers back. */
void rmm__pool_close_host(pool_resource_t *self);

/* --- pool_report.c ------------------------------------------------------------------- */

void rmm__pool_list_blocks(rmm_resource_t *mr, struct rmm_block_list *list);

/* Count it and set the last error: one line with all that an operator needs after an
 * out-of-memory, and the last error of before as its reason. Returns the status. */
RMM_COLD rmm_status_t rmm__pool_give_up(
    pool_resource_t *self, const rmm_request_t *request, rmm_status_t status);
/* The same with these figures and this reason; error: the driver's, or RMM_DRIVER_OK. */
RMM_COLD rmm_status_t rmm__pool_say_no_room(
    pool_resource_t *self, const rmm_request_t *request, rmm_status_t status, int error,
    const engine_figures_t *figures, const char *reason);

#endif /* RMM_RESOURCES_POOL_RESOURCE_H */
