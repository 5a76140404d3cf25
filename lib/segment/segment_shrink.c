/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces the segment of a process that has ended by a file of a few KiB under the same name.
 * The copy leaves out: stripes, which are added to their records; slots without a resource;
 * records of the log without a message, and the unused end of short messages; the control page,
 * after its requests have been carried out. The copy is a complete segment, so readers need no
 * code for it.
 *
 * A reader never sees half a file: it has either the old file or the new one open, and both say
 * the same. A process that is killed during this leaves a temporary file, which a sweep removes,
 * or a control page, which is removed together with the segment. Two processes that do this at the
 * same time write the same.
 *
 * segment_reader.h checks everything that is read here. The copy is at most RMM_SEGMENT_MAX_BYTES
 * long, which must be checked: sections of a hostile file may overlap, and its copy would be
 * larger than the file.
 *
 * Cost: about 100 preads, 0.1 ms.
 */
#include "segment/segment_shrink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "segment/segment_log.h"
#include "segment/segment_reader.h"
#include "segment/segment_stripes.h"
#include "segment/temporary_file.h"
#include "segment/zeros.h"

#define PAGE 4096u

typedef struct image {
    const rmm_segment_t *segment;
    rmm_control_t control;
    bool has_control;
    unsigned char *bytes; /* [RMM_SEGMENT_MAX_BYTES], zeros */
    size_t used;
    rmm_segment_header_t *header; /* its first bytes */
} image_t;

/* Offset of the next `bytes`, which are aligned to 8; 0: there is no room. */
static uint32_t take(image_t *image, size_t bytes)
{
    size_t at = image->used;

    if (bytes > RMM_SEGMENT_MAX_BYTES - at) {
        return 0;
    }
    image->used = at + (bytes + 7) / 8 * 8;
    return (uint32_t)at;
}

/* --- figures ------------------------------------------------------------------------ */

typedef struct figures {
    const rmm_segment_t *segment;
    uint16_t scope;
    rmm_record_t *record;
} figures_t;

/* NULL: the segment does not have it. */
static unsigned char *find(const figures_t *figures, const char *name)
{
    const rmm_segment_schema_t *entry =
        rmm__schema_find(figures->segment, figures->scope, name);

    return entry != NULL ? figures->record->bytes + entry->offset : NULL;
}

static uint64_t value_of(const figures_t *figures, const char *name)
{
    const unsigned char *word = find(figures, name);
    uint64_t value = 0;

    if (word != NULL) {
        memcpy(&value, word, sizeof(value));
    }
    return value;
}

static void set(const figures_t *figures, const char *name, uint64_t value)
{
    unsigned char *word = find(figures, name);

    if (word != NULL) {
        memcpy(word, &value, sizeof(value));
    }
}

/* The process ended before it obeyed a reset: sets the marks to the current values. */
static void reset(const figures_t *figures, const char *bytes, const char *count)
{
    set(figures, bytes, value_of(figures, "current_bytes"));
    set(figures, count,
        rmm_live_count(
            value_of(figures, "total_count"), value_of(figures, "freed_count")));
}

/* --- sections ----------------------------------------------------------------------- */

/* The schema names no words of stripes, because the records contain them now. */
static bool put_schema(image_t *image)
{
    const rmm_segment_header_t *from = &image->segment->header;
    uint32_t at = take(image, from->schema_count * sizeof(rmm_segment_schema_t));

    if (at == 0) {
        return false;
    }
    for (uint32_t i = 0; i < from->schema_count; i++) {
        rmm_segment_schema_t entry = image->segment->schema[i];

        entry.stripe_plus = entry.stripe_minus = RMM_STRIPE_NONE;
        memcpy(image->bytes + at + i * sizeof(entry), &entry, sizeof(entry));
    }
    image->header->schema_offset = at;
    image->header->schema_stride = sizeof(rmm_segment_schema_t);
    return true;
}

