/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool's operations and its books. The fast path is one lock, one look into the
 * stream's own heap and one into the clean one; everything else is on the ladder. How
 * blocks change streams, and the locking, are in pool_impl.h.
 */
#include "resources/pool_front.h"

#include <inttypes.h>

#include "core/diag_attach.h"
#include "core/host_memory.h"
#include "core/options.h"
#include "log/log.h"
#include "suballoc/suballoc_look.h"

/* --- figures ------------------------------------------------------------------------ */

static void look_for_largest_locked(pool_t *self)
{
    rmm_heap_t heap = self->clean;
    uint64_t largest = rmm__suballoc_largest_free(self->blocks, heap);

    for (uint32_t i = 0; i <= self->stream_capacity; i++) {
        const pool_stream_t *slot =
            i < self->stream_capacity ? self->streams[i] : self->unproven;
        uint64_t here =
            slot != NULL ? rmm__suballoc_largest_free(self->blocks, slot->heap) : 0;

        if (here > largest) {
            largest = here;
            heap = slot->heap;
        }
    }
    self->largest_free_units = largest;
    self->largest_heap = heap;
}

void rmm__pool_note_freed_locked(pool_t *self, rmm_heap_t heap, rmm_block_t block)
{
    uint64_t units = rmm__suballoc_look_merged(self->blocks, block, heap);

    if (units > self->largest_free_units) {
        self->largest_free_units = units;
        self->largest_heap = heap;
    }
}

void rmm__pool_note_taken_locked(pool_t *self, rmm_heap_t heap)
{
    if (rmm__suballoc_largest_free(self->blocks, heap) < self->largest_free_units) {
        look_for_largest_locked(self);
    }
}

#ifdef RMM_HEAVY_CHECKS
/* What readers make of the figures is what there is. */
static bool free_is_right_locked(const pool_t *self)
{
    return self->shares_books ||
           rmm__books_free_bytes(&self->base.books) == pool_free_bytes(self);
}
#endif

void rmm__pool_figures_locked(pool_t *self)
{
    rmm_books_t *books = &self->base.books;

    RMM_ASSERT_LOCKED(&self->lock);
    RMM_ASSERT_HEAVY(rmm__suballoc_check(self->blocks) == NULL);
    look_for_largest_locked(self);
    rmm__pool_batch_limits_locked(self);
    rmm__books_begin_exclusive(books);
    if (self->shares_books) { /* all that is gained is free */
        rmm__figure_add(
            &books->slot->free_bytes,
            self->reserved_bytes - RMM_BOOKS_GET(books, reserved_bytes));
        if (rmm__pool_front(self) != NULL) {
            rmm__front_measure(rmm__pool_front(self), self->reserved_bytes);
        }
    } else {
        RMM_BOOKS_SET(
            books, free_bytes,
            pool_free_bytes(self) + RMM_BOOKS_GET(books, current_bytes) +
                RMM_BOOKS_GET(books, padding_bytes));
    }
    rmm__pool_show_largest_locked(self);
    RMM_BOOKS_SET(books, reserved_bytes, self->reserved_bytes);
    rmm__books_end_exclusive(books);
    RMM_ASSERT_HEAVY(free_is_right_locked(self));
}

/* --- allocate ----------------------------------------------------------------------- */

/* What rounding added, 0..255, or more where all blocks have one size: a live block's tag, so that a free's size can be checked. */
static uint32_t padding_of(const pool_want_t *want)
{
    return (uint32_t)((uint64_t)want->units * POOL_UNIT - want->request->bytes);
}

static void enter_block_locked(pool_t *self, const pool_want_t *want, rmm_block_t block)
{
    uint32_t padding = padding_of(want);

    RMM_ASSERT(!self->shares_books);
    rmm__suballoc_look_at(self->blocks, block)->tag = padding;
    rmm__request_enter_locked(&self->base, want->request, padding);
    rmm__books_begin_exclusive(&self->base.books);
    rmm__books_alloc_exclusive(&self->base.books, want->request->bytes, padding);
    rmm__pool_show_largest_locked(self);
    rmm__books_end_exclusive(&self->base.books);
}

