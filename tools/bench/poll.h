/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that reads this process's own segment, all records of it, a hundred times a
 * second, as a reader of /rmm would have it done.
 */
#ifndef RMM_TOOLS_BENCH_POLL_H
#define RMM_TOOLS_BENCH_POLL_H

#include <stdbool.h>

#include "bench/workload.h"

typedef struct poll_thread poll_t;

/* False: problem says why. */
bool poll_start(poll_t **out, char problem[TRIAL_PROBLEM_MAX]);

/* NULL is ignored. */
void poll_stop(poll_t *poll);

#endif /* RMM_TOOLS_BENCH_POLL_H */
