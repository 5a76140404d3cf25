/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changes while a reader reads (amid_pread.h). What the reader then shows was true at
 * one moment, or is marked as torn, or counted as lost.
 */
#include "harness/harness.h"

#include <string.h>
#include <unistd.h>

#include "segment/segment_log.h"
#include "unit/amid_pread.h"
#include "unit/segment_sample.h"

static rmm_segment_layout_t sample;

/* The sample's bytes as they are now, from `at` on. */
static void put(int fd, const void *at, size_t bytes)
{
    off_t offset = (off_t)((const char *)at - (const char *)&sample);

    assert_int_equal(pwrite(fd, at, bytes, offset), (ssize_t)bytes);
}

static void attach_sample(rmm_segment_t *segment)
{
    char reason[RMM_SEGMENT_REASON_BYTES];

    if (rmm__segment_attach(segment, sample_file(&sample, sizeof(sample)), reason) !=
        RMM_SEGMENT_GOOD) {
        fail_msg("refused: %s", reason);
    }
}

static int make_sample(void **state)
{
    amid = NULL;
    sample_make(&sample);
    return 0;
}

static bool is_slot_0(uint64_t offset)
{
    return offset == offsetof(rmm_segment_layout_t, slots);
}

/* --- slots -------------------------------------------------------------------------- */

static unsigned times;

static void count_an_event(int fd, uint64_t offset)
{
    if (is_slot_0(offset) && times != 0) {
        times--;
        sample.slots[0].sequence += 2;
        sample.slots[0].growth_count += 1;
        sample.slots[0].cross_stream_count += 1;
        put(fd, &sample.slots[0], sizeof(sample.slots[0]));
    }
}

static void see_slot_0(rmm_segment_t *segment, bool *torn, uint64_t figures[2])
{
    rmm_record_t record;

    assert_true(rmm__segment_read_slot(segment, 0, &record, torn));
    assert_true(rmm__segment_slot_stat(
        segment, &record, RMM_SLOT_STAT_growth_count, &figures[0]));
    assert_true(rmm__segment_slot_stat(
        segment, &record, RMM_SLOT_STAT_cross_stream_count, &figures[1]));
}

/* The figures are in the two halves of the record. */
TEST_CASE_WITH(figures_of_two_moments_are_not_shown_as_one, make_sample, NULL)
{
    rmm_segment_t segment;
    uint64_t figures[2];
    bool torn = true;

    sample.slots[0].growth_count = sample.slots[0].cross_stream_count = 1000;
    attach_sample(&segment);
    amid = count_an_event;
    times = 3;
    see_slot_0(&segment, &torn, figures);
    assert_false(torn);
    assert_int_equal(figures[0], 1003);
    assert_int_equal(figures[1], 1003);
    times = UINT32_MAX; /* all the while */
    see_slot_0(&segment, &torn, figures);
    assert_true(torn);
    amid = NULL;
    rmm__segment_close(&segment);
}

static void change_hands(int fd, uint64_t offset)
{
    if (is_slot_0(offset) && times != 0 && --times == 0) {
        sample.slots[0].generation += 2;
        strcpy(sample.slots[0].name, "another");
        sample.slots[0].cross_stream_count = 7;
        put(fd, &sample.slots[0], sizeof(sample.slots[0]));
    }
}

TEST_CASE_WITH(a_slot_that_changes_hands_is_one_or_the_other, make_sample, NULL)
{
    rmm_segment_t segment;
    rmm_record_t record;
    uint64_t figure;

    attach_sample(&segment);
    amid = change_hands;
    times = 2; /* in the record: its head was read before */
    assert_true(rmm__segment_read_slot(&segment, 0, &record, NULL));
    assert_int_equal(times, 0);
    assert_string_equal(rmm__record_slot(&record)->name, "another");
    assert_true(rmm__segment_slot_stat(
        &segment, &record, RMM_SLOT_STAT_cross_stream_count, &figure));
    assert_int_equal(figure, 7);
    amid = NULL;
    rmm__segment_close(&segment);
}

/* --- batches ------------------------------------------------------------------------ */

/* Slots 0 to 2 of a batch, of which the sample has two. */
static void fill_batch(
    const rmm_segment_t *segment, void (*hook)(int fd, uint64_t offset),
    rmm_slot_batch_t *batch)
{
    amid = hook;
    assert_true(rmm__segment_begin_batch(segment, 0, 3, batch));
    rmm__segment_fill_batch(segment, batch);
    amid = NULL;
    assert_true(batch->is_filled);
}

static uint64_t slot_figure(
    const rmm_segment_t *segment, const rmm_record_t *record, rmm_slot_stat_t stat)
{
    uint64_t figure = 0;

    assert_true(rmm__segment_slot_stat(segment, record, stat, &figure));
    return figure;
}

TEST_CASE_WITH(a_batch_has_what_single_reads_have, make_sample, NULL)
{
    static rmm_slot_batch_t batch;
    rmm_segment_t segment;
    uint32_t tries = 4;

    sample.slot_stripes[0][3].padding_added += 100;
    sample.slot_stripes[2][1].padding_added += 7;
    attach_sample(&segment);
    fill_batch(&segment, NULL, &batch);
    for (uint32_t i = 0; i < 3; i++) {
        rmm_record_t alone = {.bytes = {0}}, together = {.bytes = {0}};
        bool is_there = rmm__segment_read_slot(&segment, i, &alone, NULL);

        assert_int_equal(
            rmm__segment_batch_slot(&segment, &batch, i, &together, NULL, &tries),
            is_there);
        assert_memory_equal(together.bytes, alone.bytes, sizeof(alone.bytes));
    }
    assert_false(rmm__segment_begin_batch(&segment, 255, 2, &batch));
    assert_false(rmm__segment_begin_batch(&segment, UINT32_MAX, 1, &batch));
    assert_false(rmm__segment_begin_batch(
        &segment, 0, rmm__segment_batch_slots(&segment) + 1, &batch));
    rmm__segment_close(&segment);
}

