/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena resource's operations and its creator. The fast path of a small request is the
 * lock of one arena, which threads on streams of their own do not share, and one look
 * into two heaps; of a free the same lock. See arena_impl.h.
 */
#include "resources/arena_impl.h"

#include <inttypes.h>

#include "base/count.h"
#include "base/diag_attach.h"
#include "core/host_memory.h"

#define ARENA_BYTES_LEAST ((uint64_t)1024 * 1024)
#define DUMP_PATH_DEFAULT "rmm_arena_memory_dump.log"

/* --- allocate ------------------------------------------------------------------------ */

/* An allocation of no bytes, or its free. */
static void
count_nothing(arena_resource_t *self, const rmm_request_t *request, bool is_free)
{
    if (is_free) {
        rmm__count_free(&self->pool.base, request, 0);
    } else {
        rmm__count_alloc(&self->pool.base, request, 0);
    }
}

/*
 * Before a large block is taken: take over what finished events cover, so that it merges
 * first. A huge block in a wrong place is what makes the next one fail.
 */
static rmm_status_t
take_large(arena_resource_t *self, const engine_alloc_t *alloc, void **ptr_out)
{
    rmm_status_t status = rmm__engine_take(self->pool.engine, alloc, false, ptr_out);

    if (status != RMM_ERR_OUT_OF_MEMORY) {
        return status;
    }
    (void)rmm__engine_reclaim(self->pool.engine, ASKED_FOR_LARGE);
    return rmm__engine_take(self->pool.engine, alloc, true, ptr_out);
}

static rmm_status_t
take(arena_resource_t *self, const engine_alloc_t *alloc, void **ptr_out)
{
    engine_t *own;

    if (!rmm__arena_is_small(self, alloc)) {
        return take_large(self, alloc, ptr_out);
    }
    own = rmm__arena_at(self, rmm__arena_own_shard(alloc->key));
    return own != NULL ? rmm__engine_take(own, alloc, true, ptr_out)
                       : RMM_ERR_OUT_OF_MEMORY;
}

static rmm_status_t
arena_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    arena_resource_t *self = arena_from_base(mr);
    engine_alloc_t alloc = {
        .bytes = request->bytes,
        .block.align_units = (uint32_t)(request->align / RMM_BLOCKS_UNIT),
        .stream = request->stream,
        .is_marked = request->user};
    rmm_status_t status;
    int error;

    if (request->bytes == 0) {
        count_nothing(self, request, false);
        *ptr_out = NULL;
        return RMM_OK;
    }
    if (request->bytes > self->bytes) {
        return rmm__arena_give_up(
            self, request, "the request exceeds the size of the arena");
    }
    error = self->pool.driver->stream_key(request->stream, &alloc.key);
    if (error != RMM_DRIVER_OK) {
        return rmm__pool_unknown_stream(&self->pool, request->stream, error);
    }
    alloc.block.units =
        (uint32_t)((request->bytes + self->pool.round_bytes) / RMM_BLOCKS_UNIT);
    status = take(self, &alloc, ptr_out);
    if (status == RMM_ERR_OUT_OF_MEMORY) {
        alloc.block.units -=
            alloc.block.units > self->bytes / RMM_BLOCKS_UNIT; /* all of it: no gap */
        status = rmm__arena_alloc_slow(self, request, &alloc, ptr_out);
    }
    if (status == RMM_OK) {
        rmm__count_alloc(
            mr, request, alloc.block.units * RMM_BLOCKS_UNIT - alloc.bytes);
        rmm__request_tell_kept(
            request,
            (uintptr_t)*ptr_out + (uint64_t)alloc.block.units * RMM_BLOCKS_UNIT);
    }
    return status;
}

/* --- free ---------------------------------------------------------------------------- */

/* The bytes are counted for the whole arena; each of its engines keeps its own. */
RMM_COLD static const char *
free_late(arena_resource_t *self, engine_t *owner, const engine_free_t *freed)
{
    uint64_t most_bytes = rmm__diag_quarantine_bytes(), kept_bytes, before_bytes;
    const char *refusal;

    if (most_bytes == 0) {
        return rmm__engine_free(owner, freed);
    }
    refusal = rmm__engine_free_late(owner, freed, &kept_bytes);
    if (refusal != NULL || kept_bytes == 0) {
        return refusal;
    }
    before_bytes = atomic_fetch_add_explicit(
        &self->late_bytes, freed->bytes, memory_order_relaxed);
    if (before_bytes + freed->bytes > most_bytes) {
        (void)rmm__arena_synchronise(
            self, false); /* if it fails they wait for the next one */
    }
    return NULL;
}

static void arena_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    arena_resource_t *self = arena_from_base(mr);
    engine_free_t freed = {
        .ptr = ptr, .bytes = request->bytes, .stream = request->stream};
    const char *refusal = RMM_ENGINE_NO_SUCH_BLOCK;
    engine_t *owner;

    if (ptr == NULL) {
        count_nothing(self, request, true);
        return;
    }
    owner = rmm__arena_owner(self, ptr);
    if (owner != NULL) {
        freed.has_key =
            self->pool.driver->stream_key(request->stream, &freed.key) == RMM_DRIVER_OK;
        refusal = __builtin_expect(self->pool.may_quarantine, false)
                      ? free_late(self, owner, &freed)
                      : rmm__engine_free(owner, &freed);
    }
    if (refusal != NULL) {
        rmm__resource_refuse_free(mr, ptr, request, refusal);
    }
}

