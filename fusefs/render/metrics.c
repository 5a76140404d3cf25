/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `metrics`, `rmm.prom` and `metrics.om`: the node's figures for Prometheus, in its text format
 * and in that of OpenMetrics 1.0. The samples are the same; the lines before them differ. They have
 * few figures of each program (metric_names.h); `metrics.all` has all.
 *
 * An unknown figure has no sample, and neither has a process that has exited: its series end.
 * Labels are spelt as DCGM spells them (gpu, UUID), so that a query can join both.
 *
 * A text has TEXT_NODE_BYTES_MAX bytes. If there is more to show, each user has a share of
 * them (shares.h). Whole levels are left out, resources first, and rmm_over_budget says how many:
 * so no family is shown of one process and not of another.
 *
 * Cost: labels are printed once a level and copied into each of its rows, some 30 ns a row.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "render/metrics.h"
#include "render/parts.h"
#include "render/printers.h"

/* --- metrics of levels ---------------------------------------------------------------- */

/* A metric of a family. */
typedef struct metric {
    const family_t *family;
    const char *stem; /* its name without prefix and suffix */
    const char *unit, *help;
    uint16_t kind;
} metric_t;

typedef struct name {
    char bytes[METRIC_NAME_BYTES * 2];
    size_t length;
} name_t;

static void put_head(const metrics_t *metrics, const metric_t *metric)
{
    char what[64];
    (void)snprintf(what, sizeof(what), ", %s", metric->family->what);
    metrics_put_head(
        metrics, &(head_t){
                     .prefix = metric->family->prefix,
                     .name = metric->stem,
                     .type = metric->kind == RMM_KIND_COUNTER ? "counter" : "gauge",
                     .unit = metric->unit,
                     .help = metric->help,
                     .what = what});
}

static name_t name_of(const metric_t *metric)
{
    name_t name;
    name.length = (size_t)snprintf(
        name.bytes, sizeof(name.bytes), "%s%s%s", metric->family->prefix, metric->stem,
        metrics_suffix(metric->kind));
    return name;
}

/* A row without its value. */
static void
begin_row(const metrics_t *metrics, const name_t *name, const level_t *level)
{
    text_append(metrics->text, name->bytes, name->length);
    text_append(
        metrics->text, metrics->labels.data + level->labels, level->labels_length);
}

static void put_stat(const metrics_t *metrics, const family_t *family, uint32_t index)
{
    const shown_stat_t *stat = &shown_stats[index];
    const metric_t metric = {
        .family = family,
        .stem = metrics->names[index],
        .unit = stat->unit == RMM_UNIT_BYTES ? "bytes" : "",
        .help = stat->help,
        .kind = stat->kind};
    const name_t name = name_of(&metric);
    put_head(metrics, &metric);
    for (uint32_t i = 0; i < family->count; i++) {
        const level_t *level = &metrics->levels[family->first + i];
        uint64_t value = shown_value(level->figures, stat);
        if (value != FIGURE_UNKNOWN) {
            begin_row(metrics, &name, level);
            render_value(metrics->text, value);
        }
    }
}

static void put_fragmentation(const metrics_t *metrics, const family_t *family)
{
    const metric_t metric = {
        .family = family,
        .stem = "fragmentation_ratio",
        .unit = "ratio",
        .help = "1 - largest free / free bytes of pools, 0 if none is free",
        .kind = RMM_KIND_GAUGE};
    const name_t name = name_of(&metric);
    put_head(metrics, &metric);
    for (uint32_t i = 0; i < family->count; i++) {
        const level_t *level = &metrics->levels[family->first + i];
        if (figures_fragmentation(level->figures) != FIGURE_UNKNOWN) {
            begin_row(metrics, &name, level);
            render_fragmentation(metrics->text, level->figures);
        }
    }
}

static bool ends_in_bytes(const char *name)
{
    size_t length = strlen(name);
    return length > 6 && strcmp(name + length - 6, "_bytes") == 0;
}

