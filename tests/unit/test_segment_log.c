/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debug log's ring: what a reader makes of rings in every state that a writer can
 * leave them in, and of those that none would.
 */
#include "harness/harness.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "segment/segment_events.h"
#include "segment/segment_log.h"
#include "unit/segment_sample.h"

static rmm_segment_layout_t sample;

typedef struct heard {
    uint64_t numbers[2 * RMM_LOG_RECORDS];
    size_t count;
    rmm_log_message_t last;
} heard_t;

static void hear(const rmm_log_message_t *message, void *arg)
{
    heard_t *heard = arg;

    assert_true(heard->count < 2 * RMM_LOG_RECORDS);
    heard->numbers[heard->count++] = message->number;
    heard->last = *message;
}

static int make_sample(void **state)
{
    sample_make(&sample);
    return 0;
}

static void put(uint64_t number, const char *text)
{
    rmm_segment_log_record_t *record = &sample.log_records[number % RMM_LOG_RECORDS];

    atomic_init(&record->commit, 2 * number + 2);
    record->level = 4;
    snprintf(record->text, sizeof(record->text), "%s", text);
}

static heard_t read_all(rmm_ring_cursor_t *cursor, bool ended)
{
    heard_t heard = {.count = 0};
    char reason[RMM_SEGMENT_REASON_BYTES];
    rmm_segment_t segment;

    if (rmm__segment_attach(&segment, sample_file(&sample, sizeof(sample)), reason) !=
        RMM_SEGMENT_GOOD) {
        fail_msg("refused: %s", reason);
    }
    assert_int_equal(rmm__segment_read_log(&segment, cursor, ended, hear, &heard), 0);
    rmm__segment_close(&segment);
    return heard;
}

TEST_CASE_WITH(every_message_comes_once_and_in_order, make_sample, NULL)
{
    rmm_ring_cursor_t cursor = {0};
    heard_t heard = read_all(&cursor, false);

    assert_int_equal(heard.count, 3);
    assert_int_equal(heard.numbers[0], 0);
    assert_string_equal(heard.last.text, "message 2");
    assert_int_equal(heard.last.time_ns, 1002);
    assert_int_equal(heard.last.thread, 77);
    assert_int_equal(heard.last.level, 2);
    assert_int_equal(read_all(&cursor, false).count, 0);
    atomic_init(&sample.log.next, 4);
    put(3, "one more");
    heard = read_all(&cursor, false);
    assert_int_equal(heard.count, 1);
    assert_string_equal(heard.last.text, "one more");
    assert_int_equal(cursor.lost, 0);
}

TEST_CASE_WITH(
    a_reader_that_is_too_slow_gets_the_number_of_lost_records, make_sample, NULL)
{
    rmm_ring_cursor_t cursor = {.next = 3};
    heard_t heard;

    for (uint64_t i = 3; i < 1003; i++) {
        put(i, "fast");
    }
    atomic_init(&sample.log.next, 1003);
    heard = read_all(&cursor, false);
    assert_int_equal(heard.count, RMM_LOG_RECORDS);
    assert_int_equal(heard.numbers[0], 1003 - RMM_LOG_RECORDS);
    assert_int_equal(cursor.lost, 1000 - RMM_LOG_RECORDS);
    assert_int_equal(cursor.next, 1003);
}

TEST_CASE_WITH(what_is_being_written_is_waited_for, make_sample, NULL)
{
    rmm_ring_cursor_t cursor = {0};

    atomic_init(&sample.log.next, 5);
    atomic_init(&sample.log_records[3].commit, 2 * 3 + 1);
    put(4, "later");
    assert_int_equal(read_all(&cursor, false).count, 3);
    assert_int_equal(cursor.next, 3);
    put(3, "at last");
    assert_int_equal(read_all(&cursor, false).count, 2);
    assert_int_equal(cursor.lost, 0);
}

TEST_CASE_WITH(a_writer_killed_in_the_middle_loses_one_message, make_sample, NULL)
{
    rmm_ring_cursor_t cursor = {0};

    atomic_init(&sample.log.next, 5);
    atomic_init(&sample.log_records[3].commit, 2 * 3 + 1);
    put(4, "of another thread");
    assert_int_equal(read_all(&cursor, true).count, 4);
    assert_int_equal(cursor.lost, 1);
    assert_int_equal(cursor.next, 5);
}

TEST_CASE_WITH(
    a_thread_that_is_stuck_delays_others_for_a_bounded_time, make_sample, NULL)
{
    rmm_ring_cursor_t cursor = {.next = 3};
    heard_t heard;

    for (uint64_t i = 4; i < 40; i++) {
        put(i, "goes on");
    }
    atomic_init(&sample.log.next, 40);
    atomic_init(&sample.log_records[3].commit, 2 * 3 + 1);
    heard = read_all(&cursor, false);
    assert_int_equal(heard.count, 36);
    assert_int_equal(cursor.lost, 1);
}

