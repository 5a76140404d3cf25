/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sample of tests/unit/segment_sample.h without its empty records: a valid segment that
 * is small enough to be made for each input.
 */
#ifndef RMM_TESTS_FUZZ_SMALL_SEGMENT_H
#define RMM_TESTS_FUZZ_SMALL_SEGMENT_H

#include <stdlib.h>
#include <string.h>

#include "unit/segment_sample.h"

#define SMALL_SEGMENT_BYTES (80u * 1024u)

typedef struct image {
    _Alignas(8) unsigned char bytes[SMALL_SEGMENT_BYTES];
    size_t size;
} image_t;

static inline void image_append(image_t *image, const void *bytes, size_t size)
{
    if (image->size + size > sizeof(image->bytes)) {
        abort();
    }
    memcpy(image->bytes + image->size, bytes, size);
    image->size += size;
}

static inline void small_segment_place(rmm_segment_header_t *header, uint32_t log_count)
{
    header->schema_offset = sizeof(*header);
    header->locations_offset =
        header->schema_offset +
        (uint32_t)sizeof(rmm_segment_schema_t) * header->schema_count;
    header->locations_count = 2;
    header->slots_offset =
        header->locations_offset + 2 * (uint32_t)sizeof(rmm_segment_location_t);
    header->slots_count = 2;
    header->log_offset = header->slots_offset +
                         2 * (uint32_t)sizeof(rmm_segment_slot_t) +
                         (uint32_t)sizeof(rmm_segment_log_t);
    header->log_count = log_count;
    header->stripes_count = 2;
    header->location_stripes_offset =
        header->log_offset + log_count * (uint32_t)sizeof(rmm_segment_log_record_t);
    header->slot_stripes_offset =
        header->location_stripes_offset + 4 * (uint32_t)sizeof(rmm_segment_stripe_t);
    header->refusals_offset = header->slot_stripes_offset +
                              4 * (uint32_t)sizeof(rmm_segment_stripe_t) +
                              (uint32_t)sizeof(rmm_segment_refusals_t);
    header->refusals_stride = sizeof(rmm_segment_refusal_t);
    header->refusals_count = 2;
    header->segment_bytes = header->refusals_offset + 2 * sizeof(rmm_segment_refusal_t);
}

/* The sample's records 0 and last, `log_count` of its log, two stripes for each record. */
static inline void small_segment_make(image_t *image, uint32_t log_count)
{
    static rmm_segment_layout_t sample;
    const rmm_segment_header_t *header = &sample.header;

    sample_make(&sample);
    small_segment_place(&sample.header, log_count);
    atomic_store(&sample.refusals.next, 3);
    atomic_store(&sample.refusal_records[0].commit, 2 * 2 + 2);
    atomic_store(&sample.refusal_records[1].commit, 2 * 1 + 2);
    image->size = 0;
    image_append(image, header, sizeof(*header));
    image_append(image, sample.schema, sizeof(sample.schema[0]) * header->schema_count);
    image_append(image, &sample.locations[0], sizeof(sample.locations[0]));
    image_append(image, &sample.locations[32], sizeof(sample.locations[0]));
    image_append(image, &sample.slots[0], sizeof(sample.slots[0]));
    image_append(image, &sample.slots[2], sizeof(sample.slots[0]));
    image_append(image, &sample.log, sizeof(sample.log));
    image_append(image, sample.log_records, log_count * sizeof(sample.log_records[0]));
    image_append(image, sample.location_stripes, 4 * sizeof(rmm_segment_stripe_t));
    image_append(image, sample.slot_stripes, 4 * sizeof(rmm_segment_stripe_t));
    image_append(image, &sample.refusals, sizeof(sample.refusals));
    image_append(image, sample.refusal_records, 2 * sizeof(sample.refusal_records[0]));
    if (image->size != header->segment_bytes) {
        abort();
    }
}

#endif /* RMM_TESTS_FUZZ_SMALL_SEGMENT_H */
