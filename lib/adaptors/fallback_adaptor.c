/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocates from an alternate what upstream refuses for lack of memory.
 *
 * A free has to find out where its block is from. The alternate's blocks, and only these, are in a
 * table by address. Before it, `marks` has a counter for each of many groups of addresses: how many
 * blocks of the table are in the group. A free of one of upstream's blocks finds 0 there, almost
 * always, and takes no lock. The counter of a live block is never 0, and a thread that frees
 * one has been given it by the thread that allocated it, so a relaxed load is enough. (Ranges
 * of addresses would not do: the driver puts blocks of both into one range. Nor would a flag in
 * the block, to which the host cannot write.)
 *
 * A block leaves the table before the alternate has it back, because the same address may be
 * handed out again at once. If upstream hands out an address that is in the table, the alternate
 * got that block back by another way, and the entry is stale.
 *
 * Cost: a load to a request and to a free, while the alternate has no blocks; with n of them every
 * free of upstream's takes the lock with a probability of n / MARKS.
 *
 * Locking: `lock` protects `blocks`.
 */
#include <rmm/fallback_adaptor.h>

#include <stdio.h>

#include "adaptors/adaptor.h"
#include "core/assert.h"
#include "core/hash.h"
#include "core/mutex.h"
#include "core/pointer_map.h"

#define MARKS 1024u

typedef struct fallback {
    rmm_adaptor_t adaptor; /* first member */
    rmm_resource_t *alternate;
    rmm_mutex_t lock; /* protects: */
    rmm_pointer_map_t blocks;
    _Atomic(uint64_t) block_count; /* of `blocks`, for others to read */
    _Atomic(uint32_t) marks[MARKS];
} fallback_t;

static fallback_t *from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, fallback_t, adaptor.base);
}

/* --- the alternate's blocks ------------------------------------------------------------- */

/* The golden ratio spreads addresses, which are multiples of 256. */
static _Atomic(uint32_t) *mark_of(fallback_t *self, const void *ptr)
{
    uint64_t hash = rmm__hash((uintptr_t)ptr >> 8);

    static_assert(MARKS == 1u << 10, "the hash's upper bits");
    return &self->marks[hash >> (64 - 10)];
}

/* relaxed: see above */
static bool may_be_alternates(fallback_t *self, const void *ptr)
{
    return atomic_load_explicit(mark_of(self, ptr), memory_order_relaxed) != 0;
}

static bool reserve_entry(fallback_t *self)
{
    bool reserved;

    rmm__mutex_lock(&self->lock);
    reserved = rmm__pointer_map_reserve(&self->blocks);
    rmm__mutex_unlock(&self->lock);
    return reserved;
}

static void show_count_locked(fallback_t *self)
{
    RMM_ASSERT_LOCKED(&self->lock);
    atomic_store_explicit(&self->block_count, self->blocks.count, memory_order_relaxed);
}

/* NULL: the allocation failed. */
static void settle_entry(fallback_t *self, void *ptr, size_t bytes)
{
    const rmm_pointer_map_entry_t entry = {.ptr = ptr, .bytes = bytes};
    rmm_pointer_map_entry_t stale;
    bool is_stale = false;

    rmm__mutex_lock(&self->lock);
    if (ptr == NULL) {
        rmm__pointer_map_unreserve(&self->blocks);
    } else {
        is_stale = rmm__pointer_map_replace_entry(&self->blocks, &entry, &stale);
        show_count_locked(self);
    }
    rmm__mutex_unlock(&self->lock);
    if (is_stale) {
        rmm__adaptor_count_free(&self->adaptor, stale.bytes, 1);
        rmm__resource_warn_stale(&self->adaptor.base, ptr, stale.bytes);
    } else if (ptr != NULL) {
        atomic_fetch_add_explicit(mark_of(self, ptr), 1, memory_order_relaxed);
    }
}

typedef enum source { OF_UPSTREAM, OF_ALTERNATE, OF_WRONG_SIZE } source_t;