TEST_CASE_WITH(nonsense_is_bounded_and_clean, make_sample, NULL)
{
    rmm_ring_cursor_t cursor = {0};
    heard_t heard;

    atomic_init(&sample.log.next, UINT64_MAX);
    heard = read_all(&cursor, true);
    assert_int_equal(heard.count, 0);
    assert_int_equal(cursor.next, UINT64_MAX);

    atomic_init(&sample.log.next, 2); /* it ran backwards */
    assert_int_equal(read_all(&cursor, true).count, 0);

    cursor = (rmm_ring_cursor_t){.next = 1};
    memset(sample.log_records[1].text, '\n', RMM_LOG_TEXT_BYTES);
    heard = read_all(&cursor, true);
    assert_int_equal(heard.count, 1);
    assert_int_equal(strlen(heard.last.text), RMM_LOG_TEXT_BYTES - 1);
    assert_null(strchr(heard.last.text, '\n'));
}

TEST_CASE_WITH(a_segment_may_have_no_log, make_sample, NULL)
{
    char reason[RMM_SEGMENT_REASON_BYTES];
    rmm_ring_cursor_t cursor = {0};
    rmm_segment_t segment;
    uint32_t level, least;
    heard_t heard = {.count = 0};

    sample.header.log_count = 0;
    assert_int_equal(
        rmm__segment_attach(&segment, sample_file(&sample, sizeof(sample)), reason),
        RMM_SEGMENT_GOOD);
    assert_false(rmm__segment_has_log(&segment));
    assert_false(rmm__segment_log_level(&segment, &level, &least));
    assert_int_equal(
        rmm__segment_read_log(&segment, &cursor, false, hear, &heard), -EPROTO);
    rmm__segment_close(&segment);
}

/* As they are written: 1 is trace, 7 is off. */
TEST_CASE_WITH(a_reader_finds_the_log_level, make_sample, NULL)
{
    static const struct {
        uint32_t level, floor;
        bool is_good;
    } words[] = {{1, 1, true},  {7, 7, true},  {0, 3, false},
                 {8, 3, false}, {3, 0, false}, {3, 8, false}};
    char reason[RMM_SEGMENT_REASON_BYTES];
    rmm_segment_t segment;
    uint32_t level, least;

    assert_int_equal(
        rmm__segment_attach(&segment, sample_file(&sample, sizeof(sample)), reason),
        RMM_SEGMENT_GOOD);
    assert_true(rmm__segment_log_level(&segment, &level, &least));
    assert_int_equal(level, 2);
    assert_int_equal(least, 1);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        atomic_init(&sample.log.level, words[i].level);
        sample.log.floor = words[i].floor;
        assert_int_equal(
            pwrite(segment.fd, &sample, sizeof(sample), 0), sizeof(sample));
        assert_int_equal(
            rmm__segment_log_level(&segment, &level, &least), words[i].is_good);
    }
    rmm__segment_close(&segment);
}

TEST_CASE(names_each_log_level)
{
    static const char *const names[] = {"trace", "debug",    "info", "warn",
                                        "error", "critical", "off"};

    for (uint32_t level = 0; level < 7; level++) {
        assert_string_equal(rmm__segment_log_level_name(level), names[level]);
    }
    assert_string_equal(rmm__segment_log_level_name(7), "unknown");
    assert_string_equal(rmm__segment_log_level_name(UINT32_MAX), "unknown");
}

TEST_CASE(a_ring_of_events_is_checked)
{
    rmm_events_header_t header = {
        .magic = RMM_EVENTS_MAGIC,
        .version_major = RMM_SEGMENT_MAJOR,
        .header_bytes = sizeof(header),
        .records_offset = sizeof(header),
        .records_stride = sizeof(rmm_events_record_t),
        .records_count = RMM_EVENTS_RECORDS,
        .ready = 1};
    uint64_t most = sizeof(header) + UINT64_C(1000000) * sizeof(rmm_events_record_t);
    rmm_events_t events;
    int fd = sample_file(&header, sizeof(header));

    assert_int_equal(ftruncate(fd, sizeof(rmm_events_layout_t)), 0);
    assert_int_equal(rmm__events_attach(&events, fd, getuid()), 0);
    assert_int_equal(rmm__events_attach(&events, fd, getuid() + 1), -EPERM);
    /* a million: all of it may be new at once, and is printed while others wait */
    assert_int_equal(ftruncate(fd, (off_t)most), 0);
    assert_int_equal(rmm__events_attach(&events, fd, getuid()), -EPROTO);
    assert_int_equal(ftruncate(fd, sizeof(rmm_events_layout_t)), 0);
    header.records_count = 0;
    assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
    assert_int_equal(rmm__events_attach(&events, fd, getuid()), -EPROTO);
    close(fd);
}
