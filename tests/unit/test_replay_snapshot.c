/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of PyTorch as input of rmm-replay: what becomes a row, and what is said of a file that
 * is none.
 */
#include "harness/harness.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/log_file.h"
#include "replay/plan.h"
#include "replay/snapshot.h"

typedef struct collected {
    log_row_t rows[16];
    size_t row_count, stop_after;
    char problems[16][LOG_PROBLEM_MAX];
    uint64_t problem_lines[16];
    size_t problem_count;
} collected_t;

static bool collect_row(void *context, const log_row_t *row)
{
    collected_t *collected = context;
    assert_true(collected->row_count < 16);
    collected->rows[collected->row_count++] = *row;
    return collected->row_count != collected->stop_after;
}

static bool collect_problem(void *context, uint64_t line, const char *text)
{
    collected_t *collected = context;
    assert_true(collected->problem_count < 16);
    collected->problem_lines[collected->problem_count] = line;
    snprintf(
        collected->problems[collected->problem_count++], LOG_PROBLEM_MAX, "%s", text);
    return true;
}

/* Text in pieces of three bytes. */
static size_t next_piece(void *context, const char **piece_out)
{
    const char **rest = context;
    size_t length = strnlen(*rest, 3);
    *piece_out = *rest;
    *rest += length;
    return length;
}

static snapshot_result_t
read_text(collected_t *collected, const char *text, char problem[LOG_PROBLEM_MAX])
{
    const log_sink_t sink = {collected, collect_row, collect_problem};
    problem[0] = '\0';
    return snapshot_read(next_piece, &text, &sink, problem);
}

static void assert_refused(const char *text, const char *expected)
{
    collected_t collected = {.row_count = 0};
    char problem[LOG_PROBLEM_MAX];
    assert_int_equal(read_text(&collected, text, problem), SNAPSHOT_FAILED);
    assert_non_null(strstr(problem, expected));
    assert_null(strchr(problem, '\n'));
    assert_int_equal(collected.row_count + collected.problem_count, 0);
}

TEST_CASE(reads_the_rows_of_a_recorded_file)
{
    collected_t collected = {.row_count = 0};
    const log_sink_t sink = {&collected, collect_row, collect_problem};
    char error[LOG_FILE_ERROR_MAX] = "", problem[LOG_PROBLEM_MAX];
    plan_t plan;
    (void)state;
    char path[4096];
    const char *source = getenv("RMM_SOURCE_DIR");
    assert_non_null(source);
    snprintf(path, sizeof(path), "%s/tests/data/torch/snapshot.json", source);
    assert_int_equal(log_file_read(path, &sink, error), LOG_FILE_OK);
    assert_int_equal(collected.problem_count, 0);
    assert_int_equal(collected.row_count, 5);
    const log_row_t *second = &collected.rows[1];
    assert_int_equal(second->line, 3);
    assert_int_equal(second->action, LOG_ALLOCATE);
    assert_int_equal(second->pointer, UINT64_C(140000000001024));
    assert_int_equal(second->bytes, 4096);
    assert_int_equal(second->stream, UINT64_C(94000000000000));
    assert_int_equal(second->time_ns, UINT64_C(86399999999000));
    assert_int_equal(collected.rows[2].time_ns, 5000);
    assert_int_equal(collected.rows[3].action, LOG_ALLOCATE_FAILURE);
    assert_int_equal(collected.rows[3].bytes, UINT64_C(8589934592));

    plan_init(&plan); /* over midnight */
    for (size_t i = 0; i < collected.row_count; i++) {
        assert_int_equal(plan_add(&plan, &collected.rows[i], problem), PLAN_ADDED);
    }
    assert_int_equal(plan.op_count, 4);
    assert_int_equal(plan.peak_bytes, 5120);
    assert_int_equal(plan.left_count, 0);
    assert_int_equal(plan.failure_count, 1);
    assert_int_equal(plan.ops[3].due_ns, 13000);
    plan_fini(&plan);
}

