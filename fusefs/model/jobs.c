/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of processes; see jobs.h. */
#include "model/jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "segment/list.h"
#include "support/daemon_log.h"

#define PLACED_AT_ONCE 16u /* each reads a file of /proc: 8 us */

/* --- placements --------------------------------------------------------------------------- */

placement_t *placement_retain(placement_t *placement)
{
    if (placement != NULL) {
        atomic_fetch_add_explicit(&placement->references, 1, memory_order_relaxed);
    }
    return placement;
}

void placement_release(placement_t *placement)
{
    /* acquire-release: what the others read of it is over before it is freed */
    if (placement != NULL &&
        atomic_fetch_sub_explicit(&placement->references, 1, memory_order_acq_rel) ==
            1) {
        free(placement);
    }
}

/* NULL: no memory. */
static placement_t *placement_make(const cgroup_t *group)
{
    placement_t *placement = malloc(sizeof(*placement));
    if (placement != NULL) {
        atomic_init(&placement->references, 1);
        placement->group = *group;
    }
    return placement;
}

/* --- the list ------------------------------------------------------------------------- */

static void remove_at(jobs_t *jobs, uint32_t at)
{
    free(jobs->items[at]);
    jobs->count--;
    memmove(
        &jobs->items[at], &jobs->items[at + 1], (jobs->count - at) * sizeof(job_t *));
}

void jobs_fini(jobs_t *jobs)
{
    while (jobs->count > 0) {
        remove_at(jobs, jobs->count - 1);
    }
    free(jobs->items);
    *jobs = (jobs_t){.items = NULL};
}

static bool is_full(const jobs_t *jobs, uid_t uid)
{
    uint32_t of_user = 0;
    for (uint32_t i = 0; i < jobs->count; i++) {
        of_user += jobs->items[i]->uid == uid;
    }
    return jobs->count >= JOBS_MAX || of_user >= JOBS_OF_USER;
}

static void log_full(jobs_t *jobs, uid_t uid)
{
    if (!jobs->has_logged_full) {
        jobs->has_logged_full = true;
        log_warn(
            "no more jobs of user %u are shown: at most %u of a user, %u of all",
            (unsigned)uid, JOBS_OF_USER, JOBS_MAX);
    }
}

/* NULL: no memory, or too many. */
static job_t *add(jobs_t *jobs, job_kind_t kind, uid_t uid, const char *name)
{
    if (is_full(jobs, uid)) {
        log_full(jobs, uid);
        return NULL;
    }
    job_t **items =
        rmm__list_make_room(jobs->items, jobs->count, &jobs->capacity, sizeof(job_t *));
    if (items == NULL) {
        return NULL;
    }
    jobs->items = items;
    job_t *job = calloc(1, sizeof(*job));
    if (job == NULL) {
        return NULL;
    }
    job->serial = ++jobs->last_serial;
    job->kind = kind;
    job->uid = uid;
    (void)snprintf(job->name, sizeof(job->name), "%s", name);
    jobs->items[jobs->count++] = job;
    return job;
}

static job_t *find(jobs_t *jobs, job_kind_t kind, uid_t uid, const char *name)
{
    for (uint32_t i = 0; i < jobs->count; i++) {
        job_t *job = jobs->items[i];
        if (job->kind == kind && job->uid == uid && strcmp(job->name, name) == 0) {
            return job;
        }
    }
    return NULL;
}

static void make_room_for_ended(jobs_t *jobs, uid_t uid)
{
    uint32_t count = 0, oldest = 0;
    for (uint32_t i = jobs->count; i > 0; i--) {
        const job_t *job = jobs->items[i - 1];
        if (job->uid == uid && job->ended_ns != 0) {
            oldest = count == 0 || job->ended_ns <= jobs->items[oldest]->ended_ns
                         ? i - 1
                         : oldest;
            count++;
        }
    }
    if (count > JOBS_ENDED_OF_USER) {
        remove_at(jobs, oldest);
    }
}

void jobs_expire(model_t *model)
{
    uint64_t now = model_clock_ns();
    for (uint32_t i = model->jobs.count; i > 0; i--) {
        const job_t *job = model->jobs.items[i - 1];
        if (job->ended_ns != 0 && now - job->ended_ns >= JOBS_ENDED_SHOWN_NS) {
            remove_at(&model->jobs, i - 1);
        }
    }
}

/* --- processes ------------------------------------------------------------------------ */

static void leave(model_t *model, job_t *jobs[JOB_KIND_COUNT])
{
    for (uint32_t kind = 0; kind < JOB_KIND_COUNT; kind++) {
        job_t *job = jobs[kind];
        jobs[kind] = NULL;
        if (job != NULL && --job->processes == 0) {
            job->ended_ns = model_clock_ns();
            make_room_for_ended(&model->jobs, job->uid);
        }
    }
}

/* Without memory or room it is in fewer jobs. */
static void enter(model_t *model, process_t *process, const cgroup_t *group)
{
    for (job_kind_t kind = 0; kind < JOB_KIND_COUNT; kind++) {
        char name[JOB_NAME_BYTES];
        process->jobs[kind] = NULL;
        if (!job_name(group, process->uid, kind, name)) {
            continue;
        }
        job_t *job = find(&model->jobs, kind, process->uid, name);
        if (job == NULL) {
            job = add(&model->jobs, kind, process->uid, name);
        }
        if (job != NULL) {
            job->processes++;
            job->ended_ns = 0;
        }
        process->jobs[kind] = job;
    }
}

