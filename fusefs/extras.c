/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics that this version does not know; see extras.h.
 */
#include "extras.h"

#include <stdio.h>
#include <string.h>

#include "figures.h"

/* Names that a `stat`, or an object of `json`, has beside its statistics. */
static const char *const derived[] = {
    "current_count",      "cached_bytes", "fragmentation", "peak_upper_bytes", "torn",
    "processes_left_out", "device",       "resource",      "resources",        "type",
};

/* At a location those of what is free are shown too: sums over its resources. */
static bool is_known(const rmm_segment_schema_t *entry)
{
    bool location = entry->scope == RMM_SCHEMA_LOCATION;
    const rmm_stat_desc_t *known = location ? rmm__location_stats : rmm__slot_stats;
    size_t count =
        location ? (size_t)RMM_LOCATION_STAT_COUNT : (size_t)RMM_SLOT_STAT_COUNT;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(known[i].name, entry->name) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(derived) / sizeof(derived[0]); i++) {
        if (strcmp(derived[i], entry->name) == 0) {
            return true;
        }
    }
    return location && (strcmp("free_bytes", entry->name) == 0 ||
                        strcmp("largest_free_bytes", entry->name) == 0);
}

void extras_add(extras_t *extras, const char *name, uint16_t kind, uint64_t value)
{
    for (uint32_t i = 0; i < extras->count; i++) {
        extra_t *item = &extras->items[i];
        if (strcmp(item->name, name) != 0) {
            continue;
        }
        if (item->kind != kind) {
            return;
        }
        if (kind == RMM_KIND_MARK) {
            item->value = value > item->value ? value : item->value;
        } else {
            item->value = figure_add(item->value, value);
        }
        return;
    }
    if (extras->count < DEVICE_EXTRAS_MAX) {
        extra_t *item = &extras->items[extras->count++];
        (void)snprintf(item->name, sizeof(item->name), "%s", name);
        item->kind = kind;
        item->value = value;
    }
}

void extras_each(
    const rmm_segment_t *segment, uint16_t scope, const rmm_record_t *record,
    extra_fn visit, void *arg)
{
    for (uint32_t i = 0; i < segment->header.schema_count; i++) {
        const rmm_segment_schema_t *entry = &segment->schema[i];
        if (entry->scope != scope || is_known(entry)) {
            continue;
        }
        uint64_t value = rmm_record_schema_value(record, entry);
        if (figure_is_plausible(entry->kind, value)) {
            visit(entry, value, arg);
        }
    }
}

typedef struct addition {
    extras_t *extras;
    uint16_t only_kind; /* 0: all */
} addition_t;

static void add_entry(const rmm_segment_schema_t *entry, uint64_t value, void *arg)
{
    const addition_t *addition = arg;
    if (addition->only_kind == 0 || entry->kind == addition->only_kind) {
        extras_add(addition->extras, entry->name, entry->kind, value);
    }
}

static void add_record(
    extras_t *extras, const rmm_segment_t *segment, uint16_t scope,
    const rmm_record_t *record, uint16_t only_kind)
{
    addition_t addition = {extras, only_kind};
    extras_each(segment, scope, record, add_entry, &addition);
}

void extras_of_resource(const slot_view_t *view, extras_t *out)
{
    out->count = 0;
    add_record(out, &view->member->segment, RMM_SCHEMA_SLOT, &view->record, 0);
}

bool extras_has(const rmm_segment_t *segment)
{
    uint32_t known = 0;
    for (int i = 0; i < RMM_LOCATION_STAT_COUNT; i++) {
        known += segment->location_offset[i] != UINT32_MAX;
    }
    for (int i = 0; i < RMM_SLOT_STAT_COUNT; i++) {
        known += segment->slot_offset[i] != UINT32_MAX;
    }
    return segment->header.schema_count > known;
}

static void add_member(
    extras_t *extras, const member_t *member, uint32_t device, uint16_t only_kind)
{
    rmm_record_t record;
    uint32_t location;
    if (member->state != MEMBER_UNREADABLE && extras_has(&member->segment) &&
        member_location_on(member, device, &location) &&
        rmm_segment_read_location(&member->segment, location, &record)) {
        add_record(extras, &member->segment, RMM_SCHEMA_LOCATION, &record, only_kind);
    }
}

void extras_of_process(const process_t *process, uint32_t device, extras_t *out)
{
    out->count = 0;
    for (uint32_t i = 0; i < process->member_count; i++) {
        const member_t *member = process->members[i];
        add_member(out, member, device, member_counts(member) ? 0 : RMM_KIND_COUNTER);
    }
}

void extras_of_device(const model_t *model, uint32_t index, extras_t *out)
{
    *out = model_device_const(model, index)->extras;
    for (uint32_t i = 0; i < model->process_count; i++) {
        const process_t *process = model->processes[i];
        for (uint32_t j = 0; j < process->member_count; j++) {
            if (process->members[j]->state == MEMBER_LIVE) {
                add_member(out, process->members[j], index, 0);
            }
        }
    }
}

void extras_fold(device_t *device, const member_t *member, uint32_t location)
{
    rmm_record_t record;
    if (rmm_segment_read_location(&member->segment, location, &record)) {
        add_record(
            &device->extras, &member->segment, RMM_SCHEMA_LOCATION, &record,
            RMM_KIND_COUNTER);
    }
}
