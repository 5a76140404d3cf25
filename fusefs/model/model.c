/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Upkeep of the model; see model.h. Lists are short (processes of one node that use a
 * GPU), so they are arrays. Searches are linear but for those that every request makes, by
 * serial.
 */
#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "segment/list.h"
#include "segments/dirs.h"
#include "segments/exits.h"

uint64_t model_clock_ns(void)
{
    return rmm__clock_ns(CLOCK_BOOTTIME);
}

void model_init(model_t *model)
{
    memset(model, 0, sizeof(*model));
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    /* Readers come without a pause when many poll; the refresh must still get in. */
    pthread_rwlockattr_setkind_np(
        &attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&model->lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    strcpy(model->host.gpu.uuid, "host");
    strcpy(model->host.gpu.name, "host");
    model->uid = geteuid();
    model->gid = getegid();
    model->hiding.own_uid = model->uid;
    budget_init(&model->budget, model->uid);
    refusals_init(&model->refusals);
    model->started_ns = model_clock_ns();
    model->started_real_ns = rmm__clock_ns(CLOCK_REALTIME);
}

void model_fini(model_t *model)
{
    while (model->process_count > 0) {
        process_t *process = model->processes[model->process_count - 1];
        model_remove_member(model, process->members[process->member_count - 1]);
    }
    jobs_fini(&model->jobs);
    limits_fini(&model->limits);
    refusals_fini(&model->refusals);
    free(model->processes);
    free(model->members);
    free(model->vanished);
    free(model->totalled);
    budget_fini(&model->budget);
    pthread_rwlock_destroy(&model->lock);
}

/* The device of that index, const if the model is. NULL: there is none. */
#define DEVICE_AT(model, index)                                                        \
    ((index) == DEVICE_HOST         ? &(model)->host                                   \
     : (index) < (model)->gpu_count ? &(model)->gpus[index]                            \
                                    : NULL)

device_t *model_device(model_t *model, uint32_t index)
{
    return DEVICE_AT(model, index);
}

const device_t *model_device_const(const model_t *model, uint32_t index)
{
    return DEVICE_AT(model, index);
}

static int by_serial(uint64_t wanted, uint64_t serial)
{
    return (wanted > serial) - (wanted < serial);
}

static int compare_process(const void *wanted, const void *item)
{
    return by_serial(*(const uint64_t *)wanted, (*(process_t *const *)item)->serial);
}

static int compare_member(const void *wanted, const void *item)
{
    return by_serial(*(const uint64_t *)wanted, (*(member_t *const *)item)->serial);
}

/* The place in a list, which is in the order of serials, by the low half of a serial; NULL: none.
 * The high half is 0 until 2^32 were given. */
static const void *find_low(
    const model_t *model, const void *list, uint32_t count, uint32_t low,
    int (*compare)(const void *, const void *))
{
    for (uint64_t high = 0; count > 0 && high <= model->last_serial >> 32; high++) {
        const uint64_t serial = high << 32 | low;
        const void *found = bsearch(&serial, list, count, sizeof(void *), compare);
        if (found != NULL) {
            return found;
        }
    }
    return NULL;
}

process_t *model_process(const model_t *model, uint32_t serial)
{
    process_t *const *found = find_low(
        model, model->processes, model->process_count, serial, compare_process);
    return found != NULL ? *found : NULL;
}

process_t *model_process_named(const model_t *model, const char *name)
{
    for (uint32_t i = 0; i < model->process_count; i++) {
        if (strcmp(model->processes[i]->name, name) == 0) {
            return model->processes[i];
        }
    }
    return NULL;
}

member_t *model_member(const model_t *model, uint32_t serial)
{
    member_t *const *found =
        find_low(model, model->members, model->member_count, serial, compare_member);
    return found != NULL ? *found : NULL;
}

uint32_t model_live_count(const model_t *model)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->member_count; i++) {
        count += model->members[i]->state == MEMBER_LIVE;
    }
    return count;
}

/* Their low halves are part of inode numbers: not reused while in use, which can only be
 * after 2^32 of them. */
static uint64_t next_serial(model_t *model)
{
    uint32_t low;
    do {
        low = (uint32_t)++model->last_serial;
    } while (low == 0 ||
             (model->last_serial > UINT32_MAX &&
              (model_process(model, low) != NULL || model_member(model, low) != NULL)));
    return model->last_serial;
}

static process_t *
add_process(model_t *model, const char *name, pid_t pid, const member_t *member)
{
    process_t **processes = rmm__list_make_room(
        model->processes, model->process_count, &model->process_capacity,
        sizeof(process_t *));
    if (processes == NULL) {
        return NULL;
    }
    model->processes = processes;
    process_t *process = calloc(1, sizeof(*process));
    if (process == NULL) {
        return NULL;
    }
    process->serial = next_serial(model);
    process->pid = pid;
    process->uid = member->segment.uid;
    process->gid = member->gid;
    (void)snprintf(process->name, sizeof(process->name), "%s", name);
    model->processes[model->process_count++] = process;
    return process;
}

static void remove_process(model_t *model, process_t *process)
{
    for (uint32_t i = 0; i < model->process_count; i++) {
        if (model->processes[i] == process) {
            model->process_count--;
            memmove(
                &model->processes[i], &model->processes[i + 1],
                (model->process_count - i) * sizeof(process_t *));
            break;
        }
    }
    jobs_leave_ended(model, process);
    placement_release(process->placement);
    free(process->members);
    free(process);
}

