/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena resource's operations, its books and its creator. The fast path of a small
 * request is the lock of one arena, which threads on streams of their own share with
 * nobody, and one look into two heaps; of a free the same lock. How blocks change streams,
 * and the locking, are in arena_impl.h.
 *
 * Books: written without a lock, because the arenas have none in common: atomic adds, as
 * the cuda resource.
 */
#include "resources/arena_impl.h"

#include <inttypes.h>

#include "core/diag_attach.h"
#include "core/host_memory.h"
#include "core/options.h"
#include "log/log.h"

#define ARENA_BYTES_MIN ((uint64_t)1024 * 1024)
#define DUMP_PATH_DEFAULT "rmm_arena_memory_dump.log"

/* --- books -------------------------------------------------------------------------- */

static void enter_books(arena_resource_t *self, const pool_want_t *want)
{
    rmm_books_t *books = &self->base.books;
    uint64_t bytes = want->request->bytes;
    uint64_t block_bytes = want->units * POOL_UNIT;

    rmm__request_enter(&self->base, want->request);
    rmm__books_alloc_shared(books, bytes);
    rmm__figure_sub(&books->slot->free_bytes, block_bytes);
    if (block_bytes != bytes) {
        rmm__figure_add(&books->slot->padding_bytes, block_bytes - bytes);
        rmm__place_padding_add(books->place, block_bytes - bytes);
    }
}

/* Before the block can be handed out again. */
static void
leave_books(arena_resource_t *self, const rmm_request_t *request, uint32_t padding)
{
    rmm_books_t *books = &self->base.books;

    rmm__request_settle(&self->base, request);
    rmm__books_free_shared(books, request->bytes);
    rmm__figure_add(&books->slot->free_bytes, request->bytes + padding);
    if (padding != 0) {
        rmm__figure_sub(&books->slot->padding_bytes, padding);
        rmm__place_padding_sub(books->place, padding);
    }
}

/* --- allocate ----------------------------------------------------------------------- */

/* Who the stream is; a failure is the driver's, not a lack of memory. */
static rmm_status_t
stream_key(arena_resource_t *self, rmm_stream_t stream, rmm_stream_key_t *key)
{
    int error = self->driver->stream_key(stream, key);

    if (error == RMM_DRIVER_OK) {
        return RMM_OK;
    }
    return rmm__error_cuda(
        RMM_ERR_BAD_ALLOC, error,
        "arena '%s': asking which stream %p is failed: %s (%d)", self->base.name,
        (void *)stream, self->driver->error_name(error), error);
}

static rmm_status_t
take_small(arena_resource_t *self, const pool_want_t *want, uint32_t *unit_out)
{
    uint32_t home = rmm__arena_index(want->key);

    if (rmm__arena_at(self, home) == NULL && rmm__arena_make(self, home) == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    return rmm__arena_take(self, home, want, false, unit_out);
}

/*
 * Before a large block is cut: if another stream has an event to ask for, take over what
 * all finished ones have freed, this stream's too, so that it merges first. A huge block in
 * a wrong place is what makes the next one fail, so for that the others are asked again for
 * a moment: so many times, not until they are done, which would stop for ever where their
 * work waits for this thread. (Smallest capacity over peak on the trace multi_stream 1.12
 * instead of 1.29.)
 */
static void gather(arena_resource_t *self, const pool_want_t *want)
{
    pool_t *global = &self->global->pool;
    bool is_huge = want->units >= self->bytes / POOL_UNIT / ARENA_HUGE_SHARE;
    int rounds = is_huge ? ARENA_PATIENCE : 1;
    rmm_driver_scope_t scope;

    if (!rmm__pool_others_have_batches(global, &want->key) ||
        rmm__driver_scope_enter(&scope, self->driver, self->base.device) != RMM_OK) {
        return;
    }
    do {
        (void)rmm__pool_reclaim_all(global, NULL);
        rounds--;
    } while (rounds > 0 && rmm__pool_others_have_batches(global, &want->key));
    rmm__driver_scope_leave(&scope);
}

static rmm_status_t
take_large(arena_resource_t *self, const pool_want_t *want, uint32_t *unit_out)
{
    gather(self, want);
    return rmm__arena_take(self, ARENA_COUNT, want, false, unit_out);
}

static rmm_status_t
arena_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    arena_resource_t *self = arena_from_base(mr);
    pool_want_t want = {.request = request};
    rmm_status_t status;
    uint32_t unit;

    if (request->bytes == 0) {
        rmm__request_enter(mr, request);
        rmm__books_alloc_shared(&mr->books, 0);
        *ptr_out = NULL;
        return RMM_OK;
    }
    if (request->bytes > self->bytes) {
        return rmm__arena_give_up(self, request, "that is more than all of it");
    }
    status = stream_key(self, request->stream, &want.key);
    if (status != RMM_OK) {
        return status;
    }
    want.align_units = (uint32_t)(request->align / POOL_UNIT);
    want.units = (uint32_t)((request->bytes + POOL_UNIT - 1) / POOL_UNIT);

    status = rmm__arena_wants_small(self, &want) ? take_small(self, &want, &unit)
                                                 : take_large(self, &want, &unit);
    if (status == RMM_ERR_OUT_OF_MEMORY) {
        status = rmm__arena_alloc_slow(self, &want, &unit);
    }
    if (status == RMM_OK) {
        enter_books(self, &want);
        *ptr_out = rmm__arena_address_of(self, unit);
    }
    return status;
}

