/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arenas, the superblocks that they divide, and the table of their owners.
 *
 * All engines share striped accounting. An allocation is counted outside of any lock, a
 * free under its engine's lock, before the block can be allocated again.
 */
#include "core/hash.h"
#include "resources/arena_impl.h"

#include "base/count.h"
#include "core/host_memory.h"

/* Size of a superblock: a share of all memory, between 1 and 8 MiB. */
#define SUPERBLOCK_SHARE 1024
#define SUPERBLOCK_LEAST_UNITS 4096u
#define SUPERBLOCK_MOST_UNITS 32768u
/* Requests above this size are served by `global`: a share too, between 64 KiB and 1 MiB, so that
 * superblocks do not take much of a small arena. */
#define SMALL_SHARE 4096
#define SMALL_LEAST_UNITS 256u
#define SMALL_MOST_UNITS 4096u

/* --- accounting ---------------------------------------------------------------------- */

static void count_freed(
    void *owner, const engine_free_t *freed, uint64_t padding,
    const engine_figures_t *figures, bool is_marked)
{
    arena_resource_t *self = owner;
    const rmm_request_t request = {.bytes = freed->bytes, .user = is_marked};

    (void)figures;
    rmm__count_free(&self->pool.base, &request, padding);
}

static void count_lost(void *owner, uint64_t bytes)
{
    arena_resource_t *self = owner;

    rmm__figure_sub(&self->pool.base.accounting.slot->free_bytes, bytes);
}

/* largest_free_bytes is that of `global`; shards do not report theirs. */
static void show_global(void *owner, const engine_figures_t *figures)
{
    arena_resource_t *self = owner;
    rmm_accounting_t *accounting = &self->pool.base.accounting;

    RMM_ACCOUNTING_SET(accounting, largest_free_bytes, figures->largest_free_bytes);
    RMM_ACCOUNTING_SET(accounting, reserved_bytes, figures->reserved_bytes);
    RMM_ACCOUNTING_SET(accounting, growth_count, figures->growth_count);
    RMM_ACCOUNTING_SET(accounting, sync_count, figures->sync_count);
}

static void global_allocated(
    void *owner, const engine_alloc_t *alloc, uint64_t padding,
    const engine_figures_t *figures)
{
    (void)alloc;
    (void)padding;
    show_global(owner, figures);
}

static void global_freed(
    void *owner, const engine_free_t *freed, uint64_t padding,
    const engine_figures_t *figures, bool is_marked)
{
    count_freed(owner, freed, padding, figures, is_marked);
    show_global(owner, figures);
}

const engine_owner_t rmm__arena_accounting = {
    .allocated = global_allocated,
    .freed = global_freed,
    .lost = count_lost,
    .figures = show_global};

static const engine_owner_t shard_accounting = {
    .freed = count_freed, .lost = count_lost};

/* --- creation and end ---------------------------------------------------------------- */

/* A share of all memory between two limits, in units. */
static uint32_t share_of(uint64_t bytes, uint64_t share, uint32_t least, uint32_t most)
{
    uint64_t units = bytes / share / RMM_BLOCKS_UNIT;

    units = units > least ? units : least;
    return (uint32_t)(units < most ? units : most);
}

static uint64_t granule_of(const void *ptr)
{
    return (uintptr_t)ptr / RMM_BLOCKS_UNIT / REFILL_GRANULE_UNITS;
}

rmm_status_t rmm__arena_open(arena_resource_t *self)
{
    const engine_chunks_t *chunks = &self->pool.engine->chunks;
    rmm_index_entry_t chunk = {0};
    uint64_t granules;

    (void)rmm__index_at(&chunks->nodes, &chunks->tree, UINT64_MAX, &chunk);
    self->memory = (char *)(uintptr_t)(chunk.unit * RMM_BLOCKS_UNIT);
    self->superblock_units = share_of(
                                 self->bytes, SUPERBLOCK_SHARE, SUPERBLOCK_LEAST_UNITS,
                                 SUPERBLOCK_MOST_UNITS) /
                             REFILL_GRANULE_UNITS * REFILL_GRANULE_UNITS;
    self->small_units =
        share_of(self->bytes, SMALL_SHARE, SMALL_LEAST_UNITS, SMALL_MOST_UNITS);
    self->first_granule = granule_of(self->memory);
    granules = granule_of(self->memory + self->bytes - 1) - self->first_granule + 1;
    self->owners = rmm__calloc(granules, sizeof(*self->owners));
    return self->owners != NULL ? RMM_OK : RMM_ERR_OUT_OF_HOST_MEMORY;
}

bool rmm__arena_close(arena_resource_t *self)
{
    bool is_idle = true;

    for (uint32_t i = 0; i < ARENA_SHARDS; i++) {
        engine_t *shard = rmm__arena_at(self, i);

        if (shard != NULL) {
            is_idle &= rmm__engine_close(shard, false, rmm__pool_report_left);
            rmm__engine_destroy(shard);
        }
    }
    rmm__free(self->owners);
    return is_idle;
}

/* --- shards -------------------------------------------------------------------------- */

/* The calling thread's number, which never changes: 0 for the first thread that calls, then 1. */
static uint32_t thread_number(void)
{
    static _Atomic(uint32_t) last;
    static _Thread_local uint32_t number; /* from 1; 0: none yet */

    if (number == 0) {
        number = 1 + atomic_fetch_add_explicit(&last, 1, memory_order_relaxed);
    }
    return number - 1;
}

