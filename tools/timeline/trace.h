/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A history as Chrome's Trace Event JSON, which Perfetto and chrome://tracing open: an async
 * slice for each block, an instant for each launch and copy on the track of its stream, and
 * counters of live bytes for each device and resource.
 *
 * A block is 250 to 500 bytes of text, a launch about 120; a counter has at most
 * TRACE_POINTS_MAX points and one, each the largest figure of its stretch, so that no peak is lost.
 */
#ifndef RMM_TOOLS_TIMELINE_TRACE_H
#define RMM_TOOLS_TIMELINE_TRACE_H

#include <stdio.h>

#include "timeline/history.h"

#define TRACE_POINTS_MAX 50000

/* The history is finished. Errors of writing are left in `out`. */
void trace_write(const history_t *history, FILE *out);

#endif /* RMM_TOOLS_TIMELINE_TRACE_H */
