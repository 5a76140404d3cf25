/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open directories. A directory is listed when it is opened: no entry appears twice or is skipped
 * while processes appear and disappear. Knows no FUSE. Threads: any.
 */
#ifndef RMM_FUSEFS_LISTING_H
#define RMM_FUSEFS_LISTING_H

#include <stddef.h>

#include "model/tree.h"
#include "programs/watch.h"
#include "session/opened_list.h"

typedef struct listing listing_t;

/* For this reader: 0, -ENOENT, -ENOMEM, -EDQUOT as for files. */
int listing_open(
    opened_list_t *list, watch_t *watch, node_t dir, reader_t reader,
    listing_t **listing_out);
void listing_close(opened_list_t *list, listing_t *listing);

/* The entry at a position: 0 is ".", 1 "..". NULL: the end. */
const char *listing_at(const listing_t *listing, size_t position, node_t *node_out);

#endif /* RMM_FUSEFS_LISTING_H */
