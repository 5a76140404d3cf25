/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a file to a plan, saying on stderr what in the log cannot be replayed.
 */
#ifndef RMM_TOOLS_REPLAY_LOAD_H
#define RMM_TOOLS_REPLAY_LOAD_H

#include "replay/plan.h"

typedef struct load_counts {
    uint64_t skipped_rows;   /* malformed, or refused by the plan */
    uint64_t corrected_rows; /* replayed otherwise than written */
} load_counts_t;

/* False: said why on stderr. The plan is initialised here; plan_fini() it in any case. */
bool load_log(const char *path, bool strict, plan_t *plan, load_counts_t *counts);

#endif /* RMM_TOOLS_REPLAY_LOAD_H */
