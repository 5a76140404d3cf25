/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The segment of a process that ended is made small: a reader finds in it what it found before,
 * and requests that the process did not live to obey are obeyed.
 */
#include "sim/publish/log_case.h"

#include <stddef.h>

#include <rmm/rmm.h>

#include "segment/segment_log.h"
#include "segment/segment_shrink.h"

#define MIB ((size_t)1024 * 1024)

enum { SLOTS_MAX = 4, MESSAGES_MAX = 8 };

/* What a reader finds. */
typedef struct picture {
    uint64_t location[RMM_LOCATION_STAT_COUNT];
    uint64_t slots[SLOTS_MAX][RMM_SLOT_STAT_COUNT];
    uint32_t ids[SLOTS_MAX], slot_count;
    rmm_log_message_t messages[MESSAGES_MAX];
    uint32_t message_count, level, least;
} picture_t;

static picture_t before, after;

static void take_message(const rmm_log_message_t *message, void *arg)
{
    picture_t *picture = arg;

    assert_true(picture->message_count < MESSAGES_MAX);
    picture->messages[picture->message_count++] = *message;
}

static void take_slot(const rmm_segment_t *segment, uint32_t slot, picture_t *picture)
{
    rmm_record_t record;

    if (!rmm__segment_read_slot(segment, slot, &record, NULL)) {
        return;
    }
    assert_true(picture->slot_count < SLOTS_MAX);
    picture->ids[picture->slot_count] = rmm__record_slot(&record)->instance_id;
    for (uint32_t i = 0; i < RMM_SLOT_STAT_COUNT; i++) {
        picture->slots[picture->slot_count][i] = slot_figure(segment, slot, i);
    }
    picture->slot_count++;
}

/* Readers of other languages go by the length. */
static void assert_lengths(const rmm_segment_t *segment, const picture_t *picture)
{
    const rmm_segment_header_t *header = &segment->header;
    const size_t head = offsetof(rmm_segment_log_record_t, text);

    for (uint32_t i = 0; i < picture->message_count; i++) {
        const rmm_log_message_t *message = &picture->messages[i];
        uint64_t place = message->number % header->log_count;
        rmm_segment_log_record_t record;
        off_t at = (off_t)(header->log_offset + place * header->log_stride);

        assert_int_equal(pread(segment->fd, &record, head, at), head);
        assert_int_equal(record.length, strlen(message->text));
    }
}

static void take_picture(const rmm_segment_t *segment, picture_t *picture)
{
    rmm_ring_cursor_t cursor = {0};

    memset(picture, 0, sizeof(*picture));
    for (uint32_t i = 0; i < RMM_LOCATION_STAT_COUNT; i++) {
        picture->location[i] = location_figure(segment, 0, i);
    }
    for (uint32_t i = 0; i < rmm__segment_slot_count(segment); i++) {
        take_slot(segment, i, picture);
    }
    assert_int_equal(
        rmm__segment_read_log(segment, &cursor, true, take_message, picture), 0);
    assert_lengths(segment, picture);
    assert_true(rmm__segment_log_level(segment, &picture->level, &picture->least));
}

static void assert_figures(
    const rmm_stat_desc_t *stats, uint32_t count, const uint64_t *now,
    const uint64_t *expected)
{
    for (uint32_t i = 0; i < count; i++) {
        if (now[i] != expected[i]) {
            fail_msg(
                "%s: %llu and not %llu", stats[i].name, (unsigned long long)now[i],
                (unsigned long long)expected[i]);
        }
    }
}

static void assert_same_message(const rmm_log_message_t *a, const rmm_log_message_t *b)
{
    assert_int_equal(a->number, b->number);
    assert_int_equal(a->time_ns, b->time_ns);
    assert_int_equal(a->thread, b->thread);
    assert_int_equal(a->level, b->level);
    assert_string_equal(a->text, b->text);
}

static void assert_pictures_agree(void)
{
    assert_figures(
        rmm__location_stats, RMM_LOCATION_STAT_COUNT, after.location, before.location);
    assert_int_equal(after.slot_count, before.slot_count);
    for (uint32_t i = 0; i < before.slot_count; i++) {
        assert_int_equal(after.ids[i], before.ids[i]);
        assert_figures(
            rmm__slot_stats, RMM_SLOT_STAT_COUNT, after.slots[i], before.slots[i]);
    }
    assert_int_equal(after.message_count, before.message_count);
    for (uint32_t i = 0; i < before.message_count; i++) {
        assert_same_message(&after.messages[i], &before.messages[i]);
    }
    assert_int_equal(after.level, before.level);
    assert_int_equal(after.least, before.least);
}

