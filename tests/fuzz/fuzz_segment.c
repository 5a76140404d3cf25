/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The segment reader and the control page on hostile files. The input is a list of
 * changes to a small valid segment (and to a control page), so that what comes through
 * the first checks is common:
 *
 *   2 bytes position, 1 byte what, 8 bytes value: 1 << (what & 3) bytes of the value are
 *   written there; what & 0x80: the file ends there instead
 *
 * An input that begins with the magic of either is a whole file of its own.
 */
#include <sys/mman.h>

#include "fuzz/exercise_segment.h"
#include "fuzz/small_segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define CHANGE_BYTES 11
#define CHANGES_MAX 24

static void make_control(image_t *image)
{
    static rmm_control_page_t page;

    page.magic = RMM_CONTROL_MAGIC;
    page.version_major = RMM_SEGMENT_MAJOR;
    page.locations_offset = offsetof(rmm_control_page_t, locations);
    page.locations_stride = sizeof(rmm_control_location_t);
    page.locations_count = 4;
    page.slots_offset = page.locations_offset;
    page.slots_stride = sizeof(rmm_control_slot_t);
    page.slots_count = 4;
    image_append(
        image, &page, page.locations_offset + 4 * sizeof(rmm_control_location_t));
}

static void change(image_t *image, const uint8_t *data, size_t bytes)
{
    for (int i = 0; i < CHANGES_MAX && bytes >= CHANGE_BYTES && image->size > 0; i++) {
        size_t at = (size_t)(data[0] | data[1] << 8) % image->size;
        size_t width = (size_t)1 << (data[2] & 3);

        if ((data[2] & 0x80) != 0) {
            image->size = at;
        } else if (at + width <= image->size) {
            memcpy(image->bytes + at, data + 3, width);
        }
        data += CHANGE_BYTES;
        bytes -= CHANGE_BYTES;
    }
}

static int fill_file(const void *bytes, size_t size)
{
    static int fd = -1;

    if (fd < 0) {
        fd = memfd_create("segment", MFD_CLOEXEC);
    }
    PROMISE(fd >= 0 && ftruncate(fd, 0) == 0);
    PROMISE(pwrite(fd, bytes, size, 0) == (ssize_t)size);
    return fd;
}

static bool is_whole_file(const uint8_t *data, size_t bytes)
{
    const uint64_t magics[] = {RMM_SEGMENT_MAGIC, RMM_CONTROL_MAGIC};

    return bytes >= 8 &&
           (memcmp(data, &magics[0], 8) == 0 || memcmp(data, &magics[1], 8) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static image_t segment, control;
    rmm_segment_verdict_t verdict;

    if (is_whole_file(data, bytes)) {
        (void)exercise_segment(fill_file(data, bytes));
        (void)exercise_control(fill_file(data, bytes));
        return 0;
    }
    small_segment_make(&segment, 4);
    change(&segment, data, bytes);
    verdict = exercise_segment(fill_file(segment.bytes, segment.size));
    PROMISE(bytes >= CHANGE_BYTES || verdict == RMM_SEGMENT_GOOD);
    control.size = 0;
    make_control(&control);
    change(&control, data, bytes);
    (void)exercise_control(fill_file(control.bytes, control.size));
    return 0;
}
