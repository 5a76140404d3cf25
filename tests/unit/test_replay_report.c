/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rmm-replay prints of a replay: the table of figures that a test chooses.
 */
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/report.h"

static const report_t plain = {
    .log = "a.csv",
    .resource = "pool",
    .driver = "sim",
    .ns_per_operation = -1,
    .best_ns_per_operation = -1,
    .log_peak_bytes = 1000};

/* The caller frees it. */
static char *table_of(const report_t *report)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    assert_non_null(out);
    report_print_table(report, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* The value of the table's row with this label; "": it has none. */
static void assert_row(const report_t *report, const char *label, const char *value)
{
    char *text = table_of(report), found[128] = "";

    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (strncmp(line, label, strlen(label)) == 0 && strlen(line) > 24) {
            snprintf(found, sizeof found, "%s", line + 24);
        }
    }
    free(text);
    assert_string_equal(found, value);
}

TEST_CASE(says_which_gpu_ran_the_log)
{
    report_t report = plain;

    assert_row(&report, "gpu ", "simulated (RMM_DRIVER=sim)");
    report.driver = "hip";
    assert_row(&report, "gpu ", "real (RMM_DRIVER=hip)");
    report.driver = "cuda";
    assert_row(&report, "gpu ", "real");
}

TEST_CASE(counts_bytes_and_blocks_that_were_left)
{
    report_t report = plain;

    assert_row(&report, "left allocated, bytes", "");
    assert_row(&report, "left allocated, blocks", "");
    report.left_bytes = 500;
    report.left_count = 3;
    assert_row(&report, "left allocated, bytes", "500");
    assert_row(&report, "left allocated, blocks", "3");
}

TEST_CASE(compares_a_capacity_with_a_peak_only_if_there_is_one)
{
    report_t report = plain;

    assert_row(&report, "smallest capacity", "");
    report.capacity_bytes = 1250;
    assert_row(&report, "smallest capacity", "1250");
    assert_row(&report, "capacity over peak", "1.2500");
    report.log_peak_bytes = 0; /* of a log that allocates nothing */
    assert_row(&report, "smallest capacity", "");
    assert_row(&report, "capacity over peak", "");
}
