/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files that print are made of: numbers, lines, and one renderer per kind of
 * directory. Only for render*.c.
 */
#ifndef RMM_FUSEFS_RENDER_PARTS_H
#define RMM_FUSEFS_RENDER_PARTS_H

#include "diag/stacks_reader.h"
#include "figures.h"
#include "page/sink.h"
#include "render.h"
#include "text.h"
#include "tree.h"

/* Where a page goes. */
rmm_sink_t render_sink(text_t *text);

/* "42"; unknown is "-1". */
void render_number(text_t *text, uint64_t value);
/* "42\n"; unknown is "-1\n". */
void render_value(text_t *text, uint64_t value);
/* "max": none */
void render_limit(text_t *text, uint64_t limit_bytes);
/* A number in a table. */
void render_column(text_t *text, uint64_t value);
/* "key 42\n" */
void render_key(text_t *text, const char *key, uint64_t value);
/* A string of another process, or -1 if it is empty: unknown; and a newline. */
void render_string(text_t *text, const char *string);

/* A file that shows one figure. False: this file is none. */
bool render_figure(text_t *text, uint8_t file, const figures_t *figures);
/* What must be read for it. */
unsigned render_figure_needs(uint8_t file);

/* The lines of `stat`: what a location has, what a resource has, what newer programs have. */
void render_location_stat(
    text_t *text, const figures_t *figures, const extras_t *extras);
void render_slot_stat(text_t *text, const figures_t *figures, const extras_t *extras);
void render_events(text_t *text, const figures_t *figures);

/* What a process's tracking adaptors know to be out: find the side files, then read and close
 * them. */
void render_leaks_begin(const process_t *process, render_rest_t *rest);
void render_leaks(render_rest_t *rest, text_t *text);

/* The same for what a diagnosis library reports. */
void render_diag_begin(const process_t *process, render_rest_t *rest);
void render_diag(render_rest_t *rest, text_t *text);
/* Stacks in a table, and behind it a line for each file that a frame is in. */
#define FRAMES_FILES_MAX 1024u /* of which a side file may tell */
typedef struct frames {
    const rmm_diag_file_t *file;
    text_t *text;
    bool shown[FRAMES_FILES_MAX]; /* by a frame */
} frames_t;
/* Where a block was allocated: FILE+OFFSET;..., innermost first; "-": not known. */
void render_site(frames_t *frames, uint32_t site);
void render_frame_files(const frames_t *frames);
/* The rows of diag/stacks. */
void render_stacks(const render_rest_t *rest, text_t *text);
/* Of the file that a frame is in: without its folder; what would end a frame is replaced. */
void render_module_name(const char *path, text_t *text);
/* The first line of a table of findings, and one of them. */
void render_findings_header(text_t *text);
void render_finding(
    const rmm_diag_finding_info_t *finding, uint64_t now_ns, text_t *text);
/* What the peak of each location was made of. */
void render_peaks(const render_rest_t *rest, text_t *text);
/* Blocks that wasted memory. */
void render_verdicts(const render_rest_t *rest, text_t *text);
/* The name of a kernel or function; "-": none, or it has no name. file may be NULL. */
void render_block_user(const rmm_diag_file_t *file, uint32_t index, text_t *text);
/* Type and name, which end the line. */
void render_block_resource(const rmm_diag_resource_name_t *resource, text_t *text);

/* The same for a pool's blocks, and for all that is known of the live blocks of a process:
 * 0 or a negative errno, -ETIMEDOUT: there is no report. */
int render_blocks_begin(model_t *model, node_t node, render_rest_t *rest);
void render_blocks(render_rest_t *rest, text_t *text);
void render_allocations_begin(const process_t *process, render_rest_t *rest);
void render_allocations(render_rest_t *rest, text_t *text);

/* 0 or -ENOENT. */
int render_daemon(model_t *model, node_t node, text_t *text);

#endif /* RMM_FUSEFS_RENDER_PARTS_H */
