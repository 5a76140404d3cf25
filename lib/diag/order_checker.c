/* SPDX-License-Identifier: Apache-2.0 */
/* Gives events and frees to order.c; what is not in order becomes a finding. */
#include "diag/checker.h"

#include "diag/order.h"
#include "diag/row.h"

typedef struct state {
    rmm_diag_engine_t *engine;
    rmm_order_t order;
} state_t;

static bool is_wanted(const rmm_diag_engine_desc_t *desc)
{
    return (desc->modes & RMM_DIAG_MODE_ORDER) != 0;
}

static bool
init(void *state, rmm_diag_engine_t *engine, const rmm_diag_engine_desc_t *desc)
{
    state_t *self = state;

    self->engine = engine;
    return rmm__order_init(&self->order, desc->row_count);
}

static void fini(void *state)
{
    state_t *self = state;

    rmm__order_fini(&self->order);
}

/* A kernel may have been given a pointer that it does not follow. */
static bool
is_about_kernel(const rmm_order_conflict_t *conflict, const rmm_finding_t *finding)
{
    return finding->call == RMM_DIAG_LAUNCH || conflict->other_call == RMM_DIAG_LAUNCH;
}

static void add_finding(
    state_t *self, uint32_t index, const rmm_order_conflict_t *conflict,
    rmm_finding_t finding)
{
    finding.confidence =
        is_about_kernel(conflict, &finding) ? RMM_DIAG_LIKELY : RMM_DIAG_CERTAIN;
    finding.block = rmm__live_blocks_at(&self->engine->blocks, index);
    finding.address = finding.bytes == 0 ? finding.block.address : finding.address;
    finding.stream_id = conflict->stream_id;
    finding.other_user = conflict->other_user;
    finding.other_call = conflict->other_call;
    finding.other_stream_id = conflict->other_stream_id;
    rmm__findings_add(&self->engine->findings, &finding);
}

static uint32_t access_of(const rmm_order_use_t *use)
{
    if (use->access == RMM_ORDER_KERNEL) {
        return RMM_DIAG_USES;
    }
    return use->access == RMM_ORDER_READ || use->access == RMM_ORDER_SOME_READ
               ? RMM_DIAG_READS
               : RMM_DIAG_WRITES;
}

/* It uses the block that the address is in, if that is in one. */
static void use_block(state_t *self, uint64_t address, const rmm_order_use_t *use)
{
    uint32_t index = rmm__live_map_find(&self->engine->blocks.map, address);
    rmm_order_conflict_t conflict;

    if (index != RMM_LIVE_NONE && rmm__order_use(&self->order, index, use, &conflict)) {
        add_finding(
            self, index, &conflict,
            (rmm_finding_t){
                .kind = RMM_DIAG_USE_UNORDERED,
                .call = use->call,
                .access = access_of(use),
                .user = use->user,
                .address = use->start,
                .bytes = use->end - use->start});
    }
}

static bool is_number(const state_t *self, uint64_t word)
{
    uint32_t index = rmm__live_map_find(&self->engine->blocks.map, word);

    return index != RMM_LIVE_NONE &&
           rmm__event_may_be_number(word, self->engine->blocks.map.nodes[index].start);
}

/* The word is where a block begins and the one before it ends, into which the launch has a pointer
 * as well: that is the array, and this its end. */
static bool
may_be_end(const state_t *self, const rmm_diag_event_v1_t *event, uint64_t word)
{
    rmm_live_map_t *map = &self->engine->blocks.map;
    uint32_t index = rmm__live_map_find(map, word);
    uint32_t before = RMM_LIVE_NONE;
    bool has_array = false;

    if (index == RMM_LIVE_NONE || map->nodes[index].start != word) {
        return false;
    }
    before = rmm__live_map_find(map, word - 1);
    for (size_t i = 0; i < event->word_count && before != RMM_LIVE_NONE && !has_array;
         i++) {
        has_array = event->words[i] >= map->nodes[before].start &&
                    event->words[i] < map->nodes[before].end;
    }
    return has_array;
}

