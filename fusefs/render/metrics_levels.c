/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The levels of `metrics` and their labels, and how much of the text each user has; see
 * render_metrics.h.
 */
#include <stdlib.h>
#include <string.h>

#include "render/metrics.h"

#define LABELS_END "} "
/* This part of the text is not for levels. */
#define HEAD_BYTES ((size_t)128 << 10)
#define UP_BYTES 1024u /* for each process: rmm_process_up, rmm_process_info */
#define JOB_BYTES 128u /* for each figure of a job, and its name twice */
#define JOB_FIGURES 5u
#define LIMIT_FIGURES 2u
#define NEWER_BYTES 640u /* for each value of a newer program's statistic */

/* --- names ---------------------------------------------------------------------------- */

const char *metrics_suffix(uint16_t kind)
{
    return kind == RMM_KIND_COUNTER ? "_total" : "";
}

bool metrics_has(const metrics_t *metrics, const family_t *family, uint32_t index)
{
    uint8_t file = shown_stats[index].file;
    return tree_dir_has(family->dir, file) &&
           (metrics->has_all || metric_is_of_few(family->dir, file));
}

/* --- labels --------------------------------------------------------------------------- */

/* As in the rows of the device itself, whose level has the index of the device. */
static void put_labels_of_device(metrics_t *metrics, uint32_t device)
{
    text_t *labels = &metrics->labels;
    const level_t *level = &metrics->levels[device];
    const size_t length = level->labels_length - strlen(LABELS_END);
    char *to = text_reserve(labels, length);
    if (to != NULL) {
        memcpy(to, labels->data + level->labels, length);
        labels->length += length;
    }
}

static void put_process_labels(text_t *text, const snapshot_process_t *process)
{
    metrics_put_label(text, ",pid=", process->name);
    metrics_put_label(text, ",comm=", process->comm);
}

static level_t *
begin_level(metrics_t *metrics, const figures_t *figures, uid_t uid, uint32_t newer)
{
    level_t *level = &metrics->levels[metrics->level_count++];
    level->figures = figures;
    level->uid = uid;
    level->newer = newer;
    level->labels = (uint32_t)metrics->labels.length;
    return level;
}

static void end_level(metrics_t *metrics, level_t *level)
{
    text_puts(&metrics->labels, LABELS_END);
    level->labels_length = (uint32_t)metrics->labels.length - level->labels;
}

static void add_devices(metrics_t *metrics)
{
    for (uint32_t i = 0; i < metrics->snapshot->device_count; i++) {
        const snapshot_device_t *device = &metrics->snapshot->devices[i];
        level_t *level = begin_level(metrics, &device->figures, 0, device->newer);
        metrics_put_device_labels(&metrics->labels, device);
        end_level(metrics, level);
    }
}

static void add_locations(metrics_t *metrics, const snapshot_process_t *process)
{
    for (uint32_t i = 0; i < process->location_count; i++) {
        const snapshot_location_t *location =
            &metrics->snapshot->locations[process->location + i];
        level_t *level =
            begin_level(metrics, &location->figures, process->uid, location->newer);
        put_labels_of_device(metrics, location->device);
        put_process_labels(&metrics->labels, process);
        end_level(metrics, level);
    }
}

/* One that is no pool has no free memory and never grew: its few series would all be 0. */
static bool is_shown(const metrics_t *metrics, const snapshot_resource_t *resource)
{
    return metrics->has_all || resource->figures.growth_count != 0 ||
           resource->figures.free_bytes != 0 || resource->newer != 0;
}

static void add_resources(metrics_t *metrics, const snapshot_process_t *process)
{
    const snapshot_t *snapshot = metrics->snapshot;
    for (uint32_t i = 0; i < process->resource_count; i++) {
        const snapshot_resource_t *resource =
            &snapshot->resources[process->resource + i];
        if (!is_shown(metrics, resource)) {
            continue;
        }
        level_t *level =
            begin_level(metrics, &resource->figures, process->uid, resource->newer);
        put_labels_of_device(metrics, resource->device);
        put_process_labels(&metrics->labels, process);
        metrics_put_label(&metrics->labels, ",resource=", resource->name);
        metrics_put_label(&metrics->labels, ",type=", resource->type);
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

void metrics_add_levels(metrics_t *metrics)
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

/* In decimal, at most one too many: 1233 / 4096 is log10(2), close enough for 64 bits. */
static uint32_t most_digits(uint64_t value)
{
    uint32_t bits = 64u - (uint32_t)__builtin_clzll(value | 1);
    return bits * 1233u / 4096u + 1;
}

/* How long all rows of a level may be. */
static uint64_t
bytes_of(const metrics_t *metrics, const family_t *family, const level_t *level)
{
    uint64_t bytes = 0;
    size_t prefix = strlen(family->prefix);
    for (uint32_t i = 0; i < shown_stat_count; i++) {
        uint64_t value = shown_value(level->figures, &shown_stats[i]);
        if (value != FIGURE_UNKNOWN && metrics_has(metrics, family, i)) {
            bytes += prefix + strlen(metrics->names[i]) +
                     strlen(metrics_suffix(shown_stats[i].kind)) +
                     level->labels_length + most_digits(value) + 1;
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

/* What is for neither processes nor resources. Jobs are limited by themselves: jobs.h. */
static uint64_t bytes_of_others(const metrics_t *metrics)
{
    const snapshot_t *snapshot = metrics->snapshot;
    uint64_t bytes = HEAD_BYTES + (uint64_t)UP_BYTES * snapshot->process_count +
                     (uint64_t)NEWER_BYTES * snapshot->newer_stats.value_count;
    for (uint32_t i = 0; i < snapshot->job_count; i++) {
        bytes += JOB_FIGURES * (JOB_BYTES + 2 * strlen(snapshot->jobs[i].name));
    }
    for (uint32_t i = 0; i < snapshot->limit_count; i++) {
        const limit_t *limit = &snapshot->limits[i].limit;
        bytes += LIMIT_FIGURES * (JOB_BYTES + 2 * strlen(limit->name));
    }
    return bytes;
}

/* The devices are the daemon's own, and few. */
void metrics_share_bytes(metrics_t *metrics)
{
    shares_t bytes = {.count = 0};
    uint64_t total = 0;
    uint64_t others = bytes_of_others(metrics);
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
