/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The refused allocations of another process: its ring's records, checked and cleaned.
 */
#include "segment/segment_refusals.h"

#include <errno.h>
#include <string.h>

#include "segment/clean_text.h"

typedef struct listener {
    rmm_refusal_fn fn;
    void *arg;
} listener_t;

static void take(uint64_t number, const unsigned char *bytes, void *arg)
{
    const listener_t *listener = arg;
    rmm_segment_refusal_t record;
    rmm_refusal_t refusal;

    memcpy(&record, bytes, sizeof(record)); /* the reader has checked the stride */
    refusal = (rmm_refusal_t){
        .number = number,
        .time_ns = record.time_ns,
        .bytes = record.bytes,
        .device_free_bytes = record.device_free_bytes,
        .current_bytes = record.current_bytes,
        .reserved_bytes = record.reserved_bytes,
        .location = record.location,
        .instance_id = record.instance_id,
        .limit_bytes = record.limit_bytes,
        .limit_of = record.limit_of};
    memcpy(refusal.type, record.type, sizeof(refusal.type));
    memcpy(refusal.name, record.name, sizeof(refusal.name));
    rmm__text_clean(refusal.type, sizeof(refusal.type));
    rmm__text_clean(refusal.name, sizeof(refusal.name));
    listener->fn(&refusal, listener->arg);
}

int rmm__segment_read_refusals(
    const rmm_segment_t *segment, rmm_ring_cursor_t *cursor, bool ended,
    rmm_refusal_fn fn, void *arg)
{
    const rmm_segment_header_t *header = &segment->header;
    const rmm_ring_t ring = {
        .fd = segment->fd,
        .stride = header->refusals_stride,
        .count = header->refusals_count,
        .records_at = header->refusals_offset,
        .next_at = header->refusals_offset - sizeof(rmm_segment_refusals_t) +
                   offsetof(rmm_segment_refusals_t, next)};
    listener_t listener = {fn, arg};

    return header->refusals_count != 0
               ? rmm__ring_read(&ring, cursor, ended, take, &listener)
               : -EPROTO;
}
