/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues the work on guards (guards.h) on a GPU, and turns results into findings. A call plans its
 * work under the engine's lock, and queues it without the lock, because that may block.
 *
 * A launch is checked for the blocks that its parameters point into, each with the guard behind it
 * and the one before it. Other blocks are not checked: if a kernel on another stream breaks their
 * guards at that moment, the finding would name the wrong kernel.
 */
#include "diag/checker.h"

#include "diag/bounds_checker.h"
#include "diag/row.h"

typedef struct state {
    rmm_diag_engine_t *engine;
    rmm_guards_t guards;
    rmm_guard_queue_fn queue;
} state_t;

static bool is_wanted(const rmm_diag_engine_desc_t *desc)
{
    return (desc->modes & RMM_DIAG_MODE_GUARDS) != 0 && desc->queue != NULL;
}

static bool
init(void *state, rmm_diag_engine_t *engine, const rmm_diag_engine_desc_t *desc)
{
    state_t *self = state;

    self->engine = engine;
    self->queue = desc->queue;
    return rmm__guards_init(&self->guards, desc->row_count);
}

static void fini(void *state)
{
    state_t *self = state;

    rmm__guards_fini(&self->guards);
}

/* --- results ---------------------------------------------------------------------------- */

static void
add_finding_locked(rmm_diag_engine_t *engine, const rmm_guard_broken_t *broken)
{
    const rmm_guard_check_t *check = broken->check;

    rmm__findings_add(
        &engine->findings,
        &(rmm_finding_t){
            .kind = RMM_DIAG_OUT_OF_BOUNDS,
            .tells_range = true,
            .call = check->call,
            .access = RMM_DIAG_WRITES,
            .block = broken->suspect->block,
            .address = broken->address,
            .bytes = 1,
            .user = check->user,
            .stream_id = check->stream_id,
            .other_user = RMM_DIAG_NO_USER,
            .other_call =
                broken->suspect->had_graphs ? RMM_DIAG_GRAPH_LAUNCH : check->call,
            .other_stream_id = UINT64_MAX});
}

typedef struct stacks {
    uint32_t finding; /* RMM_DIAG_FINDINGS_COUNT: none is new */
    rmm_stack_raw_t call, origin;
} stacks_t;

/* False: no result is there. */
static bool settle_one(state_t *self, stacks_t *stacks)
{
    rmm_diag_engine_t *engine = self->engine;
    rmm_guard_broken_t broken;
    bool found;

    stacks->finding = RMM_DIAG_FINDINGS_COUNT;
    rmm__mutex_lock(&engine->lock);
    found = rmm__guards_take(&self->guards, &broken);
    if (found) {
        uint32_t before = RMM_ROW_GET(engine->header, findings.used);

        add_finding_locked(engine, &broken);
        if (RMM_ROW_GET(engine->header, findings.used) != before) {
            stacks->finding = before;
            stacks->call = broken.check->stack;
            stacks->origin = broken.suspect->stack;
        }
    }
    rmm__mutex_unlock(&engine->lock);
    return found;
}

static void settle(void *state, rmm_diag_engine_t *engine)
{
    state_t *self = state;
    stacks_t stacks;

    while (settle_one(self, &stacks)) {
        if (stacks.finding < RMM_DIAG_FINDINGS_COUNT) {
            rmm__stacks_put_call(&engine->stacks, stacks.finding, &stacks.call);
            rmm__stacks_put_origin(&engine->stacks, stacks.finding, &stacks.origin);
        }
    }
}

/* --- plans ------------------------------------------------------------------------------ */

static void enter(void *state, rmm_diag_call_t *call)
{
    rmm_guard_plan_t *plan = &call->guards;
    int32_t device = call->block != NULL ? call->block->device : call->event->device;

    (void)state;
    plan->is_on = (call->modes & RMM_DIAG_MODE_GUARDS) != 0 && device >= 0;
    if (plan->is_on) {
        plan->device = device;
        plan->stream = call->block != NULL ? call->block->stream : call->event->stream;
        plan->job_count = 0;
        plan->stack = call->stack != NULL ? *call->stack : *rmm__stack_take();
    }
}

