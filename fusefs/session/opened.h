/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files with their text. Knows no FUSE.
 *
 * A file is rendered when it is opened, and reads return parts of that text, so no
 * reader sees a mixture of two states. Like sysfs, a read at offset 0 renders again,
 * except for the first one after the open.
 *
 * Two kinds of files are not rendered: the node's log, where each read returns the text
 * at its offset, and streams (stream.h), which have no offset.
 *
 * Threads: any. Reads of threads that share a descriptor are serialised.
 */
#ifndef RMM_FUSEFS_OPENED_H
#define RMM_FUSEFS_OPENED_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "control/waiting_writes.h"
#include "model/tree.h"
#include "programs/watch.h"
#include "render/stream.h"
#include "session/opened_list.h"

/* The kernel splits longer reads. */
#define OPENED_READ_BYTES_MAX ((size_t)128 << 10)

typedef struct file file_t;

/* flags are those of open(2). 0, or a negative errno: -ENOENT gone, -EACCES not for this
 * user, or not for writing, -ENOMEM, -EDQUOT: this user has too many open, or too much text
 * in them (budget.h); else those of render_begin(). */
int file_open(
    opened_list_t *list, watch_t *watch, node_t node, int flags, reader_t reader,
    file_t **file_out);
void file_close(opened_list_t *list, file_t *file);
/* Asked at each read: another user may have the descriptor now. */
bool file_may_read(const file_t *file, uid_t uid);
typedef struct file_bytes {
    const char *bytes;
    size_t length;
} file_bytes_t;

/* True: its writes wait until the program obeys (waiting_writes.h). */
bool file_write_waits(const file_t *file);
/* A command. 0 or a negative errno, as control_write(). wait: of a write that waits, else NULL. */
int file_write(
    const file_t *file, watch_t *watch, uid_t uid, const file_bytes_t *written,
    waiting_write_t *wait);
/* NULL: it is none; then file_read is not for it. */
stream_t *file_stream_of(const file_t *file);

/* `events`: can be polled for a change of its counters. */
bool file_has_counters(const file_t *file);
/* Whether the counters are others now than in the text that this handle has read, or gone. */
bool file_is_outdated(file_t *file, watch_t *watch);
/* The same at once, with the model lock held: true if they may have changed since
 * file_is_outdated() was asked. */
bool file_may_be_outdated(file_t *file, const model_t *model);

/* A read asks for at most `size` bytes from `offset` on. */
typedef struct file_part {
    off_t offset;
    size_t size;
} file_part_t;

/*
 * Between file_read and file_read_end the bytes stay as they are, also if the file is closed
 * meanwhile (an answer may be followed by the close before its sender goes on). 0 or a
 * negative errno, and then no file_read_end: -ESPIPE beyond the end; -EWOULDBLOCK: the text
 * would have to be rendered, or another read of the file be waited for, and may_wait is false.
 */
int file_read(
    file_t *file, watch_t *watch, const file_part_t *part, bool may_wait,
    const char **bytes_out, size_t *length_out);
void file_read_end(opened_list_t *list, file_t *file);

#endif /* RMM_FUSEFS_OPENED_H */
