/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A front: many pools with a lock each before one that has all memory, the back. The arena
 * resource always has one; a pool opens one when threads get in each other's way.
 *   pool_front.c         the shards, and which has which memory
 *   pool_front_loans.c   superblocks are borrowed from the back and given back
 *   pool_front_ladder.c  what is tried when a shard, or the back, has no block that fits
 *   pool_crowd.c         when a pool opens its front, and what then goes through it
 *
 * A shard is a pool (pool_impl.h) that is no resource: blocks, a lock, and a slot with a
 * heap and events for every stream that freed in it. So a block that is freed on another
 * stream than it was allocated on, on a stream that is destroyed, by a thread that ends or
 * inside a capture is as safe as in the pool, and for the same reasons. What is new is
 * that there are many: the back has all memory; the shards borrow superblocks.
 *
 * Which shard serves a request is a matter of speed only, so that threads are what counts:
 * they get in each other's way on one stream as on several. A thread's requests go to one of
 * FRONT_SHARDS, of an arena resource to one for each stream, made when first needed. What is
 * freed on a stream is used again on that stream, by other threads too once their shard has
 * nothing. Beyond that number they share shards. Nothing hangs on a stream handle or a
 * thread's end, and nothing grows with the number of streams or threads that ever were.
 *
 * Units are numbered alike everywhere: a superblock is one live block of the back (its tag
 * says so) and one region of the shard that has it, in the same units. An owner table
 * tells for every granule of 64 KiB whose it is, and is read without a lock: what is live
 * in a superblock keeps it where it is.
 *
 * The back's books are shared (pool_impl.h): they count what all shards hand out. A
 * shard's own figures nobody reads.
 *
 * Locking: each shard's and the back's pool.lock, as in the pool. The back's may be taken
 * inside a shard's; no other two together. rescue_lock lets one thread at a time search all
 * shards; it is held across driver calls on purpose, and taken before any other lock.
 */
#ifndef RMM_RESOURCES_POOL_FRONT_H
#define RMM_RESOURCES_POOL_FRONT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "resources/pool_impl.h"

enum {
    FRONT_SHARDS_LOG2 = 6,
    FRONT_SHARDS = 1 << FRONT_SHARDS_LOG2,
    FRONT_BACK = FRONT_SHARDS, /* the back's index */
    FRONT_GRANULE_UNITS =
        256,            /* 64 KiB: superblocks are multiples, and aligned to it */
    FRONT_RESCUES = 16, /* so many searches of all shards are no reason to grow */
    /* The owner table: leaves of 256 MiB each, made when memory there is lent. */
    FRONT_LEAF_GRANULES = 4096,
    FRONT_LEAVES = 4096
};
/* What a shard borrows at once: a share of all memory between 1 and 8 MiB. */
#define FRONT_SUPERBLOCK_SHARE 1024
#define FRONT_SUPERBLOCK_MIN_UNITS 4096u
#define FRONT_SUPERBLOCK_MAX_UNITS 32768u
/* Larger requests are the back's: a share too, between 64 KiB and 1 MiB, so that
 * superblocks take little of little memory. */
#define FRONT_SMALL_SHARE 4096
#define FRONT_SMALL_MIN_UNITS 256u
#define FRONT_SMALL_MAX_UNITS 4096u

typedef struct front_shard {
    pool_t pool;                /* its base has no more than books and a device */
    rmm_segment_slot_t figures; /* of these books; nobody reads them */
} front_shard_t;

/* By granule: 0 the back, else 1 + index. Written under both pools' locks. */
typedef struct front_leaf {
    _Atomic(uint8_t) owners[FRONT_LEAF_GRANULES];
} front_leaf_t;

typedef struct pool_front {
    rmm_resource_t *mr; /* whose front it is: its books count what is handed out */
    pool_t *back;       /* its books are the same slot */
    _Atomic(uint32_t) superblock_units; /* borrowed at once where there is plenty */
    _Atomic(uint32_t) small_units;      /* larger requests are the back's */
    bool by_stream;                /* a thread has a shard for each stream; else one */
    bool takes_captures;           /* requests of captures are not the back's */
    rmm_mutex_t rescue_lock;       /* see above */
    uint32_t rescues;              /* since shards were given more; rescue_lock's */
    _Atomic(uint64_t) grown_bytes; /* that the log has not been told of */
    _Atomic(front_shard_t *) shards[FRONT_SHARDS]; /* NULL: none yet */
    _Atomic(front_leaf_t *) leaves[FRONT_LEAVES];  /* NULL: all of it the back's */
} pool_front_t;

/* The calling thread's number: 0 for the first that asks, then 1, for ever. */
uint32_t rmm__front_thread(void);

/*
 * The index of the shard where a request of the calling thread is at home. Threads and ids of
 * streams are numbered in sequence: the golden ratio spreads neighbours evenly (Knuth 6.4).
 * With one thread alone it is the stream that counts, the same in each run.
 */
