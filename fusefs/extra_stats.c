/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics that this version does not know; see extra_stats.h.
 */
#include "extra_stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extras.h"
#include "figures.h"
#include "metric_names.h"

#define NO_STAT UINT16_MAX

/* --- which there are ------------------------------------------------------------------ */

typedef struct wanted {
    const char *name;
    uint16_t kind;
    bool of_resources;
    uid_t uid;
} wanted_t;

/* A metric of the same levels has the name already. */
static bool
is_taken(const extra_stats_t *stats, const wanted_t *wanted, const char *metric)
{
    for (uint32_t i = 0; i < stats->count; i++) {
        if (stats->items[i].of_resources == wanted->of_resources &&
            strcmp(stats->items[i].metric, metric) == 0) {
            return true;
        }
    }
    return metric_is_known(metric, wanted->of_resources);
}

static uint32_t count_of(const extra_stats_t *stats, uid_t uid)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < stats->count; i++) {
        count += stats->items[i].uid == uid;
    }
    return count;
}

/* NO_STAT: it is refused. */
static uint16_t add_stat(extra_stats_t *stats, const wanted_t *wanted)
{
    char metric[EXTRA_METRIC_BYTES];
    metric_name(wanted->name, metric);
    if (metric[0] == '\0' || stats->count == EXTRA_STATS_MAX ||
        count_of(stats, wanted->uid) >= EXTRA_STATS_OF_USER ||
        is_taken(stats, wanted, metric)) {
        return NO_STAT;
    }
    extra_stat_t *stat = &stats->items[stats->count];
    (void)snprintf(stat->name, sizeof(stat->name), "%s", wanted->name);
    memcpy(stat->metric, metric, sizeof(metric));
    stat->kind = wanted->kind;
    stat->of_resources = wanted->of_resources;
    stat->uid = wanted->uid;
    return (uint16_t)stats->count++;
}

static uint16_t find_stat(extra_stats_t *stats, const wanted_t *wanted)
{
    for (uint32_t i = 0; i < stats->count; i++) {
        const extra_stat_t *stat = &stats->items[i];
        if (stat->of_resources == wanted->of_resources &&
            strcmp(stat->name, wanted->name) == 0) {
            return stat->kind == wanted->kind ? (uint16_t)i : NO_STAT;
        }
    }
    return add_stat(stats, wanted);
}

/* --- values --------------------------------------------------------------------------- */

/* NULL: there is none of that statistic in the chain. */
static extra_value_t *
find_value(const extra_stats_t *stats, uint32_t head, uint32_t stat)
{
    while (head != 0) {
        extra_value_t *value = &stats->values[head - 1];
        if (value->stat == stat) {
            return value;
        }
        head = value->next;
    }
    return NULL;
}

uint64_t extra_value_of(const extra_stats_t *stats, uint32_t head, uint32_t stat)
{
    const extra_value_t *value = find_value(stats, head, stat);
    return value != NULL ? value->value : FIGURE_UNKNOWN;
}

static void
merge_value(extra_stats_t *stats, uint32_t *head, uint16_t stat, uint64_t value)
{
    extra_value_t *there = find_value(stats, *head, stat);
    if (there == NULL) {
        stats->values[stats->value_count] = (extra_value_t){stat, *head, value};
        *head = ++stats->value_count;
    } else if (stats->items[stat].kind == RMM_KIND_MARK) {
        there->value = value > there->value ? value : there->value;
    } else {
        there->value = figure_add(there->value, value);
    }
}

/* False: there is no memory. */
static bool make_room(extra_stats_t *stats)
{
    if (stats->values == NULL) {
        stats->values = malloc(EXTRA_VALUES_MAX * sizeof(stats->values[0]));
    }
    return stats->values != NULL && stats->value_count < EXTRA_VALUES_MAX;
}

static void add_value(const rmm_segment_schema_t *entry, uint64_t value, void *arg)
{
    const extra_target_t *target = arg;
    extra_stats_t *stats = target->stats;
    uid_t uid = target->member->process->uid;
    const wanted_t wanted = {
        entry->name, entry->kind, entry->scope == RMM_SCHEMA_SLOT, uid};
    uint16_t stat = find_stat(stats, &wanted);
    if (stat == NO_STAT) {
        atomic_store_explicit(
            &target->member->has_odd_stats, true, memory_order_relaxed);
    } else if (
        find_value(stats, *target->head, stat) != NULL ||
        (make_room(stats) && shares_take(&stats->shares, uid, 1))) {
        merge_value(stats, target->head, stat, value);
    }
}

void extra_values_add(
    const extra_target_t *target, uint16_t scope, const rmm_record_t *record)
{
    const rmm_segment_t *segment = &target->member->segment;
    if (extras_has(segment)) {
        extras_each(segment, scope, record, add_value, (void *)(uintptr_t)target);
    }
}

void extra_values_add_location(const extra_target_t *target, uint32_t location)
{
    const rmm_segment_t *segment = &target->member->segment;
    rmm_record_t record;
    if (extras_has(segment) && rmm_segment_read_location(segment, location, &record)) {
        extra_values_add(target, RMM_SCHEMA_LOCATION, &record);
    }
}

void extra_values_add_ended(
    extra_stats_t *stats, const device_t *device, uint32_t *head)
{
    for (uint32_t i = 0; i < device->extras.count && make_room(stats); i++) {
        const extra_t *extra = &device->extras.items[i];
        const wanted_t wanted = {extra->name, extra->kind, false, (uid_t)-1};
        uint16_t stat = find_stat(stats, &wanted);
        if (stat != NO_STAT) {
            merge_value(stats, head, stat, extra->value);
        }
    }
}

/* --- all ------------------------------------------------------------------------------ */

void extra_stats_want(extra_stats_t *stats, const member_t *member)
{
    if (extras_has(&member->segment)) {
        uint64_t levels = member->location_count * UINT64_C(2) +
                          rmm_segment_slot_count(&member->segment);
        shares_want(&stats->shares, member->process->uid, levels * EXTRA_STATS_OF_USER);
    }
}

void extra_stats_allot(extra_stats_t *stats)
{
    shares_allot(&stats->shares, EXTRA_VALUES_MAX - EXTRA_VALUES_OF_DEVICES);
}

void extra_stats_fini(extra_stats_t *stats)
{
    free(stats->values);
}