static void allocated(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;
    rmm_guard_plan_t *plan = &call->guards;

    if (!plan->is_on) {
        return;
    }
    if (rmm__guards_open(
            &self->guards, call->index, call->block, &plan->stack, &plan->jobs[0])) {
        plan->job_count = 1;
    } else {
        RMM_ROW_ADD(&self->engine->header->guards_missing, 1);
    }
}

static void freed(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;
    rmm_guard_plan_t *plan = &call->guards;

    if (plan->is_on && rmm__guards_has(&self->guards, call->index) &&
        rmm__guards_close(
            &self->guards, call->index, call->block, &call->freed.block, &plan->stack,
            &plan->jobs[0])) {
        plan->job_count = 1;
    }
}

static void ended(void *state, uint32_t index, const rmm_diag_block_v1_t *by)
{
    state_t *self = state;

    (void)by;
    rmm__guards_drop(&self->guards, index); /* if it has one still */
}

/* --- launches --------------------------------------------------------------------------- */

/* A check of RMM_GUARDS_AT_ONCE guards at most is complete. */
static void end_check(state_t *self, rmm_guard_plan_t *plan)
{
    if (rmm__guards_end(&self->guards, &plan->stack, &plan->jobs[plan->job_count])) {
        plan->job_count++;
    }
}

typedef struct launch {
    const rmm_diag_event_v1_t *event;
    uint32_t user;
    uint32_t added; /* guards in the check that is begun */
    bool is_cut;    /* too many checks are pending */
} launch_t;

static bool begin_check(state_t *self, launch_t *launch)
{
    launch->added = 0;
    launch->is_cut = !rmm__guards_begin(
        &self->guards, launch->event->kind, launch->user, launch->event->stream);
    if (!launch->is_cut) {
        rmm__guards_name_stream(
            &self->guards,
            rmm__stream_names_find(&self->engine->streams, launch->event->stream));
    }
    return !launch->is_cut;
}

/* The guard of `index` is behind or before `block`. */
static void add_guard(
    state_t *self, rmm_guard_plan_t *plan, launch_t *launch, uint32_t index,
    const rmm_diag_block_v1_t *block)
{
    if (launch->is_cut || !rmm__guards_has(&self->guards, index)) {
        return;
    }
    if (launch->added == RMM_GUARDS_AT_ONCE) {
        end_check(self, plan);
        if (!begin_check(self, launch)) {
            return;
        }
    }
    rmm__guards_add(&self->guards, index, block, plan->device);
    launch->added++;
}

/* The block whose guard ends where this one begins, or RMM_LIVE_NONE. */
static uint32_t find_before(state_t *self, uint64_t begin)
{
    uint32_t index =
        begin > RMM_GUARD_BYTES_MAX
            ? rmm__live_map_overlap(
                  &self->engine->blocks.map, begin - RMM_GUARD_BYTES_MAX, begin)
            : RMM_LIVE_NONE;

    if (index != RMM_LIVE_NONE && rmm__guards_has(&self->guards, index)) {
        const rmm_guard_t *guard = &self->guards.entries[index].guard;

        return guard->address + guard->bytes == begin ? index : RMM_LIVE_NONE;
    }
    return RMM_LIVE_NONE;
}

/* The guard behind a block is the block's error also where it lies before another that is used: so
 * those come first. */
static void add_used(state_t *self, rmm_guard_plan_t *plan, launch_t *launch)
{
    const rmm_live_blocks_t *blocks = &self->engine->blocks;
    uint32_t count = rmm__live_blocks_listed(blocks);

    for (uint32_t i = 0; i < count; i++) {
        const rmm_diag_block_v1_t block = rmm__live_blocks_at(blocks, blocks->used[i]);

        add_guard(self, plan, launch, blocks->used[i], &block);
        rmm__guards_use(&self->guards, blocks->used[i], plan->stream);
    }
    for (uint32_t i = 0; i < count; i++) {
        const rmm_diag_block_v1_t block = rmm__live_blocks_at(blocks, blocks->used[i]);
        uint32_t before = find_before(self, block.address);

        if (before != RMM_LIVE_NONE &&
            rmm__guards_is_of(&self->guards, before, plan->stream)) {
            add_guard(self, plan, launch, before, &block);
        }
    }
}

