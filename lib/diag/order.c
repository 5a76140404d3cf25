/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses of blocks against the clocks; see order.h.
 *
 * Cost of a use: one comparison for the allocation and one for each use that is remembered.
 */
#include "diag/order.h"

#include <stdlib.h>

#include "diag/diag_format.h"

bool rmm__order_init(rmm_order_t *order, uint32_t row_count)
{
    order->clocks = rmm__clocks_create();
    order->blocks = calloc(row_count, sizeof(*order->blocks));
    if (order->clocks == NULL || order->blocks == NULL) {
        rmm__order_fini(order);
        return false;
    }
    return true;
}

void rmm__order_fini(rmm_order_t *order)
{
    free(order->clocks);
    free(order->blocks);
    *order = (rmm_order_t){NULL, NULL};
}

/* --- what is no use ----------------------------------------------------------------------- */

static void on_event_call(rmm_clocks_t *clocks, const rmm_diag_event_v1_t *event)
{
    uint64_t handle = event->word_count > 0 ? event->words[0] : 0;

    switch (event->kind) {
    case RMM_DIAG_EVENT_RECORD:
        rmm__clocks_record(
            clocks, rmm__clocks_stream(clocks, event->stream), handle,
            event->capturing != 0);
        break;
    case RMM_DIAG_EVENT_WAIT:
        rmm__clocks_wait(
            clocks, rmm__clocks_stream(clocks, event->stream), handle,
            event->capturing != 0);
        break;
    case RMM_DIAG_EVENT_SYNC:
        rmm__clocks_sync_event(clocks, handle);
        break;
    default: /* RMM_DIAG_EVENT_DESTROY */
        rmm__clocks_event_ends(clocks, handle);
        break;
    }
}

static void on_stream_call(rmm_clocks_t *clocks, const rmm_diag_event_v1_t *event)
{
    uint32_t place = rmm__clocks_stream(clocks, event->stream);
    bool is_of_capture =
        event->kind == RMM_DIAG_CAPTURE_BEGIN || event->kind == RMM_DIAG_CAPTURE_END;

    if (event->kind == RMM_DIAG_STREAM_UNSURE) {
        rmm__clocks_unsure(clocks, place);
        return;
    }
    if (!is_of_capture &&
        (event->capturing != 0 || rmm__clocks_captures(clocks, place))) {
        return;
    }
    switch (event->kind) {
    case RMM_DIAG_STREAM_SYNC:
        rmm__clocks_sync_stream(clocks, place);
        break;
    case RMM_DIAG_PREFETCH:     /* both pass on the order of other streams */
    case RMM_DIAG_GRAPH_LAUNCH: /* what its nodes use is not judged here */
        (void)rmm__clocks_advance(clocks, place);
        break;
    case RMM_DIAG_CAPTURE_BEGIN:
        rmm__clocks_capture_begins(clocks, place);
        break;
    default: /* RMM_DIAG_CAPTURE_END */
        rmm__clocks_capture_ends(clocks, place);
        break;
    }
}

void rmm__order_event(rmm_order_t *order, const rmm_diag_event_v1_t *event)
{
    rmm_clocks_t *clocks = order->clocks;

    switch (event->kind) {
    case RMM_DIAG_EVENT_RECORD:
    case RMM_DIAG_EVENT_WAIT:
    case RMM_DIAG_EVENT_SYNC:
    case RMM_DIAG_EVENT_DESTROY:
        on_event_call(clocks, event);
        break;
    case RMM_DIAG_STREAM_SYNC:
    case RMM_DIAG_STREAM_UNSURE:
    case RMM_DIAG_PREFETCH:
    case RMM_DIAG_GRAPH_LAUNCH:
    case RMM_DIAG_CAPTURE_BEGIN:
    case RMM_DIAG_CAPTURE_END:
        on_stream_call(clocks, event);
        break;
    case RMM_DIAG_STREAM_CREATE:
        rmm__clocks_stream_begins(
            clocks, event->stream, event->word_count > 0 && event->words[0] == 0,
            event->device);
        break;
    case RMM_DIAG_STREAM_SEEN:
        if (event->word_count > 1) {
            rmm__clocks_stream_seen(
                clocks, event->stream, event->words[0] == 0, event->words[1]);
        }
        break;
    case RMM_DIAG_STREAM_DESTROY:
        rmm__clocks_stream_ends(clocks, event->stream);
        break;
    case RMM_DIAG_DEVICE_SYNC:
        rmm__clocks_sync_device(clocks, event->device);
        break;
    case RMM_DIAG_ORDER_LOST:
        clocks->is_lost = true;
        break;
    default:
        break;
    }
}