/* --- free --------------------------------------------------------------------------- */

/* The block goes to the slot's heap; true: the slot's batch is to be closed. No slot: it
 * is used no more until the resource ends. */
static bool leave_block_locked(
    arena_resource_t *self, arena_t *arena, rmm_block_t block, pool_stream_t *slot,
    const rmm_request_t *request)
{
    pool_t *pool = &arena->pool;
    uint64_t before;

    leave_books(self, request, rmm__suballoc_block_tag(pool->blocks, block));
    if (slot == NULL) {
        rmm__suballoc_block_set_tag(pool->blocks, block, POOL_TAG_GIVEN_UP);
        return false;
    }
    if (arena == self->global) {
        before = rmm__suballoc_largest_free(pool->blocks, slot->heap);
        rmm__suballoc_free(pool->blocks, block, slot->heap, slot->open_stamp);
        rmm__pool_note_largest_locked(pool, slot->heap, before);
        rmm__arena_publish_largest_locked(self);
    } else {
        rmm__suballoc_free(pool->blocks, block, slot->heap, slot->open_stamp);
    }
    return rmm__pool_batch_note_locked(pool, slot, request->bytes);
}

static void arena_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    arena_resource_t *self = arena_from_base(mr);
    const char *refusal = POOL_NO_SUCH_BLOCK;
    pool_stream_t *slot = NULL;
    rmm_block_t block = RMM_BLOCK_NONE;
    rmm_stream_key_t key;
    arena_t *arena;
    uint32_t unit;
    bool close = false;
    bool known;

    if (ptr == NULL) {
        rmm__request_settle(mr, request);
        rmm__books_free_shared(&mr->books, 0);
        return;
    }
    if (!rmm__arena_locate(self, ptr, &unit, &arena)) {
        rmm__resource_refuse_free(mr, ptr, request, refusal);
        return;
    }
    known = self->driver->stream_key(request->stream, &key) == RMM_DRIVER_OK;

    rmm__mutex_lock(&arena->pool.lock);
    block = rmm__pool_block_at_locked(&arena->pool, unit, request->bytes, &refusal);
    if (block != RMM_BLOCK_NONE) {
        slot = rmm__pool_slot_for_free_locked(&arena->pool, known ? &key : NULL);
        close = leave_block_locked(self, arena, block, slot, request);
    }
    rmm__mutex_unlock(&arena->pool.lock);

    if (block == RMM_BLOCK_NONE) {
        rmm__resource_refuse_free(mr, ptr, request, refusal);
    } else if (close) {
        rmm__pool_batch_close(&arena->pool, slot, request->stream);
    }
}

/* --- trim and destroy --------------------------------------------------------------- */

static rmm_status_t arena_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    (void)keep_bytes;
    return rmm__error(
        RMM_ERR_UNSUPPORTED,
        "arena '%s': it has one block from upstream and keeps it: release the resource",
        mr->name);
}

/* A diagnosis learns that a block still out ends with its resource. */
static bool report_left_behind(void *context, const rmm_block_info_t *info)
{
    const arena_resource_t *self = context;

    if (info->heap == RMM_HEAP_NONE && info->tag < ARENA_TAG_SUPERBLOCK) {
        rmm__diag_on_free(
            self->base.instance_id, self->base.device,
            rmm__arena_address_of(self, info->unit),
            info->units * POOL_UNIT - info->tag, RMM_STREAM_LEGACY);
    }
    return true;
}

