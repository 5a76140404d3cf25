/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes that a resource, or a stack of them, holds. */
#ifndef RMM_TOOLS_REPLAY_HELD_H
#define RMM_TOOLS_REPLAY_HELD_H

#include <rmm/resource.h>

/* The resource's statistics, with the reserved_bytes of the one of the stack that holds most.
 * False: see the last error. */
bool held_stats(const rmm_resource_t *resource, rmm_stats_t *out);

#endif /* RMM_TOOLS_REPLAY_HELD_H */
