/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polls the counters of processes; see event_poll.h.
 */
#include "programs/event_poll.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "model/level_figures.h"
#include "model/node_events.h"
#include "model/slots.h"
#include "programs/found.h"
#include "programs/refused.h"

#define PEAK_SHARE 8u    /* a peak is reported when it rose by this part */
#define NAMED_SLOTS 64u  /* of a segment with more the resource is not looked for */
#define NAMED_AT_ONCE 8u /* nor for more events between two pieces of a look */

static void fill_event(node_event_t *event, const process_t *process, event_type_t type)
{
    node_event_init(event, type, process->uid, process->pid, process->name);
}

/* --- resources ------------------------------------------------------------------------ */

typedef struct culprit {
    member_t *member;
    uint32_t location;
    uint32_t found; /* that have refused more than when they were looked at last */
    char name[64];
} culprit_t;

static uint64_t refused_by(const slot_view_t *view)
{
    const rmm_segment_t *segment = &view->member->segment;
    uint64_t oom = 0, limit = 0;
    (void)rmm__segment_slot_stat(segment, &view->record, RMM_SLOT_STAT_oom_count, &oom);
    (void)rmm__segment_slot_stat(
        segment, &view->record, RMM_SLOT_STAT_limit_count, &limit);
    return oom + limit;
}

/* NULL: there is no room to remember a further one. */
static slot_refusals_t *remembered(member_t *member, uint32_t instance_id)
{
    for (uint32_t i = 0; i < REMEMBERED_SLOTS; i++) {
        slot_refusals_t *slot = &member->refusals[i];
        if (slot->instance_id == instance_id || slot->refused == 0) {
            slot->instance_id = instance_id;
            return slot;
        }
    }
    return NULL;
}

/* If stacked resources all refuse, the outermost is the culprit: it was made last. */
static bool look_at_slot(const slot_view_t *view, void *arg)
{
    culprit_t *culprit = arg;
    const rmm_segment_slot_t *slot = rmm__record_slot(&view->record);
    uint64_t refused = refused_by(view);
    if (slot->location != culprit->location || refused == 0) {
        return true;
    }
    slot_refusals_t *before = remembered(culprit->member, slot->instance_id);
    if (before != NULL && refused > before->refused) {
        char name[TREE_NAME_BYTES];
        before->refused = refused;
        tree_resource_name(view, name);
        culprit->found++;
        (void)snprintf(culprit->name, sizeof(culprit->name), "%.63s", name);
    }
    return true;
}

/* "": not known. */
static void
find_resource(model_t *model, member_t *member, uint32_t location, char name[64])
{
    culprit_t culprit = {.member = member, .location = location};
    name[0] = '\0';
    if (model->names_left == 0 ||
        rmm__segment_slot_count(&member->segment) > NAMED_SLOTS) {
        return;
    }
    model->names_left--;
    bool is_first = member->knows_no_refusals;
    member->knows_no_refusals = false;
    slots_each(member, look_at_slot, &culprit);
    if (culprit.found > 0 && !is_first) {
        memcpy(name, culprit.name, sizeof(culprit.name));
    }
}

/* --- locations ------------------------------------------------------------------------ */

static uint64_t
word_of(const member_t *member, const unsigned char *record, rmm_location_stat_t stat)
{
    uint32_t offset = member->segment.location_offset[stat];
    uint64_t value = 0;
    if (offset != UINT32_MAX) { /* the reader has checked that it is inside */
        memcpy(&value, record + offset, sizeof(value));
    }
    return value;
}

/* One pread, where the reader needs three: none of these figures is on stripes. */
static bool
read_counts(const member_t *member, uint32_t location, location_counts_t *counts)
{
    const rmm_segment_header_t *header = &member->segment.header;
    unsigned char record[RMM_SEGMENT_RECORD_BYTES];
    off_t at =
        (off_t)(header->locations_offset + (uint64_t)header->locations_stride * location);
    memset(counts, 0, sizeof(*counts));
    if (member->state == MEMBER_UNREADABLE ||
        pread(member->segment.fd, record, header->locations_stride, at) !=
            (ssize_t)header->locations_stride) {
        return false;
    }
    *counts = (location_counts_t){
        .oom = word_of(member, record, RMM_LOCATION_STAT_oom_count),
        .invalid_free = word_of(member, record, RMM_LOCATION_STAT_invalid_free_count),
        .limit = word_of(member, record, RMM_LOCATION_STAT_limit_count),
        .peak_bytes = word_of(member, record, RMM_LOCATION_STAT_peak_bytes),
        .reserved_bytes = word_of(member, record, RMM_LOCATION_STAT_reserved_bytes)};
    return true;
}

