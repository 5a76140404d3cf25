/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that checkers and the engine share; see checker.h. */
#include "diag/checker.h"

#include "diag/row.h"

void *rmm__checker_state(rmm_diag_engine_t *engine, const rmm_checker_t *checker)
{
    uint32_t i = 0;

    while (engine->active[i].checker != NULL && engine->active[i].checker != checker) {
        i++;
    }
    return engine->active[i].state;
}

uint32_t rmm__diag_number_of_locked(rmm_diag_engine_t *engine, rmm_stack_raw_t *stack)
{
    RMM_ASSERT_LOCKED(&engine->lock);
    return stack != NULL ? rmm__stack_depot_put(&engine->depot, stack) : 0;
}

uint64_t rmm__diag_padded_end(const rmm_diag_block_v1_t *block)
{
    enum { UNIT = 256 };
    uint64_t end = block->address + block->bytes;
    uint64_t padded = end > UINT64_MAX - UNIT ? end : (end + UNIT - 1) / UNIT * UNIT;

    return block->end > end ? block->end : padded;
}

/* --- the lock ---------------------------------------------------------------------- */

uint32_t rmm__diag_lock(rmm_diag_engine_t *engine)
{
    rmm__mutex_lock(&engine->lock);
    return RMM_ROW_GET(engine->header, findings.used);
}

/* The stacks of the block of a new finding. No lock held. */
static void put_block_stacks(rmm_diag_engine_t *engine, uint32_t finding)
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

void rmm__diag_unlock(rmm_diag_engine_t *engine, uint32_t findings)
{
    uint32_t now = RMM_ROW_GET(engine->header, findings.used);

    rmm__mutex_unlock(&engine->lock);
    if (now > findings && now <= RMM_DIAG_FINDINGS_COUNT) {
        rmm__stacks_capture(&engine->stacks, findings, now);
    }
    for (; findings < now; findings++) {
        put_block_stacks(engine, findings);
    }
}
