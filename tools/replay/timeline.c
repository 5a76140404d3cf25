/* SPDX-License-Identifier: Apache-2.0 */
/* The FILE keeps errors of writing; they are reported once, at the end. */
#include "replay/timeline.h"

#include <inttypes.h>

bool timeline_open(
    timeline_t *timeline, const char *path, const char *heading, uint64_t operations)
{
    *timeline = (timeline_t){
        .operations = operations,
        .stretch = (operations + TIMELINE_ROWS_MAX - 1) / TIMELINE_ROWS_MAX};
    if (!output_open(&timeline->output, path)) {
        return false;
    }
    fprintf(
        timeline->output.file, "# %s\noperation,time_ns,live_bytes,reserved_bytes\n",
        heading);
    return true;
}

static uint64_t larger(uint64_t left, uint64_t right)
{
    return left > right ? left : right;
}

void timeline_note(
    timeline_t *timeline, uint64_t due_ns, uint64_t live_bytes, uint64_t reserved_bytes)
{
    timeline->seen++;
    timeline->live_bytes = larger(timeline->live_bytes, live_bytes);
    timeline->reserved_bytes = larger(timeline->reserved_bytes, reserved_bytes);
    if (timeline->seen % timeline->stretch != 0 &&
        timeline->seen != timeline->operations) {
        return;
    }
    fprintf(
        timeline->output.file, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
        timeline->seen, due_ns, timeline->live_bytes, timeline->reserved_bytes);
    timeline->live_bytes = 0;
    timeline->reserved_bytes = 0;
}

bool timeline_close(timeline_t *timeline)
{
    if (timeline->seen != timeline->operations) {
        output_discard(&timeline->output);
        return true;
    }
    return output_commit(&timeline->output);
}