/* Takes a block of the alternate out of the table. bytes 0: with any size. */
static source_t take_entry(
    fallback_t *self, const void *ptr, rmm_pointer_map_entry_t *block, size_t bytes)
{
    source_t source = OF_ALTERNATE;

    rmm__mutex_lock(&self->lock);
    if (!rmm__pointer_map_find_entry(&self->blocks, ptr, block)) {
        source = OF_UPSTREAM;
    } else if (bytes != 0 && block->bytes != bytes) {
        source = OF_WRONG_SIZE;
    } else {
        rmm__pointer_map_erase(&self->blocks, ptr);
        atomic_fetch_sub_explicit(mark_of(self, ptr), 1, memory_order_relaxed);
        show_count_locked(self);
    }
    rmm__mutex_unlock(&self->lock);
    return source;
}

/* Upstream has handed this address out. */
RMM_COLD static void forget_stale(fallback_t *self, const void *ptr)
{
    rmm_pointer_map_entry_t stale;

    if (take_entry(self, ptr, &stale, 0) == OF_ALTERNATE) {
        rmm__adaptor_count_free(&self->adaptor, stale.bytes, 1);
        rmm__resource_warn_stale(&self->adaptor.base, ptr, stale.bytes);
    }
}

/* --- allocate and free -------------------------------------------------------------- */

static rmm_status_t
refused_by_both(const fallback_t *self, rmm_status_t status, const char *upstreams)
{
    char alternates[RMM_ERROR_BYTES];

    snprintf(alternates, sizeof(alternates), "%s", rmm_last_error_message());
    return rmm__error_cuda(
        status, rmm_last_cuda_error(), "fallback '%s': %s; and before: %s",
        self->adaptor.base.name, alternates, upstreams);
}

/* The last error is upstream's. */
RMM_COLD static rmm_status_t
take_from_alternate(fallback_t *self, const rmm_request_t *request, void **ptr_out)
{
    char upstreams[RMM_ERROR_BYTES / 2];
    rmm_status_t status;
    void *ptr = NULL;

    snprintf(upstreams, sizeof(upstreams), "%s", rmm_last_error_message());
    if (!reserve_entry(self)) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    status = rmm__resource_alloc(self->alternate, request, &ptr);
    settle_entry(self, status == RMM_OK ? ptr : NULL, request->bytes);
    if (status != RMM_OK) {
        return refused_by_both(self, status, upstreams);
    }
    if (ptr == NULL) {
        return rmm__resource_refuse_null(&self->adaptor.base, self->alternate, request);
    }
    *ptr_out = ptr;
    return RMM_OK;
}

static rmm_status_t
fallback_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    fallback_t *self = from_base(mr);
    rmm_status_t status = rmm__resource_alloc(mr->upstream, request, ptr_out);

    if (status == RMM_OK) {
        if (__builtin_expect(may_be_alternates(self, *ptr_out), false)) {
            forget_stale(self, *ptr_out);
        }
    } else if (status == RMM_ERR_OUT_OF_MEMORY) {
        status = take_from_alternate(self, request, ptr_out);
    }
    if (status != RMM_OK) {
        return rmm__adaptor_failed(&self->adaptor, status);
    }
    rmm__adaptor_count_alloc(&self->adaptor, request->bytes);
    return RMM_OK;
}

static void give_to_alternate(fallback_t *self, void *ptr, const rmm_request_t *request)
{
    rmm_request_t passed = *request;
    bool refused = false;

    passed.refused = &refused;
    rmm__adaptor_count_free(&self->adaptor, request->bytes, 1);
    rmm__resource_dealloc(self->alternate, ptr, &passed);
    if (refused) {
        rmm__adaptor_count_free(&self->adaptor, request->bytes, -1);
        rmm__adaptor_refused(&self->adaptor, request);
    }
}

RMM_COLD static void
free_looked_up(fallback_t *self, void *ptr, const rmm_request_t *request)
{
    rmm_pointer_map_entry_t block;

    switch (take_entry(self, ptr, &block, request->bytes)) {
    case OF_UPSTREAM:
        (void)rmm__adaptor_free(&self->adaptor, ptr, request);
        break;
    case OF_ALTERNATE:
        give_to_alternate(self, ptr, request);
        break;
    case OF_WRONG_SIZE:
        rmm__resource_refuse_free(
            &self->adaptor.base, ptr, request, "it was allocated with another size");
        break;
    }
}

