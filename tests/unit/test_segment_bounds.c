/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What another process wrote is read within bounds: the rings of events and the reports of blocks,
 * with the largest and smallest values that are believed, and the first that are not.
 */
#include "harness/harness.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "segment/segment_blocks_reader.h"
#include "segment/segment_events.h"
#include "unit/segment_sample.h"

/* --- events --------------------------------------------------------------------------- */

enum { EVENTS = 4, EVENT_STRIDE = 72, EVENTS_AT = 192 };

typedef struct events_file {
    rmm_events_header_t header;
    unsigned char bytes[8192];
} events_file_t;

static events_file_t ring;
static rmm_events_t events;

/* With a longer header, and longer records. */
static void make_ring(void)
{
    memset(&ring, 0, sizeof(ring));
    ring.header = (rmm_events_header_t){
        .magic = RMM_EVENTS_MAGIC,
        .version_major = RMM_SEGMENT_MAJOR,
        .version_minor = 99,
        .header_bytes = 136,
        .records_offset = EVENTS_AT,
        .records_stride = EVENT_STRIDE,
        .records_count = EVENTS,
        .ready = 1,
        .next = 3};
    for (uint64_t i = 0; i < 3; i++) {
        const rmm_events_record_t record = {
            .commit = 2 * i + 2,
            .time_ns = 100 + i,
            .pointer = 200 + i,
            .bytes = 300 + i,
            .stream = 400 + i,
            .thread = 500 + (uint32_t)i,
            .action = (uint32_t)i};

        memcpy((char *)&ring + EVENTS_AT + i * EVENT_STRIDE, &record, sizeof(record));
    }
}

static int attach_ring(size_t bytes)
{
    int fd = sample_file(&ring, bytes);
    int error = rmm__events_attach(&events, fd, getuid());

    assert_int_equal(events.fd, error == 0 ? fd : -1);
    close(fd);
    return error;
}

/* After this change of its header. */
#define RING(change, error)                                                            \
    do {                                                                               \
        make_ring();                                                                   \
        ring.header.change;                                                            \
        assert_int_equal(attach_ring(sizeof(ring)), error);                            \
    } while (0)

TEST_CASE(a_ring_holds_together_or_is_refused)
{
    RING(version_minor = 0, 0);
    RING(magic++, -EPROTO);
    RING(version_major++, -EPROTO);
    RING(ready = 0, -EPROTO);
    RING(header_bytes = sizeof(rmm_events_header_t), 0);
    RING(header_bytes = sizeof(rmm_events_header_t) - 8, -EPROTO);
    RING(header_bytes = EVENTS_AT, 0);
    RING(header_bytes = EVENTS_AT + 8, -EPROTO);
    RING(records_offset = EVENTS_AT + 4, -EPROTO);
    RING(records_stride = sizeof(rmm_events_record_t), 0);
    RING(records_stride = sizeof(rmm_events_record_t) - 8, -EPROTO);
    RING(records_stride = EVENT_STRIDE + 4, -EPROTO);
    RING(records_stride = 1024, 0);
    RING(records_stride = 1032, -EPROTO);
    RING(records_count = 1, 0);
    RING(records_count = 0, -EPROTO);
    RING(records_count = UINT32_MAX, -EPROTO);
    make_ring();
    assert_int_equal(attach_ring(EVENTS_AT + EVENTS * EVENT_STRIDE), 0);
    assert_int_equal(attach_ring(EVENTS_AT + EVENTS * EVENT_STRIDE - 1), -EPROTO);
    assert_int_equal(attach_ring(sizeof(ring.header) - 1), -EPROTO);
}

static void see_event(const rmm_event_t *event, void *arg)
{
    uint64_t *seen = arg, i = (*seen)++;

    assert_int_equal(event->time_ns, 100 + i);
    assert_int_equal(event->pointer, 200 + i);
    assert_int_equal(event->bytes, 300 + i);
    assert_int_equal(event->stream, 400 + i);
    assert_int_equal(event->thread, 500 + i);
    assert_int_equal(event->action, i);
}

TEST_CASE(events_are_where_the_header_says)
{
    rmm_ring_cursor_t cursor = {0};
    uint64_t seen = 0;

    make_ring();
    assert_int_equal(
        rmm__events_attach(&events, sample_file(&ring, sizeof(ring)), getuid()), 0);
    assert_int_equal(rmm__events_read(&events, &cursor, true, see_event, &seen), 0);
    assert_int_equal(seen, 3);
    rmm__events_close(&events);
    assert_int_equal(events.fd, -1);
}

