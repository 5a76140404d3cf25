/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records every live block in a table by address. tracking_report.c copies and prints it.
 *
 * A block leaves the table before upstream sees its free, because the same address may be
 * handed out again at once; if upstream refuses the free, it comes back. What is in the
 * table and the figures change under one lock, so they always agree.
 *
 * Locking: the adaptor's `lock` protects the table as well. Stacks are captured and freed
 * outside.
 */
#include "adaptors/tracking_impl.h"

#include <inttypes.h>

#include "core/assert.h"
#include "core/host_memory.h"
#include "log/log.h"
#include "publish/leak_modules.h"

static tracking_t *from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, tracking_t, adaptor.base);
}

/* --- the table ---------------------------------------------------------------------- */

static void
show_locked(tracking_t *self, rmm_pointer_map_entry_t *block, rmm_stream_t stream)
{
    const rmm_call_stack_t *stack = rmm__tracking_stack(block);
    rmm_leak_t leak = {
        .ptr = block->ptr,
        .bytes = block->bytes,
        .stream = stream,
        .device = self->adaptor.base.device};

    RMM_ASSERT_LOCKED(&self->adaptor.lock);
    if (stack != NULL) {
        size_t own = rmm__leak_modules_own(stack->frames, stack->count);

        leak.frames = stack->frames + own;
        leak.frame_count = stack->count - own;
    }
    rmm__tracking_set_row(block, rmm__leak_row_show(&self->rows, &leak));
}

static bool
insert_locked(tracking_t *self, rmm_pointer_map_entry_t *block, rmm_stream_t stream)
{
    if (!rmm__pointer_map_reserve(&self->blocks)) {
        return false;
    }
    show_locked(self, block, stream);
    rmm__pointer_map_insert_entry(&self->blocks, block);
    return true;
}

static bool
take_out_locked(tracking_t *self, const void *ptr, rmm_pointer_map_entry_t *block)
{
    RMM_ASSERT_LOCKED(&self->adaptor.lock);
    if (!rmm__pointer_map_find_entry(&self->blocks, ptr, block)) {
        return false;
    }
    rmm__pointer_map_erase(&self->blocks, ptr);
    rmm__leak_row_clear(&self->rows, rmm__tracking_row(block));
    return true;
}

/* False without host memory. A block that is in the table already was freed without our
 * knowledge, since upstream gave it out again: *stale is what we thought to be out. */
static bool remember(
    tracking_t *self, rmm_pointer_map_entry_t *block, rmm_stream_t stream,
    rmm_pointer_map_entry_t *stale)
{
    bool inserted;

    rmm__mutex_lock(&self->adaptor.lock);
    if (take_out_locked(self, block->ptr, stale)) {
        rmm__adaptor_count_free_locked(&self->adaptor, stale->bytes, 1);
    } else {
        stale->ptr = NULL;
    }
    inserted = insert_locked(self, block, stream);
    if (inserted) {
        rmm__adaptor_count_alloc_locked(&self->adaptor, block->bytes);
    }
    rmm__mutex_unlock(&self->adaptor.lock);
    return inserted;
}

/* False if it is not in the table. */
static bool forget(tracking_t *self, const void *ptr, rmm_pointer_map_entry_t *block)
{
    bool found;

    rmm__mutex_lock(&self->adaptor.lock);
    found = take_out_locked(self, ptr, block);
    if (found) {
        rmm__adaptor_count_free_locked(&self->adaptor, block->bytes, 1);
    }
    rmm__mutex_unlock(&self->adaptor.lock);
    return found;
}

/* Upstream refused the free: the block is out as before, and listed as of now. */
RMM_COLD static void
take_back(tracking_t *self, rmm_pointer_map_entry_t *block, rmm_stream_t stream)
{
    bool inserted;

    rmm__mutex_lock(&self->adaptor.lock);
    inserted = insert_locked(self, block, stream);
    rmm__adaptor_count_free_locked(&self->adaptor, block->bytes, -1);
    rmm__mutex_unlock(&self->adaptor.lock);
    if (!inserted) {
        rmm__free(rmm__tracking_stack(block));
    }
}

static void count_nothing(tracking_t *self, bool allocated)
{
    rmm__mutex_lock(&self->adaptor.lock);
    if (allocated) {
        rmm__adaptor_count_alloc_locked(&self->adaptor, 0);
    } else {
        rmm__adaptor_count_free_locked(&self->adaptor, 0, 1);
    }
    rmm__mutex_unlock(&self->adaptor.lock);
}

/* --- allocate and free -------------------------------------------------------------- */

RMM_COLD static void
say_stale(const tracking_t *self, const rmm_pointer_map_entry_t *stale)
{
    rmm__resource_warn_stale(&self->adaptor.base, stale->ptr, stale->bytes);
    rmm__free(rmm__tracking_stack(stale));
}

static void tell_modules(const rmm_pointer_map_entry_t *block)
{
    const rmm_call_stack_t *stack = rmm__tracking_stack(block);

    if (stack != NULL) {
        rmm__leak_modules_learn(stack->frames, stack->count);
    }
}

