/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `metrics`, `rmm.prom` and `metrics.om`: the node's figures for Prometheus, in its text format
 * and in that of OpenMetrics 1.0. The samples are the same; the lines before them differ.
 *
 * What is unknown has no sample, and neither has a process that has exited: its series end.
 * Labels are spelt as DCGM spells them (gpu, UUID), so that a query can join both.
 *
 * A text has TEXT_NODE_BYTES_MAX bytes. If there is more to show, each user has a share of
 * them (shares.h). Whole levels are left out, resources first, and rmm_over_budget says how many:
 * so no family is shown of one process and not of another.
 *
 * Cost: labels are printed once a level and copied into each of its rows, which is most of the
 * work: 60 ns a row.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metric_names.h"
#include "render_node.h"
#include "render_parts.h"

#define NAME_BYTES METRIC_NAME_BYTES
#define VALUE_BYTES 24u
/* Of the text, what is not for levels. */
#define HEAD_BYTES ((size_t)128 << 10)
#define UP_BYTES 128u    /* for each process: rmm_process_up */
#define EXTRA_BYTES 640u /* for each value of a newer program's statistic */

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

typedef struct metrics {
    const snapshot_t *snapshot;
    text_t *text;
    metrics_format_t format;
    level_t *levels;
    uint32_t level_count;
    text_t labels;
    family_t families[FAMILY_COUNT];
    char names[SHOWN_STATS_MAX][NAME_BYTES]; /* without prefix and _total */
    shares_t left_out;                       /* refused: levels that are not shown */
} metrics_t;

/* --- names ---------------------------------------------------------------------------- */

static const char *suffix_of(uint16_t kind)
{
    return kind == RMM_KIND_COUNTER ? "_total" : "";
}

/* --- labels --------------------------------------------------------------------------- */

static void put_label(text_t *text, const char *before, const char *value)
{
    text_puts(text, before);
    put_quoted(text, value);
}

static void put_device_labels(text_t *text, const snapshot_device_t *device)
{
    put_label(text, "{gpu=", device->device == DEVICE_HOST ? "host" : device->name + 3);
    if (device->uuid[0] != '\0') {
        put_label(text, ",UUID=", device->uuid);
    }
}

static void put_process_labels(text_t *text, const snapshot_process_t *process)
{
    put_label(text, ",pid=", process->name);
    put_label(text, ",comm=", process->comm);
}

static level_t *
begin_level(metrics_t *metrics, const figures_t *figures, uid_t uid, uint32_t extra)
{
    level_t *level = &metrics->levels[metrics->level_count++];
    level->figures = figures;
    level->uid = uid;
    level->extra = extra;
    level->labels = (uint32_t)metrics->labels.length;
    return level;
}

static void end_level(metrics_t *metrics, level_t *level)
{
    text_puts(&metrics->labels, "} ");
    level->labels_length = (uint32_t)metrics->labels.length - level->labels;
}

static void add_devices(metrics_t *metrics)
{
    for (uint32_t i = 0; i < metrics->snapshot->device_count; i++) {
        const snapshot_device_t *device = &metrics->snapshot->devices[i];
        level_t *level = begin_level(metrics, &device->figures, 0, device->extra);
        put_device_labels(&metrics->labels, device);
        end_level(metrics, level);
    }
}

static void add_locations(metrics_t *metrics, const snapshot_process_t *process)
{
    for (uint32_t i = 0; i < process->location_count; i++) {
        const snapshot_location_t *location =
            &metrics->snapshot->locations[process->location + i];
        level_t *level =
            begin_level(metrics, &location->figures, process->uid, location->extra);
        put_device_labels(
            &metrics->labels, &metrics->snapshot->devices[location->device]);
        put_process_labels(&metrics->labels, process);
        end_level(metrics, level);
    }
}

