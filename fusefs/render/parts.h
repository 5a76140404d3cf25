/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of texts that several printers share. Only for this folder.
 */
#ifndef RMM_FUSEFS_RENDER_PARTS_H
#define RMM_FUSEFS_RENDER_PARTS_H

#include "diag/stacks_reader.h"
#include "model/level_figures.h"
#include "model/node_events.h"
#include "model/snapshot.h"
#include "model/tree.h"
#include "page/sink.h"
#include "render/render.h"
#include "support/text.h"

/* Where a page goes. */
rmm_sink_t render_sink(text_t *text);

/* "42"; unknown is "-1". */
void render_number(text_t *text, uint64_t value);
/* "42\n"; unknown is "-1\n". */
void render_value(text_t *text, uint64_t value);
/* A number in a table. */
void render_column(text_t *text, uint64_t value);
/* "key 42\n" */
void render_key(text_t *text, const char *key, uint64_t value);
/* "0.123\n"; unknown is "-1\n". */
void render_fragmentation(text_t *text, const figures_t *figures);
/* A string of another process, or -1 if it is empty: unknown; and a newline. */
void render_string(text_t *text, const char *string);

/* In quotes, as JSON and Prometheus both read it. */
void put_quoted(text_t *text, const char *string);

/* , "key": "value"; null if it is empty: unknown. For the next one: null unless it is known. */
void put_text_key(text_t *text, const char *key, const char *value);
void put_number_key(text_t *text, const char *key, bool is_known, uint64_t value);

/* Is what belongs to `owner` shown to the reader of the text? */
bool is_shown_to(const hiding_t *hiding, uid_t owner, const text_t *text);

/* Of the holders of a refusal, those that are not shown one by one to the reader. */
typedef struct refusal_rest {
    uint32_t programs;
    uint64_t bytes;
} refusal_rest_t;
refusal_rest_t
refusal_rest(const hiding_t *hiding, const refusal_scene_t *scene, const text_t *text);

/* Is a limit of a group shown to the reader of the text? */
bool is_limit_shown(
    const snapshot_t *snapshot, const limit_t *limit, const text_t *text);
/* "gpu0", "host", "all" */
void put_limited_device(const limit_t *limit, char device[16]);
/* False: it is for all programs, or for a job of whatever user. */
bool limit_has_user(const limit_t *limit);

/* "2026-11-22T23:39:30.795848123Z" */
void render_time(text_t *text, uint64_t time_ns);
/* An object on one line. */
void render_node_event(const node_event_t *event, text_t *text);

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
/* The name of the file that a frame is in, without its folder; a byte that would end a frame is
 * replaced. */
void render_module_name(const char *path, text_t *text);
/* The first line of a table of findings, and one of them. */
void render_findings_header(text_t *text);
void render_finding(
    const rmm_diag_finding_info_t *finding, uint64_t now_ns, text_t *text);
/* The name of a kernel or function; "-": none, or it has no name. file may be NULL. */
void render_block_user(const rmm_diag_file_t *file, uint32_t index, text_t *text);
/* Type and name, which end the line. */
void render_block_resource(const rmm_diag_resource_name_t *resource, text_t *text);

#endif /* RMM_FUSEFS_RENDER_PARTS_H */
