/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the engine what the driver knows of a stream: whether it waits for the legacy default
 * stream, and its id. Most programs create their streams before the diagnosis is there, so the
 * driver is asked when a stream is seen first, and once for each.
 *
 * The driver is asked for neither while the stream may capture: asking for the id ruins a capture.
 *
 * Threads: any. No lock; a stream may be asked for twice.
 */
#ifndef RMM_TOOLS_INJECT_STREAMS_H
#define RMM_TOOLS_INJECT_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

#include <rmm/sys/diag.h>

#include "diag/engine.h"

/* False: nothing is known of it now. *id_out UINT64_MAX: not the id. The flags are 1 or 0, as
 * RMM_STREAM_NON_BLOCKING. No default stream but the thread's own is asked for. */
typedef bool (*inject_stream_query_fn)(
    rmm_stream_t stream, uint32_t *flags_out, uint64_t *id_out);

/* Once, before the first event. NULL: nothing can be asked. */
void inject_streams_open(rmm_diag_engine_t *engine, inject_stream_query_fn query);

/* The stream exists, and does not capture. */
void inject_streams_see(rmm_stream_t stream);

/* Passes the event to the engine, with what it needs to know of the stream. */
void inject_streams_report(const rmm_diag_event_v1_t *event);

#endif /* RMM_TOOLS_INJECT_STREAMS_H */
