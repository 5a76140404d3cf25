/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are read like a pipe: log_pipe, events_pipe. Each open has a cursor of its
 * own. It begins with the oldest message that is still in the ring, and waits for more
 * at the end (waiters.h). A line "# lost ..." means that the reader was too slow.
 *
 * The stream of a process ends when the process has exited and the reader has read all
 * messages.
 *
 * Knows no FUSE. Threads: any; the lock of a stream serialises its reads. Where a
 * function takes a model, the caller holds the model lock, shared is enough, and takes
 * it before.
 */
#ifndef RMM_FUSEFS_STREAM_H
#define RMM_FUSEFS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "model/tree.h"
#include "support/text.h"

typedef struct stream stream_t;

typedef enum stream_state {
    STREAM_DATA, /* there is something to take */
    STREAM_WAIT, /* not now */
    STREAM_END   /* never again */
} stream_state_t;

/* NULL: no memory. `process`: the serial of its process, 0 of the node's log and events; `uid`:
 * of the user who opens it and is charged with what it holds; budget NULL: no user is. */
stream_t *stream_open(node_t node, uint64_t process, uid_t uid, budget_t *budget);
/* From here on the node's events are kept for a stream that reads them, as far as there is room.
 * is_member: of the group of hiding.h. False: no memory. Of another file nothing. */
bool stream_begin(stream_t *stream, bool is_member, const model_t *model);
void stream_close(stream_t *stream);

/* False: what is new comes at the daemon's looks at processes, which are rare. */
bool stream_is_urgent(const stream_t *stream);

/* Fetch what is new, if all that was fetched is taken. */
stream_state_t stream_fetch(stream_t *stream, const model_t *model);
/* The same for one of many, where the node's journal has just been collected. */
stream_state_t stream_fetch_collected(stream_t *stream, const model_t *model);

/* Append up to `size` bytes of what was fetched; whole lines where they fit. The text fails
 * if not all could be fetched: that is lost. */
void stream_take(stream_t *stream, size_t size, text_t *text);

#endif /* RMM_FUSEFS_STREAM_H */