typedef struct look {
    model_t *model;
    member_t *member;
    const member_location_t *location;
    location_seen_t *seen;
    location_counts_t counts;
} look_t;

static void note_rise(
    const look_t *look, event_type_t type, uint64_t *seen, uint64_t count,
    bool is_refusal)
{
    node_event_t event;
    uint64_t rise = count > *seen ? count - *seen : 0;
    *seen = count;
    if (rise == 0) {
        return;
    }
    fill_event(&event, look->member->process, type);
    event.device = look->location->device;
    event.count = rise;
    if (is_refusal) {
        refused_touched(look->model, look->member);
        event.bytes = look->counts.reserved_bytes;
        find_resource(
            look->model, look->member, look->location->location, event.resource);
    }
    node_events_note(look->model->events, &event);
}

static bool is_new_peak(uint64_t *reported, uint64_t peak)
{
    if (peak < *reported) {
        *reported = peak; /* reset */
    }
    if (peak <= *reported || peak - *reported < *reported / PEAK_SHARE ||
        !figure_is_plausible(RMM_KIND_MARK, peak)) {
        return false;
    }
    *reported = peak;
    return true;
}

static void note_peak(const look_t *look)
{
    node_event_t event;
    if (is_new_peak(&look->seen->peak_bytes, look->counts.peak_bytes)) {
        fill_event(&event, look->member->process, EVENT_PEAK);
        event.device = look->location->device;
        event.bytes = look->counts.peak_bytes;
        node_events_note(look->model->events, &event);
    }
}

static void look_at_location(look_t *look)
{
    location_seen_t *seen = look->seen;
    if (seen->oom != look->counts.oom || seen->limit != look->counts.limit ||
        seen->invalid_free != look->counts.invalid_free) {
        device_t *device = model_device(look->model, look->location->device);
        seen->changes++;
        look->model->event_changes++;
        if (device != NULL) {
            device->event_changes++;
        }
    }
    note_rise(look, EVENT_OOM, &seen->oom, look->counts.oom, true);
    note_rise(look, EVENT_LIMIT, &seen->limit, look->counts.limit, true);
    note_rise(
        look, EVENT_INVALID_FREE, &seen->invalid_free, look->counts.invalid_free,
        false);
    note_peak(look);
}

/* At the counts that it had last. */
static void look_at_member(model_t *model, member_t *member)
{
    member->has_new_counts = false;
    for (uint32_t i = 0; i < member->location_count; i++) {
        look_t look = {
            .model = model,
            .member = member,
            .location = &member->locations[i],
            .seen = &member->seen[i],
            .counts = member->counts[i]};
        if (member->locations[i].device != DEVICE_NONE) {
            look_at_location(&look);
        }
    }
}

static void read_all_counts(member_t *member)
{
    for (uint32_t i = 0; i < member->location_count; i++) {
        location_counts_t now;
        if (read_counts(member, member->locations[i].location, &now)) {
            member->counts[i] = now;
        }
    }
}

void event_poll_look_now(model_t *model, member_t *member)
{
    if (model->events != NULL) {
        read_all_counts(member);
        look_at_member(model, member);
    }
}

/* Report a new peak of a device; it belongs to no user. */
static void look_at_device(model_t *model, uint32_t index)
{
    device_t *device = model_device(model, index);
    uint64_t peak = atomic_load_explicit(&device->peak_bytes, memory_order_relaxed);
    if (is_new_peak(&device->reported_peak_bytes, peak)) {
        const node_event_t event = {
            .type = EVENT_PEAK,
            .uid = EVENT_NO_UID,
            .device = index,
            .bytes = peak,
            .count = EVENT_NO_FIGURE};
        node_events_note(model->events, &event);
    }
}

/* --- looking -------------------------------------------------------------------------- */

/* The counters of those that are there already are what they are. */
static void pass_over(member_t *member)
{
    member->knows_no_refusals = true;
    read_all_counts(member);
    for (uint32_t i = 0; i < member->location_count; i++) {
        const location_counts_t *counts = &member->counts[i];
        member->seen[i] = (location_seen_t){
            counts->oom, counts->invalid_free, counts->limit, counts->peak_bytes, 0};
    }
}

void event_poll_begin(model_t *model)
{
    for (uint32_t i = 0; i < model->member_count; i++) {
        pass_over(model->members[i]);
        found_pass_over(model, model->members[i]);
    }
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        model->gpus[i].reported_peak_bytes =
            atomic_load_explicit(&model->gpus[i].peak_bytes, memory_order_relaxed);
    }
    model->host.reported_peak_bytes =
        atomic_load_explicit(&model->host.peak_bytes, memory_order_relaxed);
}

