/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens a segment and checks it. Everything that comes from the file is hostile until
 * checked here: sections against the file's size, strides against the record buffer,
 * statistics against their stride, strings for their end and for control characters. After
 * that, indexes are the only thing that callers can get wrong, and those are checked at each
 * read (segment_record_reader.c).
 */
#include "segment/segment_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "segment/clean_text.h"
#include "segment/job_label.h"
#include "segment/open_in.h"
#include "segment/segment_name.h"
#include "segment/segment_side.h"
#include "segment/segment_stripes.h"

#define LOCATION_LEAST_STRIDE offsetof(rmm_segment_location_t, current_bytes)
#define SLOT_LEAST_STRIDE offsetof(rmm_segment_slot_t, current_bytes)
#define LOG_LEAST_STRIDE (offsetof(rmm_segment_log_record_t, text) + 8)
#define ABSENT UINT32_MAX

__attribute__((format(printf, 2, 3))) static rmm_segment_verdict_t
refuse(char reason[RMM_SEGMENT_REASON_BYTES], const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reason, RMM_SEGMENT_REASON_BYTES, format, arguments);
    va_end(arguments);
    return RMM_SEGMENT_REFUSED;
}

bool rmm__segment_name_parse(const char *name, uid_t *uid_out)
{
    rmm_file_name_t parsed = rmm__file_name_parse(name);

    if (parsed.kind != RMM_FILE_SEGMENT) {
        return false;
    }
    if (uid_out != NULL) {
        *uid_out = parsed.uid;
    }
    return true;
}

/* --- header ------------------------------------------------------------------------ */

static rmm_segment_verdict_t
check_version(const rmm_segment_header_t *header, char *reason)
{
    if (header->magic == 0) {
        snprintf(reason, RMM_SEGMENT_REASON_BYTES, "being made");
        return RMM_SEGMENT_NOT_READY;
    }
    if (header->magic != RMM_SEGMENT_MAGIC) {
        return refuse(reason, "it is not a segment: its magic number is wrong");
    }
    if (header->version_major != RMM_SEGMENT_MAJOR) {
        return refuse(
            reason, "its format is %u.%u; this reader knows %u.x only",
            header->version_major, header->version_minor, RMM_SEGMENT_MAJOR);
    }
    if (atomic_load_explicit(&header->ready, memory_order_relaxed) == 0) {
        snprintf(reason, RMM_SEGMENT_REASON_BYTES, "being made");
        return RMM_SEGMENT_NOT_READY;
    }
    return RMM_SEGMENT_GOOD;
}

typedef struct section {
    const char *what;
    uint32_t offset, stride, count, least_stride;
} section_t;

static rmm_segment_verdict_t
check_extent(const rmm_segment_header_t *header, const section_t *section, char *reason)
{
    /* 32-bit factors: neither the product nor the sum can overflow 64 bits */
    if (section->offset < header->header_bytes || section->offset % 8 != 0 ||
        section->offset + (uint64_t)section->stride * section->count >
            header->segment_bytes) {
        return refuse(
            reason, "%s: %u of %u bytes at offset %u are not inside its %llu bytes",
            section->what, section->count, section->stride, section->offset,
            (unsigned long long)header->segment_bytes);
    }
    return RMM_SEGMENT_GOOD;
}

static rmm_segment_verdict_t check_section(
    const rmm_segment_header_t *header, const section_t *section, char *reason)
{
    if (section->stride < section->least_stride ||
        section->stride > RMM_SEGMENT_RECORD_BYTES || section->stride % 8 != 0) {
        return refuse(
            reason, "%s: %u is not a valid record size", section->what,
            section->stride);
    }
    return check_extent(header, section, reason);
}

/* The head of a ring stands before its records. */
static rmm_segment_verdict_t check_ring(
    const rmm_segment_header_t *header, const section_t *section, size_t head_bytes,
    char *reason)
{
    if (section->offset < (uint64_t)header->header_bytes + head_bytes) {
        return refuse(
            reason, "%s: its records at offset %u leave no room for its head",
            section->what, section->offset);
    }
    return check_section(header, section, reason);
}

static rmm_segment_verdict_t
check_rings(const rmm_segment_header_t *header, char *reason)
{
    const section_t log = {
        "log", header->log_offset, header->log_stride, header->log_count,
        LOG_LEAST_STRIDE};
    const section_t refusals = {
        "refusals", header->refusals_offset, header->refusals_stride,
        header->refusals_count, sizeof(rmm_segment_refusal_t)};

    if (log.count != 0 && check_ring(header, &log, sizeof(rmm_segment_log_t), reason) !=
                              RMM_SEGMENT_GOOD) {
        return RMM_SEGMENT_REFUSED;
    }
    return refusals.count != 0
               ? check_ring(header, &refusals, sizeof(rmm_segment_refusals_t), reason)
               : RMM_SEGMENT_GOOD;
}