static rmm_status_t
take_block(tracking_t *self, const rmm_request_t *request, void **ptr_out)
{
    rmm_pointer_map_entry_t block = {.bytes = request->bytes};
    rmm_pointer_map_entry_t stale;
    rmm_status_t status =
        rmm__resource_alloc(self->adaptor.base.upstream, request, &block.ptr);

    if (status != RMM_OK) {
        return rmm__adaptor_failed(&self->adaptor, status);
    }
    if (block.ptr == NULL) {
        return rmm__resource_refuse_null(
            &self->adaptor.base, self->adaptor.base.upstream, request);
    }
    if (self->max_frames != 0) { /* without host memory the block has no stack */
        block.owner = rmm__call_stack_capture(self->max_frames);
        tell_modules(&block);
    }
    if (!remember(self, &block, request->stream, &stale)) {
        rmm__resource_dealloc(self->adaptor.base.upstream, block.ptr, request);
        rmm__free(rmm__tracking_stack(&block));
        status = RMM_ERR_OUT_OF_HOST_MEMORY;
    } else {
        *ptr_out = block.ptr;
    }
    if (stale.ptr != NULL) {
        say_stale(self, &stale);
    }
    return status;
}

static rmm_status_t
tracking_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    tracking_t *self = from_base(mr);
    rmm_status_t status;

    if (request->bytes != 0) {
        return take_block(self, request, ptr_out);
    }
    status = rmm__resource_alloc(mr->upstream, request, ptr_out);
    if (status != RMM_OK) {
        return rmm__adaptor_failed(&self->adaptor, status);
    }
    count_nothing(self, true);
    return RMM_OK;
}

RMM_COLD static void
free_unknown(tracking_t *self, void *ptr, const rmm_request_t *request)
{
    rmm__log_error(
        "tracking '%s': free of %p bytes %zu, which it did not allocate; passed on to "
        "upstream",
        self->adaptor.base.name, ptr, request->bytes);
    if (!rmm__adaptor_pass_free(&self->adaptor, ptr, request)) {
        rmm__adaptor_refused(&self->adaptor, request);
    }
}

RMM_COLD static void say_wrong_size(
    const tracking_t *self, const rmm_pointer_map_entry_t *block, size_t bytes)
{
    rmm__log_error(
        "tracking '%s': free of %p with bytes %zu, but it was allocated with %zu; "
        "freed with the allocated size",
        self->adaptor.base.name, block->ptr, bytes, block->bytes);
}

static void give_block(tracking_t *self, void *ptr, const rmm_request_t *request)
{
    rmm_pointer_map_entry_t block;
    rmm_request_t true_request = *request;

    if (!forget(self, ptr, &block)) {
        free_unknown(self, ptr, request);
        return;
    }
    if (block.bytes != request->bytes) {
        say_wrong_size(self, &block, request->bytes);
        rmm__resource_tell_wrong_size(&self->adaptor.base, ptr, request, block.bytes);
        true_request.bytes = block.bytes;
    }
    if (rmm__adaptor_pass_free(&self->adaptor, ptr, &true_request)) {
        rmm__free(rmm__tracking_stack(&block));
    } else {
        take_back(self, &block, request->stream);
        rmm__adaptor_refused(&self->adaptor, request);
    }
}

static void
tracking_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    tracking_t *self = from_base(mr);

    if (ptr != NULL) {
        give_block(self, ptr, request);
        return;
    }
    count_nothing(self, false);
    (void)rmm__adaptor_pass_free(&self->adaptor, ptr, request);
}

static void tracking_destroy(rmm_resource_t *mr)
{
    tracking_t *self = from_base(mr);
    rmm_pointer_map_entry_t block;
    size_t from = 0;

    rmm__tracking_report_leaks(self);
    rmm__mutex_lock(&self->adaptor.lock);
    while (rmm__pointer_map_any(&self->blocks, &from, &block)) {
        (void)take_out_locked(self, block.ptr, &block);
        rmm__free(rmm__tracking_stack(&block));
    }
    rmm__leak_rows_close(&self->rows);
    rmm__mutex_unlock(&self->adaptor.lock);
    rmm__pointer_map_fini(&self->blocks);
    rmm__adaptor_destroy(mr);
}

static const rmm_resource_ops_t tracking_ops[] = RMM_ADAPTOR_OPS(
    "tracking", tracking_alloc, tracking_dealloc, rmm__adaptor_trim, tracking_destroy);

/* --- public ------------------------------------------------------------------------- */

tracking_t *rmm__tracking_from(rmm_resource_t *mr)
{
    return rmm__adaptor_is(mr, tracking_ops) ? from_base(mr) : NULL;
}

rmm_status_t rmm_tracking_adaptor_create(
    rmm_resource_t *upstream, const rmm_tracking_options_t *options,
    rmm_resource_t **out)
{
    rmm_tracking_options_t opts;
    rmm_adaptor_t *adaptor;
    tracking_t *self;
    rmm_status_t status = RMM_OPTIONS_OVER(upstream, out, &opts, options);

    if (status != RMM_OK) {
        return status;
    }
    RMM_CHECK_ARG(opts.max_frames <= RMM_CALL_STACK_DEPTH, "max_frames is above 64");
    status = rmm__adaptor_create(
        &(rmm_adaptor_plan_t){tracking_ops, sizeof(tracking_t), opts.name}, upstream,
        &adaptor);
    if (status != RMM_OK) {
        return status;
    }
    self = from_base(&adaptor->base);
    rmm__leak_rows_open(&self->rows, adaptor->base.instance_id);
    if (opts.capture_stacks) {
        rmm__call_stack_prepare();
        self->max_frames =
            opts.max_frames != 0 ? opts.max_frames : RMM_CALL_STACK_DEPTH;
    }
    *out = &adaptor->base;
    return RMM_OK;
}
