/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files with their text, and open directories with their listing. Knows no FUSE.
 *
 * A file is rendered when it is opened, and reads return parts of that text, so no
 * reader sees a mixture of two states. Like sysfs, a read at offset 0 renders again,
 * except for the first one after the open. A directory is listed when it is opened: no
 * entry appears twice or is skipped while processes appear and disappear.
 *
 * Two kinds of files are not rendered: the node's log, where each read returns the text
 * at its offset, and streams (stream.h), which have no offset.
 *
 * A list holds all open objects, so a daemon that ends while programs have files open
 * frees all of them.
 *
 * Threads: any. Reads of threads that share a descriptor are serialised.
 */
#ifndef RMM_FUSEFS_OPENED_H
#define RMM_FUSEFS_OPENED_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "stream.h"
#include "tree.h"
#include "trims.h"
#include "watch.h"

/* What a read asks for at most. The memory for it is taken when a long text is opened. */
#define OPENED_READ_BYTES_MAX ((size_t)128 << 10)

/* First member of what stands in the list. */
typedef struct opened {
    struct opened *previous, *next;
    void (*free)(struct opened *opened);
} opened_t;

typedef struct opened_list {
    pthread_mutex_t lock;
    opened_t first; /* only its links are used: a ring */
} opened_list_t;

void opened_list_init(opened_list_t *list);
/* Frees what is still open. */
void opened_list_fini(opened_list_t *list);

typedef struct file file_t;

/* The process that makes a request. */
typedef struct reader {
    uid_t uid;
    pid_t thread;
    bool is_member; /* of the group of hiding.h */
} reader_t;

/* flags are those of open(2). 0, or a negative errno: -ENOENT gone, -EACCES not for this
 * user, or not for writing, -ENOMEM, -EDQUOT: this user has too many open, or too much text
 * in them (budget.h); else those of render_begin(). */
int file_open(
    opened_list_t *list, watch_t *watch, node_t node, int flags, reader_t reader,
    file_t **file_out);
void file_close(opened_list_t *list, file_t *file);
/* Asked at each read: another user may have the descriptor now. */
bool file_may_read(const file_t *file, uid_t uid);
/* A command (control.h). 0 or a negative errno: -ENOENT gone, -EACCES not this user's. */
int file_write(
    const file_t *file, watch_t *watch, uid_t uid, const char *bytes, size_t size);
/* True: its writes wait until the program obeys (trims.h). 0 or a negative errno, as
 * control_trim(). */
bool file_is_trim(const file_t *file);
int file_trim(
    const file_t *file, watch_t *watch, uid_t uid, const char *bytes, size_t size,
    trim_t *trim);
/* How long the text of an open of this reader is, or would be now: 0 or a negative errno. */
int node_text_bytes(watch_t *watch, node_t node, reader_t reader, size_t *bytes_out);
/* NULL: it is none; then file_read is not for it. */
stream_t *file_stream_of(const file_t *file);

/* `events`: can be polled for a change of its counters. */
bool file_has_counters(const file_t *file);
/* Whether the counters are others now than in the text that this handle has read, or gone. */
bool file_is_outdated(file_t *file, watch_t *watch);
/* The same at once, with the model lock held: true if they may have changed since
 * file_is_outdated() was asked. */
bool file_may_be_outdated(file_t *file, const model_t *model);

/* What a read asks for: at most `size` bytes from `offset` on. */
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

typedef struct listing listing_t;

/* For this reader: 0, -ENOENT, -ENOMEM, -EDQUOT as for files. */
int listing_open(
    opened_list_t *list, watch_t *watch, node_t dir, reader_t reader,
    listing_t **listing_out);
void listing_close(opened_list_t *list, listing_t *listing);

/* The entry at a position: 0 is ".", 1 "..". NULL: the end. */
const char *listing_at(const listing_t *listing, size_t position, node_t *node_out);

#endif /* RMM_FUSEFS_OPENED_H */
