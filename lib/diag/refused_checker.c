/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each refused free is a finding, with the stack of the free, and what is known of the block: it
 * was freed before, has another size, or is none of this resource.
 *
 * on_free() comes before the resource decides. A block that the program frees through another
 * resource than it came from counts as freed then; if that is refused, it is live again.
 *
 * Cost: a free copies what is known of the block into a ring. A refusal searches the ring.
 */
#include "diag/checker.h"

#include "diag/freed_checker.h"

enum { RECENT_FREES = 1024, DOUBTFUL_FREES = 8 };

typedef struct doubtful {
    rmm_diag_block_v1_t block; /* bytes 0: none */
    uint32_t origin;
} doubtful_t;

typedef struct state {
    rmm_freed_block_t recent[RECENT_FREES]; /* the last frees, a ring */
    uint32_t recent_next;
    /* The last blocks that were freed through another resource than they came from, a ring: it
     * may refuse. */
    doubtful_t doubtful[DOUBTFUL_FREES];
    uint32_t doubtful_next;
} state_t;

static void note_doubtful(state_t *self, const rmm_diag_call_t *call)
{
    const rmm_block_note_t *note = &call->engine->blocks.notes[call->index];
    doubtful_t *doubtful = &self->doubtful[self->doubtful_next++ % DOUBTFUL_FREES];

    doubtful->origin = note->origin;
    doubtful->block = rmm__live_blocks_at(&call->engine->blocks, call->index);
    doubtful->block.end = note->end;
    doubtful->block.flags =
        note->flags & (RMM_DIAG_BLOCK_KEPT | RMM_DIAG_BLOCK_RETURNED);
}

static void freed(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;

    if (call->freed.block.resource_id != call->block->resource_id) {
        note_doubtful(self, call);
    }
    self->recent[self->recent_next++ % RECENT_FREES] = call->freed;
}

/* The last free of a block that began there; NULL: none is known. */
static const rmm_freed_block_t *
find_freed(const state_t *self, rmm_diag_engine_t *engine, uint64_t address)
{
    const rmm_freed_block_t *freed = NULL;

    for (uint32_t i = 1; i <= RECENT_FREES; i++) {
        freed = &self->recent[(self->recent_next - i) % RECENT_FREES];
        if (freed->block.bytes != 0 && freed->block.address == address) {
            return freed;
        }
    }
    return rmm__freed_begins_at(engine, address);
}

/* The refused free ended this block a moment ago, which was wrong. What used it before is not known
 * any more. */
static void revive(state_t *self, rmm_diag_call_t *call, uint64_t address)
{
    for (uint32_t i = 0; i < DOUBTFUL_FREES; i++) {
        doubtful_t *doubtful = &self->doubtful[i];

        if (doubtful->block.bytes != 0 && doubtful->block.address == address) {
            call->block = &doubtful->block;
            rmm__diag_add_block_locked(call);
            if (call->index != RMM_LIVE_NONE) {
                call->engine->blocks.notes[call->index].origin = doubtful->origin;
            }
            doubtful->block.bytes = 0;
        }
    }
}

/* Finds out what is wrong with the free. */
static void explain(
    const state_t *self, rmm_diag_engine_t *engine, const rmm_diag_block_v1_t *block,
    rmm_finding_t *finding)
{
    uint32_t index = rmm__live_map_find(&engine->blocks.map, block->address);
    const rmm_freed_block_t *freed = find_freed(self, engine, block->address);

    finding->kind = RMM_DIAG_INVALID_FREE;
    finding->block = *block;
    finding->block.bytes = 0; /* there is none */
    if (index != RMM_LIVE_NONE) {
        finding->block = rmm__live_blocks_at(&engine->blocks, index);
        finding->origin = engine->blocks.notes[index].origin;
        if (finding->block.address == block->address &&
            finding->block.bytes != block->bytes) {
            finding->kind = RMM_DIAG_WRONG_SIZE_FREE;
        }
    } else if (freed != NULL) {
        finding->kind = RMM_DIAG_DOUBLE_FREE;
        finding->block = freed->block;
        finding->origin = freed->origin;
        finding->freed = freed->freed;
        finding->other_stream_id = freed->freed_stream_id;
    }
}

static void add_finding(
    const state_t *self, rmm_diag_engine_t *engine, const rmm_diag_block_v1_t *block,
    rmm_stack_raw_t *stack)
{
    rmm_finding_t finding = {
        .access = RMM_DIAG_FREES,
        .address = block->address,
        .bytes = block->bytes,
        .user = RMM_DIAG_NO_USER,
        .stream_id = block->stream_id,
        .other_user = RMM_DIAG_NO_USER,
        .other_stream_id = UINT64_MAX,
        .site = rmm__diag_number_of_locked(engine, stack)};

    explain(self, engine, block, &finding);
    rmm__findings_add(&engine->findings, &finding);
}

void rmm__diag_engine_on_refused(void *context, const rmm_diag_block_v1_t *block)
{
    rmm_diag_engine_t *engine = context;
    state_t *self = rmm__checker_state(engine, &rmm__refused_checker);
    bool is_on = (rmm__diag_modes(engine) & RMM_DIAG_MODE_BOUNDS) != 0;
    rmm_stack_raw_t *stack = is_on ? rmm__stack_take() : NULL;
    uint32_t findings = rmm__diag_lock(engine);
    rmm_diag_call_t call;

    rmm__diag_call_init(&call, engine);
    revive(self, &call, block->address);
    if ((call.modes & RMM_DIAG_MODE_BOUNDS) != 0) {
        add_finding(self, engine, block, stack);
    }
    rmm__diag_unlock(engine, findings);
}

const rmm_checker_t rmm__refused_checker = {
    .state_bytes = sizeof(state_t), .freed = freed};
