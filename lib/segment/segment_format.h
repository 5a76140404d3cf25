/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of the stats segment and of its control page: a wire format between processes,
 * described to the byte in docs/segment-format.md. Fixed-width integers only: no
 * pointer, enum, bool, size_t, bit-field or implicit padding. Little-endian, 64-bit
 * atomics. Locations in the file are offsets from its start.
 *
 * One process writes a segment, many read it with pread. A reader refuses another major
 * and accepts any minor: it finds records by offset and stride, and statistics by their
 * name in the schema, never by these structs' layout.
 *
 * Stripes: a figure that is a plain sum can be counted by many writers at once, each on a cache
 * line of its own. The figure is the record's word plus that word of all stripes. A figure that
 * can fall is the difference of two words that only rise: a reader that reads the subtracted word
 * last never returns too much. current_bytes is the exception: a word of each cell.
 *
 * Files of one process, in the runtime directory:
 *   <uid>.<16 hex digits>           the segment: the process writes, others read
 *   <uid>.<16 hex digits>.control   requests: rmmfs writes, the process reads
 *   <uid>.<16 hex digits>.<suffix>  made on demand ("diag")
 */
#ifndef RMM_SEGMENT_FORMAT_H
#define RMM_SEGMENT_FORMAT_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "segment/stat_fields.h"

#define RMM_SEGMENT_MAGIC 0x31474553434d4d52ull /* "RMMCSEG1" */
#define RMM_CONTROL_MAGIC 0x314c5443434d4d52ull /* "RMMCCTL1" */
#define RMM_SEGMENT_MAJOR 1u
#define RMM_SEGMENT_MINOR 0u

#define RMM_SEGMENT_DEVICES 32u   /* locations 0..31: CUDA ordinals */
#define RMM_SEGMENT_LOCATIONS 33u /* location 32: host memory */
#define RMM_SEGMENT_HOST_LOCATION 32u
#define RMM_SEGMENT_SLOTS 256u
#define RMM_SEGMENT_STRIPES 16u /* of each location and slot; a power of two */
#define RMM_SEGMENT_CELLS                                                              \
    4u /* of a location: its first stripes, each with one writer */
#define RMM_SEGMENT_MAX_BYTES (512u * 1024u)
#define RMM_SEGMENT_NO_LIMIT UINT64_MAX
#define RMM_CONTROL_LEVEL_MAX 6u /* off */
#define RMM_LOG_RECORDS 128u
#define RMM_LOG_TEXT_BYTES 488u
#define RMM_REFUSAL_RECORDS 16u

typedef struct rmm_segment_header {
    uint64_t magic;
    uint16_t version_major; /* reader refuses any other */
    uint16_t version_minor; /* reader accepts any */
    uint32_t header_bytes;
    uint64_t segment_bytes;
    uint64_t start_time_ticks; /* /proc/<pid>/stat field 22: guards against pid reuse */
    uint64_t start_time_ns;    /* CLOCK_REALTIME when the segment was made */
    uint32_t pid;              /* as the process sees itself: display only */
    uint32_t uid;
    uint32_t library_version; /* major * 10000 + minor * 100 + patch */
    _Atomic(uint32_t) ready;  /* 0 until all else is written; release store */
    uint32_t schema_offset, schema_stride, schema_count;
    uint32_t locations_offset, locations_stride, locations_count;
    uint32_t slots_offset, slots_stride, slots_count;
    _Atomic(uint32_t) slots_high; /* slots from here on were never used */
    char driver[16];   /* "cuda", "hip", "sim" or "none" (host memory only so far) */
    char comm[32];     /* program name; NUL-terminated, like every string here */
    char cmdline[240]; /* arguments separated by spaces, cut */
    char job[64];      /* RMM_JOB, if job_offset says so */
    /* the debug log's ring */
    uint32_t log_offset, log_stride,
        log_count; /* records; rmm_segment_log_t before them */
    /* for each location, and each slot, stripes_count stripes in a row */
    uint32_t stripes_stride, stripes_count;
    uint32_t location_stripes_offset, slot_stripes_offset;
    _Atomic(uint32_t) locations_opened; /* rises after a location's `used` was set */
    _Atomic(uint32_t) trim_seen;        /* control's trim_number that was obeyed */
    _Atomic(uint32_t) report_seen;      /* likewise, its report_number */
    /* the ring of refused allocations */
    uint32_t refusals_offset, refusals_stride,
        refusals_count;  /* records; rmm_segment_refusals_t before them */
    uint32_t job_offset; /* of the job in the header; 0: a program that knows of none */
    uint32_t reserved1[2];
} rmm_segment_header_t;

