/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statistics that are shown of the whole node; see metric_names.h.
 */
#include "model/metric_names.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

const shown_stat_t shown_stats[] = {
#define X(field, kind, unit, help)                                                     \
    {FILE_##field, RMM_KIND_##kind,           RMM_UNIT_##unit, #field,                 \
     help,         offsetof(figures_t, field)},
    RMM_EACH_STAT(X)
#undef X
        {FILE_current_count, RMM_KIND_GAUGE, RMM_UNIT_COUNT, "current_count",
         "Live allocations", offsetof(figures_t, current_count)},
    {FILE_cached_bytes, RMM_KIND_GAUGE, RMM_UNIT_BYTES, "cached_bytes",
     "Bytes reserved, neither handed out nor lost to rounding",
     offsetof(figures_t, cached_bytes)},
    {FILE_peak_upper_bytes, RMM_KIND_MARK, RMM_UNIT_BYTES, "peak_upper_bytes",
     "Upper bound of peak_bytes over several processes",
     offsetof(figures_t, peak_upper_bytes)},
};
const uint32_t shown_stat_count = sizeof(shown_stats) / sizeof(shown_stats[0]);
_Static_assert(
    sizeof(shown_stats) / sizeof(shown_stats[0]) <= SHOWN_STATS_MAX,
    "names of metrics");

bool metric_is_of_few(dir_kind_t dir, uint8_t file)
{
    switch (dir) {
    case DIR_PROCESS_DEVICE:
        return file == FILE_current_bytes || file == FILE_reserved_bytes ||
               file == FILE_peak_bytes;
    case DIR_RESOURCE:
        return file == FILE_free_bytes || file == FILE_growth_count;
    default:
        return true;
    }
}

static const char *const reserved[] = {"_total",  "_count",   "_sum",
                                       "_bucket", "_created", "_info"};

/* The length without one of these at its end, again and again. */
static size_t stem_length(const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]);) {
        size_t suffix = strlen(reserved[i]);
        bool ends = length >= suffix &&
                    strncmp(name + length - suffix, reserved[i], suffix) == 0;
        length -= ends ? suffix : 0;
        i = ends ? 0 : i + 1;
    }
    return length;
}

void metric_name(const char *stat, char name[METRIC_NAME_BYTES])
{
    static const char *const words[][2] = {
        {"total_bytes", "allocated_bytes"},
        {"total_count", "allocations"},
        {"freed_count", "frees"},
        {"current_count", "current_allocations"},
        {"peak_count", "peak_allocations"},
        {"node_peak_count", "node_peak_allocations"},
    };
    const char *found = stat;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        found = strcmp(stat, words[i][0]) == 0 ? words[i][1] : found;
    }
    (void)snprintf(name, METRIC_NAME_BYTES, "%.*s", (int)stem_length(found), found);
}

/* Those that are no statistic: render/metrics.c. */
static bool is_of_no_stat(const char *name)
{
    static const char *const names[] = {
        "fragmentation_ratio", "capacity_bytes", "driver_free_bytes", "up"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

bool metric_is_known(const char *name, bool of_resources)
{
    char known[METRIC_NAME_BYTES];
    for (uint32_t i = 0; i < shown_stat_count; i++) {
        uint8_t file = shown_stats[i].file;
        bool is_there = of_resources ? tree_dir_has(DIR_RESOURCE, file)
                                     : tree_dir_has(DIR_DEVICE, file) ||
                                           tree_dir_has(DIR_PROCESS_DEVICE, file);
        metric_name(shown_stats[i].name, known);
        if (is_there && strcmp(known, name) == 0) {
            return true;
        }
    }
    return is_of_no_stat(name);
}