rmm_suballoc_result_t
rmm__pool_take_block_locked(pool_t *self, const pool_want_t *want, rmm_block_t *block)
{
    const pool_stream_t *own = rmm__pool_stream_find_locked(self, want->key);
    rmm_heap_t heap = own != NULL ? own->heap : self->clean;
    rmm_suballoc_result_t result;

    if (own == NULL) {
        rmm__pool_note_stream_locked(self, want->key);
    }
    result = own != NULL
                 ? rmm__suballoc_alloc_either(
                       self->blocks, heap, self->clean, want->units, want->align_units,
                       block)
                 : rmm__suballoc_alloc(
                       self->blocks, heap, want->units, want->align_units, block);

    if (heap == self->largest_heap || self->clean == self->largest_heap) {
        rmm__pool_note_taken_locked(self, self->largest_heap);
    }
    if (result == RMM_SUBALLOC_OK && want->key.capture_id != 0) {
        rmm__pool_capture_note_locked(
            self, want->key, rmm__suballoc_block_unit(self->blocks, *block));
    }
    return result;
}

rmm_status_t
rmm__pool_take_locked(pool_t *self, const pool_want_t *want, void **ptr_out)
{
    rmm_block_t block;
    rmm_suballoc_result_t result = rmm__pool_take_block_locked(self, want, &block);

    if (result == RMM_SUBALLOC_NO_STORAGE) {
        return RMM_ERR_OUT_OF_HOST_MEMORY; /* the storage set the last error */
    }
    if (result != RMM_SUBALLOC_OK) {
        return RMM_ERR_OUT_OF_MEMORY;
    }
    RMM_ASSERT_HEAVY(rmm__suballoc_check(self->blocks) == NULL);
    enter_block_locked(self, want, block);
    *ptr_out = rmm__pool_address_of_locked(
        self, rmm__suballoc_look_at(self->blocks, block)->unit);
    return RMM_OK;
}

/* An allocation of no bytes, or its free: counted, and nothing else. */
RMM_COLD static void
count_nothing(pool_t *self, const rmm_request_t *request, bool is_free)
{
    rmm_books_t *books = &self->base.books;

    rmm__request_announce(&self->base, request, 0);
    if (rmm__pool_enter(self) != NULL) {
        rmm__front_count_nothing(rmm__pool_front(self), request, is_free);
        return;
    }
    rmm__books_begin_exclusive(books);
    if (is_free) {
        rmm__request_settle_locked(&self->base, request, 0);
        rmm__books_free_exclusive(books, 0, 0);
    } else {
        rmm__request_enter_locked(&self->base, request, 0);
        rmm__books_alloc_exclusive(books, 0, 0);
    }
    rmm__books_end_exclusive(books);
    rmm__pool_leave(self);
}

RMM_COLD static rmm_status_t too_large(pool_t *self, const rmm_request_t *request)
{
    rmm__books_oom(&self->base.books);
    if (self->block_units != 0) {
        return rmm__error(
            RMM_ERR_OUT_OF_MEMORY,
            "%s '%s': %zu bytes are more than its blocks of %" PRIu64,
            rmm_resource_type(&self->base), self->base.name, request->bytes,
            (uint64_t)self->block_units * POOL_UNIT);
    }
    return rmm__error(
        RMM_ERR_OUT_OF_MEMORY, "pool '%s': %zu bytes are more than a pool can hold",
        self->base.name, request->bytes);
}

/* The request in units; those of a whole block where all blocks have one size. */
static rmm_status_t
measure(pool_t *self, const rmm_request_t *request, pool_want_t *want)
{
    uint64_t units = request->bytes / POOL_UNIT + (request->bytes % POOL_UNIT != 0);
    uint32_t fixed = self->block_units;

    if (units > (fixed != 0 ? fixed : UINT32_MAX - RMM_SUBALLOC_PHASES)) {
        return too_large(self, request);
    }
    want->request = request;
    want->align_units = (uint32_t)(request->align / POOL_UNIT);
    want->units = fixed != 0 ? fixed : (uint32_t)units;
    return RMM_OK;
}

/* Who the stream is; a failure is the driver's, not a lack of memory. */
static rmm_status_t stream_key(pool_t *self, rmm_stream_t stream, rmm_stream_key_t *key)
{
    int error = self->driver->stream_key(stream, key);

    if (error == RMM_DRIVER_OK) {
        return RMM_OK;
    }
    return rmm__error_cuda(
        RMM_ERR_BAD_ALLOC, error, "%s '%s': asking which stream %p is failed: %s (%d)",
        rmm_resource_type(&self->base), self->base.name, (void *)stream,
        self->driver->error_name(error), error);
}

