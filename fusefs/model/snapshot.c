/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the whole node; see snapshot.h. One walk over each segment's resources serves the
 * resources, what is free at its locations, and the sums of devices.
 */
#include "model/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "model/marks.h"

#define PIECE_LEVELS 256u /* about a millisecond */

/* --- memory --------------------------------------------------------------------------- */

/* The list with room for one more item. If there is no memory, the snapshot has failed. */
static void *
grow(snapshot_t *snapshot, void *items, uint32_t count, uint32_t *room, size_t bytes)
{
    if (count < *room) {
        return items;
    }
    uint32_t larger = *room == 0 ? 64 : *room * 2;
    bool may_grow = memory_take(snapshot->memory, (larger - *room) * bytes);
    void *grown = may_grow ? realloc(items, larger * bytes) : NULL;
    if (grown == NULL) {
        snapshot->failed = true;
        return items;
    }
    *room = larger;
    return grown;
}

/* A new item at the end of a list, all zeros; NULL: no memory. */
#define ADD(snapshot, items, count, room)                                              \
    ((snapshot)->items = grow(                                                         \
         snapshot, (snapshot)->items, (snapshot)->count, &(snapshot)->room,            \
         sizeof((snapshot)->items[0])),                                                \
     (snapshot)->failed ? NULL                                                         \
                        : memset(                                                      \
                              &(snapshot)->items[(snapshot)->count++], 0,              \
                              sizeof((snapshot)->items[0])))

snapshot_t *snapshot_retain(snapshot_t *snapshot)
{
    atomic_fetch_add_explicit(&snapshot->references, 1, memory_order_relaxed);
    return snapshot;
}

void snapshot_release(snapshot_t *snapshot)
{
    /* acquire-release: what the others read of it is over before it is freed */
    if (snapshot != NULL && atomic_fetch_sub_explicit(
                                &snapshot->references, 1, memory_order_acq_rel) == 1) {
        for (uint32_t i = 0; i < snapshot->process_count; i++) {
            placement_release(snapshot->processes[i].placement);
        }
        free(snapshot->devices);
        free(snapshot->processes);
        free(snapshot->jobs);
        free(snapshot->limits);
        free(snapshot->locations);
        free(snapshot->resources);
        newer_stats_fini(&snapshot->newer_stats);
        free(snapshot);
    }
}

/* --- beginning ------------------------------------------------------------------------ */

static void want_member(snapshot_t *snapshot, const member_t *member)
{
    uid_t uid = member->process->uid;
    if (member->state != MEMBER_UNREADABLE) {
        shares_want(&snapshot->location_shares, uid, member->location_count);
        shares_want(
            &snapshot->resource_shares, uid, rmm__segment_slot_count(&member->segment));
        newer_stats_want(&snapshot->newer_stats, member);
    }
}

static void
name_device(snapshot_device_t *shown, const device_t *device, uint32_t index)
{
    shown->device = index;
    tree_device_name(index, shown->name);
    if (index != DEVICE_HOST) {
        memcpy(shown->uuid, device->gpu.uuid, sizeof(shown->uuid));
        memcpy(shown->pci_bus_id, device->gpu.pci_bus_id, sizeof(shown->pci_bus_id));
        memcpy(shown->model, device->gpu.name, sizeof(shown->model));
        shown->capacity_bytes = device->gpu.capacity_bytes;
    }
}

snapshot_t *snapshot_begin(const model_t *model, memory_t *memory)
{
    snapshot_t *snapshot = calloc(1, sizeof(*snapshot));
    if (snapshot == NULL) {
        return NULL;
    }
    snapshot->devices = calloc(model->gpu_count + 1, sizeof(snapshot->devices[0]));
    if (snapshot->devices == NULL) {
        free(snapshot);
        return NULL;
    }
    atomic_init(&snapshot->references, 1);
    snapshot->device_count = model->gpu_count + 1;
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        name_device(&snapshot->devices[i], &model->gpus[i], i);
    }
    name_device(&snapshot->devices[model->gpu_count], &model->host, DEVICE_HOST);
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        snapshot_device_t *device = &snapshot->devices[i];
        newer_values_add_ended(
            &snapshot->newer_stats, model_device_const(model, device->device),
            &device->newer);
    }
    for (uint32_t i = 0; i < model->member_count; i++) {
        want_member(snapshot, model->members[i]);
    }
    shares_allot(&snapshot->location_shares, SNAPSHOT_LOCATIONS_MAX);
    shares_allot(&snapshot->resource_shares, SNAPSHOT_RESOURCES_MAX);
    allowances_init(&snapshot->allowances, NULL);
    newer_stats_allot(&snapshot->newer_stats);
    snapshot->memory = memory;
    snapshot->last_serial = model->last_serial;
    snapshot->hiding = model->hiding;
    return snapshot;
}

