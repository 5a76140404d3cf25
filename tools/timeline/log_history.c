/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmm-replay's reader pairs each free with its allocation. Operations of one time follow each
 * other by a nanosecond, in the log's order: a log has microseconds, and which block was freed
 * before which was allocated decides the peak.
 */
#include "timeline/log_history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/error.h"
#include "replay/load.h"

#define PER_THREAD_HANDLE 2

static bool add_streams(history_t *history, const plan_t *plan)
{
    char text[64];
    bool good = true;
    for (size_t i = 0; good && i < plan->stream_count; i++) {
        const plan_stream_t *stream = &plan->streams[i];
        if (stream->is_default) {
            snprintf(text, sizeof(text), "default stream");
        } else if (stream->handle == PER_THREAD_HANDLE) {
            snprintf(text, sizeof(text), "per-thread default stream");
        } else {
            snprintf(text, sizeof(text), "stream 0x%" PRIx64, stream->handle);
        }
        good = history_add_text(&history->streams, text);
    }
    return good;
}

static bool
add_operation(history_t *history, const plan_op_t *op, uint64_t when_ns, size_t *living)
{
    if (op->bytes == 0) {
        return true; /* it has no place in the map */
    }
    if (op->is_free) {
        history->blocks[living[op->handle]].end_ns = when_ns;
        return true;
    }
    living[op->handle] = history->block_count;
    return history_add_block(
        history, &(history_block_t){
                     .address = op->address,
                     .bytes = op->bytes,
                     .begin_ns = when_ns,
                     .end_ns = HISTORY_LIVE,
                     .first_user = HISTORY_NONE,
                     .last_user = HISTORY_NONE,
                     .stream = op->stream});
}

/* False: no memory. */
static bool add_plan(history_t *history, const plan_t *plan)
{
    size_t *living = calloc(plan->handle_count + 1, sizeof(*living)); /* by handle */
    uint64_t last_ns = 0;
    bool good = living != NULL && add_streams(history, plan) &&
                history_add_text(&history->resources, "log");
    for (size_t i = 0; good && i < plan->op_count; i++) {
        uint64_t due_ns = plan->ops[i].due_ns;
        last_ns = i == 0 || due_ns > last_ns ? due_ns : last_ns + 1;
        good = add_operation(history, &plan->ops[i], last_ns, living);
    }
    free(living);
    return good && history_finish(history);
}

bool log_history_read(history_t *history, const char *path, bool strict)
{
    plan_t plan;
    load_counts_t counts;
    snprintf(history->title, sizeof(history->title), "%.400s", path);
    history->pid = 1;
    if (!load_log(path, strict, &plan, &counts)) {
        plan_fini(&plan);
        return false;
    }
    if (counts.skipped_rows > 0) {
        snprintf(
            history->note, sizeof(history->note),
            "%" PRIu64 " rows of the log are not shown: they cannot be read, or free "
            "what is not allocated.",
            counts.skipped_rows);
    }
    bool good = add_plan(history, &plan);
    if (!good) {
        tool_error("%s: no host memory for the timeline", path);
    }
    plan_fini(&plan);
    return good;
}
