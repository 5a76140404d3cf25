/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena resource's operations and its creator. The fast path of a small request is the
 * lock of one arena, which threads on streams of their own share with nobody, and one look
 * into two heaps; of a free the same lock. How blocks change streams, and the locking, are
 * in pool_front.h.
 */
#include "resources/arena_impl.h"

#include <inttypes.h>

#include "core/diag_attach.h"
#include "core/host_memory.h"
#include "core/options.h"
#include "log/log.h"

#define ARENA_BYTES_MIN ((uint64_t)1024 * 1024)
#define DUMP_PATH_DEFAULT "rmm_arena_memory_dump.log"

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
    pool_t *global = &self->global;
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
    return rmm__front_take(&self->front, FRONT_BACK, want, false, unit_out);
}

static rmm_status_t
arena_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    arena_resource_t *self = arena_from_base(mr);
    pool_want_t want = {.request = request};
    rmm_status_t status;
    uint32_t unit;

    if (request->bytes == 0) {
        rmm__front_count_nothing(&self->front, request, false);
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

    status = rmm__front_wants_small(&self->front, &want)
                 ? rmm__front_take_small(&self->front, &want, &unit)
                 : take_large(self, &want, &unit);
    if (status == RMM_ERR_OUT_OF_MEMORY) {
        status = rmm__arena_alloc_slow(self, &want, &unit);
    }
    if (status == RMM_OK) {
        rmm__front_enter_books(&self->front, &want);
        *ptr_out = rmm__arena_address_of(self, unit);
    }
    return status;
}

/* --- free --------------------------------------------------------------------------- */

/* Where a block is that begins at this address: unit and arena. False: nowhere here. */
static bool locate(const arena_resource_t *self, front_place_t *place, pool_t **arena)
{
    uint64_t offset = (uint64_t)((uintptr_t)place->ptr - (uintptr_t)self->memory);

    if (offset >= self->bytes || offset % POOL_UNIT != 0) {
        return false;
    }
    place->unit = self->first_unit + (uint32_t)(offset / POOL_UNIT);
    *arena = rmm__front_owner(&self->front, place->unit);
    return true;
}

static void arena_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    arena_resource_t *self = arena_from_base(mr);
    const char *refusal = POOL_NO_SUCH_BLOCK;
    rmm_stream_key_t key;
    front_place_t place = {.ptr = ptr};
    pool_t *arena;
    bool known;

    if (ptr == NULL) {
        rmm__front_count_nothing(&self->front, request, true);
        return;
    }
    if (locate(self, &place, &arena)) {
        known = self->driver->stream_key(request->stream, &key) == RMM_DRIVER_OK;
        if (rmm__front_give(
                &self->front, arena, place, request, known ? &key : NULL, &refusal)) {
            return;
        }
    }
    rmm__resource_refuse_free(mr, ptr, request, refusal);
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

    if (info->heap == RMM_HEAP_NONE && info->tag < POOL_TAG_SUPERBLOCK) {
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
    rmm__suballoc_walk(self->global.blocks, report_left_behind, self);
    rmm__front_walk(&self->front, report_left_behind, self);
    rmm__pool_chunk_return(&self->global, &chunk);
}

/* All but the base. */
static void arena_free_all(arena_resource_t *self)
{
    if (self->memory != NULL) {
        return_memory(self);
    }
    rmm__front_fini(&self->front);
    rmm__front_pool_fini(&self->global);
    rmm__free(self->dump_path);
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

/* The one block, all of it the global arena's. */
static rmm_status_t take_memory(arena_resource_t *self)
{
    pool_t *global = &self->global;
    uint32_t units = (uint32_t)(self->bytes / POOL_UNIT);
    rmm_suballoc_result_t result;
    void *memory;
    rmm_status_t status = rmm__pool_chunk_obtain(global, self->bytes, &memory);

    if (status != RMM_OK) {
        return status;
    }
    self->memory = memory;
    self->first_unit = (uint32_t)((uintptr_t)memory / POOL_UNIT % RMM_SUBALLOC_PHASES);
    rmm__mutex_lock(&global->lock);
    result = rmm__suballoc_add_region_at(
        global->blocks, global->clean, self->first_unit, units, 0);
    if (result == RMM_SUBALLOC_OK) {
        global->reserved_bytes = self->bytes;
        rmm__pool_figures_locked(global);
        rmm__front_measure(&self->front, self->bytes);
    }
    rmm__mutex_unlock(&global->lock);
    if (result != RMM_SUBALLOC_OK) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    RMM_BOOKS_SET(&self->base.books, growth_count, 1);
    return RMM_OK;
}

static rmm_status_t set_up(arena_resource_t *self, const rmm_arena_options_t *options)
{
    rmm_status_t status =
        rmm__front_pool_init(&self->global, self->driver, &self->base);

    rmm__front_init(&self->front, &self->base, &self->global);
    if (status != RMM_OK) {
        return status;
    }
    self->global.shares_books = true;
    rmm__books_free_is_rest(&self->base.books);
    self->front.by_stream = true;
    self->front.takes_captures = true;
    self->bytes = options->arena_bytes;
    if (self->bytes == 0) {
        status = half_of_free(self, &self->bytes);
        if (status != RMM_OK) {
            return status;
        }
    }
    self->bytes = self->bytes / POOL_UNIT * POOL_UNIT;
    if (options->dump_on_failure != 0) {
        self->dump_path = rmm__strdup(
            options->dump_path != NULL ? options->dump_path : DUMP_PATH_DEFAULT);
        if (self->dump_path == NULL) {
            return RMM_ERR_OUT_OF_HOST_MEMORY;
        }
    }
    return take_memory(self);
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
