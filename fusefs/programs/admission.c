/* SPDX-License-Identifier: Apache-2.0 */
/* Admits segments to the model; see admission.h. */
#include "programs/admission.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/locations.h"
#include "programs/endings.h"
#include "programs/event_poll.h"
#include "programs/holders.h"
#include "programs/members.h"
#include "programs/refused.h"
#include "programs/sharing_out.h"
#include "programs/shortage.h"
#include "segment/open_in.h"
#include "segment/process_check.h"
#include "segment/segment_shrink.h"
#include "segments/exits.h"
#include "support/daemon_log.h"

#define MAKING_NS                                                                      \
    (5ull * 1000000000u) /* a segment "being made" for longer is refused */

/* --- names ---------------------------------------------------------------------------- */

/* "4711"; if the pid is unknown: "1000.0123456789abcdef" is "seg-0123456789abcdef". */
static void name_process(char *name, size_t bytes, const char *segment, pid_t pid)
{
    const char *dot = strchr(segment, '.');
    if (pid > 0) {
        (void)snprintf(name, bytes, "%d", (int)pid);
    } else {
        (void)snprintf(name, bytes, "seg-%.16s", dot != NULL ? dot + 1 : segment);
    }
}

/*
 * The pid of a process that ended before the daemon looked. The process saw a pid of its own
 * namespace. That is also the daemon's if the same user's process is still a zombie under it, or
 * if no process has it now, neither in /proc nor in the model.
 */
static pid_t find_ended_pid(const model_t *model, const rmm_segment_t *segment)
{
    char name[32];
    pid_t own = (pid_t)segment->header.pid;
    if (own <= 0) {
        return 0;
    }
    /* In this order: its parent may wait for it between the two questions. */
    if (rmm__process_is(own, segment->uid, segment->header.start_time_ticks)) {
        return own;
    }
    if (rmm__process_exists(own)) {
        return 0;
    }
    name_process(name, sizeof(name), segment->name, own);
    return model_process_named(model, name) == NULL ? own : 0;
}

/* A new process may have the pid of an exited one that is still shown: that one goes. */
static void make_way(model_t *model, const char *name, const member_t *newcomer)
{
    process_t *process = model_process_named(model, name);
    if (process == NULL || process_is_live(process)) {
        return;
    }
    const member_t *old = process_readable_member(process);
    if (old != NULL && newcomer->state == MEMBER_LIVE &&
        process->uid == newcomer->segment.uid &&
        old->segment.header.start_time_ticks ==
            newcomer->segment.header.start_time_ticks) {
        return; /* the same process, another program since */
    }
    for (uint32_t left = process->member_count; left > 0; left--) {
        model_remove_member(model, process->members[left - 1]);
    }
}

/* --- in a process ---------------------------------------------------------------------- */

/* In a process's directory; the oldest that has ended makes room. Anybody can give any number
 * of segments one pid, and a figure of a process is read from all its segments. */
static bool make_room_in(model_t *model, const process_t *process)
{
    if (process->member_count < MEMBERS_OF_PROCESS_MAX) {
        return true;
    }
    for (uint32_t i = 0; i < process->member_count; i++) {
        if (process->members[i]->state == MEMBER_EXITED) {
            model_remove_member(model, process->members[i]);
            return true;
        }
    }
    return false;
}

/* A directory is one user's, who reads its logs: a segment of another's that has, or
 * pretends to have, the same pid gets its own. So does one too many of a process. */
static bool join(model_t *model, member_t *member, const char *name, pid_t pid)
{
    const process_t *process = model_process_named(model, name);
    char own_name[32];
    if (process != NULL &&
        (process->uid != member->segment.uid || !make_room_in(model, process))) {
        name_process(own_name, sizeof(own_name), member->segment.name, 0);
        return model_process_named(model, own_name) == NULL &&
               model_add_member(model, member, own_name, 0);
    }
    return model_add_member(model, member, name, pid);
}

