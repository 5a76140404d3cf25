/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's side of the control page. What the process wrote there is trusted no more
 * than its segment: sections are checked against the file's size at open. Requests are
 * written with pwrite, so that a file cut at that moment costs nothing but a sparse page.
 *
 * A thread of the process may wait for requests (rmm/request_thread.h): the page is mapped to wake
 * it, for the kernel's call alone. Nothing here touches that memory, so a file cut at that moment
 * makes the call fail.
 *
 * Two writers that raise one number at the same moment may both write the same value:
 * then two requests are one, which for a reset is the same.
 */
#include "segment/segment_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "segment/clean_text.h"
#include "segment/open_in.h"
#include "segment/segment_growth.h"
#include "segment/segment_side.h"

static int read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
    ssize_t got = pread(fd, to, bytes, (off_t)offset);

    if (got < 0) {
        return -errno;
    }
    return (size_t)got == bytes ? 0 : -EPROTO;
}

static bool section_fits(
    const struct stat *status, uint32_t offset, uint32_t stride, uint32_t count)
{
    return offset >= offsetof(rmm_control_page_t, locations) && offset % 8 == 0 &&
           stride >= sizeof(rmm_control_location_t) && stride % 8 == 0 &&
           stride <= RMM_SEGMENT_RECORD_BYTES &&
           offset + (uint64_t)stride * count <= (uint64_t)status->st_size;
}

/* Those of an older program have none. */
static bool shares_fit(const struct stat *status, rmm_control_t *control)
{
    return control->shares_count == 0 ||
           (control->shares_stride >= sizeof(rmm_control_share_t) &&
            section_fits(
                status, control->shares_offset, control->shares_stride,
                control->shares_count));
}

static int check_file(int fd, uid_t owner, struct stat *status)
{
    if (fstat(fd, status) != 0) {
        return -errno;
    }
    if (!S_ISREG(status->st_mode) || status->st_nlink > 1 ||
        status->st_size > (off_t)RMM_SEGMENT_MAX_BYTES) {
        return -EPROTO;
    }
    return status->st_uid == owner ? 0 : -EPERM;
}

static int read_sections(rmm_control_t *control, const struct stat *status)
{
    rmm_control_page_t head;
    int error = read_at(control->fd, &head, offsetof(rmm_control_page_t, locations), 0);

    if (error != 0) {
        return error;
    }
    if (head.magic != RMM_CONTROL_MAGIC || head.version_major != RMM_SEGMENT_MAJOR) {
        return -EPROTO;
    }
    control->is_trimming = false;
    control->is_reporting = false;
    control->locations_offset = head.locations_offset;
    control->locations_stride = head.locations_stride;
    control->locations_count = head.locations_count;
    control->slots_offset = head.slots_offset;
    control->slots_stride = head.slots_stride;
    control->slots_count = head.slots_count;
    control->shares_offset = head.shares_offset;
    control->shares_stride = head.shares_stride;
    control->shares_count = head.shares_count;
    if (!section_fits(
            status, control->locations_offset, control->locations_stride,
            control->locations_count) ||
        !section_fits(
            status, control->slots_offset, control->slots_stride,
            control->slots_count) ||
        !shares_fit(status, control)) {
        return -EPROTO;
    }
    return 0;
}

int rmm__control_attach(rmm_control_t *control, int fd, uid_t owner)
{
    struct stat status;
    int error = check_file(fd, owner, &status);

    control->fd = fd;
    if (error == 0) {
        error = read_sections(control, &status);
    }
    if (error != 0) {
        control->fd = -1;
    }
    return error;
}

int rmm__control_open(rmm_control_t *control, int dirfd, const rmm_segment_t *segment)
{
    char name[RMM_SEGMENT_NAME_BYTES + sizeof(".control")];
    int fd, error;

    control->fd = -1;
    snprintf(name, sizeof(name), "%s.control", segment->name);
    fd = rmm__open_in(dirfd, name, O_RDWR | O_NONBLOCK);
    if (fd < 0) {
        return -errno;
    }
    error = rmm__control_attach(control, fd, segment->uid);
    if (error != 0) {
        close(fd);
        return error;
    }
    rmm__file_read_often(fd);
    return 0;
}

