/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of "<segment>.timeline", made beside "<segment>.diag" where a timeline is requested: a
 * ring of events, the newest last. The rules are those of diag_format.h.
 *
 * A block is one event, written when it is freed, with the whole of its life. So a ring that has
 * lost its oldest events still has each block that was live at any time since its oldest event:
 * it is in the ring, or a live row of the other file.
 *
 * One writer process, its threads serialised by the engine's lock. A writer that was killed may
 * leave one event half written: that at `written`, which in a full ring is the oldest.
 */
#ifndef RMM_DIAG_TIMELINE_FORMAT_H
#define RMM_DIAG_TIMELINE_FORMAT_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define RMM_TIMELINE_MAGIC 0x314e494c544d4d52ull
#define RMM_TIMELINE_MAJOR 1u
#define RMM_TIMELINE_MINOR 0u
#define RMM_TIMELINE_SUFFIX "timeline"
#define RMM_TIMELINE_EVENTS_MAX (1u << 22) /* a reader takes no larger ring */

typedef struct rmm_timeline_header {
    uint64_t magic;
    uint16_t version_major;
    uint16_t version_minor;
    uint32_t header_bytes;
    uint64_t file_bytes;
    uint32_t events_offset, events_stride, events_count;
    _Atomic(uint32_t) ready; /* 0 until all else is written; release store */
    _Atomic(uint64_t)
        written;         /* events ever; event i is at i % events_count; release */
    uint64_t started_ns; /* CLOCK_MONOTONIC */
} rmm_timeline_header_t;

/* Append only. */
typedef enum rmm_timeline_kind {
    RMM_TIMELINE_BLOCK = 1, /* that was freed */
    RMM_TIMELINE_LAUNCH = 2,
    RMM_TIMELINE_COPY = 3,
    RMM_TIMELINE_FILL = 4,
    RMM_TIMELINE_PREFETCH = 5,
    RMM_TIMELINE_GRAPH = 6 /* its kernels and copies are not known */
} rmm_timeline_kind_t;

#define RMM_TIMELINE_STREAM_IS_HANDLE 1u /* the id of the stream is not known */
#define RMM_TIMELINE_CAPTURED 2u         /* recorded into a graph, not executed */

typedef struct rmm_timeline_event {
    uint32_t kind;  /* rmm_timeline_kind_t */
    uint32_t flags; /* RMM_TIMELINE_... */
    uint64_t begin_ns,
        end_ns;           /* CLOCK_MONOTONIC; block: allocated, freed; else equal */
    uint64_t address;     /* block; copy, fill, prefetch: what it writes to */
    uint64_t bytes;       /* the same */
    uint64_t stream_id;   /* all ones: unknown */
    uint32_t resource_id; /* block */
    int32_t device;       /* -1: host memory */
    uint32_t first_user, last_user; /* block: its rows'; else the kernel or function */
} rmm_timeline_event_t;

static_assert(sizeof(rmm_timeline_header_t) == 56, "timeline header layout is ABI");
static_assert(sizeof(rmm_timeline_event_t) == 64, "timeline event layout is ABI");
static_assert(
    offsetof(rmm_timeline_header_t, events_offset) == 24 &&
        offsetof(rmm_timeline_header_t, ready) == 36 &&
        offsetof(rmm_timeline_header_t, written) == 40 &&
        offsetof(rmm_timeline_event_t, begin_ns) == 8 &&
        offsetof(rmm_timeline_event_t, address) == 24 &&
        offsetof(rmm_timeline_event_t, resource_id) == 48,
    "timeline fields are ABI: docs/diag-format.md");

#endif /* RMM_DIAG_TIMELINE_FORMAT_H */