/* --- a process ------------------------------------------------------------------------ */

/* UINT32_MAX: it is not shown, or was not there yet when the snapshot was begun. */
static uint32_t device_at(const snapshot_t *snapshot, uint32_t device)
{
    if (device == DEVICE_HOST) {
        return snapshot->device_count - 1;
    }
    return device < snapshot->device_count - 1 ? device : UINT32_MAX;
}

/* While one member is being read. */
typedef struct reading {
    snapshot_t *snapshot;
    snapshot_process_t *process;
    const member_t *member;
    figures_t free[RMM_SEGMENT_LOCATIONS]; /* at each of the member's locations */
    bool is_cut;                           /* not all its resources were read */
} reading_t;

/* A forged segment may have two resources of one name; two series may not. */
static bool is_shown_already(
    const snapshot_t *snapshot, const snapshot_process_t *process, uint64_t hash)
{
    for (uint32_t i = 0; i < process->resource_count; i++) {
        if (snapshot->resources[process->resource + i].hash == hash) {
            return true;
        }
    }
    return false;
}

/* Which of the member's locations; UINT32_MAX: none. */
static uint32_t location_at(const member_t *member, uint32_t location)
{
    uint32_t at = 0;
    while (at < member->location_count && member->locations[at].location != location) {
        at++;
    }
    return at < member->location_count ? at : UINT32_MAX;
}

/* NULL: it may not be shown. */
static snapshot_resource_t *
next_resource(reading_t *reading, uint32_t device, const char *name)
{
    snapshot_t *snapshot = reading->snapshot;
    snapshot_process_t *process = reading->process;
    uint64_t hash = rmm__hash_text(RMM_HASH_BEGIN ^ device, name);
    if (is_shown_already(snapshot, process, hash)) {
        shares_refuse(&snapshot->resource_shares, process->uid, 1);
        return NULL;
    }
    bool is_over = process->resource_count == SNAPSHOT_OF_PROCESS_MAX;
    if (is_over) {
        shares_refuse(&snapshot->resource_shares, process->uid, 1);
    }
    reading->is_cut =
        is_over || !shares_take(&snapshot->resource_shares, process->uid, 1);
    snapshot_resource_t *shown =
        reading->is_cut ? NULL
                        : ADD(snapshot, resources, resource_count, resource_room);
    if (shown != NULL) {
        process->resource_count++;
        shown->device = device;
        shown->hash = hash;
        memcpy(shown->name, name, sizeof(shown->name));
    }
    return shown;
}

static bool read_resource(const slot_view_t *view, void *arg)
{
    reading_t *reading = arg;
    const rmm_segment_slot_t *slot = rmm__record_slot(&view->record);
    uint32_t at = location_at(reading->member, slot->location);
    uint32_t device =
        at == UINT32_MAX
            ? UINT32_MAX
            : device_at(reading->snapshot, reading->member->locations[at].device);
    char name[TREE_NAME_BYTES] = "";
    if (device == UINT32_MAX) {
        return true;
    }
    tree_resource_name(view, name);
    snapshot_resource_t *shown = next_resource(reading, device, name);
    if (shown != NULL) {
        shown->member_serial = (uint32_t)view->member->serial;
        shown->instance_id = slot->instance_id;
        shown->upstream_id = slot->upstream_id;
        memcpy(shown->type, slot->type, sizeof(shown->type));
        figures_of_resource(view, FIGURES_ALL, &shown->figures);
        figures_add_free(&reading->free[at], &shown->figures);
        const newer_target_t newer = {
            &reading->snapshot->newer_stats, view->member, &shown->newer};
        newer_values_add(&newer, RMM_SCHEMA_SLOT, &view->record);
    }
    if (reading->is_cut) { /* further ones are not read: their slots are counted */
        uint32_t slots = rmm__segment_slot_count(&reading->member->segment);
        shares_refuse(
            &reading->snapshot->resource_shares, reading->process->uid,
            slots > view->index + 1 ? slots - view->index - 1 : 0);
    }
    return !reading->is_cut && !reading->snapshot->failed;
}

