/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trial takes a fresh pool of a fixed size, so that no layout is left from the one
 * before, and ends at the first allocation that does not fit.
 */
#include "replay/pool.h"

#include <inttypes.h>

#include <rmm/arena_resource.h>
#include <rmm/cuda_resource.h>
#include <rmm/pool_resource.h>

#include "common/error.h"
#include "replay/capacity.h"
#include "replay/replay.h"

/* upstream NULL: over virtual memory. */
static rmm_status_t
open_pool(rmm_resource_t *upstream, uint64_t pool_bytes, rmm_resource_t **out)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    options.flags = upstream == NULL ? RMM_POOL_VIRTUAL : 0;
    options.initial_bytes = pool_bytes / CAPACITY_UNIT * CAPACITY_UNIT;
    options.maximum_bytes = options.initial_bytes;
    return rmm_pool_resource_create(upstream, &options, out);
}

static rmm_status_t
open_arena(rmm_resource_t *upstream, uint64_t arena_bytes, rmm_resource_t **out)
{
    rmm_arena_options_t options = RMM_ARENA_OPTIONS_INIT;
    options.arena_bytes = arena_bytes;
    return rmm_arena_resource_create(upstream, &options, out);
}

bool pool_open(replay_resource_t kind, uint64_t pool_bytes, rmm_resource_t **out)
{
    rmm_resource_t *upstream = NULL;
    if (kind != REPLAY_POOL_VIRTUAL && rmm_cuda_resource_create(&upstream) != RMM_OK) {
        return false;
    }
    rmm_status_t status = kind == REPLAY_ARENA ? open_arena(upstream, pool_bytes, out)
                                               : open_pool(upstream, pool_bytes, out);
    rmm_resource_release(upstream);
    return status == RMM_OK;
}

static capacity_trial_t run_trial(const plan_t *plan, rmm_resource_t *pool)
{
    replay_t replay;
    if (!replay_open(&replay, plan, pool, 0, NULL)) {
        tool_error("%s", replay.error);
        return CAPACITY_TRIAL_FAILED;
    }
    capacity_trial_t answer = CAPACITY_FITS;
    rmm_status_t status = replay_try(&replay);
    if (status == RMM_ERR_OUT_OF_MEMORY) {
        answer = CAPACITY_TOO_SMALL;
    } else if (status != RMM_OK) {
        tool_error("%s", rmm_last_error_message());
        answer = CAPACITY_TRIAL_FAILED;
    }
    replay_close(&replay);
    return answer;
}

typedef struct search {
    replay_resource_t kind;
    const plan_t *plan;
} search_t;

static const char *name_of(replay_resource_t kind)
{
    return kind == REPLAY_ARENA ? "an arena" : "a pool";
}

static capacity_trial_t try_capacity(void *context, uint64_t capacity_bytes)
{
    const search_t *search = context;
    rmm_resource_t *pool;
    if (!pool_open(search->kind, capacity_bytes, &pool)) {
        tool_error(
            "cannot try %s of %" PRIu64 " bytes: %s", name_of(search->kind),
            capacity_bytes, rmm_last_error_message());
        return CAPACITY_TRIAL_FAILED;
    }
    capacity_trial_t answer = run_trial(search->plan, pool);
    rmm_resource_release(pool);
    return answer;
}

bool pool_find_capacity(
    replay_resource_t kind, const plan_t *plan, uint64_t *capacity_bytes)
{
    search_t search = {kind, plan};
    switch (capacity_search(plan->peak_bytes, try_capacity, &search, capacity_bytes)) {
    case CAPACITY_FOUND:
        return true;
    case CAPACITY_NOT_FOUND:
        tool_error(
            "the log does not run in %s of four times its peak of %" PRIu64 " bytes",
            name_of(kind), plan->peak_bytes);
        return false;
    case CAPACITY_STOPPED:
        break;
    }
    return false;
}
