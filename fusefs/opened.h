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
#include "watch.h"

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

/* flags are those of open(2), uid opens it. 0, or a negative errno: -ENOENT gone, -EACCES not for
 * writing, -ENOMEM. */
int file_open(
    opened_list_t *list, watch_t *watch, node_t node, int flags, uid_t uid,
    file_t **file_out);
void file_close(opened_list_t *list, file_t *file);
node_t file_node_of(const file_t *file);
/* NULL: it is none; then file_read is not for it. */
stream_t *file_stream_of(const file_t *file);

/*
 * Bytes from `offset` on, at most `size`: between file_read and file_read_end they stay
 * as they are, also if the file is closed meanwhile (an answer may be followed by the
 * close before its sender goes on). 0 or a negative errno, and then no file_read_end.
 */
int file_read(
    file_t *file, watch_t *watch, size_t size, off_t offset, const char **bytes_out,
    size_t *length_out);
void file_read_end(opened_list_t *list, file_t *file);

typedef struct listing listing_t;

/* 0, -ENOENT, -ENOMEM */
int listing_open(
    opened_list_t *list, watch_t *watch, node_t dir, listing_t **listing_out);
void listing_close(opened_list_t *list, listing_t *listing);

/* The entry at a position: 0 is ".", 1 "..". NULL: the end. */
const char *listing_at(const listing_t *listing, size_t position, node_t *node_out);

#endif /* RMM_FUSEFS_OPENED_H */