static void add_resources(metrics_t *metrics, const snapshot_process_t *process)
{
    const snapshot_t *snapshot = metrics->snapshot;
    for (uint32_t i = 0; i < process->resource_count; i++) {
        const snapshot_resource_t *resource =
            &snapshot->resources[process->resource + i];
        level_t *level =
            begin_level(metrics, &resource->figures, process->uid, resource->extra);
        put_device_labels(&metrics->labels, &snapshot->devices[resource->device]);
        put_process_labels(&metrics->labels, process);
        put_label(&metrics->labels, ",resource=", resource->name);
        put_label(&metrics->labels, ",type=", resource->type);
        end_level(metrics, level);
    }
}

static void begin_family(
    metrics_t *metrics, int index, dir_kind_t dir, const char *prefix, const char *what)
{
    metrics->families[index] = (family_t){dir, prefix, what, metrics->level_count, 0};
}

static void end_family(metrics_t *metrics, int index)
{
    metrics->families[index].count =
        metrics->level_count - metrics->families[index].first;
}

typedef void (*add_fn)(metrics_t *metrics, const snapshot_process_t *process);

static void add_live(metrics_t *metrics, add_fn add)
{
    for (uint32_t i = 0; i < metrics->snapshot->process_count; i++) {
        if (metrics->snapshot->processes[i].is_live) {
            add(metrics, &metrics->snapshot->processes[i]);
        }
    }
}

static void add_levels(metrics_t *metrics)
{
    begin_family(
        metrics, FAMILY_DEVICE, DIR_DEVICE, "rmm_device_", "over all processes");
    add_devices(metrics);
    end_family(metrics, FAMILY_DEVICE);
    begin_family(
        metrics, FAMILY_PROCESS, DIR_PROCESS_DEVICE, "rmm_process_",
        "of a process on a device");
    add_live(metrics, add_locations);
    end_family(metrics, FAMILY_PROCESS);
    begin_family(
        metrics, FAMILY_RESOURCE, DIR_RESOURCE, "rmm_resource_", "of a resource");
    add_live(metrics, add_resources);
    end_family(metrics, FAMILY_RESOURCE);
}

/* --- shares --------------------------------------------------------------------------- */

static uint32_t digits_of(uint64_t value)
{
    uint32_t digits = 1;
    for (; value >= 10; value /= 10) {
        digits++;
    }
    return digits;
}

/* How long all rows of a level are. */
static uint64_t
bytes_of(const metrics_t *metrics, const family_t *family, const level_t *level)
{
    uint64_t bytes = 0;
    size_t prefix = strlen(family->prefix);
    for (uint32_t i = 0; i < shown_stat_count; i++) {
        uint64_t value = shown_value(level->figures, &shown_stats[i]);
        if (value != FIGURE_UNKNOWN && tree_dir_has(family->dir, shown_stats[i].file)) {
            bytes += prefix + strlen(metrics->names[i]) +
                     strlen(suffix_of(shown_stats[i].kind)) + level->labels_length +
                     digits_of(value) + 1;
        }
    }
    return bytes + prefix + sizeof("fragmentation_ratio 0.000") + level->labels_length;
}

/* Leaves those in the list for which their user has bytes left. */
static void keep_affordable(metrics_t *metrics, family_t *family, shares_t *bytes)
{
    uint32_t kept = 0;
    level_t *levels = &metrics->levels[family->first];
    for (uint32_t i = 0; i < family->count; i++) {
        if (shares_take(bytes, levels[i].uid, bytes_of(metrics, family, &levels[i]))) {
            levels[kept++] = levels[i];
        } else {
            shares_refuse(&metrics->left_out, levels[i].uid, 1);
        }
    }
    family->count = kept;
}

/* At least as long as all rows of a family: cheap to tell, and nearly always enough. */
static uint64_t most_bytes_of(const metrics_t *metrics, const family_t *family)
{
    uint64_t prefix = strlen(family->prefix), names = 0, labels = 0, rows = 1;
    for (uint32_t i = 0; i < shown_stat_count; i++) {
        if (tree_dir_has(family->dir, shown_stats[i].file)) {
            names += prefix + strlen(metrics->names[i]) +
                     strlen(suffix_of(shown_stats[i].kind)) + VALUE_BYTES;
            rows++;
        }
    }
    for (uint32_t i = 0; i < family->count; i++) {
        labels += metrics->levels[family->first + i].labels_length;
    }
    names += prefix + sizeof("fragmentation_ratio 0.000");
    return names * family->count + rows * labels;
}

