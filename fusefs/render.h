/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of each file. Formats are those of docs/filesystem.md and are an interface:
 * decimal numbers, -1 for unknown, a newline at the end; `stat` and `events` one "key
 * value" a line, keys only ever added; tables with a header line that begins with #.
 *
 * Knows no FUSE. Threads: model lock held, shared is enough.
 */
#ifndef RMM_FUSEFS_RENDER_H
#define RMM_FUSEFS_RENDER_H

#include "diag/diag_reader.h"
#include "segment/segment_blocks_reader.h"
#include "segment/segment_leaks_reader.h"
#include "snapshot.h"
#include "text.h"
#include "tree.h"

#define RENDER_LEAKS_MAX 8u    /* segments of one process whose side files are shown */
#define RENDER_PLACES_MAX 256u /* resources of which is known where they are */

typedef struct render_place {
    uint32_t resource_id, upstream_id;
    int32_t device; /* CUDA ordinal; -1: host memory */
} render_place_t;

/* What a file shows from side files of a segment: those are opened with the model's lock
 * held, and read without it, because there may be much in them. */
typedef struct render_rest {
    node_t node;
    uint32_t leaks_count;
    rmm_leaks_file_t leaks[RENDER_LEAKS_MAX];
    bool has_diag;
    rmm_diag_file_t diag;
    bool has_ended;        /* the program that wrote it, */
    uint64_t ended_ns_ago; /* 0: it has not */
    uint32_t blocks_count;
    rmm_blocks_file_t blocks[RENDER_LEAKS_MAX];
    uint32_t resource_id; /* whose blocks are shown */
    uint32_t places_count;
    render_place_t places[RENDER_PLACES_MAX]; /* of the segments in `blocks` */
} render_rest_t;

/*
 * Replace *text by that of the file: begin with the lock, end without it, and only after a 0.
 * 0, -ENOENT if it is gone, -EISDIR, -ENOMEM, -EDQUOT if the user who is charged with it has too
 * much, -EFBIG if it is longer than a text may be.
 */
int render_begin(model_t *model, node_t node, text_t *text, render_rest_t *rest);
int render_end(render_rest_t *rest, text_t *text);

/* Whether the file is about the whole node: then its text is made from a snapshot, without
 * the lock, and not by the two above. */
bool render_is_of_node(node_t node);

/* What such a text needs beyond the snapshot. */
typedef struct render_means {
    budget_t *budget;
    /* The last report of blocks of a segment (segment_blocks.h); false: there is none. */
    bool (*open_blocks)(
        const struct render_means *means, uint32_t member_serial,
        rmm_blocks_file_t *file);
    const void *from; /* of open_blocks */
} render_means_t;

int render_snapshot(
    const snapshot_t *snapshot, const render_means_t *means, node_t node, text_t *text);
/* open_blocks for a caller that has the model's lock; from: the model. */
bool render_open_blocks(
    const render_means_t *means, uint32_t member_serial, rmm_blocks_file_t *file);

#endif /* RMM_FUSEFS_RENDER_H */
