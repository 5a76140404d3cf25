/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of "<segment>.events", made when tracing is switched on: a ring of the newest
 * allocation events; and the reading of them. The same rules as segment_format.h and
 * segment_reader.h; docs/segment-format.md describes it to the byte.
 */
#ifndef RMM_SEGMENT_EVENTS_H
#define RMM_SEGMENT_EVENTS_H

#include "segment/event_csv.h"
#include "segment/ring.h"
#include "segment/segment_reader.h"

#define RMM_EVENTS_MAGIC 0x31545645434d4d52ull /* "RMMCEVT1" */
#define RMM_EVENTS_SUFFIX "events"
#define RMM_EVENTS_RECORDS 16384u
/* A reader accepts no larger file: all of it may be new at once, and is printed while others
 * wait. */
#define RMM_EVENTS_MAX_BYTES (4u * 1024u * 1024u)

typedef struct rmm_events_header {
    uint64_t magic;
    uint16_t version_major;
    uint16_t version_minor;
    uint32_t header_bytes;
    uint64_t file_bytes;
    uint32_t records_offset, records_stride, records_count;
    _Atomic(uint32_t) ready; /* 0 until all else is written; release store */
    uint64_t reserved0[3];
    _Atomic(uint64_t) next; /* events begun; on a cache line of its own */
    _Atomic(uint64_t) lost; /* of them, those whose record was still taken */
    uint64_t reserved1[6];
} rmm_events_header_t;

typedef struct rmm_events_record {
    _Atomic(uint64_t) commit; /* ring.h */
    uint64_t time_ns;         /* CLOCK_REALTIME */
    uint64_t pointer, bytes, stream;
    uint32_t thread;
    uint32_t action; /* RMM_EVENT_* */
    int32_t device;  /* CUDA ordinal; -1: host memory */
    uint32_t resource_id;
    uint64_t reserved;
} rmm_events_record_t;

typedef struct rmm_events_layout {
    rmm_events_header_t header;
    rmm_events_record_t records[RMM_EVENTS_RECORDS];
} rmm_events_layout_t;

static_assert(sizeof(rmm_events_header_t) == 128, "events header layout is ABI");
static_assert(offsetof(rmm_events_header_t, next) == 64, "layout is ABI");
static_assert(sizeof(rmm_events_record_t) == 64, "events record layout is ABI");

/* --- reading ------------------------------------------------------------------------ */

typedef struct rmm_events {
    int fd;
    rmm_ring_t ring;
} rmm_events_t;

typedef void (*rmm_event_fn)(const rmm_event_t *event, void *arg);

/* 0, or a negative errno: -ENOENT tracing was never on, -EPROTO the file does not hold
 * together, -EPERM it is another user's. */
int rmm__events_open(rmm_events_t *events, int dirfd, const rmm_segment_t *segment);
/* The same on an open descriptor, which the events own if the answer is 0. */
int rmm__events_attach(rmm_events_t *events, int fd, uid_t owner);
void rmm__events_close(rmm_events_t *events);

/* As rmm__ring_read(). */
int rmm__events_read(
    const rmm_events_t *events, rmm_ring_cursor_t *cursor, bool ended, rmm_event_fn fn,
    void *arg);

#endif /* RMM_SEGMENT_EVENTS_H */
