/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invariants:
 *  - the engine's own map is the truth; the side file is only written, so whatever
 *    another process scribbles there changes figures but breaks nothing.
 *  - row i of the side file is block i of the map.
 *
 * Cost: each event is one lock. Before a copy, fill or prefetch: one search of the map for each
 * side. Behind it, and after a launch: uses.c.
 */
#include "diag/engine.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/uncancelled.h"
#include "diag/engine_impl.h"
#include "diag/event_range.h"
#include "diag/layout.h"
#include "diag/resource_names.h"
#include "diag/row.h"

/* Asked under the lock: once it is off it never is on again. */
static bool judges_order(const rmm_diag_engine_t *engine)
{
    return rmm__diag_mode_is_on(engine, RMM_DIAG_MODE_ORDER);
}

/* --- blocks ------------------------------------------------------------------------ */

void rmm__diag_forget_block_locked(rmm_diag_engine_t *engine, uint32_t index)
{
    RMM_ASSERT_LOCKED(&engine->lock);
    rmm__peaks_freed(&engine->peaks, &engine->rows[index]);
    if (rmm__timeline_is_on(&engine->timeline)) {
        rmm__timeline_freed(
            &engine->timeline, &engine->rows[index], rmm__uses_now(&engine->uses));
    }
    rmm__uses_close(&engine->uses, index);
    if (rmm__guards_has(&engine->guards, index)) {
        rmm__guards_drop(&engine->guards, index);
    }
    rmm__live_map_erase(&engine->map, index);
}

/* Memory that is handed out was free: what still stands there was freed unseen, as with its
 * context, or is larger and its owner hands out its parts. The driver hands out no parts. */
static void
forget_overlaps_locked(rmm_diag_engine_t *engine, const rmm_diag_block_v1_t *block)
{
    uint64_t start = block->address, end = block->address + block->bytes;
    bool is_from_driver = (block->flags & RMM_DIAG_BLOCK_RETURNED) != 0;
    uint32_t index = rmm__live_map_overlap(&engine->map, start, end);

    while (index != RMM_LIVE_NONE) {
        const rmm_live_node_t *node = &engine->map.nodes[index];

        if (!is_from_driver && node->start <= start && end <= node->end &&
            node->end - node->start > end - start) {
            rmm__bounds_divided(&engine->bounds, node->start, node->end);
        } else {
            rmm__bounds_gone(&engine->bounds, node->start, node->end);
        }
        rmm__diag_forget_block_locked(engine, index);
        index = rmm__live_map_overlap(&engine->map, start, end);
    }
}

/* The end of what is the block's alone; 0: not known. Behind a block of the driver is padding, as
 * the next one begins at a multiple of 256 bytes. */
static uint64_t own_end(const rmm_diag_block_v1_t *block)
{
    enum { UNIT = 256 };
    uint64_t end = block->address + block->bytes;
    bool is_padded =
        (block->flags & RMM_DIAG_BLOCK_RETURNED) != 0 && block->device >= 0;
    uint64_t padded =
        is_padded && end <= UINT64_MAX - UNIT ? (end + UNIT - 1) / UNIT * UNIT : 0;

    return block->end > padded ? block->end : padded;
}

/* The memory around a new block; of one that is not followed it is not known. */
static void note_memory_locked(
    rmm_diag_engine_t *engine, uint32_t index, const rmm_diag_block_v1_t *block)
{
    uint64_t end = own_end(block);

    RMM_ASSERT_LOCKED(&engine->lock);
    if (index == RMM_LIVE_NONE) {
        rmm__bounds_gone(
            &engine->bounds, block->address, block->address + block->bytes);
        return;
    }
    engine->bounds.ends[index] = end;
    if ((block->flags & RMM_DIAG_BLOCK_KEPT) != 0) {
        rmm__bounds_allocated(&engine->bounds, block->address, end);
    }
}