uint32_t rmm__arena_own_shard(rmm_stream_key_t key)
{
    /* threads and ids of streams are numbered in sequence: the golden ratio spreads
     * neighbours evenly (Knuth 6.4) */
    uint64_t number = thread_number() + key.stream_id;

    return (uint32_t)(rmm__hash(number) >> (64 - ARENA_SHARDS_LOG2));
}

engine_t *rmm__arena_at(const arena_resource_t *self, uint32_t index)
{
    /* acquire: pairs with rmm__arena_make() */
    return index == ARENA_GLOBAL
               ? self->pool.engine
               : atomic_load_explicit(&self->shards[index], memory_order_acquire);
}

uint32_t
rmm__arena_engines(const arena_resource_t *self, engine_t *out[ARENA_GLOBAL + 1])
{
    uint32_t count = 0;

    for (uint32_t i = 0; i <= ARENA_GLOBAL; i++) {
        out[count] = rmm__arena_at(self, i);
        count += out[count] != NULL;
    }
    return count;
}

static engine_t *make_shard(arena_resource_t *self)
{
    const engine_plan_t plan = {
        .driver = self->pool.driver,
        .device = self->pool.base.device,
        .owner = self,
        .owner_ops = &shard_accounting,
        .is_shared = true,
        .maximum_bytes = UINT64_MAX};
    engine_t *shard;

    if (rmm__engine_create(&plan, &shard) != RMM_OK) {
        return NULL;
    }
    if (rmm__engine_open(shard, &plan) != RMM_OK) {
        (void)rmm__engine_close(shard, false, NULL);
        rmm__engine_destroy(shard);
        return NULL;
    }
    return shard;
}

engine_t *rmm__arena_make(arena_resource_t *self, uint32_t index)
{
    engine_t *found = rmm__arena_at(self, index);
    engine_t *fresh;

    if (found != NULL) {
        return found;
    }
    fresh = make_shard(self);
    if (fresh == NULL) {
        return NULL;
    }
    /* release: pairs with rmm__arena_at(); acquire: another thread's shard is whole */
    if (atomic_compare_exchange_strong_explicit(
            &self->shards[index], &found, fresh, memory_order_acq_rel,
            memory_order_acquire)) {
        return fresh;
    }
    (void)rmm__engine_close(fresh, false, NULL);
    rmm__engine_destroy(fresh);
    return found;
}

engine_t *rmm__arena_owner(const arena_resource_t *self, const void *ptr)
{
    uint64_t offset = (uint64_t)((uintptr_t)ptr - (uintptr_t)self->memory);
    uint32_t owner;

    if (offset >= self->bytes) {
        return NULL;
    }
    /* relaxed: a thread that frees a block got it from one that had the lock */
    owner = atomic_load_explicit(
        &self->owners[granule_of(ptr) - self->first_granule].index,
        memory_order_relaxed);
    return rmm__arena_at(self, owner == 0 ? ARENA_GLOBAL : owner - 1);
}

/* --- refills --------------------------------------------------------------------------- */

typedef struct change_of_owner {
    arena_resource_t *self;
    uint32_t index; /* the shard's */
} change_of_owner_t;

static void set_owner(void *context, uint64_t unit, uint32_t units, bool to_shard)
{
    const change_of_owner_t *change = context;
    uint64_t first = unit / REFILL_GRANULE_UNITS - change->self->first_granule;
    uint8_t owner = to_shard ? (uint8_t)(change->index + 1) : 0;

    for (uint64_t i = 0; i < units / REFILL_GRANULE_UNITS; i++) {
        /* relaxed: see rmm__arena_owner() */
        atomic_store_explicit(
            &change->self->owners[first + i].index, owner, memory_order_relaxed);
    }
}

static uint32_t whole_granules(uint64_t units)
{
    return (
        uint32_t)((units + REFILL_GRANULE_UNITS - 1) / REFILL_GRANULE_UNITS * REFILL_GRANULE_UNITS);
}

rmm_blocks_result_t
rmm__arena_refill(arena_resource_t *self, uint32_t index, const engine_alloc_t *alloc)
{
    change_of_owner_t change = {self, index};
    const engine_refill_ops_t ops = {set_owner, &change};
    engine_t *shard = rmm__arena_at(self, index);
    uint32_t need = whole_granules(rmm__engine_need(&alloc->block) / RMM_BLOCKS_UNIT);
    uint32_t units = self->superblock_units > need ? self->superblock_units : need;
    rmm_blocks_result_t result =
        rmm__engine_refill(self->pool.engine, shard, alloc, units, &ops);

    while (result == RMM_BLOCKS_NO_FIT && units > need) {
        units = whole_granules(units / 2);
        units = units > need ? units : need;
        result = rmm__engine_refill(self->pool.engine, shard, alloc, units, &ops);
    }
    return result;
}

void rmm__arena_give_back(arena_resource_t *self)
{
    for (uint32_t i = 0; i < ARENA_SHARDS; i++) {
        change_of_owner_t change = {self, i};
        const engine_refill_ops_t ops = {set_owner, &change};
        engine_t *shard = rmm__arena_at(self, i);

        if (shard != NULL) {
            rmm__engine_give_back(self->pool.engine, shard, &ops);
        }
    }
}
