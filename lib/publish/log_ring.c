/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts messages of the debug log into the segment's ring; segment_format.h says how a
 * record is taken and given. No lock and no waiting: a message whose record is still
 * being written by a thread that it overtook by a whole round is dropped and counted.
 */
#include "publish/log_ring.h"

#include <stdatomic.h>
#include <string.h>

#include "publish/publisher.h"
#include "publish/text.h"

/* NULL: somebody still writes there, or has written a later one. */
static rmm_segment_log_record_t *
take_record(rmm_segment_layout_t *segment, uint64_t number)
{
    rmm_segment_log_record_t *record = &segment->log_records[number % RMM_LOG_RECORDS];
    uint64_t commit = atomic_load_explicit(&record->commit, memory_order_relaxed);

    if (commit % 2 != 0 || commit > 2 * number) {
        return NULL;
    }
    /* acquire: what follows stays behind the odd number */
    return atomic_compare_exchange_strong_explicit(
               &record->commit, &commit, 2 * number + 1, memory_order_acq_rel,
               memory_order_relaxed)
               ? record
               : NULL;
}

void rmm__log_ring_put(const rmm_log_record_t *message)
{
    rmm_segment_layout_t *segment = rmm__publisher.segment;
    rmm_segment_log_t *log = &segment->log;
    uint64_t number = atomic_fetch_add_explicit(&log->next, 1, memory_order_relaxed);
    rmm_segment_log_record_t *record = take_record(segment, number);

    if (record == NULL) {
        atomic_fetch_add_explicit(&log->lost, 1, memory_order_relaxed);
        return;
    }
    record->time_ns = message->time_ns;
    record->thread = message->thread;
    record->level = (uint16_t)message->level;
    rmm__text_copy(record->text, sizeof(record->text), message->message);
    record->length = (uint16_t)strlen(record->text);
    /* release: pairs with the reader's look at the word before its copy */
    atomic_store_explicit(&record->commit, 2 * number + 2, memory_order_release);
}
