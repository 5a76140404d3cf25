/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the ring of refused allocations of another process; part of the segment's reader, trusts
 * as little.
 */
#ifndef RMM_SEGMENT_REFUSALS_H
#define RMM_SEGMENT_REFUSALS_H

#include "segment/ring.h"
#include "segment/segment_reader.h"

typedef struct rmm_refusal {
    uint64_t number;  /* from 0, in the order in which they were begun */
    uint64_t time_ns; /* CLOCK_REALTIME */
    uint64_t bytes, device_free_bytes, current_bytes, reserved_bytes;
    uint32_t location, instance_id;
    uint64_t limit_bytes;
    uint32_t limit_of;       /* RMM_LIMIT_OF_*, or anything */
    char type[24], name[64]; /* no control characters */
} rmm_refusal_t;

typedef void (*rmm_refusal_fn)(const rmm_refusal_t *refusal, void *arg);

/*
 * Every refusal from the cursor on, in order; cursor->lost counts those that were overwritten.
 * One that is still being written ends the walk, unless `ended` says that its writer is gone.
 * Returns 0, -EPROTO (no such ring, or it was cut), -ENOMEM.
 */
int rmm__segment_read_refusals(
    const rmm_segment_t *segment, rmm_ring_cursor_t *cursor, bool ended,
    rmm_refusal_fn fn, void *arg);

#endif /* RMM_SEGMENT_REFUSALS_H */
