/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of rmm-replay: what a row may look like, and what is said of one that may not.
 */
#include "harness/harness.h"

#include <stdio.h>
#include <string.h>

#include "replay/alloc_log.h"
#include "replay/log_file.h"

typedef struct collected {
    log_row_t rows[64];
    size_t row_count;
    uint64_t problem_lines[64];
    char problems[64][LOG_PROBLEM_MAX];
    size_t problem_count;
    size_t stop_after_rows; /* 0: never */
} collected_t;

static bool collect_row(void *context, const log_row_t *row)
{
    collected_t *collected = context;
    assert_true(collected->row_count < 64);
    collected->rows[collected->row_count++] = *row;
    return collected->row_count != collected->stop_after_rows;
}

static bool collect_problem(void *context, uint64_t line, const char *text)
{
    collected_t *collected = context;
    assert_true(collected->problem_count < 64);
    collected->problem_lines[collected->problem_count] = line;
    snprintf(
        collected->problems[collected->problem_count++], LOG_PROBLEM_MAX, "%s", text);
    return true;
}

/* Reads text in pieces of so many bytes. */
static bool read_text(collected_t *collected, const char *text, size_t piece)
{
    log_reader_t reader;
    const log_sink_t sink = {collected, collect_row, collect_problem};
    size_t stop_after_rows = collected->stop_after_rows;
    size_t length = strlen(text);
    memset(collected, 0, sizeof *collected);
    collected->stop_after_rows = stop_after_rows;
    log_reader_init(&reader, &sink);
    for (size_t at = 0; at < length; at += piece) {
        size_t count = length - at < piece ? length - at : piece;
        if (!log_reader_feed(&reader, text + at, count)) {
            return false;
        }
    }
    return log_reader_end(&reader);
}

static void assert_row_is_refused(const char *text, const char *expected)
{
    log_row_t row;
    char problem[LOG_PROBLEM_MAX] = "";
    assert_false(log_parse_row(text, strlen(text), &row, problem));
    assert_string_equal(problem, expected);
}

TEST_CASE(reads_every_column_of_a_row)
{
    const char *text = "17,03:14:15.576338,allocate,0x7fda6b587600,37632,0xa5d2ad30";
    log_row_t row;
    char problem[LOG_PROBLEM_MAX];
    assert_true(log_parse_row(text, strlen(text), &row, problem));
    assert_int_equal(row.thread, 17);
    assert_int_equal(row.time_ns, UINT64_C(11655576338000));
    assert_int_equal(row.action, LOG_ALLOCATE);
    assert_int_equal(row.pointer, UINT64_C(0x7fda6b587600));
    assert_int_equal(row.bytes, 37632);
    assert_int_equal(row.stream, UINT64_C(0xa5d2ad30));
}

TEST_CASE(reads_decimal_addresses_and_streams)
{
    const char *text = "1,00:00:00.5,free,140576000000,256,2781998384";
    log_row_t row;
    char problem[LOG_PROBLEM_MAX];
    assert_true(log_parse_row(text, strlen(text), &row, problem));
    assert_int_equal(row.time_ns, 500000000);
    assert_int_equal(row.action, LOG_FREE);
    assert_int_equal(row.pointer, UINT64_C(140576000000));
    assert_int_equal(row.stream, UINT64_C(2781998384));
}

TEST_CASE(reads_a_failure_row_as_rmm_writes_it)
{
    const char *text = "1,23:59:59:999999,allocate failure,(nil),1099511627776,0";
    log_row_t row;
    char problem[LOG_PROBLEM_MAX];
    assert_true(log_parse_row(text, strlen(text), &row, problem));
    assert_int_equal(row.action, LOG_ALLOCATE_FAILURE);
    assert_int_equal(row.pointer, 0);
    assert_int_equal(row.bytes, UINT64_C(1099511627776));
}

TEST_CASE(reads_rows_with_the_columns_of_every_format)
{
    static const char *const more[] = {
        "", ",4194304,1000", ",0,-1,main+0x1d", ",4194304,1000,0,-1,main+0x1d"};

    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        char text[256];
        log_row_t row;
        char problem[LOG_PROBLEM_MAX];

        snprintf(text, sizeof(text), "1,00:00:00.5,free,0x100,256,7%s", more[i]);
        assert_true(log_parse_row(text, strlen(text), &row, problem));
        assert_int_equal(row.bytes, 256);
        assert_int_equal(row.stream, 7);
    }
}