TEST_CASE(reports_entries_that_are_not_rows)
{
    static const struct {
        const char *entry, *problem;
    } wrong[] = {
        {"{}", "its action is not one of PyTorch's"},
        {"7", "its action is not one of PyTorch's"},
        {"{\"action\": \"other\"}", "its action is not one of PyTorch's"},
        {"{\"action\": \"alloc\"}", "size is missing or not a number from 0"},
        {"{\"action\": \"alloc\", \"size\": -1}",
         "size is missing or not a number from 0"},
        {"{\"action\": \"alloc\", \"size\": 1.5}",
         "size is missing or not a number from 0"},
        {"{\"action\": \"alloc\", \"size\": 1}",
         "stream is missing or not a number from 0"},
        {"{\"action\": \"alloc\", \"size\": 1, \"stream\": 0}",
         "addr is missing or not a number from 0"},
        {"{\"action\": \"oom\", \"size\": 1, \"stream\": 0, \"time_us\": \"x\"}",
         "time_us is missing or not a number from 0"}};
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        collected_t collected = {.row_count = 0};
        char text[512], problem[LOG_PROBLEM_MAX];
        snprintf(
            text, sizeof(text),
            "{\"device_traces\": [[%s, {\"action\": \"alloc\", \"addr\": 16, "
            "\"size\": 1, \"stream\": 0}]]}",
            wrong[i].entry);
        assert_int_equal(read_text(&collected, text, problem), SNAPSHOT_OK);
        assert_int_equal(collected.problem_count, 1);
        assert_int_equal(collected.problem_lines[0], 1);
        assert_string_equal(collected.problems[0], wrong[i].problem);
        assert_int_equal(collected.row_count, 1);
        assert_int_equal(collected.rows[0].time_ns, 0); /* of PyTorch 2.0 */
    }
}

TEST_CASE(refuses_a_file_that_is_not_a_snapshot_of_one_gpu)
{
    (void)state;
    assert_refused("{", "damaged JSON: line 1");
    assert_refused("{\"a\": \"\x01\"}", "damaged JSON: line 1");
    assert_refused("{}", "without device_traces");
    assert_refused("[]", "without device_traces");
    assert_refused("{\"device_traces\": 3}", "without device_traces");
    assert_refused("{\"type\": \"start\"}", "without device_traces");
    assert_refused("{\"pid\": 7}", "without device_traces");
    assert_refused("{\"device_traces\": []}", "_record_memory_history()");
    assert_refused("{\"device_traces\": [[], []]}", "_record_memory_history()");
    assert_refused(
        "{\"time\": \"x\", \"type\": \"start\", \"pid\": 7}\n{\"time\"",
        "proc/<pid>/events_pipe");
    char deep[8192];
    memset(deep, '[', sizeof(deep) - 1);
    deep[sizeof(deep) - 1] = '\0';
    assert_refused(deep, "damaged JSON");
}

#define ROW "{\"action\": \"oom\", \"size\": 1, \"stream\": 0}"

/* They are seen when the first one's entries were passed on. */
TEST_CASE(refuses_traces_of_several_gpus)
{
    collected_t collected = {.row_count = 0};
    char problem[LOG_PROBLEM_MAX];
    (void)state;
    assert_int_equal(
        read_text(
            &collected, "{\"device_traces\": [[], [" ROW "], [" ROW ", " ROW "]]}",
            problem),
        SNAPSHOT_FAILED);
    assert_non_null(strstr(problem, "traces of several GPUs"));
    assert_int_equal(collected.row_count, 1);
}

TEST_CASE(says_where_the_text_is_damaged)
{
    static const struct {
        const char *text, *place;
    } damaged[] = {
        {"{\n  7: 1}", "line 2, column 2: '\"' expected"},
        {"{\"a\" 1}", "line 1, column 5: ':' expected"},
        {"{\"a\": 1\n\"b\"}", "line 2, column 0: '}' expected"},
        {"{\"a\": [1 2]}", "line 1, column 9: ']' expected"},
        {"{\"a\": [1, ]}", "line 1, column 10"},
        {"{\"a\": tru}", "line 1, column 9"},
        {"{\"a\": [{\"b\": \n]}", "line 2, column 1"},
        {"{\"a\": 1,}", "line 1, column 8: '\"' expected"},
        {"[1", "line 1, column 2: ']' expected"},
        {"{\"device_traces\": [[], 7, [" ROW, "']' expected"}};
    (void)state;
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        collected_t collected = {.row_count = 0};
        char problem[LOG_PROBLEM_MAX];
        assert_int_equal(
            read_text(&collected, damaged[i].text, problem), SNAPSHOT_FAILED);
        assert_non_null(strstr(problem, "damaged JSON: line "));
        if (strstr(problem, damaged[i].place) == NULL) {
            fail_msg("%s: %s", damaged[i].text, problem);
        }
    }
}

/* --- large ones ------------------------------------------------------------------------ */