/* One statistic: where its uint64_t is in a record of `scope`, to which the words of
 * its stripes belong, if it names any. */
#define RMM_SCHEMA_LOCATION 1u
#define RMM_SCHEMA_SLOT 2u
#define RMM_STRIPE_NONE 0xffffu
#define RMM_KIND_GAUGE 1u
#define RMM_KIND_COUNTER 2u
#define RMM_KIND_MARK 3u
#define RMM_UNIT_BYTES 1u
#define RMM_UNIT_COUNT 2u

typedef struct rmm_segment_schema {
    char name[40];
    uint16_t scope;
    uint16_t kind;
    uint16_t unit;
    uint16_t reserved0;
    uint32_t offset;
    uint16_t stripe_plus;  /* striped: where in a stripe; RMM_STRIPE_NONE: nowhere */
    uint16_t stripe_minus; /* likewise, of what is subtracted */
} rmm_segment_schema_t;

/* The share of one of many writers in a location, or a slot. One cache line. All only rise but
 * current_bytes, which is 0 where the writer counts those in the record. */
typedef struct rmm_segment_stripe {
    _Atomic(uint64_t) total_bytes;
    _Atomic(uint64_t) total_count;
    _Atomic(uint64_t) freed_count;
    _Atomic(uint64_t) padding_added;
    _Atomic(uint64_t) padding_removed;
    _Atomic(uint64_t) current_bytes;
    uint64_t reserved[2];
} rmm_segment_stripe_t;

/* The words of statistics, and others of the writer. Where in a record each is, readers learn
 * from the schema. */
#define RMM_STAT_WORD(field, kind, unit, help) _Atomic(uint64_t) field;

/* A GPU, or host memory. Counters are independent atomics. The first line of figures is
 * what every allocation writes, the next one what it looks at. */
typedef struct rmm_segment_location {
    _Atomic(uint32_t) used; /* 0: nothing here yet; 1: identity below is complete */
    uint32_t reserved0;
    _Atomic(uint32_t) peak_reset_seen;      /* control's peak_reset that was obeyed */
    _Atomic(uint32_t) node_peak_reset_seen; /* control's node_peak_reset, likewise */
    uint64_t capacity_bytes;
    _Atomic(uint64_t) device_free_bytes; /* as the driver last reported it */
    char uuid[48];
    char pci_bus_id[24];
    char name[64];
    /* The three of growth: figures begin on a cache line. The daemon reads promised_bytes before
     * reserved_bytes, so it finds in one of them what was taken before it lowered a share. */
    _Atomic(uint64_t)
        promised_bytes;             /* that threads are about to take from the driver */
    _Atomic(uint64_t) wanted_bytes; /* more than the share, by threads that wait */
    _Atomic(uint32_t) wanted_number; /* rises by 1 per request for a larger share */
    uint32_t reserved1;
    union {
        uint64_t figures[24];
        struct {
            RMM_COMMON_HOT_STATS(RMM_STAT_WORD)
            _Atomic(uint64_t) live_count; /* as total_count - freed_count, of the
                                             stripes' part; at a location without its cells */
            uint64_t rest_of_line[2];
            RMM_COMMON_MARK_STATS(RMM_STAT_WORD)
            RMM_LOCATION_ONLY_STATS(RMM_STAT_WORD)
            RMM_COMMON_OTHER_STATS(RMM_STAT_WORD)
        };
    };
} rmm_segment_location_t;

/* free_bytes says what can be handed out; what is live is to be subtracted. */
#define RMM_SLOT_FREE_IS_REST 1u
/* It reports its blocks (segment_blocks.h). Minor 5. */
#define RMM_SLOT_HAS_BLOCKS 2u

/* A resource. Identity is guarded by generation, figures by sequence. Lines of figures as
 * at a location. */