static void take_label(const process_t *process, cgroup_t *group)
{
    const member_t *member = process_readable_member(process);
    if (member != NULL) {
        memcpy(group->label, member->segment.header.job, sizeof(group->label));
    }
}

/* The groups that are known, with the label of the process. */
static void put(model_t *model, process_t *process, const cgroup_t *group)
{
    const placement_t *before = process->placement;
    if (process->jobs[JOB_USER] != NULL && before != NULL &&
        memcmp(&before->group, group, sizeof(*group)) == 0) {
        return;
    }
    job_t *left[JOB_KIND_COUNT];
    memcpy(left, process->jobs, sizeof(left));
    enter(model, process, group);
    leave(model, left); /* what it is in as before does not end */
    model->sharing.has_moved = true;
    placement_release(process->placement);
    process->placement = placement_make(group);
}

void jobs_put(model_t *model, process_t *process, const cgroup_t *group)
{
    cgroup_t known = {.path = ""};
    if (group != NULL) {
        known = *group;
    } else if (process->jobs[JOB_USER] != NULL) {
        return;
    }
    take_label(process, &known);
    put(model, process, &known);
}

/* A pid that has gone to another process is no longer held: then the member is not live. */
void jobs_place(model_t *model, process_t *process)
{
    cgroup_t group;
    bool is_read = cgroup_of(process->pid, &group);
    const member_t *member = process_readable_member(process);
    if (process_is_live(process) && member != NULL &&
        rmm__segment_is_live(&member->segment)) {
        jobs_put(model, process, is_read ? &group : NULL);
    }
}

void jobs_place_some(model_t *model)
{
    uint32_t count =
        model->process_count < PLACED_AT_ONCE ? model->process_count : PLACED_AT_ONCE;
    for (uint32_t i = 0; i < count; i++) {
        model->jobs.next_placed = (model->jobs.next_placed + 1) % model->process_count;
        jobs_place(model, model->processes[model->jobs.next_placed]);
    }
}

void jobs_leave_ended(model_t *model, process_t *process)
{
    if (!process_is_live(process)) {
        leave(model, process->jobs);
    }
}

/* --- peaks ---------------------------------------------------------------------------- */

/* Several readers may try at once. Returns the value that it has then. */
static uint64_t raise(_Atomic(uint64_t) *peak, uint64_t value)
{
    uint64_t seen = atomic_load_explicit(peak, memory_order_relaxed);
    while (value != FIGURE_UNKNOWN && value > seen) {
        if (atomic_compare_exchange_weak_explicit(
                peak, &seen, value, memory_order_relaxed, memory_order_relaxed)) {
            return value;
        }
    }
    return seen;
}

static int by_serial(const void *wanted, const void *item)
{
    uint64_t serial = *(const uint64_t *)wanted;
    const job_t *job = *(const job_t *const *)item;
    return (serial > job->serial) - (serial < job->serial);
}

const job_t *jobs_find(const jobs_t *jobs, uint64_t serial)
{
    job_t *const *found = jobs->count > 0 ? bsearch(
                                                &serial, jobs->items, jobs->count,
                                                sizeof(jobs->items[0]), by_serial)
                                          : NULL;
    return found != NULL ? *found : NULL;
}

void jobs_raise(job_t *job, uint64_t *bytes, uint64_t *host_bytes)
{
    *bytes = raise(&job->peak_bytes, *bytes);
    *host_bytes = raise(&job->host_peak_bytes, *host_bytes);
}

void jobs_note_end(process_t *process, const figures_t *last, bool is_host)
{
    for (uint32_t kind = 0; kind < JOB_KIND_COUNT; kind++) {
        job_t *job = process->jobs[kind];
        if (job != NULL) {
            (void)raise(
                is_host ? &job->host_peak_bytes : &job->peak_bytes,
                last->lifetime_peak_bytes);
        }
    }
}

void jobs_look_begin(model_t *model)
{
    for (uint32_t i = 0; i < model->jobs.count; i++) {
        job_t *job = model->jobs.items[i];
        job->look_bytes = job->look_host_bytes = 0;
    }
}

void jobs_look_add(const process_t *process, const figures_t *part, bool is_host)
{
    for (uint32_t kind = 0; kind < JOB_KIND_COUNT; kind++) {
        job_t *job = process->jobs[kind];
        if (job != NULL) {
            uint64_t *sum = is_host ? &job->look_host_bytes : &job->look_bytes;
            *sum = figure_add_known(*sum, part->current_bytes);
            (void)raise(
                is_host ? &job->host_peak_bytes : &job->peak_bytes,
                part->lifetime_peak_bytes);
        }
    }
}

void jobs_look_end(model_t *model)
{
    for (uint32_t i = 0; i < model->jobs.count; i++) {
        job_t *job = model->jobs.items[i];
        (void)raise(&job->peak_bytes, job->look_bytes);
        (void)raise(&job->host_peak_bytes, job->look_host_bytes);
        history_see(&job->history, job->look_bytes);
    }
}
