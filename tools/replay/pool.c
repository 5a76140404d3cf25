/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trial takes a fresh pool of a fixed size, so that no layout is left from the one
 * before, and ends at the first allocation that does not fit.
 */
#include "replay/pool.h"

#include <inttypes.h>
#include <stdio.h>

#include <rmm/resource_spec.h>

#include "common/error.h"
#include "replay/replay.h"

bool pool_open(const char *resource, uint64_t pool_bytes, rmm_resource_t **out)
{
    char spec[REPLAY_RESOURCE_MAX + 64];
    uint64_t bytes = pool_bytes / CAPACITY_UNIT * CAPACITY_UNIT;
    if (pool_bytes == 0) {
        snprintf(spec, sizeof spec, "%s", resource);
    } else if (replay_resource_sizes(resource) == 1) {
        snprintf(spec, sizeof spec, "%s:%" PRIu64, resource, bytes);
    } else {
        snprintf(spec, sizeof spec, "%s:%" PRIu64 ":%" PRIu64, resource, bytes, bytes);
    }
    return rmm_resource_create_from_spec(spec, out) == RMM_OK;
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
    const char *resource;
    const plan_t *plan;
    progress_t *progress; /* NULL: how many trials there will be is not known */
} search_t;

static capacity_trial_t try_capacity(void *context, uint64_t capacity_bytes)
{
    const search_t *search = context;
    rmm_resource_t *pool;
    if (search->progress != NULL) {
        progress_step(search->progress, "capacities", search->resource);
    }
    if (!pool_open(search->resource, capacity_bytes, &pool)) {
        tool_error(
            "cannot try %" PRIu64 " bytes: %s", capacity_bytes,
            rmm_last_error_message());
        return CAPACITY_TRIAL_FAILED;
    }
    capacity_trial_t answer = run_trial(search->plan, pool);
    rmm_resource_release(pool);
    return answer;
}

bool pool_find_capacity(
    const char *resource, const plan_t *plan, uint64_t *capacity_bytes)
{
    search_t search = {resource, plan, NULL};
    switch (capacity_search(plan->peak_bytes, try_capacity, &search, capacity_bytes)) {
    case CAPACITY_FOUND:
        return true;
    case CAPACITY_NOT_FOUND:
        tool_error(
            "the log fails even in '%s' of four times its peak of %" PRIu64 " bytes",
            resource, plan->peak_bytes);
        return false;
    case CAPACITY_STOPPED:
        break;
    }
    return false;
}

bool pool_measure_curve(
    const char *resource, const plan_t *plan, progress_t *progress,
    capacity_curve_t *curve)
{
    search_t search = {resource, plan, progress};
    return capacity_curve_measure(plan->peak_bytes, try_capacity, &search, curve);
}
