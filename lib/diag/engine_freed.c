/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's part in blocks that were freed: see engine_impl.h and freed.h. What a call or a
 * launch is given is looked up here if it is in no live block.
 *
 * A copy, fill or prefetch of freed memory is certain to be an error. A kernel may have been given
 * a pointer that it does not follow, so that is likely to be one. It is taken for the end of
 * an array, and no error, if a live block ends there.
 *
 * Memory that went back to the driver stays known until a block takes it. Meanwhile the host may
 * get these addresses for other memory, so an address that the host can read does not count as
 * freed.
 *
 * The order of streams does not matter: the host makes the call after the free, and by then the
 * memory may belong to another block.
 */
#include "diag/engine_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "diag/event_range.h"
#include "diag/row.h"

rmm_stack_raw_t *rmm__diag_freed_begin(const rmm_diag_engine_t *engine)
{
    return rmm__diag_mode_is_on(engine, RMM_DIAG_MODE_BOUNDS) ? rmm__stack_take()
                                                              : NULL;
}

uint32_t rmm__diag_number_of_locked(rmm_diag_engine_t *engine, rmm_stack_raw_t *stack)
{
    RMM_ASSERT_LOCKED(&engine->lock);
    return stack != NULL ? rmm__stack_depot_put(&engine->depot, stack) : 0;
}

/* --- blocks ------------------------------------------------------------------------ */

/* What lies behind the block up to the next unit of a pool is padding. */
static uint64_t end_of(const rmm_diag_block_v1_t *block)
{
    enum { UNIT = 256 };
    uint64_t end = block->address + block->bytes;
    uint64_t padded = end > UINT64_MAX - UNIT ? end : (end + UNIT - 1) / UNIT * UNIT;

    return block->end > end ? block->end : padded;
}

static void show_dropped(rmm_diag_engine_t *engine)
{
    RMM_ROW_SET(engine->header, freed_dropped, engine->freed.dropped);
}

void rmm__diag_freed_taken_locked(
    rmm_diag_engine_t *engine, const rmm_diag_block_v1_t *block)
{
    RMM_ASSERT_LOCKED(&engine->lock);
    rmm__freed_take(&engine->freed, block->address, end_of(block));
    show_dropped(engine);
}

/* The driver's memory, allocated on a stream that captures: a node of the graph, which makes the
 * address valid again at each launch. */
static bool is_of_graph(const rmm_diag_block_v1_t *block)
{
    const uint32_t flags = RMM_DIAG_BLOCK_CAPTURED | RMM_DIAG_BLOCK_RETURNED |
                           RMM_DIAG_BLOCK_IN_STREAM_ORDER;

    return (block->flags & flags) == flags;
}

uint32_t rmm__diag_freed_allocated_locked(
    rmm_diag_engine_t *engine, uint32_t index, const rmm_diag_block_v1_t *block,
    rmm_stack_raw_t *stack)
{
    rmm_diag_row_t *row = &engine->rows[index];
    uint32_t origin = rmm__diag_number_of_locked(engine, stack);

    RMM_ASSERT_LOCKED(&engine->lock);
    engine->blocks[index] = (rmm_diag_block_note_t){
        .origin = origin,
        .is_kept = (block->flags & RMM_DIAG_BLOCK_KEPT) != 0,
        .is_returned = (block->flags & RMM_DIAG_BLOCK_RETURNED) != 0,
        .is_of_graph = is_of_graph(block),
        .record = RMM_LIVE_NONE};
    if (origin == 0) {
        RMM_ROW_ADD(&engine->header->sites_dropped, stack != NULL && stack->count > 0);
        return 0;
    }
    RMM_ROW_BEGIN(row);
    RMM_ROW_SET(row, site, origin);
    RMM_ROW_END(row);
    if (engine->has_site[origin - 1]) {
        return 0;
    }
    engine->has_site[origin - 1] = true;
    return origin;
}

static bool
is_remembered(const rmm_diag_engine_t *engine, const rmm_diag_block_note_t *note)
{
    return note->is_kept ||
           (note->is_returned && engine->driver_memory != RMM_DRIVER_MEMORY_UNSEEN);
}

