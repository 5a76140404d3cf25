/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a csv: few, and no peak is lost in them.
 */
#include "harness/harness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replay/csv.h"

static char path[] = "csv-XXXXXX";

/* A csv of `operations`; what they hold is their number, but for one high peak. */
static size_t write_timeline(uint64_t operations, uint64_t peak_at)
{
    csv_t csv;
    assert_true(csv_open(&csv, path, "log x", operations));
    for (uint64_t i = 1; i <= operations; i++) {
        csv_note(&csv, 1000 * i, i == peak_at ? 9999999 : i, 2 * i);
    }
    assert_true(csv_close(&csv));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char line[256];
    size_t lines = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        lines++;
    }
    fclose(file);
    return lines;
}

/* The line with this number, from 1. */
static void assert_line(size_t number, const char *expected)
{
    char line[256] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (size_t i = 0; i < number; i++) {
        assert_non_null(fgets(line, sizeof line, file));
    }
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    assert_string_equal(line, expected);
}

TEST_CASE(has_a_row_for_each_operation_of_a_short_log)
{
    assert_int_equal(write_timeline(3, 2), 5);
    assert_line(1, "# log x");
    assert_line(2, "operation,time_ns,live_bytes,reserved_bytes");
    assert_line(3, "1,1000,1,2");
    assert_line(4, "2,2000,9999999,4");
    assert_line(5, "3,3000,3,6");
}

TEST_CASE(has_few_rows_for_a_long_log_and_keeps_its_peaks)
{
    /* 100001 operations in stretches of 101, the last one shorter */
    assert_int_equal(write_timeline(100001, 110), 2 + 991);
    assert_line(3, "101,101000,101,202");
    assert_line(4, "202,202000,9999999,404");
    assert_line(5, "303,303000,303,606");
    assert_line(2 + 991, "100001,100001000,100001,200002");
}

TEST_CASE(a_run_that_failed_leaves_the_file_as_it_was)
{
    csv_t csv;
    assert_int_equal(write_timeline(3, 0), 5);
    assert_true(csv_open(&csv, path, "log y", 3));
    csv_note(&csv, 1000, 1, 2);
    csv_note(&csv, 2000, 1, 2);
    assert_true(csv_close(&csv));
    assert_line(1, "# log x");
    assert_line(5, "3,3000,3,6");
}

TEST_CASE(says_why_it_cannot_be_written)
{
    csv_t csv;
    assert_false(csv_open(&csv, "/dev/null/csv", "log x", 1));
    assert_int_equal(errno, ENOTDIR);
    assert_true(csv_open(&csv, "/dev/full", "log x", 1));
    csv_note(&csv, 1, 1, 1);
    assert_false(csv_close(&csv));
    assert_int_equal(errno, ENOSPC);
}

static int make_file(void **state)
{
    int file = mkstemp(path);
    return file >= 0 ? close(file) : -1;
}

static int remove_file(void **state)
{
    return unlink(path);
}

int main(void)
{
    return harness_run_cases(make_file, remove_file);
}
