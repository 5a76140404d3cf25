/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader's arithmetic: a record and its stripes become figures. Bytes in, numbers out;
 * segment_reader.c reads, and has checked where everything is.
 *
 * A pair is the stripes' row as it was before the record was read, and afterwards. What is
 * added comes from the first, what is subtracted from the second: what goes down is the
 * difference of two words that only rise, so the answer is not above what was true in
 * between. freed_count comes from the second too: it is what live counts subtract. Sums of a
 * corrupt file are numbers like others, and do not wrap.
 */
#ifndef RMM_SEGMENT_STRIPES_H
#define RMM_SEGMENT_STRIPES_H

#include "segment/segment_reader.h"

typedef struct rmm_stripe_row {
    _Alignas(8) unsigned char bytes[RMM_SEGMENT_STRIPES_BYTES];
} rmm_stripe_row_t;

/* A row before the record is read, and the same one afterwards. */
typedef struct rmm_stripe_pair {
    rmm_stripe_row_t before, after;
} rmm_stripe_pair_t;

/* Of one record; 0: this segment has none. */
static inline uint64_t rmm__stripes_bytes(const rmm_segment_header_t *header)
{
    return (uint64_t)header->stripes_stride * header->stripes_count;
}

/* NULL: this segment does not have it. */
const rmm_segment_schema_t *
rmm__schema_find(const rmm_segment_t *segment, uint16_t scope, const char *name);

/* Where allocations do not write what is free. Before the next. */
void rmm__stripes_subtract_live(
    const rmm_segment_t *segment, const rmm_stripe_pair_t *pair, rmm_record_t *record);

/* To all figures of this scope, location or slot, that are striped. */
void rmm__stripes_add(
    const rmm_segment_t *segment, uint16_t scope, const rmm_stripe_pair_t *pair,
    rmm_record_t *record);

#endif /* RMM_SEGMENT_STRIPES_H */