static void settle_location(image_t *image, uint32_t index, rmm_record_t *record)
{
    const figures_t figures = {image->segment, RMM_SCHEMA_LOCATION, record};
    rmm_control_location_t request;

    if (!image->has_control ||
        rmm__control_read_location(&image->control, index, &request) != 0) {
        return;
    }
    if (request.peak_reset != record->location.peak_reset_seen) {
        reset(&figures, "peak_bytes", "peak_count");
    }
    if (request.node_peak_reset != record->location.node_peak_reset_seen) {
        reset(&figures, "node_peak_bytes", "node_peak_count");
    }
}

/* All up to the last one in use, because the index identifies a location. */
static bool put_locations(image_t *image)
{
    const uint32_t stride = image->segment->header.locations_stride;
    uint32_t at = take(image, 0), count = 0;

    for (uint32_t i = 0; i < image->segment->header.locations_count; i++) {
        rmm_record_t record;

        if (!rmm__segment_read_location(image->segment, i, &record)) {
            continue;
        }
        if (take(image, (size_t)stride * (i + 1 - count)) == 0) {
            return false;
        }
        count = i + 1;
        settle_location(image, i, &record);
        memcpy(image->bytes + at + (size_t)stride * i, record.bytes, stride);
    }
    image->header->locations_offset = at;
    image->header->locations_count = count;
    return true;
}

/* The reader has subtracted what is live from a rest. */
static void settle_slot(image_t *image, uint32_t index, rmm_record_t *record)
{
    const figures_t figures = {image->segment, RMM_SCHEMA_SLOT, record};
    rmm_control_slot_t request;

    atomic_fetch_and_explicit(
        &record->slot.flags, ~RMM_SLOT_FREE_IS_REST, memory_order_relaxed);
    if (image->has_control &&
        rmm__control_read_slot(&image->control, index, &request) == 0 &&
        request.peak_reset != record->slot.peak_reset_seen) {
        reset(&figures, "peak_bytes", "peak_count");
    }
}

/* Only slots with a resource: readers identify it by its id, not by the slot's index. */
static bool put_slots(image_t *image)
{
    const uint32_t stride = image->segment->header.slots_stride;
    const uint32_t slots = rmm__segment_slot_count(image->segment);
    uint32_t at = take(image, 0), count = 0;

    for (uint32_t i = 0; i < slots; i++) {
        rmm_record_t record;

        if (!rmm__segment_read_slot(image->segment, i, &record, NULL)) {
            continue;
        }
        if (take(image, stride) == 0) {
            return false;
        }
        settle_slot(image, i, &record);
        memcpy(image->bytes + at + (size_t)stride * count, record.bytes, stride);
        count++;
    }
    image->header->slots_offset = at;
    image->header->slots_count = count;
    atomic_store_explicit(&image->header->slots_high, count, memory_order_relaxed);
    return true;
}

/* --- the log ------------------------------------------------------------------------ */

typedef struct messages {
    image_t *image;
    uint32_t at, stride, count;
    uint64_t next; /* messages that came later are left out */
    size_t longest;
} messages_t;

static void measure_message(const rmm_log_message_t *message, void *arg)
{
    messages_t *messages = arg;
    size_t length = strlen(message->text);

    messages->longest = length > messages->longest ? length : messages->longest;
}

static void put_message(const rmm_log_message_t *message, void *arg)
{
    const messages_t *messages = arg;
    rmm_segment_log_record_t head = {
        .commit = 2 * message->number + 2,
        .time_ns = message->time_ns,
        .thread = message->thread,
        .level = (uint16_t)message->level};
    unsigned char *record =
        messages->image->bytes + messages->at +
        (size_t)messages->stride * (message->number % messages->count);
    size_t room = messages->stride - offsetof(rmm_segment_log_record_t, text);
    size_t length = strnlen(message->text, room - 1);

    if (message->number >= messages->next) {
        return;
    }
    head.length = (uint16_t)length;
    memcpy(record, &head, offsetof(rmm_segment_log_record_t, text));
    memcpy(record + offsetof(rmm_segment_log_record_t, text), message->text, length);
}

