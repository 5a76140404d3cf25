/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the arena resource, shared by its files:
 *   arena_resource.c     the ops, the creator, the books
 *   arena_superblocks.c  which arena has which memory
 *   arena_ladder.c       what is tried, in order, when an arena has no block that fits
 *   arena_report.c       what is said when nothing helped
 *
 * An arena is a pool (pool_impl.h) that is no resource: blocks, a lock, and a slot with a
 * heap and events for every stream that freed in it. So a block that is freed on another
 * stream than it was allocated on, on a stream that is destroyed, by a thread that ends or
 * inside a capture is as safe as in the pool, and for the same reasons. What is new is
 * that there are many: the global arena has all memory; the others borrow superblocks.
 *
 * Which arena serves a stream is a matter of speed only: a hash of the stream's id names
 * one of ARENA_COUNT, made when first needed. Beyond that number streams share arenas.
 * Nothing hangs on a stream handle or a thread's end, and nothing grows with the number of
 * streams that ever were.
 *
 * Units are numbered alike in all arenas: a superblock is one live block of the global
 * arena (its tag says so) and one region of the arena that has it, in the same units.
 * `owners` tells for every granule of 64 KiB whose it is, and is read without a lock: what
 * is live in a superblock keeps it where it is.
 *
 * Locking: each arena's pool.lock, as in the pool. The global arena's may be taken inside
 * another arena's; no other two together. rescue_lock lets one thread at a time search all
 * arenas; it is held across driver calls on purpose, and taken before any arena's lock.
 */
#ifndef RMM_RESOURCES_ARENA_IMPL_H
#define RMM_RESOURCES_ARENA_IMPL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rmm/arena_resource.h>

#include "resources/pool_impl.h"

enum {
    ARENA_COUNT_LOG2 = 6,
    ARENA_COUNT = 1 << ARENA_COUNT_LOG2,
    ARENA_PATIENCE = 32,      /* rounds of questions about events, some 150 ns each */
    ARENA_GRANULE_UNITS = 256 /* 64 KiB: superblocks are multiples, and aligned to it */
};
/* What an arena borrows at once: a share of all memory between 1 and 8 MiB. */
#define ARENA_SUPERBLOCK_SHARE 1024
#define ARENA_SUPERBLOCK_MIN_UNITS 4096u
#define ARENA_SUPERBLOCK_MAX_UNITS 32768u
/* Larger requests are the global arena's: a share too, between 64 KiB and 1 MiB, so that
 * superblocks take little of a small arena. */
#define ARENA_SMALL_SHARE 4096
#define ARENA_SMALL_MIN_UNITS 256u
#define ARENA_SMALL_MAX_UNITS 4096u
/* A request for such a share of all memory is huge, and placed with care. */
#define ARENA_HUGE_SHARE 64

/* Tag of the global arena's blocks that are superblocks. */
#define ARENA_TAG_SUPERBLOCK (POOL_TAG_GIVEN_UP - 1)

typedef struct arena {
    pool_t pool;                /* its base has no more than books and a device */
    rmm_segment_slot_t figures; /* of these books; nobody reads them */
} arena_t;

typedef struct arena_resource {
    rmm_resource_t base; /* first member */
    const rmm_driver_t *driver;
    char *memory; /* the one block */
    uint64_t bytes;
    uint32_t first_unit; /* its number, so that aligned units are aligned memory */
    uint32_t superblock_units; /* what an arena borrows at once where there is plenty */
    uint32_t small_units;      /* larger requests are the global arena's */
    char *dump_path;           /* owned; NULL: no dump */
    arena_t *global;
    _Atomic(arena_t *) arenas[ARENA_COUNT]; /* by rmm__arena_index(); NULL: none yet */
    /* By granule: 0 the global arena, else 1 + index. Written under both arenas' locks. */
    _Atomic(uint8_t) *owners;
    rmm_mutex_t rescue_lock; /* see above */
    rmm_mutex_t dump_lock;   /* while the dump is written: its own file, nothing else */
} arena_resource_t;

static inline arena_resource_t *arena_from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, arena_resource_t, base);
}

/* Ids are given out in sequence: the golden ratio spreads neighbours evenly (Knuth 6.4). */
static inline uint32_t rmm__arena_index(rmm_stream_key_t key)
{
    return (
        uint32_t)((key.stream_id * 0x9e3779b97f4a7c15ull) >> (64 - ARENA_COUNT_LOG2));
}

/* The index-th arena; ARENA_COUNT: the global one. NULL: none yet. */
static inline arena_t *rmm__arena_at(arena_resource_t *self, uint32_t index)
{
    return index == ARENA_COUNT
               ? self->global
               /* acquire: pairs with rmm__arena_make() */
               : atomic_load_explicit(&self->arenas[index], memory_order_acquire);
}

static inline bool
rmm__arena_wants_small(const arena_resource_t *self, const pool_want_t *want)
{
    return want->units <= self->small_units;
}

static inline uint32_t rmm__arena_whole_granules(uint32_t units)
{
    return (units + ARENA_GRANULE_UNITS - 1) / ARENA_GRANULE_UNITS *
           ARENA_GRANULE_UNITS;
}

static inline char *rmm__arena_address_of(const arena_resource_t *self, uint32_t unit)
{
    return self->memory + (uint64_t)(unit - self->first_unit) * POOL_UNIT;
}

/* --- arena_superblocks.c ------------------------------------------------------------ */

/* An arena without memory; NULL without host memory. */
arena_t *rmm__arena_create(arena_resource_t *self);
void rmm__arena_destroy(arena_t *arena);

/* The index-th arena, made if there is none; NULL without host memory. */
arena_t *rmm__arena_make(arena_resource_t *self, uint32_t index);

/*
 * Take a block for `want` and tag it; the padding is the tag. refill: borrow a superblock
 * if nothing fits, which is not for the global arena. RMM_OK, RMM_ERR_OUT_OF_MEMORY
 * (nothing fits; last error untouched) or RMM_ERR_OUT_OF_HOST_MEMORY.
 */
rmm_status_t rmm__arena_take(
    arena_resource_t *self, uint32_t index, const pool_want_t *want, bool refill,
    uint32_t *unit_out);

/* Where a block is that begins at this address: unit and arena. False: nowhere here. */
bool rmm__arena_locate(
    arena_resource_t *self, const void *ptr, uint32_t *unit_out, arena_t **arena_out);

/* Every whole granule that is free for any stream goes back to the global arena, where it
 * merges with its neighbours. */
void rmm__arena_give_back(arena_resource_t *self, uint32_t index);

/* The global arena changed: what /rmm shows of it. */
void rmm__arena_publish_largest_locked(arena_resource_t *self);

/* --- arena_ladder.c ----------------------------------------------------------------- */

/* For a request that neither its arena nor, if it is small, a superblock could serve. */
rmm_status_t rmm__arena_alloc_slow(
    arena_resource_t *self, const pool_want_t *want, uint32_t *unit_out);

/* --- arena_report.c ----------------------------------------------------------------- */

/* Count, dump if asked to, and set the last error: one line with all that an operator asks
 * after an out-of-memory; `why` ends it. Returns RMM_ERR_OUT_OF_MEMORY. */
RMM_COLD rmm_status_t rmm__arena_give_up(
    arena_resource_t *self, const rmm_request_t *request, const char *why);

#endif /* RMM_RESOURCES_ARENA_IMPL_H */