static rmm_status_t
pool_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    pool_t *self = pool_from_base(mr);
    pool_front_t *front;
    pool_want_t want;
    rmm_status_t status;

    if (request->bytes == 0) {
        count_nothing(self, request, false);
        *ptr_out = NULL;
        return RMM_OK;
    }
    status = measure(self, request, &want);
    if (status == RMM_OK) {
        status = stream_key(self, request->stream, &want.key);
    }
    if (status != RMM_OK) {
        return status;
    }

    if (want.key.capture_id != 0) {
        rmm__pool_capture_open(self, want.key, request->stream);
    }
    rmm__request_announce(mr, request, padding_of(&want));
    front = rmm__pool_enter(self);
    if (front == NULL && want.units >= POOL_LARGE_UNITS && self->block_units == 0 &&
        rmm__pool_others_have_batches_locked(self, &want.key)) {
        rmm__mutex_unlock(&self->lock);
        rmm__pool_reclaim_others(self, &want);
        front = rmm__pool_enter(self);
    }
    if (front != NULL) {
        return rmm__pool_front_alloc(self, front, &want, ptr_out);
    }
    status = rmm__pool_take_locked(self, &want, ptr_out);
    rmm__pool_leave(self);
    if (status == RMM_ERR_OUT_OF_MEMORY) {
        status = rmm__pool_alloc_slow(self, &want, ptr_out);
    }
    return status;
}

/* --- free --------------------------------------------------------------------------- */

rmm_block_t rmm__pool_block_at_locked(
    const pool_t *self, uint32_t unit, size_t bytes, const char **refusal_out)
{
    rmm_block_t block = rmm__suballoc_look_up(self->blocks, unit);
    const rmm_block_node_t *node;

    if (block == RMM_BLOCK_NONE) {
        *refusal_out = POOL_NO_SUCH_BLOCK;
        return RMM_BLOCK_NONE;
    }
    node = rmm__suballoc_look_at(self->blocks, block);
    if (node->tag >= POOL_TAG_SUPERBLOCK) { /* lent: the free saw an owner of before */
        *refusal_out =
            node->tag == POOL_TAG_GIVEN_UP ? "freed already" : POOL_NO_SUCH_BLOCK;
        return RMM_BLOCK_NONE;
    }
    if (bytes != node->units * POOL_UNIT - node->tag) {
        *refusal_out = "it was allocated with another size";
        return RMM_BLOCK_NONE;
    }
    return block;
}

/* The live block that this free names, or NONE and in *refusal_out why it names none. */
static rmm_block_t
find_block_locked(pool_t *self, const void *ptr, size_t bytes, const char **refusal_out)
{
    uint32_t unit;

    if (rmm__pool_unit_of_locked(self, ptr, &unit)) {
        return rmm__pool_block_at_locked(self, unit, bytes, refusal_out);
    }
    *refusal_out = POOL_NO_SUCH_BLOCK;
    return RMM_BLOCK_NONE;
}

/* The block goes to the slot's heap. No slot: it is used no more until the pool ends. */
static void leave_block_locked(
    pool_t *self, rmm_block_t block, pool_stream_t *slot, const rmm_request_t *request)
{
    rmm_books_t *books = &self->base.books;
    uint32_t padding = rmm__suballoc_look_at(self->blocks, block)->tag;

    rmm__request_settle_locked(&self->base, request, padding);
    if (slot != NULL) {
        rmm__suballoc_free(self->blocks, block, slot->heap, slot->open_stamp);
        rmm__pool_note_freed_locked(self, slot->heap, block);
        rmm__pool_note_room_locked(self, block);
    } else {
        rmm__suballoc_block_set_tag(self->blocks, block, POOL_TAG_GIVEN_UP);
    }
    rmm__books_begin_exclusive(books);
    if (slot == NULL) {
        rmm__figure_sub(&books->slot->free_bytes, request->bytes + padding);
    }
    rmm__books_free_exclusive(books, request->bytes, padding);
    rmm__pool_show_largest_locked(self);
    rmm__books_end_exclusive(books);
    RMM_ASSERT_HEAVY(rmm__suballoc_check(self->blocks) == NULL);
    RMM_ASSERT_HEAVY(free_is_right_locked(self));
}