/* Each record has a row of stripes, which is read whole. */
static rmm_segment_verdict_t
check_stripes(const rmm_segment_header_t *header, char *reason)
{
    uint64_t row = rmm__stripes_bytes(header);
    section_t section = {
        "stripes", header->location_stripes_offset, (uint32_t)row,
        header->locations_count, 8};

    if (header->stripes_stride % 8 != 0 || row == 0 ||
        row > RMM_SEGMENT_STRIPES_BYTES) {
        return refuse(
            reason, "stripes: %u bytes, %u of them, are not a valid size",
            header->stripes_stride, header->stripes_count);
    }
    if (check_extent(header, &section, reason) != RMM_SEGMENT_GOOD) {
        return RMM_SEGMENT_REFUSED;
    }
    section.offset = header->slot_stripes_offset;
    section.count = header->slots_count;
    return check_extent(header, &section, reason);
}

static rmm_segment_verdict_t
check_sections(const rmm_segment_header_t *header, char *reason)
{
    const section_t sections[] = {
        {"schema", header->schema_offset, header->schema_stride, header->schema_count,
         sizeof(rmm_segment_schema_t)},
        {"locations", header->locations_offset, header->locations_stride,
         header->locations_count, LOCATION_LEAST_STRIDE},
        {"slots", header->slots_offset, header->slots_stride, header->slots_count,
         SLOT_LEAST_STRIDE}};

    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        if (check_section(header, &sections[i], reason) != RMM_SEGMENT_GOOD) {
            return RMM_SEGMENT_REFUSED;
        }
    }
    if (check_rings(header, reason) != RMM_SEGMENT_GOOD) {
        return RMM_SEGMENT_REFUSED;
    }
    return header->stripes_count == 0 ? RMM_SEGMENT_GOOD
                                      : check_stripes(header, reason);
}

static rmm_segment_verdict_t read_header(rmm_segment_t *segment, char *reason)
{
    rmm_segment_header_t *header = &segment->header;
    rmm_segment_verdict_t verdict;

    /* Twice: words of the copy that first showed `ready` may be older than it. */
    for (int i = 0; i < 2; i++) {
        if (!rmm__read_at(segment->fd, header, sizeof(*header), 0)) {
            return refuse(
                reason, "the file has %llu bytes, less than a header",
                (unsigned long long)segment->bytes);
        }
        verdict = check_version(header, reason);
        if (verdict != RMM_SEGMENT_GOOD) {
            return verdict;
        }
    }
    if (header->header_bytes < sizeof(*header) ||
        header->segment_bytes > segment->bytes ||
        header->header_bytes > header->segment_bytes) {
        return refuse(
            reason, "header of %u bytes, segment of %llu bytes, file of %llu bytes",
            header->header_bytes, (unsigned long long)header->segment_bytes,
            (unsigned long long)segment->bytes);
    }
    rmm__text_clean(header->driver, sizeof(header->driver));
    rmm__text_clean(header->comm, sizeof(header->comm));
    rmm__text_clean(header->cmdline, sizeof(header->cmdline));
    header->job[sizeof(header->job) - 1] = '\0';
    if (header->job_offset != offsetof(rmm_segment_header_t, job) ||
        !rmm__job_label_is_valid(header->job)) {
        header->job[0] = '\0';
    }
    return check_sections(header, reason);
}

/* --- schema ------------------------------------------------------------------------ */

/* They become names of files and of metrics. */
static bool stat_name_is_good(const char *name, size_t bytes)
{
    size_t length = strnlen(name, bytes);

    return length > 0 && length < bytes && name[0] >= 'a' && name[0] <= 'z' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == length;
}

static bool
entry_is_new(const rmm_segment_t *segment, const rmm_segment_schema_t *entry)
{
    for (uint32_t i = 0; i < segment->header.schema_count; i++) {
        if (segment->schema[i].scope == entry->scope &&
            strcmp(segment->schema[i].name, entry->name) == 0) {
            return false;
        }
    }
    return true;
}

static bool stripe_word_is_good(const rmm_segment_header_t *header, uint16_t word)
{
    return word == RMM_STRIPE_NONE || (header->stripes_count != 0 && word % 8 == 0 &&
                                       word + 8u <= header->stripes_stride);
}