/* The devices are the daemon's own, and few. */
static void share_bytes(metrics_t *metrics)
{
    shares_t bytes = {.count = 0};
    uint64_t total = 0;
    uint64_t others =
        HEAD_BYTES + (uint64_t)UP_BYTES * metrics->snapshot->process_count +
        (uint64_t)EXTRA_BYTES * metrics->snapshot->extra_stats.value_count;
    if (most_bytes_of(metrics, &metrics->families[FAMILY_PROCESS]) +
            most_bytes_of(metrics, &metrics->families[FAMILY_RESOURCE]) <=
        TEXT_NODE_BYTES_MAX - others) {
        return;
    }
    for (int i = FAMILY_PROCESS; i <= FAMILY_RESOURCE; i++) {
        const family_t *family = &metrics->families[i];
        for (uint32_t j = 0; j < family->count; j++) {
            const level_t *level = &metrics->levels[family->first + j];
            uint64_t wanted = bytes_of(metrics, family, level);
            shares_want(&bytes, level->uid, wanted);
            total += wanted;
        }
    }
    if (total > TEXT_NODE_BYTES_MAX - others) {
        shares_allot(&bytes, TEXT_NODE_BYTES_MAX - others);
        keep_affordable(metrics, &metrics->families[FAMILY_PROCESS], &bytes);
        keep_affordable(metrics, &metrics->families[FAMILY_RESOURCE], &bytes);
    }
}

/* --- families ------------------------------------------------------------------------- */

typedef struct head {
    const char *prefix, *name;
    const char *type; /* counter, gauge, info */
    const char *unit; /* that the name ends in; "": none */
    const char *help, *what;
} head_t;

/* In OpenMetrics a family has the name of its samples without _total or _info. */
static void put_head(const metrics_t *metrics, const head_t *head)
{
    text_t *text = metrics->text;
    bool is_counter = strcmp(head->type, "counter") == 0;
    bool is_info = strcmp(head->type, "info") == 0;
    if (metrics->format == METRICS_OPENMETRICS) {
        text_printf(text, "# TYPE %s%s %s\n", head->prefix, head->name, head->type);
        if (head->unit[0] != '\0') {
            text_printf(text, "# UNIT %s%s %s\n", head->prefix, head->name, head->unit);
        }
        text_printf(
            text, "# HELP %s%s %s%s\n", head->prefix, head->name, head->help,
            head->what);
        return;
    }
    const char *suffix = is_counter ? "_total" : is_info ? "_info" : "";
    text_printf(
        text, "# HELP %s%s%s %s%s\n# TYPE %s%s%s %s\n", head->prefix, head->name,
        suffix, head->help, head->what, head->prefix, head->name, suffix,
        is_info ? "gauge" : head->type);
}

static void put_row(
    const metrics_t *metrics, const char *name, size_t name_length,
    const level_t *level, uint64_t value)
{
    char *to =
        text_reserve(metrics->text, name_length + level->labels_length + VALUE_BYTES);
    if (to == NULL) {
        return;
    }
    memcpy(to, name, name_length);
    memcpy(
        to + name_length, metrics->labels.data + level->labels, level->labels_length);
    metrics->text->length += name_length + level->labels_length;
    render_value(metrics->text, value);
}

static void put_family(const metrics_t *metrics, const family_t *family, uint32_t index)
{
    const shown_stat_t *stat = &shown_stats[index];
    char what[64], name[NAME_BYTES * 2];
    (void)snprintf(what, sizeof(what), ", %s", family->what);
    put_head(
        metrics, &(head_t){
                     family->prefix, metrics->names[index],
                     stat->kind == RMM_KIND_COUNTER ? "counter" : "gauge",
                     stat->unit == RMM_UNIT_BYTES ? "bytes" : "", stat->help, what});
    int length = snprintf(
        name, sizeof(name), "%s%s%s", family->prefix, metrics->names[index],
        suffix_of(stat->kind));
    for (uint32_t i = 0; i < family->count; i++) {
        const level_t *level = &metrics->levels[family->first + i];
        uint64_t value = shown_value(level->figures, stat);
        if (value != FIGURE_UNKNOWN) {
            put_row(metrics, name, (size_t)length, level, value);
        }
    }
}

