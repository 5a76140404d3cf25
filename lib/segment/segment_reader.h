/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads another process's segment and trusts nothing in it: every size, offset x count
 * and string is checked before use; a bad segment is refused with a reason. Reads with
 * pread only (a truncated mapping would be SIGBUS). Fuzzed: tests/fuzz.
 *
 * Own static library (rmm_segment_reader): no CUDA, no librmm-c.
 *
 * Statistics are found by their name in the schema that travels in the segment, so a
 * segment of a newer program shows its new counters, and one of an older program shows
 * -1 for what it does not have.
 *
 * Threads: a segment may be read from several threads at once; open and close may not
 * race with reads.
 */
#ifndef RMM_SEGMENT_READER_H
#define RMM_SEGMENT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "segment/segment_format.h"

#define RMM_SEGMENT_REASON_BYTES 128
#define RMM_SEGMENT_RECORD_BYTES 1024  /* largest stride that a reader accepts */
#define RMM_SEGMENT_STRIPES_BYTES 4096 /* the most of one record's stripes, likewise */
#define RMM_SEGMENT_NAME_BYTES 64      /* "<uid>.<16 hex digits>" and NUL */

typedef enum rmm_segment_verdict {
    RMM_SEGMENT_GOOD = 0,
    RMM_SEGMENT_NOT_READY, /* being made: look again */
    RMM_SEGMENT_REFUSED,   /* reason says why */
    RMM_SEGMENT_GONE,      /* no such file */
    RMM_SEGMENT_UNOPENED   /* out of descriptors, as reason says: look again */
} rmm_segment_verdict_t;

/* Every statistic that this version knows, by name: index in tables below. */
typedef enum rmm_location_stat {
#define X(field, kind, unit, help) RMM_LOCATION_STAT_##field,
    RMM_LOCATION_STATS(X)
#undef X
        RMM_LOCATION_STAT_COUNT
} rmm_location_stat_t;

typedef enum rmm_slot_stat {
#define X(field, kind, unit, help) RMM_SLOT_STAT_##field,
    RMM_SLOT_STATS(X)
#undef X
        RMM_SLOT_STAT_COUNT
} rmm_slot_stat_t;

typedef struct rmm_stat_desc {
    const char *name;
    uint16_t kind, unit; /* RMM_KIND_*, RMM_UNIT_* */
    uint32_t offset;     /* in this version's record */
    const char *help;
} rmm_stat_desc_t;

/* The words of a striped statistic in a stripe, or RMM_STRIPE_NONE. */
typedef struct rmm_stripe_words {
    uint16_t plus, minus;
} rmm_stripe_words_t;

/* This version's lists (stat_table.c, shared with the writer). */
extern const rmm_stat_desc_t rmm__location_stats[RMM_LOCATION_STAT_COUNT];
extern const rmm_stat_desc_t rmm__slot_stats[RMM_SLOT_STAT_COUNT];
/* NULL: the record's word is all of it. */
const rmm_stripe_words_t *rmm__stripe_words(const char *name);

typedef struct rmm_segment {
    int fd;
    char name[RMM_SEGMENT_NAME_BYTES];
    uid_t uid;              /* owner of the file, whatever its name says */
    uint64_t device, inode; /* of the file: the lock's identity in /proc/locks */
    uint64_t bytes;
    rmm_segment_header_t header; /* checked copy; strings are NUL-terminated */
    /* Checked copy; header.schema_count of them. Kinds and units that this version does
     * not know read as GAUGE and COUNT. */
    rmm_segment_schema_t schema[RMM_SCHEMA_MAX];
    uint32_t location_offset
        [RMM_LOCATION_STAT_COUNT]; /* in a location record; UINT32_MAX: absent */
    uint32_t slot_offset[RMM_SLOT_STAT_COUNT];
    /* Where freed_count is in the schema, of a location and of a slot; UINT32_MAX: absent. */
    uint32_t location_freed, slot_freed;
    uint32_t slot_free, slot_current, slot_padding; /* likewise */
    /* Which entries of the schema have stripes: reading a record looks at no others. */
    uint8_t location_striped[RMM_SCHEMA_MAX], slot_striped[RMM_SCHEMA_MAX];
    uint32_t location_striped_count, slot_striped_count;
} rmm_segment_t;

/* A record as read, of a location or a slot. The schema describes figures, not these structs. */
typedef union rmm_record {
    _Alignas(8) unsigned char bytes[RMM_SEGMENT_RECORD_BYTES];
    rmm_segment_location_t location;
    rmm_segment_slot_t slot;
} rmm_record_t;

/* True if `name` is that of a segment; uid_out may be NULL. Temporary names, side files
 * and anything else are not. The uid is that which the process saw: in a user namespace it
 * is not the file's owner. So it is a hint at most, never a proof. */
