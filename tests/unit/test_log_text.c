/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lines of debug logs begin with: offsets of time zones in both directions, and texts
 * that are no JOURNAL_STREAM.
 */
#include "harness/harness.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "segment/log_text.h"

#define NOON_NS                                                                        \
    (UINT64_C(1795348800) * 1000000000u + 123456789u) /* 2026-11-22 12:00 UTC */

static void assert_time(long offset_seconds, const char *expected)
{
    time_t shifted = (time_t)(NOON_NS / 1000000000u) + offset_seconds;
    char text[RMM_LOG_TIME_BYTES];
    struct tm local;

    gmtime_r(&shifted, &local);
    local.tm_gmtoff = offset_seconds;
    rmm__log_time(text, NOON_NS, &local);
    assert_string_equal(text, expected);
}

TEST_CASE(times_tell_the_offset_from_utc)
{
    assert_time(0, "2026-11-22T12:00:00.123456+00:00");
    assert_time(3600, "2026-11-22T13:00:00.123456+01:00");
    assert_time(-(3 * 3600 + 1800), "2026-11-22T08:30:00.123456-03:30");
    assert_time(-600, "2026-11-22T11:50:00.123456-00:10");
    assert_time(14 * 3600, "2026-11-23T02:00:00.123456+14:00");
}

TEST_CASE(another_text_names_no_journal)
{
    static const char *const texts[] = {
        NULL, "", "8", "8:", ":9", "8:9x", "a:b", "8 9"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        rmm_journal_t journal = rmm__journal_parse(texts[i]);

        assert_int_equal(journal.device, 0);
        assert_int_equal(journal.inode, 0);
        assert_false(rmm__journal_reads(&journal, 0));
    }
}

TEST_CASE(the_journal_is_known_by_device_and_inode)
{
    FILE *file = tmpfile();
    rmm_journal_t journal;
    struct stat known;
    char text[64];

    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &known), 0);
    snprintf(
        text, sizeof(text), "%ju:%ju", (uintmax_t)known.st_dev,
        (uintmax_t)known.st_ino);
    journal = rmm__journal_parse(text);
    assert_true(rmm__journal_reads(&journal, fileno(file)));
    assert_false(rmm__journal_reads(&journal, -1));
    journal.device++;
    assert_false(rmm__journal_reads(&journal, fileno(file)));
    fclose(file);
}