TEST_CASE(takes_the_header_of_every_format)
{
    static const char *const more[] = {
        "", ",PoolBytes,UsedBytes", ",Device,DurationNs,Caller",
        ",PoolBytes,UsedBytes,Device,DurationNs,Caller"};

    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        collected_t collected = {.row_count = 0};
        char text[256];

        snprintf(
            text, sizeof(text),
            "Thread,Time,Action,Pointer,Size,Stream%s\n1,00:00:00.5,free,0x100,256,7\n",
            more[i]);
        assert_true(read_text(&collected, text, 7));
        assert_int_equal(collected.row_count, 1);
        assert_int_equal(collected.problem_count, 0);
    }
}

TEST_CASE(says_what_is_wrong_with_a_row)
{
    assert_row_is_refused(
        "1,00:00:00.0,allocate,0x10,256",
        "5 columns where 6 are expected (Thread,Time,Action,Pointer,Size,Stream)");
    assert_row_is_refused(
        "1,00:00:00.0,allocate,0x10,256,0,9",
        "7 columns where 6 are expected (Thread,Time,Action,Pointer,Size,Stream)");
    assert_row_is_refused("x,00:00:00.0,free,0x10,1,0", "Thread \"x\" is not a number");
    assert_row_is_refused(
        "1,24:00:00.0,free,0x10,1,0", "Time \"24:00:00.0\" is not HH:MM:SS.ffffff");
    assert_row_is_refused(/* a day must not be longer than a day */
                          "1,23:59:60.9,free,0x10,1,0",
                          "Time \"23:59:60.9\" is not HH:MM:SS.ffffff");
    assert_row_is_refused(
        "1,00:00:00.,free,0x10,1,0", "Time \"00:00:00.\" is not HH:MM:SS.ffffff");
    assert_row_is_refused(
        "1,00:00:00.0,realloc,0x10,1,0",
        "Action \"realloc\" is none of allocate, free, allocate failure");
    assert_row_is_refused(
        "1,00:00:00.0,free,0xzz,1,0", "Pointer \"0xzz\" is not a number");
    assert_row_is_refused("1,00:00:00.0,free,0x,1,0", "Pointer \"0x\" is not a number");
    assert_row_is_refused("1,00:00:00.0,free,,1,0", "Pointer \"\" is not a number");
    assert_row_is_refused("1,00:00:00.0,free,1,-1,0", "Size \"-1\" is not a number");
    assert_row_is_refused(
        "1,00:00:00.0,free,1,18446744073709551616,0",
        "Size \"18446744073709551616\" does not fit in 64 bits");
    assert_row_is_refused("1,00:00:00.0,free,1,1,s", "Stream \"s\" is not a number");
    assert_row_is_refused(
        "1,00:00:00.0,free,1,1,0x10000000000000000",
        "Stream \"0x10000000000000000\" does not fit in 64 bits");
}

TEST_CASE(shows_no_control_characters_of_a_bad_row)
{
    assert_row_is_refused(
        "1,00:00:00.0,\033[31mred,1,1,0",
        "Action \"?[31mred\" is none of allocate, free, allocate failure");
}

TEST_CASE(takes_the_largest_64_bit_numbers)
{
    const char *text = "18446744073709551615,00:00:00.0,free,0xffffffffffffffff,"
                       "18446744073709551615,0";
    log_row_t row;
    char problem[LOG_PROBLEM_MAX];
    assert_true(log_parse_row(text, strlen(text), &row, problem));
    assert_true(row.bytes == UINT64_MAX && row.pointer == UINT64_MAX);
}

