/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics that this version does not know; see newer_stats.h.
 */
#include "model/newer_stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/level_figures.h"
#include "model/metric_names.h"

static void merge(uint64_t *sum, uint16_t kind, uint64_t value)
{
    if (kind == RMM_KIND_MARK) {
        *sum = value > *sum ? value : *sum;
    } else {
        *sum = figure_add(*sum, value);
    }
}

/* --- those of one level ------------------------------------------------------------- */

void newer_add(newer_list_t *newer, const char *name, uint16_t kind, uint64_t value)
{
    for (uint32_t i = 0; i < newer->count; i++) {
        newer_t *item = &newer->items[i];
        if (strcmp(item->name, name) != 0) {
            continue;
        }
        if (item->kind != kind) {
            return;
        }
        merge(&item->value, kind, value);
        return;
    }
    if (newer->count < NEWER_OF_LEVEL_MAX) {
        newer_t *item = &newer->items[newer->count++];
        (void)snprintf(item->name, sizeof(item->name), "%s", name);
        item->kind = kind;
        item->value = value;
    }
}

typedef struct addition {
    newer_list_t *newer;
    uint16_t only_kind; /* 0: all */
} addition_t;

static void add_entry(const rmm_segment_schema_t *entry, uint64_t value, void *arg)
{
    const addition_t *addition = arg;
    if (addition->only_kind == 0 || entry->kind == addition->only_kind) {
        newer_add(addition->newer, entry->name, entry->kind, value);
    }
}

static void add_record(
    newer_list_t *newer, const rmm_segment_t *segment, uint16_t scope,
    const rmm_record_t *record, uint16_t only_kind)
{
    addition_t addition = {newer, only_kind};
    figures_each_newer(segment, scope, record, add_entry, &addition);
}

void newer_of_resource(const slot_view_t *view, newer_list_t *out)
{
    out->count = 0;
    add_record(out, &view->member->segment, RMM_SCHEMA_SLOT, &view->record, 0);
}

static void add_member(
    newer_list_t *newer, const member_t *member, uint32_t device, uint16_t only_kind)
{
    rmm_record_t record;
    uint32_t location;
    if (member->state != MEMBER_UNREADABLE && figures_has_newer(&member->segment) &&
        member_location_on(member, device, &location) &&
        rmm__segment_read_location(&member->segment, location, &record)) {
        add_record(newer, &member->segment, RMM_SCHEMA_LOCATION, &record, only_kind);
    }
}

void newer_of_process(const process_t *process, uint32_t device, newer_list_t *out)
{
    out->count = 0;
    for (uint32_t i = 0; i < process->member_count; i++) {
        const member_t *member = process->members[i];
        add_member(out, member, device, member_counts(member) ? 0 : RMM_KIND_COUNTER);
    }
}

void newer_of_device(const model_t *model, uint32_t index, newer_list_t *out)
{
    *out = model_device_const(model, index)->newer;
    for (uint32_t i = 0; i < model->process_count; i++) {
        const process_t *process = model->processes[i];
        for (uint32_t j = 0; j < process->member_count; j++) {
            if (process->members[j]->state == MEMBER_LIVE) {
                add_member(out, process->members[j], index, 0);
            }
        }
    }
}

void newer_add_totals(device_t *device, const member_t *member, uint32_t location)
{
    rmm_record_t record;
    if (rmm__segment_read_location(&member->segment, location, &record)) {
        add_record(
            &device->newer, &member->segment, RMM_SCHEMA_LOCATION, &record,
            RMM_KIND_COUNTER);
    }
}

#define NO_STAT UINT16_MAX

/* --- a table: which there are ------------------------------------------------------- */

typedef struct wanted {
    const char *name;
    uint16_t kind;
    bool of_resources;
    uid_t uid;
} wanted_t;

/* A metric of the same levels has the name already. */
static bool
is_taken(const newer_stats_t *stats, const wanted_t *wanted, const char *metric)
{
    for (uint32_t i = 0; i < stats->count; i++) {
        if (stats->items[i].of_resources == wanted->of_resources &&
            strcmp(stats->items[i].metric, metric) == 0) {
            return true;
        }
    }
    return metric_is_known(metric, wanted->of_resources);
}

static uint32_t count_of(const newer_stats_t *stats, uid_t uid)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < stats->count; i++) {
        count += stats->items[i].uid == uid;
    }
    return count;
}

