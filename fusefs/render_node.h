/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts about the whole node, each made from a snapshot, and lines of events. Only for render_*.c
 * and stream.c.
 *
 * Threads: no lock is held; a snapshot does not change while a text is made from it.
 */
#ifndef RMM_FUSEFS_RENDER_NODE_H
#define RMM_FUSEFS_RENDER_NODE_H

#include "node_events.h"
#include "render.h"
#include "snapshot.h"
#include "text.h"

/* What is shown of a level: each statistic of stat_fields.h at the levels that have a file of
 * its name, and what is derived from them. */
typedef struct shown_stat {
    uint8_t file;
    uint16_t kind, unit; /* RMM_KIND_*, RMM_UNIT_* */
    const char *name, *help;
    size_t offset; /* in figures_t */
} shown_stat_t;

#define SHOWN_STATS_MAX 64u
extern const shown_stat_t shown_stats[];
extern const uint32_t shown_stat_count;

static inline uint64_t shown_value(const figures_t *figures, const shown_stat_t *stat)
{
    const char *figure = (const char *)figures + stat->offset;
    return *(const uint64_t *)(const void *)figure;
}

/* In quotes, as JSON and Prometheus both read it. */
void put_quoted(text_t *text, const char *string);

typedef enum metrics_format {
    METRICS_PROMETHEUS,
    METRICS_OPENMETRICS
} metrics_format_t;

void render_metrics(
    const snapshot_t *snapshot, budget_t *budget, metrics_format_t format,
    text_t *text);
typedef enum node_table { NODE_PROCESSES, NODE_USERS, NODE_CGROUPS } node_table_t;

void render_table(const snapshot_t *snapshot, node_table_t which, text_t *text);
void render_top(const snapshot_t *snapshot, text_t *text);
void render_json(const snapshot_t *snapshot, text_t *text);
void render_page(const snapshot_t *snapshot, const render_means_t *means, text_t *text);

/* An object on one line. */
void render_node_event(const node_event_t *event, text_t *text);

#endif /* RMM_FUSEFS_RENDER_NODE_H */
