/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation events for readers of events_pipe: written into a ring beside the segment while
 * the control page asks for it, read by rmmfs (proc/<pid>/events_pipe). Switched off it
 * costs a load; the ring is made when it is first switched on, and never waits for a
 * reader.
 */
#ifndef RMM_PUBLISH_TRACE_H
#define RMM_PUBLISH_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "segment/event_csv.h"

/* The control page's request. Never NULL; set by rmm__publish_open(). */
extern const _Atomic(uint32_t) *rmm__trace_request;

static inline bool rmm__trace_is_on(void)
{
    return __builtin_expect(
        atomic_load_explicit(rmm__trace_request, memory_order_relaxed) != 0, 0);
}

/* An event, but for thread and time, which are queried here. No lock held. */
void rmm__trace_put(const rmm_event_t *event, int device, uint32_t resource_id);

#endif /* RMM_PUBLISH_TRACE_H */
