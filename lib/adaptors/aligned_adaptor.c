/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Provides larger alignments by requesting more bytes. The adaptor records each block that it
 * enlarged, with its upstream address and alignment, so that a free needs only the size and a
 * wrong free is refused here. Upstream checks all other frees.
 *
 * Accounting: upstream sees another size than the user requested, so this resource, not
 * upstream, and counts those requests at the location.
 *
 * Locking: `lock` protects `blocks`. A block leaves the map before upstream has it back,
 * because the same address may be handed out again at once.
 */
#include <rmm/aligned_adaptor.h>

#include <inttypes.h>

#include "adaptors/adaptor.h"
#include "base/count.h"
#include "base/diag_attach.h"
#include "core/assert.h"
#include "core/mutex.h"
#include "core/pointer_map.h"
#include "core/round.h"
#include "driver/driver.h"

#define ALIGNMENT_MAX ((uint64_t)1 << 40)

typedef struct aligned {
    rmm_adaptor_t adaptor; /* first member */
    uint64_t alignment_bytes;
    uint64_t threshold_bytes;
    rmm_mutex_t lock;         /* protects: */
    rmm_pointer_map_t blocks; /* owner: upstream's address, see pack() */
} aligned_t;

static aligned_t *from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, aligned_t, adaptor.base);
}

/* --- arithmetic --------------------------------------------------------------------- */

/* The alignment that the block gets; RMM_ALIGN_DEFAULT: upstream gives that anyway. */
static uint64_t alignment_of(const aligned_t *self, const rmm_request_t *request)
{
    uint64_t alignment = request->align;

    if (request->bytes == 0) {
        return RMM_ALIGN_DEFAULT;
    }
    if (request->bytes >= self->threshold_bytes && self->alignment_bytes > alignment) {
        alignment = self->alignment_bytes;
    }
    return alignment;
}

/* Both at most 2^63: no overflow. */
static uint64_t upstream_bytes(uint64_t bytes, uint64_t alignment)
{
    return rmm__align_up(bytes, alignment) + alignment - RMM_ALIGN_DEFAULT;
}

/* Upstream's addresses are multiples of 256: the alignment's exponent fits below, and whether a
 * user requested the block. */
#define OF_USER 128u

static void *pack(void *original, uint64_t alignment, bool is_of_user)
{
    return (char *)original + __builtin_ctzll(alignment) + (is_of_user ? OF_USER : 0);
}

static bool is_of_user(const rmm_pointer_map_entry_t *block)
{
    return ((uintptr_t)block->owner & OF_USER) != 0;
}

static void *original_of(const rmm_pointer_map_entry_t *block)
{
    return (char *)block->owner - (uintptr_t)block->owner % RMM_ALIGN_DEFAULT;
}

static rmm_request_t
upstream_request(const rmm_pointer_map_entry_t *block, rmm_stream_t stream)
{
    uint64_t alignment = UINT64_C(1) << (uintptr_t)block->owner % OF_USER;

    return (rmm_request_t){
        .bytes = (size_t)upstream_bytes(block->bytes, alignment),
        .align = RMM_ALIGN_DEFAULT,
        .stream = stream,
        .user = false, /* entered and settled here */
    };
}

/* --- allocate and free -------------------------------------------------------------- */

RMM_COLD static rmm_status_t too_large(const aligned_t *self, size_t bytes)
{
    return rmm__error(
        RMM_ERR_OUT_OF_MEMORY,
        "aligned '%s': %zu bytes and their alignment do not fit in an address space",
        self->adaptor.base.name, bytes);
}

static bool reserve_block(aligned_t *self)
{
    bool reserved;

    rmm__mutex_lock(&self->lock);
    reserved = rmm__pointer_map_reserve(&self->blocks);
    rmm__mutex_unlock(&self->lock);
    return reserved;
}

/* A block that is in the map was freed at upstream, which gave it out again. */
RMM_COLD static void forget_stale(aligned_t *self, const rmm_pointer_map_entry_t *stale)
{
    rmm__count_user_free(&self->adaptor.base, is_of_user(stale), stale->bytes, 0);
    rmm__adaptor_count_free(&self->adaptor, stale->bytes, 1);
    rmm__resource_warn_stale(&self->adaptor.base, stale->ptr, stale->bytes);
}

