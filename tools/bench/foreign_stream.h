/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream that the library did not make and knows nothing of: what a program has that
 * calls CUDA itself.
 */
#ifndef RMM_TOOLS_BENCH_FOREIGN_STREAM_H
#define RMM_TOOLS_BENCH_FOREIGN_STREAM_H

#include "bench/workload.h"

typedef struct foreign_stream {
    void *driver; /* the handle of its library */
    rmm_stream_t stream;
} foreign_stream_t;

/* On the device that the library uses on this thread. False: problem says why. */
bool foreign_stream_open(foreign_stream_t *foreign, char problem[TRIAL_PROBLEM_MAX]);

void foreign_stream_close(foreign_stream_t *foreign);

#endif /* RMM_TOOLS_BENCH_FOREIGN_STREAM_H */
