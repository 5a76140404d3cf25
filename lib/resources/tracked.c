/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that are remembered one by one, and shared instances: see tracked.h.
 *
 * Locking: `instances_lock` protects every list of shared instances. One whose last
 * reference is gone stays in its list until it is destroyed, and is passed over. Held over
 * fork() (core/fork.h). In the child the parent's instances stay in the lists and are passed
 * over as well, because they refuse everything: the child gets instances of its own.
 */
#include "resources/tracked.h"

#include <string.h>

#include "base/callback.h"
#include "base/count.h"
#include "base/diag_attach.h"
#include "base/limits.h"
#include "core/assert.h"
#include "core/fork.h"
#include "core/host_memory.h"

static rmm_mutex_t instances_lock = RMM_MUTEX_INITIALIZER;

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_INSTANCES, &instances_lock, NULL);
}

/* A block's entry has, besides its size, its alignment, a multiple of
 * RMM_ALIGN_DEFAULT, and two bits: the location counts it as held by this resource, not by one
 * that it came from; and a user requested it, not another resource. */
#define HELD_HERE ((uintptr_t)1)
#define OF_USER ((uintptr_t)2)

static void *pack(const rmm_request_t *request, bool is_held_here)
{
    uintptr_t packed = request->align;

    packed |= is_held_here ? HELD_HERE : 0;
    packed |= request->user ? OF_USER : 0;
    return (void *)packed;
}

static size_t align_of(const rmm_pointer_map_entry_t *block)
{
    return (uintptr_t)block->owner & ~(HELD_HERE | OF_USER);
}

static bool is_held_here(const rmm_pointer_map_entry_t *block)
{
    return ((uintptr_t)block->owner & HELD_HERE) != 0;
}

static bool is_of_user(const rmm_pointer_map_entry_t *block)
{
    return ((uintptr_t)block->owner & OF_USER) != 0;
}

static void hold(rmm_tracked_t *self, const rmm_pointer_map_entry_t *block)
{
    rmm_accounting_t *accounting = &self->base.accounting;

    rmm__accounting_reserve_shared(accounting, block->bytes);
    if (is_held_here(block)) {
        rmm__location_reserve(accounting->location, block->bytes);
    }
}

/* The outcome for a block that was obtained. */
typedef enum settled {
    SETTLED_NEW,
    SETTLED_AGAIN,  /* replaces a block that was freed elsewhere */
    SETTLED_TWICE,  /* refused: a live block has this address */
    SETTLED_NOWHERE /* no host memory to remember it */
} settled_t;

/* A driver returns the address of a live block only if the program freed that block directly, by
 * cudaFree(). A program's own function may return it by mistake. */
static settled_t remember_locked(
    rmm_tracked_t *self, const rmm_pointer_map_entry_t *block,
    rmm_pointer_map_entry_t *stale_out)
{
    bool is_there;

    RMM_ASSERT_LOCKED(&self->lock);
    is_there = rmm__pointer_map_find_entry(&self->blocks, block->ptr, stale_out);
    if (is_there && self->source->may_nest) {
        return SETTLED_TWICE;
    }
    if (is_there) {
        rmm__count_free_locked(&self->base, is_of_user(stale_out), stale_out->bytes, 0);
        rmm__pointer_map_erase(&self->blocks, block->ptr);
    }
    if (!rmm__pointer_map_reserve(&self->blocks)) {
        return SETTLED_NOWHERE;
    }
    rmm__pointer_map_insert_entry(&self->blocks, block);
    return is_there ? SETTLED_AGAIN : SETTLED_NEW;
}

/* Counts a block that is remembered, and one without an address, which is not: its stale_out may be
 * NULL. */
static settled_t settle(
    rmm_tracked_t *self, const rmm_pointer_map_entry_t *block,
    rmm_pointer_map_entry_t *stale_out)
{
    settled_t settled = SETTLED_NEW;

    rmm__mutex_lock(&self->lock);
    if (block->ptr != NULL) {
        settled = remember_locked(self, block, stale_out);
    }
    if (settled == SETTLED_NEW || settled == SETTLED_AGAIN) {
        if (block->ptr != NULL && !self->source->keeps_reserve) {
            hold(self, block); /* first: what is live is never more than what is held */
        }
        rmm__count_alloc_locked(&self->base, is_of_user(block), block->bytes, 0);
    }
    rmm__mutex_unlock(&self->lock);
    return settled;
}

/* The address is not freed, because that would free the live block. */
RMM_COLD static rmm_status_t given_twice(const rmm_tracked_t *self, const void *ptr)
{
    return rmm__error(
        RMM_ERR_BAD_ALLOC,
        "%s '%s': the allocation returned %p, the address of a block that is still "
        "live",
        rmm_resource_type(&self->base), self->base.name, ptr);
}

