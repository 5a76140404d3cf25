/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files that make `metrics`. Only for metrics*.c.
 *
 *   metrics         the text: a head for each metric, and its rows
 *   metrics_levels  what has rows, its labels, and how much of the text each user has
 *   metrics_heads   the lines before rows, and all that is not a row of a level
 */
#ifndef RMM_FUSEFS_RENDER_METRICS_H
#define RMM_FUSEFS_RENDER_METRICS_H

#include "model/metric_names.h"
#include "model/snapshot.h"
#include "model/tree.h"
#include "render/user_names.h"
#include "support/shares.h"
#include "support/text.h"

/* A device, a process on a device, or a resource, and the labels of all its rows. */
typedef struct level {
    const figures_t *figures;
    uid_t uid;
    uint32_t newer;                 /* head of its chain: newer_stats.h */
    uint32_t labels, labels_length; /* in `labels` below */
} level_t;

typedef struct family {
    dir_kind_t dir;
    const char *prefix, *what;
    uint32_t first, count; /* its levels */
} family_t;

enum { FAMILY_DEVICE, FAMILY_PROCESS, FAMILY_RESOURCE, FAMILY_COUNT };

typedef enum metrics_format {
    METRICS_PROMETHEUS,
    METRICS_OPENMETRICS
} metrics_format_t;

typedef struct metrics {
    const snapshot_t *snapshot;
    metrics_format_t format;
    bool has_all; /* figures of programs, and resources */
    user_names_t users;
    text_t *text;
    text_t labels; /* of all levels, one behind the other */
    level_t *levels;
    uint32_t level_count;
    family_t families[FAMILY_COUNT];
    char names[SHOWN_STATS_MAX][METRIC_NAME_BYTES]; /* without prefix and _total */
    shares_t left_out; /* refused: levels that are not shown */
} metrics_t;

/* --- metrics_levels.c ------------------------------------------------------------------- */

/* "_total" of a counter */
const char *metrics_suffix(uint16_t kind);
/* Whether a family has a row for the statistic. */
bool metrics_has(const metrics_t *metrics, const family_t *family, uint32_t index);
void metrics_add_levels(metrics_t *metrics);
/* Leave out levels of users who would have more than their share of the text. */
void metrics_share_bytes(metrics_t *metrics);

/* --- metrics_heads.c -------------------------------------------------------------------- */

typedef struct head {
    const char *prefix, *name;
    const char *type; /* counter, gauge, info */
    const char *unit; /* that the name ends in; "": none */
    const char *help, *what;
} head_t;

void metrics_put_head(const metrics_t *metrics, const head_t *head);
void metrics_put_label(text_t *text, const char *before, const char *value);
void metrics_put_device_labels(text_t *text, const snapshot_device_t *device);
/* All before the rows of levels, and all after them. */
void metrics_put_before(const metrics_t *metrics);
void metrics_put_after(metrics_t *metrics, budget_t *budget);

#endif /* RMM_FUSEFS_RENDER_METRICS_H */
