/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attributes (struct stat) of a node, and how long the kernel may cache them. Knows no FUSE.
 *
 * Sizes: a value reports TREE_VALUE_BYTES; a text and a log their true size. The size of a
 * text is known only after rendering it, so it is computed only for a request about that file
 * (attributes_of), not for each name in a directory listing.
 *
 * Threads: any. attributes_fill is called under the model lock, attributes_of takes it.
 */
#ifndef RMM_FUSEFS_ATTRIBUTES_H
#define RMM_FUSEFS_ATTRIBUTES_H

#include <stdbool.h>
#include <sys/stat.h>

#include "opened.h"
#include "tree.h"
#include "watch.h"

/* A text's size is TREE_VALUE_BYTES here. False: gone. */
bool attributes_fill(const model_t *model, node_t node, struct stat *attributes);

/* The same of a node for which tree_info_listed() may be called. */
void attributes_fill_listed(const model_t *model, node_t node, struct stat *attributes);

/* 0 or an errno; the reader is charged with the work. */
int attributes_of(
    watch_t *watch, node_t node, reader_t reader, struct stat *attributes);

/* A text: each open has its own, of its own size. */
bool attributes_differ_by_reader(node_t node);

/* 0: the kernel requests the true size each time. */
double attributes_seconds(node_t node);

/* Of a name; 0 for the log, whose name is another file for each user, and for a process that some
 * users do not see. */
double attributes_entry_seconds(const model_t *model, node_t node);

#endif /* RMM_FUSEFS_ATTRIBUTES_H */