/* A statistic of newer programs. The schema in their segments tells its name and kind. */
static void put_extra(const metrics_t *metrics, const family_t *family, uint32_t index)
{
    const newer_stats_t *newer = &metrics->snapshot->newer_stats;
    const char *stem = newer->items[index].metric;
    char help[96];
    const metric_t metric = {
        .family = family,
        .stem = stem,
        .unit = ends_in_bytes(stem) ? "bytes" : "",
        .help = help,
        .kind = newer->items[index].kind};
    const name_t name = name_of(&metric);
    (void)snprintf(
        help, sizeof(help), "Statistic %s of programs newer than rmmfs",
        newer->items[index].name);
    put_head(metrics, &metric);
    for (uint32_t i = 0; i < family->count; i++) {
        const level_t *level = &metrics->levels[family->first + i];
        uint64_t value = newer_value_of(newer, level->newer, index);
        if (value != FIGURE_UNKNOWN) {
            begin_row(metrics, &name, level);
            render_value(metrics->text, value);
        }
    }
}

static void put_levels(const metrics_t *metrics)
{
    const family_t *families = metrics->families;
    const newer_stats_t *newer = &metrics->snapshot->newer_stats;
    for (uint32_t i = 0; i < shown_stat_count; i++) {
        for (uint32_t j = 0; j < FAMILY_COUNT; j++) {
            if (metrics_has(metrics, &families[j], i)) {
                put_stat(metrics, &families[j], i);
            }
        }
    }
    for (uint32_t j = 0; j < FAMILY_COUNT; j++) {
        if (metrics->has_all || j != FAMILY_PROCESS) {
            put_fragmentation(metrics, &families[j]);
        }
    }
    for (uint32_t i = 0; i < newer->count; i++) {
        if (newer->items[i].of_resources) {
            put_extra(metrics, &families[FAMILY_RESOURCE], i);
        } else {
            put_extra(metrics, &families[FAMILY_DEVICE], i);
            put_extra(metrics, &families[FAMILY_PROCESS], i);
        }
    }
}

/* --- all ------------------------------------------------------------------------------ */

static void put_all(metrics_t *metrics, budget_t *budget)
{
    text_t *text = metrics->text;
    text_init(&metrics->labels);
    text_charge(&metrics->labels, text->budget, text->uid);
    for (uint32_t i = 0; i < shown_stat_count; i++) {
        metric_name(shown_stats[i].name, metrics->names[i]);
    }
    metrics_add_levels(metrics);
    if (metrics->labels.failed != TEXT_GOOD) {
        text->failed = metrics->labels.failed;
    } else {
        metrics_share_bytes(metrics);
        metrics_put_before(metrics);
        put_levels(metrics);
        metrics_put_after(metrics, budget);
    }
    text_fini(&metrics->labels);
}

static void print_format(
    const subject_t *subject, metrics_format_t format, bool has_all, text_t *text)
{
    const snapshot_t *snapshot = subject->snapshot;
    size_t levels = snapshot->device_count + (size_t)snapshot->location_count +
                    snapshot->resource_count;
    size_t bytes = sizeof(metrics_t) + levels * sizeof(level_t);
    size_t with_users = bytes + user_names_bytes(snapshot);
    if (!text_take_scratch(text, with_users)) {
        return;
    }
    metrics_t *metrics = calloc(1, bytes);
    if (metrics == NULL) {
        text->failed = TEXT_NO_MEMORY;
    } else {
        metrics->snapshot = snapshot;
        metrics->format = format;
        metrics->has_all = has_all;
        metrics->text = text;
        metrics->levels = (level_t *)(void *)(metrics + 1);
        if (user_names_read(&metrics->users, snapshot)) {
            put_all(metrics, &subject->model->budget);
        } else {
            text->failed = TEXT_NO_MEMORY;
        }
        user_names_free(&metrics->users);
    }
    free(metrics);
    text_give_scratch(text, with_users);
}

void print_metrics(const subject_t *subject, text_t *text)
{
    print_format(subject, METRICS_PROMETHEUS, false, text);
}

void print_metrics_all(const subject_t *subject, text_t *text)
{
    print_format(subject, METRICS_PROMETHEUS, true, text);
}

void print_rmm_prom(const subject_t *subject, text_t *text)
{
    print_format(subject, METRICS_PROMETHEUS, false, text);
}

void print_metrics_om(const subject_t *subject, text_t *text)
{
    print_format(subject, METRICS_OPENMETRICS, false, text);
}