/* The head stands before the records; its level is the one that was in force. */
static bool put_log_head(image_t *image, uint64_t next)
{
    const uint64_t from = image->segment->header.log_offset - sizeof(rmm_segment_log_t);
    rmm_segment_log_t log;
    uint32_t at = take(image, sizeof(log)), level;

    if (at == 0 || pread(image->segment->fd, &log, sizeof(log), (off_t)from) !=
                       (ssize_t)sizeof(log)) {
        return false;
    }
    atomic_store_explicit(&log.next, next, memory_order_relaxed);
    if (image->has_control && rmm__control_log_level(&image->control, &level)) {
        atomic_store_explicit(&log.level, 1 + level, memory_order_relaxed);
    }
    memcpy(image->bytes + at, &log, sizeof(log));
    return true;
}

static uint32_t stride_for(size_t longest)
{
    size_t bytes = offsetof(rmm_segment_log_record_t, text) + longest + 1;

    return (uint32_t)((bytes + 7) / 8 * 8);
}

/* A ring of as many records as there are messages, each as long as the longest. */
static bool put_log(image_t *image)
{
    const rmm_segment_header_t *from = &image->segment->header;
    messages_t messages = {.image = image};
    rmm_ring_cursor_t cursor = {0}, again = {0};

    image->header->log_count = 0;
    if (!rmm__segment_has_log(image->segment)) {
        return true;
    }
    if (rmm__segment_read_log(
            image->segment, &cursor, true, measure_message, &messages) != 0 ||
        !put_log_head(image, cursor.next)) {
        return false;
    }
    messages.next = cursor.next;
    messages.count =
        cursor.next < from->log_count ? (uint32_t)cursor.next : from->log_count;
    messages.count = messages.count != 0 ? messages.count : 1; /* 0: no log */
    messages.stride = stride_for(messages.longest);
    messages.stride =
        messages.stride < from->log_stride ? messages.stride : from->log_stride;
    messages.at = take(image, (size_t)messages.stride * messages.count);
    image->header->log_offset = messages.at;
    image->header->log_stride = messages.stride;
    image->header->log_count = messages.count;
    return messages.at != 0 &&
           rmm__segment_read_log(
               image->segment, &again, true, put_message, &messages) == 0;
}

/* --- refusals ----------------------------------------------------------------------- */

/* The ring as it is; none if nothing was refused. */
static bool put_refusals(image_t *image)
{
    const rmm_segment_header_t *from = &image->segment->header;
    const size_t head_bytes = sizeof(rmm_segment_refusals_t);
    size_t bytes = head_bytes + (size_t)from->refusals_stride * from->refusals_count;
    rmm_segment_refusals_t head;
    off_t begin = (off_t)(from->refusals_offset - head_bytes);
    uint32_t at;

    image->header->refusals_count = 0;
    if (from->refusals_count == 0 ||
        pread(image->segment->fd, &head, head_bytes, begin) != (ssize_t)head_bytes ||
        atomic_load_explicit(&head.next, memory_order_relaxed) == 0) {
        return true;
    }
    at = take(image, bytes);
    if (at == 0 ||
        pread(image->segment->fd, image->bytes + at, bytes, begin) != (ssize_t)bytes) {
        return false;
    }
    image->header->refusals_offset = at + (uint32_t)head_bytes;
    image->header->refusals_count = from->refusals_count;
    return true;
}

/* --- the file ----------------------------------------------------------------------- */