/* --- blocks --------------------------------------------------------------------------- */

enum { ROWS = 300, ROW_STRIDE = 40, RESOURCE_STRIDE = 72, RESOURCES = 3 };

typedef struct blocks_sample {
    rmm_blocks_header_t header;
    unsigned char resources[RESOURCES][RESOURCE_STRIDE];
    unsigned char rows[ROWS][ROW_STRIDE];
} blocks_sample_t;

static blocks_sample_t report;
static rmm_blocks_file_t blocks;

static void put_resource(
    uint32_t index, uint32_t resource_id, uint32_t first_row, uint32_t row_count)
{
    const rmm_blocks_resource_t resource = {
        .resource_id = resource_id, .first_row = first_row, .row_count = row_count};

    memcpy(report.resources[index], &resource, sizeof(resource));
}

static void put_row(uint32_t index, rmm_blocks_row_t row)
{
    memcpy(report.rows[index], &row, sizeof(row));
}

static void make_report(void)
{
    memset(&report, 0, sizeof(report));
    report.header = (rmm_blocks_header_t){
        .magic = RMM_BLOCKS_MAGIC,
        .version_major = RMM_BLOCKS_MAJOR,
        .version_minor = 99,
        .header_bytes = sizeof(report.header),
        .file_bytes = sizeof(report),
        .ready = 1,
        .resources_offset = offsetof(blocks_sample_t, resources),
        .resources_stride = RESOURCE_STRIDE,
        .resources_count = RESOURCES,
        .rows_offset = offsetof(blocks_sample_t, rows),
        .rows_stride = ROW_STRIDE,
        .rows_count = ROWS};
    put_resource(0, 5, 0, 1);
    put_resource(1, 6, 1, ROWS - 1);
    put_resource(2, 7, ROWS, 0);
    for (uint32_t i = 0; i < ROWS; i++) {
        put_row(
            i,
            (rmm_blocks_row_t){
                .address = 1000 * (ROWS - i), .bytes = 500, .state = RMM_BLOCK_USED});
    }
}

/* A file of this size, whose end is a hole. */
static int attach_report(off_t bytes)
{
    int fd = sample_file(&report, sizeof(report));
    int error;

    assert_int_equal(ftruncate(fd, bytes), 0);
    error = rmm__block_report_attach(&blocks, fd);
    assert_int_equal(blocks.fd, error == 0 ? fd : -1);
    close(fd);
    return error;
}

#define REPORT(change, error)                                                          \
    do {                                                                               \
        make_report();                                                                 \
        report.header.change;                                                          \
        assert_int_equal(attach_report(sizeof(report)), error);                        \
    } while (0)

TEST_CASE(a_report_holds_together_or_is_refused)
{
    const uint64_t most_rows = (uint64_t)RMM_BLOCKS_ROWS_MAX * ROW_STRIDE;

    REPORT(version_minor = 0, 0);
    REPORT(magic++, -EPROTO);
    REPORT(version_major++, -EPROTO);
    REPORT(ready = 0, -EAGAIN);
    REPORT(header_bytes -= 8, -EPROTO);
    REPORT(header_bytes += 8, -EPROTO); /* the first resource begins in it */
    REPORT(file_bytes++, -EPROTO);
    REPORT(file_bytes--, -EPROTO); /* the last row does not end in it */
    REPORT(rows_count++, -EPROTO);
    REPORT(rows_stride = sizeof(rmm_blocks_row_t) - 8, -EPROTO);
    REPORT(resources_stride = sizeof(rmm_blocks_resource_t) - 8, -EPROTO);
    REPORT(resources_count = UINT32_MAX, -EPROTO);
    make_report();
    report.header.resources_count = RMM_BLOCKS_RESOURCES_MAX;
    report.header.file_bytes = RMM_BLOCKS_FILE_BYTES_MAX;
    assert_int_equal(attach_report(RMM_BLOCKS_FILE_BYTES_MAX), 0);
    assert_int_equal(attach_report(RMM_BLOCKS_FILE_BYTES_MAX + 1), -EPROTO);
    report.header.resources_count++;
    assert_int_equal(attach_report(RMM_BLOCKS_FILE_BYTES_MAX), -EPROTO);
    make_report();
    report.header.rows_count = RMM_BLOCKS_ROWS_MAX;
    report.header.file_bytes = report.header.rows_offset + most_rows + ROW_STRIDE;
    if (report.header.file_bytes <= RMM_BLOCKS_FILE_BYTES_MAX) {
        assert_int_equal(attach_report((off_t)report.header.file_bytes), 0);
        report.header.rows_count++;
        assert_int_equal(attach_report((off_t)report.header.file_bytes), -EPROTO);
    }
}

