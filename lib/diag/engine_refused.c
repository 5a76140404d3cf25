/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's part in frees that a resource refuses: each is a finding, with the stack of the
 * free, and what is known of the block: it was freed before, has another size, or is none of this
 * resource. See engine_impl.h.
 *
 * on_free() comes before the resource decides. A block that the program frees through another
 * resource than it came from counts as freed then; if that is refused, it is live again.
 *
 * Cost: a free copies what is known of the block into a ring. A refusal searches the ring.
 */
#include "diag/engine_impl.h"

#include "diag/row.h"

void rmm__diag_refused_note_locked(
    rmm_diag_engine_t *engine, uint32_t index, const rmm_diag_block_v1_t *freed)
{
    rmm_refused_t *refused = &engine->refused;
    uint32_t at = refused->doubtful_next % RMM_DOUBTFUL_FREES;
    rmm_diag_block_v1_t block;

    RMM_ASSERT_LOCKED(&engine->lock);
    if (RMM_ROW_GET(&engine->rows[index], resource_id) == freed->resource_id) {
        return;
    }
    block = rmm__uses_block(&engine->uses, index);
    block.end = engine->bounds.ends[index];
    block.flags = (engine->blocks[index].is_kept ? RMM_DIAG_BLOCK_KEPT : 0) |
                  (engine->blocks[index].is_returned ? RMM_DIAG_BLOCK_RETURNED : 0);
    refused->doubtful[at] = block;
    refused->doubtful_origins[at] = engine->blocks[index].origin;
    refused->doubtful_next++;
}

void rmm__diag_refused_freed_locked(
    rmm_diag_engine_t *engine, const rmm_freed_block_t *freed)
{
    rmm_refused_t *refused = &engine->refused;

    RMM_ASSERT_LOCKED(&engine->lock);
    refused->recent[refused->recent_next++ % RMM_RECENT_FREES] = *freed;
}

/* The last free of a block that began there; NULL: none is known. */
static const rmm_freed_block_t *
find_freed_locked(rmm_diag_engine_t *engine, uint64_t address)
{
    const rmm_refused_t *refused = &engine->refused;
    const rmm_freed_block_t *freed = NULL;

    for (uint32_t i = 1; i <= RMM_RECENT_FREES; i++) {
        freed = &refused->recent[(refused->recent_next - i) % RMM_RECENT_FREES];
        if (freed->block.bytes != 0 && freed->block.address == address) {
            return freed;
        }
    }
    freed = rmm__freed_find(&engine->freed, address);
    return freed != NULL && freed->block.address == address ? freed : NULL;
}

/* The refused free ended this block a moment ago, which was wrong. What used it before is not known
 * any more. */
static void revive_locked(rmm_diag_engine_t *engine, uint64_t address)
{
    rmm_refused_t *refused = &engine->refused;

    for (uint32_t i = 0; i < RMM_DOUBTFUL_FREES; i++) {
        rmm_diag_block_v1_t *block = &refused->doubtful[i];
        uint32_t index = RMM_LIVE_NONE;

        if (block->bytes != 0 && block->address == address) {
            index = rmm__diag_add_again_locked(engine, block);
            if (index != RMM_LIVE_NONE) {
                engine->blocks[index].origin = refused->doubtful_origins[i];
            }
            block->bytes = 0;
        }
    }
}

/* What is wrong with it. */
static void explain_locked(
    rmm_diag_engine_t *engine, const rmm_diag_block_v1_t *block, rmm_finding_t *finding)
{
    uint32_t index = rmm__live_map_find(&engine->map, block->address);
    const rmm_freed_block_t *freed = find_freed_locked(engine, block->address);

    RMM_ASSERT_LOCKED(&engine->lock);
    finding->kind = RMM_DIAG_INVALID_FREE;
    finding->block = *block;
    finding->block.bytes = 0; /* there is none */
    if (index != RMM_LIVE_NONE) {
        finding->block = rmm__uses_block(&engine->uses, index);
        finding->origin = engine->blocks[index].origin;
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

void rmm__diag_engine_on_refused(void *context, const rmm_diag_block_v1_t *block)
{
    rmm_diag_engine_t *engine = context;
    rmm_stack_raw_t *stack = rmm__diag_freed_begin(engine);
    uint32_t findings = rmm__diag_lock(engine);

    revive_locked(engine, block->address);
    if (rmm__diag_mode_is_on(engine, RMM_DIAG_MODE_BOUNDS)) {
        rmm_finding_t finding = {
            .access = RMM_DIAG_FREES,
            .address = block->address,
            .bytes = block->bytes,
            .user = RMM_DIAG_NO_USER,
            .stream_id = block->stream_id,
            .other_user = RMM_DIAG_NO_USER,
            .other_stream_id = UINT64_MAX,
            .site = rmm__diag_number_of_locked(engine, stack)};

        explain_locked(engine, block, &finding);
        rmm__findings_add(&engine->findings, &finding);
    }
    rmm__diag_unlock(engine, findings);
}
