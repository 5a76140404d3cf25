/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attributes (struct stat) of a node, and how long the kernel may cache them. Knows no FUSE.
 *
 * Sizes: a log reports its true size, a value TREE_VALUE_BYTES, as in sysfs. A text reports the
 * largest size that a text may have, so that no tool takes a part of it for all, and its true size
 * to the thread that has just opened it (opened_sizes.h).
 *
 * Threads: any. attributes_fill is called under the model lock, attributes_of takes it.
 */
#ifndef RMM_FUSEFS_ATTRIBUTES_H
#define RMM_FUSEFS_ATTRIBUTES_H

#include <stdbool.h>
#include <sys/stat.h>

#include "model/tree.h"
#include "programs/watch.h"
#include "session/opened_list.h"

/* For a name that is looked up. False: the file is gone. */
bool attributes_fill(const model_t *model, node_t node, struct stat *attributes);

/* The same of a node for which tree_info_listed() may be called. */
void attributes_fill_listed(const model_t *model, node_t node, struct stat *attributes);

/* For a file that `reader` asks about. False: it is gone. */
bool attributes_of(
    watch_t *watch, opened_list_t *list, node_t node, reader_t reader,
    struct stat *attributes);

/* 0: the kernel requests the true size each time. */
double attributes_seconds(node_t node);

/* How long a name may be cached: 0 for the log, whose name is another file for each user, and for
 * a process that some users do not see. */
double attributes_entry_seconds(const model_t *model, node_t node);

#endif /* RMM_FUSEFS_ATTRIBUTES_H */