/* NULL: the allocation failed, give the reserved room back. */
static void settle_block(aligned_t *self, const rmm_pointer_map_entry_t *block)
{
    rmm_pointer_map_entry_t stale;
    bool is_stale = false;

    rmm__mutex_lock(&self->lock);
    if (block != NULL) {
        is_stale = rmm__pointer_map_replace_entry(&self->blocks, block, &stale);
    } else {
        rmm__pointer_map_unreserve(&self->blocks);
    }
    rmm__mutex_unlock(&self->lock);
    if (is_stale) {
        forget_stale(self, &stale);
    }
}

static rmm_status_t
take_larger(aligned_t *self, const rmm_request_t *request, void **ptr_out)
{
    uint64_t alignment = alignment_of(self, request);
    uint64_t bytes = upstream_bytes(request->bytes, alignment);
    rmm_pointer_map_entry_t block = {.bytes = request->bytes};
    rmm_request_t larger = {
        .bytes = (size_t)bytes,
        .align = RMM_ALIGN_DEFAULT,
        .stream = request->stream,
        .facts_out = request->facts_out};
    rmm_status_t status;
    void *original;

    if (bytes > PTRDIFF_MAX) {
        return too_large(self, request->bytes);
    }
    if (!reserve_block(self)) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    status = rmm__resource_alloc(self->adaptor.base.upstream, &larger, &original);
    if (status != RMM_OK) {
        settle_block(self, NULL);
        return status;
    }
    block.owner = pack(original, alignment, request->user);
    block.ptr = (char *)original + (-(uintptr_t)original & (alignment - 1));
    settle_block(self, &block);
    rmm__count_user_alloc(&self->adaptor.base, request->user, request->bytes, 0);
    *ptr_out = block.ptr;
    return RMM_OK;
}

static rmm_status_t
aligned_alloc_op(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    aligned_t *self = from_base(mr);
    rmm_status_t status = alignment_of(self, request) > RMM_ALIGN_DEFAULT
                              ? take_larger(self, request, ptr_out)
                              : rmm__resource_alloc(mr->upstream, request, ptr_out);

    if (status != RMM_OK) {
        return rmm__adaptor_failed(&self->adaptor, status);
    }
    rmm__adaptor_count_alloc(&self->adaptor, request->bytes);
    return RMM_OK;
}

typedef enum verdict { VERDICT_OURS, VERDICT_UPSTREAMS, VERDICT_WRONG } verdict_t;

/* Ours: taken out of the map. */
static verdict_t
judge(aligned_t *self, void *ptr, size_t bytes, rmm_pointer_map_entry_t *block)
{
    verdict_t verdict = VERDICT_OURS;

    rmm__mutex_lock(&self->lock);
    if (!rmm__pointer_map_find_entry(&self->blocks, ptr, block)) {
        verdict = VERDICT_UPSTREAMS;
    } else if (block->bytes != bytes) {
        verdict = VERDICT_WRONG;
    } else {
        rmm__pointer_map_erase(&self->blocks, ptr);
    }
    rmm__mutex_unlock(&self->lock);
    return verdict;
}

static void
aligned_dealloc_op(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    aligned_t *self = from_base(mr);
    rmm_pointer_map_entry_t block;
    rmm_request_t larger;

    switch (judge(self, ptr, request->bytes, &block)) {
    case VERDICT_OURS:
        /* as it was allocated */
        rmm__count_user_free(mr, is_of_user(&block), request->bytes, 0);
        rmm__adaptor_count_free(&self->adaptor, request->bytes, 1);
        larger = upstream_request(&block, request->stream);
        rmm__resource_dealloc(mr->upstream, original_of(&block), &larger);
        break;
    case VERDICT_UPSTREAMS:
        rmm__adaptor_dealloc(mr, ptr, request);
        break;
    case VERDICT_WRONG:
        rmm__resource_refuse_free(
            mr, ptr, request, "it was allocated with another size");
        break;
    }
}

