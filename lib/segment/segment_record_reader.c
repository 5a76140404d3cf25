/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the records of a segment that segment_reader.c has checked: locations and slots, each
 * with its stripes.
 *
 * A copy of a slot is consistent if the sequence number was the same before and after it was
 * read. Stripes are read on either side of the record. What is added is taken from the first
 * reading, what is subtracted from the second: a sum is not above what was true in between.
 *
 * Cost: a location is three preads, a slot five, and a batch of up to 16 slots four. Which resource
 * a slot has, without its figures, is two.
 */
#include "segment/segment_reader.h"

#include <sched.h>
#include <string.h>
#include <sys/stat.h>

#include "segment/clean_text.h"
#include "segment/segment_side.h"
#include "segment/segment_stripes.h"

#define SLOT_TRIES 16
#define ABSENT UINT32_MAX

/* The words of a slot that say whether a copy is consistent. */
typedef struct slot_head {
    uint32_t generation, live, sequence, peak_reset_seen;
} slot_head_t;

static_assert(offsetof(rmm_segment_slot_t, generation) == 0, "slot_head_t");
static_assert(offsetof(rmm_segment_slot_t, live) == 4, "slot_head_t");
static_assert(offsetof(rmm_segment_slot_t, sequence) == 8, "slot_head_t");

/* --- records ----------------------------------------------------------------------- */

uint32_t rmm__segment_location_count(const rmm_segment_t *segment)
{
    return segment->header.locations_count;
}

bool rmm__segment_locations_opened(const rmm_segment_t *segment, uint32_t *number_out)
{
    return rmm__read_at(
        segment->fd, number_out, sizeof(*number_out),
        offsetof(rmm_segment_header_t, locations_opened));
}

bool rmm__segment_is_whole(const rmm_segment_t *segment)
{
    struct stat status;

    return fstat(segment->fd, &status) == 0 && status.st_size >= 0 &&
           (uint64_t)status.st_size >= segment->bytes;
}

uint32_t rmm__segment_slot_count(const rmm_segment_t *segment)
{
    uint32_t high;

    if (!rmm__read_at(
            segment->fd, &high, sizeof(high),
            offsetof(rmm_segment_header_t, slots_high))) {
        return 0;
    }
    return high < segment->header.slots_count ? high : segment->header.slots_count;
}

/* One pread. What a shorter, other version's record lacks of ours reads as zeros. */
static bool
read_record(const rmm_segment_t *segment, uint64_t at, uint32_t stride, void *record)
{
    if (stride < RMM_SEGMENT_RECORD_BYTES) {
        memset((char *)record + stride, 0, RMM_SEGMENT_RECORD_BYTES - stride);
    }
    return rmm__read_at(segment->fd, record, stride, at);
}

static bool
read_stripes(const rmm_segment_t *segment, uint64_t at, rmm_stripe_row_t *row)
{
    uint64_t bytes = rmm__stripes_bytes(&segment->header);

    return bytes == 0 || rmm__read_at(segment->fd, row->bytes, bytes, at);
}

/* Where a record and its stripes begin. */
typedef struct whereabouts {
    uint64_t record, stripes;
    uint32_t stride; /* of the record */
} whereabouts_t;

static bool read_with_stripes(
    const rmm_segment_t *segment, const whereabouts_t *where, rmm_record_t *record,
    rmm_stripe_pair_t *pair)
{
    return read_stripes(segment, where->stripes, &pair->before) &&
           read_record(segment, where->record, where->stride, record->bytes) &&
           read_stripes(segment, where->stripes, &pair->after);
}

bool rmm__segment_read_location(
    const rmm_segment_t *segment, uint32_t index, rmm_record_t *record)
{
    const rmm_segment_header_t *header = &segment->header;
    rmm_segment_location_t *location = &record->location;
    const whereabouts_t where = {
        .record = header->locations_offset + (uint64_t)header->locations_stride * index,
        .stride = header->locations_stride,
        .stripes =
            header->location_stripes_offset + rmm__stripes_bytes(header) * index};
    rmm_stripe_pair_t pair;

    if (index >= header->locations_count ||
        !read_with_stripes(segment, &where, record, &pair)) {
        return false;
    }
    rmm__stripes_add(segment, RMM_SCHEMA_LOCATION, &pair, record);
    rmm__text_clean(location->uuid, sizeof(location->uuid));
    rmm__text_clean(location->pci_bus_id, sizeof(location->pci_bus_id));
    rmm__text_clean(location->name, sizeof(location->name));
    return atomic_load_explicit(&location->used, memory_order_relaxed) != 0;
}

typedef enum slot_look { SLOT_EMPTY, SLOT_MOVING, SLOT_TORN, SLOT_STILL } slot_look_t;