static rmm_segment_verdict_t
add_entry(rmm_segment_t *segment, rmm_segment_schema_t *entry, char *reason)
{
    rmm_segment_header_t *header = &segment->header;
    uint32_t stride;

    if (!stat_name_is_good(entry->name, sizeof(entry->name))) {
        return refuse(reason, "schema: a name is not valid");
    }
    if (!stripe_word_is_good(header, entry->stripe_plus) ||
        !stripe_word_is_good(header, entry->stripe_minus)) {
        return refuse(
            reason, "schema: %s at offsets %u and %u is not in a stripe of %u bytes",
            entry->name, entry->stripe_plus, entry->stripe_minus,
            header->stripes_stride);
    }
    stride = entry->scope == RMM_SCHEMA_LOCATION ? header->locations_stride
                                                 : header->slots_stride;
    if (entry->offset % 8 != 0 || entry->offset > stride - 8) {
        return refuse(
            reason, "schema: %s at offset %u is not in a record of %u bytes",
            entry->name, entry->offset, stride);
    }
    if (!entry_is_new(segment, entry)) {
        return refuse(reason, "schema: %s is there twice", entry->name);
    }
    /* A newer writer's kind or unit: a number that rises and falls is always true. */
    if (entry->kind < RMM_KIND_GAUGE || entry->kind > RMM_KIND_MARK) {
        entry->kind = RMM_KIND_GAUGE;
    }
    if (entry->unit < RMM_UNIT_BYTES || entry->unit > RMM_UNIT_COUNT) {
        entry->unit = RMM_UNIT_COUNT;
    }
    segment->schema[header->schema_count++] = *entry;
    return RMM_SEGMENT_GOOD;
}

/* Keeps what is of a location or a slot, at most RMM_SCHEMA_MAX. */
static rmm_segment_verdict_t
take_entries(rmm_segment_t *segment, const char *bytes, uint32_t count, char *reason)
{
    rmm_segment_header_t *header = &segment->header;

    for (uint32_t i = 0; i < count && header->schema_count < RMM_SCHEMA_MAX; i++) {
        rmm_segment_schema_t entry;

        memcpy(&entry, bytes + (size_t)header->schema_stride * i, sizeof(entry));
        if (entry.scope != RMM_SCHEMA_LOCATION && entry.scope != RMM_SCHEMA_SLOT) {
            continue; /* a newer writer's: records that this reader does not read */
        }
        if (add_entry(segment, &entry, reason) != RMM_SEGMENT_GOOD) {
            return RMM_SEGMENT_REFUSED;
        }
    }
    return RMM_SEGMENT_GOOD;
}

/* header.schema_count becomes the number kept. A daemon attaches to each program, and a program
 * that starts to those that ended: many entries to a pread. */
static rmm_segment_verdict_t read_schema(rmm_segment_t *segment, char *reason)
{
    rmm_segment_header_t *header = &segment->header;
    char bytes[2 * RMM_SEGMENT_RECORD_BYTES];
    uint32_t stride = header->schema_stride, count = header->schema_count;
    uint32_t at_once = sizeof(bytes) / stride;

    header->schema_count = 0;
    for (uint32_t i = 0; i < count && header->schema_count < RMM_SCHEMA_MAX;
         i += at_once) {
        uint32_t some = count - i < at_once ? count - i : at_once;

        if (!rmm__read_at(
                segment->fd, bytes, (size_t)stride * some,
                header->schema_offset + (uint64_t)stride * i)) {
            return refuse(reason, "schema: the file was truncated while it was read");
        }
        if (take_entries(segment, bytes, some, reason) != RMM_SEGMENT_GOOD) {
            return RMM_SEGMENT_REFUSED;
        }
    }
    return RMM_SEGMENT_GOOD;
}

static uint32_t
find_offset(const rmm_segment_t *segment, uint16_t scope, const char *name)
{
    const rmm_segment_schema_t *entry = rmm__schema_find(segment, scope, name);

    return entry != NULL ? entry->offset : ABSENT;
}

static uint32_t
find_entry(const rmm_segment_t *segment, uint16_t scope, const char *name)
{
    const rmm_segment_schema_t *entry = rmm__schema_find(segment, scope, name);

    return entry != NULL ? (uint32_t)(entry - segment->schema) : ABSENT;
}

static void find_striped(rmm_segment_t *segment)
{
    for (uint32_t i = 0; i < segment->header.schema_count; i++) {
        const rmm_segment_schema_t *entry = &segment->schema[i];
        bool is_striped = entry->stripe_plus != RMM_STRIPE_NONE ||
                          entry->stripe_minus != RMM_STRIPE_NONE;

        if (is_striped && entry->scope == RMM_SCHEMA_LOCATION) {
            segment->location_striped[segment->location_striped_count++] = (uint8_t)i;
        } else if (is_striped) {
            segment->slot_striped[segment->slot_striped_count++] = (uint8_t)i;
        }
    }
}

