/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pools that logs are replayed on, and the search for the smallest one.
 */
#ifndef RMM_TOOLS_REPLAY_POOL_H
#define RMM_TOOLS_REPLAY_POOL_H

#include <rmm/resource.h>

#include "replay/plan.h"

/*
 * A pool over cudaMalloc of so many bytes, rounded down to 256; 0: grows from nothing.
 * False: see the last error.
 */
bool pool_open(uint64_t pool_bytes, rmm_resource_t **out);

/* The smallest pool that runs the plan; false: said why on stderr. */
bool pool_find_capacity(const plan_t *plan, uint64_t *capacity_bytes);

#endif /* RMM_TOOLS_REPLAY_POOL_H */
