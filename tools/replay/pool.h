/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pools and arenas that logs are replayed on, and the search for the smallest one.
 */
#ifndef RMM_TOOLS_REPLAY_POOL_H
#define RMM_TOOLS_REPLAY_POOL_H

#include <rmm/resource.h>

#include "replay/options.h"
#include "replay/plan.h"

/*
 * A pool, or arena, over cudaMalloc of so many bytes, rounded down to 256; 0: a pool that
 * grows from nothing, an arena of half of what the device has free. False: see the last
 * error.
 */
bool pool_open(replay_resource_t kind, uint64_t pool_bytes, rmm_resource_t **out);

/* The smallest of its kind that runs the plan; false: said why on stderr. */
bool pool_find_capacity(
    replay_resource_t kind, const plan_t *plan, uint64_t *capacity_bytes);

#endif /* RMM_TOOLS_REPLAY_POOL_H */