/* Index of the block, or RMM_LIVE_NONE. */
static uint32_t add_block_locked(
    rmm_diag_engine_t *engine, const rmm_diag_block_v1_t *block, rmm_guard_plan_t *plan)
{
    uint64_t end = block->address + block->bytes;
    uint32_t index = 0;

    RMM_ASSERT_LOCKED(&engine->lock);
    forget_overlaps_locked(engine, block);
    rmm__diag_freed_taken_locked(engine, block);
    index = rmm__live_map_insert(&engine->map, block->address, end);
    note_memory_locked(engine, index, block);
    if (index == RMM_LIVE_NONE) {
        RMM_ROW_ADD(&engine->header->blocks_dropped, 1);
        return index;
    }
    rmm__resource_names_add(engine->resources, block);
    rmm__uses_open(&engine->uses, index, block);
    rmm__peaks_allocated(&engine->peaks, &engine->rows[index]);
    if (rmm__timeline_is_on(&engine->timeline)) {
        rmm__timeline_allocated(&engine->timeline, block);
    }
    if (judges_order(engine)) {
        rmm__order_allocated(&engine->order.order, index, block);
    }
    rmm__diag_guards_allocated_locked(engine, plan, index, block);
    /* release: the rows below are written; pairs with the reader's first look */
    atomic_store_explicit(
        &engine->header->rows_used, engine->map.fresh, memory_order_release);
    return index;
}

uint32_t
rmm__diag_add_again_locked(rmm_diag_engine_t *engine, const rmm_diag_block_v1_t *block)
{
    rmm_guard_plan_t plan;
    uint32_t index = 0;

    plan.is_on = false; /* it has no guard any more */
    index = add_block_locked(engine, block, &plan);
    if (index != RMM_LIVE_NONE) {
        (void)rmm__diag_freed_allocated_locked(engine, index, block, NULL);
    }
    return index;
}

uint32_t rmm__diag_lock(rmm_diag_engine_t *engine)
{
    rmm__mutex_lock(&engine->lock);
    return atomic_load_explicit(&engine->header->findings_used, memory_order_relaxed);
}

void rmm__diag_unlock(rmm_diag_engine_t *engine, uint32_t findings)
{
    uint32_t now =
        atomic_load_explicit(&engine->header->findings_used, memory_order_relaxed);

    rmm__mutex_unlock(&engine->lock);
    if (now > findings && now <= RMM_DIAG_FINDINGS_COUNT) {
        rmm__stacks_capture(&engine->stacks, findings, now);
    }
    for (; findings < now; findings++) {
        rmm__diag_freed_put_stacks(engine, findings);
    }
}

void rmm__diag_engine_on_alloc(void *context, const rmm_diag_block_v1_t *block)
{
    rmm_diag_engine_t *engine = context;
    uint32_t index = 0, site = 0;
    rmm_stack_raw_t *stack = NULL;
    rmm_guard_plan_t plan;

    if (block->bytes == 0 || block->address + block->bytes < block->address) {
        return;
    }
    (void)rmm__modes_now(&engine->modes);
    rmm__diag_guards_settle(engine);
    rmm__diag_guards_begin(engine, &plan, block->device, block->stream);
    stack = rmm__diag_freed_begin(engine);
    rmm__mutex_lock(&engine->lock);
    index = add_block_locked(engine, block, &plan);
    if (index != RMM_LIVE_NONE) {
        site = rmm__diag_freed_allocated_locked(engine, index, block, stack);
    }
    rmm__mutex_unlock(&engine->lock);
    if (site != 0) {
        rmm__stacks_put_site(&engine->stacks, site - 1, stack);
    }
    rmm__diag_guards_queue(engine, &plan);
}

uint32_t
rmm__diag_find_block_locked(rmm_diag_engine_t *engine, const rmm_diag_block_v1_t *block)
{
    uint32_t index = rmm__live_map_find(&engine->map, block->address);
    const rmm_live_node_t *node = NULL;

    RMM_ASSERT_LOCKED(&engine->lock);
    if (index == RMM_LIVE_NONE) {
        return index;
    }
    node = &engine->map.nodes[index];
    return node->start == block->address && node->end - node->start == block->bytes
               ? index
               : RMM_LIVE_NONE;
}

/* It is about to be freed, and reported. */
static void judge_free_locked(
    rmm_diag_engine_t *engine, uint32_t index, const rmm_diag_block_v1_t *block)
{
    bool is_left = (block->flags & RMM_DIAG_BLOCK_LEFT) != 0;

    if ((block->flags & RMM_DIAG_BLOCK_CAPTURED) != 0) { /* a graph uses it later */
        rmm__bounds_gone(
            &engine->bounds, block->address, block->address + block->bytes);
    } else {
        rmm__verdicts_freed(
            &engine->verdicts, &engine->rows[index], is_left,
            atomic_load_explicit(&engine->modes.judged_since_ns, memory_order_relaxed));
    }
    if (judges_order(engine) && !is_left) {
        rmm__order_findings_free(&engine->order, index, block);
    }
}