/* NO_STAT: it is refused. */
static uint16_t add_stat(newer_stats_t *stats, const wanted_t *wanted)
{
    char metric[NEWER_METRIC_BYTES];
    metric_name(wanted->name, metric);
    if (metric[0] == '\0' || stats->count == NEWER_STATS_MAX ||
        count_of(stats, wanted->uid) >= NEWER_STATS_OF_USER ||
        is_taken(stats, wanted, metric)) {
        return NO_STAT;
    }
    newer_stat_t *stat = &stats->items[stats->count];
    (void)snprintf(stat->name, sizeof(stat->name), "%s", wanted->name);
    memcpy(stat->metric, metric, sizeof(metric));
    stat->kind = wanted->kind;
    stat->of_resources = wanted->of_resources;
    stat->uid = wanted->uid;
    return (uint16_t)stats->count++;
}

static uint16_t find_stat(newer_stats_t *stats, const wanted_t *wanted)
{
    for (uint32_t i = 0; i < stats->count; i++) {
        const newer_stat_t *stat = &stats->items[i];
        if (stat->of_resources == wanted->of_resources &&
            strcmp(stat->name, wanted->name) == 0) {
            return stat->kind == wanted->kind ? (uint16_t)i : NO_STAT;
        }
    }
    return add_stat(stats, wanted);
}

/* --- a table: values ---------------------------------------------------------------- */

/* NULL: there is none of that statistic in the chain. */
static newer_value_t *
find_value(const newer_stats_t *stats, uint32_t head, uint32_t stat)
{
    while (head != 0) {
        newer_value_t *value = &stats->values[head - 1];
        if (value->stat == stat) {
            return value;
        }
        head = value->next;
    }
    return NULL;
}

uint64_t newer_value_of(const newer_stats_t *stats, uint32_t head, uint32_t stat)
{
    const newer_value_t *value = find_value(stats, head, stat);
    return value != NULL ? value->value : FIGURE_UNKNOWN;
}

static void
merge_value(newer_stats_t *stats, uint32_t *head, uint16_t stat, uint64_t value)
{
    newer_value_t *there = find_value(stats, *head, stat);
    if (there == NULL) {
        stats->values[stats->value_count] = (newer_value_t){stat, *head, value};
        *head = ++stats->value_count;
    } else {
        merge(&there->value, stats->items[stat].kind, value);
    }
}

/* False: there is no memory. */
static bool make_room(newer_stats_t *stats)
{
    if (stats->values == NULL) {
        stats->values = malloc(NEWER_VALUES_MAX * sizeof(stats->values[0]));
    }
    return stats->values != NULL && stats->value_count < NEWER_VALUES_MAX;
}

static void add_value(const rmm_segment_schema_t *entry, uint64_t value, void *arg)
{
    const newer_target_t *target = arg;
    newer_stats_t *stats = target->stats;
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

void newer_values_add(
    const newer_target_t *target, uint16_t scope, const rmm_record_t *record)
{
    const rmm_segment_t *segment = &target->member->segment;
    if (figures_has_newer(segment)) {
        figures_each_newer(
            segment, scope, record, add_value, (void *)(uintptr_t)target);
    }
}

void newer_values_add_location(const newer_target_t *target, uint32_t location)
{
    const rmm_segment_t *segment = &target->member->segment;
    rmm_record_t record;
    if (figures_has_newer(segment) &&
        rmm__segment_read_location(segment, location, &record)) {
        newer_values_add(target, RMM_SCHEMA_LOCATION, &record);
    }
}

void newer_values_add_ended(
    newer_stats_t *stats, const device_t *device, uint32_t *head)
{
    for (uint32_t i = 0; i < device->newer.count && make_room(stats); i++) {
        const newer_t *newer = &device->newer.items[i];
        const wanted_t wanted = {newer->name, newer->kind, false, (uid_t)-1};
        uint16_t stat = find_stat(stats, &wanted);
        if (stat != NO_STAT) {
            merge_value(stats, head, stat, newer->value);
        }
    }
}

/* --- a table ------------------------------------------------------------------------ */

void newer_stats_want(newer_stats_t *stats, const member_t *member)
{
    if (figures_has_newer(&member->segment)) {
        uint64_t levels = member->location_count * UINT64_C(2) +
                          rmm__segment_slot_count(&member->segment);
        shares_want(&stats->shares, member->process->uid, levels * NEWER_STATS_OF_USER);
    }
}

void newer_stats_allot(newer_stats_t *stats)
{
    shares_allot(&stats->shares, NEWER_VALUES_MAX - NEWER_VALUES_OF_DEVICES);
}

void newer_stats_fini(newer_stats_t *stats)
{
    free(stats->values);
}
