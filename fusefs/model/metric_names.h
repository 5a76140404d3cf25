/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statistics that texts about the whole node show, and their names as metrics, by the
 * conventions of Prometheus: only counters end in _total, only histograms in _count, _sum and
 * _bucket. Pure. Threads: any.
 */
#ifndef RMM_FUSEFS_METRIC_NAMES_H
#define RMM_FUSEFS_METRIC_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/level_figures.h"
#include "model/tree.h"

#define METRIC_NAME_BYTES 64

/* A figure that is shown of a level: each statistic of stat_fields.h at the levels that have a
 * file of its name, and the figures that are derived from them. */
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

/*
 * Whether `metrics` has a figure of a level; `metrics.all` has each that has a file there. Series
 * cost a Prometheus memory, so a program has few: those that the alert rules and the dashboard
 * in fusefs/monitoring use, and those that show how much each program holds.
 */
bool metric_is_of_few(dir_kind_t dir, uint8_t file);

/* Without the prefix of its level and without _total; "" if nothing is left of it. */
void metric_name(const char *stat, char name[METRIC_NAME_BYTES]);

/* This daemon's own metrics of resources, or else of locations and devices, have the name. */
bool metric_is_known(const char *name, bool of_resources);

#endif /* RMM_FUSEFS_METRIC_NAMES_H */