static void
fallback_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    fallback_t *self = from_base(mr);

    if (__builtin_expect(may_be_alternates(self, ptr), false)) {
        free_looked_up(self, ptr, request);
    } else {
        (void)rmm__adaptor_free(&self->adaptor, ptr, request);
    }
}

/* The unused memory of the alternate goes first. */
static rmm_status_t fallback_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    rmm_status_t of_alternate = rmm_resource_trim(from_base(mr)->alternate, 0);
    rmm_status_t of_upstream = rmm_resource_trim(mr->upstream, keep_bytes);

    return of_upstream == RMM_ERR_UNSUPPORTED ? of_alternate : of_upstream;
}

static void fallback_destroy(rmm_resource_t *mr)
{
    fallback_t *self = from_base(mr);
    rmm_resource_t *alternate = self->alternate;

    rmm__pointer_map_fini(&self->blocks);
    rmm__mutex_fini(&self->lock);
    rmm__adaptor_destroy(mr);
    rmm_resource_release(alternate);
}

static const rmm_resource_ops_t fallback_ops[] = RMM_ADAPTOR_OPS(
    "fallback", fallback_alloc, fallback_dealloc, fallback_trim, fallback_destroy);

/* --- public ------------------------------------------------------------------------- */

rmm_resource_t *rmm_fallback_get_alternate(const rmm_resource_t *mr)
{
    return mr != NULL && rmm__adaptor_is(mr, fallback_ops)
               ? ((const fallback_t *)mr)->alternate
               : NULL;
}

rmm_status_t
rmm_fallback_get_alternate_count(const rmm_resource_t *mr, uint64_t *count_out)
{
    rmm_status_t status = rmm__adaptor_check(mr, fallback_ops, "a fallback adaptor");

    if (status != RMM_OK) {
        return status;
    }
    RMM_CHECK_ARG(count_out != NULL, "count_out is NULL");
    *count_out = atomic_load_explicit(
        &((const fallback_t *)mr)->block_count, memory_order_relaxed);
    return RMM_OK;
}

static rmm_status_t
check_alternate(const rmm_resource_t *upstream, const rmm_resource_t *alternate)
{
    RMM_CHECK_ARG(alternate != NULL, "the alternate is NULL");
    if (alternate->device != upstream->device) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "the alternate '%s' belongs to device %d, upstream '%s' to %d",
            alternate->name, alternate->device, upstream->name, upstream->device);
    }
    if ((alternate->properties & upstream->properties) == 0) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "nothing can access the memory of both '%s' and the alternate '%s'",
            upstream->name, alternate->name);
    }
    return RMM_OK;
}

static bool is_ready_on_all_streams(const rmm_resource_t *mr)
{
    return atomic_load_explicit(&mr->ops, memory_order_relaxed)->ready_on_all_streams;
}

rmm_status_t rmm_fallback_adaptor_create(
    rmm_resource_t *upstream, const rmm_fallback_options_t *options,
    rmm_resource_t **out)
{
    rmm_fallback_options_t opts;
    rmm_adaptor_t *adaptor;
    fallback_t *self;
    rmm_status_t status;

    RMM_CHECK_ARG(options != NULL, "options are NULL");
    status = RMM_OPTIONS_OVER(upstream, out, &opts, options);
    if (status == RMM_OK) {
        status = check_alternate(upstream, opts.alternate);
    }
    if (status == RMM_OK) {
        status = rmm__adaptor_create(
            &(rmm_adaptor_plan_t){fallback_ops, sizeof(fallback_t), opts.name},
            upstream, &adaptor);
    }
    if (status != RMM_OK) {
        return status;
    }
    self = from_base(&adaptor->base);
    rmm__mutex_init(&self->lock);
    self->alternate = rmm_resource_retain(opts.alternate);
    adaptor->base.properties &= opts.alternate->properties;
    if (!is_ready_on_all_streams(opts.alternate)) {
        atomic_store_explicit(
            &adaptor->base.ops, &fallback_ops[0], memory_order_relaxed);
    }
    *out = &adaptor->base;
    return RMM_OK;
}