void rmm__control_close(rmm_control_t *control)
{
    rmm__file_close(&control->fd);
}

/* Offset of a record, or a negative errno. */
static int64_t location_at(const rmm_control_t *control, uint32_t location)
{
    if (location >= control->locations_count) {
        return -EINVAL;
    }
    return (
        int64_t)(control->locations_offset + (uint64_t)control->locations_stride * location);
}

static int64_t slot_at(const rmm_control_t *control, uint32_t slot)
{
    if (slot >= control->slots_count) {
        return -EINVAL;
    }
    return (int64_t)(control->slots_offset + (uint64_t)control->slots_stride * slot);
}

/* The word `field` of the record at `at`, which may be a negative errno instead. */
static int raise_number(const rmm_control_t *control, int64_t at, size_t field)
{
    const uint64_t offset = (uint64_t)at + field;
    uint32_t number;
    int error =
        at < 0 ? (int)at : read_at(control->fd, &number, sizeof(number), offset);
    ssize_t put;

    if (error != 0) {
        return error;
    }
    number++;
    put = pwrite(control->fd, &number, sizeof(number), (off_t)offset);
    if (put < 0) {
        return -errno;
    }
    return put == (ssize_t)sizeof(number) ? 0 : -EIO;
}

int rmm__control_reset_location_peak(rmm_control_t *control, uint32_t location)
{
    return raise_number(
        control, location_at(control, location),
        offsetof(rmm_control_location_t, peak_reset));
}

int rmm__control_reset_node_peak(rmm_control_t *control, uint32_t location)
{
    return raise_number(
        control, location_at(control, location),
        offsetof(rmm_control_location_t, node_peak_reset));
}

int rmm__control_reset_slot_peak(rmm_control_t *control, uint32_t slot)
{
    return raise_number(
        control, slot_at(control, slot), offsetof(rmm_control_slot_t, peak_reset));
}

int rmm__control_read_location(
    rmm_control_t *control, uint32_t location, rmm_control_location_t *out)
{
    int64_t at = location_at(control, location);

    return at < 0 ? (int)at : read_at(control->fd, out, sizeof(*out), (uint64_t)at);
}

int rmm__control_read_slot(
    rmm_control_t *control, uint32_t slot, rmm_control_slot_t *out)
{
    int64_t at = slot_at(control, slot);

    return at < 0 ? (int)at : read_at(control->fd, out, sizeof(*out), (uint64_t)at);
}

int rmm__control_read_slots(
    rmm_control_t *control, uint32_t first, uint32_t count, rmm_control_slot_t *out)
{
    unsigned char records[RMM_CONTROL_SLOTS_BYTES];
    const size_t stride = control->slots_stride;
    int64_t at = slot_at(control, first);
    int error;

    if (at < 0 || count > control->slots_count - first ||
        count > sizeof(records) / stride) {
        return -EINVAL;
    }
    error = read_at(control->fd, records, stride * count, (uint64_t)at);
    for (uint32_t i = 0; error == 0 && i < count; i++) {
        memcpy(&out[i], records + stride * i, sizeof(out[i]));
    }
    return error;
}

/* A word of the head, which every control page has. */
static int write_word(rmm_control_t *control, uint32_t value, size_t offset)
{
    ssize_t put = pwrite(control->fd, &value, sizeof(value), (off_t)offset);

    if (put < 0) {
        return -errno;
    }
    return put == (ssize_t)sizeof(value) ? 0 : -EIO;
}

int rmm__control_set_log_level(rmm_control_t *control, uint32_t level)
{
    return level <= RMM_CONTROL_LEVEL_MAX
               ? write_word(control, 1 + level, offsetof(rmm_control_page_t, log_level))
               : -EINVAL;
}