/* NULL: it has none there yet, and may have no further one. */
static snapshot_location_t *
location_on(snapshot_t *snapshot, snapshot_process_t *process, uint32_t device)
{
    for (uint32_t i = 0; i < process->location_count; i++) {
        if (snapshot->locations[process->location + i].device == device) {
            return &snapshot->locations[process->location + i];
        }
    }
    snapshot_location_t *location =
        shares_take(&snapshot->location_shares, process->uid, 1)
            ? ADD(snapshot, locations, location_count, location_room)
            : NULL;
    if (location != NULL) {
        location->share_bytes = FIGURE_UNKNOWN;
        location->device = device;
        process->location_count++;
    }
    return location;
}

static void read_location(const reading_t *reading, member_t *member, uint32_t at)
{
    const member_location_t *of_member = &member->locations[at];
    snapshot_t *snapshot = reading->snapshot;
    uint32_t device = device_at(snapshot, of_member->device);
    figures_t part;
    if (device == UINT32_MAX ||
        !figures_read_location(member, of_member->location, FIGURES_MARKS, &part)) {
        return;
    }
    const figures_t *free_there = &reading->free[at];
    part.free_bytes = free_there->free_bytes;
    part.largest_free_bytes = free_there->largest_free_bytes;
    part.largest_free_sum = free_there->largest_free_sum;
    if (member->state == MEMBER_LIVE) {
        figures_add_to_device(&snapshot->devices[device].sum, &part);
        const newer_target_t of_device = {
            &snapshot->newer_stats, member, &snapshot->devices[device].newer};
        newer_values_add_location(&of_device, of_member->location);
    }
    if (reading->is_cut) {
        figures_forget_free(&part);
    }
    snapshot_location_t *location = location_on(snapshot, reading->process, device);
    if (location != NULL) {
        figures_add_member(&location->figures, member, &part);
        if (of_member->claim.is_known &&
            of_member->claim.share_bytes != APPORTION_NO_SHARE) {
            location->share_bytes =
                figure_add_known(location->share_bytes, of_member->claim.share_bytes);
        }
        const newer_target_t newer = {&snapshot->newer_stats, member, &location->newer};
        newer_values_add_location(&newer, of_member->location);
    }
}

static void
read_member(snapshot_t *snapshot, snapshot_process_t *process, member_t *member)
{
    reading_t reading = {.snapshot = snapshot, .process = process, .member = member};
    if (member->state == MEMBER_UNREADABLE) {
        return;
    }
    slot_allowance_t *allowance = allowances_of(&snapshot->allowances, process->uid);
    if (member_counts(member) &&
        !slots_each_within(
            member, SLOTS_ANYWHERE, allowance, read_resource, &reading)) {
        reading.is_cut = true;
        shares_refuse(&snapshot->resource_shares, process->uid, 1);
    }
    for (uint32_t i = 0; i < member->location_count && !snapshot->failed; i++) {
        read_location(&reading, member, i);
    }
}