/* A snapshot that is made while it is read: `count` entries, each `padding` bytes long. */
typedef struct endless {
    size_t at, count, padding;
    char piece[4096];
} endless_t;

static size_t make_piece(void *context, const char **piece_out)
{
    endless_t *endless = context;
    size_t at = endless->at++;
    *piece_out = endless->piece;
    if (at >= endless->count) {
        return at > endless->count ? 0
                                   : (size_t)snprintf(
                                         endless->piece, sizeof(endless->piece),
                                         "]], \"segments\": []}");
    }
    return (size_t)snprintf(
        endless->piece, sizeof(endless->piece),
        "%s{\"action\": \"snapshot\", \"frames\": \"%*s\"}",
        at == 0 ? "{\"device_traces\": [[" : ", ", (int)endless->padding, "");
}

static size_t live_bytes, peak_bytes;

static void *count_allocation(size_t bytes)
{
    void *ptr = malloc(bytes);
    live_bytes += malloc_usable_size(ptr);
    peak_bytes = live_bytes > peak_bytes ? live_bytes : peak_bytes;
    return ptr;
}

static void count_free(void *ptr)
{
    live_bytes -= malloc_usable_size(ptr);
    free(ptr);
}

TEST_CASE(needs_memory_for_one_entry)
{
    collected_t collected = {.row_count = 0};
    const log_sink_t sink = {&collected, collect_row, collect_problem};
    char problem[LOG_PROBLEM_MAX] = "";
    endless_t endless = {.count = 25000, .padding = 4000}; /* 100 MB */
    (void)state;
    json_set_alloc_funcs(count_allocation, count_free);
    assert_int_equal(snapshot_read(make_piece, &endless, &sink, problem), SNAPSHOT_OK);
    json_set_alloc_funcs(malloc, free);
    assert_int_equal(collected.row_count + collected.problem_count, 0);
    assert_int_equal(live_bytes, 0);
    assert_in_range(peak_bytes, 4000, 65536);
}

/* A string that does not end. */
static size_t more_of_a_string(void *context, const char **piece_out)
{
    size_t *pieces = context;
    *piece_out = (*pieces)++ == 0 ? "{\"a\": \"xxxxx" : "xxxxxxxxxxxx";
    return 12;
}

TEST_CASE(refuses_a_value_without_end)
{
    collected_t collected = {.row_count = 0};
    const log_sink_t sink = {&collected, collect_row, collect_problem};
    char problem[LOG_PROBLEM_MAX] = "";
    size_t pieces = 0;
    (void)state;
    assert_int_equal(
        snapshot_read(more_of_a_string, &pieces, &sink, problem), SNAPSHOT_FAILED);
    assert_non_null(strstr(problem, "a value of more than 16 MiB"));
    assert_true(pieces < JSON_STREAM_VALUE_MAX / 12 + 10);
}

TEST_CASE(stops_when_the_sink_does)
{
    collected_t collected = {.stop_after = 1};
    char problem[LOG_PROBLEM_MAX];
    const char *text = "{\"device_traces\": [[{\"action\": \"oom\", \"size\": 1, "
                       "\"stream\": 0}, {\"action\": \"oom\", \"size\": 1, "
                       "\"stream\": 0}]]}";
    (void)state;
    assert_int_equal(read_text(&collected, text, problem), SNAPSHOT_STOPPED);
    assert_int_equal(collected.row_count, 1);
}

TEST_CASE(knows_json_by_its_first_byte)
{
    (void)state;
    assert_true(snapshot_begins(" \r\n\t{", 5));
    assert_true(snapshot_begins("[", 1));
    assert_false(snapshot_begins("Thread,Time", 11));
    assert_false(snapshot_begins("\0{", 2));
    assert_false(snapshot_begins("  ", 2));
    assert_false(snapshot_begins("", 0));
}

TEST_CASE(refuses_a_pickle)
{
    collected_t collected = {.row_count = 0};
    const log_sink_t sink = {&collected, collect_row, collect_problem};
    char error[LOG_FILE_ERROR_MAX] = "";
    const char *path = "snapshot.pickle";
    FILE *file = fopen(path, "w");
    (void)state;
    assert_non_null(file);
    assert_int_equal(fwrite("\x80\x04\x95", 1, 3, file), 3);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(log_file_read(path, &sink, error), LOG_FILE_FAILED);
    assert_int_equal(remove(path), 0);
    assert_non_null(strstr(error, "a pickle is not read"));
    assert_int_equal(collected.row_count + collected.problem_count, 0);
}
