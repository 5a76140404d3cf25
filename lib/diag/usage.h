/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which call used which block, in the rows of the side file. Each event counts a block once.
 * A launch that is captured into a graph which is known counts when the graph is launched.
 */
#ifndef RMM_DIAG_USAGE_H
#define RMM_DIAG_USAGE_H

#include "diag/checker.h"

/* A launch, copy or fill by this user runs, and uses these blocks. */
void rmm__usage_count(
    rmm_diag_engine_t *engine, uint32_t kind, uint32_t user, const uint32_t *indexes,
    uint32_t count);

#endif /* RMM_DIAG_USAGE_H */