static bool ends_in_bytes(const char *name)
{
    size_t length = strlen(name);
    return length > 6 && strcmp(name + length - 6, "_bytes") == 0;
}

/* A statistic of newer programs, of which the schema in their segments tells name and kind. */
static void
put_extra_family(const metrics_t *metrics, const family_t *family, uint32_t index)
{
    const extra_stat_t *stat = &metrics->snapshot->extra_stats.items[index];
    char help[96], what[64], name[NAME_BYTES * 2];
    (void)snprintf(what, sizeof(what), ", %s", family->what);
    (void)snprintf(
        help, sizeof(help), "Statistic %s of programs newer than rmmfs", stat->name);
    put_head(
        metrics, &(head_t){
                     family->prefix, stat->metric,
                     stat->kind == RMM_KIND_COUNTER ? "counter" : "gauge",
                     ends_in_bytes(stat->metric) ? "bytes" : "", help, what});
    int length = snprintf(
        name, sizeof(name), "%s%s%s", family->prefix, stat->metric,
        suffix_of(stat->kind));
    for (uint32_t i = 0; i < family->count; i++) {
        const level_t *level = &metrics->levels[family->first + i];
        uint64_t value =
            extra_value_of(&metrics->snapshot->extra_stats, level->extra, index);
        if (value != FIGURE_UNKNOWN) {
            put_row(metrics, name, (size_t)length, level, value);
        }
    }
}

static void put_extras(const metrics_t *metrics)
{
    for (uint32_t i = 0; i < metrics->snapshot->extra_stats.count; i++) {
        if (metrics->snapshot->extra_stats.items[i].of_resources) {
            put_extra_family(metrics, &metrics->families[FAMILY_RESOURCE], i);
        } else {
            put_extra_family(metrics, &metrics->families[FAMILY_DEVICE], i);
            put_extra_family(metrics, &metrics->families[FAMILY_PROCESS], i);
        }
    }
}

static void put_fragmentation(const metrics_t *metrics, const family_t *family)
{
    put_head(
        metrics, &(head_t){
                     family->prefix, "fragmentation_ratio", "gauge", "ratio",
                     "1 - largest free / free bytes of pools, 0 if none is free, ",
                     family->what});
    for (uint32_t i = 0; i < family->count; i++) {
        const level_t *level = &metrics->levels[family->first + i];
        uint64_t thousandths = figures_fragmentation(level->figures);
        if (thousandths != FIGURE_UNKNOWN) {
            text_puts(metrics->text, family->prefix);
            text_puts(metrics->text, "fragmentation_ratio");
            text_append(
                metrics->text, metrics->labels.data + level->labels,
                level->labels_length);
            text_printf(
                metrics->text, "%u.%03u\n", (unsigned)(thousandths / 1000),
                (unsigned)(thousandths % 1000));
        }
    }
}

static void put_levels(const metrics_t *metrics)
{
    for (uint32_t i = 0; i < shown_stat_count; i++) {
        for (int j = 0; j < FAMILY_COUNT; j++) {
            if (tree_dir_has(metrics->families[j].dir, shown_stats[i].file)) {
                put_family(metrics, &metrics->families[j], i);
            }
        }
    }
    for (int j = 0; j < FAMILY_COUNT; j++) {
        put_fragmentation(metrics, &metrics->families[j]);
    }
}

/* --- what is told of devices and processes --------------------------------------------- */

static void put_device_value(
    const metrics_t *metrics, const char *name, uint32_t index, uint64_t value)
{
    if (value != 0) { /* unknown */
        put_row(metrics, name, strlen(name), &metrics->levels[index], value);
    }
}