static void
use_parameters(state_t *self, const rmm_diag_event_v1_t *event, rmm_order_use_t *use)
{
    use->access = RMM_ORDER_KERNEL;
    for (size_t i = 0; i < rmm__event_judged_words(event); i++) {
        if (!is_number(self, event->words[i]) &&
            !may_be_end(self, event, event->words[i])) {
            use_block(self, event->words[i], use);
        }
    }
}

/* One side of a copy, or a fill. */
static void
use_range(state_t *self, const rmm_event_range_t *range, rmm_order_use_t *use)
{
    use->start = range->start;
    use->end = use->start + range->bytes;
    use->access = range->is_write ? RMM_ORDER_WRITE : RMM_ORDER_READ;
    if (range->has_gaps) {
        use->access = range->is_write ? RMM_ORDER_SOME_WRITE : RMM_ORDER_SOME_READ;
    }
    if (use->end > use->start) {
        use_block(self, use->start, use);
    }
}

/* The host waits for a copy to pageable memory although it is called asynchronous, and the
 * memory may be pageable if it is not known. It does not wait for a fill of memory that only the
 * GPU can access. */
static bool may_wait(const state_t *self, const rmm_diag_event_v1_t *event)
{
    uint32_t to = event->word_count > 0
                      ? rmm__live_map_find(&self->engine->blocks.map, event->words[0])
                      : RMM_LIVE_NONE;

    if (event->kind == RMM_DIAG_COPY) {
        return event->is_sync != 0 || (event->word_count > 0 && to == RMM_LIVE_NONE);
    }
    return event->is_sync != 0 &&
           (to == RMM_LIVE_NONE || !self->order.blocks[to].is_gpu_only);
}

static void
use_ranges(state_t *self, const rmm_diag_event_v1_t *event, rmm_order_use_t *use)
{
    for (size_t i = 0; i < rmm__event_range_count(event); i++) {
        const rmm_event_range_t range = rmm__event_range(event, i);

        use_range(self, &range, use);
    }
    if (may_wait(self, event)) {
        rmm__clocks_sync_stream(self->order.clocks, use->place);
    }
}

static void use(state_t *self, const rmm_diag_event_v1_t *event, uint32_t user)
{
    rmm_order_use_t use = {.user = user};

    if (!rmm__order_begin(&self->order, event, &use)) {
        RMM_ROW_ADD(&self->engine->header->unjudged, 1);
        return;
    }
    if (rmm__clocks_is_unsure(self->order.clocks, use.place) ||
        use.place == RMM_CLOCKS_SHARED || event->stale_words > 0) {
        RMM_ROW_ADD(&self->engine->header->unjudged, 1);
    }
    if (event->kind == RMM_DIAG_LAUNCH) {
        use_parameters(self, event, &use);
    } else {
        use_ranges(self, event, &use);
    }
}

/* Other calls than launches, copies and fills only order streams: a prefetch moves bytes and
 * changes none, and what the nodes of a graph use is not judged here. */
static void after(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;
    const rmm_diag_event_v1_t *event = call->event;

    if ((call->modes & RMM_DIAG_MODE_ORDER) == 0) {
        return;
    }
    if (event->kind == RMM_DIAG_LAUNCH || event->kind == RMM_DIAG_COPY ||
        event->kind == RMM_DIAG_SET) {
        use(self, event, call->user);
    } else {
        rmm__order_event(&self->order, event);
    }
}

static void allocated(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;

    if ((call->modes & RMM_DIAG_MODE_ORDER) != 0) {
        rmm__order_allocated(&self->order, call->index, call->block);
    }
}

static void freed(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;
    bool is_judged = (call->modes & RMM_DIAG_MODE_ORDER) != 0 &&
                     (call->block->flags & RMM_DIAG_BLOCK_LEFT) == 0;
    rmm_order_conflict_t conflict;

    if (is_judged &&
        rmm__order_freed(&self->order, call->index, call->block, &conflict)) {
        add_finding(
            self, call->index, &conflict,
            (rmm_finding_t){
                .kind = RMM_DIAG_FREE_UNORDERED,
                .access = RMM_DIAG_FREES,
                .user = RMM_DIAG_NO_USER});
    }
}

const rmm_checker_t rmm__order_checker = {
    .state_bytes = sizeof(state_t),
    .is_wanted = is_wanted,
    .init = init,
    .fini = fini,
    .allocated = allocated,
    .freed = freed,
    .after = after};