/* The file of an earlier member may have lost the name to another file. */
static void bind_name(member_t *member, entry_t *entry)
{
    if (entry->member != NULL) {
        entry->member->entry = NULL;
    }
    member->entry = entry;
    entry->member = member;
}

/* False: it is not shown, and freed. */
static bool
take(model_t *model, member_t *member, entry_t *entry, const char *name, pid_t pid)
{
    struct stat status;
    bool known = fstat(member->segment.fd, &status) == 0;
    member->gid = known ? status.st_gid : 0;
    member_open_control(member);
    member->is_settled =
        known && !member->has_control && rmm__segment_is_marked(&status);
    make_way(model, name, member);
    if (!join(model, member, name, pid)) {
        log_of_user(
            member->segment.uid, LOG_LEVEL_WARN,
            "segment %s is not shown: out of memory, or process %s belongs to another "
            "user",
            member->segment.name, name);
        model_free_member(model, member);
        return false;
    }
    bind_name(member, entry);
    if (pid > 0 && model->exits != NULL && member->state == MEMBER_LIVE) {
        member->pidfd = exits_watch(model->exits, pid, member->serial);
    }
    if (member->state == MEMBER_LIVE) {
        jobs_place(model, member->process);
    }
    (void)locations_find(model, member);
    refused_touched(model, member);
    sharing_out_met(model, member);
    log_debug(
        "segment %s belongs to process %s", member->segment.name,
        member->process->name);
    return true;
}

/* Its totals are counted; it may still be shown. */
static void take_totalled(
    model_t *model, member_t *member, entry_t *entry, const totalled_t *totalled)
{
    uint64_t now = model_clock_ns();
    bool recent =
        totalled->exited_ns <= now && now - totalled->exited_ns < EXITED_SHOWN_NS;
    if (!recent || model_process_named(model, totalled->process) != NULL) {
        model_free_member(model, member);
        return;
    }
    member->state = MEMBER_EXITED;
    member->exited_ns = totalled->exited_ns;
    (void)take(model, member, entry, totalled->process, 0);
}

/* A name that is known has another file. While its process still ends, its last figures are
 * in the old one: later. */
static admission_t take_again(member_t *member, rmm_segment_t *segment)
{
    if (member->state == MEMBER_EXITED) {
        member_take_small(member, segment);
        return ADMISSION_TAKEN;
    }
    bool is_same = segment->inode == member->segment.inode;
    rmm__segment_close(segment);
    return is_same ? ADMISSION_TAKEN : ADMISSION_LATER;
}

/* --- refusing ------------------------------------------------------------------------- */