typedef struct rmm_segment_slot {
    _Atomic(uint32_t) generation; /* odd: identity in flux; rises by 2 per resource */
    _Atomic(uint32_t) live;       /* 1: a resource lives here */
    _Atomic(uint32_t) sequence;   /* odd: figures in flux; always even if lock-free */
    _Atomic(uint32_t) peak_reset_seen;
    uint32_t instance_id;    /* unique in the process, from 1 */
    uint32_t upstream_id;    /* instance_id of the upstream; 0: none */
    uint32_t location;       /* index of its location */
    _Atomic(uint32_t) flags; /* RMM_SLOT_* */
    uint64_t created_ns;     /* CLOCK_REALTIME */
    char type[24];
    char name[64];
    union {
        uint64_t figures[48];
        struct {
            RMM_COMMON_HOT_STATS(RMM_STAT_WORD)
            RMM_SLOT_FREE_STATS(RMM_STAT_WORD)
            _Atomic(uint64_t) live_count; /* as at a location */
            RMM_COMMON_MARK_STATS(RMM_STAT_WORD)
            RMM_COMMON_OTHER_STATS(RMM_STAT_WORD)
            RMM_SLOT_ONLY_STATS(RMM_STAT_WORD)
        };
    };
} rmm_segment_slot_t;

/*
 * The newest log_count messages of the debug log. Record n stands at n % log_count and is
 * whole while its commit word is 2n + 2, before and after it was copied. A writer takes a
 * record by making the word 2n + 1. Where a slower writer still has it (or was killed with
 * it) the message is lost and counted.
 */
typedef struct rmm_segment_log {
    _Atomic(uint64_t) next;  /* messages begun since the start */
    _Atomic(uint64_t) lost;  /* of them, those that found their record taken */
    _Atomic(uint32_t) level; /* 1 + the program's level; 0: not known yet */
    uint32_t floor;          /* 1 + the least level that is compiled in */
    uint64_t reserved[5];
} rmm_segment_log_t;

typedef struct rmm_segment_log_record {
    _Atomic(uint64_t) commit;
    uint64_t time_ns;              /* CLOCK_REALTIME */
    uint32_t thread;               /* as the process sees it */
    uint16_t level;                /* 0 trace to 5 critical */
    uint16_t length;               /* of the text, without its NUL */
    char text[RMM_LOG_TEXT_BYTES]; /* one line, cut */
} rmm_segment_log_record_t;

/*
 * The newest refusals_count allocations that a user was refused for want of memory, a ring as the
 * log's. After it has filled a record the program changes the times of its segment's file, which
 * the daemon is notified of.
 */
typedef struct rmm_segment_refusals {
    _Atomic(uint64_t) next; /* refusals since the start */
    uint64_t reserved[7];
} rmm_segment_refusals_t;

typedef struct rmm_segment_refusal {
    _Atomic(uint64_t) commit;
    uint64_t time_ns;           /* CLOCK_REALTIME */
    uint64_t bytes;             /* that were requested */
    uint64_t device_free_bytes; /* as the driver last reported it; 0: it has not */
    uint64_t current_bytes;     /* this and the next one: of the resource */
    uint64_t reserved_bytes;
    uint32_t location;
    uint32_t instance_id; /* of the resource, like its type and name */
    char type[24];
    char name[64];
    uint64_t limit_bytes; /* the limit that refused it, as limit_of says */
    uint32_t limit_of;    /* RMM_LIMIT_OF_*; 0: the driver had none */
    uint32_t reserved0;
    uint64_t reserved[4];
} rmm_segment_refusal_t;

#define RMM_LIMIT_OF_RESOURCE 1u /* limit_bytes of the resource's slot */
#define RMM_LIMIT_OF_PROCESS 2u  /* that of the location */
#define RMM_LIMIT_OF_GROUP 3u    /* the location's share; limit_bytes is the group's */

/* Requests of the daemon for one location, for one slot. Each field is written whole. Limits
 * are looked at only while `wanted` of the page says so. */
typedef struct rmm_control_location {
    _Atomic(uint32_t) peak_reset;      /* rises by 1 per request */
    _Atomic(uint32_t) node_peak_reset; /* likewise, for the node's mark */
    _Atomic(uint64_t) limit_bytes; /* of reserved_bytes; RMM_SEGMENT_NO_LIMIT: none */
} rmm_control_location_t;

typedef struct rmm_control_slot {
    _Atomic(uint32_t) peak_reset;
    _Atomic(uint32_t) limit_of; /* instance_id that limit_bytes is meant for: the slot
                                      may have passed to another resource */
    _Atomic(uint64_t) limit_bytes; /* of current_bytes; RMM_SEGMENT_NO_LIMIT: none */
} rmm_control_slot_t;

/*
 * A location's share of the limits of groups (a user, a job, a whole GPU). The program answers to
 * limit_bytes of the location, too. It may take no more than the share; where that is
 * RMM_SHARE_ASK it asks before it takes any, and goes on if the daemon does not answer.
 */