/*
 * What the stream keeps from the others with this free. A neighbour that it merges with is
 * behind no event any more either: while nobody else is there, that counts, because then
 * it may take long until the next event.
 */
static uint64_t
bytes_to_cover(const pool_t *self, const pool_stream_t *slot, rmm_block_t block)
{
    return POOL_UNIT * (self->is_shared
                            ? rmm__suballoc_look_at(self->blocks, block)->units
                            : rmm__suballoc_look_restamped(
                                  self->blocks, block, slot->heap, slot->open_stamp));
}

static void pool_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    pool_t *self = pool_from_base(mr);
    const char *refusal = NULL;
    pool_closing_t closing;
    pool_front_t *front;
    rmm_stream_key_t key;
    rmm_block_t block;
    bool known;

    closing.slot = NULL;
    if (ptr == NULL) {
        count_nothing(self, request, true);
        return;
    }
    known = self->driver->stream_key(request->stream, &key) == RMM_DRIVER_OK;
    if (known && key.capture_id != 0) {
        rmm__pool_capture_open(self, key, request->stream);
    }
    rmm__request_announce(mr, request, 0); /* padding was when it came */

    front = rmm__pool_enter(self);
    if (front != NULL) {
        rmm__pool_front_dealloc(self, front, ptr, request, known ? &key : NULL);
        return;
    }
    block = find_block_locked(self, ptr, request->bytes, &refusal);
    if (block != RMM_BLOCK_NONE) {
        pool_stream_t *slot =
            rmm__pool_slot_for_free_locked(self, known ? &key : NULL, block);

        leave_block_locked(self, block, slot, request);
        if (slot != NULL) {
            rmm__pool_batch_note_locked(
                self, slot, bytes_to_cover(self, slot, block), &closing);
        }
    }
    rmm__pool_leave(self);

    if (refusal != NULL) {
        rmm__resource_refuse_free(mr, ptr, request, refusal);
    } else if (closing.slot != NULL) {
        rmm__pool_batch_close(self, &closing, request->stream);
        if (!closing.native) {
            rmm__pool_hope(self); /* what the slot has may be had from now on */
        }
    }
}

/* --- destroy ------------------------------------------------------------------------ */

/* Work on the blocks may still be queued, and upstream may reuse the chunks at once.
 * False: there may be such work still, or the process exits. */
static bool wait_before_returning(pool_t *self)
{
    rmm_driver_scope_t scope;
    int error;

    if (rmm__driver_scope_enter(&scope, self->driver, self->base.device) != RMM_OK) {
        return false;
    }
    error = rmm__driver_barrier(self->driver);
    rmm__driver_scope_leave(&scope);
    return error == RMM_DRIVER_OK;
}

/* A diagnosis learns that a block still out ends with its pool. */
static bool report_left_behind(void *context, const rmm_block_info_t *info)
{
    const pool_t *self = context;

    if (info->heap == RMM_HEAP_NONE && info->tag < POOL_TAG_SUPERBLOCK) {
        rmm__diag_on_free(
            self->base.instance_id, self->base.device,
            rmm__pool_address_of_locked(self, info->unit),
            info->units * POOL_UNIT - info->tag, RMM_STREAM_LEGACY);
    }
    return true;
}

static void pool_free_all(pool_t *self)
{
    bool is_idle = true;

    if (self->chunk_count > 0) {
        is_idle = wait_before_returning(self);
        rmm__suballoc_walk(self->blocks, report_left_behind, self);
        if (rmm__pool_front(self) != NULL) {
            rmm__front_walk(rmm__pool_front(self), report_left_behind, self);
        }
    }
    if (self->base.upstream == NULL) {
        rmm__pool_range_close(self, is_idle);
    } else {
        for (uint32_t i = 0; i < self->chunk_count; i++) {
            rmm__pool_chunk_return(self, &self->by_address[i]);
        }
    }
    rmm__pool_keep_barrier(self, false);
    rmm__pool_front_fini(self);
    rmm__pool_streams_fini(self);
    if (self->blocks != NULL) {
        rmm__suballoc_destroy(self->blocks);
    }
    rmm__free(self->by_address);
    rmm__free(self->by_unit);
}