void rmm__diag_freed_add_locked(
    rmm_diag_engine_t *engine, uint32_t index, const rmm_diag_block_v1_t *freed,
    rmm_stack_raw_t *stack)
{
    const rmm_diag_block_note_t *note = &engine->blocks[index];
    rmm_freed_block_t block = {
        .block = rmm__uses_block(&engine->uses, index),
        .freed_stream_id = freed->stream_id,
        .origin = note->origin,
        .is_returned = note->is_returned};

    RMM_ASSERT_LOCKED(&engine->lock);
    block.freed = rmm__diag_number_of_locked(engine, stack);
    rmm__diag_refused_freed_locked(engine, &block);
    if ((freed->flags & RMM_DIAG_BLOCK_CAPTURED) != 0 || note->is_of_graph ||
        block.block.resource_id != freed->resource_id) {
        return;
    }
    block.block.stream = freed->stream;
    rmm__diag_graphs_freed_locked(engine, index, &block);
    if (is_remembered(engine, note) &&
        rmm__diag_mode_is_on(engine, RMM_DIAG_MODE_BOUNDS)) {
        rmm__freed_add(&engine->freed, &block);
        show_dropped(engine);
    }
}

void rmm__diag_engine_on_gone(void *context, uint64_t address, uint64_t bytes)
{
    rmm_diag_engine_t *engine = context;
    uint64_t end = bytes > UINT64_MAX - address ? UINT64_MAX : address + bytes;

    rmm__mutex_lock(&engine->lock);
    rmm__freed_take(&engine->freed, address, end);
    rmm__bounds_gone(&engine->bounds, address, end);
    rmm__mutex_unlock(&engine->lock);
}

void rmm__diag_engine_on_pool(void *context, uint64_t address, uint64_t bytes)
{
    rmm_diag_engine_t *engine = context;

    if (bytes <= UINT64_MAX - address) {
        rmm__mutex_lock(&engine->lock);
        rmm__bounds_pool(&engine->bounds, address, address + bytes);
        rmm__mutex_unlock(&engine->lock);
    }
}

void rmm__diag_engine_driver_unseen(rmm_diag_engine_t *engine, bool from_now_on)
{
    rmm__mutex_lock(&engine->lock);
    rmm__freed_drop_returned(&engine->freed);
    if (from_now_on) {
        engine->driver_memory = RMM_DRIVER_MEMORY_UNSEEN;
    }
    rmm__mutex_unlock(&engine->lock);
}

/* By a call that the kernel refuses, but only behind its look at the memory. */
static bool host_can_read(uint64_t address)
{
    const int refused = ~0;
    int before = errno;
    uint64_t aligned = address & ~UINT64_C(7); /* all 8 bytes are in one page */
    bool can =
        syscall(SYS_rt_sigprocmask, refused, aligned, NULL, 8) == 0 || errno != EFAULT;

    errno = before;
    return can;
}

static bool
is_of_host(const rmm_diag_engine_t *engine, const rmm_freed_block_t *freed, uint64_t at)
{
    bool is_apart =
        engine->driver_memory == RMM_DRIVER_MEMORY_APART && freed->block.device >= 0;

    return freed->is_returned && !is_apart && host_can_read(at);
}

/* The freed block that this address is in; NULL: none is known. */
static const rmm_freed_block_t *
find_freed_locked(rmm_diag_engine_t *engine, uint64_t address)
{
    const rmm_freed_block_t *freed = rmm__freed_find(&engine->freed, address);

    if (freed != NULL && is_of_host(engine, freed, address)) {
        rmm__freed_take(
            &engine->freed, freed->block.address,
            freed->block.address + freed->block.bytes);
        return NULL;
    }
    return freed;
}

/* --- uses -------------------------------------------------------------------------- */

static void add_finding_locked(
    rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event,
    const rmm_freed_block_t *freed, rmm_finding_t finding)
{
    finding.kind = RMM_DIAG_USE_AFTER_FREE;
    finding.call = event->kind;
    finding.block = freed->block;
    finding.stream_id = rmm__stream_names_find(&engine->streams, event->stream);
    finding.other_user = RMM_DIAG_NO_USER;
    finding.other_stream_id = freed->freed_stream_id;
    finding.origin = freed->origin;
    finding.freed = freed->freed;
    rmm__findings_add(&engine->findings, &finding);
}