static void find_known_stats(rmm_segment_t *segment)
{
    find_striped(segment);
    segment->location_freed = find_entry(segment, RMM_SCHEMA_LOCATION, "freed_count");
    segment->slot_freed = find_entry(segment, RMM_SCHEMA_SLOT, "freed_count");
    segment->slot_free = find_entry(segment, RMM_SCHEMA_SLOT, "free_bytes");
    segment->slot_current = find_entry(segment, RMM_SCHEMA_SLOT, "current_bytes");
    segment->slot_padding = find_entry(segment, RMM_SCHEMA_SLOT, "padding_bytes");
    for (uint32_t i = 0; i < RMM_LOCATION_STAT_COUNT; i++) {
        segment->location_offset[i] =
            find_offset(segment, RMM_SCHEMA_LOCATION, rmm__location_stats[i].name);
    }
    for (uint32_t i = 0; i < RMM_SLOT_STAT_COUNT; i++) {
        segment->slot_offset[i] =
            find_offset(segment, RMM_SCHEMA_SLOT, rmm__slot_stats[i].name);
    }
}

/* --- open and close ---------------------------------------------------------------- */

rmm_segment_verdict_t rmm__segment_attach(
    rmm_segment_t *segment, int fd, char reason[RMM_SEGMENT_REASON_BYTES])
{
    struct stat status;
    rmm_segment_verdict_t verdict;

    memset(segment, 0, sizeof(*segment));
    segment->fd = fd;
    reason[0] = '\0';
    if (fstat(fd, &status) != 0) {
        return refuse(reason, "fstat: %s", strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return refuse(reason, "it is not a regular file");
    }
    if (status.st_size > (off_t)RMM_SEGMENT_MAX_BYTES) {
        return refuse(
            reason, "it has %lld bytes, more than a segment may have",
            (long long)status.st_size);
    }
    segment->uid = status.st_uid;
    segment->device = status.st_dev;
    segment->inode = status.st_ino;
    segment->bytes = (uint64_t)status.st_size;

    verdict = read_header(segment, reason);
    if (verdict == RMM_SEGMENT_GOOD) {
        verdict = read_schema(segment, reason);
    }
    if (verdict == RMM_SEGMENT_GOOD) {
        find_known_stats(segment);
    }
    return verdict;
}

/* The file has no other name, which another user could have given it. */
static rmm_segment_verdict_t check_links(int fd, char *reason)
{
    struct stat status;

    if (fstat(fd, &status) != 0) {
        return refuse(reason, "fstat: %s", strerror(errno));
    }
    if (S_ISREG(status.st_mode) && status.st_nlink > 1) {
        return refuse(reason, "it has %lu hard links", (unsigned long)status.st_nlink);
    }
    return RMM_SEGMENT_GOOD;
}

static rmm_segment_verdict_t refuse_unopened(int error, char *reason)
{
    refuse(
        reason, "open: %s",
        error == EXDEV ? "a file system is mounted over it" : strerror(error));
    if (rmm__is_out_of_descriptors(error)) {
        return RMM_SEGMENT_UNOPENED;
    }
    return error == ENOENT ? RMM_SEGMENT_GONE : RMM_SEGMENT_REFUSED;
}

rmm_segment_verdict_t rmm__segment_open(
    rmm_segment_t *segment, int dirfd, const char *name,
    char reason[RMM_SEGMENT_REASON_BYTES])
{
    rmm_segment_verdict_t verdict;
    int fd;

    memset(segment, 0, sizeof(*segment));
    segment->fd = -1;
    reason[0] = '\0';
    if (!rmm__segment_name_parse(name, NULL)) {
        return refuse(reason, "not the name of a segment");
    }
    fd = rmm__open_in(dirfd, name, O_RDONLY | O_NONBLOCK);
    if (fd < 0) {
        return refuse_unopened(errno, reason);
    }
    verdict = check_links(fd, reason);
    if (verdict == RMM_SEGMENT_GOOD) {
        verdict = rmm__segment_attach(segment, fd, reason);
    }
    if (verdict != RMM_SEGMENT_GOOD) {
        close(fd);
        segment->fd = -1;
        return verdict;
    }
    rmm__file_read_often(fd);
    snprintf(segment->name, sizeof(segment->name), "%s", name);
    return RMM_SEGMENT_GOOD;
}

void rmm__segment_close(rmm_segment_t *segment)
{
    rmm__file_close(&segment->fd);
}