static void put_capacities(const metrics_t *metrics)
{
    const snapshot_t *snapshot = metrics->snapshot;
    put_head(
        metrics,
        &(head_t){
            "rmm_device_", "capacity_bytes", "gauge", "bytes", "Memory of a GPU", ""});
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        put_device_value(
            metrics, "rmm_device_capacity_bytes", i,
            snapshot->devices[i].capacity_bytes);
    }
    put_head(
        metrics,
        &(head_t){
            "rmm_device_", "driver_free_bytes", "gauge", "bytes",
            "The driver's last answer to a program that asked what is free", ""});
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        put_device_value(
            metrics, "rmm_device_driver_free_bytes", i,
            snapshot->devices[i].figures.device_free_bytes);
    }
}

static void put_device_infos(const metrics_t *metrics)
{
    put_head(
        metrics, &(head_t){"rmm_", "device", "info", "", "What is known of a GPU", ""});
    for (uint32_t i = 0; i < metrics->snapshot->device_count; i++) {
        const snapshot_device_t *device = &metrics->snapshot->devices[i];
        if (device->device != DEVICE_HOST) {
            text_puts(metrics->text, "rmm_device_info");
            put_device_labels(metrics->text, device);
            put_label(metrics->text, ",pci_bus_id=", device->pci_bus_id);
            put_label(metrics->text, ",name=", device->model);
            text_puts(metrics->text, "} 1\n");
        }
    }
}

/* A process that cannot be read is 0, and has no other series: old is never shown as 0. */
static void put_up(const metrics_t *metrics)
{
    char uid[16];
    put_head(
        metrics, &(head_t){
                     "rmm_process_", "up", "gauge", "",
                     "1: its figures are read; 0: they cannot be read", ""});
    for (uint32_t i = 0; i < metrics->snapshot->process_count; i++) {
        const snapshot_process_t *process = &metrics->snapshot->processes[i];
        if (process->is_live || !process->is_readable) {
            (void)snprintf(uid, sizeof(uid), "%u", (unsigned)process->uid);
            put_label(metrics->text, "rmm_process_up{pid=", process->name);
            put_label(metrics->text, ",comm=", process->comm);
            put_label(metrics->text, ",uid=", uid);
            text_puts(metrics->text, process->is_readable ? "} 1\n" : "} 0\n");
        }
    }
}

/* --- the daemon ------------------------------------------------------------------------ */

static void name_user(const shares_t *shares, uint32_t index, char name[16])
{
    if (index == SHARES_USERS_MAX - 1) {
        (void)snprintf(name, 16, "others");
    } else {
        (void)snprintf(name, 16, "%u", (unsigned)shares->users[index].uid);
    }
}

static void add_left_out(shares_t *sum, const shares_t *shares)
{
    for (uint32_t i = 0; i < shares->count; i++) {
        if (shares->users[i].refused > 0) {
            shares_refuse(sum, shares->users[i].uid, shares->users[i].refused);
        }
    }
}

static void put_over_budget(metrics_t *metrics)
{
    char uid[16];
    add_left_out(&metrics->left_out, &metrics->snapshot->location_shares);
    add_left_out(&metrics->left_out, &metrics->snapshot->resource_shares);
    add_left_out(&metrics->left_out, &metrics->snapshot->extra_stats.shares);
    put_head(
        metrics, &(head_t){
                     "rmm_", "over_budget", "gauge", "",
                     "Devices of processes and resources of a user that are left "
                     "out here",
                     ""});
    for (uint32_t i = 0; i < metrics->left_out.count; i++) {
        name_user(&metrics->left_out, i, uid);
        put_label(metrics->text, "rmm_over_budget{uid=", uid);
        text_puts(metrics->text, "} ");
        render_value(metrics->text, metrics->left_out.users[i].refused);
    }
}