static void read_process(snapshot_t *snapshot, const process_t *process)
{
    const member_t *readable = process_readable_member(process);
    snapshot_process_t *shown = ADD(snapshot, processes, process_count, process_room);
    if (shown == NULL) {
        return;
    }
    shown->pid = process->pid;
    shown->uid = process->uid;
    memcpy(shown->name, process->name, sizeof(shown->name));
    if (readable != NULL) {
        memcpy(shown->comm, readable->segment.header.comm, sizeof(shown->comm));
        shown->start_time_ns = readable->segment.header.start_time_ns;
    }
    shown->state = process_state(process);
    shown->is_live = process_is_live(process);
    shown->is_readable = readable != NULL;
    shown->placement = placement_retain(process->placement);
    for (uint32_t i = 0; i < JOB_KIND_COUNT; i++) {
        shown->jobs[i] = process->jobs[i] != NULL ? process->jobs[i]->serial : 0;
    }
    shown->location = snapshot->location_count;
    shown->resource = snapshot->resource_count;
    for (uint32_t i = 0; i < process->member_count && !snapshot->failed; i++) {
        read_member(snapshot, shown, process->members[i]);
    }
}

/* --- jobs ----------------------------------------------------------------------------- */

static int by_serial(const void *wanted, const void *item)
{
    uint64_t serial = *(const uint64_t *)wanted;
    const snapshot_job_t *job = item;
    return (serial > job->serial) - (serial < job->serial);
}

/* NULL: there is none, or it is gone since the process was read. */
static snapshot_job_t *job_of(const snapshot_t *snapshot, uint64_t serial)
{
    return serial != 0 && snapshot->job_count > 0
               ? bsearch(
                     &serial, snapshot->jobs, snapshot->job_count,
                     sizeof(snapshot_job_t), by_serial)
               : NULL;
}

const snapshot_job_t *snapshot_job(const snapshot_t *snapshot, uint64_t serial)
{
    return job_of(snapshot, serial);
}

static void begin_jobs(snapshot_t *snapshot, const model_t *model)
{
    uint64_t now = model_clock_ns();
    for (uint32_t i = 0; i < model->jobs.count; i++) {
        const job_t *job = model->jobs.items[i];
        snapshot_job_t *shown = ADD(snapshot, jobs, job_count, job_room);
        if (shown == NULL) {
            return;
        }
        shown->serial = job->serial;
        shown->kind = job->kind;
        shown->uid = job->uid;
        memcpy(shown->name, job->name, sizeof(shown->name));
        memcpy(shown->pod, job->pod, sizeof(shown->pod));
        shown->processes = job->processes;
        shown->ended_ns_ago = job->ended_ns != 0 ? now - job->ended_ns : FIGURE_UNKNOWN;
    }
}

static void add_to_job(
    const snapshot_t *snapshot, const snapshot_location_t *location,
    snapshot_job_t *job)
{
    const figures_t *figures = &location->figures;
    bool is_host = snapshot->devices[location->device].device == DEVICE_HOST;
    uint64_t *bytes = is_host ? &job->host_bytes : &job->current_bytes;
    *bytes = figure_add_known(*bytes, figures->current_bytes);
    if (!is_host) {
        job->reserved_bytes =
            figure_add_known(job->reserved_bytes, figures->reserved_bytes);
    }
    job->oom_count = figure_add_known(job->oom_count, figures->oom_count);
}

static void sum_jobs(const snapshot_t *snapshot, const snapshot_process_t *process)
{
    for (uint32_t kind = 0; kind < JOB_KIND_COUNT; kind++) {
        snapshot_job_t *job = job_of(snapshot, process->jobs[kind]);
        for (uint32_t i = 0; job != NULL && i < process->location_count; i++) {
            add_to_job(snapshot, &snapshot->locations[process->location + i], job);
        }
    }
}

static void read_jobs(snapshot_t *snapshot, model_t *model)
{
    begin_jobs(snapshot, model);
    for (uint32_t i = 0; i < snapshot->process_count && !snapshot->failed; i++) {
        if (snapshot->processes[i].is_live) {
            sum_jobs(snapshot, &snapshot->processes[i]);
        }
    }
    for (uint32_t i = 0; i < snapshot->job_count && !snapshot->failed; i++) {
        snapshot_job_t *job = &snapshot->jobs[i];
        job->peak_bytes = job->current_bytes;
        job->host_peak_bytes = job->host_bytes;
        jobs_raise(model->jobs.items[i], &job->peak_bytes, &job->host_peak_bytes);
    }
}

/* --- limits --------------------------------------------------------------------------- */