#define RMM_SHARE_ASK (UINT64_MAX - 1)
#define RMM_SHARE_GROUP_BYTES 72u
typedef struct rmm_control_share {
    _Atomic(uint64_t) share_bytes; /* of reserved_bytes; RMM_SEGMENT_NO_LIMIT: none */
    _Atomic(uint64_t) limit_bytes; /* of the group that leaves least, for messages */
    _Atomic(uint32_t) answered; /* the last wanted_number; written after the others */
    uint32_t reserved0;
    char group[RMM_SHARE_GROUP_BYTES]; /* its name: "user 1001" */
} rmm_control_share_t;

/* The subject of a trim: a resource's instance_id, or a location's index with this bit. */
#define RMM_TRIM_LOCATION 0x80000000u
/* In place of bytes: the daemon waits no longer, nothing is to be done. */
#define RMM_TRIM_WITHDRAWN UINT64_MAX

typedef struct rmm_control_page {
    uint64_t magic;
    uint16_t version_major;
    uint16_t version_minor;
    uint32_t locations_offset, locations_stride, locations_count;
    uint32_t slots_offset, slots_stride, slots_count;
    _Atomic(uint32_t) log_level; /* 1 + the level that is wanted; 0: none */
    union {
        struct {
            _Atomic(uint32_t) trace_enable; /* not 0: allocation events are wanted */
            _Atomic(uint32_t) wanted; /* not 0: a limit, a share, a trim, or a report */
        };
        _Atomic(uint64_t) attention; /* not 0: one of the two, for allocations to see */
    };
    _Atomic(uint32_t) trim_number; /* rises by 1; written after the next two */
    _Atomic(uint32_t) trim_of; /* an instance_id, or a location: RMM_TRIM_LOCATION */
    _Atomic(uint64_t) trim_keep_bytes;
    _Atomic(uint32_t) report_number; /* rises by 1; written after the next one */
    _Atomic(uint32_t) report_rows;   /* at most; 0: no caller waits for it any longer */
    _Atomic(uint32_t)
        request_count; /* rises with each request, after all of it; a futex */
    uint32_t shares_offset, shares_stride, shares_count; /* 0: takes no shares */
    uint64_t reserved1[5];
    rmm_control_location_t locations[RMM_SEGMENT_LOCATIONS];
    rmm_control_slot_t slots[RMM_SEGMENT_SLOTS];
    rmm_control_share_t shares[RMM_SEGMENT_LOCATIONS];
} rmm_control_page_t;

/*
 * Live allocations. The two counters are read one after the other (total first), so a
 * busy moment may show a few too few; never too many, never below none.
 */
static inline uint64_t rmm_live_count(uint64_t total_count, uint64_t freed_count)
{
    return total_count > freed_count ? total_count - freed_count : 0;
}

/* The whole file, as this version writes it. Readers use the sizes in the header. */
#define RMM_SCHEMA_MAX 64u
typedef struct rmm_segment_layout {
    rmm_segment_header_t header;
    rmm_segment_schema_t schema[RMM_SCHEMA_MAX];
    rmm_segment_location_t locations[RMM_SEGMENT_LOCATIONS];
    rmm_segment_slot_t slots[RMM_SEGMENT_SLOTS];
    rmm_segment_log_t log;
    rmm_segment_log_record_t log_records[RMM_LOG_RECORDS];
    rmm_segment_stripe_t location_stripes[RMM_SEGMENT_LOCATIONS][RMM_SEGMENT_STRIPES];
    rmm_segment_stripe_t slot_stripes[RMM_SEGMENT_SLOTS][RMM_SEGMENT_STRIPES];
    rmm_segment_refusals_t refusals;
    rmm_segment_refusal_t refusal_records[RMM_REFUSAL_RECORDS];
} rmm_segment_layout_t;

static_assert(
    sizeof(_Atomic(uint64_t)) == 8, "64-bit counters are plain and lock-free");
