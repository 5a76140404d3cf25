/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of the binning resource: its structures, and what binning_bins.c offers to
 * binning_resource.c.
 */
#ifndef RMM_RESOURCES_BINNING_IMPL_H
#define RMM_RESOURCES_BINNING_IMPL_H

#include "base/resource_impl.h"
#include "core/mutex.h"
#include "core/pointer_map.h"

#define BINNING_SHARDS 16u

typedef struct bin {
    uint64_t bytes;
    rmm_resource_t *mr; /* retained by the binning resource */
} bin_t;

typedef struct bin_table {
    struct bin_table *older;
    uint32_t count;
    bin_t bins[]; /* by size, rising */
} bin_table_t;

typedef struct shard {
    rmm_mutex_t lock;
    rmm_pointer_map_t blocks; /* owner: the resource that gave it */
} shard_t;

typedef struct binning {
    rmm_resource_t base; /* first member */
    rmm_mutex_t add_lock;
    _Atomic(bin_table_t *) table; /* NULL: no bins */
    _Atomic(rmm_resource_t *)
        empty_owner; /* gets requests of no bytes; NULL: none yet */
    shard_t shards[BINNING_SHARDS];
} binning_t;

static inline bin_table_t *rmm__binning_table(const binning_t *self)
{
    /* acquire: pairs with publish_table() */
    return atomic_load_explicit(&self->table, memory_order_acquire);
}

/* The bin that serves this request, or upstream. */
rmm_resource_t *
rmm__binning_choose(const binning_t *self, const rmm_request_t *request);

/* As rmm_binning_resource_add_bin(), the arguments checked. `bin` NULL: one is made. */
rmm_status_t rmm__binning_add(binning_t *self, uint64_t bytes, rmm_resource_t *bin);

#endif /* RMM_RESOURCES_BINNING_IMPL_H */
