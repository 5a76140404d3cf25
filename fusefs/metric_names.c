/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of metrics; see metric_names.h.
 */
#include "metric_names.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "segment/stat_fields.h"
#include "tree.h"

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

/* Those that are no statistic: render_metrics.c. */
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
    static const struct {
        uint8_t file;
        const char *name;
    } stats[] = {
#define X(field, kind, unit, help) {FILE_##field, #field},
        RMM_EACH_STAT(X)
#undef X
            {FILE_CURRENT_COUNT, "current_count"},
        {FILE_CACHED_BYTES, "cached_bytes"},
        {FILE_PEAK_UPPER_BYTES, "peak_upper_bytes"},
    };
    char known[METRIC_NAME_BYTES];
    for (size_t i = 0; i < sizeof(stats) / sizeof(stats[0]); i++) {
        uint8_t file = stats[i].file;
        bool is_there = of_resources ? tree_dir_has(DIR_RESOURCE, file)
                                     : tree_dir_has(DIR_DEVICE, file) ||
                                           tree_dir_has(DIR_PROCESS_DEVICE, file);
        metric_name(stats[i].name, known);
        if (is_there && strcmp(known, name) == 0) {
            return true;
        }
    }
    return is_of_no_stat(name);
}