static_assert(sizeof(_Atomic(uint32_t)) == 4, "32-bit fields are plain and lock-free");
static_assert(sizeof(rmm_segment_header_t) == 512, "segment header layout is ABI");
static_assert(offsetof(rmm_segment_header_t, ready) == 52, "layout is ABI");
static_assert(offsetof(rmm_segment_header_t, slots_high) == 92, "layout is ABI");
static_assert(offsetof(rmm_segment_header_t, driver) == 96, "layout is ABI");
static_assert(offsetof(rmm_segment_header_t, job) == 384, "layout is ABI");
static_assert(offsetof(rmm_segment_header_t, job_offset) == 500, "layout is ABI");
static_assert(offsetof(rmm_segment_header_t, log_offset) == 448, "layout is ABI");
static_assert(offsetof(rmm_segment_header_t, stripes_stride) == 460, "layout is ABI");
static_assert(sizeof(rmm_segment_schema_t) == 56, "schema layout is ABI");
static_assert(offsetof(rmm_segment_schema_t, stripe_plus) == 52, "layout is ABI");
static_assert(sizeof(rmm_segment_stripe_t) == 64, "a stripe is a line");
static_assert(offsetof(rmm_segment_location_t, promised_bytes) == 168, "layout is ABI");
static_assert(offsetof(rmm_segment_location_t, figures) == 192, "layout is ABI");
static_assert(
    sizeof(rmm_segment_location_t) ==
        192 + sizeof(((rmm_segment_location_t *)0)->figures),
    "more statistics than figures[] of a location: make it larger by a line, 8 words");
static_assert(offsetof(rmm_segment_slot_t, figures) == 128, "layout is ABI");
static_assert(
    sizeof(rmm_segment_slot_t) == 128 + sizeof(((rmm_segment_slot_t *)0)->figures),
    "more statistics than figures[] of a slot: make it larger by a line, 8 words");
static_assert(
    sizeof(rmm_segment_location_t) % 64 == 0 && sizeof(rmm_segment_slot_t) % 64 == 0,
    "records begin on lines");
static_assert(sizeof(rmm_segment_log_t) == 64, "log layout is ABI");
static_assert(sizeof(rmm_segment_log_record_t) == 512, "log record layout is ABI");
static_assert(offsetof(rmm_segment_log_record_t, text) == 24, "layout is ABI");
static_assert(sizeof(rmm_segment_refusals_t) == 64, "head of refusals is ABI");
static_assert(sizeof(rmm_segment_refusal_t) == 192, "refusal layout is ABI");
static_assert(offsetof(rmm_segment_header_t, refusals_offset) == 488, "layout is ABI");
static_assert(offsetof(rmm_control_page_t, log_level) == 36, "control layout is ABI");
static_assert(offsetof(rmm_control_page_t, trace_enable) == 40, "layout is ABI");
static_assert(offsetof(rmm_control_page_t, wanted) == 44, "layout is ABI");
static_assert(offsetof(rmm_control_page_t, trim_keep_bytes) == 56, "layout is ABI");
static_assert(offsetof(rmm_control_page_t, request_count) == 72, "layout is ABI");
static_assert(offsetof(rmm_segment_header_t, trim_seen) == 480, "layout is ABI");
static_assert(offsetof(rmm_segment_header_t, report_seen) == 484, "layout is ABI");
static_assert(sizeof(rmm_control_location_t) == 16, "control layout is ABI");
static_assert(sizeof(rmm_control_slot_t) == 16, "control layout is ABI");
static_assert(sizeof(rmm_control_share_t) == 96, "control layout is ABI");
static_assert(offsetof(rmm_control_page_t, shares_offset) == 76, "layout is ABI");
static_assert(offsetof(rmm_control_page_t, report_number) == 64, "layout is ABI");
static_assert(offsetof(rmm_control_page_t, locations) == 128, "control layout is ABI");
static_assert(offsetof(rmm_segment_layout_t, locations) % 64 == 0, "records on lines");
static_assert(offsetof(rmm_segment_layout_t, log) % 64 == 0, "records on lines");
static_assert(offsetof(rmm_segment_layout_t, location_stripes) % 64 == 0, "on lines");
static_assert(offsetof(rmm_segment_layout_t, slot_stripes) % 64 == 0, "on lines");
static_assert(
    offsetof(rmm_segment_layout_t, slots) % 64 == 0 &&
        offsetof(rmm_segment_location_t, peak_bytes) % 64 == 0 &&
        offsetof(rmm_segment_slot_t, peak_bytes) % 64 == 0,
    "fields written often share no cache line with fields read often");
static_assert(
    offsetof(rmm_segment_slot_t, cross_stream_count) >=
        offsetof(rmm_segment_slot_t, peak_bytes) + 64,
    "it rises too often for the line of marks");
static_assert(
    offsetof(rmm_segment_location_t, node_peak_count) <
        offsetof(rmm_segment_location_t, peak_bytes) + 64,
    "all marks of a location are on one line");
static_assert(sizeof(rmm_segment_layout_t) <= RMM_SEGMENT_MAX_BYTES, "size is bounded");

#endif /* RMM_SEGMENT_FORMAT_H */