static void check_launch(state_t *self, rmm_diag_call_t *call)
{
    launch_t launch = {.event = call->event, .user = call->user};
    uint32_t count = rmm__live_blocks_listed(&self->engine->blocks);
    bool is_captured = call->event->capturing != 0;

    if (count == 0) {
        return;
    }
    if (!is_captured && begin_check(self, &launch)) {
        add_used(self, &call->guards, &launch);
    }
    if (!is_captured && !launch.is_cut) {
        end_check(self, &call->guards);
    }
    if (is_captured || launch.is_cut || count == RMM_BLOCKS_LISTED) {
        RMM_ROW_ADD(&self->engine->header->guards_unchecked, 1);
    }
}

static void after(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;

    if (!call->guards.is_on) {
        return;
    }
    if (call->event->kind == RMM_DIAG_GRAPH_LAUNCH) {
        self->guards.graphs++;
    } else if (call->event->kind == RMM_DIAG_LAUNCH) {
        check_launch(self, call);
    }
}

/* --- copies ----------------------------------------------------------------------------- */

typedef struct overwrite {
    uint64_t start, end;
    bool has_check; /* one is begun, of the guards below */
    uint32_t count;
    uint32_t closed[RMM_GUARDS_AT_ONCE];
} overwrite_t;

static bool is_hit(const state_t *self, uint32_t index, const overwrite_t *overwrite)
{
    const rmm_guard_t *guard = &self->guards.entries[index].guard;

    return guard->bytes != 0 && guard->address < overwrite->end &&
           guard->address + guard->bytes > overwrite->start;
}

/* In the order of the stream, so that a guard which was broken before is found; where that is not
 * possible the host closes it at once. */
static void close_guard(
    state_t *self, const rmm_guard_plan_t *plan, overwrite_t *overwrite, uint32_t index)
{
    const rmm_diag_block_v1_t block = rmm__live_blocks_at(&self->engine->blocks, index);

    if (overwrite->has_check && overwrite->count < RMM_GUARDS_AT_ONCE &&
        self->guards.entries[index].device == plan->device) {
        rmm__guards_add(&self->guards, index, &block, plan->device);
        overwrite->closed[overwrite->count++] = index;
    } else {
        rmm__guards_drop(&self->guards, index);
    }
}

/* Closes the guards in the range. False: there are none. */
static bool close_guards(state_t *self, rmm_diag_call_t *call, overwrite_t *overwrite)
{
    rmm_live_map_t *map = &self->engine->blocks.map;
    uint64_t from = overwrite->start > RMM_GUARD_BYTES_MAX
                        ? overwrite->start - RMM_GUARD_BYTES_MAX
                        : 0;
    uint32_t index = rmm__live_map_overlap(map, from, overwrite->end);
    bool hits = false;

    for (; index != RMM_LIVE_NONE;
         index = rmm__live_map_overlap(map, from, map->nodes[index].start)) {
        if (is_hit(self, index, overwrite)) {
            close_guard(self, &call->guards, overwrite, index);
            hits = true;
        }
    }
    return hits;
}

/* A copy or fill is about to write this range: the guards in it are closed before it. True: there
 * are some. */
