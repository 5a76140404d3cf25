/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's part in guards: see engine_impl.h and guards.h. A launch is checked for the blocks
 * that its parameters point into, each with the guard behind it and the one before it. Other
 * blocks are not checked: if a kernel on another stream breaks their guards at that moment, the
 * finding would name the wrong kernel.
 */
#include "diag/engine_impl.h"

#include "diag/row.h"

/* --- results ---------------------------------------------------------------------------- */

static void
add_finding_locked(rmm_diag_engine_t *engine, const rmm_guard_broken_t *broken)
{
    const rmm_guard_check_t *check = broken->check;

    rmm__findings_add(
        &engine->findings,
        &(rmm_finding_t){
            .kind = RMM_DIAG_OUT_OF_BOUNDS,
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
static bool settle_one(rmm_diag_engine_t *engine, stacks_t *stacks)
{
    rmm_guard_broken_t broken;
    bool found;

    stacks->finding = RMM_DIAG_FINDINGS_COUNT;
    rmm__mutex_lock(&engine->lock);
    found = rmm__guards_take(&engine->guards, &broken);
    if (found) {
        uint32_t before = RMM_ROW_GET(engine->header, findings_used);

        add_finding_locked(engine, &broken);
        if (RMM_ROW_GET(engine->header, findings_used) != before) {
            stacks->finding = before;
            stacks->call = broken.check->stack;
            stacks->origin = broken.suspect->stack;
        }
    }
    rmm__mutex_unlock(&engine->lock);
    return found;
}

void rmm__diag_guards_settle(rmm_diag_engine_t *engine)
{
    stacks_t stacks;

    while (engine->queue != NULL && settle_one(engine, &stacks)) {
        if (stacks.finding < RMM_DIAG_FINDINGS_COUNT) {
            rmm__stacks_put_call(&engine->stacks, stacks.finding, &stacks.call);
            rmm__stacks_put_origin(&engine->stacks, stacks.finding, &stacks.origin);
        }
    }
}

/* --- plans ------------------------------------------------------------------------------ */

void rmm__diag_guards_begin(
    rmm_diag_engine_t *engine, rmm_guard_plan_t *plan, int32_t device,
    rmm_stream_t stream)
{
    plan->is_on = engine->queue != NULL &&
                  rmm__diag_mode_is_on(engine, RMM_DIAG_MODE_GUARDS) && device >= 0;
    if (plan->is_on) {
        plan->device = device;
        plan->stream = stream;
        plan->job_count = 0;
        plan->stack = *rmm__stack_take();
    }
}

void rmm__diag_guards_allocated_locked(
    rmm_diag_engine_t *engine, rmm_guard_plan_t *plan, uint32_t index,
    const rmm_diag_block_v1_t *block)
{
    if (!plan->is_on) {
        return;
    }
    if (rmm__guards_open(&engine->guards, index, block, &plan->stack, &plan->jobs[0])) {
        plan->job_count = 1;
    } else {
        RMM_ROW_ADD(&engine->header->guards_missing, 1);
    }
}

void rmm__diag_guards_freed_locked(
    rmm_diag_engine_t *engine, rmm_guard_plan_t *plan, uint32_t index,
    const rmm_diag_block_v1_t *freed)
{
    rmm_diag_block_v1_t block;

    if (!plan->is_on || !rmm__guards_has(&engine->guards, index)) {
        return;
    }
    block = rmm__uses_block(&engine->uses, index);
    if (rmm__guards_close(
            &engine->guards, index, freed, &block, &plan->stack, &plan->jobs[0])) {
        plan->job_count = 1;
    }
}

/* A check of RMM_GUARDS_AT_ONCE guards at most is complete. */
static void end_check_locked(rmm_diag_engine_t *engine, rmm_guard_plan_t *plan)
{
    if (rmm__guards_end(&engine->guards, &plan->stack, &plan->jobs[plan->job_count])) {
        plan->job_count++;
    }
}

typedef struct launch {
    const rmm_diag_event_v1_t *event;
    uint32_t user;
    uint32_t added; /* guards in the check that is begun */
    bool is_cut;    /* too many checks are pending */
} launch_t;

static bool begin_check_locked(rmm_diag_engine_t *engine, launch_t *launch)
{
    launch->added = 0;
    launch->is_cut = !rmm__guards_begin(
        &engine->guards, launch->event->kind, launch->user, launch->event->stream);
    if (!launch->is_cut) {
        rmm__guards_name_stream(
            &engine->guards,
            rmm__stream_names_find(&engine->streams, launch->event->stream));
    }
    return !launch->is_cut;
}

/* The guard of `index` is behind or before `block`. */
static void add_guard_locked(
    rmm_diag_engine_t *engine, rmm_guard_plan_t *plan, launch_t *launch, uint32_t index,
    const rmm_diag_block_v1_t *block)
{
    if (launch->is_cut || !rmm__guards_has(&engine->guards, index)) {
        return;
    }
    if (launch->added == RMM_GUARDS_AT_ONCE) {
        end_check_locked(engine, plan);
        if (!begin_check_locked(engine, launch)) {
            return;
        }
    }
    rmm__guards_add(&engine->guards, index, block, plan->device);
    launch->added++;
}

/* The block whose guard ends where this one begins, or RMM_LIVE_NONE. */
static uint32_t find_before(rmm_diag_engine_t *engine, uint64_t begin)
{
    uint32_t index =
        begin > RMM_GUARD_BYTES_MAX
            ? rmm__live_map_overlap(&engine->map, begin - RMM_GUARD_BYTES_MAX, begin)
            : RMM_LIVE_NONE;

    if (index != RMM_LIVE_NONE && rmm__guards_has(&engine->guards, index)) {
        const rmm_guard_t *guard = &engine->guards.entries[index].guard;

        return guard->address + guard->bytes == begin ? index : RMM_LIVE_NONE;
    }
    return RMM_LIVE_NONE;
}

/* The guard behind a block is the block's error also where it lies before another that is used: so
 * those come first. */
static void
add_used_locked(rmm_diag_engine_t *engine, rmm_guard_plan_t *plan, launch_t *launch)
{
    const rmm_uses_t *uses = &engine->uses;

    for (uint32_t i = 0; i < uses->used_count; i++) {
        const rmm_diag_block_v1_t block = rmm__uses_block(uses, uses->used[i]);

        add_guard_locked(engine, plan, launch, uses->used[i], &block);
        rmm__guards_use(&engine->guards, uses->used[i], plan->stream);
    }
    for (uint32_t i = 0; i < uses->used_count; i++) {
        const rmm_diag_block_v1_t block = rmm__uses_block(uses, uses->used[i]);
        uint32_t before = find_before(engine, block.address);

        if (before != RMM_LIVE_NONE &&
            rmm__guards_is_of(&engine->guards, before, plan->stream)) {
            add_guard_locked(engine, plan, launch, before, &block);
        }
    }
}

void rmm__diag_guards_launched_locked(
    rmm_diag_engine_t *engine, rmm_guard_plan_t *plan, const rmm_diag_event_v1_t *event,
    uint32_t user)
{
    launch_t launch = {.event = event, .user = user};

    if (!plan->is_on) {
        return;
    }
    if (event->kind == RMM_DIAG_GRAPH_LAUNCH) {
        engine->guards.graphs++;
        return;
    }
    if (event->kind != RMM_DIAG_LAUNCH || engine->uses.used_count == 0) {
        return;
    }
    if (event->capturing == 0 && begin_check_locked(engine, &launch)) {
        add_used_locked(engine, plan, &launch);
    }
    if (event->capturing == 0 && !launch.is_cut) {
        end_check_locked(engine, plan);
    }
    if (event->capturing != 0 || launch.is_cut ||
        engine->uses.used_count == RMM_USES_LISTED) {
        RMM_ROW_ADD(&engine->header->guards_unchecked, 1);
    }
}

/* --- copies ----------------------------------------------------------------------------- */

typedef struct overwrite {
    uint64_t start, end;
    bool has_check; /* one is begun, of the guards below */
    uint32_t count;
    uint32_t closed[RMM_GUARDS_AT_ONCE];
} overwrite_t;

static bool
is_hit(const rmm_diag_engine_t *engine, uint32_t index, const overwrite_t *overwrite)
{
    const rmm_guard_t *guard = &engine->guards.entries[index].guard;

    return guard->bytes != 0 && guard->address < overwrite->end &&
           guard->address + guard->bytes > overwrite->start;
}

/* In the order of the stream, so that a guard which was broken before is found; where that is not
 * possible the host closes it at once. */
static void close_guard_locked(
    rmm_diag_engine_t *engine, const rmm_guard_plan_t *plan, overwrite_t *overwrite,
    uint32_t index)
{
    const rmm_diag_block_v1_t block = rmm__uses_block(&engine->uses, index);

    if (overwrite->has_check && overwrite->count < RMM_GUARDS_AT_ONCE &&
        engine->guards.entries[index].device == plan->device) {
        rmm__guards_add(&engine->guards, index, &block, plan->device);
        overwrite->closed[overwrite->count++] = index;
    } else {
        rmm__guards_drop(&engine->guards, index);
    }
}

bool rmm__diag_guards_overwritten_locked(
    rmm_diag_engine_t *engine, rmm_guard_plan_t *plan, const rmm_diag_event_v1_t *event,
    const rmm_event_range_t *range)
{
    overwrite_t overwrite = {
        .start = range->start,
        .end = range->bytes > UINT64_MAX - range->start ? UINT64_MAX
                                                        : range->start + range->bytes};
    uint64_t from =
        range->start > RMM_GUARD_BYTES_MAX ? range->start - RMM_GUARD_BYTES_MAX : 0;
    uint32_t index = rmm__live_map_overlap(&engine->map, from, overwrite.end);
    bool hits = false;

    if (!plan->is_on) {
        return false;
    }
    overwrite.has_check =
        plan->job_count < RMM_GUARD_JOBS &&
        rmm__guards_begin(&engine->guards, 0, RMM_DIAG_NO_USER, event->stream);
    if (overwrite.has_check) {
        rmm__guards_name_stream(
            &engine->guards, rmm__stream_names_find(&engine->streams, event->stream));
    }
    for (; index != RMM_LIVE_NONE;
         index = rmm__live_map_overlap(
             &engine->map, from, engine->map.nodes[index].start)) {
        if (is_hit(engine, index, &overwrite)) {
            close_guard_locked(engine, plan, &overwrite, index);
            hits = true;
        }
    }
    if (overwrite.count > 0 &&
        rmm__guards_end(&engine->guards, &plan->stack, &plan->jobs[plan->job_count])) {
        plan->jobs[plan->job_count++].action = RMM_GUARD_CLOSE;
    }
    for (uint32_t i = 0; i < overwrite.count; i++) {
        rmm__guards_release(&engine->guards, overwrite.closed[i]);
    }
    return hits;
}

/* --- the GPU's results ------------------------------------------------------------------ */

static void undo_fill_locked(rmm_diag_engine_t *engine, const rmm_guard_t *guard)
{
    uint32_t index =
        rmm__live_map_overlap(&engine->map, guard->address - 1, guard->address);

    if (index != RMM_LIVE_NONE &&
        engine->guards.entries[index].guard.number == guard->number) {
        rmm__guards_drop(&engine->guards, index);
    }
    RMM_ROW_ADD(&engine->header->guards_missing, 1);
}

/* This piece of work was not queued. */
static void undo(rmm_diag_engine_t *engine, const rmm_guard_job_t *job)
{
    rmm__mutex_lock(&engine->lock);
    if (job->action == RMM_GUARD_FILL) {
        undo_fill_locked(engine, &job->guards[0]);
    } else {
        if (job->action == RMM_GUARD_CLOSE) {
            rmm__guards_shut(&engine->guards, job);
        } else {
            rmm__guards_cancel(&engine->guards, job->tag);
        }
        RMM_ROW_ADD(&engine->header->guards_unchecked, 1);
    }
    rmm__mutex_unlock(&engine->lock);
}

static void count_check(rmm_diag_engine_t *engine, const rmm_guard_job_t *job)
{
    rmm__mutex_lock(&engine->lock);
    rmm__guards_queued(&engine->guards, job->tag);
    RMM_ROW_ADD(&engine->header->guard_checks, 1);
    rmm__mutex_unlock(&engine->lock);
}

void rmm__diag_guards_queue(rmm_diag_engine_t *engine, rmm_guard_plan_t *plan)
{
    rmm_guard_answer_t answer = RMM_GUARD_QUEUED;
    int error = 0;

    for (uint32_t i = 0; plan->is_on && i < plan->job_count; i++) {
        const rmm_guard_job_t *job = &plan->jobs[i];

        if (answer != RMM_GUARD_FAILED) {
            answer = engine->queue(plan->device, plan->stream, job, &error);
        }
        if (answer != RMM_GUARD_QUEUED) {
            undo(engine, job);
        } else if (job->action != RMM_GUARD_FILL) {
            count_check(engine, job);
        }
    }
    if (answer == RMM_GUARD_FAILED) {
        atomic_store_explicit(
            &engine->header->guards_error, (uint64_t)(uint32_t)error,
            memory_order_relaxed);
        rmm__mode_switch_set(
            &engine->modes,
            atomic_load_explicit(&engine->modes.modes, memory_order_relaxed) &
                ~RMM_DIAG_MODE_GUARDS);
    }
}
