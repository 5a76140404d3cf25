/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads all that a file offers, as the daemon would, and checks what the reader promises
 * of whatever it accepts. Used by the mutation test and by libFuzzer; a broken promise
 * aborts.
 */
#ifndef RMM_TESTS_FUZZ_EXERCISE_SEGMENT_H
#define RMM_TESTS_FUZZ_EXERCISE_SEGMENT_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "segment/segment_log.h"
#include "segment/segment_reader.h"
#include "segment/segment_refusals.h"

#define PROMISE(condition)                                                             \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(                                                                   \
                stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__,             \
                #condition);                                                           \
            abort();                                                                   \
        }                                                                              \
    } while (0)

static inline void exercise_text(const char *text, size_t bytes)
{
    PROMISE(strnlen(text, bytes) < bytes);
    for (; *text != '\0'; text++) {
        PROMISE((unsigned char)*text >= 0x20 && *text != 0x7f);
    }
}

static inline void exercise_schema(const rmm_segment_t *segment)
{
    const rmm_segment_header_t *header = &segment->header;

    PROMISE(header->schema_count <= RMM_SCHEMA_MAX);
    for (uint32_t i = 0; i < header->schema_count; i++) {
        const rmm_segment_schema_t *entry = &segment->schema[i];
        uint32_t stride = entry->scope == RMM_SCHEMA_LOCATION ? header->locations_stride
                                                              : header->slots_stride;

        exercise_text(entry->name, sizeof(entry->name));
        PROMISE(strcspn(entry->name, "/.\"\\{} \n") == strlen(entry->name));
        PROMISE(entry->offset + 8ull <= stride);
        PROMISE(entry->scope == RMM_SCHEMA_LOCATION || entry->scope == RMM_SCHEMA_SLOT);
        PROMISE(
            entry->stripe_plus == RMM_STRIPE_NONE ||
            entry->stripe_plus + 8u <= header->stripes_stride);
        PROMISE(
            entry->stripe_minus == RMM_STRIPE_NONE ||
            entry->stripe_minus + 8u <= header->stripes_stride);
        PROMISE(entry->kind >= RMM_KIND_GAUGE && entry->kind <= RMM_KIND_MARK);
        PROMISE(entry->unit == RMM_UNIT_BYTES || entry->unit == RMM_UNIT_COUNT);
    }
}

/* Every figure, by this version's list and by the segment's; returns a digest. */
static inline uint64_t exercise_figures(
    const rmm_segment_t *segment, const rmm_record_t *record, uint16_t scope)
{
    uint64_t digest = 0, value = 0;

    for (uint32_t i = 0; i < segment->header.schema_count; i++) {
        if (segment->schema[i].scope == scope) {
            digest += rmm__record_schema_value(record, &segment->schema[i]);
        }
    }
    for (int i = 0; scope == RMM_SCHEMA_LOCATION && i < RMM_LOCATION_STAT_COUNT; i++) {
        digest +=
            rmm__segment_location_stat(segment, record, (rmm_location_stat_t)i, &value);
    }
    for (int i = 0; scope == RMM_SCHEMA_SLOT && i < RMM_SLOT_STAT_COUNT; i++) {
        digest += rmm__segment_slot_stat(segment, record, (rmm_slot_stat_t)i, &value);
    }
    return digest + value;
}

static inline uint64_t exercise_records(const rmm_segment_t *segment)
{
    uint32_t locations = rmm__segment_location_count(segment);
    uint32_t slots = rmm__segment_slot_count(segment);
    rmm_record_t record;
    uint64_t digest = 0;
    bool torn;

    PROMISE(
        locations <= RMM_SEGMENT_MAX_BYTES / 64 && slots <= RMM_SEGMENT_MAX_BYTES / 64);
    for (uint32_t i = 0; i < locations; i++) {
        if (rmm__segment_read_location(segment, i, &record)) {
            exercise_text(record.location.uuid, sizeof(record.location.uuid));
            exercise_text(
                record.location.pci_bus_id, sizeof(record.location.pci_bus_id));
            exercise_text(record.location.name, sizeof(record.location.name));
            digest += exercise_figures(segment, &record, RMM_SCHEMA_LOCATION);
        }
    }
    for (uint32_t i = 0; i < slots; i++) {
        if (rmm__segment_read_slot(segment, i, &record, &torn)) {
            exercise_text(record.slot.type, sizeof(record.slot.type));
            exercise_text(record.slot.name, sizeof(record.slot.name));
            digest += exercise_figures(segment, &record, RMM_SCHEMA_SLOT);
        }
    }
    return digest;
}