static bool overwrites(state_t *self, rmm_diag_call_t *call)
{
    rmm_guard_plan_t *plan = &call->guards;
    const rmm_event_range_t *range = &call->range;
    rmm_stream_t stream = call->event->stream;
    bool hits = false;
    overwrite_t overwrite = {
        .start = range->start,
        .end = range->bytes > UINT64_MAX - range->start ? UINT64_MAX
                                                        : range->start + range->bytes};

    overwrite.has_check = plan->job_count < RMM_GUARD_JOBS &&
                          rmm__guards_begin(&self->guards, 0, RMM_DIAG_NO_USER, stream);
    if (overwrite.has_check) {
        rmm__guards_name_stream(
            &self->guards, rmm__stream_names_find(&self->engine->streams, stream));
    }
    hits = close_guards(self, call, &overwrite);
    if (overwrite.count > 0 &&
        rmm__guards_end(&self->guards, &plan->stack, &plan->jobs[plan->job_count])) {
        plan->jobs[plan->job_count++].action = RMM_GUARD_CLOSE;
    }
    for (uint32_t i = 0; i < overwrite.count; i++) {
        rmm__guards_release(&self->guards, overwrite.closed[i]);
    }
    return hits;
}

/* Without mode bounds the range is a finding only if it is written to guards. */
static void before(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;

    if (call->guards.is_on && call->culprit != RMM_LIVE_NONE && call->range.is_write &&
        overwrites(self, call) && (call->modes & RMM_DIAG_MODE_BOUNDS) == 0) {
        rmm__bounds_add_finding(call, RMM_DIAG_OUT_OF_BOUNDS);
    }
}

/* --- the GPU's results ------------------------------------------------------------------ */

static void undo_fill_locked(state_t *self, const rmm_guard_t *guard)
{
    uint32_t index = rmm__live_map_overlap(
        &self->engine->blocks.map, guard->address - 1, guard->address);

    if (index != RMM_LIVE_NONE &&
        self->guards.entries[index].guard.number == guard->number) {
        rmm__guards_drop(&self->guards, index);
    }
    RMM_ROW_ADD(&self->engine->header->guards_missing, 1);
}

/* This piece of work was not queued. */
static void undo(state_t *self, const rmm_guard_job_t *job)
{
    rmm__mutex_lock(&self->engine->lock);
    if (job->action == RMM_GUARD_FILL) {
        undo_fill_locked(self, &job->guards[0]);
    } else {
        if (job->action == RMM_GUARD_CLOSE) {
            rmm__guards_shut(&self->guards, job);
        } else {
            rmm__guards_cancel(&self->guards, job->tag);
        }
        RMM_ROW_ADD(&self->engine->header->guards_unchecked, 1);
    }
    rmm__mutex_unlock(&self->engine->lock);
}

static void count_check(state_t *self, const rmm_guard_job_t *job)
{
    rmm__mutex_lock(&self->engine->lock);
    rmm__guards_queued(&self->guards, job->tag);
    RMM_ROW_ADD(&self->engine->header->guard_checks, 1);
    rmm__mutex_unlock(&self->engine->lock);
}

static void switch_off(state_t *self, int error)
{
    rmm_diag_engine_t *engine = self->engine;

    atomic_store_explicit(
        &engine->header->guards_error, (uint64_t)(uint32_t)error, memory_order_relaxed);
    rmm__mode_switch_set(
        &engine->modes, rmm__diag_modes(engine) & ~RMM_DIAG_MODE_GUARDS);
}

static void leave(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;
    const rmm_guard_plan_t *plan = &call->guards;
    rmm_guard_answer_t answer = RMM_GUARD_QUEUED;
    int error = 0;

    for (uint32_t i = 0; plan->is_on && i < plan->job_count; i++) {
        const rmm_guard_job_t *job = &plan->jobs[i];

        if (answer != RMM_GUARD_FAILED) {
            answer = self->queue(plan->device, plan->stream, job, &error);
        }
        if (answer != RMM_GUARD_QUEUED) {
            undo(self, job);
        } else if (job->action != RMM_GUARD_FILL) {
            count_check(self, job);
        }
    }
    if (answer == RMM_GUARD_FAILED) {
        switch_off(self, error);
    }
}

const rmm_checker_t rmm__guard_checker = {
    .state_bytes = sizeof(state_t),
    .is_wanted = is_wanted,
    .init = init,
    .fini = fini,
    .settle = settle,
    .enter = enter,
    .leave = leave,
    .allocated = allocated,
    .freed = freed,
    .ended = ended,
    .before = before,
    .after = after};