/* Work on the blocks may still be queued, and upstream may reuse the memory at once. */
static void return_memory(arena_resource_t *self)
{
    const pool_chunk_t chunk = {.address = self->memory, .bytes = self->bytes};
    rmm_driver_scope_t scope;

    if (rmm__driver_scope_enter(&scope, self->driver, self->base.device) == RMM_OK) {
        (void)rmm__driver_barrier(self->driver);
        rmm__driver_scope_leave(&scope);
    }
    for (uint32_t i = 0; i <= ARENA_COUNT; i++) {
        arena_t *arena = rmm__arena_at(self, i);

        if (arena != NULL) {
            rmm__suballoc_walk(arena->pool.blocks, report_left_behind, self);
        }
    }
    rmm__pool_chunk_return(&self->global->pool, &chunk);
}

/* All but the base. */
static void arena_free_all(arena_resource_t *self)
{
    if (self->memory != NULL) {
        return_memory(self);
    }
    for (uint32_t i = 0; i <= ARENA_COUNT; i++) {
        arena_t *arena = rmm__arena_at(self, i);

        if (arena != NULL) {
            rmm__arena_destroy(arena);
        }
    }
    rmm__free(self->owners);
    rmm__free(self->dump_path);
    rmm__mutex_fini(&self->rescue_lock);
    rmm__mutex_fini(&self->dump_lock);
}

static void arena_destroy(rmm_resource_t *mr)
{
    arena_resource_t *self = arena_from_base(mr);

    arena_free_all(self);
    rmm__resource_fini(mr);
    rmm__free(self);
}

static const rmm_resource_ops_t arena_ops = {
    .type_name = "arena",
    .alloc = arena_alloc,
    .dealloc = arena_dealloc,
    .trim = arena_trim,
    .destroy = arena_destroy,
    .ready_on_all_streams = false,
    .settles = true,
};

/* --- create ------------------------------------------------------------------------- */

static rmm_status_t check_options(const rmm_arena_options_t *options)
{
    if (options->arena_bytes != 0 && options->arena_bytes < ARENA_BYTES_MIN) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "arena_bytes %" PRIu64 " is less than a superblock, %" PRIu64,
            options->arena_bytes, ARENA_BYTES_MIN);
    }
    if (options->arena_bytes > POOL_CHUNK_BYTES) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "arena_bytes %" PRIu64 " is more than an arena can divide, %" PRIu64,
            options->arena_bytes, POOL_CHUNK_BYTES);
    }
    return RMM_OK;
}

static rmm_status_t half_of_free(const arena_resource_t *self, uint64_t *bytes_out)
{
    rmm_driver_scope_t scope;
    rmm_status_t status =
        rmm__driver_scope_enter(&scope, self->driver, self->base.device);
    uint64_t free_bytes;
    uint64_t total;
    int error;

    if (status != RMM_OK) {
        return status;
    }
    error = self->driver->memory_info(&free_bytes, &total);
    rmm__driver_scope_leave(&scope);
    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(self->driver, error, "asking how much memory is free");
    }
    if (free_bytes / 2 < ARENA_BYTES_MIN) {
        return rmm__error(
            RMM_ERR_OUT_OF_MEMORY,
            "an arena of half of the %" PRIu64 " bytes that device %d has free is less "
            "than %" PRIu64,
            free_bytes, self->base.device, ARENA_BYTES_MIN);
    }
    *bytes_out = free_bytes / 2 > POOL_CHUNK_BYTES ? POOL_CHUNK_BYTES : free_bytes / 2;
    return RMM_OK;
}

/* A share of all memory between two limits, in units. */
static uint32_t share_of(uint64_t bytes, uint64_t share, uint32_t least, uint32_t most)
{
    uint64_t units = bytes / share / POOL_UNIT;

    units = units > least ? units : least;
    return (uint32_t)(units < most ? units : most);
}

