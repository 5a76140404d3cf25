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
#include "unit/segment_sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define CHANGE_BYTES 11
#define CHANGES_MAX 24

typedef struct image {
    unsigned char bytes[16384];
    size_t size;
} image_t;

static void append(image_t *image, const void *bytes, size_t size)
{
    PROMISE(image->size + size <= sizeof(image->bytes));
    memcpy(image->bytes + image->size, bytes, size);
    image->size += size;
}

/* The sample's records 0 and last, without the empty ones between; four of its log, two
 * stripes for each record. */
static void make_segment(image_t *image)
{
    static rmm_segment_layout_t sample;
    rmm_segment_header_t *header = &sample.header;

    sample_make(&sample);
    header->schema_offset = sizeof(*header);
    header->locations_offset =
        header->schema_offset +
        (uint32_t)sizeof(sample.schema[0]) * header->schema_count;
    header->locations_count = 2;
    header->slots_offset =
        header->locations_offset + 2 * (uint32_t)sizeof(sample.locations[0]);
    header->slots_count = 2;
    header->log_offset = header->slots_offset + 2 * (uint32_t)sizeof(sample.slots[0]) +
                         (uint32_t)sizeof(sample.log);
    header->log_count = 4;
    header->stripes_count = 2;
    header->location_stripes_offset =
        header->log_offset + 4 * (uint32_t)sizeof(sample.log_records[0]);
    header->slot_stripes_offset =
        header->location_stripes_offset + 4 * (uint32_t)sizeof(rmm_segment_stripe_t);
    header->segment_bytes =
        header->slot_stripes_offset + 4 * sizeof(rmm_segment_stripe_t);
    append(image, header, sizeof(*header));
    append(image, sample.schema, sizeof(sample.schema[0]) * header->schema_count);
    append(image, &sample.locations[0], sizeof(sample.locations[0]));
    append(image, &sample.locations[32], sizeof(sample.locations[0]));
    append(image, &sample.slots[0], sizeof(sample.slots[0]));
    append(image, &sample.slots[2], sizeof(sample.slots[0]));
    append(image, &sample.log, sizeof(sample.log));
    append(image, sample.log_records, 4 * sizeof(sample.log_records[0]));
    append(image, sample.location_stripes, 4 * sizeof(rmm_segment_stripe_t));
    append(image, sample.slot_stripes, 4 * sizeof(rmm_segment_stripe_t));
    PROMISE(image->size == header->segment_bytes);
}

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
    append(image, &page, page.locations_offset + 4 * sizeof(rmm_control_location_t));
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
    image_t segment = {.size = 0}, control = {.size = 0};
    rmm_segment_verdict_t verdict;

    if (is_whole_file(data, bytes)) {
        (void)exercise_segment(fill_file(data, bytes));
        (void)exercise_control(fill_file(data, bytes));
        return 0;
    }
    make_segment(&segment);
    change(&segment, data, bytes);
    verdict = exercise_segment(fill_file(segment.bytes, segment.size));
    PROMISE(bytes >= CHANGE_BYTES || verdict == RMM_SEGMENT_GOOD);
    make_control(&control);
    change(&control, data, bytes);
    (void)exercise_control(fill_file(control.bytes, control.size));
    return 0;
}