bool rmm__control_log_level(rmm_control_t *control, uint32_t *level_out)
{
    uint32_t request;

    if (read_at(
            control->fd, &request, sizeof(request),
            offsetof(rmm_control_page_t, log_level)) != 0 ||
        request < 1 || request > 1 + RMM_CONTROL_LEVEL_MAX) {
        return false;
    }
    *level_out = request - 1;
    return true;
}

int rmm__control_set_trace(rmm_control_t *control, bool enable)
{
    return write_word(control, enable, offsetof(rmm_control_page_t, trace_enable));
}

bool rmm__control_trace(rmm_control_t *control)
{
    uint32_t request;

    return read_at(
               control->fd, &request, sizeof(request),
               offsetof(rmm_control_page_t, trace_enable)) == 0 &&
           request != 0;
}

/* --- limits, trims, reports ------------------------------------------------------------- */

#define PIECE_BYTES 8192 /* of a section that is searched */

static int
write_at(const rmm_control_t *control, const void *from, size_t bytes, uint64_t offset)
{
    ssize_t put = pwrite(control->fd, from, bytes, (off_t)offset);

    if (put < 0) {
        return -errno;
    }
    return (size_t)put == bytes ? 0 : -EIO;
}

static uint64_t limit_at(const rmm_control_t *control, int64_t at, size_t field)
{
    uint64_t limit;

    if (at < 0 ||
        read_at(control->fd, &limit, sizeof(limit), (uint64_t)at + field) != 0) {
        return RMM_SEGMENT_NO_LIMIT;
    }
    return limit;
}

typedef struct section {
    uint32_t offset, stride, count;
    size_t field; /* where in a record its limit is */
} section_t;

/* Read in pieces of whole records: a stride is at most RMM_SEGMENT_RECORD_BYTES. */
static bool has_limit_in(const rmm_control_t *control, const section_t *section)
{
    unsigned char piece[PIECE_BYTES];
    const uint32_t at_once = PIECE_BYTES / section->stride;

    for (uint32_t i = 0; i < section->count; i += at_once) {
        uint32_t count = section->count - i < at_once ? section->count - i : at_once;

        if (read_at(
                control->fd, piece, (size_t)section->stride * count,
                section->offset + (uint64_t)section->stride * i) != 0) {
            return true; /* looking in vain is better than not to look */
        }
        for (uint32_t k = 0; k < count; k++) {
            uint64_t limit;

            memcpy(
                &limit, piece + (size_t)section->stride * k + section->field,
                sizeof(limit));
            if (limit != RMM_SEGMENT_NO_LIMIT) {
                return true;
            }
        }
    }
    return false;
}