bool rmm__segment_name_parse(const char *name, uid_t *uid_out);

/*
 * Open the segment `name` in directory `dirfd`. Refuses what is not a regular file with one
 * link, has something mounted over it, is larger than RMM_SEGMENT_MAX_BYTES, or does not hold
 * together. reason receives one line. Whose it is segment->uid says.
 */
rmm_segment_verdict_t rmm__segment_open(
    rmm_segment_t *segment, int dirfd, const char *name,
    char reason[RMM_SEGMENT_REASON_BYTES]);

/*
 * The same on an open descriptor (for tests and fuzzing: no name, no owner check). If
 * GOOD, the segment owns it; else it stays the caller's.
 */
rmm_segment_verdict_t rmm__segment_attach(
    rmm_segment_t *segment, int fd, char reason[RMM_SEGMENT_REASON_BYTES]);

void rmm__segment_close(rmm_segment_t *segment);

/* True while the process that made it lives: somebody holds the exclusive lock. */
bool rmm__segment_is_live(const rmm_segment_t *segment);

/*
 * The pid of the holder as this process sees it, from /proc/locks by device and inode;
 * 0 if it is unknown (another pid namespace) or no process holds it.
 */
pid_t rmm__segment_pid(const rmm_segment_t *segment);

uint32_t rmm__segment_location_count(const rmm_segment_t *segment);
/* A number that changes when a location is opened; false: this segment has none, or the
 * file was cut. */
bool rmm__segment_locations_opened(const rmm_segment_t *segment, uint32_t *number_out);
/* False: the file is shorter than when it was opened. */
bool rmm__segment_is_whole(const rmm_segment_t *segment);
/* Slots from this index on were never used. One pread: ask once per walk. */
uint32_t rmm__segment_slot_count(const rmm_segment_t *segment);

/* False: unused, or the file no longer has it. Strings in the record are terminated and
 * free of control characters; they may hold '/'. The stripes are added to the figures. */
bool rmm__segment_read_location(
    const rmm_segment_t *segment, uint32_t index, rmm_record_t *record);

/* False: no resource there. Retries a bounded number of times while the writer is in the
 * middle. *torn_out (may be NULL) says that it stayed so: killed in the middle, or never
 * idle. Each figure is right by itself then, but they may be of different moments. */
bool rmm__segment_read_slot(
    const rmm_segment_t *segment, uint32_t index, rmm_record_t *record, bool *torn_out);

/* Which resource is there; its figures are 0. Less than half the cost. False also of one that
 * is being exchanged for another all the time. */
bool rmm__segment_read_slot_identity(
    const rmm_segment_t *segment, uint32_t index, rmm_record_t *record);

/* The same for a caller that reads many slots and has a bound for all: *tries_left retries,
 * of which it takes away those that it makes. */
bool rmm__segment_read_slot_within(
    const rmm_segment_t *segment, uint32_t index, rmm_record_t *record, bool *torn_out,
    uint32_t *tries_left);

/*
 * Adjacent slots, for a caller that reads most of them. A batch takes four calls of pread(), where
 * single slots take five each. The copies of one slot are farther apart in time, so a slot that
 * changed meanwhile is read once more by itself.
 */
#define RMM_SLOT_BATCH_BYTES 16384u
typedef struct rmm_slot_batch {
    uint32_t first, count; /* slots */
    bool is_filled;
    /* The table, as it was when the batch was begun, and after the stripes were read. */
    unsigned char before[RMM_SLOT_BATCH_BYTES], after[RMM_SLOT_BATCH_BYTES];
    unsigned char stripes_before[RMM_SLOT_BATCH_BYTES];
    unsigned char stripes_after[RMM_SLOT_BATCH_BYTES];
} rmm_slot_batch_t;

/* How many slots of this segment a batch holds. */
uint32_t rmm__segment_batch_slots(const rmm_segment_t *segment);
/* One pread, into `before`: what the caller may look at to find out which slots are worth
 * reading. False: the table has not so many slots, or the file was cut. */
bool rmm__segment_begin_batch(
    const rmm_segment_t *segment, uint32_t first, uint32_t count,
    rmm_slot_batch_t *batch);
/* The other three. If they fail, each slot is read by itself. */
void rmm__segment_fill_batch(const rmm_segment_t *segment, rmm_slot_batch_t *batch);
/* As rmm__segment_read_slot_within(), from a batch; NULL, or not filled: by itself. */
bool rmm__segment_batch_slot(
    const rmm_segment_t *segment, const rmm_slot_batch_t *batch, uint32_t index,
    rmm_record_t *record, bool *torn_out, uint32_t *tries_left);

/* The identity parts of a record, not its figures, which the schema describes. */
const rmm_segment_location_t *rmm__record_location(const rmm_record_t *record);
const rmm_segment_slot_t *rmm__record_slot(const rmm_record_t *record);