/* Judges a copy that was made between two looks at the head. */
static slot_look_t compare_heads(const slot_head_t *before, const slot_head_t *after)
{
    if (before->generation != after->generation || before->generation % 2 != 0) {
        return SLOT_MOVING;
    }
    if (before->live != 1) {
        return SLOT_EMPTY;
    }
    if (before->sequence != after->sequence || before->sequence % 2 != 0) {
        return SLOT_TORN;
    }
    return SLOT_STILL;
}

static slot_look_t look_at_slot(
    const rmm_segment_t *segment, const whereabouts_t *where, rmm_record_t *record,
    rmm_stripe_pair_t *pair, uint32_t *tries_left)
{
    const uint64_t at = where->record;
    slot_head_t before, after;
    slot_look_t look = SLOT_MOVING;

    if (!rmm__read_at(segment->fd, &before, sizeof(before), at)) {
        return SLOT_EMPTY;
    }
    for (int i = 0; i < SLOT_TRIES; i++) {
        look = compare_heads(&before, &before);
        if (look == SLOT_EMPTY || (look == SLOT_MOVING && *tries_left == 0)) {
            return look;
        }
        if (!read_with_stripes(segment, where, record, pair) ||
            !rmm__read_at(segment->fd, &after, sizeof(after), at)) {
            return SLOT_EMPTY;
        }
        look = compare_heads(&before, &after);
        if (look == SLOT_STILL || look == SLOT_EMPTY || *tries_left == 0) {
            return look;
        }
        --*tries_left;
        if (after.generation % 2 != 0 || after.sequence % 2 != 0) {
            sched_yield(); /* the writer may have been preempted in the middle */
        }
        before = after;
    }
    return look;
}

bool rmm__segment_read_slot(
    const rmm_segment_t *segment, uint32_t index, rmm_record_t *record, bool *torn_out)
{
    uint32_t tries_left = SLOT_TRIES;

    return rmm__segment_read_slot_within(segment, index, record, torn_out, &tries_left);
}

static whereabouts_t slot_at(const rmm_segment_header_t *header, uint32_t index)
{
    return (whereabouts_t){
        .record = header->slots_offset + (uint64_t)header->slots_stride * index,
        .stride = header->slots_stride,
        .stripes = header->slot_stripes_offset + rmm__stripes_bytes(header) * index};
}

static void finish_slot(
    const rmm_segment_t *segment, const rmm_stripe_pair_t *pair, rmm_record_t *record)
{
    rmm_segment_slot_t *slot = &record->slot;

    rmm__stripes_subtract_live(segment, pair, record);
    rmm__stripes_add(segment, RMM_SCHEMA_SLOT, pair, record);
    rmm__text_clean(slot->type, sizeof(slot->type));
    rmm__text_clean(slot->name, sizeof(slot->name));
}

bool rmm__segment_read_slot_within(
    const rmm_segment_t *segment, uint32_t index, rmm_record_t *record, bool *torn_out,
    uint32_t *tries_left)
{
    const whereabouts_t where = slot_at(&segment->header, index);
    rmm_stripe_pair_t pair;
    slot_look_t look;

    if (index >= segment->header.slots_count) {
        return false;
    }
    look = look_at_slot(segment, &where, record, &pair, tries_left);
    if (look == SLOT_EMPTY || look == SLOT_MOVING) {
        return false;
    }
    finish_slot(segment, &pair, record);
    if (torn_out != NULL) {
        *torn_out = look == SLOT_TORN;
    }
    return true;
}

/* The part of the record before its figures, and the words that guard it once more. */
bool rmm__segment_read_slot_identity(
    const rmm_segment_t *segment, uint32_t index, rmm_record_t *record)
{
    const rmm_segment_header_t *header = &segment->header;
    const size_t identity = offsetof(rmm_segment_slot_t, figures);
    const size_t bytes =
        header->slots_stride < identity ? header->slots_stride : identity;
    slot_head_t before, after;
    slot_look_t look = SLOT_MOVING;

    if (index >= header->slots_count) {
        return false;
    }
    for (int i = 0; look == SLOT_MOVING && i < SLOT_TRIES; i++) {
        const uint64_t at = slot_at(header, index).record;

        memset(record->bytes, 0, sizeof(record->bytes));
        if (!rmm__read_at(segment->fd, record->bytes, bytes, at) ||
            !rmm__read_at(segment->fd, &after, sizeof(after), at)) {
            return false;
        }
        memcpy(&before, record->bytes, sizeof(before));
        look = compare_heads(&before, &after);
    }
    rmm__text_clean(record->slot.type, sizeof(record->slot.type));
    rmm__text_clean(record->slot.name, sizeof(record->slot.name));
    return look == SLOT_STILL || look == SLOT_TORN;
}

