/* SPDX-License-Identifier: Apache-2.0 */
/* See segment_stripes.h. */
#include "segment/segment_stripes.h"

#include <string.h>

#define ABSENT UINT32_MAX

const rmm_segment_schema_t *
rmm__schema_find(const rmm_segment_t *segment, uint16_t scope, const char *name)
{
    for (uint32_t i = 0; i < segment->header.schema_count; i++) {
        if (segment->schema[i].scope == scope &&
            strcmp(segment->schema[i].name, name) == 0) {
            return &segment->schema[i];
        }
    }
    return NULL;
}

/* A file may lie: no sum wraps. */
static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - 1 - b ? UINT64_MAX - 1 : a + b;
}

static uint64_t stripe_word(
    const rmm_segment_t *segment, const rmm_stripe_row_t *row, uint32_t stripe,
    uint16_t word)
{
    size_t at = (size_t)segment->header.stripes_stride * stripe + word;
    uint64_t value;

    memcpy(&value, row->bytes + at, sizeof(value));
    return value;
}

static uint64_t
sum_of_words(const rmm_segment_t *segment, const rmm_stripe_row_t *row, uint16_t word)
{
    uint32_t count = word != RMM_STRIPE_NONE ? segment->header.stripes_count : 0;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t value = stripe_word(segment, row, i, word);

        sum = add_saturated(sum, value == UINT64_MAX ? value - 1 : value);
    }
    return sum;
}

/* Of what goes down, modulo 2^64: the parts of a figure may be below 0, and for a moment
 * their sum. */
static uint64_t not_negative(uint64_t figure)
{
    return (int64_t)figure > 0 ? figure : 0;
}

static uint64_t word_of(const rmm_record_t *record, const rmm_segment_schema_t *entry)
{
    uint64_t value;

    memcpy(&value, record->bytes + entry->offset, sizeof(value));
    return value;
}

/* A gauge that parts of writers add up to, of which one may be below 0: modulo 2^64. A sum below 0
 * is implausibly large, as what a hostile file has; UINT64_MAX stays unknown. */
static uint64_t gauge_of(
    const rmm_segment_t *segment, const rmm_segment_schema_t *entry, uint64_t own,
    const rmm_stripe_row_t *row)
{
    uint64_t sum = own;

    if (own == UINT64_MAX) {
        return own;
    }
    for (uint32_t i = 0; i < segment->header.stripes_count; i++) {
        sum += stripe_word(segment, row, i, entry->stripe_plus);
    }
    return sum;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The record's own word and those of the stripes: what is added of one reading, what is
 * subtracted of the other. Of what is only added and can fall, the smaller of both readings:
 * memory that changed its writer in between is not in it twice. */
static uint64_t figure_of(
    const rmm_segment_t *segment, const rmm_segment_schema_t *entry,
    const rmm_record_t *record, const rmm_stripe_row_t *plus,
    const rmm_stripe_row_t *minus)
{
    uint64_t own = word_of(record, entry);
    uint64_t added;

    if (entry->stripe_plus == RMM_STRIPE_NONE &&
        entry->stripe_minus == RMM_STRIPE_NONE) {
        return own;
    }
    if (entry->kind == RMM_KIND_GAUGE && entry->stripe_minus == RMM_STRIPE_NONE) {
        return smaller(
            gauge_of(segment, entry, own, plus), gauge_of(segment, entry, own, minus));
    }
    added = sum_of_words(segment, plus, entry->stripe_plus);
    if (entry->stripe_minus == RMM_STRIPE_NONE) {
        return add_saturated(own, added);
    }
    return not_negative(
        own + added - sum_of_words(segment, minus, entry->stripe_minus));
}

void rmm__stripes_add(
    const rmm_segment_t *segment, uint16_t scope, const rmm_stripe_pair_t *pair,
    rmm_record_t *record)
{
    bool is_location = scope == RMM_SCHEMA_LOCATION;
    uint32_t freed = is_location ? segment->location_freed : segment->slot_freed;
    uint32_t count =
        is_location ? segment->location_striped_count : segment->slot_striped_count;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t at =
            is_location ? segment->location_striped[i] : segment->slot_striped[i];
        const rmm_segment_schema_t *entry = &segment->schema[at];
        const rmm_stripe_row_t *plus = at == freed ? &pair->after : &pair->before;
        uint64_t value = figure_of(segment, entry, record, plus, &pair->after);

        memcpy(record->bytes + entry->offset, &value, sizeof(value));
    }
}

/* Compute the free bytes where allocations do not write them: no less is subtracted than was
 * live when the record was read, so the stripes' readings change places. Before
 * rmm__stripes_add(). */
void rmm__stripes_subtract_live(
    const rmm_segment_t *segment, const rmm_stripe_pair_t *pair, rmm_record_t *record)
{
    const rmm_segment_schema_t *rest, *current, *padding;
    uint64_t value;

    if ((record->slot.flags & RMM_SLOT_FREE_IS_REST) == 0 ||
        segment->slot_free == ABSENT || segment->slot_current == ABSENT ||
        segment->slot_padding == ABSENT) {
        return;
    }
    rest = &segment->schema[segment->slot_free];
    current = &segment->schema[segment->slot_current];
    padding = &segment->schema[segment->slot_padding];
    value = not_negative(
        word_of(record, rest) - word_of(record, current) -
        figure_of(segment, padding, record, &pair->after, &pair->before));
    memcpy(record->bytes + rest->offset, &value, sizeof(value));
}
