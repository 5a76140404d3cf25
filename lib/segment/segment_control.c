/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's side of the control page. What the process wrote there is trusted no more
 * than its segment: sections are checked against the file's size at open. Requests are
 * written with pwrite, so that a file cut meanwhile costs nothing but a sparse page.
 *
 * Two writers that raise one number at the same moment may both write the same value:
 * then two requests are one, which for a reset is the same.
 */
#include "segment/segment_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

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
    union {
        rmm_control_page_t page;
        unsigned char bytes[offsetof(rmm_control_page_t, locations)];
    } head;
    int error = read_at(control->fd, head.bytes, sizeof(head.bytes), 0);

    if (error != 0) {
        return error;
    }
    if (head.page.magic != RMM_CONTROL_MAGIC ||
        head.page.version_major != RMM_SEGMENT_MAJOR) {
        return -EPROTO;
    }
    control->locations_offset = head.page.locations_offset;
    control->locations_stride = head.page.locations_stride;
    control->locations_count = head.page.locations_count;
    control->slots_offset = head.page.slots_offset;
    control->slots_stride = head.page.slots_stride;
    control->slots_count = head.page.slots_count;
    if (!section_fits(
            status, control->locations_offset, control->locations_stride,
            control->locations_count) ||
        !section_fits(
            status, control->slots_offset, control->slots_stride,
            control->slots_count)) {
        return -EPROTO;
    }
    return 0;
}

int rmm_control_attach(rmm_control_t *control, int fd, uid_t owner)
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

int rmm_control_open(rmm_control_t *control, int dirfd, const rmm_segment_t *segment)
{
    char name[RMM_SEGMENT_NAME_BYTES + sizeof(".control")];
    int fd, error;

    control->fd = -1;
    snprintf(name, sizeof(name), "%s.control", segment->name);
    fd = openat(dirfd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    error = rmm_control_attach(control, fd, segment->uid);
    if (error != 0) {
        close(fd);
    }
    return error;
}

void rmm_control_close(rmm_control_t *control)
{
    rmm__file_close(&control->fd);
}

/* Offset of a record, or a negative errno. */
static int64_t place_at(const rmm_control_t *control, uint32_t location)
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

int rmm_control_reset_location_peak(rmm_control_t *control, uint32_t location)
{
    return raise_number(
        control, place_at(control, location),
        offsetof(rmm_control_location_t, peak_reset));
}

int rmm_control_reset_node_peak(rmm_control_t *control, uint32_t location)
{
    return raise_number(
        control, place_at(control, location),
        offsetof(rmm_control_location_t, node_peak_reset));
}

int rmm_control_reset_slot_peak(rmm_control_t *control, uint32_t slot)
{
    return raise_number(
        control, slot_at(control, slot), offsetof(rmm_control_slot_t, peak_reset));
}

int rmm_control_read_location(
    rmm_control_t *control, uint32_t location, rmm_control_location_t *out)
{
    int64_t at = place_at(control, location);

    return at < 0 ? (int)at : read_at(control->fd, out, sizeof(*out), (uint64_t)at);
}

int rmm_control_read_slot(
    rmm_control_t *control, uint32_t slot, rmm_control_slot_t *out)
{
    int64_t at = slot_at(control, slot);

    return at < 0 ? (int)at : read_at(control->fd, out, sizeof(*out), (uint64_t)at);
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

int rmm_control_set_log_level(rmm_control_t *control, uint32_t level)
{
    return level <= RMM_CONTROL_LEVEL_MAX
               ? write_word(control, 1 + level, offsetof(rmm_control_page_t, log_level))
               : -EINVAL;
}

bool rmm_control_log_level(rmm_control_t *control, uint32_t *level_out)
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

int rmm_control_set_trace(rmm_control_t *control, bool enable)
{
    return write_word(control, enable, offsetof(rmm_control_page_t, trace_enable));
}

bool rmm_control_trace(rmm_control_t *control)
{
    uint32_t request;

    return read_at(
               control->fd, &request, sizeof(request),
               offsetof(rmm_control_page_t, trace_enable)) == 0 &&
           request != 0;
}
