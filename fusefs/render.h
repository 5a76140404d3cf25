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

#include "text.h"
#include "tree.h"

/* Replace *text by that of the file. 0, -ENOENT if it is gone, -ENOMEM, -EISDIR. */
int render_file(model_t *model, node_t node, text_t *text);

#endif /* RMM_FUSEFS_RENDER_H */