/* --- trim and destroy ---------------------------------------------------------------- */

static rmm_status_t arena_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    (void)keep_bytes;
    return rmm__error(
        RMM_ERR_UNSUPPORTED,
        "arena '%s' cannot be trimmed: it holds its only upstream block until the last "
        "release",
        mr->name);
}

static void arena_fini(arena_resource_t *self)
{
    bool is_idle = rmm__arena_close(self);

    rmm__pool_fini(&self->pool, !is_idle);
    rmm__mutex_fini(&self->dump_lock);
}

static void arena_destroy(rmm_resource_t *mr)
{
    arena_resource_t *self = arena_from_base(mr);

    arena_fini(self);
    rmm__free(self->dump_path);
    rmm__free(self);
}

static const rmm_resource_ops_t arena_ops = {
    .type_name = "arena",
    .alloc = arena_alloc,
    .dealloc = arena_dealloc,
    .trim = arena_trim,
    .destroy = arena_destroy,
    .ready_on_all_streams = false,
    .owns_blocks = true,
};

/* --- create -------------------------------------------------------------------------- */

static rmm_status_t check_options(const rmm_arena_options_t *options)
{
    if (options->arena_bytes != 0 && options->arena_bytes < ARENA_BYTES_LEAST) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "arena_bytes %" PRIu64 " is less than a superblock, %" PRIu64,
            options->arena_bytes, ARENA_BYTES_LEAST);
    }
    if (options->arena_bytes > ENGINE_RUN_BYTES) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "arena_bytes %" PRIu64 " exceeds %" PRIu64
            ", the most that an arena can manage",
            options->arena_bytes, ENGINE_RUN_BYTES);
    }
    return RMM_OK;
}

static rmm_status_t half_of_free(int device, uint64_t *bytes_out)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    uint64_t free_bytes;

    if (driver != NULL) {
        status = rmm__driver_free_memory(driver, device, &free_bytes);
    }
    if (status != RMM_OK) {
        return status;
    }
    if (free_bytes / 2 < ARENA_BYTES_LEAST) {
        return rmm__error(
            RMM_ERR_OUT_OF_MEMORY,
            "an arena of half of the %" PRIu64 " bytes that device %d has free is less "
            "than %" PRIu64,
            free_bytes, device, ARENA_BYTES_LEAST);
    }
    *bytes_out = free_bytes / 2 > ENGINE_RUN_BYTES ? ENGINE_RUN_BYTES : free_bytes / 2;
    return RMM_OK;
}

/* The pool that it is built on, with all its memory, and what an arena has besides. */
static rmm_status_t
init_arena(arena_resource_t *self, rmm_resource_t *upstream, const char *name)
{
    rmm_status_t status = rmm__pool_init(
        &self->pool, upstream,
        &(pool_plan_t){
            .ops = &arena_ops,
            .owner_ops = &rmm__arena_accounting,
            .name = name,
            .engine = {.initial_bytes = self->bytes, .maximum_bytes = self->bytes}});

    if (status != RMM_OK) {
        return status;
    }
    rmm__mutex_init(&self->dump_lock);
    status = rmm__arena_open(self);
    if (status != RMM_OK) {
        arena_fini(self);
        return status;
    }
    RMM_ACCOUNTING_SET(&self->pool.base.accounting, free_bytes, self->bytes);
    return RMM_OK;
}

/* Its size and the path of its dump. */
static rmm_status_t set_up(
    arena_resource_t *self, const rmm_resource_t *upstream,
    const rmm_arena_options_t *options)
{
    rmm_status_t status = RMM_OK;

    self->bytes = options->arena_bytes;
    if (self->bytes == 0 && upstream->device >= 0) { /* else init refuses it */
        status = half_of_free(upstream->device, &self->bytes);
    }
    self->bytes = self->bytes / RMM_BLOCKS_UNIT * RMM_BLOCKS_UNIT;
    if (status == RMM_OK && options->dump_on_failure != 0) {
        self->dump_path = rmm__strdup(
            options->dump_path != NULL ? options->dump_path : DUMP_PATH_DEFAULT);
        status = self->dump_path != NULL ? RMM_OK : RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    return status;
}

static rmm_status_t create(
    rmm_resource_t *upstream, const rmm_arena_options_t *options, rmm_resource_t **out)
{
    arena_resource_t *self = rmm__calloc(1, sizeof(*self));
    rmm_status_t status;

    if (self == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    status = set_up(self, upstream, options);
    if (status == RMM_OK) {
        status = init_arena(self, upstream, options->name);
    }
    if (status != RMM_OK) {
        rmm__free(self->dump_path);
        rmm__free(self);
        return status;
    }
    *out = &self->pool.base;
    return RMM_OK;
}

rmm_status_t rmm_arena_resource_create(
    rmm_resource_t *upstream, const rmm_arena_options_t *options, rmm_resource_t **out)
{
    rmm_arena_options_t opts;
    rmm_status_t status = RMM_OPTIONS_OVER(upstream, out, &opts, options);

    if (status == RMM_OK) {
        status = check_options(&opts);
    }
    return status == RMM_OK ? create(upstream, &opts, out) : status;
}
