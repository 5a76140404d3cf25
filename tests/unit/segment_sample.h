/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A valid segment made by hand, independent of the writer: locations 0 and 32, slots 0 and
 * 2. Every figure is its offset in the record plus 1000 times the record's number; the
 * stripes are zero.
 */
#ifndef RMM_TESTS_UNIT_SEGMENT_SAMPLE_H
#define RMM_TESTS_UNIT_SEGMENT_SAMPLE_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "segment/segment_format.h"
#include "segment/segment_reader.h"

/* A control page of the sample's sizes, without requests. */
static inline void sample_control(rmm_control_page_t *page)
{
    memset(page, 0, sizeof(*page));
    page->magic = RMM_CONTROL_MAGIC;
    page->version_major = RMM_SEGMENT_MAJOR;
    page->version_minor = RMM_SEGMENT_MINOR;
    page->locations_offset = offsetof(rmm_control_page_t, locations);
    page->locations_stride = sizeof(rmm_control_location_t);
    page->locations_count = RMM_SEGMENT_LOCATIONS;
    page->slots_offset = offsetof(rmm_control_page_t, slots);
    page->slots_stride = sizeof(rmm_control_slot_t);
    page->slots_count = RMM_SEGMENT_SLOTS;
    page->shares_offset = offsetof(rmm_control_page_t, shares);
    page->shares_stride = sizeof(rmm_control_share_t);
    page->shares_count = RMM_SEGMENT_LOCATIONS;
    for (uint32_t i = 0; i < RMM_SEGMENT_LOCATIONS; i++) {
        page->shares[i].share_bytes = RMM_SEGMENT_NO_LIMIT;
    }
}

static inline void sample_schema(
    rmm_segment_layout_t *layout, uint16_t scope, const rmm_stat_desc_t *stats,
    uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        rmm_segment_schema_t *entry = &layout->schema[layout->header.schema_count++];
        const rmm_stripe_words_t *words = rmm__stripe_words(stats[i].name);

        strcpy(entry->name, stats[i].name);
        entry->scope = scope;
        entry->kind = stats[i].kind;
        entry->unit = stats[i].unit;
        entry->offset = stats[i].offset;
        entry->stripe_plus = words != NULL ? words->plus : RMM_STRIPE_NONE;
        entry->stripe_minus = words != NULL ? words->minus : RMM_STRIPE_NONE;
    }
}

static inline void
sample_figures(void *record, size_t from, size_t bytes, uint64_t number)
{
    for (uint64_t at = from; at + 8 <= bytes; at += 8) {
        uint64_t value = at + 1000 * number;

        memcpy((char *)record + at, &value, sizeof(value));
    }
}

static inline void sample_location(rmm_segment_layout_t *layout, uint32_t index)
{
    rmm_segment_location_t *location = &layout->locations[index];

    sample_figures(
        location, offsetof(rmm_segment_location_t, current_bytes), sizeof(*location),
        index);
    atomic_init(&location->used, 1);
    location->capacity_bytes = 1 << 20;
    strcpy(location->uuid, "GPU-00000000");
    strcpy(location->pci_bus_id, "0000:01:00.0");
    strcpy(location->name, "Sample");
}

static inline void sample_slot(rmm_segment_layout_t *layout, uint32_t index)
{
    rmm_segment_slot_t *slot = &layout->slots[index];

    sample_figures(
        slot, offsetof(rmm_segment_slot_t, current_bytes), sizeof(*slot), index);
    atomic_init(&slot->generation, 2);
    atomic_init(&slot->live, 1);
    slot->instance_id = index + 1;
    strcpy(slot->type, "pool");
    strcpy(slot->name, "a pool");
}

/* Three whole messages: "message 0" of trace to "message 2" of info. */
static inline void sample_log(rmm_segment_layout_t *layout)
{
    atomic_init(&layout->log.next, 3);
    atomic_init(&layout->log.level, 1 + 2);
    layout->log.floor = 1 + 1;
    for (uint64_t i = 0; i < 3; i++) {
        rmm_segment_log_record_t *record = &layout->log_records[i];

        atomic_init(&record->commit, 2 * i + 2);
        record->time_ns = 1000 + i;
        record->thread = 77;
        record->level = (uint16_t)i;
        strcpy(record->text, "message 0");
        record->text[8] += (char)i;
        record->length = 9;
    }
}

static inline void sample_make(rmm_segment_layout_t *layout)
{
    rmm_segment_header_t *header = &layout->header;

    memset(layout, 0, sizeof(*layout));
    header->magic = RMM_SEGMENT_MAGIC;
    header->version_major = RMM_SEGMENT_MAJOR;
    header->version_minor = RMM_SEGMENT_MINOR;
    header->header_bytes = sizeof(*header);
    header->segment_bytes = sizeof(*layout);
    header->pid = 4711;
    header->schema_offset = offsetof(rmm_segment_layout_t, schema);
    header->schema_stride = sizeof(rmm_segment_schema_t);
    header->locations_offset = offsetof(rmm_segment_layout_t, locations);
    header->locations_stride = sizeof(rmm_segment_location_t);
    header->locations_count = RMM_SEGMENT_LOCATIONS;
    header->slots_offset = offsetof(rmm_segment_layout_t, slots);
    header->slots_stride = sizeof(rmm_segment_slot_t);
    header->slots_count = RMM_SEGMENT_SLOTS;
    header->log_offset = offsetof(rmm_segment_layout_t, log_records);
    header->log_stride = sizeof(rmm_segment_log_record_t);
    header->log_count = RMM_LOG_RECORDS;
    header->stripes_stride = sizeof(rmm_segment_stripe_t);
    header->stripes_count = RMM_SEGMENT_STRIPES;
    header->location_stripes_offset = offsetof(rmm_segment_layout_t, location_stripes);
    header->slot_stripes_offset = offsetof(rmm_segment_layout_t, slot_stripes);
    atomic_init(&header->slots_high, 3);
    strcpy(header->driver, "cuda");
    strcpy(header->comm, "sample");
    sample_schema(
        layout, RMM_SCHEMA_LOCATION, rmm__location_stats, RMM_LOCATION_STAT_COUNT);
    sample_schema(layout, RMM_SCHEMA_SLOT, rmm__slot_stats, RMM_SLOT_STAT_COUNT);
    sample_location(layout, 0);
    sample_location(layout, 32);
    sample_slot(layout, 0);
    sample_slot(layout, 2);
    sample_log(layout);
    atomic_init(&header->ready, 1);
}

/* A memory file of these bytes. */
static inline int sample_file(const void *bytes, size_t size)
{
    int fd = memfd_create("segment", MFD_CLOEXEC);

    if (fd < 0 || pwrite(fd, bytes, size, 0) != (ssize_t)size) {
        abort(); /* the machine is at fault, not what is tested */
    }
    return fd;
}

#endif /* RMM_TESTS_UNIT_SEGMENT_SAMPLE_H */