/* False: there are more than fit into this piece. Members are in the order of serials. */
static bool look_at_some(model_t *model)
{
    uint32_t locations = 0;
    model->names_left = NAMED_AT_ONCE;
    found_begin_piece(model);
    for (uint32_t i = 0; i < model->member_count; i++) {
        member_t *member = model->members[i];
        if (member->serial <= model->looked_at_serial || member->state != MEMBER_LIVE) {
            continue;
        }
        if (locations >= EVENT_POLL_LOCATIONS) {
            return false;
        }
        if (member->has_new_counts) {
            look_at_member(model, member);
            locations += member->location_count;
        }
        found_look(model, member);
        locations++;
        model->looked_at_serial = member->serial;
    }
    return true;
}

bool event_poll_look(model_t *model)
{
    uint64_t now = rmm__clock_ns(CLOCK_MONOTONIC);
    if (model->events == NULL) {
        return false;
    }
    uint64_t every_ns = node_events_are_wanted(model->events) ? EVENT_POLL_WANTED_NS
                                                              : EVENT_POLL_IDLE_NS;
    if (model->looked_at_serial == 0 && now - model->looked_ns < every_ns) {
        return false;
    }
    if (!look_at_some(model)) {
        return true;
    }
    look_at_device(model, DEVICE_HOST);
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        look_at_device(model, i);
    }
    node_events_tick(model->events);
    model->looked_at_serial = 0;
    model->looked_ns = now;
    return false;
}

/* --- coming and going ----------------------------------------------------------------- */

static uint32_t live_members(const process_t *process)
{
    uint32_t live = 0;
    for (uint32_t i = 0; i < process->member_count; i++) {
        live += process->members[i]->state == MEMBER_LIVE;
    }
    return live;
}

void event_poll_start(model_t *model, const member_t *member)
{
    node_event_t event;
    if (model->events == NULL || live_members(member->process) != 1) {
        return;
    }
    fill_event(&event, member->process, EVENT_START);
    (void)snprintf(event.text, sizeof(event.text), "%s", member->segment.header.comm);
    node_events_note(model->events, &event);
}

void event_poll_exit(model_t *model, member_t *member)
{
    node_event_t event;
    if (model->events == NULL) {
        return;
    }
    event_poll_look_now(model, member);
    found_look_last(model, member);
    if (live_members(member->process) > 0) {
        return;
    }
    fill_event(&event, member->process, EVENT_EXIT);
    event.bytes = 0;
    for (uint32_t i = 0; i < member->location_count; i++) {
        figures_t left;
        if (figures_read_location(member, member->locations[i].location, 0, &left)) {
            event.bytes = figure_add_known(event.bytes, left.current_bytes);
            event.bytes = figure_add_known(event.bytes, left.leaked_bytes);
        }
    }
    (void)snprintf(event.text, sizeof(event.text), "%s", member->segment.header.comm);
    node_events_note(model->events, &event);
}

void event_poll_refusal(model_t *model, uid_t uid, const char *name, const char *reason)
{
    node_event_t event = {
        .type = EVENT_UNREADABLE,
        .uid = uid,
        .device = EVENT_NO_DEVICE,
        .bytes = EVENT_NO_FIGURE,
        .count = EVENT_NO_FIGURE};
    (void)snprintf(event.process, sizeof(event.process), "%s", name);
    (void)snprintf(event.text, sizeof(event.text), "%s", reason);
    node_events_note(model->events, &event);
}

/* --- polls ---------------------------------------------------------------------------- */

uint64_t event_poll_on_node(const model_t *model)
{
    if (model->events != NULL) {
        node_events_want(model->events);
    }
    return model->event_changes + model->changes;
}

bool event_poll_changes(const model_t *model, node_t node, uint32_t *changes_out)
{
    uint32_t changes = 0;
    if (node.dir == DIR_DEVICE) {
        const device_t *device = model_device_const(model, node.id);
        *changes_out = device != NULL ? device->event_changes : 0;
        return device != NULL;
    }
    const process_t *process = model_process(model, node.serial);
    if (process == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < process->member_count; i++) {
        const member_t *member = process->members[i];
        for (uint32_t j = 0; j < member->location_count; j++) {
            changes +=
                member->locations[j].device == node.id ? member->seen[j].changes : 0;
        }
    }
    *changes_out = changes;
    return true;
}
