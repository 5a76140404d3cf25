/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are read like a pipe, over models made by hand.
 */
#include "model_fixture.h"

#include "model/journal.h"
#include "model/node_events.h"
#include "render/stream.h"
#include "support/log_line.h"

#define SECOND_NS 1000000000ull
#define ROUNDS 3u /* of a full ring: more than one piece of the journal */

static void write_ring(const member_t *member, uint64_t first)
{
    rmm_segment_log_record_t record = {.thread = 7, .level = 2};
    memset(record.text, 'x', RMM_LOG_TEXT_BYTES - 1);
    for (uint64_t number = first; number < first + RMM_LOG_RECORDS; number++) {
        size_t before = number % RMM_LOG_RECORDS * sizeof(record);
        off_t at = (off_t)(offsetof(rmm_segment_layout_t, log_records) + before);
        atomic_init(&record.commit, 2 * number + 2);
        assert_int_equal(
            pwrite(member->segment.fd, &record, sizeof(record), at), sizeof(record));
    }
    uint64_t next = first + RMM_LOG_RECORDS;
    assert_int_equal(
        pwrite(
            member->segment.fd, &next, sizeof(next),
            (off_t)offsetof(rmm_segment_layout_t, log)),
        sizeof(next));
}

static size_t lines_of(const text_t *text)
{
    size_t lines = 0;
    for (size_t i = 0; i < text->length; i++) {
        lines += text->data[i] == '\n';
    }
    return lines;
}

TEST_CASE(a_long_log_comes_in_whole_lines)
{
    fixture_t *fixture = open_fixture();
    model_t *model = &fixture->model;
    model->journal = journal_open(0, &model->budget);
    const member_t *member = fixture_process(fixture, 4711);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        write_ring(member, round * RMM_LOG_RECORDS);
        journal_collect(model->journal, model);
    }
    stream_t *pipe = stream_open((node_t){DIR_ROOT, FILE_log_pipe, 0, 0}, 0, 0, NULL);
    text_t text;
    size_t lines = 0, pieces = 0;
    text_init(&text);
    while (stream_fetch(pipe, model) == STREAM_DATA) {
        text_clear(&text);
        stream_take(pipe, SIZE_MAX, &text);
        assert_int_equal(text.data[text.length - 1], '\n');
        lines += lines_of(&text);
        pieces++;
    }
    assert_true(pieces > 1);
    assert_int_equal(lines, ROUNDS * RMM_LOG_RECORDS);
    text_fini(&text);
    stream_close(pipe);
    journal_close(model->journal);
    end_fixture(fixture);
}

static size_t node_log_lines(const model_t *model)
{
    text_t text;
    journal_collect(model->journal, model);
    text_init(&text);
    journal_read(model->journal, 1, 0, 0, SIZE_MAX, &text);
    size_t lines = lines_of(&text);
    text_fini(&text);
    return lines;
}

/* Its last words count; what anybody writes there later are not its own. */
TEST_CASE(a_program_that_ended_logs_no_more)
{
    fixture_t *fixture = open_fixture();
    model_t *model = &fixture->model;
    model->journal = journal_open(0, &model->budget);
    member_t *member = fixture_process(fixture, 4711);
    write_ring(member, 0);
    assert_int_equal(node_log_lines(model), RMM_LOG_RECORDS);
    write_ring(member, RMM_LOG_RECORDS);
    member->state = MEMBER_EXITED;
    assert_int_equal(node_log_lines(model), 2 * RMM_LOG_RECORDS);
    write_ring(member, 2 * RMM_LOG_RECORDS);
    assert_int_equal(node_log_lines(model), 2 * RMM_LOG_RECORDS);
    journal_close(model->journal);
    end_fixture(fixture);
}

/* A user who is over budget takes no memory from the others. */
TEST_CASE(what_the_budget_refuses_takes_no_memory)
{
    fixture_t *fixture = open_fixture();
    model_t *model = &fixture->model;
    memory_t *memory = &model->budget.memory;
    const uid_t uid = 4711;
    uint64_t most = budget_limit(&model->budget, uid, BUDGET_LOG_BYTES);
    memory_find_group(memory, "/proc/nowhere", "0::/\n");
    memory->credit = MEMORY_CREDIT_BYTES;
    model->journal = journal_open(0, &model->budget);
    const member_t *member = fixture_process(fixture, 4711);
    member->process->uid = uid;
    assert_true(budget_take(&model->budget, uid, BUDGET_LOG_BYTES, most));
    write_ring(member, 0);
    journal_collect(model->journal, model);
    assert_true(budget_refused(&model->budget, uid, BUDGET_LOG_BYTES) > 0);
    assert_int_equal(memory->credit, MEMORY_CREDIT_BYTES);
    journal_close(model->journal);
    end_fixture(fixture);
}

static void write_error(const member_t *member, uint64_t time_ns)
{
    rmm_segment_log_record_t record = {
        .thread = 7, .level = log_line_error_level(), .time_ns = time_ns, .text = "no"};
    const uint64_t next = 1;
    atomic_init(&record.commit, 2);
    assert_int_equal(
        pwrite(
            member->segment.fd, &record, sizeof(record),
            (off_t)offsetof(rmm_segment_layout_t, log_records)),
        sizeof(record));
    assert_int_equal(
        pwrite(
            member->segment.fd, &next, sizeof(next),
            (off_t)offsetof(rmm_segment_layout_t, log)),
        sizeof(next));
}

static bool count_error(const node_event_t *event, void *arg)
{
    *(uint32_t *)arg += event->type == EVENT_ERROR;
    return true;
}

/* How many events an error is that a program reported so long after the daemon's start, whose clock
 * has been set back by an hour since. */
static uint32_t events_of_an_error(int64_t later_ns)
{
    const hiding_t hiding = {.level = HIDING_OFF};
    const events_reader_t reader = {&hiding, 0, false};
    fixture_t *fixture = open_fixture();
    model_t *model = &fixture->model;
    uint64_t start_ns = rmm__clock_ns(CLOCK_REALTIME) - SECOND_NS;
    events_cursor_t cursor;
    uint32_t count = 0;
    model->started_ns -= SECOND_NS;
    model->started_real_ns = start_ns + 3600 * SECOND_NS;
    model->journal = journal_open(0, &model->budget);
    model->events = node_events_open(0);
    node_events_begin(model->events, &cursor);
    write_error(fixture_process(fixture, 4711), start_ns + (uint64_t)later_ns);
    journal_collect(model->journal, model);
    node_events_each(model->events, &cursor, &reader, count_error, &count);
    node_events_close(model->events);
    journal_close(model->journal);
    end_fixture(fixture);
    return count;
}

TEST_CASE(an_error_is_an_event_though_the_clock_was_set_back)
{
    assert_int_equal(events_of_an_error((int64_t)SECOND_NS / 2), 1);
    assert_int_equal(events_of_an_error(-60 * (int64_t)SECOND_NS), 0);
}