/* --- uses ----------------------------------------------------------------------------------- */

bool rmm__order_begin(
    rmm_order_t *order, const rmm_diag_event_v1_t *event, rmm_order_use_t *use_out)
{
    uint32_t place = rmm__clocks_stream(order->clocks, event->stream);

    if (event->capturing != 0 || rmm__clocks_captures(order->clocks, place)) {
        return false;
    }
    if (event->kind == RMM_DIAG_LAUNCH) {
        rmm__clocks_runs_on(order->clocks, place, event->device);
    }
    use_out->place = (uint16_t)place;
    use_out->time = rmm__clocks_advance(order->clocks, place);
    use_out->call = (uint8_t)event->kind;
    return true;
}

static bool is_write(const rmm_order_use_t *use)
{
    return use->access == RMM_ORDER_WRITE || use->access == RMM_ORDER_SOME_WRITE;
}

static bool has_exact_bytes(const rmm_order_use_t *use)
{
    return use->access == RMM_ORDER_READ || use->access == RMM_ORDER_WRITE;
}

static bool writes_all(const rmm_order_block_t *block, const rmm_order_use_t *use)
{
    return use->access == RMM_ORDER_WRITE && use->start <= block->start &&
           use->end >= block->end;
}

/* Both may run at once, and that is an error whatever a kernel does with what it is given. */
static bool exclude_each_other(
    const rmm_order_block_t *block, const rmm_order_use_t *a, const rmm_order_use_t *b)
{
    if (a->access == RMM_ORDER_KERNEL || b->access == RMM_ORDER_KERNEL) {
        return writes_all(block, a) || writes_all(block, b);
    }
    return (is_write(a) || is_write(b)) && has_exact_bytes(a) && has_exact_bytes(b) &&
           a->start < b->end && b->start < a->end;
}

static bool knows(const rmm_order_t *order, uint32_t place, const rmm_order_use_t *use)
{
    return rmm__clocks_knows(order->clocks, place, use->place, use->time);
}

/* It is ordered, or an error of this block that was reported. */
static bool is_settled(
    const rmm_order_t *order, const rmm_order_block_t *block, uint32_t place,
    const rmm_order_use_t *use)
{
    bool is_settled = knows(order, place, use);

    for (uint32_t i = 0; i < RMM_ORDER_REPORTED && !is_settled; i++) {
        const rmm_order_reported_t *reported = &block->reported[i];

        is_settled = reported->time != 0 && reported->time >= use->time &&
                     reported->place == place && reported->other == use->place;
    }
    return is_settled;
}

static void describe(
    const rmm_order_t *order, rmm_order_block_t *block, uint32_t place,
    const rmm_order_use_t *other, rmm_order_conflict_t *out)
{
    block->reported[block->next_reported++ % RMM_ORDER_REPORTED] =
        (rmm_order_reported_t){
            .time = order->clocks->streams[other->place].clock.at[other->place],
            .place = (uint16_t)place,
            .other = other->place};
    out->stream_id = order->clocks->streams[place].stream_id;
    out->other_stream_id = order->clocks->streams[other->place].stream_id;
    out->other_user = other->user;
    out->other_call = other->call;
}

/* True: `with` replaces an earlier use in every later comparison. */
static bool stands_for(const rmm_order_use_t *with, const rmm_order_use_t *earlier)
{
    return with->place == earlier->place && with->access == earlier->access &&
           (with->access == RMM_ORDER_KERNEL ||
            (with->start <= earlier->start && with->end >= earlier->end));
}

/* The earlier uses of a block that matter to a new one. */
typedef struct look {
    rmm_order_use_t *same;      /* which it stands for */
    rmm_order_use_t *vacant;    /* no use */
    rmm_order_use_t *ordered;   /* before it */
    const rmm_order_use_t *bad; /* not ordered before it, and one excludes the other */
} look_t;

