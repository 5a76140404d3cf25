/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the debug log's ring of another process; part of the segment's reader, trusts as
 * little, and reports what it missed.
 */
#ifndef RMM_SEGMENT_LOG_H
#define RMM_SEGMENT_LOG_H

#include "segment/ring.h"
#include "segment/segment_reader.h"

typedef struct rmm_log_message {
    uint64_t number;  /* from 0, in the order in which they were begun */
    uint64_t time_ns; /* CLOCK_REALTIME */
    uint32_t thread;  /* as the process sees it */
    uint32_t level;   /* 0 trace to 5 critical */
    char text[RMM_SEGMENT_RECORD_BYTES]; /* one line, no control characters */
} rmm_log_message_t;

typedef void (*rmm_log_message_fn)(const rmm_log_message_t *message, void *arg);

/* Whether the segment has a log: that of an ended program may have had no line. */
bool rmm__segment_has_log(const rmm_segment_t *segment);

/*
 * Every message from the cursor on, in order. One that is still being written ends the
 * walk, to be had next time, unless `ended` says that its writer is gone.
 * Returns 0, -EPROTO (no log, or it was cut), -ENOMEM.
 */
int rmm__segment_read_log(
    const rmm_segment_t *segment, rmm_ring_cursor_t *cursor, bool ended,
    rmm_log_message_fn fn, void *arg);

/* The program's level and the least that it has compiled in, RMM's numbers 0 to 6; false:
 * unknown (yet). */
bool rmm__segment_log_level(
    const rmm_segment_t *segment, uint32_t *level_out, uint32_t *floor_out);

/* "trace" to "critical", "off"; a number that is no level: "unknown". */
const char *rmm__segment_log_level_name(uint32_t level);

#endif /* RMM_SEGMENT_LOG_H */