/* The background thread notifies the kernel; if memory is short, the entry expires by itself. */
static void note_vanished(model_t *model, uint64_t serial)
{
    uint32_t *vanished = rmm__list_make_room(
        model->vanished, model->vanished_count, &model->vanished_capacity,
        sizeof(uint32_t));
    if (vanished == NULL) {
        return;
    }
    model->vanished = vanished;
    model->vanished[model->vanished_count++] = (uint32_t)serial;
}

/* Room for one more: nearly every process has one. */
static bool reserve(member_t ***members, uint32_t count, uint32_t *capacity)
{
    if (count < *capacity) {
        return true;
    }
    uint32_t larger = *capacity == 0 ? 1 : *capacity * 2;
    member_t **grown = realloc(*members, larger * sizeof(member_t *));
    if (grown == NULL) {
        return false;
    }
    *members = grown;
    *capacity = larger;
    return true;
}

static void remove_from(member_t **members, uint32_t *count, const member_t *member)
{
    for (uint32_t i = 0; i < *count; i++) {
        if (members[i] == member) {
            --*count;
            memmove(&members[i], &members[i + 1], (*count - i) * sizeof(member_t *));
            return;
        }
    }
}

bool model_add_member(model_t *model, member_t *member, const char *name, pid_t pid)
{
    process_t *process = model_process_named(model, name);
    bool is_new = process == NULL;
    if (is_new) {
        process = add_process(model, name, pid, member);
        if (process == NULL) {
            return false;
        }
    }
    if (!reserve(&process->members, process->member_count, &process->member_capacity) ||
        !reserve(&model->members, model->member_count, &model->member_capacity)) {
        if (is_new) {
            remove_process(model, process);
        }
        return false;
    }
    /* the daemon has found what ended before its start, whose pid is not known, first */
    process->pid = process->pid != 0 ? process->pid : pid;
    member->serial = next_serial(model);
    member->process = process;
    process->members[process->member_count++] = member;
    model->members[model->member_count++] = member;
    model->changes++;
    if (member->dir != NULL) {
        member->dir->references++;
    }
    return true;
}

void model_close_found(model_t *model, member_t *member)
{
    if (member->found.is_open) {
        rmm__diag_close(&member->found.file);
        member->found.is_open = false;
        model->found_open--;
    }
}

void model_free_member(model_t *model, member_t *member)
{
    if (member->is_charged) {
        budget_give(&model->budget, member->segment.uid, BUDGET_SEGMENTS, 1);
    }
    if (member->has_control) {
        rmm__control_close(&member->control);
    }
    model_close_found(model, member);
    rmm__segment_close(&member->segment);
    free(member);
}

void model_remove_member(model_t *model, member_t *member)
{
    process_t *process = member->process;
    remove_from(process->members, &process->member_count, member);
    remove_from(model->members, &model->member_count, member);
    model->changes++;
    if (member->entry != NULL) {
        member->entry->member = NULL;
    }
    if (model->exits != NULL && member->pidfd >= 0) {
        exits_forget(model->exits, member->pidfd);
    }
    if (member->dir != NULL) {
        member->dir->references--;
    }
    model_free_member(model, member);
    if (process->member_count == 0) {
        note_vanished(model, process->serial);
        remove_process(model, process);
    }
}

totalled_t *model_totalled(model_t *model, const char *segment_name, uid_t uid)
{
    for (uint32_t i = 0; i < model->totalled_count; i++) {
        if (model->totalled[i].uid == uid &&
            strcmp(model->totalled[i].name, segment_name) == 0) {
            return &model->totalled[i];
        }
    }
    return NULL;
}

bool model_add_totalled(model_t *model, const totalled_t *totalled)
{
    totalled_t *larger = rmm__list_make_room(
        model->totalled, model->totalled_count, &model->totalled_capacity,
        sizeof(totalled_t));
    if (larger == NULL) {
        return false;
    }
    model->totalled = larger;
    model->totalled[model->totalled_count++] = *totalled;
    return true;
}

void model_forget_totalled(model_t *model, totalled_t *totalled)
{
    *totalled = model->totalled[--model->totalled_count];
}

bool process_is_live(const process_t *process)
{
    for (uint32_t i = 0; i < process->member_count; i++) {
        if (process->members[i]->state == MEMBER_LIVE) {
            return true;
        }
    }
    return false;
}

const char *process_state(const process_t *process)
{
    if (process_is_live(process)) {
        return "live";
    }
    for (uint32_t i = 0; i < process->member_count; i++) {
        if (process->members[i]->state == MEMBER_UNREADABLE) {
            return "unreadable";
        }
    }
    return "exited";
}

/* The newest live one: after an exec it is the program that runs now. */
const member_t *process_readable_member(const process_t *process)
{
    const member_t *readable = NULL;
    for (uint32_t i = 0; i < process->member_count; i++) {
        const member_t *member = process->members[i];
        if (member->state == MEMBER_UNREADABLE) {
            continue;
        }
        if (readable == NULL || member->state == MEMBER_LIVE ||
            readable->state != MEMBER_LIVE) {
            readable = member;
        }
    }
    return readable;
}

bool member_counts(const member_t *member)
{
    if (member->state == MEMBER_EXITED) {
        return !process_is_live(member->process);
    }
    return member->state == MEMBER_LIVE;
}

bool member_location_on(const member_t *member, uint32_t device, uint32_t *location_out)
{
    for (uint32_t i = 0; i < member->location_count; i++) {
        if (member->locations[i].device == device) {
            *location_out = member->locations[i].location;
            return true;
        }
    }
    return false;
}

uint32_t member_device_of(const member_t *member, uint32_t location)
{
    for (uint32_t i = 0; i < member->location_count; i++) {
        if (member->locations[i].location == location) {
            return member->locations[i].device;
        }
    }
    return DEVICE_NONE;
}
