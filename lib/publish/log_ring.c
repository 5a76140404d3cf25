/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts messages of the debug log into the segment's ring; ring.h says how a record is
 * taken and given. No lock and no waiting: a message whose record is still being written by
 * a thread that it overtook by a whole round is dropped and counted. So is one whose record
 * has no space in the file.
 */
#include "publish/log_ring.h"

#include <stdatomic.h>
#include <string.h>

#include "publish/publisher.h"
#include "segment/clean_text.h"
#include "segment/ring.h"

void rmm__log_ring_put(const rmm_log_record_t *message)
{
    rmm_segment_layout_t *segment = rmm__publisher.segment;
    rmm_segment_log_t *log = &segment->log;
    uint64_t number = atomic_fetch_add_explicit(&log->next, 1, memory_order_relaxed);
    rmm_segment_log_record_t *record = &segment->log_records[number % RMM_LOG_RECORDS];

    if (!rmm__segment_back(record, sizeof(*record)) ||
        !rmm__ring_take(&record->commit, number)) {
        atomic_fetch_add_explicit(&log->lost, 1, memory_order_relaxed);
        return;
    }
    record->time_ns = message->time_ns;
    record->thread = message->thread;
    record->level = (uint16_t)message->level;
    rmm__text_copy(record->text, sizeof(record->text), message->message);
    record->length = (uint16_t)strlen(record->text);
    rmm__ring_give(&record->commit, number);
}
