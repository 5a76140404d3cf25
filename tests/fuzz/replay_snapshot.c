/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever is in a snapshot of PyTorch: the reader and the plan survive it, what is said is
 * one line that can be printed, and every free of the plan has its allocation.
 */
#include "plan_checks.h"

#include "replay/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static reading_t reading;
    const log_sink_t sink = {&reading, take_row, take_problem};
    char problem[LOG_PROBLEM_MAX] = "";
    memset(&reading, 0, sizeof reading);
    plan_init(&reading.plan);
    (void)snapshot_begins((const char *)data, size);
    snapshot_result_t result = snapshot_read((const char *)data, size, &sink, problem);
    REQUIRE(result != SNAPSHOT_STOPPED);
    REQUIRE((result == SNAPSHOT_FAILED) == (problem[0] != '\0'));
    for (const char *c = problem; *c != '\0'; c++) {
        REQUIRE(*c >= ' ' && *c <= '~');
    }
    check_plan(&reading.plan);
    plan_fini(&reading.plan);
    return 0;
}