static look_t
look_at(const rmm_order_t *order, rmm_order_block_t *block, const rmm_order_use_t *use)
{
    look_t look = {NULL, NULL, NULL, NULL};

    for (uint32_t i = 0; i < RMM_ORDER_USES; i++) {
        rmm_order_use_t *earlier = &block->uses[i];

        if (earlier->access == RMM_ORDER_NONE) {
            look.vacant = earlier;
        } else if (stands_for(use, earlier)) {
            look.same = earlier;
        } else if (knows(order, use->place, earlier)) {
            look.ordered = earlier;
        } else if (is_settled(order, block, use->place, earlier)) {
            continue;
        } else if (exclude_each_other(block, earlier, use)) {
            look.bad = earlier;
        }
    }
    return look;
}

static rmm_order_use_t *place_for(const look_t *look, rmm_order_block_t *block)
{
    if (look->same != NULL) {
        return look->same;
    }
    if (look->vacant != NULL) {
        return look->vacant;
    }
    return look->ordered != NULL ? look->ordered
                                 : &block->uses[block->next++ % RMM_ORDER_USES];
}

bool rmm__order_use(
    rmm_order_t *order, uint32_t index, const rmm_order_use_t *use,
    rmm_order_conflict_t *conflict_out)
{
    rmm_order_block_t *block = &order->blocks[index];
    const rmm_order_use_t allocation = {
        .time = block->allocated, .place = block->place, .user = RMM_DIAG_NO_USER};
    look_t look;

    if (!block->is_in_order) {
        return false; /* the block is for all streams at once */
    }
    look = look_at(order, block, use);
    if (look.same != NULL && look.same->time == use->time &&
        use->access == RMM_ORDER_KERNEL) {
        return false; /* of the same launch: its word is there twice */
    }
    if (!is_settled(order, block, use->place, &allocation)) {
        look.bad = &allocation;
    }
    if (rmm__clocks_is_unsure(order->clocks, use->place)) {
        look.bad = NULL;
    }
    if (look.bad != NULL) {
        describe(order, block, use->place, look.bad, conflict_out);
    }
    *place_for(&look, block) = *use;
    return look.bad != NULL;
}

/* --- blocks --------------------------------------------------------------------------------- */

/* The block's stream, whose id is in the block. */
static uint32_t place_of(const rmm_order_t *order, const rmm_diag_block_v1_t *block)
{
    uint32_t place = rmm__clocks_stream(order->clocks, block->stream);

    if (block->stream_id != UINT64_MAX && place != RMM_CLOCKS_SHARED &&
        !rmm__clocks_captures(order->clocks, place)) {
        order->clocks->streams[place].stream_id = block->stream_id;
    }
    return place;
}

void rmm__order_allocated(
    rmm_order_t *order, uint32_t index, const rmm_diag_block_v1_t *given)
{
    rmm_order_block_t *block = &order->blocks[index];
    uint32_t place = 0;

    *block = (rmm_order_block_t){
        .start = given->address,
        .end = given->address + given->bytes,
        .is_in_order = (given->flags & RMM_DIAG_BLOCK_IN_STREAM_ORDER) != 0,
        .is_gpu_only = (given->flags & RMM_DIAG_BLOCK_GPU_ONLY) != 0};
    if (!block->is_in_order || (given->flags & RMM_DIAG_BLOCK_SYNC) != 0) {
        return;
    }
    place = place_of(order, given);
    if (!rmm__clocks_captures(order->clocks, place)) {
        uint64_t now = rmm__clocks_advance(order->clocks, place);
        bool may_capture = rmm__clocks_may_capture(order->clocks, place);

        block->place = (uint16_t)place;
        block->allocated = may_capture ? 0 : now; /* it may be the graph's memory */
    }
}

bool rmm__order_freed(
    rmm_order_t *order, uint32_t index, const rmm_diag_block_v1_t *given,
    rmm_order_conflict_t *conflict_out)
{
    rmm_order_block_t *block = &order->blocks[index];
    uint32_t place = 0;

    if (!block->is_in_order || (given->flags & RMM_DIAG_BLOCK_IN_STREAM_ORDER) == 0) {
        return false; /* the driver waits for all work */
    }
    place = place_of(order, given);
    if (rmm__clocks_captures(order->clocks, place)) {
        return false;
    }
    (void)rmm__clocks_advance(order->clocks, place);
    for (uint32_t i = 0;
         i < RMM_ORDER_USES && !rmm__clocks_is_unsure(order->clocks, place); i++) {
        const rmm_order_use_t *use = &block->uses[i];

        if (use->access != RMM_ORDER_NONE && !is_settled(order, block, place, use)) {
            describe(order, block, place, use, conflict_out);
            return true;
        }
    }
    return false;
}
