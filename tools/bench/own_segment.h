/* SPDX-License-Identifier: Apache-2.0 */
/* The segment of this process, opened as any reader opens it. */
#ifndef RMM_TOOLS_BENCH_OWN_SEGMENT_H
#define RMM_TOOLS_BENCH_OWN_SEGMENT_H

#include "segment/segment_reader.h"

/* False: it has none (RMM_PUBLISH=0, or nothing was allocated yet). */
bool own_segment_open(rmm_segment_t *segment);

#endif /* RMM_TOOLS_BENCH_OWN_SEGMENT_H */