static void open_report(void)
{
    assert_int_equal(
        rmm__block_report_attach(&blocks, sample_file(&report, sizeof(report))), 0);
}

TEST_CASE(the_rows_of_a_resource_are_its_own)
{
    static rmm_blocks_row_t rows[ROWS];
    rmm_blocks_resource_t resource;

    make_report();
    open_report();
    assert_true(rmm__block_report_find(&blocks, 6, &resource));
    assert_int_equal(resource.first_row, 1);
    assert_int_equal(rmm__block_report_read(&blocks, &resource, rows), ROWS - 1);
    assert_int_equal(rows[0].address, 1000 * (ROWS - 1));
    assert_int_equal(rows[ROWS - 2].address, 1000);
    rmm__block_report_sort(rows, ROWS - 1);
    for (uint32_t i = 0; i < ROWS - 1; i++) {
        assert_int_equal(rows[i].address, 1000 * (i + 1));
    }
    assert_true(rmm__block_report_find(&blocks, 7, &resource));
    assert_int_equal(rmm__block_report_read(&blocks, &resource, rows), 0);
    assert_false(rmm__block_report_find(&blocks, 8, &resource));
    assert_false(rmm__block_report_resource_at(&blocks, RESOURCES, &resource));
    rmm__block_report_close(&blocks);
    put_resource(0, 5, 1, ROWS); /* one more than there are */
    put_resource(1, 6, ROWS + 1, 0);
    open_report();
    assert_false(rmm__block_report_find(&blocks, 5, &resource));
    assert_false(rmm__block_report_find(&blocks, 6, &resource));
    assert_true(rmm__block_report_find(&blocks, 7, &resource));
    rmm__block_report_close(&blocks);
}

TEST_CASE(a_row_that_cannot_be_is_left_out)
{
    static const struct {
        rmm_blocks_row_t row;
        bool is_sound;
    } cases[] = {
        {{.address = 8, .bytes = 8, .state = RMM_BLOCK_CHUNK}, true},
        {{.address = 8, .bytes = 8, .state = RMM_BLOCK_STATES - 1}, true},
        {{.address = 8, .bytes = 8, .state = RMM_BLOCK_STATES}, false},
        {{.address = 8, .bytes = 8, .state = 0}, false},
        {{.address = 8, .bytes = 0, .state = RMM_BLOCK_USED}, false},
        {{.address = 8, .bytes = 1, .state = RMM_BLOCK_USED}, true},
        {{.address = UINT64_MAX - 8, .bytes = 8, .state = RMM_BLOCK_USED}, true},
        {{.address = UINT64_MAX - 8, .bytes = 9, .state = RMM_BLOCK_USED}, false},
        {{.address = 8, .bytes = 8, .padding = 8, .state = RMM_BLOCK_USED}, true},
        {{.address = 8, .bytes = 8, .padding = 9, .state = RMM_BLOCK_USED}, false}};
    rmm_blocks_resource_t resource;
    rmm_blocks_row_t row;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        make_report();
        put_row(0, cases[i].row);
        open_report();
        assert_true(rmm__block_report_resource_at(&blocks, 0, &resource));
        assert_int_equal(
            rmm__block_report_read(&blocks, &resource, &row), cases[i].is_sound);
        rmm__block_report_close(&blocks);
    }
}

/* A chunk comes before the blocks in it, which begin where it does. */
TEST_CASE(rows_are_sorted_by_address_and_state)
{
    rmm_blocks_row_t rows[] = {
        {.address = 9, .state = RMM_BLOCK_USED},
        {.address = 5, .state = RMM_BLOCK_FREE},
        {.address = 5, .state = RMM_BLOCK_CHUNK},
        {.address = 1, .state = RMM_BLOCK_LOST}};

    rmm__block_report_sort(rows, 4);
    assert_int_equal(rows[0].address, 1);
    assert_int_equal(rows[1].state, RMM_BLOCK_CHUNK);
    assert_int_equal(rows[2].state, RMM_BLOCK_FREE);
    assert_int_equal(rows[3].address, 9);
}
