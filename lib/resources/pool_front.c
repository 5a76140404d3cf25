/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shards of a front, and the table that tells which of them has which granule. A leaf
 * of the table is made when memory there is lent for the first time, and stays: 4 KiB for
 * 256 MiB.
 */
#include "resources/pool_front.h"

#include "core/host_memory.h"

/* Nobody resets the marks of books that nobody reads. */
static const rmm_control_slot_t no_wishes;

/* --- homes -------------------------------------------------------------------------- */

uint32_t rmm__front_thread(void)
{
    static _Atomic(uint32_t) last;
    static _Thread_local uint32_t number; /* of this thread, from 1; 0: none yet */

    if (number == 0) {
        number = 1 + atomic_fetch_add_explicit(&last, 1, memory_order_relaxed);
    }
    return number - 1;
}

/* --- shards ------------------------------------------------------------------------- */

rmm_status_t rmm__front_pool_init(
    pool_t *pool, const rmm_driver_t *driver, const rmm_resource_t *base)
{
    const rmm_books_t *books = &base->books;

    pool->driver = driver;
    pool->base.device = base->device;
    pool->base.upstream = base->upstream; /* borrowed */
    pool->base.books = (rmm_books_t){
        .slot = books->slot,
        .stripes = books->stripes,
        .wishes = books->wishes,
        .place = books->place,
        .record = books->record,
        .place_wishes = books->place_wishes,
        /* the user of the place is the resource alone */
    };
    pool->is_shared = true; /* with the streams of other shards */
    rmm__mutex_init(&pool->lock);
    rmm__mutex_init(&pool->grow_lock);
    return rmm__pool_blocks_init(pool);
}

void rmm__front_pool_fini(pool_t *pool)
{
    rmm__pool_streams_fini(pool);
    if (pool->blocks != NULL) {
        rmm__suballoc_destroy(pool->blocks);
    }
    rmm__mutex_fini(&pool->lock);
    rmm__mutex_fini(&pool->grow_lock);
}

static void shard_destroy(front_shard_t *shard)
{
    rmm__front_pool_fini(&shard->pool);
    rmm__free(shard);
}

static front_shard_t *shard_create(const pool_t *back)
{
    front_shard_t *shard = rmm__calloc(1, sizeof(*shard));

    if (shard == NULL) {
        return NULL;
    }
    if (rmm__front_pool_init(&shard->pool, back->driver, &back->base) != RMM_OK) {
        shard_destroy(shard);
        return NULL;
    }
    shard->pool.base.books.slot = &shard->figures;
    shard->pool.base.books.stripes = NULL; /* under the shard's lock: plain stores */
    shard->pool.base.books.wishes = &no_wishes;
    return shard;
}

pool_t *rmm__front_make(pool_front_t *front, uint32_t index)
{
    pool_t *there = rmm__front_at(front, index);
    front_shard_t *found = NULL;
    front_shard_t *fresh;

    if (there != NULL) {
        return there;
    }
    fresh = shard_create(front->back);
    if (fresh == NULL) {
        return NULL;
    }
    /* release: pairs with rmm__front_at(); acquire: another thread's shard is whole */
    if (atomic_compare_exchange_strong_explicit(
            &front->shards[index], &found, fresh, memory_order_acq_rel,
            memory_order_acquire)) {
        return &fresh->pool;
    }
    shard_destroy(fresh);
    return &found->pool;
}

/* --- who has what ------------------------------------------------------------------- */

static bool leaf_make(_Atomic(front_leaf_t *) *place)
{
    front_leaf_t *leaf;

    /* relaxed: only written under the back's lock */
    if (atomic_load_explicit(place, memory_order_relaxed) != NULL) {
        return true;
    }
    leaf = rmm__calloc(1, sizeof(*leaf));
    /* release: pairs with rmm__front_owner() */
    atomic_store_explicit(place, leaf, memory_order_release);
    return leaf != NULL;
}

bool rmm__front_owners_reserve(pool_front_t *front, uint32_t first_unit, uint32_t units)
{
    uint32_t last = (first_unit + (units - 1)) / FRONT_GRANULE_UNITS;

    RMM_ASSERT_LOCKED(&front->back->lock);
    for (uint32_t i = first_unit / FRONT_GRANULE_UNITS / FRONT_LEAF_GRANULES;
         i <= last / FRONT_LEAF_GRANULES; i++) {
        if (!leaf_make(&front->leaves[i])) {
            return false;
        }
    }
    return true;
}

