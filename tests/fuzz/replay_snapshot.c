/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever is in a snapshot of PyTorch: the reader and the plan survive it, what is said is
 * one line that can be printed, and every free of the plan has its allocation.
 */
#include "plan_checks.h"

#include "replay/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In pieces of few bytes, so that each place is once the end of one. */
typedef struct rest {
    const char *text;
    size_t length, piece;
} rest_t;

static size_t next_piece(void *context, const char **piece_out)
{
    rest_t *rest = context;
    size_t length = rest->length < rest->piece ? rest->length : rest->piece;
    *piece_out = rest->text;
    rest->text += length;
    rest->length -= length;
    return length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static reading_t reading;
    const log_sink_t sink = {&reading, take_row, take_problem};
    char problem[LOG_PROBLEM_MAX] = "";
    memset(&reading, 0, sizeof reading);
    plan_init(&reading.plan);
    (void)snapshot_begins((const char *)data, size);
    rest_t rest = {(const char *)data, size, 1 + size % 7};
    snapshot_result_t result = snapshot_read(next_piece, &rest, &sink, problem);
    REQUIRE(result != SNAPSHOT_STOPPED);
    REQUIRE((result == SNAPSHOT_FAILED) == (problem[0] != '\0'));
    for (const char *c = problem; *c != '\0'; c++) {
        REQUIRE(*c >= ' ' && *c <= '~');
    }
    check_plan(&reading.plan);
    plan_fini(&reading.plan);
    return 0;
}
