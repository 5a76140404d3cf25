/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's memory snapshot, torch.cuda.memory._snapshot(), as JSON: its `device_traces` become the
 * rows of a log. A row's line is the number of the entry in its trace.
 *
 * A block is free from `free_requested` on: later it waits for streams of PyTorch's own allocator.
 * The allocator's own requests to the driver, and the completions of deferred frees, are no rows.
 *
 * With stacks a snapshot has a kilobyte an entry: it is read entry by entry.
 */
#ifndef RMM_TOOLS_REPLAY_SNAPSHOT_H
#define RMM_TOOLS_REPLAY_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "replay/alloc_log.h"
#include "replay/json_stream.h"

typedef enum snapshot_result {
    SNAPSHOT_OK,
    SNAPSHOT_STOPPED, /* by the sink */
    SNAPSHOT_FAILED   /* one line in problem */
} snapshot_result_t;

/* True: a file that begins so is JSON, and no log. */
bool snapshot_begins(const char *text, size_t length);

/* Entries go to the sink as they are read, also those before what makes the rest fail. Text that
 * `more` cannot get is an end that comes too early. */
snapshot_result_t snapshot_read(
    json_stream_more_fn more, void *context, const log_sink_t *sink,
    char problem[LOG_PROBLEM_MAX]);

#endif /* RMM_TOOLS_REPLAY_SNAPSHOT_H */
