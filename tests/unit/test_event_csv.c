/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of RMM's CSV, to the byte.
 */
#include "harness/harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "segment/event_csv.h"

#define SECOND_NS UINT64_C(1000000000)

static void
assert_row(const rmm_event_t *event, rmm_event_clock_t *clock, const char *expected)
{
    char row[RMM_EVENT_CSV_BYTES + 1];
    size_t length = rmm__event_csv(row, event, clock);

    assert_true(length <= RMM_EVENT_CSV_BYTES);
    row[length] = '\0';
    assert_string_equal(row, expected);
}

TEST_CASE(rows_are_those_of_rmm)
{
    rmm_event_clock_t clock = {0};
    rmm_event_t event = {
        .time_ns = 47000 * SECOND_NS + 123456, /* 13:03:20 UTC */
        .pointer = 0x7f6e40000000,
        .bytes = 1024,
        .thread = 4711,
        .action = RMM_EVENT_ALLOCATE};

    assert_row(&event, &clock, "4711,13:03:20.000123,allocate,0x7f6e40000000,1024,0\n");
    event.time_ns += SECOND_NS - 123456 - 1;
    event.action = RMM_EVENT_FREE;
    event.stream = 2;
    assert_row(&event, &clock, "4711,13:03:20.999999,free,0x7f6e40000000,1024,0x2\n");
    event.time_ns += 1;
    event.action = RMM_EVENT_FAILURE;
    event.pointer = 0;
    event.bytes = UINT64_C(1) << 40;
    event.stream = 0x55d0c0ffee10;
    assert_row(
        &event, &clock,
        "4711,13:03:21.000000,allocate failure,(nil),1099511627776,0x55d0c0ffee10\n");
}

TEST_CASE(the_largest_numbers_fit_into_a_row)
{
    rmm_event_clock_t clock = {0};
    rmm_event_t event = {
        .time_ns = UINT64_MAX,
        .pointer = UINT64_MAX,
        .bytes = UINT64_MAX,
        .stream = UINT64_MAX,
        .thread = UINT32_MAX,
        .action = UINT32_MAX};
    char row[RMM_EVENT_CSV_BYTES];

    assert_true(rmm__event_csv(row, &event, &clock) <= sizeof(row));
    event.action = RMM_EVENT_FAILURE;
    assert_true(rmm__event_csv(row, &event, &clock) <= sizeof(row));
    memset(&event, 0, sizeof(event));
    assert_row(&event, &clock, "0,00:00:00.000000,unknown,(nil),0,0\n");
}

/* printf's %" PRIu64 " and %p, over many values; the seed is printed. */
TEST_CASE(numbers_are_those_of_printf)
{
    uint64_t random = 20261121;

    print_message("seed %" PRIu64 "\n", random);
    for (int i = 0; i < 20000; i++) {
        char ours[32], theirs[32];
        uint64_t value;

        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        value = random >> (random >> 58);
        *rmm__csv_decimal(ours, value) = '\0';
        snprintf(theirs, sizeof(theirs), "%" PRIu64, value);
        assert_string_equal(ours, theirs);
        *rmm__csv_pointer(ours, value, "(nil)") = '\0';
        snprintf(theirs, sizeof(theirs), "%p", (void *)(uintptr_t)value);
        assert_string_equal(ours, theirs);
    }
}

static int use_utc(void **state)
{
    setenv("TZ", "UTC", 1);
    tzset();
    return 0;
}

int main(void)
{
    return harness_run_cases(use_utc, NULL);
}