void rmm__diag_engine_on_free(void *context, const rmm_diag_block_v1_t *block)
{
    rmm_diag_engine_t *engine = context;
    uint32_t index = 0, findings = 0;
    rmm_stack_raw_t *stack = NULL;
    rmm_guard_plan_t plan;

    (void)rmm__modes_now(&engine->modes);
    rmm__diag_guards_settle(engine);
    rmm__diag_guards_begin(engine, &plan, block->device, block->stream);
    stack = rmm__diag_freed_begin(engine);
    findings = rmm__diag_lock(engine);
    rmm__bounds_freed(&engine->bounds, block->address, block->address + block->bytes);
    index = rmm__diag_find_block_locked(engine, block);
    if (index != RMM_LIVE_NONE) {
        rmm__diag_refused_note_locked(engine, index, block);
        judge_free_locked(engine, index, block);
        rmm__diag_guards_freed_locked(engine, &plan, index, block);
        rmm__diag_freed_add_locked(engine, index, block, stack);
        rmm__diag_forget_block_locked(engine, index);
    }
    rmm__diag_unlock(engine, findings);
    rmm__diag_guards_queue(engine, &plan);
}

/* --- events ------------------------------------------------------------------------ */

/* One side of a copy, or the range of a fill or prefetch. What it writes of guards is its error,
 * not that of the next kernel; in mode guards alone it is looked at for these only. */
static void check_range_locked(
    rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event,
    const rmm_event_range_t *range, rmm_guard_plan_t *plan)
{
    uint32_t index =
        rmm__bounds_check(&engine->bounds, &engine->map, range->start, range->bytes);
    bool breaks_guards =
        index != RMM_LIVE_NONE && range->is_write &&
        rmm__diag_guards_overwritten_locked(engine, plan, event, range);

    if (index != RMM_LIVE_NONE &&
        (breaks_guards || rmm__diag_mode_is_on(engine, RMM_DIAG_MODE_BOUNDS))) {
        rmm__findings_add(
            &engine->findings,
            &(rmm_finding_t){
                .kind = RMM_DIAG_OUT_OF_BOUNDS,
                .call = event->kind,
                .access = range->is_write ? RMM_DIAG_WRITES : RMM_DIAG_READS,
                .block = rmm__uses_block(&engine->uses, index),
                .address = range->start,
                .bytes = range->bytes,
                .function = event->name,
                .user = RMM_DIAG_NO_USER,
                .stream_id = UINT64_MAX,
                .other_user = RMM_DIAG_NO_USER,
                .other_stream_id = UINT64_MAX});
    }
}

static void check_bounds_locked(
    rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event, rmm_guard_plan_t *plan)
{
    bool is_on = rmm__diag_mode_is_on(engine, RMM_DIAG_MODE_BOUNDS);

    for (size_t i = 0; i < rmm__event_range_count(event); i++) {
        const rmm_event_range_t range = rmm__event_range(event, i);

        if (!is_on || !rmm__diag_freed_range_locked(engine, event, &range)) {
            check_range_locked(engine, event, &range, plan);
        }
    }
}

static bool has_range(uint32_t kind)
{
    return kind == RMM_DIAG_COPY || kind == RMM_DIAG_SET || kind == RMM_DIAG_PREFETCH;
}

static bool is_of_graph(uint32_t kind)
{
    return kind == RMM_DIAG_GRAPH_MADE || kind == RMM_DIAG_GRAPH_CHANGED ||
           kind == RMM_DIAG_GRAPH_ENDS || kind == RMM_DIAG_GRAPH_PART;
}

static bool is_launch(const rmm_diag_event_v1_t *event)
{
    return event->kind == RMM_DIAG_LAUNCH || event->kind == RMM_DIAG_GRAPH_LAUNCH;
}