/* Between the table's two reads. */
TEST_CASE_WITH(a_slot_that_changes_during_a_batch_is_read_again, make_sample, NULL)
{
    static rmm_slot_batch_t batch;
    rmm_segment_t segment;
    rmm_record_t record;
    uint32_t tries = 4;
    bool torn = true;

    attach_sample(&segment);
    times = 1;
    fill_batch(&segment, change_hands, &batch);
    assert_int_equal(times, 0);
    assert_true(rmm__segment_batch_slot(&segment, &batch, 0, &record, &torn, &tries));
    assert_string_equal(rmm__record_slot(&record)->name, "another");
    assert_int_equal(
        slot_figure(&segment, &record, RMM_SLOT_STAT_cross_stream_count), 7);
    assert_false(torn);
    rmm__segment_close(&segment);
}

static void count_alone(int fd, uint64_t offset)
{
    if (is_slot_0(offset) && times != 0 && --times == 0) {
        sample.slots[0].cross_stream_count += 1;
        put(fd, &sample.slots[0], sizeof(sample.slots[0]));
    }
}

/* A resource without a lock has no sequence. */
TEST_CASE_WITH(
    a_figure_that_changes_alone_during_a_batch_is_read_again, make_sample, NULL)
{
    static rmm_slot_batch_t batch;
    rmm_segment_t segment;
    rmm_record_t record;
    uint32_t tries = 4;
    const uint64_t count = sample.slots[0].cross_stream_count;

    attach_sample(&segment);
    times = 1;
    fill_batch(&segment, count_alone, &batch);
    assert_int_equal(times, 0);
    assert_true(rmm__segment_batch_slot(&segment, &batch, 0, &record, NULL, &tries));
    assert_int_equal(
        slot_figure(&segment, &record, RMM_SLOT_STAT_cross_stream_count), count + 1);
    rmm__segment_close(&segment);
}

/* --- stripes ------------------------------------------------------------------------ */

static void pad_a_block(int fd, uint64_t offset)
{
    if (is_slot_0(offset) && times != 0 && --times == 0) {
        sample.slot_stripes[0][3].padding_added += 100;
        put(fd, sample.slot_stripes[0], sizeof(sample.slot_stripes[0]));
    }
}

static void unpad_a_block(int fd, uint64_t offset)
{
    if (is_slot_0(offset) && times != 0 && --times == 0) {
        sample.slot_stripes[0][5].padding_removed += 100;
        put(fd, sample.slot_stripes[0], sizeof(sample.slot_stripes[0]));
    }
}

static uint64_t free_bytes_of_slot_0(void (*hook)(int fd, uint64_t offset))
{
    rmm_segment_t segment;
    rmm_record_t record;
    uint64_t value = 0;

    attach_sample(&segment);
    amid = hook;
    times = 2;
    assert_true(rmm__segment_read_slot(&segment, 0, &record, NULL));
    amid = NULL;
    assert_int_equal(times, 0);
    assert_true(
        rmm__segment_slot_stat(&segment, &record, RMM_SLOT_STAT_free_bytes, &value));
    rmm__segment_close(&segment);
    return value;
}

/* Free is what is not live: while blocks come and go, all that was live at any time. */
TEST_CASE_WITH(what_is_free_is_never_more_than_it_was, make_sample, NULL)
{
    sample.slots[0].flags = RMM_SLOT_FREE_IS_REST;
    sample.slots[0].free_bytes = 10000;
    sample.slots[0].current_bytes = 1000;
    sample.slots[0].padding_bytes = 0;
    assert_int_equal(free_bytes_of_slot_0(pad_a_block), 8900);
    assert_int_equal(free_bytes_of_slot_0(unpad_a_block), 8900);
}

/* --- a ring ------------------------------------------------------------------------- */

static void overwrite_message_0(int fd, uint64_t offset)
{
    rmm_segment_log_record_t *record = &sample.log_records[0];

    if (offset == offsetof(rmm_segment_layout_t, log_records) && times != 0) {
        times = 0;
        record->commit = 2 * RMM_LOG_RECORDS + 2;
        put(fd, record, sizeof(*record));
    }
}

static void hear(const rmm_log_message_t *message, void *arg)
{
    uint64_t *sum = arg;

    *sum += 10 + message->number;
}

TEST_CASE_WITH(a_message_that_is_overwritten_meanwhile_is_lost, make_sample, NULL)
{
    rmm_ring_cursor_t cursor = {0};
    rmm_segment_t segment;
    uint64_t sum = 0;

    attach_sample(&segment);
    amid = overwrite_message_0;
    times = 1;
    assert_int_equal(rmm__segment_read_log(&segment, &cursor, false, hear, &sum), 0);
    amid = NULL;
    assert_int_equal(times, 0);
    assert_int_equal(sum, 11 + 12); /* without 0 */
    assert_int_equal(cursor.lost, 1);
    assert_int_equal(cursor.next, 3);
    rmm__segment_close(&segment);
}
