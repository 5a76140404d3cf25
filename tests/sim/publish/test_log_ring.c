/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debug log in the segment: what one process writes another reads, whole and once, and
 * an operator sets the level of a running program.
 */
#include "sim/publish/log_case.h"

#include <pthread.h>

#include <rmm/host_resource.h>

#include "core/clock.h"
#include "segment/segment_log.h"

#define HOUR_NS UINT64_C(3600000000000)

static void open_segment(void)
{
    rmm_resource_t *host;

    CHECK(rmm_host_resource_create(&host) == RMM_OK);
    rmm_resource_release(host);
}

static void logs_and_waits(child_t *self, void *argument)
{
    CHECK(rmm_log_to_callback(NULL, NULL) == RMM_OK);
    open_segment();
    log_one_of_each();
    child_say(self, 'l');
    while (child_hear(self) != 0) {
        log_one_of_each();
        child_say(self, 'l');
    }
}

typedef struct tally {
    uint64_t count, bad;
    uint64_t next[8];    /* of each writing thread */
    uint32_t threads[8]; /* what its messages name */
    rmm_log_message_t message;
    char last[64];
} tally_t;

static void tally_message(const rmm_log_message_t *message, void *arg)
{
    tally_t *tally = arg;

    tally->count++;
    tally->message = *message;
    snprintf(tally->last, sizeof(tally->last), "%.63s", message->text);
}

TEST_CASE(another_process_reads_it_and_sets_the_level)
{
    rmm_ring_cursor_t cursor = {0};
    rmm_control_t control;
    rmm_segment_t segment;
    uint32_t level, least;
    tally_t tally = {0};
    child_t child;

    child_start_until(&child, logs_and_waits, NULL, 'l');
    runtime_segment(runtime, &segment);
    assert_int_equal(
        rmm__segment_read_log(&segment, &cursor, false, tally_message, &tally), 0);
    assert_int_equal(tally.count, 4);
    assert_string_equal(tally.last, "a critical one");
    assert_int_equal(tally.message.level, RMM_LEVEL_CRITICAL);
    assert_int_equal(tally.message.thread, child.pid);
    assert_in_range(rmm__clock_ns(CLOCK_REALTIME) - tally.message.time_ns, 0, HOUR_NS);
    assert_true(rmm__segment_log_level(&segment, &level, &least));
    assert_int_equal(level, RMM_LEVEL_INFO);
    assert_int_equal(least, RMM_LOG_FLOOR);

    assert_int_equal(rmm__control_open(&control, runtime->fd, &segment), 0);
    assert_false(rmm__control_log_level(&control, &level));
    assert_int_equal(rmm__control_set_log_level(&control, 7), -EINVAL);
    assert_int_equal(rmm__control_set_log_level(&control, RMM_LEVEL_DEBUG), 0);
    assert_true(rmm__control_log_level(&control, &level));
    assert_int_equal(level, RMM_LEVEL_DEBUG);
    child_go_on_until(&child, 'l');
    assert_int_equal(
        rmm__segment_read_log(&segment, &cursor, false, tally_message, &tally), 0);
    assert_int_equal(tally.count, 4 + 5);
    rmm__control_close(&control);
    rmm__segment_close(&segment);
    assert_int_equal(child_wait(&child), 0);
    runtime_empty(runtime);
}

#define WRITERS 4
#define MESSAGES 20000

static void *write_numbered(void *argument)
{
    unsigned writer = *(unsigned *)argument;

    for (unsigned i = 0; i < MESSAGES; i++) {
        rmm__log_info("%u %u %u", writer, i, writer + i);
    }
    return NULL;
}

static void logs_from_threads(child_t *self, void *argument)
{
    pthread_t threads[WRITERS];
    unsigned numbers[WRITERS];

    CHECK(rmm_log_to_callback(NULL, NULL) == RMM_OK);
    open_segment();
    child_say(self, 'r');
    for (unsigned i = 0; i < WRITERS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, write_numbered, &numbers[i]) == 0);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void check_numbered(const rmm_log_message_t *message, void *arg)
{
    tally_t *tally = arg;
    unsigned writer, number, sum;
    bool whole =
        sscanf(message->text, "%u %u %u", &writer, &number, &sum) == 3 &&
        writer < WRITERS && sum == writer + number && number >= tally->next[writer] &&
        (tally->next[writer] == 0 || message->thread == tally->threads[writer]);

    tally->count++;
    if (whole) {
        tally->next[writer] = number + 1;
        tally->threads[writer] = message->thread;
    } else {
        tally->bad++;
    }
}

/* Read while they write: whatever arrives is whole and in order, and none is lost but
 * those that are counted. */
TEST_CASE(threads_write_whole_messages)
{
    rmm_ring_cursor_t cursor = {0};
    rmm_segment_t segment;
    tally_t tally = {0};
    child_t child;

    child_start_until(&child, logs_from_threads, NULL, 'r');
    runtime_segment(runtime, &segment);
    while (rmm__segment_is_live(&segment)) {
        assert_int_equal(
            rmm__segment_read_log(&segment, &cursor, false, check_numbered, &tally), 0);
    }
    assert_int_equal(child_wait(&child), 0);
    assert_int_equal(
        rmm__segment_read_log(&segment, &cursor, true, check_numbered, &tally), 0);
    assert_int_equal(tally.bad, 0);
    assert_int_equal(tally.count + cursor.lost, WRITERS * MESSAGES);
    assert_true(tally.count >= RMM_LOG_RECORDS / 2); /* the last ones, at least */
    for (unsigned i = 1; i < WRITERS && tally.next[i] != 0; i++) {
        assert_int_not_equal(tally.threads[i], tally.threads[0]);
    }
    rmm__segment_close(&segment);
    runtime_empty(runtime);
}

static void logs_for_ever(child_t *self, void *argument)
{
    unsigned writer = 0;

    CHECK(rmm_log_to_callback(NULL, NULL) == RMM_OK);
    open_segment();
    child_say(self, 'r');
    for (;;) {
        write_numbered(&writer);
    }
}

TEST_CASE(a_killed_writer_leaves_a_log_that_can_be_read)
{
    for (int round = 0; round < 20; round++) {
        rmm_ring_cursor_t cursor = {0};
        rmm_segment_t segment;
        tally_t tally = {0};
        child_t child;

        child_start_until(&child, logs_for_ever, NULL, 'r');
        usleep(500 + 137 * (unsigned)round);
        child_kill(&child);
        runtime_segment(runtime, &segment);
        assert_int_equal(
            rmm__segment_read_log(&segment, &cursor, true, tally_message, &tally), 0);
        assert_true(tally.count <= RMM_LOG_RECORDS);
        rmm__segment_close(&segment);
        runtime_empty(runtime);
    }
}

int main(void)
{
    return harness_run_cases(log_setup, runtime_teardown);
}