/* What the event is looked at for: modes. */
static uint32_t modes_for(const rmm_diag_event_v1_t *event)
{
    if (is_launch(event) || is_of_graph(event->kind)) {
        return RMM_DIAG_MODES_WITH_GRAPHS;
    }
    if (has_range(event->kind)) {
        if (event->before) {
            return RMM_DIAG_MODE_BOUNDS | RMM_DIAG_MODE_GUARDS;
        }
        return RMM_DIAG_MODES_WITH_USES |
               (event->graph != 0 ? RMM_DIAG_MODE_BOUNDS : 0);
    }
    return RMM_DIAG_MODE_ORDER;
}

/* What is given to a call before it is made, or, if nothing else is looked for, to a launch. */
static void check_event_locked(
    rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event, rmm_guard_plan_t *plan)
{
    if (has_range(event->kind) && event->before) {
        check_bounds_locked(engine, event, plan);
    } else if (has_range(event->kind)) {
        (void)rmm__diag_graphs_captured_locked(engine, event);
    } else if (event->kind == RMM_DIAG_LAUNCH) {
        if (!rmm__diag_graphs_captured_locked(engine, event)) {
            rmm__uses_look(&engine->uses, event);
        }
        rmm__diag_freed_launched_locked(engine, event, RMM_DIAG_NO_USER);
    }
}

static uint32_t
launch_locked(rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event)
{
    uint32_t user = RMM_DIAG_NO_USER;

    if (!rmm__diag_graphs_captured_locked(engine, event)) {
        user = rmm__uses_launch(&engine->uses, event);
    }
    if (engine->uses.stray_count > 0 &&
        rmm__diag_mode_is_on(engine, RMM_DIAG_MODE_BOUNDS)) {
        rmm__diag_freed_launched_locked(engine, event, user);
    }
    return user;
}

static void on_event_locked(
    rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event, rmm_guard_plan_t *plan)
{
    uint32_t user = RMM_DIAG_NO_USER;

    RMM_ASSERT_LOCKED(&engine->lock);
    rmm__diag_graphs_forget_stale_locked(engine);
    if (event->kind == RMM_DIAG_GRAPH_LAUNCH) {
        rmm__diag_graphs_launched_locked(engine, event);
    } else if (rmm__diag_graphs_event_locked(engine, event)) {
        return;
    }
    if (event->before || !rmm__diag_mode_is_on(engine, RMM_DIAG_MODES_WITH_USES)) {
        check_event_locked(engine, event, plan);
        return;
    }
    if (event->kind == RMM_DIAG_LAUNCH) {
        user = launch_locked(engine, event);
    } else if (
        has_range(event->kind) && !rmm__diag_graphs_captured_locked(engine, event)) {
        user = rmm__uses_range(&engine->uses, event);
    }
    if (rmm__timeline_is_on(&engine->timeline)) {
        rmm__timeline_called(
            &engine->timeline, event, user, rmm__uses_now(&engine->uses));
    }
    rmm__diag_guards_launched_locked(engine, plan, event, user);
    if (judges_order(engine)) {
        rmm__order_findings_event(&engine->order, event, user);
    }
}

/* In every mode: findings name streams. */
static void on_stream(rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event)
{
    bool is_seen = event->kind == RMM_DIAG_STREAM_SEEN && event->word_count > 1;

    rmm__mutex_lock(&engine->lock);
    rmm__stream_names_put(
        &engine->streams, event->stream, is_seen ? event->words[1] : UINT64_MAX);
    if (is_seen && judges_order(engine)) {
        rmm__clocks_stream_seen(
            engine->order.order.clocks, event->stream, event->words[0] == 0,
            event->words[1]);
    }
    rmm__mutex_unlock(&engine->lock);
}

static bool is_of_stream(const rmm_diag_event_v1_t *event)
{
    return event->kind == RMM_DIAG_STREAM_SEEN ||
           event->kind == RMM_DIAG_STREAM_CREATE ||
           event->kind == RMM_DIAG_STREAM_DESTROY;
}

static void on_event(rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event)
{
    rmm_guard_plan_t plan;
    uint32_t findings = 0;

    plan.is_on = false; /* the rest is large, and not read */
    if (is_launch(event) || (has_range(event->kind) && event->before)) {
        rmm__diag_guards_begin(engine, &plan, event->device, event->stream);
    }
    findings = rmm__diag_lock(engine);
    on_event_locked(engine, event, &plan);
    rmm__diag_unlock(engine, findings);
    rmm__diag_guards_queue(engine, &plan);
}