/* The one block, all of it the global arena's. */
static rmm_status_t take_memory(arena_resource_t *self)
{
    pool_t *global = &self->global->pool;
    uint32_t units = (uint32_t)(self->bytes / POOL_UNIT);
    rmm_suballoc_result_t result;
    void *memory;
    rmm_status_t status = rmm__pool_chunk_obtain(global, self->bytes, &memory);

    if (status != RMM_OK) {
        return status;
    }
    self->memory = memory;
    self->first_unit = (uint32_t)((uintptr_t)memory / POOL_UNIT % RMM_SUBALLOC_PHASES);
    self->owners =
        rmm__calloc(((uint64_t)self->first_unit + units) / ARENA_GRANULE_UNITS + 1, 1);
    if (self->owners == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    rmm__mutex_lock(&global->lock);
    result = rmm__suballoc_add_region_at(
        global->blocks, global->clean, self->first_unit, units, 0);
    if (result == RMM_SUBALLOC_OK) {
        rmm__pool_figures_locked(global);
        rmm__arena_publish_largest_locked(self);
    }
    rmm__mutex_unlock(&global->lock);
    if (result != RMM_SUBALLOC_OK) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    RMM_BOOKS_SET(&self->base.books, reserved_bytes, self->bytes);
    RMM_BOOKS_SET(&self->base.books, free_bytes, self->bytes);
    RMM_BOOKS_SET(&self->base.books, growth_count, 1);
    return RMM_OK;
}

static rmm_status_t set_up(arena_resource_t *self, const rmm_arena_options_t *options)
{
    rmm_status_t status = RMM_OK;

    self->bytes = options->arena_bytes;
    if (self->bytes == 0) {
        status = half_of_free(self, &self->bytes);
        if (status != RMM_OK) {
            return status;
        }
    }
    self->bytes = self->bytes / POOL_UNIT * POOL_UNIT;
    self->superblock_units = rmm__arena_whole_granules(share_of(
        self->bytes, ARENA_SUPERBLOCK_SHARE, ARENA_SUPERBLOCK_MIN_UNITS,
        ARENA_SUPERBLOCK_MAX_UNITS));
    self->small_units = share_of(
        self->bytes, ARENA_SMALL_SHARE, ARENA_SMALL_MIN_UNITS, ARENA_SMALL_MAX_UNITS);
    if (options->dump_on_failure != 0) {
        self->dump_path = rmm__strdup(
            options->dump_path != NULL ? options->dump_path : DUMP_PATH_DEFAULT);
        if (self->dump_path == NULL) {
            return RMM_ERR_OUT_OF_HOST_MEMORY;
        }
    }
    self->global = rmm__arena_create(self);
    return self->global != NULL ? take_memory(self) : RMM_ERR_OUT_OF_HOST_MEMORY;
}

static rmm_status_t init_arena(
    arena_resource_t *self, rmm_resource_t *upstream,
    const rmm_arena_options_t *options)
{
    rmm_status_t status = rmm__resource_init(
        &self->base, &(rmm_resource_desc_t){
                         .ops = &arena_ops,
                         .name = options->name,
                         .upstream = upstream,
                         .properties = rmm_resource_properties(upstream),
                         .device = upstream->device,
                     });

    if (status != RMM_OK) {
        return status;
    }
    rmm__mutex_init(&self->rescue_lock);
    rmm__mutex_init(&self->dump_lock);
    status = set_up(self, options);
    if (status != RMM_OK) {
        arena_free_all(self);
        rmm__resource_fini(&self->base);
    }
    return status;
}

static rmm_status_t create(
    rmm_resource_t *upstream, const rmm_arena_options_t *options, rmm_resource_t **out)
{
    const rmm_driver_t *driver;
    arena_resource_t *self;
    rmm_status_t status;

    if (upstream->device < 0) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED,
            "an arena resource needs the streams of a device, and its upstream '%s' "
            "(%s) "
            "belongs to none: use pinned or managed memory",
            upstream->name, rmm_resource_type(upstream));
    }
    driver = rmm__driver(&status);
    if (driver == NULL) {
        return status;
    }
    self = rmm__calloc(1, sizeof(*self));
    if (self == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    self->driver = driver;
    status = init_arena(self, upstream, options);
    if (status != RMM_OK) {
        rmm__free(self);
        return status;
    }
    rmm__log_info(
        "arena '%s' (%" PRIu32 "): has %" PRIu64 " bytes", self->base.name,
        self->base.instance_id, self->bytes);
    *out = &self->base;
    return RMM_OK;
}

rmm_status_t rmm_arena_resource_create(
    rmm_resource_t *upstream, const rmm_arena_options_t *options, rmm_resource_t **out)
{
    rmm_arena_options_t opts;
    rmm_status_t status;

    RMM_CHECK_ARG(upstream != NULL, "upstream is NULL");
    RMM_CHECK_ARG(out != NULL, "out is NULL");
    status = rmm__options_copy(&opts, sizeof(opts), options, sizeof(opts));
    if (status == RMM_OK) {
        status = check_options(&opts);
    }
    return status == RMM_OK ? create(upstream, &opts, out) : status;
}
