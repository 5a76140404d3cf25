/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader's arithmetic: a record and its stripes become figures. Bytes in, numbers out;
 * segment_reader.c reads, and has checked where everything is.
 *
 * A pair is the record's row of stripes as it was before the record was read, and as it was after.
 * Added words come from the first, subtracted words from the second. A figure that can fall is the
 * difference of two words that only rise, so the result never exceeds the true value at some
 * moment in between. freed_count comes from the second too, because live counts subtract it. The
 * sums of a corrupt file are wrong numbers, but they do not wrap around.
 */
#ifndef RMM_SEGMENT_STRIPES_H
#define RMM_SEGMENT_STRIPES_H

#include "segment/segment_reader.h"

typedef struct rmm_stripe_row {
    _Alignas(8) unsigned char bytes[RMM_SEGMENT_STRIPES_BYTES];
} rmm_stripe_row_t;

/* A row read before the record, and read again after it. */
typedef struct rmm_stripe_pair {
    rmm_stripe_row_t before, after;
} rmm_stripe_pair_t;

/* Bytes of the stripes of one record; 0: this segment has no stripes. */
static inline uint64_t rmm__stripes_bytes(const rmm_segment_header_t *header)
{
    return (uint64_t)header->stripes_stride * header->stripes_count;
}

/* NULL: this segment does not have it. */
const rmm_segment_schema_t *
rmm__schema_find(const rmm_segment_t *segment, uint16_t scope, const char *name);

/* For resources whose allocations do not update free_bytes (RMM_SLOT_FREE_IS_REST). To be called
 * before rmm__stripes_add(). */
void rmm__stripes_subtract_live(
    const rmm_segment_t *segment, const rmm_stripe_pair_t *pair, rmm_record_t *record);

/* Adds the stripes to all striped figures of this scope (location or slot). */
void rmm__stripes_add(
    const rmm_segment_t *segment, uint16_t scope, const rmm_stripe_pair_t *pair,
    rmm_record_t *record);

#endif /* RMM_SEGMENT_STRIPES_H */