/* Behind a request: ignores errors, because the process finds the request at its next look. */
static void wake_process(rmm_control_t *control)
{
    const size_t at = offsetof(rmm_control_page_t, request_count);
    char *page;

    if (raise_number(control, 0, at) != 0) {
        return;
    }
    page = mmap(NULL, at + sizeof(uint32_t), PROT_READ, MAP_SHARED, control->fd, 0);
    if (page != MAP_FAILED) {
        (void)syscall(SYS_futex, page + at, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        (void)munmap(page, at + sizeof(uint32_t));
    }
}

/* Last: then the process finds all that it is to look for. */
static int write_wanted(rmm_control_t *control)
{
    const section_t locations = {
        control->locations_offset, control->locations_stride, control->locations_count,
        offsetof(rmm_control_location_t, limit_bytes)};
    const section_t slots = {
        control->slots_offset, control->slots_stride, control->slots_count,
        offsetof(rmm_control_slot_t, limit_bytes)};
    const section_t shares = {
        control->shares_offset, control->shares_stride, control->shares_count,
        offsetof(rmm_control_share_t, share_bytes)};

    const uint32_t wanted = control->is_trimming || control->is_reporting ||
                            has_limit_in(control, &locations) ||
                            (shares.count > 0 && has_limit_in(control, &shares)) ||
                            has_limit_in(control, &slots);
    int error = write_word(control, wanted, offsetof(rmm_control_page_t, wanted));

    if (error == 0 && wanted != 0) {
        wake_process(control);
    }
    return error;
}

int rmm__control_limit_location(
    rmm_control_t *control, uint32_t location, uint64_t limit_bytes)
{
    int64_t at = location_at(control, location);
    int error = at < 0 ? (int)at : 0;

    if (error == 0) {
        error = write_at(
            control, &limit_bytes, sizeof(limit_bytes),
            (uint64_t)at + offsetof(rmm_control_location_t, limit_bytes));
    }
    return error == 0 ? write_wanted(control) : error;
}

int rmm__control_limit_slot(
    rmm_control_t *control, uint32_t slot, uint32_t instance_id, uint64_t limit_bytes)
{
    int64_t at = slot_at(control, slot);
    int error = at < 0 ? (int)at : 0;

    if (error == 0) {
        error = write_at(
            control, &limit_bytes, sizeof(limit_bytes),
            (uint64_t)at + offsetof(rmm_control_slot_t, limit_bytes));
    }
    if (error == 0) {
        error = write_at(
            control, &instance_id, sizeof(instance_id),
            (uint64_t)at + offsetof(rmm_control_slot_t, limit_of));
    }
    return error == 0 ? write_wanted(control) : error;
}

uint64_t rmm__control_location_limit(rmm_control_t *control, uint32_t location)
{
    return limit_at(
        control, location_at(control, location),
        offsetof(rmm_control_location_t, limit_bytes));
}

uint64_t
rmm__control_slot_limit(rmm_control_t *control, uint32_t slot, uint32_t instance_id)
{
    rmm_control_slot_t record;

    if (rmm__control_read_slot(control, slot, &record) != 0 ||
        atomic_load_explicit(&record.limit_of, memory_order_relaxed) != instance_id) {
        return RMM_SEGMENT_NO_LIMIT;
    }
    return limit_at(
        control, slot_at(control, slot), offsetof(rmm_control_slot_t, limit_bytes));
}

/* --- shares ----------------------------------------------------------------------------- */

bool rmm__control_takes_shares(const rmm_control_t *control, uint32_t location)
{
    return location < control->shares_count;
}

static uint64_t share_at(const rmm_control_t *control, uint32_t location)
{
    return control->shares_offset + (uint64_t)control->shares_stride * location;
}

int rmm__control_set_share(
    rmm_control_t *control, uint32_t location, const rmm_share_t *share)
{
    const uint64_t at = share_at(control, location);
    char group[RMM_SHARE_GROUP_BYTES] = "";
    int error;

    if (!rmm__control_takes_shares(control, location)) {
        return -EINVAL;
    }
    snprintf(group, sizeof(group), "%s", share->group);
    error = write_at(
        control, group, sizeof(group), at + offsetof(rmm_control_share_t, group));
    if (error == 0) {
        error = write_at(
            control, &share->limit_bytes, sizeof(share->limit_bytes),
            at + offsetof(rmm_control_share_t, limit_bytes));
    }
    return error == 0 ? write_at(
                            control, &share->share_bytes, sizeof(share->share_bytes),
                            at + offsetof(rmm_control_share_t, share_bytes))
                      : error;
}

int rmm__control_answer(rmm_control_t *control, uint32_t location, uint32_t number)
{
    int error = rmm__control_takes_shares(control, location) ? 0 : -EINVAL;

    if (error == 0) {
        error = write_at(
            control, &number, sizeof(number),
            share_at(control, location) + offsetof(rmm_control_share_t, answered));
    }
    if (error == 0) {
        error = write_wanted(control);
        wake_process(control);
    }
    return error;
}

int rmm__control_shares_changed(rmm_control_t *control)
{
    return write_wanted(control);
}

void rmm__control_share_group(
    const rmm_control_t *control, uint32_t location, char group[RMM_SHARE_GROUP_BYTES])
{
    if (!rmm__control_takes_shares(control, location) ||
        read_at(
            control->fd, group, RMM_SHARE_GROUP_BYTES,
            share_at(control, location) + offsetof(rmm_control_share_t, group)) != 0) {
        group[0] = '\0';
    }
    rmm__text_clean(group, RMM_SHARE_GROUP_BYTES);
}

bool rmm__control_has_shares(rmm_control_t *control)
{
    const section_t shares = {
        control->shares_offset, control->shares_stride, control->shares_count,
        offsetof(rmm_control_share_t, share_bytes)};
    uint32_t wanted;

    return shares.count > 0 &&
           read_at(
               control->fd, &wanted, sizeof(wanted),
               offsetof(rmm_control_page_t, wanted)) == 0 &&
           wanted != 0 && has_limit_in(control, &shares);
}

uint64_t rmm__control_share(rmm_control_t *control, uint32_t location)
{
    return rmm__control_takes_shares(control, location)
               ? limit_at(
                     control, (int64_t)share_at(control, location),
                     offsetof(rmm_control_share_t, share_bytes))
               : RMM_SEGMENT_NO_LIMIT;
}

int rmm__control_begin_trim(
    rmm_control_t *control, uint32_t of, uint64_t keep_bytes, uint32_t *number_out)
{
    const size_t number_at = offsetof(rmm_control_page_t, trim_number);
    uint32_t number;
    int error = read_at(control->fd, &number, sizeof(number), number_at);

    if (error == 0) {
        error = write_at(
            control, &keep_bytes, sizeof(keep_bytes),
            offsetof(rmm_control_page_t, trim_keep_bytes));
    }
    if (error == 0) {
        error = write_word(control, of, offsetof(rmm_control_page_t, trim_of));
    }
    if (error == 0) {
        *number_out = number + 1;
        error = write_word(control, number + 1, number_at);
    }
    control->is_trimming = error == 0;
    return error == 0 ? write_wanted(control) : error;
}

int rmm__control_end_trim(rmm_control_t *control, bool is_withdrawn)
{
    const uint64_t withdrawn = RMM_TRIM_WITHDRAWN;
    int error = 0;

    control->is_trimming = false;
    if (is_withdrawn) {
        error = write_at(
            control, &withdrawn, sizeof(withdrawn),
            offsetof(rmm_control_page_t, trim_keep_bytes));
    }
    return error == 0 ? write_wanted(control) : error;
}

bool rmm__segment_trim_seen(const rmm_segment_t *segment, uint32_t *number_out)
{
    return read_at(
               segment->fd, number_out, sizeof(*number_out),
               offsetof(rmm_segment_header_t, trim_seen)) == 0;
}

int rmm__control_begin_report(
    rmm_control_t *control, uint32_t rows, uint32_t *number_out)
{
    const size_t number_at = offsetof(rmm_control_page_t, report_number);
    uint32_t number;
    int error = read_at(control->fd, &number, sizeof(number), number_at);

    if (error == 0) {
        error = write_word(control, rows, offsetof(rmm_control_page_t, report_rows));
    }
    if (error == 0) {
        *number_out = number + 1;
        error = write_word(control, number + 1, number_at);
    }
    control->is_reporting = error == 0;
    return error == 0 ? write_wanted(control) : error;
}

int rmm__control_end_report(rmm_control_t *control, bool is_withdrawn)
{
    int error = 0;

    control->is_reporting = false;
    if (is_withdrawn) {
        error = write_word(control, 0, offsetof(rmm_control_page_t, report_rows));
    }
    return error == 0 ? write_wanted(control) : error;
}

bool rmm__segment_report_seen(const rmm_segment_t *segment, uint32_t *number_out)
{
    return read_at(
               segment->fd, number_out, sizeof(*number_out),
               offsetof(rmm_segment_header_t, report_seen)) == 0;
}

void rmm__control_forget(rmm_control_t *control)
{
    uint32_t wanted;

    if (read_at(
            control->fd, &wanted, sizeof(wanted),
            offsetof(rmm_control_page_t, wanted)) == 0 &&
        wanted != 0) {
        (void)write_wanted(control);
    }
}