/* The locks last: until its books are closed others may take the pool's own. */
static void pool_fini(pool_t *self)
{
    pool_free_all(self);
    rmm__resource_fini(&self->base);
    rmm__mutex_fini(&self->lock);
    rmm__mutex_fini(&self->grow_lock);
}

static void pool_destroy(rmm_resource_t *mr)
{
    pool_fini(pool_from_base(mr));
    rmm__free(pool_from_base(mr));
}

static const rmm_resource_ops_t pool_ops = {
    .type_name = "pool",
    .alloc = pool_alloc,
    .dealloc = pool_dealloc,
    .trim = rmm__pool_trim,
    .destroy = pool_destroy,
    .ready_on_all_streams = false,
    .settles = true,
};

/* The same with blocks of one size. */
const rmm_resource_ops_t rmm__fixed_size_ops = {
    .type_name = "fixed_size",
    .alloc = pool_alloc,
    .dealloc = pool_dealloc,
    .trim = rmm__pool_trim,
    .destroy = pool_destroy,
    .ready_on_all_streams = false,
    .settles = true,
};

/* --- create ------------------------------------------------------------------------- */

static void *
storage_resize(void *context, char what, void *old, size_t old_bytes, size_t new_bytes)
{
    (void)context;
    (void)what;
    if (new_bytes == 0) {
        rmm__free(old);
        return NULL;
    }
    return rmm__resize(old, old_bytes, new_bytes);
}

/* Up to whole units; what does not fit becomes the largest that does. */
static uint64_t whole_units(uint64_t bytes)
{
    return bytes > UINT64_MAX - POOL_UNIT
               ? UINT64_MAX / POOL_UNIT * POOL_UNIT
               : (bytes + POOL_UNIT - 1) / POOL_UNIT * POOL_UNIT;
}

static rmm_status_t check_options(rmm_pool_options_t *options)
{
    if (options->initial_bytes > PTRDIFF_MAX) {
        return rmm__error(
            RMM_ERR_OUT_OF_MEMORY,
            "initial_bytes %" PRIu64 " is more than any device has",
            options->initial_bytes);
    }
    options->initial_bytes = whole_units(options->initial_bytes);
    options->maximum_bytes =
        whole_units(options->maximum_bytes != 0 ? options->maximum_bytes : UINT64_MAX);
    if (options->initial_bytes > options->maximum_bytes) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "initial_bytes %" PRIu64 " is more than maximum_bytes %" PRIu64,
            options->initial_bytes, options->maximum_bytes);
    }
    return RMM_OK;
}

rmm_status_t rmm__pool_blocks_init(pool_t *self)
{
    static const rmm_suballoc_storage_t storage = {.resize = storage_resize};

    self->blocks = rmm__suballoc_create(&storage);
    if (self->blocks == NULL ||
        rmm__suballoc_heap_create(self->blocks, &self->clean) != RMM_SUBALLOC_OK) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    return rmm__pool_streams_init(self);
}

static rmm_status_t take_initial(pool_t *self, uint64_t bytes)
{
    rmm_status_t status = RMM_OK;

    if (bytes != 0) {
        rmm__mutex_lock(&self->grow_lock);
        status = rmm__pool_grow(self, bytes, bytes);
        rmm__mutex_unlock(&self->grow_lock);
        rmm__pool_log_growth(self, self->reserved_bytes); /* nobody else has it yet */
    }
    return status;
}

/* Where the pool's memory comes from. */
static rmm_status_t init_source(pool_t *self, const pool_plan_t *plan)
{
    rmm_status_t status = RMM_OK;

    if ((plan->flags & RMM_POOL_VIRTUAL) != 0) {
        status = rmm__pool_range_open(self, plan->flags, plan->initial_bytes);
    }
    return status == RMM_OK ? take_initial(self, plan->initial_bytes) : status;
}

