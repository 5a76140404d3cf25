/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files that make `metrics` share. Only for render_metrics*.c.
 *
 *   render_metrics         sections of rows, and the text piece by piece
 *   render_metrics_levels  what has rows, its labels, and what each user may have of the text
 *   render_metrics_heads   the lines before rows, and all that is not a row of a level
 */
#ifndef RMM_FUSEFS_RENDER_METRICS_H
#define RMM_FUSEFS_RENDER_METRICS_H

#include "metric_names.h"
#include "render_node.h"
#include "shares.h"
#include "tree.h"

/* A device, a process on a device, or a resource, and the labels of all its rows. */
typedef struct level {
    const figures_t *figures;
    uid_t uid;
    uint32_t extra;                 /* head of its chain: extra_stats.h */
    uint32_t labels, labels_length; /* in `labels` below */
} level_t;

typedef struct family {
    dir_kind_t dir;
    const char *prefix, *what;
    uint32_t first, count; /* its levels */
} family_t;

enum { FAMILY_DEVICE, FAMILY_PROCESS, FAMILY_RESOURCE, FAMILY_COUNT };

typedef enum section_kind {
    SECTION_STAT, /* index: of shown_stats */
    SECTION_FRAGMENTATION,
    SECTION_EXTRA /* index: of extra_stats */
} section_kind_t;

/* A head, and a row for each level of a family that has the figure. */
typedef struct section {
    section_kind_t kind;
    uint32_t family, index;
    uint64_t head_bytes, bytes;
} section_t;

#define SECTIONS_MAX (FAMILY_COUNT * (SHOWN_STATS_MAX + 1) + 2 * EXTRA_STATS_MAX)

/* Where a row begins in the text. Row 0 of a section is its head. */
typedef struct cursor {
    uint32_t section, row;
    uint64_t begins; /* the section */
    uint64_t at;     /* the row */
} cursor_t;

typedef struct metrics {
    text_source_t source; /* first */
    const snapshot_t *snapshot;
    snapshot_t *held; /* what figures point into */
    metrics_format_t format;
    level_t *levels;
    uint32_t level_count;
    text_t labels, before, after; /* the last two: the text but for the sections */
    text_t *text;                 /* what is put goes here */
    family_t families[FAMILY_COUNT];
    char names[SHOWN_STATS_MAX][METRIC_NAME_BYTES]; /* without prefix and _total */
    shares_t left_out; /* refused: levels that are not shown */
    section_t sections[SECTIONS_MAX];
    uint32_t section_count;
    uint64_t section_bytes; /* of all */
    cursor_t cursor;
    size_t scratch_bytes; /* charged to `labels` */
} metrics_t;

/* --- render_metrics_levels.c ------------------------------------------------------------ */

uint32_t metrics_digits(uint64_t value);
const char *metrics_suffix(uint16_t kind);
void metrics_add_levels(metrics_t *metrics);
/* Leave out levels of users who would have more than their share of the text. */
void metrics_share_bytes(metrics_t *metrics);

/* --- render_metrics_heads.c ------------------------------------------------------------- */

typedef struct head {
    const char *prefix, *name;
    const char *type; /* counter, gauge, info */
    const char *unit; /* that the name ends in; "": none */
    const char *help, *what;
} head_t;

void metrics_put_head(const metrics_t *metrics, const head_t *head);
void metrics_put_label(text_t *text, const char *before, const char *value);
void metrics_put_device_labels(text_t *text, const snapshot_device_t *device);
/* All before the sections, and all after them. */
void metrics_put_before(const metrics_t *metrics);
void metrics_put_after(metrics_t *metrics, budget_t *budget);

#endif /* RMM_FUSEFS_RENDER_METRICS_H */