/* A pool with 3 MiB in use, 4 at its peak; the first resource leaves its slot empty. */
static void use_and_pause(child_t *self, void *argument)
{
    rmm_resource_t *host, *cuda, *pool;
    void *first, *second;

    CHECK(rmm_host_resource_create(&host) == RMM_OK);
    CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    CHECK(rmm_pool_resource_create(cuda, NULL, &pool) == RMM_OK);
    rmm_resource_release(host);
    CHECK(rmm_resource_alloc(pool, 3 * MIB, 0, NULL, &first) == RMM_OK);
    CHECK(rmm_resource_alloc(pool, MIB, 0, NULL, &second) == RMM_OK);
    rmm_resource_dealloc(pool, second, MIB, 0, NULL);
    CHECK(rmm_log_to_callback(NULL, NULL) == RMM_OK);
    log_one_of_each();
    child_pause(self, 'r');
}

/* As a program that is killed leaves it, with these requests unobeyed. */
static void open_killed(rmm_segment_t *segment, void (*request)(rmm_control_t *control))
{
    rmm_control_t control;
    child_t child;

    child_start_until(&child, use_and_pause, NULL, 'r');
    runtime_segment(runtime, segment);
    if (request != NULL) {
        assert_int_equal(rmm__control_open(&control, runtime->fd, segment), 0);
        request(&control);
        rmm__control_close(&control);
    }
    child_kill(&child);
    take_picture(segment, &before);
    assert_int_equal(before.slot_count, 2);
    assert_true(before.message_count >= 4);
}

static void shrink_and_look(rmm_segment_t *segment)
{
    struct stat status;
    rmm_segment_t small;

    assert_int_equal(rmm__segment_shrink(runtime->fd, segment->name), 0);
    runtime_segment(runtime, &small);
    assert_int_equal(fstat(small.fd, &status), 0);
    assert_true(rmm__segment_is_marked(&status));
    assert_int_equal(runtime_count(runtime, RMM_FILE_SIDE, NULL), 0);
    assert_true(small.bytes <= 32 * 1024 && small.bytes < segment->bytes / 4);
    take_picture(&small, &after);
    rmm__segment_close(&small);
    rmm__segment_close(segment);
}

TEST_CASE_WITH(a_reader_finds_the_same_in_it, log_setup, runtime_teardown)
{
    rmm_segment_t segment;

    open_killed(&segment, NULL);
    shrink_and_look(&segment);
    assert_pictures_agree();
}

static void request_resets_and_a_level(rmm_control_t *control)
{
    assert_int_equal(rmm__control_reset_location_peak(control, 0), 0);
    assert_int_equal(rmm__control_set_log_level(control, RMM_LEVEL_DEBUG), 0);
    for (uint32_t slot = 0; slot < 3; slot++) {
        assert_int_equal(rmm__control_reset_slot_peak(control, slot), 0);
    }
}

TEST_CASE_WITH(pending_requests_are_done, log_setup, runtime_teardown)
{
    rmm_segment_t segment;
    uint64_t *pool;

    open_killed(&segment, request_resets_and_a_level);
    shrink_and_look(&segment);
    before.level = RMM_LEVEL_DEBUG;
    before.location[RMM_LOCATION_STAT_peak_bytes] = 3 * MIB;
    before.location[RMM_LOCATION_STAT_peak_count] = 1;
    pool = before.slots[1];
    assert_int_equal(pool[RMM_SLOT_STAT_peak_bytes], 4 * MIB);
    pool[RMM_SLOT_STAT_peak_bytes] = 3 * MIB;
    pool[RMM_SLOT_STAT_peak_count] = 1;
    assert_pictures_agree();
}

static void request_node_reset(rmm_control_t *control)
{
    assert_int_equal(rmm__control_reset_node_peak(control, 0), 0);
}

TEST_CASE_WITH(the_peaks_of_the_node_are_reset_alone, log_setup, runtime_teardown)
{
    rmm_segment_t segment;

    open_killed(&segment, request_node_reset);
    shrink_and_look(&segment);
    before.location[RMM_LOCATION_STAT_node_peak_bytes] = 3 * MIB;
    before.location[RMM_LOCATION_STAT_node_peak_count] = 1;
    assert_pictures_agree();
}

/* Such a program's segment may have sections that this library does not know. */
TEST_CASE_WITH(one_of_a_newer_program_stays_as_it_is, log_setup, runtime_teardown)
{
    const uint16_t newer = RMM_SEGMENT_MINOR + 1;
    const off_t at = offsetof(rmm_segment_header_t, version_minor);
    rmm_segment_t segment, same;
    int fd;

    open_killed(&segment, NULL);
    fd = openat(runtime->fd, segment.name, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &newer, sizeof(newer), at), sizeof(newer));
    close(fd);
    assert_int_equal(rmm__segment_shrink(runtime->fd, segment.name), -EPROTO);
    runtime_segment(runtime, &same);
    assert_int_equal(same.inode, segment.inode);
    take_picture(&same, &after);
    assert_pictures_agree();
    rmm__segment_close(&same);
    rmm__segment_close(&segment);
}