static inline uint32_t rmm__front_home(const pool_front_t *front, rmm_stream_key_t key)
{
    uint64_t number = rmm__front_thread() + (front->by_stream ? key.stream_id : 0);

    return (uint32_t)((number * 0x9e3779b97f4a7c15ull) >> (64 - FRONT_SHARDS_LOG2));
}

/* The index-th shard's pool, or the back. NULL: none yet. */
static inline pool_t *rmm__front_at(const pool_front_t *front, uint32_t index)
{
    front_shard_t *shard;

    if (index == FRONT_BACK) {
        return front->back;
    }
    /* acquire: pairs with rmm__front_make() */
    shard = atomic_load_explicit(&front->shards[index], memory_order_acquire);
    return shard != NULL ? &shard->pool : NULL;
}

/* Whose the granule of this unit is; the owner of a live block's does not change. */
static inline pool_t *rmm__front_owner(const pool_front_t *front, uint32_t unit)
{
    uint32_t granule = unit / FRONT_GRANULE_UNITS;
    /* acquire: pairs with leaf_make() */
    const front_leaf_t *leaf = atomic_load_explicit(
        &front->leaves[granule / FRONT_LEAF_GRANULES], memory_order_acquire);
    uint32_t owner = 0;

    if (leaf != NULL) {
        /* relaxed: whoever frees a block got it from a thread that had the lock */
        owner = atomic_load_explicit(
            &leaf->owners[granule % FRONT_LEAF_GRANULES], memory_order_relaxed);
    }
    return rmm__front_at(front, owner == 0 ? FRONT_BACK : owner - 1);
}

/* Is this for a shard? */
static inline bool
rmm__front_wants_small(const pool_front_t *front, const pool_want_t *want)
{
    return want->units <=
               atomic_load_explicit(&front->small_units, memory_order_relaxed) &&
           (want->key.capture_id == 0 || front->takes_captures);
}

static inline uint32_t rmm__front_whole_granules(uint32_t units)
{
    return (units + FRONT_GRANULE_UNITS - 1) / FRONT_GRANULE_UNITS *
           FRONT_GRANULE_UNITS;
}

/* --- pool_front.c ------------------------------------------------------------------- */

/* A pool that is no resource: a shard or an arena resource's back. RMM_OK or
 * RMM_ERR_OUT_OF_HOST_MEMORY; fini also after a failure. */
rmm_status_t rmm__front_pool_init(
    pool_t *pool, const rmm_driver_t *driver, const rmm_resource_t *base);
void rmm__front_pool_fini(pool_t *pool);

/* Over a pool whose books are shared; without a shard yet. Allocates nothing. */
void rmm__front_init(pool_front_t *front, rmm_resource_t *mr, pool_t *back);
/* All shards, with what they have out; the back stays. */
void rmm__front_fini(pool_front_t *front);

/* The back holds so many bytes now: what is small, and how much is borrowed at once. */
void rmm__front_measure(pool_front_t *front, uint64_t bytes);

/* The index-th shard's pool, made if there is none; NULL without host memory. */
pool_t *rmm__front_make(pool_front_t *front, uint32_t index);

/* Whole granules change hands: to a shard, or FRONT_BACK. reserve() makes room for it, and
 * is false without host memory. The locks of both are held. */
bool rmm__front_owners_reserve(
    pool_front_t *front, uint32_t first_unit, uint32_t units);
void rmm__front_owners_set(
    pool_front_t *front, uint32_t first_unit, uint32_t units, uint32_t index);

/* Where a block is said to begin. */
typedef struct front_place {
    const void *ptr;
    uint32_t unit;
} front_place_t;

/* What was handed out enters the books. */
void rmm__front_enter_books(pool_front_t *front, const pool_want_t *want);
/* An allocation of no bytes, or its free. */
void rmm__front_count_nothing(
    pool_front_t *front, const rmm_request_t *request, bool is_free);

/* Free the block at this address and unit of a shard or the back, books and all. key NULL: a stream
 * that cannot be told. False: there is no such block, and in *refusal_out why. */
bool rmm__front_give(
    pool_front_t *front, pool_t *pool, front_place_t place,
    const rmm_request_t *request, const rmm_stream_key_t *key,
    const char **refusal_out);

/* Every block of all shards, see rmm__suballoc_walk(); not the back's. */
void rmm__front_walk(
    const pool_front_t *front, bool (*fn)(void *context, const rmm_block_info_t *info),
    void *context);

/* --- pool_front_loans.c ------------------------------------------------------------- */

/*
 * Take a block for `want` of one shard or the back, and tag it; the padding is the tag. No
 * books. refill: borrow a superblock if nothing fits, which is not for the back. RMM_OK,
 * RMM_ERR_OUT_OF_MEMORY (nothing fits; last error untouched) or
 * RMM_ERR_OUT_OF_HOST_MEMORY.
 */
rmm_status_t rmm__front_take(
    pool_front_t *front, uint32_t index, const pool_want_t *want, bool refill,
    uint32_t *unit_out);