TEST_CASE(gives_the_same_rows_whatever_the_pieces)
{
    const char *text = "Thread,Time,Action,Pointer,Size,Stream\r\n"
                       "1,00:00:00.000001,allocate,0x100,256,0\r\n"
                       "\n"
                       "broken\n"
                       " 1 , 00:00:00.000002 , free , 0x100 , 256 , 0 \n"
                       "1,00:00:00.000003,allocate,0x200,512,0"; /* no line break */
    for (size_t piece = 1; piece < strlen(text) + 2; piece++) {
        collected_t collected = {0};
        assert_true(read_text(&collected, text, piece));
        assert_int_equal(collected.row_count, 3);
        assert_int_equal(collected.rows[0].line, 2);
        assert_int_equal(collected.rows[1].line, 5);
        assert_int_equal(collected.rows[1].action, LOG_FREE);
        assert_int_equal(collected.rows[2].line, 6);
        assert_int_equal(collected.rows[2].bytes, 512);
        assert_int_equal(collected.problem_count, 1);
        assert_int_equal(collected.problem_lines[0], 4);
    }
}

TEST_CASE(reads_a_log_without_its_header)
{
    collected_t collected = {0};
    assert_true(read_text(&collected, "1,00:00:00.1,allocate,0x100,256,0\n", 7));
    assert_int_equal(collected.row_count, 1);
    assert_int_equal(collected.rows[0].line, 1);
}

TEST_CASE(ignores_a_byte_order_mark_before_the_first_line)
{
    const char *header = "\xef\xbb\xbfThread,Time,Action,Pointer,Size,Stream\r\n"
                         "1,00:00:00.1,allocate,0x100,256,0\r\n";
    const char *row = "\xef\xbb\xbf"
                      "1,00:00:00.1,allocate,0x100,256,0\n"
                      "\xef\xbb\xbf"
                      "1,00:00:00.1,free,0x100,256,0\n";
    collected_t collected = {0};
    assert_true(read_text(&collected, header, 7));
    assert_int_equal(collected.row_count, 1);
    assert_int_equal(collected.problem_count, 0);

    collected = (collected_t){0};
    assert_true(read_text(&collected, row, 7));
    assert_int_equal(collected.row_count, 1);
    assert_int_equal(collected.problem_count, 1); /* in the middle it is no mark */
    assert_int_equal(collected.problem_lines[0], 2);
}

TEST_CASE(skips_the_header_of_each_joined_log)
{
    collected_t collected = {0};
    assert_true(read_text(
        &collected,
        "Thread,Time,Action,Pointer,Size,Stream\n1,00:00:00.1,allocate,0x100,256,0\n"
        "Thread,Time,Action,Pointer,Size,Stream\n1,00:00:00.2,free,0x100,256,0\n",
        200));
    assert_int_equal(collected.problem_count, 0);
    assert_int_equal(collected.row_count, 2);
}

TEST_CASE(skips_an_overlong_line_whole_and_goes_on)
{
    char text[LOG_LINE_MAX * 3];
    memset(text, 'x', sizeof text);
    snprintf(
        text + LOG_LINE_MAX + 1, sizeof text - LOG_LINE_MAX - 1,
        "\n1,00:00:00.1,allocate,0x100,256,0\n");
    for (size_t piece = 1; piece < 3000; piece += 311) {
        collected_t collected = {0};
        assert_true(read_text(&collected, text, piece));
        assert_int_equal(collected.problem_count, 1);
        assert_string_equal(
            collected.problems[0], "the line is longer than 1024 characters");
        assert_int_equal(collected.row_count, 1);
        assert_int_equal(collected.rows[0].line, 2);
    }
}

TEST_CASE(stops_when_the_sink_says_so)
{
    collected_t collected = {.stop_after_rows = 1};
    assert_false(read_text(
        &collected,
        "1,00:00:00.1,allocate,0x100,1,0\n1,00:00:00.1,allocate,0x200,1,0\n", 1000));
    assert_int_equal(collected.row_count, 1);
}

TEST_CASE(refuses_a_first_line_without_an_end)
{
    collected_t collected = {.row_count = 0};
    const log_sink_t sink = {&collected, collect_row, collect_problem};
    char error[LOG_FILE_ERROR_MAX];
    assert_int_equal(log_file_read("/dev/zero", &sink, error), LOG_FILE_FAILED);
    assert_string_equal(
        error, "not an allocation log: its first 65536 bytes are one line");
    assert_int_equal(collected.row_count + collected.problem_count, 0);
}
