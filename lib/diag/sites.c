/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks that blocks are allocated from, in the side file: each once, and its number in the
 * row of the block. In mode bounds. The first thread that allocates from a new stack writes it,
 * without the engine's lock.
 */
#include "diag/checker.h"

#include "diag/row.h"

typedef struct sites {
    bool has_site[RMM_STACK_DEPOT_COUNT]; /* by stack: it is in the side file */
} sites_t;

/* For a free, too: findings have its stack. */
static void enter(void *state, rmm_diag_call_t *call)
{
    (void)state;
    if (call->block != NULL && (call->modes & RMM_DIAG_MODE_BOUNDS) != 0) {
        call->stack = rmm__stack_take();
    }
}

static void allocated(void *state, rmm_diag_call_t *call)
{
    sites_t *self = state;
    rmm_diag_engine_t *engine = call->engine;
    rmm_diag_row_t *row = &engine->blocks.rows[call->index];
    uint32_t origin = rmm__diag_number_of_locked(engine, call->stack);

    if (origin == 0) {
        RMM_ROW_ADD(
            &engine->header->sites_dropped,
            call->stack != NULL && call->stack->count > 0);
        return;
    }
    engine->blocks.notes[call->index].origin = origin;
    RMM_ROW_BEGIN(row);
    RMM_ROW_SET(row, site, origin);
    RMM_ROW_END(row);
    if (!self->has_site[origin - 1]) {
        self->has_site[origin - 1] = true;
        call->site = origin;
    }
}

static void leave(void *state, rmm_diag_call_t *call)
{
    (void)state;
    if (call->site != 0) {
        rmm__stacks_put_site(&call->engine->stacks, call->site - 1, call->stack);
    }
}

const rmm_checker_t rmm__sites_checker = {
    .state_bytes = sizeof(sites_t),
    .enter = enter,
    .leave = leave,
    .allocated = allocated};
