/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes what happened, event by event, into a ring (timeline_format.h) for a picture of the
 * program's memory over time.
 *
 * Not locked: the engine's lock protects it.
 */
#ifndef RMM_DIAG_TIMELINE_H
#define RMM_DIAG_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmm/sys/diag.h>

#include "diag/diag_format.h"
#include "diag/timeline_format.h"

#define RMM_TIMELINE_STREAMS 64u

/* A stream that blocks were allocated on: events name it by its handle only. */
typedef struct rmm_timeline_stream {
    uint64_t key; /* of its handle; 0: none */
    uint64_t id;
} rmm_timeline_stream_t;

typedef struct rmm_timeline {
    rmm_timeline_header_t *header; /* borrowed; NULL: nothing is written */
    rmm_timeline_event_t *events;
    rmm_timeline_stream_t streams[RMM_TIMELINE_STREAMS]; /* at the hash of its key */
} rmm_timeline_t;

/* Bytes of a ring of so many events. */
size_t rmm__timeline_file_bytes(uint32_t event_count);

/* memory: zeroed, 8-byte aligned, and that many bytes; NULL: nothing is written. */
void rmm__timeline_init(rmm_timeline_t *timeline, void *memory, uint32_t event_count);

static inline bool rmm__timeline_is_on(const rmm_timeline_t *timeline)
{
    return timeline->header != NULL;
}

/* Only if it is on: a block was allocated; one is freed; a launch, copy, fill or prefetch was
 * made by `user`. Times do not fall from call to call. */
void rmm__timeline_allocated(
    rmm_timeline_t *timeline, const rmm_diag_block_v1_t *block);
void rmm__timeline_freed(
    rmm_timeline_t *timeline, const rmm_diag_row_t *row, uint64_t now_ns);
void rmm__timeline_called(
    rmm_timeline_t *timeline, const rmm_diag_event_v1_t *event, uint32_t user,
    uint64_t now_ns);

#endif /* RMM_DIAG_TIMELINE_H */