static bool is_in_group(
    const snapshot_t *snapshot, const snapshot_process_t *process, const limit_t *limit)
{
    if (limit->kind == LIMIT_OF_DEVICE) {
        return true;
    }
    const snapshot_job_t *job = snapshot_job(snapshot, process->jobs[limit->kind]);
    return job != NULL && (limit->uid == LIMIT_ANY_USER || limit->uid == job->uid) &&
           strcmp(job->name, limit->name) == 0;
}

static void add_to_limit(
    const snapshot_t *snapshot, const snapshot_process_t *process, uint32_t device,
    snapshot_limit_t *sum)
{
    for (uint32_t i = 0; i < process->location_count; i++) {
        const snapshot_location_t *at = &snapshot->locations[process->location + i];
        if (at->device == device) {
            uint64_t held = figure_add_known(0, at->figures.reserved_bytes);
            bool is_held = at->share_bytes == FIGURE_UNKNOWN || at->share_bytes < held;
            sum->held_bytes = figure_add(sum->held_bytes, held);
            sum->given_bytes =
                figure_add(sum->given_bytes, is_held ? held : at->share_bytes);
        }
    }
}

static void
sum_limit(const snapshot_t *snapshot, uint32_t device, snapshot_limit_t *shown)
{
    snapshot_limit_t sum = {.processes = 0};
    if (!limit_is_on(&shown->limit, snapshot->devices[device].device)) {
        return;
    }
    for (uint32_t i = 0; i < snapshot->process_count; i++) {
        const snapshot_process_t *process = &snapshot->processes[i];
        if (process->is_live && is_in_group(snapshot, process, &shown->limit)) {
            add_to_limit(snapshot, process, device, &sum);
            sum.processes++;
        }
    }
    shown->held_bytes =
        sum.held_bytes > shown->held_bytes ? sum.held_bytes : shown->held_bytes;
    shown->given_bytes =
        sum.given_bytes > shown->given_bytes ? sum.given_bytes : shown->given_bytes;
    shown->processes = sum.processes;
}

static void read_limits(snapshot_t *snapshot, const model_t *model)
{
    const limits_t *limits = &model->limits;
    if (limits->count == 0) {
        return;
    }
    snapshot->limits = calloc(limits->count, sizeof(snapshot->limits[0]));
    if (snapshot->limits == NULL) {
        snapshot->failed = true;
        return;
    }
    snapshot->limit_count = limits->count;
    for (uint32_t i = 0; i < limits->count; i++) {
        snapshot->limits[i].limit = limits->items[i];
        for (uint32_t k = 0; k < snapshot->device_count; k++) {
            sum_limit(snapshot, k, &snapshot->limits[i]);
        }
    }
}

/* --- all ------------------------------------------------------------------------------ */

static void read_devices(snapshot_t *snapshot, model_t *model)
{
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        snapshot_device_t *device = &snapshot->devices[i];
        figures_end_device(&device->sum);
        marks_show_parts(model, device->device, &device->sum, &device->figures);
    }
    read_jobs(snapshot, model);
    read_limits(snapshot, model);
    snapshot->segments = model_live_count(model);
    snapshot->segments_rejected = model->segments_rejected;
    snapshot->start_seconds = model->started_real_ns / 1000000000u;
}

static uint32_t count_levels(const snapshot_t *snapshot)
{
    return snapshot->process_count + snapshot->location_count +
           snapshot->resource_count;
}

/* Processes are in the order of their serials. */
bool snapshot_continue(snapshot_t *snapshot, model_t *model)
{
    uint32_t before = count_levels(snapshot);
    for (uint32_t i = 0; i < model->process_count && !snapshot->failed; i++) {
        const process_t *process = model->processes[i];
        if (process->serial <= snapshot->done_serial) {
            continue;
        }
        if (process->serial > snapshot->last_serial) {
            break;
        }
        if (count_levels(snapshot) - before >= PIECE_LEVELS) {
            return true;
        }
        read_process(snapshot, process);
        snapshot->done_serial = process->serial;
    }
    if (!snapshot->failed) {
        read_devices(snapshot, model);
    }
    return false;
}
