/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of the whole ring between two looks at the commit words: a record whose word was
 * the same at both, and says "complete", was copied whole. Three preads, whatever the
 * number of messages; none if there is nothing new.
 */
#include "publish/segment_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "publish/text.h"

#define LATE_MESSAGES 16 /* so many later ones are begun: this one's writer is stuck */
#define TEXT_AT offsetof(rmm_segment_log_record_t, text)

typedef struct ring {
    const rmm_segment_header_t *header;
    unsigned char *records; /* log_count of log_stride bytes */
    unsigned char *again;   /* the same a moment later */
    uint64_t next;
} ring_t;

bool rmm_segment_has_log(const rmm_segment_t *segment)
{
    return segment->header.log_count != 0;
}

static bool read_head(const rmm_segment_t *segment, rmm_segment_log_t *log)
{
    return pread(
               segment->fd, log, sizeof(*log),
               (off_t)(segment->header.log_offset - sizeof(*log))) == sizeof(*log);
}

static uint64_t commit_of(const unsigned char *records, uint32_t stride, uint64_t index)
{
    uint64_t commit;

    memcpy(&commit, records + index * stride, sizeof(commit));
    return commit;
}

static void take_message(const ring_t *ring, uint64_t number, rmm_log_message_t *out)
{
    const uint32_t stride = ring->header->log_stride;
    const unsigned char *record =
        ring->records + number % ring->header->log_count * stride;
    rmm_segment_log_record_t head;

    memcpy(&head, record, TEXT_AT);
    out->number = number;
    out->time_ns = head.time_ns;
    out->thread = head.thread;
    out->level = head.level;
    memcpy(out->text, record + TEXT_AT, stride - TEXT_AT);
    rmm__text_clean(out->text, stride - TEXT_AT);
}

static void walk(
    const ring_t *ring, rmm_log_cursor_t *cursor, bool ended, rmm_log_message_fn fn,
    void *arg)
{
    const uint32_t count = ring->header->log_count;
    const uint32_t stride = ring->header->log_stride;
    rmm_log_message_t message;

    if (ring->next - cursor->next > count) {
        cursor->lost += ring->next - cursor->next - count;
        cursor->next = ring->next - count;
    }
    for (; cursor->next < ring->next; cursor->next++) {
        uint64_t number = cursor->next;
        uint64_t commit = commit_of(ring->records, stride, number % count);

        if (commit == 2 * number + 2 &&
            commit == commit_of(ring->again, stride, number % count)) {
            take_message(ring, number, &message);
            fn(&message, arg);
        } else if (
            !ended && commit < 2 * number + 2 && ring->next - number <= LATE_MESSAGES) {
            return;
        } else {
            cursor->lost++;
        }
    }
}

static int read_ring(const rmm_segment_t *segment, ring_t *ring)
{
    const rmm_segment_header_t *header = &segment->header;
    size_t bytes = (size_t)header->log_count * header->log_stride;
    off_t at = (off_t)header->log_offset;

    ring->records = malloc(2 * bytes);
    if (ring->records == NULL) {
        return -ENOMEM;
    }
    ring->again = ring->records + bytes;
    return pread(segment->fd, ring->records, bytes, at) == (ssize_t)bytes &&
                   pread(segment->fd, ring->again, bytes, at) == (ssize_t)bytes
               ? 0
               : -EPROTO;
}

int rmm_segment_read_log(
    const rmm_segment_t *segment, rmm_log_cursor_t *cursor, bool ended,
    rmm_log_message_fn fn, void *arg)
{
    ring_t ring = {.header = &segment->header};
    rmm_segment_log_t log;
    int error;

    if (!rmm_segment_has_log(segment) || !read_head(segment, &log)) {
        return -EPROTO;
    }
    ring.next = atomic_load_explicit(&log.next, memory_order_relaxed);
    if (ring.next <= cursor->next) { /* nothing new; or nonsense, which is no news */
        return 0;
    }
    error = read_ring(segment, &ring);
    if (error == 0) {
        walk(&ring, cursor, ended, fn, arg);
    }
    free(ring.records);
    return error;
}

bool rmm_segment_log_level(
    const rmm_segment_t *segment, uint32_t *level_out, uint32_t *floor_out)
{
    rmm_segment_log_t log;
    uint32_t level;

    if (!rmm_segment_has_log(segment) || !read_head(segment, &log)) {
        return false;
    }
    level = atomic_load_explicit(&log.level, memory_order_relaxed);
    if (level < 1 || level > 7 || log.floor < 1 || log.floor > 7) {
        return false;
    }
    *level_out = level - 1;
    *floor_out = log.floor - 1;
    return true;
}
