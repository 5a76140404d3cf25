/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The global engine of an arena refills the engines of its shards with superblocks. A shard returns
 * memory that is clean.
 *
 * A refill keeps stream order. Clean memory stays clean. Memory that the requesting stream
 * itself freed in `global` goes to that stream's heap in the shard, where it counts as
 * freed just now, covered by no event.
 *
 * Locking: the shard's lock is taken before that of `global`, and both are held while
 * `moved` is called.
 */
#ifndef RMM_POOL_REFILL_H
#define RMM_POOL_REFILL_H

#include "pool/engine_impl.h"

/* Units go to a shard and back in multiples of this, aligned to it: 64 KiB. */
#define REFILL_GRANULE_UNITS 256u

typedef struct engine_refill_ops {
    /* These units are the shard's now, or `global`'s again. */
    void (*moved)(void *context, uint64_t unit, uint32_t units, bool to_shard);
    void *context;
} engine_refill_ops_t;

/*
 * Move `units`, a multiple of the granule, that the stream of `alloc` may use.
 * RMM_BLOCKS_OK, NO_FIT or NO_STORAGE.
 */
rmm_blocks_result_t rmm__engine_refill(
    engine_t *global, engine_t *shard, const engine_alloc_t *alloc, uint32_t units,
    const engine_refill_ops_t *ops);

/* Return every clean whole granule of the shard to `global`, where it merges with its
 * neighbours. */
void rmm__engine_give_back(
    engine_t *global, engine_t *shard, const engine_refill_ops_t *ops);

#endif /* RMM_POOL_REFILL_H */
