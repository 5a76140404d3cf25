/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the arena resource, shared by its files:
 *   arena_resource.c  the operations, the creator
 *   arena_alloc_slow.c    the steps, in order, when an arena has no block that fits
 *   arena_shards.c    the arenas, their superblocks, and the table of its owners
 *   arena_report.c    error message and dump when all steps failed
 *
 * The engine of a pool (pool_resource.h), `global`, has all memory: one block from upstream.
 * Many other engines in front of it, the shards, divide superblocks of it
 * (pool/refill.h). Small requests go to a shard, large ones to `global`. RMM calls a
 * shard an arena.
 *
 * The choice of the shard only affects speed: threads on streams of their own never
 * wait for each other. Memory that is freed on a stream is used again on that stream.
 * No state depends on a stream handle or on a thread's end, and none grows with the
 * number of streams or threads: beyond ARENA_SHARDS they share.
 *
 * An owner table records for every granule of 64 KiB which shard has it. It is read
 * without a lock: a granule with a live block does not move.
 *
 * When the arena is nearly full, it divides its memory worse than a pool, because a
 * shard cannot give back a granule with a live block in it. It may refuse a request for
 * which a pool had room.
 *
 * Locking: each engine's lock; a shard's before that of `global`. Threads take turns on
 * the slow path (core/turn.h): the turn is `global`'s, and so is the memory of what has failed.
 */
#ifndef RMM_RESOURCES_ARENA_IMPL_H
#define RMM_RESOURCES_ARENA_IMPL_H

#include <rmm/arena_resource.h>

#include "pool/refill.h"
#include "resources/pool_resource.h"

enum {
    ARENA_SHARDS_LOG2 = 6,
    ARENA_SHARDS = 1 << ARENA_SHARDS_LOG2,
    ARENA_GLOBAL = ARENA_SHARDS /* the index of `global` */
};

/* The owner of a granule: 0 `global`, else 1 + a shard's index. */
typedef struct arena_owner {
    _Atomic(uint8_t) index;
} arena_owner_t;

typedef struct arena_resource {
    pool_resource_t pool; /* first member; its engine is `global` */
    char *memory;         /* the one block */
    uint64_t bytes;
    uint32_t superblock_units; /* of a refill where there is plenty */
    uint32_t small_units;      /* larger requests are `global`'s */
    char *dump_path;           /* owned; NULL: no dump */
    rmm_mutex_t dump_lock; /* while the dump is written: its own file, nothing else */
    _Atomic(engine_t *) shards[ARENA_SHARDS]; /* NULL: none yet */
    arena_owner_t *owners;                    /* by granule */
    uint64_t first_granule;                   /* of the block */
    /* freed since the last synchronise for it, and kept from use by a diagnosis */
    _Atomic(uint64_t) late_bytes;
} arena_resource_t;

static inline arena_resource_t *arena_from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, arena_resource_t, pool.base);
}

/* True if a shard serves this request. */
static inline bool
rmm__arena_is_small(const arena_resource_t *self, const engine_alloc_t *alloc)
{
    return alloc->block.units <= self->small_units;
}

/* --- arena_shards.c ------------------------------------------------------------------ */

/* The index-th engine, or `global`. NULL: none yet. */
engine_t *rmm__arena_at(const arena_resource_t *self, uint32_t index);
/* Those that are there, `global` last; returns how many. */
uint32_t
rmm__arena_engines(const arena_resource_t *self, engine_t *out[ARENA_GLOBAL + 1]);
/* The index-th, created if missing; NULL without host memory. */
engine_t *rmm__arena_make(arena_resource_t *self, uint32_t index);
/* The index of the shard that serves requests of the calling thread. */
uint32_t rmm__arena_own_shard(rmm_stream_key_t key);
/* The engine that a block at this address belongs to; NULL: none. */
engine_t *rmm__arena_owner(const arena_resource_t *self, const void *ptr);

/* The accounting of `global`. */
extern const engine_owner_t rmm__arena_accounting;

/* Prepares a new resource whose pool has its memory. */
rmm_status_t rmm__arena_open(arena_resource_t *self);
/* End the shards. False: as rmm__engine_close(). */
bool rmm__arena_close(arena_resource_t *self);

/* Give the shard of this request a superblock, or less if less is free. */
rmm_blocks_result_t
rmm__arena_refill(arena_resource_t *self, uint32_t index, const engine_alloc_t *alloc);
/* Return every clean whole granule of the shards. */
void rmm__arena_give_back(arena_resource_t *self);

/* --- arena_alloc_slow.c ------------------------------------------------------------------ */

/* For a request that its engine could not serve. */
rmm_status_t rmm__arena_alloc_slow(
    arena_resource_t *self, const rmm_request_t *request, const engine_alloc_t *alloc,
    void **ptr_out);

/* Wait for the device: what was kept from use is free. */
rmm_status_t rmm__arena_synchronise(arena_resource_t *self, bool and_others);

/* --- arena_report.c ------------------------------------------------------------------ */

/* Count, dump if asked to, and set the last error: one line with all that an operator needs
 * after an out-of-memory; `why` ends it. Returns RMM_ERR_OUT_OF_MEMORY. */
RMM_COLD rmm_status_t rmm__arena_give_up(
    arena_resource_t *self, const rmm_request_t *request, const char *why);

#endif /* RMM_RESOURCES_ARENA_IMPL_H */
