/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the block whose error a range is. In mode guards it is found as well, because a copy that
 * writes to guards is an error of its own, and not that of the next kernel (guard_checker.c).
 *
 * Cost: one search of the map for each side of a copy.
 */
#include "diag/bounds_checker.h"

#include "diag/bounds.h"

typedef struct state {
    rmm_diag_engine_t *engine;
    rmm_bounds_t bounds;
} state_t;

static bool
init(void *state, rmm_diag_engine_t *engine, const rmm_diag_engine_desc_t *desc)
{
    state_t *self = state;

    self->engine = engine;
    return rmm__bounds_init(&self->bounds, desc->row_count);
}

static void fini(void *state)
{
    state_t *self = state;

    rmm__bounds_fini(&self->bounds);
}

/* --- blocks ------------------------------------------------------------------------ */

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

static void allocated(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;
    uint64_t end = own_end(call->block);

    self->bounds.ends[call->index] = end;
    if ((call->block->flags & RMM_DIAG_BLOCK_KEPT) != 0) {
        rmm__bounds_allocated(&self->bounds, call->block->address, end);
    }
}

/* The owner of a larger block hands out its parts. The driver hands out no parts. */
static void ended(void *state, uint32_t index, const rmm_diag_block_v1_t *by)
{
    state_t *self = state;
    const rmm_live_node_t *node = &self->engine->blocks.map.nodes[index];
    bool is_part = by != NULL && (by->flags & RMM_DIAG_BLOCK_RETURNED) == 0 &&
                   node->start <= by->address && by->address + by->bytes <= node->end &&
                   node->end - node->start > by->bytes;

    if (is_part) {
        rmm__bounds_divided(&self->bounds, node->start, node->end);
    } else if (by != NULL) {
        rmm__bounds_gone(&self->bounds, node->start, node->end);
    }
}

static void gone(void *state, uint64_t start, uint64_t end)
{
    state_t *self = state;

    rmm__bounds_gone(&self->bounds, start, end);
}

static void freed_unknown(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;

    rmm__bounds_freed(
        &self->bounds, call->block->address, call->block->address + call->block->bytes);
}

static void freed(void *state, rmm_diag_call_t *call)
{
    const rmm_diag_block_v1_t *block = call->block;

    freed_unknown(state, call);
    if ((block->flags & RMM_DIAG_BLOCK_CAPTURED) != 0) { /* a graph uses it later */
        gone(state, block->address, block->address + block->bytes);
    }
}

void rmm__diag_engine_on_pool(void *context, uint64_t address, uint64_t bytes)
{
    rmm_diag_engine_t *engine = context;
    state_t *self = rmm__checker_state(engine, &rmm__bounds_checker);

    if (bytes <= UINT64_MAX - address) {
        rmm__mutex_lock(&engine->lock);
        rmm__bounds_pool(&self->bounds, address, address + bytes);
        rmm__mutex_unlock(&engine->lock);
    }
}

/* --- ranges ------------------------------------------------------------------------ */

void rmm__bounds_add_finding(rmm_diag_call_t *call, rmm_diag_finding_kind_t kind)
{
    rmm_diag_engine_t *engine = call->engine;

    rmm__findings_add(
        &engine->findings,
        &(rmm_finding_t){
            .kind = kind,
            .tells_range = true,
            .call = call->event->kind,
            .access = call->range.is_write ? RMM_DIAG_WRITES : RMM_DIAG_READS,
            .block = rmm__live_blocks_at(&engine->blocks, call->culprit),
            .address = call->range.start,
            .bytes = call->range.bytes,
            .function = call->event->name,
            .user = RMM_DIAG_NO_USER,
            .stream_id = UINT64_MAX,
            .other_user = RMM_DIAG_NO_USER,
            .other_stream_id = UINT64_MAX});
}

static void before(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;

    if (call->is_explained) {
        return;
    }
    call->culprit = rmm__bounds_check(
        &self->bounds, &call->engine->blocks.map, call->range.start, call->range.bytes);
    if (call->culprit != RMM_LIVE_NONE && (call->modes & RMM_DIAG_MODE_BOUNDS) != 0) {
        rmm__bounds_add_finding(call, RMM_DIAG_OUT_OF_BOUNDS);
    }
}

const rmm_checker_t rmm__bounds_checker = {
    .state_bytes = sizeof(state_t),
    .init = init,
    .fini = fini,
    .allocated = allocated,
    .freed = freed,
    .ended = ended,
    .freed_unknown = freed_unknown,
    .gone = gone,
    .before = before};