/* NULL if the block was taken out of the map and counted as free, else why it cannot be freed. A
 * program's function may free what a user allocated, and a user what it allocated: a block is
 * counted down as it was counted up. */
static const char *blocks_take(
    rmm_tracked_t *self, void *ptr, size_t bytes, rmm_pointer_map_entry_t *block)
{
    const rmm_pointer_map_entry_t *taken;
    const char *refusal = NULL;

    rmm__mutex_lock(&self->lock);
    taken = rmm__pointer_map_take(&self->blocks, ptr, bytes, block);
    if (taken == NULL) {
        refusal = "not allocated here, or freed already";
    } else if (taken->bytes != bytes) {
        refusal = "it was allocated with another size";
    } else {
        rmm__count_free_locked(&self->base, is_of_user(block), bytes, 0);
    }
    rmm__mutex_unlock(&self->lock);
    return refusal;
}

static void unhold(rmm_tracked_t *self, const rmm_pointer_map_entry_t *block)
{
    rmm_accounting_t *accounting = &self->base.accounting;

    if (self->source->keeps_reserve) {
        return;
    }
    rmm__accounting_unreserve_shared(accounting, block->bytes);
    if (is_held_here(block)) {
        rmm__location_unreserve(accounting->location, block->bytes);
    }
}

RMM_COLD static void
forget_stale(rmm_tracked_t *self, const rmm_pointer_map_entry_t *stale)
{
    unhold(self, stale);
    rmm__resource_warn_stale(&self->base, stale->ptr, stale->bytes);
}

/* Within the limit of the location. What may come from another resource of the process is
 * promised there: twice would be too much. */
static rmm_status_t
begin_growth(rmm_tracked_t *self, uint64_t bytes, uint64_t *promised_out)
{
    rmm_status_t status = rmm__growth_begin(&self->base, bytes, promised_out);

    if (status == RMM_OK && self->source->may_nest) {
        rmm__growth_end(&self->base, *promised_out);
        *promised_out = 0;
    }
    return status;
}

static void give_back(
    rmm_tracked_t *self, const rmm_pointer_map_entry_t *block,
    const rmm_request_t *request)
{
    rmm_request_t allocated = *request;

    allocated.align = align_of(block); /* the caller may have named another */
    self->source->give_back(self, block->ptr, &allocated);
    unhold(self, block);
}

/* The block was not counted, and the location has nothing of it yet. */
RMM_COLD static rmm_status_t refuse_block(
    rmm_tracked_t *self, settled_t settled, const rmm_request_t *request, void *ptr)
{
    if (settled == SETTLED_TWICE) {
        return given_twice(self, ptr);
    }
    self->source->give_back(self, ptr, request);
    return RMM_ERR_OUT_OF_HOST_MEMORY;
}

static rmm_status_t settle_block(
    rmm_tracked_t *self, const rmm_request_t *request, rmm_pointer_map_entry_t *block)
{
    rmm_pointer_map_entry_t stale;
    settled_t settled = settle(self, block, &stale);

    if (settled == SETTLED_TWICE || settled == SETTLED_NOWHERE) {
        return refuse_block(self, settled, request, block->ptr);
    }
    if (settled == SETTLED_AGAIN) {
        forget_stale(self, &stale);
    }
    return RMM_OK;
}

static rmm_status_t
obtain_block(rmm_tracked_t *self, const rmm_request_t *request, void **ptr_out)
{
    rmm_pointer_map_entry_t block = {.bytes = request->bytes};
    uint64_t taken = rmm__callback_taken();
    uint64_t promised = 0;
    rmm_status_t status = RMM_OK;

    if (!self->source->keeps_reserve) {
        status = begin_growth(self, request->bytes, &promised);
    }
    if (status == RMM_OK) {
        status = self->source->obtain(self, request, &block.ptr);
    }
    if (status == RMM_OK) {
        /* else the location has counted it already */
        block.owner = pack(request, rmm__callback_taken() == taken);
        status = settle_block(self, request, &block);
    }
    rmm__growth_end(&self->base, promised);
    if (status != RMM_OK) {
        if (status == RMM_ERR_OUT_OF_MEMORY) {
            rmm__accounting_oom(&self->base.accounting);
        }
        return status;
    }
    *ptr_out = block.ptr;
    return RMM_OK;
}

/* The free of what has no address: an allocation of no bytes, as a rule. */
RMM_COLD static void
count_free_of_none(rmm_tracked_t *self, const rmm_request_t *request)
{
    rmm__mutex_lock(&self->lock);
    rmm__count_free_locked(&self->base, request->user, request->bytes, 0);
    rmm__mutex_unlock(&self->lock);
}