/* --- the end ------------------------------------------------------------------------ */

/* Work on what is out may still be queued, on streams that are not known here. */
static void wait_for_devices(const rmm_resource_t *mr)
{
    rmm_status_t status;
    const rmm_driver_t *driver = mr->device >= 0 ? rmm__driver(&status) : NULL;

    if (driver != NULL) {
        (void)rmm__driver_wait_all_devices(driver, mr->device);
    }
}

static void aligned_destroy(rmm_resource_t *mr)
{
    aligned_t *self = from_base(mr);
    rmm_pointer_map_entry_t block;
    size_t from = 0;

    if (self->blocks.count != 0) {
        wait_for_devices(mr);
    }
    while (rmm__pointer_map_any(&self->blocks, &from, &block)) {
        rmm_request_t larger = upstream_request(&block, RMM_STREAM_LEGACY);

        rmm__pointer_map_erase(&self->blocks, block.ptr);
        rmm__diag_on_left(
            mr->instance_id, mr->device, block.ptr, block.bytes, RMM_STREAM_LEGACY);
        if (is_of_user(&block)) {
            rmm__location_forget(
                &mr->accounting,
                &(rmm_location_left_t){.bytes = block.bytes, .count = 1});
        }
        rmm__resource_dealloc(mr->upstream, original_of(&block), &larger);
    }
    rmm__pointer_map_fini(&self->blocks);
    rmm__mutex_fini(&self->lock);
    rmm__adaptor_destroy(mr);
}

static const rmm_resource_ops_t aligned_ops[] = RMM_ADAPTOR_OPS(
    "aligned", aligned_alloc_op, aligned_dealloc_op, rmm__adaptor_trim,
    aligned_destroy);

/* --- public ------------------------------------------------------------------------- */

static rmm_status_t check(const rmm_resource_t *mr, const uint64_t *bytes_out)
{
    rmm_status_t status = rmm__adaptor_check(mr, aligned_ops, "an aligned adaptor");

    if (status == RMM_OK) {
        RMM_CHECK_ARG(bytes_out != NULL, "bytes_out is NULL");
    }
    return status;
}

rmm_status_t rmm_aligned_get_alignment(const rmm_resource_t *mr, uint64_t *bytes_out)
{
    rmm_status_t status = check(mr, bytes_out);

    if (status == RMM_OK) {
        *bytes_out = ((const aligned_t *)mr)->alignment_bytes;
    }
    return status;
}

rmm_status_t rmm_aligned_get_threshold(const rmm_resource_t *mr, uint64_t *bytes_out)
{
    rmm_status_t status = check(mr, bytes_out);

    if (status == RMM_OK) {
        *bytes_out = ((const aligned_t *)mr)->threshold_bytes;
    }
    return status;
}

static rmm_status_t check_options(rmm_aligned_options_t *options)
{
    rmm_status_t status =
        rmm__adaptor_check_alignment(options->alignment_bytes, ALIGNMENT_MAX);

    if (status == RMM_OK && options->alignment_bytes < RMM_ALIGN_DEFAULT) {
        options->alignment_bytes = RMM_ALIGN_DEFAULT;
    }
    return status;
}

rmm_status_t rmm_aligned_adaptor_create(
    rmm_resource_t *upstream, const rmm_aligned_options_t *options,
    rmm_resource_t **out)
{
    rmm_aligned_options_t opts;
    rmm_adaptor_t *adaptor;
    aligned_t *self;
    rmm_status_t status = RMM_OPTIONS_OVER(upstream, out, &opts, options);

    if (status == RMM_OK) {
        status = check_options(&opts);
    }
    if (status == RMM_OK) {
        status = rmm__adaptor_create(
            &(rmm_adaptor_plan_t){aligned_ops, sizeof(aligned_t), opts.name}, upstream,
            &adaptor);
    }
    if (status != RMM_OK) {
        return status;
    }
    self = from_base(&adaptor->base);
    rmm__mutex_init(&self->lock);
    self->alignment_bytes = opts.alignment_bytes;
    self->threshold_bytes = opts.threshold_bytes;
    *out = &adaptor->base;
    return RMM_OK;
}