/* Only what can be locked and read without waiting: never a FIFO or a device. */
static int open_refused(const segment_dir_t *dir, const char *name, struct stat *status)
{
    int fd = rmm__open_in(dir->fd, name, O_RDONLY | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, status) != 0 || !S_ISREG(status->st_mode))) {
        (void)close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

/* Shown as unreadable if a process holds it. */
static admission_t take_refused(
    model_t *model, member_t *member, entry_t *entry, int fd, const struct stat *status)
{
    char name[32];
    pid_t pid;
    (void)snprintf(
        member->segment.name, sizeof(member->segment.name), "%s", entry->name);
    member->segment.fd = fd;
    member->segment.uid = status->st_uid;
    member->segment.device = status->st_dev;
    member->segment.inode = status->st_ino;
    member->gid = status->st_gid;
    member->state = MEMBER_UNREADABLE;
    holder_answer_t answer =
        rmm__segment_is_live(&member->segment)
            ? holders_find_owner(
                  model->holders, &member->segment, entry->found_ns, &pid)
            : HOLDER_UNKNOWN;
    if (answer == HOLDER_LATER) {
        model_free_member(model, member);
        return ADMISSION_LATER;
    }
    if (answer == HOLDER_FOUND) {
        name_process(name, sizeof(name), member->segment.name, pid);
    }
    if (answer != HOLDER_FOUND || !join(model, member, name, pid)) {
        model_free_member(model, member);
        return ADMISSION_REFUSED;
    }
    bind_name(member, entry);
    return ADMISSION_TAKEN;
}

static void tell_refused(model_t *model, const entry_t *entry, const char *reason)
{
    model->segments_rejected++;
    event_poll_refusal(
        model, entry->owner, entry->member != NULL ? entry->member->process->name : "",
        reason);
    log_of_user(
        entry->owner, LOG_LEVEL_WARN, "segment %s/%s refused: %s", entry->dir->path,
        entry->name, reason);
}

/* Out of descriptors: our own trouble, not the segment's. */
static admission_t put_off(model_t *model, entry_t *entry, member_t *member)
{
    free(member);
    shortage_note(model, entry, SHORT_OF_DESCRIPTORS);
    return ADMISSION_LATER;
}

static admission_t
refuse(model_t *model, entry_t *entry, member_t *member, const char *reason)
{
    struct stat status;
    int fd = open_refused(entry->dir, entry->name, &status);
    if (fd < 0 && rmm__is_out_of_descriptors(errno)) {
        return put_off(model, entry, member);
    }
    shortage_note(model, entry, SHORT_OF_NOTHING);
    admission_t admission = ADMISSION_REFUSED;
    if (fd < 0) {
        free(member);
    } else {
        admission = take_refused(model, member, entry, fd, &status);
    }
    if (admission != ADMISSION_LATER) {
        tell_refused(model, entry, reason);
    }
    return admission;
}

/* --- a whole segment ------------------------------------------------------------------- */

/* It ended before this daemon saw it. */
static void end_unseen(model_t *model, member_t *member)
{
    if (model->counts_ended) {
        member_add_totals(model, member);
        model->is_unsaved = true;
    } else {
        member_end(model, member);
    }
}

/* The oldest ended segment of a user, or of anybody (-1), makes room for a live one. */
static bool make_room(model_t *model, long only_uid)
{
    for (uint32_t i = 0; i < model->member_count; i++) {
        member_t *member = model->members[i];
        bool fits = only_uid < 0 ||
                    (member->is_charged && member->segment.uid == (uid_t)only_uid);
        if (member->state == MEMBER_EXITED && fits) {
            model_remove_member(model, member);
            return true;
        }
    }
    return false;
}

static bool charge(model_t *model, member_t *member)
{
    uid_t uid = member->segment.uid;
    member->is_charged =
        budget_take(&model->budget, uid, BUDGET_SEGMENTS, 1) ||
        (make_room(model, uid) && budget_take(&model->budget, uid, BUDGET_SEGMENTS, 1));
    return member->is_charged;
}

/* False: to be called again, for the table of locks is being read, or out of descriptors. */
static bool
find_pid(model_t *model, member_t *member, entry_t *entry, bool *is_live, pid_t *pid)
{
    holder_answer_t answer = HOLDER_UNKNOWN;
    *pid = 0;
    *is_live = rmm__segment_is_live(&member->segment);
    if (*is_live) {
        answer = holders_find(model->holders, &member->segment, entry->found_ns, pid);
    }
    if (answer == HOLDER_SHORT) {
        shortage_note(model, entry, SHORT_OF_DESCRIPTORS);
        return false;
    }
    if (answer != HOLDER_FOUND) { /* it may have ended since */
        *is_live = *is_live && rmm__segment_is_live(&member->segment);
    }
    if (!*is_live) {
        *pid = find_ended_pid(model, &member->segment);
    }
    return !*is_live || answer != HOLDER_LATER;
}

/* A process may end before it is watched; then a reader who knows that it has ended must find its
 * figures. False: the lock is still held, by a child of the process, and no process has the pid. */
static bool begin(model_t *model, member_t *member, bool was_live, pid_t pid)
{
    bool is_live = was_live;
    if (was_live && pid > 0 && !holders_is_process(&member->segment, pid)) {
        is_live = rmm__segment_is_live(&member->segment);
        if (is_live) {
            return false;
        }
        (void)member_stop_watching(model, member);
    }
    event_poll_start(model, member);
    if (!is_live) {
        end_unseen(model, member);
    }
    return true;
}

static admission_t take_good(model_t *model, member_t *member, entry_t *entry)
{
    char name[32];
    pid_t pid;
    bool is_live;
    const totalled_t *totalled =
        model_totalled(model, member->segment.name, member->segment.uid);
    if (totalled != NULL) {
        take_totalled(model, member, entry, totalled);
        return ADMISSION_TAKEN;
    }
    if (!charge(model, member)) {
        model_free_member(model, member);
        return ADMISSION_GONE; /* a later listing finds it again */
    }
    if (!find_pid(model, member, entry, &is_live, &pid)) {
        model_free_member(model, member);
        return ADMISSION_LATER;
    }
    name_process(name, sizeof(name), member->segment.name, pid);
    member->state = MEMBER_LIVE;
    if (take(model, member, entry, name, pid) && !begin(model, member, is_live, pid)) {
        model_remove_member(model, member);
        return ADMISSION_LATER;
    }
    return ADMISSION_TAKEN;
}

/* --- all ------------------------------------------------------------------------------ */

/* Another name of a segment that is shown or counted already: this name shows nothing. */
static admission_t
refuse_name(model_t *model, entry_t *entry, member_t *member, const char *reason)
{
    tell_refused(model, entry, reason);
    model_free_member(model, member);
    return ADMISSION_REFUSED;
}

/* Its file was renamed away and has its name again. */
static bool
has_returned(const member_t *member, const entry_t *entry, const rmm_segment_t *segment)
{
    return member->entry == NULL && member->dir == entry->dir &&
           strcmp(member->segment.name, entry->name) == 0 &&
           member->segment.device == segment->device &&
           member->segment.inode == segment->inode;
}

static admission_t admit_good(model_t *model, entry_t *entry, member_t *member)
{
    char reason[RMM_SEGMENT_REASON_BYTES];
    shortage_t shortage = shortage_find(model, entry, member);
    shortage_note(model, entry, shortage);
    if (shortage != SHORT_OF_NOTHING) {
        if (rmm__segment_is_live(&member->segment)) {
            (void)make_room(model, -1);
        }
        rmm__segment_close(&member->segment);
        free(member);
        return ADMISSION_LATER;
    }
    if (entry->member != NULL) {
        admission_t admission = take_again(entry->member, &member->segment);
        free(member);
        return admission;
    }
    if (member->segment.uid != entry->owner) { /* charged to its owner, or not ours */
        return refuse_name(model, entry, member, "another user's file took its name");
    }
    member_t *known = identity_member(model, &member->segment);
    if (known != NULL && has_returned(known, entry, &member->segment)) {
        bind_name(known, entry);
        model_free_member(model, member);
        return ADMISSION_TAKEN;
    }
    if (model_totalled(model, entry->name, member->segment.uid) == NULL &&
        identity_is_counted(model, &member->segment, known, reason)) {
        return refuse_name(model, entry, member, reason);
    }
    return take_good(model, member, entry);
}

admission_t members_admit(model_t *model, entry_t *entry)
{
    char reason[RMM_SEGMENT_REASON_BYTES] = "";
    member_t *member = calloc(1, sizeof(*member));
    if (member == NULL) {
        return ADMISSION_LATER;
    }
    member->dir = entry->dir;
    member->pidfd = -1;
    member->locations_opened = UINT32_MAX; /* not looked at */
    switch (rmm__segment_open(&member->segment, entry->dir->fd, entry->name, reason)) {
    case RMM_SEGMENT_GOOD:
        return admit_good(model, entry, member);
    case RMM_SEGMENT_NOT_READY:
        if (model_clock_ns() - entry->found_ns >= MAKING_NS) {
            return refuse(
                model, entry, member, "the process did not finish writing it");
        }
        free(member);
        return ADMISSION_LATER;
    case RMM_SEGMENT_REFUSED:
        return refuse(model, entry, member, reason);
    case RMM_SEGMENT_UNOPENED:
        return put_off(model, entry, member);
    case RMM_SEGMENT_GONE:
        break;
    }
    free(member);
    return ADMISSION_GONE;
}
