/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debug log of another process: its ring's records, checked and cleaned.
 */
#include "segment/segment_log.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "segment/clean_text.h"

#define TEXT_AT offsetof(rmm_segment_log_record_t, text)

typedef struct listener {
    uint32_t stride;
    rmm_log_message_fn fn;
    void *arg;
} listener_t;

bool rmm__segment_has_log(const rmm_segment_t *segment)
{
    return segment->header.log_count != 0;
}

static uint64_t head_at(const rmm_segment_t *segment)
{
    return segment->header.log_offset - sizeof(rmm_segment_log_t);
}

static void take_message(uint64_t number, const unsigned char *record, void *arg)
{
    const listener_t *listener = arg;
    rmm_segment_log_record_t head;
    rmm_log_message_t message;

    memcpy(&head, record, TEXT_AT);
    message.number = number;
    message.time_ns = head.time_ns;
    message.thread = head.thread;
    message.level = head.level;
    memcpy(message.text, record + TEXT_AT, listener->stride - TEXT_AT);
    rmm__text_clean(message.text, listener->stride - TEXT_AT);
    listener->fn(&message, listener->arg);
}

int rmm__segment_read_log(
    const rmm_segment_t *segment, rmm_ring_cursor_t *cursor, bool ended,
    rmm_log_message_fn fn, void *arg)
{
    const rmm_ring_t ring = {
        .fd = segment->fd,
        .stride = segment->header.log_stride,
        .count = segment->header.log_count,
        .records_at = segment->header.log_offset,
        .next_at = head_at(segment) + offsetof(rmm_segment_log_t, next)};
    listener_t listener = {ring.stride, fn, arg};

    return rmm__segment_has_log(segment)
               ? rmm__ring_read(&ring, cursor, ended, take_message, &listener)
               : -EPROTO;
}

bool rmm__segment_log_level(
    const rmm_segment_t *segment, uint32_t *level_out, uint32_t *floor_out)
{
    rmm_segment_log_t log;
    uint32_t level;

    if (!rmm__segment_has_log(segment) ||
        pread(segment->fd, &log, sizeof(log), (off_t)head_at(segment)) != sizeof(log)) {
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

const char *rmm__segment_log_level_name(uint32_t level)
{
    static const char *const names[] = {
        "trace", "debug", "info", "warn", "error", "critical", "off",
    };

    return level < sizeof(names) / sizeof(names[0]) ? names[level] : "unknown";
}
