/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resources that logs are replayed on, and the capacities they need.
 */
#ifndef RMM_TOOLS_REPLAY_POOL_H
#define RMM_TOOLS_REPLAY_POOL_H

#include <rmm/resource.h>

#include "common/progress.h"
#include "replay/capacity.h"
#include "replay/options.h"
#include "replay/plan.h"

/*
 * The resource, and if it is a pool or an arena of so many bytes in all, rounded down to
 * 256; 0: as it is by default. False: see the last error.
 */
bool pool_open(const char *resource, uint64_t pool_bytes, rmm_resource_t **out);

/* The smallest of its kind that runs the plan; false: said why on stderr. */
bool pool_find_capacity(
    const char *resource, const plan_t *plan, uint64_t *capacity_bytes);

/* Which sizes of its kind run the plan, in CAPACITY_CURVE_COUNT steps of the progress; false: said
 * why on stderr. */
bool pool_measure_curve(
    const char *resource, const plan_t *plan, progress_t *progress,
    capacity_curve_t *curve);

#endif /* RMM_TOOLS_REPLAY_POOL_H */