/* An older library does not tell large structs apart: all parameters together are small, or not. */
static size_t stale_words_untold(const rmm_diag_event_v1_t *event)
{
    bool is_large = event->word_count > RMM_DIAG_SMALL_BUFFER_BYTES / sizeof(uint64_t);

    return event->kind == RMM_DIAG_LAUNCH && is_large ? event->word_count : 0;
}

void rmm__diag_engine_on_event(void *context, const rmm_diag_event_v1_t *given)
{
    rmm_diag_engine_t *engine = context;
    const rmm_diag_event_v1_t *event = given;
    rmm_diag_event_v1_t whole;
    uint32_t modes = 0;

    if (given->struct_size < offsetof(rmm_diag_event_v1_t, graph)) {
        return;
    }
    if (given->struct_size < sizeof(*given)) { /* of an older library */
        whole = (rmm_diag_event_v1_t){.graph = 0};
        memcpy(&whole, given, given->struct_size);
        whole.stale_words = stale_words_untold(&whole);
        event = &whole;
    }
    modes = rmm__modes_now(&engine->modes);
    rmm__diag_guards_settle(engine);
    if (is_of_stream(event)) {
        on_stream(engine, event);
    }
    if ((modes & modes_for(event)) != 0) {
        on_event(engine, event);
    }
}

/* False: the thread that holds the mutex seems to be interrupted. Threads hold it for a few
 * microseconds. */
static bool comes_free(rmm_mutex_t *mutex)
{
    RMM_UNCANCELLED;
    const struct timespec pause = {.tv_nsec = 1000000};
    bool is_free = rmm__mutex_trylock(mutex);

    for (int i = 0; i < 200 && !is_free; i++) {
        (void)nanosleep(&pause, NULL);
        is_free = rmm__mutex_trylock(mutex);
    }
    if (is_free) {
        rmm__mutex_unlock(mutex);
    }
    return is_free;
}

void rmm__diag_engine_settle(rmm_diag_engine_t *engine)
{
    /* a lock that came free is not held by this thread: from here on it waits only for others */
    if (engine->queue != NULL && comes_free(&engine->lock) &&
        comes_free(&engine->stacks.lock)) {
        rmm__diag_guards_settle(engine);
    }
}

void rmm__diag_engine_parameters_unknown(rmm_diag_engine_t *engine)
{
    rmm__mutex_lock(&engine->lock);
    RMM_ROW_ADD(&engine->header->parameter_failures, 1);
    rmm__mutex_unlock(&engine->lock);
}

void rmm__diag_engine_set_modes(rmm_diag_engine_t *engine, uint32_t modes)
{
    rmm__mode_switch_set(&engine->modes, modes);
}

bool rmm__diag_engine_has_mode(const rmm_diag_engine_t *engine, uint32_t mode)
{
    return rmm__diag_mode_is_on(engine, mode);
}

/* --- making ------------------------------------------------------------------------ */

static void lay_out(rmm_diag_engine_t *engine, const rmm_diag_engine_desc_t *desc)
{
    unsigned char *memory = desc->memory;
    rmm_diag_header_t *header = desc->memory;

    rmm__diag_lay_out(header, desc->row_count, desc->kernel_count);
    engine->header = header;
    engine->rows = (void *)(memory + header->rows_offset);
    engine->resources = (void *)(memory + header->resources_offset);
    engine->findings = (rmm_findings_t){
        .header = header, .entries = (void *)(memory + header->findings_offset)};
    engine->uses = (rmm_uses_t){
        .map = &engine->map,
        .header = header,
        .kernel_entries = (void *)(memory + header->kernels_offset),
        .functions = (void *)(memory + header->functions_offset),
        .rows = engine->rows};
    engine->peaks = (rmm_peaks_t){
        .header = header,
        .entries = (void *)(memory + header->peaks_offset),
        .parts = (void *)(memory + header->parts_offset)};
    engine->order = (rmm_order_findings_t){
        .uses = &engine->uses, .header = header, .findings = &engine->findings};
    engine->verdicts = (rmm_verdicts_t){
        .header = header, .entries = (void *)(memory + header->verdicts_offset)};
}

