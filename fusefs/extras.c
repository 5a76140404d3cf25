/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics that this version does not know; see extras.h.
 */
#include "extras.h"

#include <stdio.h>
#include <string.h>

#include "figures.h"

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
    return false;
}

void extras_add(extras_t *extras, const char *name, uint16_t kind, uint64_t value)
{
    for (uint32_t i = 0; i < extras->count; i++) {
        extra_t *item = &extras->items[i];
        if (strcmp(item->name, name) != 0) {
            continue;
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

/* only_kind 0: all */
static void add_record(
    extras_t *extras, const rmm_segment_t *segment, uint16_t scope,
    const rmm_record_t *record, uint16_t only_kind)
{
    for (uint32_t i = 0; i < segment->header.schema_count; i++) {
        const rmm_segment_schema_t *entry = &segment->schema[i];
        if (entry->scope == scope && !is_known(entry) &&
            (only_kind == 0 || entry->kind == only_kind)) {
            extras_add(
                extras, entry->name, entry->kind,
                rmm_record_schema_value(record, entry));
        }
    }
}

void extras_of_resource(const slot_view_t *view, extras_t *out)
{
    out->count = 0;
    add_record(out, &view->member->segment, RMM_SCHEMA_SLOT, &view->record, 0);
}

static void add_member(
    extras_t *extras, const member_t *member, uint32_t device, uint16_t only_kind)
{
    rmm_record_t record;
    uint32_t location;
    if (member->state != MEMBER_UNREADABLE &&
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
