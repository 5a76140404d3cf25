/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever is in a log: the reader and the plan survive it, the pieces that it comes in
 * make no difference, and every free of the plan has its allocation.
 */
#include "plan_checks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
read_pieces(reading_t *reading, const uint8_t *data, size_t size, size_t piece)
{
    static log_reader_t reader;
    const log_sink_t sink = {reading, take_row, take_problem};
    memset(reading, 0, sizeof *reading);
    plan_init(&reading->plan);
    log_reader_init(&reader, &sink);
    for (size_t at = 0; at < size; at += piece) {
        size_t count = size - at < piece ? size - at : piece;
        REQUIRE(log_reader_feed(&reader, (const char *)data + at, count));
    }
    REQUIRE(log_reader_end(&reader));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static reading_t whole, pieces;
    read_pieces(&whole, data, size, size + 1);
    read_pieces(&pieces, data, size, size % 7 + 1);
    REQUIRE(whole.problems == pieces.problems);
    REQUIRE(whole.plan.op_count == pieces.plan.op_count);
    REQUIRE(whole.plan.peak_bytes == pieces.plan.peak_bytes);
    check_plan(&whole.plan);
    plan_fini(&whole.plan);
    plan_fini(&pieces.plan);
    return 0;
}
