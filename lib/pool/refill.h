/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The home engine of an arena lends memory to the engines of its shards. A shard returns
 * memory that is clean.
 *
 * Lending keeps stream order. Clean memory stays clean. Memory that the requesting stream
 * itself freed in the home goes to that stream's heap in the shard, where it counts as
 * freed just now, covered by no event.
 *
 * Locking: the shard's lock is taken before the home's, and both are held while
 * `moved` is called.
 */
#ifndef RMM_POOL_REFILL_H
#define RMM_POOL_REFILL_H

#include "pool/engine_impl.h"

/* Units are lent and given back in multiples of this, aligned to it: 64 KiB. */
#define REFILL_GRANULE_UNITS 256u

typedef struct engine_refill_ops {
    /* These units are the shard's now, or the home's again. */
    void (*moved)(void *context, uint64_t unit, uint32_t units, bool is_lent);
    void *context;
} engine_refill_ops_t;

/*
 * Lend `units`, a multiple of the granule, that the stream of `alloc` may use.
 * RMM_BLOCKS_OK, NO_FIT or NO_STORAGE.
 */
rmm_blocks_result_t rmm__engine_refill(
    engine_t *home, engine_t *shard, const engine_alloc_t *alloc, uint32_t units,
    const engine_refill_ops_t *ops);

/* Return every clean whole granule of the shard to the home, where it merges with its
 * neighbours. */
void rmm__engine_give_back(
    engine_t *home, engine_t *shard, const engine_refill_ops_t *ops);

#endif /* RMM_POOL_REFILL_H */