static rmm_status_t
init_pool(pool_t *self, rmm_resource_t *upstream, int device, const pool_plan_t *plan)
{
    rmm_status_t status = rmm__resource_init(
        &self->base,
        &(rmm_resource_desc_t){
            .ops = plan->ops,
            .name = plan->name,
            .upstream = upstream,
            .properties = upstream != NULL ? rmm_resource_properties(upstream)
                                           : RMM_DEVICE_ACCESSIBLE,
            .device = device,
            .books_lock = &self->lock,
        });

    if (status != RMM_OK) {
        return status;
    }
    rmm__books_free_is_rest(&self->base.books);
    self->maximum_bytes = plan->maximum_bytes;
    self->block_units = (uint32_t)(plan->block_bytes / POOL_UNIT);
    self->growth_bytes = plan->chunk_bytes;
    rmm__mutex_init(&self->lock);
    rmm__mutex_init(&self->grow_lock);
    status = rmm__pool_blocks_init(self);
    if (status == RMM_OK) {
        status = init_source(self, plan);
    }
    if (status != RMM_OK) {
        pool_fini(self);
    }
    return status;
}

/* The upstream's device, or the current one. */
static rmm_status_t choose_device(
    const rmm_driver_t *driver, const rmm_resource_t *upstream, int *device_out)
{
    int error = RMM_DRIVER_OK;

    if (upstream != NULL) {
        *device_out = upstream->device;
    } else {
        error = driver->device_get(device_out);
    }
    return error == RMM_DRIVER_OK
               ? RMM_OK
               : rmm__driver_error(driver, error, "asking for the current device");
}

rmm_status_t rmm__pool_create(
    rmm_resource_t *upstream, const pool_plan_t *plan, rmm_resource_t **out)
{
    const rmm_driver_t *driver;
    pool_t *self;
    rmm_status_t status;
    int device;

    if (upstream != NULL && upstream->device < 0) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED,
            "a %s resource needs the streams of a device, and its upstream '%s' (%s) "
            "belongs to none: use pinned or managed memory",
            plan->ops->type_name, upstream->name, rmm_resource_type(upstream));
    }
    driver = rmm__driver(&status);
    if (driver == NULL) {
        return status;
    }
    status = choose_device(driver, upstream, &device);
    if (status != RMM_OK) {
        return status;
    }
    self = rmm__calloc(1, sizeof(*self));
    if (self == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    self->driver = driver;
    status = init_pool(self, upstream, device, plan);
    if (status != RMM_OK) {
        rmm__free(self);
        return status;
    }
    *out = &self->base;
    return RMM_OK;
}

static rmm_status_t check_flags(const rmm_resource_t *upstream, uint64_t flags)
{
    bool is_virtual = (flags & RMM_POOL_VIRTUAL) != 0;

    RMM_CHECK_ARG(upstream != NULL || is_virtual, "upstream is NULL");
    if ((flags & ~(RMM_POOL_VIRTUAL | RMM_POOL_PEER_ACCESS)) != 0) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT, "flags %#" PRIx64 ": only RMM_POOL_* are known",
            flags);
    }
    if (upstream != NULL && is_virtual) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "RMM_POOL_VIRTUAL maps the device's own memory: pass NULL for upstream, or "
            "leave the flag out");
    }
    if (!is_virtual && (flags & RMM_POOL_PEER_ACCESS) != 0) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT, "RMM_POOL_PEER_ACCESS needs RMM_POOL_VIRTUAL: "
                                      "for memory of an upstream call "
                                      "cudaDeviceEnablePeerAccess()");
    }
    return RMM_OK;
}

rmm_status_t rmm_pool_resource_create(
    rmm_resource_t *upstream, const rmm_pool_options_t *options, rmm_resource_t **out)
{
    rmm_pool_options_t opts;
    rmm_status_t status;

    RMM_CHECK_ARG(out != NULL, "out is NULL");
    status = rmm__options_copy(
        &opts, sizeof(opts), options, offsetof(rmm_pool_options_t, flags));
    if (status == RMM_OK) {
        status = check_flags(upstream, opts.flags);
    }
    if (status == RMM_OK) {
        status = check_options(&opts);
    }
    if (status != RMM_OK) {
        return status;
    }
    return rmm__pool_create(
        upstream,
        &(pool_plan_t){
            .ops = &pool_ops,
            .name = opts.name,
            .initial_bytes = opts.initial_bytes,
            .maximum_bytes = opts.maximum_bytes,
            .flags = opts.flags},
        out);
}