rmm_status_t
rmm__tracked_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    rmm_tracked_t *self = rmm__tracked_from_base(mr);

    if (request->bytes == 0) {
        const rmm_pointer_map_entry_t none = {.owner = pack(request, false)};

        (void)settle(self, &none, NULL);
        *ptr_out = NULL;
        return RMM_OK;
    }
    return obtain_block(self, request, ptr_out);
}

void rmm__tracked_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    rmm_tracked_t *self = rmm__tracked_from_base(mr);
    rmm_pointer_map_entry_t block;
    const char *refusal;

    if (ptr == NULL) {
        count_free_of_none(self, request);
        return;
    }
    refusal = blocks_take(self, ptr, request->bytes, &block);
    if (refusal != NULL) {
        rmm__resource_refuse_free(mr, ptr, request, refusal);
        return;
    }
    give_back(self, &block, request);
}

rmm_status_t rmm__tracked_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    (void)keep_bytes;
    return rmm__error(
        RMM_ERR_UNSUPPORTED, "a %s resource caches no memory: there is nothing to trim",
        rmm_resource_type(mr));
}

static void uninstall(rmm_tracked_t *self)
{
    rmm_tracked_t **link = self->instances;

    rmm__mutex_lock(&instances_lock);
    while (*link != self) {
        link = &(*link)->next_instance;
    }
    *link = self->next_instance;
    rmm__mutex_unlock(&instances_lock);
}

void rmm__tracked_destroy(rmm_resource_t *mr)
{
    rmm_tracked_t *self = rmm__tracked_from_base(mr);
    rmm_pointer_map_entry_t block;
    size_t from = 0;

    if (self->instances != NULL) {
        uninstall(self);
    }
    while (rmm__pointer_map_any(&self->blocks, &from, &block)) {
        rmm_request_t request = {.bytes = block.bytes, .stream = RMM_STREAM_LEGACY};

        rmm__pointer_map_erase(&self->blocks, block.ptr);
        rmm__diag_on_left(
            mr->instance_id, mr->device, block.ptr, block.bytes, RMM_STREAM_LEGACY);
        give_back(self, &block, &request);
    }
    rmm__pointer_map_fini(&self->blocks);
    rmm__mutex_fini(&self->lock);
    rmm__resource_fini(mr);
    if (self->source->destroy != NULL) {
        self->source->destroy(self);
    }
    rmm__free(self);
}

rmm_status_t rmm__tracked_create(
    const rmm_tracked_t *model, size_t bytes, const rmm_resource_desc_t *desc,
    rmm_tracked_t **out)
{
    rmm_tracked_t *self = rmm__calloc(1, bytes);
    rmm_status_t status;

    if (self == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    memcpy(self, model, bytes);
    rmm__mutex_init(&self->lock);
    status = rmm__resource_init(&self->base, desc);
    if (status != RMM_OK) {
        rmm__free(self);
        return status;
    }
    *out = self;
    return RMM_OK;
}

/* One that lives, retained, or NULL. */
static rmm_resource_t *find_locked(rmm_tracked_t **instances, uint64_t key)
{
    RMM_ASSERT_LOCKED(&instances_lock);
    for (rmm_tracked_t *one = *instances; one != NULL; one = one->next_instance) {
        if (one->instance_key == key && !rmm__resource_is_forked(&one->base) &&
            rmm__resource_try_retain(&one->base)) {
            return &one->base;
        }
    }
    return NULL;
}

rmm_resource_t *rmm__tracked_share(rmm_tracked_t **instances, uint64_t key)
{
    rmm_resource_t *shared;

    rmm__mutex_lock(&instances_lock);
    shared = find_locked(instances, key);
    rmm__mutex_unlock(&instances_lock);
    return shared;
}

rmm_resource_t *rmm__tracked_install(rmm_tracked_t **instances, rmm_tracked_t *fresh)
{
    rmm_resource_t *winner;

    rmm__mutex_lock(&instances_lock);
    winner = find_locked(instances, fresh->instance_key);
    if (winner == NULL) {
        winner = &fresh->base;
        fresh->instances = instances;
        fresh->next_instance = *instances;
        *instances = fresh;
    }
    rmm__mutex_unlock(&instances_lock);
    if (winner != &fresh->base) {
        rmm_resource_release(&fresh->base);
    }
    return winner;
}

rmm_status_t rmm__tracked_get(
    rmm_tracked_t **instances, const rmm_tracked_t *model, size_t bytes,
    const rmm_resource_desc_t *desc, rmm_resource_t **out)
{
    rmm_resource_t *shared = rmm__tracked_share(instances, model->instance_key);
    rmm_tracked_t *fresh;

    if (shared == NULL) {
        rmm_status_t status = rmm__tracked_create(model, bytes, desc, &fresh);

        if (status != RMM_OK) {
            return status;
        }
        shared = rmm__tracked_install(instances, fresh);
    }
    *out = shared;
    return RMM_OK;
}