/* A figure; false: this segment does not have it. */
bool rmm__segment_location_stat(
    const rmm_segment_t *segment, const rmm_record_t *record, rmm_location_stat_t stat,
    uint64_t *value_out);
bool rmm__segment_slot_stat(
    const rmm_segment_t *segment, const rmm_record_t *record, rmm_slot_stat_t stat,
    uint64_t *value_out);

/* A figure by its entry in segment->schema, also one that this version does not know. */
uint64_t
rmm__record_schema_value(const rmm_record_t *record, const rmm_segment_schema_t *entry);

/*
 * Requests. The control page is opened on demand beside the segment, checked like it.
 * Returns 0 or a negative errno: -EPROTO if the page is inconsistent, -EPERM if it
 * is another user's, -EINVAL for an index that it does not have.
 */
typedef struct rmm_control {
    int fd;
    bool is_trimming;  /* between begin_trim and end_trim */
    bool is_reporting; /* between begin_report and end_report */
    uint32_t locations_offset, locations_stride, locations_count;
    uint32_t slots_offset, slots_stride, slots_count;
    uint32_t shares_offset, shares_stride, shares_count; /* 0: none */
} rmm_control_t;

int rmm__control_open(rmm_control_t *control, int dirfd, const rmm_segment_t *segment);
/* The same on an open descriptor, which the control owns if the answer is 0. */
int rmm__control_attach(rmm_control_t *control, int fd, uid_t owner);
void rmm__control_close(rmm_control_t *control);
int rmm__control_reset_location_peak(rmm_control_t *control, uint32_t location);
int rmm__control_reset_node_peak(rmm_control_t *control, uint32_t location);
int rmm__control_reset_slot_peak(rmm_control_t *control, uint32_t slot);
/* The level of the program's debug log, 0 trace to 6 off. */
int rmm__control_set_log_level(rmm_control_t *control, uint32_t level);
/* False: no request. */
bool rmm__control_log_level(rmm_control_t *control, uint32_t *level_out);
/* Allocation events: see segment_events.h. */
int rmm__control_set_trace(rmm_control_t *control, bool enable);
bool rmm__control_trace(rmm_control_t *control);
/* The request as it stands, to compare with peak_reset_seen of a record. */
int rmm__control_read_location(
    rmm_control_t *control, uint32_t location, rmm_control_location_t *out);
int rmm__control_read_slot(
    rmm_control_t *control, uint32_t slot, rmm_control_slot_t *out);
/* Adjacent ones, with one pread: so many records as have RMM_CONTROL_SLOTS_BYTES. */
#define RMM_CONTROL_SLOTS_BYTES 1024u
int rmm__control_read_slots(
    rmm_control_t *control, uint32_t first, uint32_t count, rmm_control_slot_t *out);

/*
 * Limits and trims. A limit is RMM_SEGMENT_NO_LIMIT where there is none, or it cannot be read.
 * The instance_id is that of the resource in the slot: a limit does not pass to the next one there.
 */
int rmm__control_limit_location(
    rmm_control_t *control, uint32_t location, uint64_t limit_bytes);
int rmm__control_limit_slot(
    rmm_control_t *control, uint32_t slot, uint32_t instance_id, uint64_t limit_bytes);
uint64_t rmm__control_location_limit(rmm_control_t *control, uint32_t location);
uint64_t
rmm__control_slot_limit(rmm_control_t *control, uint32_t slot, uint32_t instance_id);
/* `of` as trim_of of the page. The process has obeyed once rmm__segment_trim_seen() is
 * *number_out; one at a time. rmm__control_end_trim() follows in any case: is_withdrawn: no
 * caller waits any more, and a trim that has not begun shall not begin. */
int rmm__control_begin_trim(
    rmm_control_t *control, uint32_t of, uint64_t keep_bytes, uint32_t *number_out);
int rmm__control_end_trim(rmm_control_t *control, bool is_withdrawn);
/* False: it cannot be read. */
bool rmm__segment_trim_seen(const rmm_segment_t *segment, uint32_t *number_out);

/* The same of a report of the blocks of at most so many rows (segment_blocks.h), which a
 * process makes. Once it has obeyed, its file has that number, or there is none: it could not
 * make it. */
int rmm__control_begin_report(
    rmm_control_t *control, uint32_t rows, uint32_t *number_out);
int rmm__control_end_report(rmm_control_t *control, bool is_withdrawn);
bool rmm__segment_report_seen(const rmm_segment_t *segment, uint32_t *number_out);

/* Withdraw the requests that a killed daemon left: no caller waits for them, but the process would
 * look for them at each allocation. Limits stay. */
void rmm__control_forget(rmm_control_t *control);

#endif /* RMM_SEGMENT_READER_H */