/* --- many slots --------------------------------------------------------------------- */

uint32_t rmm__segment_batch_slots(const rmm_segment_t *segment)
{
    const rmm_segment_header_t *header = &segment->header;
    uint64_t row = rmm__stripes_bytes(header);
    uint64_t bytes = row > header->slots_stride ? row : header->slots_stride;

    return (uint32_t)(RMM_SLOT_BATCH_BYTES / bytes);
}

bool rmm__segment_begin_batch(
    const rmm_segment_t *segment, uint32_t first, uint32_t count,
    rmm_slot_batch_t *batch)
{
    const rmm_segment_header_t *header = &segment->header;
    uint64_t bytes = (uint64_t)header->slots_stride * count;

    batch->first = first;
    batch->count = count;
    batch->is_filled = false;
    return count <= rmm__segment_batch_slots(segment) && first < header->slots_count &&
           count <= header->slots_count - first &&
           rmm__read_at(
               segment->fd, batch->before, bytes, slot_at(header, first).record);
}

void rmm__segment_fill_batch(const rmm_segment_t *segment, rmm_slot_batch_t *batch)
{
    const rmm_segment_header_t *header = &segment->header;
    const whereabouts_t where = slot_at(header, batch->first);
    uint64_t bytes = (uint64_t)header->slots_stride * batch->count;
    uint64_t stripes = rmm__stripes_bytes(header) * batch->count;
    int fd = segment->fd;

    batch->is_filled =
        rmm__read_at(fd, batch->stripes_before, stripes, where.stripes) &&
        rmm__read_at(fd, batch->stripes_after, stripes, where.stripes) &&
        rmm__read_at(fd, batch->after, bytes, where.record);
}

/* True if the batch has a consistent copy of this slot, which is copied out: its record was the
 * same before and after its stripes were read. */
static bool copy_from_batch(
    const rmm_segment_t *segment, const rmm_slot_batch_t *batch, uint32_t index,
    rmm_record_t *record, rmm_stripe_pair_t *pair)
{
    size_t stride = segment->header.slots_stride, at = stride * (index - batch->first);
    size_t row = rmm__stripes_bytes(&segment->header);
    size_t row_at = row * (index - batch->first);
    slot_head_t head;

    memcpy(&head, batch->before + at, sizeof(head));
    if (compare_heads(&head, &head) != SLOT_STILL ||
        memcmp(batch->before + at, batch->after + at, stride) != 0) {
        return false;
    }
    memset(record->bytes, 0, sizeof(record->bytes));
    memcpy(record->bytes, batch->before + at, stride);
    memcpy(pair->before.bytes, batch->stripes_before + row_at, row);
    memcpy(pair->after.bytes, batch->stripes_after + row_at, row);
    return true;
}

bool rmm__segment_batch_slot(
    const rmm_segment_t *segment, const rmm_slot_batch_t *batch, uint32_t index,
    rmm_record_t *record, bool *torn_out, uint32_t *tries_left)
{
    rmm_stripe_pair_t pair;

    if (batch == NULL || !batch->is_filled || index - batch->first >= batch->count ||
        !copy_from_batch(segment, batch, index, record, &pair)) {
        return rmm__segment_read_slot_within(
            segment, index, record, torn_out, tries_left);
    }
    finish_slot(segment, &pair, record);
    if (torn_out != NULL) {
        *torn_out = false;
    }
    return true;
}

/* --- identity ----------------------------------------------------------------------- */

const rmm_segment_location_t *rmm__record_location(const rmm_record_t *record)
{
    return &record->location;
}

const rmm_segment_slot_t *rmm__record_slot(const rmm_record_t *record)
{
    return &record->slot;
}

/* --- figures ----------------------------------------------------------------------- */

static bool figure_at(const rmm_record_t *record, uint32_t offset, uint64_t *value_out)
{
    if (offset == ABSENT) {
        return false;
    }
    memcpy(value_out, record->bytes + offset, sizeof(*value_out));
    return true;
}

bool rmm__segment_location_stat(
    const rmm_segment_t *segment, const rmm_record_t *record, rmm_location_stat_t stat,
    uint64_t *value_out)
{
    return figure_at(record, segment->location_offset[stat], value_out);
}

bool rmm__segment_slot_stat(
    const rmm_segment_t *segment, const rmm_record_t *record, rmm_slot_stat_t stat,
    uint64_t *value_out)
{
    return figure_at(record, segment->slot_offset[stat], value_out);
}

uint64_t
rmm__record_schema_value(const rmm_record_t *record, const rmm_segment_schema_t *entry)
{
    uint64_t value = 0;

    (void)figure_at(record, entry->offset, &value);
    return value;
}