/* Every whole granule of the shards that is free for any stream goes to the back, where it
 * merges with its neighbours. */
void rmm__front_give_back(pool_front_t *front);

/* --- pool_front_ladder.c ------------------------------------------------------------ */

/* A small request at home: what rmm__front_take_small() does when there is no block that
 * fits. Behind what others' events there have finished, with a superblock. */
rmm_status_t
rmm__front_refill(pool_front_t *front, const pool_want_t *want, uint32_t *unit_out);

/* A small request at home. As rmm__front_take(); the back's if there is no host memory. */
static inline rmm_status_t
rmm__front_take_small(pool_front_t *front, const pool_want_t *want, uint32_t *unit_out)
{
    uint32_t home = rmm__front_home(front, want->key);
    rmm_status_t status = RMM_ERR_OUT_OF_MEMORY;

    if (rmm__front_at(front, home) != NULL) {
        status = rmm__front_take(front, home, want, false, unit_out);
    }
    return status == RMM_OK ? RMM_OK : rmm__front_refill(front, want, unit_out);
}

/* A large request of the back; a small one at home, with a superblock if need be. */
rmm_status_t
rmm__front_take_home(pool_front_t *front, const pool_want_t *want, uint32_t *unit_out);

/* The same, else wherever: what is clean elsewhere is as good as what is clean at home. But
 * who lives on others' shards searches them each time: first let them give back. */
rmm_status_t rmm__front_take_anywhere(
    pool_front_t *front, const pool_want_t *want, uint32_t *unit_out);

/* Take over what finished events have freed, everywhere, and give back what is free of
 * superblocks. Asks the driver. */
void rmm__front_reclaim(pool_front_t *front);

/* Let this stream wait, on the device, for others, here and there, until it has a block.
 * RMM_ERR_OUT_OF_MEMORY: it did not help. */
rmm_status_t rmm__front_wait_for_others(
    pool_front_t *front, const pool_want_t *want, uint32_t *unit_out);

/* As the pool's, for the back and all shards; one thread at a time. */
void rmm__front_stamps_close(pool_front_t *front);
void rmm__front_stamps_settle(pool_front_t *front, bool synchronised);

/* --- pool_crowd.c ------------------------------------------------------------------- */

/* NULL: not open. */
static inline pool_front_t *rmm__pool_front(const pool_t *self)
{
    /* acquire: pairs with rmm__pool_front_open() */
    return atomic_load_explicit(&self->front, memory_order_acquire);
}

/* Who has just waited for the lock. */
RMM_COLD void rmm__pool_note_wait_locked(pool_t *self);

/* Without the lock. False: there is no host memory, and the pool goes on without. */
RMM_COLD bool rmm__pool_front_open(pool_t *self);

/* Take the pool's lock, unless there is a front: then that, and nothing is locked. */
static inline pool_front_t *rmm__pool_enter(pool_t *self)
{
    pool_front_t *front = rmm__pool_front(self);

    if (__builtin_expect(front != NULL, false)) {
        return front;
    }
    if (__builtin_expect(rmm__mutex_lock_told(&self->lock), false)) {
        rmm__pool_note_wait_locked(self);
    }
    front = rmm__pool_front(self);
    if (__builtin_expect(front != NULL, false)) { /* opened meanwhile */
        rmm__mutex_unlock(&self->lock);
    }
    return front;
}

/* Give the lock back; open a front where that is called for. */
static inline void rmm__pool_leave(pool_t *self)
{
    bool is_crowded = self->crowd.is_crowded;

    rmm__mutex_unlock(&self->lock);
    if (__builtin_expect(is_crowded, false)) {
        (void)rmm__pool_front_open(self);
    }
}

/* An allocation and a free through the open front. */
rmm_status_t rmm__pool_front_alloc(
    pool_t *self, pool_front_t *front, const pool_want_t *want, void **ptr_out);
void rmm__pool_front_dealloc(
    pool_t *self, pool_front_t *front, void *ptr, const rmm_request_t *request,
    const rmm_stream_key_t *key);
/* As rmm__pool_take_locked(), from wherever there is a block, with a front or without. */
rmm_status_t
rmm__pool_take_anywhere(pool_t *self, const pool_want_t *want, void **ptr_out);

/* The rungs that are about all shards; rescue_lock held. */
rmm_status_t rmm__pool_front_rescue(
    pool_t *self, pool_front_t *front, const pool_want_t *want, void **ptr_out);

/* What the pool should have so that this request fits: a superblock if it is a shard's. */
pool_want_t rmm__pool_front_shape(const pool_t *self, const pool_want_t *want);

/* Add what is free in the shards. */
void rmm__pool_front_add_free(
    pool_t *self, uint64_t *free_bytes, uint64_t *largest_bytes);

/* With the pool. */
void rmm__pool_front_fini(pool_t *self);

#endif /* RMM_RESOURCES_POOL_FRONT_H */