static void put_refusals(const metrics_t *metrics, budget_t *budget)
{
    budget_user_t user;
    char uid[16];
    put_head(
        metrics, &(head_t){
                     "rmm_", "refused", "counter", "",
                     "What the daemon refused a user, as in daemon/over_budget", ""});
    for (uint32_t i = 0; budget_user_at(budget, i, &user); i++) {
        (void)snprintf(
            uid, sizeof(uid), user.uid == BUDGET_OTHERS ? "others" : "%u",
            (unsigned)user.uid);
        if (!hiding_shows(
                &metrics->snapshot->hiding, user.uid, metrics->text->uid,
                metrics->text->is_member)) {
            continue;
        }
        for (budget_kind_t kind = 0; kind < BUDGET_KIND_COUNT; kind++) {
            if (user.refused[kind] > 0) {
                put_label(metrics->text, "rmm_refused_total{uid=", uid);
                put_label(metrics->text, ",kind=", budget_kind_name(kind));
                text_puts(metrics->text, "} ");
                render_value(metrics->text, user.refused[kind]);
            }
        }
    }
}

static void put_single(const metrics_t *metrics, const head_t *head, uint64_t value)
{
    put_head(metrics, head);
    text_puts(metrics->text, head->prefix);
    text_puts(metrics->text, head->name);
    text_puts(metrics->text, strcmp(head->type, "counter") == 0 ? "_total " : " ");
    render_value(metrics->text, value);
}

static void put_daemon(const metrics_t *metrics)
{
    const snapshot_t *snapshot = metrics->snapshot;
    put_single(
        metrics,
        &(head_t){
            "rmm_daemon_", "segments", "gauge", "",
            "Segments of live programs that are shown", ""},
        snapshot->segments);
    put_single(
        metrics,
        &(head_t){
            "rmm_daemon_", "segments_rejected", "counter", "",
            "Segments that were refused; the daemon's log says why", ""},
        snapshot->segments_rejected);
    put_single(
        metrics,
        &(head_t){
            "rmm_daemon_", "start_time_seconds", "gauge", "seconds",
            "When the daemon was started, since 1970", ""},
        snapshot->start_seconds);
}

/* --- all -------------------------------------------------------------------------------- */

static void put_all(metrics_t *metrics, budget_t *budget)
{
    for (uint32_t i = 0; i < shown_stat_count; i++) {
        metric_name(shown_stats[i].name, metrics->names[i]);
    }
    add_levels(metrics);
    share_bytes(metrics);
    put_device_infos(metrics);
    put_capacities(metrics);
    put_levels(metrics);
    put_extras(metrics);
    put_up(metrics);
    put_over_budget(metrics);
    put_refusals(metrics, budget);
    put_daemon(metrics);
    if (metrics->format == METRICS_OPENMETRICS) {
        text_puts(metrics->text, "# EOF\n");
    }
    if (metrics->labels.failed != TEXT_GOOD) {
        metrics->text->failed = metrics->labels.failed;
    }
}

static void render_with_levels(metrics_t *metrics, size_t bytes, budget_t *budget)
{
    metrics->levels = malloc(bytes);
    if (metrics->levels == NULL) {
        metrics->text->failed = TEXT_NO_MEMORY;
        return;
    }
    text_init(&metrics->labels);
    text_charge(&metrics->labels, metrics->text->budget, metrics->text->uid);
    put_all(metrics, budget);
    text_fini(&metrics->labels);
    free(metrics->levels);
}

void render_metrics(
    const snapshot_t *snapshot, budget_t *budget, metrics_format_t format, text_t *text)
{
    size_t levels =
        snapshot->device_count + snapshot->location_count + snapshot->resource_count;
    size_t bytes = levels * sizeof(level_t) + sizeof(metrics_t);
    if (!text_take_scratch(text, bytes)) {
        return;
    }
    metrics_t *metrics = calloc(1, sizeof(*metrics));
    if (metrics == NULL) {
        text->failed = TEXT_NO_MEMORY;
    } else {
        metrics->snapshot = snapshot;
        metrics->text = text;
        metrics->format = format;
        render_with_levels(metrics, levels * sizeof(level_t), budget);
    }
    free(metrics);
    text_give_scratch(text, bytes);
}
