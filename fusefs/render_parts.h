/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files that print are made of: numbers, lines, and one renderer per kind of
 * directory. Only for render*.c.
 */
#ifndef RMM_FUSEFS_RENDER_PARTS_H
#define RMM_FUSEFS_RENDER_PARTS_H

#include "figures.h"
#include "text.h"
#include "tree.h"

/* "42"; unknown is "-1". */
void render_number(text_t *text, uint64_t value);
/* "42\n"; unknown is "-1\n". */
void render_value(text_t *text, uint64_t value);
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
void render_place_stat(text_t *text, const figures_t *figures, const extras_t *extras);
void render_slot_stat(text_t *text, const figures_t *figures, const extras_t *extras);
void render_events(text_t *text, const figures_t *figures);

/* What a process's tracking adaptors know to be out. */
void render_leaks(const process_t *process, text_t *text);

/* The whole node in one file. 0 or -ENOMEM. */
int render_metrics(model_t *model, text_t *text);
int render_json(model_t *model, text_t *text);

/* All return 0 or -ENOENT. */
int render_root(model_t *model, node_t node, text_t *text);
int render_daemon(model_t *model, node_t node, text_t *text);
int render_device(model_t *model, node_t node, text_t *text);
int render_process(model_t *model, node_t node, text_t *text);
int render_process_device(model_t *model, node_t node, text_t *text);
int render_resource(model_t *model, node_t node, text_t *text);
int render_diag(model_t *model, node_t node, text_t *text);

#endif /* RMM_FUSEFS_RENDER_PARTS_H */