static inline void exercise_batches(const rmm_segment_t *segment)
{
    static rmm_slot_batch_t batch;
    uint32_t slots = rmm__segment_slot_count(segment);
    uint32_t room = rmm__segment_batch_slots(segment);

    PROMISE(room >= 1);
    for (uint32_t first = 0; first < slots; first += room) {
        uint32_t count = slots - first < room ? slots - first : room, tries = 4;
        rmm_record_t record;
        bool torn;

        if (!rmm__segment_begin_batch(segment, first, count, &batch)) {
            continue;
        }
        rmm__segment_fill_batch(segment, &batch);
        for (uint32_t i = first; i < first + count; i++) {
            if (rmm__segment_batch_slot(segment, &batch, i, &record, &torn, &tries)) {
                exercise_text(record.slot.type, sizeof(record.slot.type));
                exercise_text(record.slot.name, sizeof(record.slot.name));
            }
        }
    }
}

static inline void exercise_message(const rmm_log_message_t *message, void *arg)
{
    uint64_t *count = arg;

    exercise_text(message->text, sizeof(message->text));
    (*count)++;
}

static inline void exercise_log(const rmm_segment_t *segment)
{
    for (int ended = 0; ended < 2; ended++) {
        rmm_ring_cursor_t cursor = {0};
        uint64_t count = 0;
        uint32_t level, least;
        int error = rmm__segment_read_log(
            segment, &cursor, ended != 0, exercise_message, &count);

        PROMISE(error == 0 || error == -EPROTO);
        PROMISE(count <= segment->header.log_count);
        PROMISE(count + cursor.lost >= count && cursor.next >= count);
        if (rmm__segment_log_level(segment, &level, &least)) {
            PROMISE(level <= 6 && least <= 6);
        }
    }
}

static inline void exercise_refusal(const rmm_refusal_t *refusal, void *arg)
{
    uint64_t *count = arg;

    exercise_text(refusal->type, sizeof(refusal->type));
    exercise_text(refusal->name, sizeof(refusal->name));
    (*count)++;
}

static inline void exercise_refusals(const rmm_segment_t *segment)
{
    rmm_ring_cursor_t cursor = {0};
    uint64_t count = 0;
    int error =
        rmm__segment_read_refusals(segment, &cursor, true, exercise_refusal, &count);

    PROMISE(error == 0 || error == -EPROTO);
    PROMISE(count <= segment->header.refusals_count);
}

/* fd stays the caller's. */
static inline rmm_segment_verdict_t exercise_segment(int fd)
{
    char reason[RMM_SEGMENT_REASON_BYTES];
    rmm_segment_t segment;
    rmm_segment_verdict_t verdict = rmm__segment_attach(&segment, fd, reason);
    volatile uint64_t digest;

    exercise_text(reason, sizeof(reason));
    PROMISE((verdict == RMM_SEGMENT_GOOD) == (reason[0] == '\0'));
    if (verdict == RMM_SEGMENT_GOOD) {
        exercise_text(segment.header.driver, sizeof(segment.header.driver));
        exercise_text(segment.header.comm, sizeof(segment.header.comm));
        exercise_text(segment.header.cmdline, sizeof(segment.header.cmdline));
        exercise_schema(&segment);
        digest = exercise_records(&segment);
        exercise_batches(&segment);
        exercise_log(&segment);
        exercise_refusals(&segment);
        (void)digest;
        (void)rmm__segment_is_live(&segment);
    }
    return verdict;
}

/* fd stays the caller's. Requests only change numbers inside the file. */
static inline int exercise_control(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    rmm_control_t control;
    rmm_control_location_t location;
    rmm_control_slot_t slot;
    int error = rmm__control_attach(&control, fd, geteuid());

    if (error != 0) {
        PROMISE(error < 0 && control.fd == -1);
        return error;
    }
    for (uint32_t i = 0; i < 300; i++) {
        PROMISE(
            (rmm__control_read_location(&control, i, &location) == 0) ==
            (i < control.locations_count));
        PROMISE(
            (rmm__control_reset_location_peak(&control, i) == 0) ==
            (i < control.locations_count));
        PROMISE(
            (rmm__control_reset_node_peak(&control, i) == 0) ==
            (i < control.locations_count));
        PROMISE(
            (rmm__control_read_slot(&control, i, &slot) == 0) ==
            (i < control.slots_count));
        PROMISE(
            (rmm__control_reset_slot_peak(&control, i) == 0) ==
            (i < control.slots_count));
    }
    PROMISE(lseek(fd, 0, SEEK_END) == size);
    return 0;
}

#endif /* RMM_TESTS_FUZZ_EXERCISE_SEGMENT_H */