void rmm__front_owners_set(
    pool_front_t *front, uint32_t first_unit, uint32_t units, uint32_t index)
{
    uint32_t first = first_unit / FRONT_GRANULE_UNITS;
    uint32_t count = units / FRONT_GRANULE_UNITS;
    uint8_t owner = index == FRONT_BACK ? 0 : (uint8_t)(index + 1);

    RMM_ASSERT_LOCKED(&front->back->lock);
    for (uint32_t i = first; i < first + count; i++) {
        front_leaf_t *leaf = atomic_load_explicit(
            &front->leaves[i / FRONT_LEAF_GRANULES], memory_order_relaxed);

        /* relaxed: see rmm__front_owner() */
        atomic_store_explicit(
            &leaf->owners[i % FRONT_LEAF_GRANULES], owner, memory_order_relaxed);
    }
}

/* --- books -------------------------------------------------------------------------- */

void rmm__front_enter_books(pool_front_t *front, const pool_want_t *want)
{
    rmm_books_t *books = &front->mr->books;
    uint64_t bytes = want->request->bytes;
    uint64_t padding = want->units * POOL_UNIT - bytes;
    uint32_t stripe = rmm__stripe_here();

    rmm__request_enter_striped(front->mr, want->request, padding, stripe);
    rmm__books_alloc_striped(books, stripe, bytes, padding);
}

void rmm__front_count_nothing(
    pool_front_t *front, const rmm_request_t *request, bool is_free)
{
    if (is_free) {
        rmm__request_settle(front->mr, request, 0);
        rmm__books_free_shared(&front->mr->books, 0);
    } else {
        rmm__request_enter(front->mr, request, 0);
        rmm__books_alloc_shared(&front->mr->books, 0);
    }
}

/* Before the block can be handed out again, if it ever is: without a slot, it is not. */
static void leave_books(
    pool_front_t *front, const pool_stream_t *slot, const rmm_request_t *request,
    uint32_t padding)
{
    rmm_books_t *books = &front->mr->books;
    uint32_t stripe = rmm__stripe_here();

    rmm__request_settle_striped(front->mr, request, padding, stripe);
    if (slot == NULL) { /* first, or it would be free for a moment */
        rmm__figure_sub(&books->slot->free_bytes, request->bytes + padding);
    }
    rmm__books_free_striped(books, stripe, request->bytes, padding);
}

/* --- free --------------------------------------------------------------------------- */

/* The block goes to the slot's heap. No slot: it is used no more until the resource ends. */
static void leave_block_locked(
    pool_front_t *front, pool_t *pool, rmm_block_t block, pool_stream_t *slot,
    const rmm_request_t *request)
{
    uint32_t padding = rmm__suballoc_block_tag(pool->blocks, block);

    leave_books(front, slot, request, padding);
    if (slot == NULL) {
        rmm__suballoc_block_set_tag(pool->blocks, block, POOL_TAG_GIVEN_UP);
        return;
    }
    rmm__suballoc_free(pool->blocks, block, slot->heap, slot->open_stamp);
    if (pool == front->back) {
        rmm__pool_note_freed_locked(pool, slot->heap, block);
        rmm__pool_show_largest_locked(pool);
    }
    RMM_ASSERT_HEAVY(rmm__suballoc_check(pool->blocks) == NULL);
}

/* Does the block at this unit begin at this address? The two may have been told to belong
 * together before a far chunk came (pool_chunks.c), which was given other numbers. */
static bool
is_there_locked(const pool_front_t *front, const pool_t *pool, front_place_t place)
{
    pool_t *back = front->back;
    bool is_there;

    if (!rmm__pool_has_far_chunks(back)) {
        return true;
    }
    if (pool != back) {
        rmm__mutex_lock(&back->lock);
    }
    is_there = rmm__pool_address_of_locked(back, place.unit) == place.ptr;
    if (pool != back) {
        rmm__mutex_unlock(&back->lock);
    }
    return is_there;
}