rmm_diag_engine_t *rmm__diag_engine_create(const rmm_diag_engine_desc_t *desc)
{
    rmm_diag_engine_t *engine = calloc(1, sizeof(*engine));

    if (engine == NULL) {
        return NULL;
    }
    rmm__mutex_init(&engine->lock);
    engine->driver_memory = desc->driver_memory;
    lay_out(engine, desc);
    rmm__stacks_init(&engine->stacks, engine->header);
    rmm__timeline_init(&engine->timeline, desc->timeline, desc->timeline_events);
    rmm__mode_switch_init(&engine->modes, engine->header, desc->source, desc->modes);
    if (!rmm__live_map_init(&engine->map, desc->row_count)) {
        goto err_free_engine;
    }
    if (!rmm__uses_init(
            &engine->uses, desc->row_count, desc->kernel_count, desc->demangle)) {
        goto err_fini_map;
    }
    if (!rmm__bounds_init(&engine->bounds, desc->row_count)) {
        goto err_fini_uses;
    }
    if (!rmm__diag_freed_init(engine, desc->row_count)) {
        goto err_fini_bounds;
    }
    if ((desc->modes & RMM_DIAG_MODE_ORDER) != 0 &&
        !rmm__order_init(&engine->order.order, desc->row_count)) {
        goto err_fini_freed;
    }
    if ((desc->modes & RMM_DIAG_MODE_GUARDS) != 0 && desc->queue != NULL) {
        if (!rmm__guards_init(&engine->guards, desc->row_count)) {
            goto err_fini_order;
        }
        engine->queue = desc->queue;
    }
    return engine;

err_fini_order:
    rmm__order_fini(&engine->order.order);
err_fini_freed:
    rmm__diag_freed_fini(engine);
err_fini_bounds:
    rmm__bounds_fini(&engine->bounds);
err_fini_uses:
    rmm__uses_fini(&engine->uses);
err_fini_map:
    rmm__live_map_fini(&engine->map);
err_free_engine:
    rmm__stacks_fini(&engine->stacks);
    rmm__mutex_fini(&engine->lock);
    free(engine);
    return NULL;
}

void rmm__diag_engine_destroy(rmm_diag_engine_t *engine)
{
    if (engine == NULL) {
        return;
    }
    rmm__guards_fini(&engine->guards);
    rmm__order_fini(&engine->order.order);
    rmm__diag_freed_fini(engine);
    rmm__bounds_fini(&engine->bounds);
    rmm__uses_fini(&engine->uses);
    rmm__live_map_fini(&engine->map);
    rmm__stacks_fini(&engine->stacks);
    rmm__mutex_fini(&engine->lock);
    free(engine);
}

/* Cut to fit; one line. */
static void copy_line(char *to, size_t room, const char *from)
{
    size_t i = 0;

    for (; i + 1 < room && from[i] != '\0'; i++) {
        to[i] = (unsigned char)from[i] < ' ' ? ' ' : from[i];
    }
    to[i] = '\0';
}

void rmm__diag_engine_publish(rmm_diag_engine_t *engine, const char *source)
{
    rmm_diag_header_t *header = engine->header;
    char modes[RMM_DIAG_MODES_TEXT];

    rmm__diag_modes_print(
        atomic_load_explicit(&engine->modes.modes, memory_order_relaxed), modes);
    copy_line(header->mode, sizeof(header->mode), modes);
    copy_line(header->source, sizeof(header->source), source);
    /* release: all that does not change is written; pairs with diag_reader.c */
    atomic_store_explicit(&header->ready, 1, memory_order_release);
}

bool rmm__diag_engine_check(rmm_diag_engine_t *engine)
{
    uint32_t live = 0;
    bool good = false;

    rmm__mutex_lock(&engine->lock);
    good = rmm__live_map_check(&engine->map) && rmm__freed_check(&engine->freed);
    for (uint32_t i = 0; i < engine->map.fresh; i++) {
        const rmm_diag_row_t *row = &engine->rows[i];
        const rmm_live_node_t *node = &engine->map.nodes[i];

        good = good && RMM_ROW_GET(row, sequence) % 2 == 0;
        if (RMM_ROW_GET(row, live) != 0) {
            live++;
            good = good && RMM_ROW_GET(row, address) == node->start &&
                   RMM_ROW_GET(row, bytes) == node->end - node->start;
        }
    }
    good = good && live == engine->map.count;
    rmm__mutex_unlock(&engine->lock);
    return good;
}
