/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of the base resources, which get every block separately from a source
 * (cudaMalloc, pinned and managed memory, the host's heap, a program's own functions).
 * Their allocations are slow anyway, so they remember each block: they can refuse an invalid
 * free, keep the accounting exact, and free live blocks at their end.
 *
 * A concrete type embeds rmm_tracked_t as its first member, implements obtain() and
 * give_back(), and puts the rmm__tracked_* ops into its table.
 *
 * Locking: `lock` protects `blocks` and the accounting, and is never held during obtain() or
 * give_back(). A block leaves the map, and is counted as free, before it is given back,
 * because the source may return the same address to another thread at once.
 */
#ifndef RMM_RESOURCES_TRACKED_H
#define RMM_RESOURCES_TRACKED_H

#include "base/resource_impl.h"
#include "core/mutex.h"
#include "core/pointer_map.h"

typedef struct rmm_tracked rmm_tracked_t;

/* One per concrete type, static const. */
typedef struct rmm_tracked_source {
    /* Never for 0 bytes. NULL with RMM_OK is returned and not remembered. On failure it sets
     * the last error and leaves *ptr_out unchanged. */
    rmm_status_t (*obtain)(
        rmm_tracked_t *self, const rmm_request_t *request, void **ptr_out);
    /* The size and the alignment are those of the allocation. */
    void (*give_back)(rmm_tracked_t *self, void *ptr, const rmm_request_t *request);
    void (*destroy)(
        rmm_tracked_t *self); /* of what it added to the object; NULL: nothing */
    bool
        keeps_reserve; /* it enters in the accounting what it holds from the driver; else
                           that is the blocks themselves */
    bool may_nest;     /* its memory may come from another resource, which counts it */
} rmm_tracked_source_t;

struct rmm_tracked {
    rmm_resource_t base; /* first member */
    const rmm_tracked_source_t *source;
    rmm_tracked_t **instances; /* the list of shared ones it is in; NULL: not shared */
    rmm_tracked_t *next_instance; /* in that list */
    uint64_t instance_key;        /* distinguishes it from the others of the list */
    rmm_mutex_t lock;             /* protects blocks and the accounting */
    /* owner: the block's alignment, and who has it as held from the driver (tracked.c) */
    rmm_pointer_map_t blocks;
};

static inline rmm_tracked_t *rmm__tracked_from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, rmm_tracked_t, base);
}

/* A new object of `bytes`, a copy of `model`: its source is set, its base and lock are not. As
 * rmm__resource_init(). */
rmm_status_t rmm__tracked_create(
    const rmm_tracked_t *model, size_t bytes, const rmm_resource_desc_t *desc,
    rmm_tracked_t **out);

/* One more reference on the shared instance with this key in the list, or NULL. */
rmm_resource_t *rmm__tracked_share(rmm_tracked_t **instances, uint64_t key);

/* Put `fresh` into the list of shared instances, under its instance_key. If another thread
 * was faster, return its instance and release `fresh`. */
rmm_resource_t *rmm__tracked_install(rmm_tracked_t **instances, rmm_tracked_t *fresh);

/* All three: the shared instance with the model's key, which is created if missing. */
rmm_status_t rmm__tracked_get(
    rmm_tracked_t **instances, const rmm_tracked_t *model, size_t bytes,
    const rmm_resource_desc_t *desc, rmm_resource_t **out);

/* The ops. */
rmm_status_t
rmm__tracked_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out);
void rmm__tracked_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request);
rmm_status_t rmm__tracked_trim(rmm_resource_t *mr, size_t keep_bytes);
void rmm__tracked_destroy(rmm_resource_t *mr);

#endif /* RMM_RESOURCES_TRACKED_H */