bool rmm__diag_freed_range_locked(
    rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event,
    const rmm_event_range_t *range)
{
    const rmm_freed_block_t *freed = NULL;

    RMM_ASSERT_LOCKED(&engine->lock);
    if (range->bytes == 0 || !rmm__freed_may_have(&engine->freed, range->start) ||
        rmm__live_map_find(&engine->map, range->start) != RMM_LIVE_NONE) {
        return false;
    }
    freed = find_freed_locked(engine, range->start);
    if (freed != NULL) {
        add_finding_locked(
            engine, event, freed,
            (rmm_finding_t){
                .access = range->is_write ? RMM_DIAG_WRITES : RMM_DIAG_READS,
                .address = range->start,
                .bytes = range->bytes,
                .function = event->name,
                .user = RMM_DIAG_NO_USER,
                .confidence = freed->is_returned ? RMM_DIAG_LIKELY : RMM_DIAG_CERTAIN});
    }
    return freed != NULL;
}

/* The freed block that a kernel is given a pointer into; NULL: the word is no error. */
static const rmm_freed_block_t *
find_stale_locked(rmm_diag_engine_t *engine, uint64_t word)
{
    const rmm_freed_block_t *freed = find_freed_locked(engine, word);

    if (freed == NULL || rmm__event_may_be_number(word, freed->block.address) ||
        rmm__live_map_find(&engine->map, word - 1) != RMM_LIVE_NONE) {
        return NULL;
    }
    return freed;
}

/* NULL: the stray is no error, or is of the same block as one before it. */
static const rmm_freed_block_t *stale_block(rmm_diag_engine_t *engine, uint32_t stray)
{
    const uint64_t *strays = engine->uses.strays;
    const rmm_freed_block_t *freed = find_stale_locked(engine, strays[stray]);

    for (uint32_t i = 0; i < stray && freed != NULL; i++) {
        const rmm_freed_block_t *before = find_stale_locked(engine, strays[i]);

        if (before != NULL && before->block.address == freed->block.address) {
            freed = NULL;
        }
    }
    return freed;
}

void rmm__diag_freed_launched_locked(
    rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event, uint32_t user)
{
    RMM_ASSERT_LOCKED(&engine->lock);
    for (uint32_t i = 0; i < engine->uses.stray_count; i++) {
        const rmm_freed_block_t *freed = stale_block(engine, i);

        if (freed != NULL) {
            add_finding_locked(
                engine, event, freed,
                (rmm_finding_t){
                    .access = RMM_DIAG_USES,
                    .address = engine->uses.strays[i],
                    .user = user != RMM_DIAG_NO_USER
                                ? user
                                : rmm__uses_kernel(&engine->uses, event),
                    .confidence = RMM_DIAG_LIKELY});
        }
    }
}

/* --- stacks of findings ------------------------------------------------------------ */

void rmm__diag_freed_put_stacks(rmm_diag_engine_t *engine, uint32_t finding)
{
    rmm_stack_raw_t origin, freed;
    bool has_origin, has_freed;

    rmm__mutex_lock(&engine->lock);
    has_origin = rmm__stack_depot_get(
        &engine->depot, engine->findings.origins[finding], &origin);
    has_freed =
        rmm__stack_depot_get(&engine->depot, engine->findings.frees[finding], &freed);
    rmm__mutex_unlock(&engine->lock);
    if (has_origin) {
        rmm__stacks_put_origin(&engine->stacks, finding, &origin);
    }
    if (has_freed) {
        rmm__stacks_put_free(&engine->stacks, finding, &freed);
    }
}

/* --- making ------------------------------------------------------------------------ */

bool rmm__diag_freed_init(rmm_diag_engine_t *engine, uint32_t row_count)
{
    engine->blocks = calloc(row_count, sizeof(*engine->blocks));
    if (engine->blocks == NULL) {
        return false;
    }
    if (!rmm__freed_init(&engine->freed, RMM_FREED_COUNT)) {
        free(engine->blocks);
        return false;
    }
    if (!rmm__stack_depot_init(&engine->depot)) {
        rmm__freed_fini(&engine->freed);
        free(engine->blocks);
        return false;
    }
    engine->uses.freed = &engine->freed;
    return true;
}

void rmm__diag_freed_fini(rmm_diag_engine_t *engine)
{
    rmm__stack_depot_fini(&engine->depot);
    rmm__freed_fini(&engine->freed);
    rmm__graphs_end_all(&engine->graphs);
    free(engine->blocks);
}