static bool fill(image_t *image)
{
    rmm_segment_header_t *header = (rmm_segment_header_t *)image->bytes;

    image->header = header;
    image->used = sizeof(*header);
    memcpy(header, &image->segment->header, sizeof(*header));
    header->header_bytes = sizeof(*header);
    header->version_minor = RMM_SEGMENT_MINOR;
    header->stripes_stride = header->stripes_count = 0;
    header->location_stripes_offset = header->slot_stripes_offset = 0;
    if (!put_schema(image) || !put_locations(image) || !put_slots(image) ||
        !put_log(image) || !put_refusals(image)) {
        return false;
    }
    header->segment_bytes = image->used;
    return true;
}

/* Pages of zeros stay holes. */
static int write_image(const image_t *image, int fd)
{
    if (!rmm__file_size_is_allowed(image->used)) {
        return -EFBIG;
    }
    if (ftruncate(fd, (off_t)image->used) != 0) {
        return -errno;
    }
    for (size_t at = 0; at < image->used; at += PAGE) {
        size_t bytes = image->used - at < PAGE ? image->used - at : PAGE;
        ssize_t put = 0;

        if (!rmm__is_zero(image->bytes + at, bytes)) {
            put = pwrite(fd, image->bytes + at, bytes, (off_t)at);
        }
        if (put != 0 && put != (ssize_t)bytes) {
            return put < 0 ? -errno : -ENOSPC;
        }
    }
    return 0;
}

/* Gives the new file the owner of the old one, and the mode that marks it as ended. */
static int take_owner(int fd, const struct stat *old)
{
    if ((old->st_uid != geteuid() && fchown(fd, old->st_uid, old->st_gid) != 0) ||
        fchmod(fd, S_IRUSR) != 0) {
        return -errno;
    }
    return 0;
}

static int replace(const image_t *image, int dirfd, const struct stat *old)
{
    char temporary[RMM_TEMPORARY_NAME_BYTES];
    int fd = rmm__temporary_file_open(dirfd, old->st_uid, temporary);
    int error;

    if (fd < 0) {
        return fd;
    }
    error = write_image(image, fd);
    if (error == 0) {
        error = take_owner(fd, old);
    }
    if (error == 0 && renameat(dirfd, temporary, dirfd, image->segment->name) != 0) {
        error = -errno;
    }
    if (error != 0) {
        (void)unlinkat(dirfd, temporary, 0);
    }
    close(fd);
    return error;
}

static void remove_control(int dirfd, const char *name)
{
    char control[RMM_SEGMENT_NAME_BYTES + sizeof(".control")];

    snprintf(control, sizeof(control), "%s.control", name);
    (void)unlinkat(dirfd, control, 0);
}

static int shrink(const rmm_segment_t *segment, int dirfd)
{
    image_t image = {.segment = segment};
    struct stat old;
    int error;

    if (fstat(segment->fd, &old) != 0) {
        return -errno;
    }
    if (rmm__segment_is_marked(&old)) {
        return 0;
    }
    if (segment->header.version_minor > RMM_SEGMENT_MINOR) {
        return -EPROTO; /* it may have sections that this code does not know */
    }
    image.bytes = calloc(1, RMM_SEGMENT_MAX_BYTES);
    if (image.bytes == NULL) {
        return -ENOMEM;
    }
    image.has_control = rmm__control_open(&image.control, dirfd, segment) == 0;
    error = fill(&image) ? replace(&image, dirfd, &old) : -EPROTO;
    if (error == 0) {
        remove_control(dirfd, segment->name);
    }
    if (image.has_control) {
        rmm__control_close(&image.control);
    }
    free(image.bytes);
    return error;
}

int rmm__segment_shrink(int dirfd, const char *name)
{
    char reason[RMM_SEGMENT_REASON_BYTES];
    rmm_segment_t segment;
    int error;

    if (rmm__segment_open(&segment, dirfd, name, reason) != RMM_SEGMENT_GOOD) {
        return -EPROTO;
    }
    error = shrink(&segment, dirfd);
    rmm__segment_close(&segment);
    return error;
}
