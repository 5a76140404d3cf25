/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of each file. Formats are those of rmm(5) and are an interface: decimal numbers, -1 for
 * unknown, a newline at the end; `stat` and `events` one "key value" a line, keys only ever added;
 * tables with a header line that begins with #.
 *
 * Knows no FUSE.
 */
#ifndef RMM_FUSEFS_RENDER_H
#define RMM_FUSEFS_RENDER_H

#include "model/snapshot.h"
#include "model/tree.h"
#include "render/subject.h"
#include "support/text.h"

/*
 * Replace *text by that of the file: begin with the model's lock, shared is enough; end without
 * it, and only after a 0. 0, -ENOENT if it is gone, -EISDIR, -ENOMEM, -EDQUOT if the user who is
 * charged with it has too much, -EFBIG if it is longer than a text may be; of a report those of
 * subject_collect().
 */
int render_begin(model_t *model, node_t node, text_t *text, subject_t *subject);
int render_end(subject_t *subject, text_t *text);

/* Whether the file is about the whole node: then its text is made from a snapshot, without
 * the lock, and not by the two above. */
bool render_is_of_node(node_t node);
int render_snapshot(
    const snapshot_t *snapshot, model_t *model, node_t node, text_t *text);

#endif /* RMM_FUSEFS_RENDER_H */