/* The live block that this free names, or NONE and in *refusal_out why it names none. */
static rmm_block_t find_block_locked(
    const pool_front_t *front, const pool_t *pool, front_place_t place, size_t bytes,
    const char **refusal_out)
{
    rmm_block_t block = rmm__pool_block_at_locked(pool, place.unit, bytes, refusal_out);

    if (block != RMM_BLOCK_NONE && !is_there_locked(front, pool, place)) {
        *refusal_out = POOL_NO_SUCH_BLOCK;
        return RMM_BLOCK_NONE;
    }
    return block;
}

bool rmm__front_give(
    pool_front_t *front, pool_t *pool, front_place_t place,
    const rmm_request_t *request, const rmm_stream_key_t *key, const char **refusal_out)
{
    pool_closing_t closing;
    rmm_block_t block;

    closing.slot = NULL;
    if (key != NULL && key->capture_id != 0) {
        rmm__pool_capture_open(pool, *key, request->stream);
    }
    rmm__mutex_lock(&pool->lock);
    block = find_block_locked(front, pool, place, request->bytes, refusal_out);
    if (block != RMM_BLOCK_NONE) {
        pool_stream_t *slot = rmm__pool_slot_for_free_locked(pool, key, block);

        leave_block_locked(front, pool, block, slot, request);
        if (slot != NULL) {
            rmm__pool_batch_note_locked(pool, slot, request->bytes, &closing);
        }
    }
    if (atomic_load_explicit(&front->back->hopeless, memory_order_relaxed) != 0) {
        rmm__pool_hope(front->back); /* what is beside it may be in another shard */
    }
    rmm__mutex_unlock(&pool->lock);

    if (closing.slot != NULL) {
        rmm__pool_batch_close(pool, &closing, request->stream);
        if (!closing.native) {
            rmm__pool_hope(front->back); /* what the slot has may be had from now on */
        }
    }
    return block != RMM_BLOCK_NONE;
}

/* --- all of it ---------------------------------------------------------------------- */

/* A share of all memory between two limits, in units. */
static uint32_t share_of(uint64_t bytes, uint64_t share, uint32_t least, uint32_t most)
{
    uint64_t units = bytes / share / POOL_UNIT;

    units = units > least ? units : least;
    return (uint32_t)(units < most ? units : most);
}

void rmm__front_measure(pool_front_t *front, uint64_t bytes)
{
    uint32_t fixed = front->back->block_units;

    /* relaxed: a matter of speed only */
    atomic_store_explicit(
        &front->superblock_units,
        rmm__front_whole_granules(share_of(
            bytes, FRONT_SUPERBLOCK_SHARE, FRONT_SUPERBLOCK_MIN_UNITS,
            FRONT_SUPERBLOCK_MAX_UNITS)),
        memory_order_relaxed);
    atomic_store_explicit(
        &front->small_units,
        fixed != 0 ? fixed
                   : share_of(
                         bytes, FRONT_SMALL_SHARE, FRONT_SMALL_MIN_UNITS,
                         FRONT_SMALL_MAX_UNITS),
        memory_order_relaxed);
}

void rmm__front_init(pool_front_t *front, rmm_resource_t *mr, pool_t *back)
{
    front->mr = mr;
    front->back = back;
    rmm__mutex_init(&front->rescue_lock);
    rmm__front_measure(front, back->reserved_bytes);
}

void rmm__front_fini(pool_front_t *front)
{
    for (uint32_t i = 0; i < FRONT_SHARDS; i++) {
        front_shard_t *shard =
            atomic_load_explicit(&front->shards[i], memory_order_relaxed);

        if (shard != NULL) {
            shard_destroy(shard);
        }
    }
    for (uint32_t i = 0; i < FRONT_LEAVES; i++) {
        rmm__free(atomic_load_explicit(&front->leaves[i], memory_order_relaxed));
    }
    rmm__mutex_fini(&front->rescue_lock);
}

void rmm__front_walk(
    const pool_front_t *front, bool (*fn)(void *context, const rmm_block_info_t *info),
    void *context)
{
    for (uint32_t i = 0; i < FRONT_SHARDS; i++) {
        const pool_t *pool = rmm__front_at(front, i);

        if (pool != NULL) {
            rmm__suballoc_walk(pool->blocks, fn, context);
        }
    }
}
