/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a member; see members.h.
 */
#include "members.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "event_poll.h"
#include "exits.h"
#include "holders.h"
#include "locations.h"
#include "log.h"
#include "marks.h"
#include "segment/open_in.h"
#include "segment/process_check.h"
#include "segment/segment_shrink.h"
#include "shortage.h"

#define MAKING_NS                                                                      \
    (5ull * 1000000000u) /* a segment "being made" for longer is refused */
#define CHECKED_AT_ONCE                                                                \
    (EXITS_AT_ONCE > MEMBERS_AT_ONCE ? EXITS_AT_ONCE : MEMBERS_AT_ONCE)
#define EXPIRED_AT_ONCE 8u /* each closes files, the last of a removed one: 15 us */

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
 * The pid of one that ended before we could look: the pid that it saw itself, if that was
 * ours too: it is a zombie still, of the same user, or no process has it now, here or in
 * the model.
 */
static pid_t find_ended_pid(const model_t *model, const rmm_segment_t *segment)
{
    char name[32];
    pid_t own = (pid_t)segment->header.pid;
    if (own <= 0) {
        return 0;
    }
    if (rmm__process_exists(own)) {
        return rmm__process_is(own, segment->uid, segment->header.start_time_ticks)
                   ? own
                   : 0;
    }
    name_process(name, sizeof(name), segment->name, own);
    return model_process_named(model, name) == NULL ? own : 0;
}

/* An exited process may still stand where another with its pid now starts. */
static void make_way(model_t *model, const char *name, const member_t *newcomer)
{
    process_t *process = model_process_named(model, name);
    if (process == NULL || process_is_live(process)) {
        return;
    }
    const member_t *old = process_speaker(process);
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

/* --- meeting -------------------------------------------------------------------------- */

static void open_control(member_t *member)
{
    if (!member->has_control && member->dir != NULL) {
        member->has_control =
            rmm_control_open(&member->control, member->dir->fd, &member->segment) == 0;
        if (member->has_control) {
            rmm_control_forget(&member->control);
        }
    }
}

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
    open_control(member);
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
    (void)locations_find(model, member);
    log_debug(
        "segment %s belongs to process %s", member->segment.name,
        member->process->name);
    return true;
}

/* Its totals are counted; it may still be shown. */
static void
take_folded(model_t *model, member_t *member, entry_t *entry, const folded_t *folded)
{
    uint64_t now = model_clock_ns();
    bool recent = folded->exited_ns <= now && now - folded->exited_ns < EXITED_SHOWN_NS;
    if (!recent || model_process_named(model, folded->process) != NULL) {
        model_free_member(model, member);
        return;
    }
    member->state = MEMBER_EXITED;
    member->exited_ns = folded->exited_ns;
    (void)take(model, member, entry, folded->process, 0);
}

/* --- ended and made small ------------------------------------------------------------- */

/* The control page, with its requests for resets, is gone: they are done in the small file. */
static void take_small(member_t *member, rmm_segment_t *segment)
{
    if (member->has_control) {
        rmm_control_close(&member->control);
        member->has_control = false;
    }
    member->is_settled = true;
    rmm_segment_close(&member->segment);
    member->segment = *segment;
}

/* The file that has the name now: the space of the old one is free with its descriptor. */
static void follow_small(member_t *member)
{
    char reason[RMM_SEGMENT_REASON_BYTES];
    rmm_segment_t segment;
    if (member->dir == NULL ||
        rmm_segment_open(&segment, member->dir->fd, member->segment.name, reason) !=
            RMM_SEGMENT_GOOD) {
        return;
    }
    if (segment.inode == member->segment.inode) {
        rmm_segment_close(&segment);
        return;
    }
    take_small(member, &segment);
}

/* A name that is known has another file. While its process still ends, its last figures are
 * in the old one: later. */
static meeting_t take_again(member_t *member, rmm_segment_t *segment)
{
    if (member->state == MEMBER_EXITED) {
        take_small(member, segment);
        return MEETING_TAKEN;
    }
    bool is_same = segment->inode == member->segment.inode;
    rmm_segment_close(segment);
    return is_same ? MEETING_TAKEN : MEETING_LATER;
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
static meeting_t take_refused(
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
        rmm_segment_is_live(&member->segment)
            ? holders_find_owner(model->holders, &member->segment, entry->met_ns, &pid)
            : HOLDER_UNKNOWN;
    if (answer == HOLDER_LATER) {
        model_free_member(model, member);
        return MEETING_LATER;
    }
    if (answer == HOLDER_FOUND) {
        name_process(name, sizeof(name), member->segment.name, pid);
    }
    if (answer != HOLDER_FOUND || !join(model, member, name, pid)) {
        model_free_member(model, member);
        return MEETING_REFUSED;
    }
    bind_name(member, entry);
    return MEETING_TAKEN;
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
static meeting_t put_off(model_t *model, entry_t *entry, member_t *member)
{
    free(member);
    shortage_note(model, entry, SHORT_OF_DESCRIPTORS);
    return MEETING_LATER;
}

static meeting_t
refuse(model_t *model, entry_t *entry, member_t *member, const char *reason)
{
    struct stat status;
    int fd = open_refused(entry->dir, entry->name, &status);
    if (fd < 0 && rmm__is_out_of_descriptors(errno)) {
        return put_off(model, entry, member);
    }
    shortage_note(model, entry, SHORT_OF_NOTHING);
    meeting_t meeting = MEETING_REFUSED;
    if (fd < 0) {
        free(member);
    } else {
        meeting = take_refused(model, member, entry, fd, &status);
    }
    if (meeting != MEETING_LATER) {
        tell_refused(model, entry, reason);
    }
    return meeting;
}

/* --- ending --------------------------------------------------------------------------- */

static void become_unreadable(model_t *model, member_t *member)
{
    member->state = MEMBER_UNREADABLE;
    model->changes++;
    model->segments_rejected++;
    event_poll_refusal(
        model, member->segment.uid, member->process->name,
        "the file was truncated while in use");
    log_warn(
        "segment %s of process %s is ignored: the file was truncated while in use",
        member->segment.name, member->process->name);
}

static void end(model_t *model, member_t *member)
{
    member->state = MEMBER_EXITED;
    member->exited_ns = model_clock_ns();
    model->changes++;
    identity_note_ended(&model->ended, &member->segment);
    folded_t folded = {.uid = member->segment.uid, .exited_ns = member->exited_ns};
    (void)snprintf(folded.name, sizeof(folded.name), "%s", member->segment.name);
    (void)snprintf(folded.process, sizeof(folded.process), "%s", member->process->name);
    if (!model_add_folded(model, &folded)) {
        log_warn(
            "out of memory: rmmfs may count segment %s twice after a restart",
            member->segment.name);
    }
    log_debug(
        "process %s: segment %s has ended", member->process->name,
        member->segment.name);
}

static void fold(model_t *model, member_t *member)
{
    if (!member->has_control) {
        follow_small(member); /* it was gone with the old file when we looked for it */
    }
    (void)locations_find(model, member); /* its last */
    marks_fold(model, member);
    end(model, member);
    event_poll_exit(model, member);
    if (member->dir != NULL) {
        (void)rmm__segment_shrink(member->dir->fd, member->segment.name);
        follow_small(member);
    }
}

/* False: it is not watched (any more). */
static bool stop_watching(model_t *model, member_t *member)
{
    if (member == NULL || member->pidfd < 0) {
        return false;
    }
    exits_forget(model->exits, member->pidfd);
    member->pidfd = -1;
    return true;
}

/* It ended before this daemon saw it. */
static void end_unseen(model_t *model, member_t *member)
{
    if (model->counts_ended) {
        fold(model, member);
        model->is_unsaved = true;
    } else {
        end(model, member);
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
    *is_live = rmm_segment_is_live(&member->segment);
    if (*is_live) {
        answer = holders_find(model->holders, &member->segment, entry->met_ns, pid);
    }
    if (answer == HOLDER_SHORT) {
        shortage_note(model, entry, SHORT_OF_DESCRIPTORS);
        return false;
    }
    if (answer == HOLDER_LATER) {
        *is_live = rmm_segment_is_live(&member->segment); /* it may have ended since */
        if (*is_live) {
            return false;
        }
    }
    if (!*is_live) {
        *pid = find_ended_pid(model, &member->segment);
    }
    return true;
}

/* A process may end before it is watched; then a reader who knows that it has ended must find its
 * figures. False: the lock is still held, by a child of the process, and no process has the pid. */
static bool begin(model_t *model, member_t *member, bool was_live, pid_t pid)
{
    bool is_live = was_live;
    if (was_live && pid > 0 && !holders_is_process(&member->segment, pid)) {
        is_live = rmm_segment_is_live(&member->segment);
        if (is_live) {
            return false;
        }
        (void)stop_watching(model, member);
    }
    event_poll_start(model, member);
    if (!is_live) {
        end_unseen(model, member);
    }
    return true;
}

static meeting_t take_good(model_t *model, member_t *member, entry_t *entry)
{
    char name[32];
    pid_t pid;
    bool is_live;
    const folded_t *folded =
        model_folded(model, member->segment.name, member->segment.uid);
    if (folded != NULL) {
        take_folded(model, member, entry, folded);
        return MEETING_TAKEN;
    }
    if (!charge(model, member)) {
        model_free_member(model, member);
        return MEETING_GONE; /* a later listing finds it again */
    }
    if (!find_pid(model, member, entry, &is_live, &pid)) {
        model_free_member(model, member);
        return MEETING_LATER;
    }
    name_process(name, sizeof(name), member->segment.name, pid);
    member->state = MEMBER_LIVE;
    if (take(model, member, entry, name, pid) && !begin(model, member, is_live, pid)) {
        model_remove_member(model, member);
        return MEETING_LATER;
    }
    return MEETING_TAKEN;
}

/* --- meeting: all --------------------------------------------------------------------- */

/* Of a segment that is shown or counted already: nothing is to be shown of this name. */
static meeting_t
refuse_name(model_t *model, entry_t *entry, member_t *member, const char *reason)
{
    tell_refused(model, entry, reason);
    model_free_member(model, member);
    return MEETING_REFUSED;
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

static meeting_t meet_good(model_t *model, entry_t *entry, member_t *member)
{
    char reason[RMM_SEGMENT_REASON_BYTES];
    shortage_t shortage = shortage_find(model, entry, member);
    shortage_note(model, entry, shortage);
    if (shortage != SHORT_OF_NOTHING) {
        if (rmm_segment_is_live(&member->segment)) {
            (void)make_room(model, -1);
        }
        rmm_segment_close(&member->segment);
        free(member);
        return MEETING_LATER;
    }
    if (entry->member != NULL) {
        meeting_t meeting = take_again(entry->member, &member->segment);
        free(member);
        return meeting;
    }
    if (member->segment.uid != entry->owner) { /* charged to its owner, or not ours */
        return refuse_name(model, entry, member, "another user's file took its name");
    }
    member_t *known = identity_member(model, &member->segment);
    if (known != NULL && has_returned(known, entry, &member->segment)) {
        bind_name(known, entry);
        model_free_member(model, member);
        return MEETING_TAKEN;
    }
    if (model_folded(model, entry->name, member->segment.uid) == NULL &&
        identity_is_counted(model, &member->segment, known, reason)) {
        return refuse_name(model, entry, member, reason);
    }
    return take_good(model, member, entry);
}

meeting_t members_meet(model_t *model, entry_t *entry)
{
    char reason[RMM_SEGMENT_REASON_BYTES] = "";
    member_t *member = calloc(1, sizeof(*member));
    if (member == NULL) {
        return MEETING_LATER;
    }
    member->dir = entry->dir;
    member->pidfd = -1;
    member->locations_opened = UINT32_MAX; /* not looked at */
    switch (rmm_segment_open(&member->segment, entry->dir->fd, entry->name, reason)) {
    case RMM_SEGMENT_GOOD:
        return meet_good(model, entry, member);
    case RMM_SEGMENT_NOT_READY:
        if (model_clock_ns() - entry->met_ns >= MAKING_NS) {
            return refuse(
                model, entry, member, "the process did not finish writing it");
        }
        free(member);
        return MEETING_LATER;
    case RMM_SEGMENT_REFUSED:
        return refuse(model, entry, member, reason);
    case RMM_SEGMENT_UNOPENED:
        return put_off(model, entry, member);
    case RMM_SEGMENT_GONE:
        break;
    }
    free(member);
    return MEETING_GONE;
}

/* --- living --------------------------------------------------------------------------- */

static bool is_beginner(const member_t *member)
{
    for (uint32_t i = 0; i < member->location_count; i++) {
        if (member->locations[i].device != DEVICE_HOST) {
            return false;
        }
    }
    return member->state == MEMBER_LIVE;
}

/* What a live one has opened since. */
static void look_at_live(model_t *model, member_t *member)
{
    if (member->state == MEMBER_LIVE) {
        open_control(member);
        if (!locations_find(model, member)) {
            become_unreadable(model, member);
        }
    }
}

/* Those of a list that are over; `over` has room for all. */
static uint32_t
look_at_all(model_t *model, member_t **members, uint32_t count, member_t **over)
{
    uint32_t over_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (members[i]->state == MEMBER_EXITED) {
            continue;
        }
        if (rmm_segment_is_live(&members[i]->segment)) {
            look_at_live(model, members[i]);
        } else {
            over[over_count++] = members[i];
        }
    }
    return over_count;
}

/* The sums of those that ran together, some of which have ended. Each may have opened a
 * location since it was looked at. */
static void note_sums(model_t *model)
{
    for (uint32_t i = 0; i < model->member_count; i++) {
        if (model->members[i]->state == MEMBER_LIVE) {
            (void)locations_find(model, model->members[i]);
        }
    }
    marks_note_upper(model);
}

static void leave(model_t *model, member_t **over, uint32_t count)
{
    if (count > 0) {
        note_sums(model);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (over[i]->state == MEMBER_LIVE) {
            /* without its file a daemon that is killed would not find it again */
            model->is_urgent = model->is_urgent || over[i]->entry == NULL;
            fold(model, over[i]);
            model->is_unsaved = true;
        } else {
            model_remove_member(model, over[i]);
        }
    }
}

/* At most CHECKED_AT_ONCE. */
static void check(model_t *model, member_t **members, uint32_t count)
{
    member_t *over[CHECKED_AT_ONCE];
    uint32_t gpus_before = model->gpu_count;
    leave(model, over, look_at_all(model, members, count, over));
    if (model->gpu_count != gpus_before) { /* their order is in no segment */
        model->is_unsaved = model->is_urgent = true;
    }
}

/* The newest first: what has just begun opens its first GPU soon. */
static void check_beginners(model_t *model)
{
    member_t *some[MEMBERS_AT_ONCE];
    uint32_t count = 0;
    for (uint32_t i = model->member_count; i > 0 && count < MEMBERS_AT_ONCE; i--) {
        if (is_beginner(model->members[i - 1])) {
            some[count++] = model->members[i - 1];
        }
    }
    check(model, some, count);
}

void members_check_some(model_t *model)
{
    member_t *some[MEMBERS_AT_ONCE];
    uint32_t count = 0;
    check_beginners(model);
    for (; count < MEMBERS_AT_ONCE && count < model->member_count; count++) {
        model->next_checked = (model->next_checked + 1) % model->member_count;
        some[count] = model->members[model->next_checked];
    }
    check(model, some, count);
}

bool members_note_beginners(model_t *model)
{
    uint32_t count = 0;
    for (uint32_t i = model->member_count; i > 0 && count < MEMBERS_AT_ONCE; i--) {
        if (is_beginner(model->members[i - 1])) {
            model->beginners[count++] = model->members[i - 1]->serial;
        }
    }
    model->beginner_count = count;
    return count > 0;
}

bool members_beginner_has_begun(const model_t *model)
{
    for (uint32_t i = 0; i < model->beginner_count; i++) {
        const member_t *member = model_member(model, (uint32_t)model->beginners[i]);
        uint32_t opened;
        if (member != NULL && member->state == MEMBER_LIVE &&
            (!rmm_segment_locations_opened(&member->segment, &opened) ||
             opened != member->locations_opened)) {
            return true;
        }
    }
    return false;
}

/* --- ended processes ------------------------------------------------------------------ */

void members_take_exits(model_t *model, members_again_fn again, void *arg)
{
    uint64_t serials[EXITS_AT_ONCE];
    member_t *ended[EXITS_AT_ONCE];
    uint32_t ended_count = 0;
    int count = exits_take(model->exits, serials);
    for (int i = 0; i < count; i++) {
        member_t *member = model_member(model, (uint32_t)serials[i]);
        if (stop_watching(model, member)) {
            serials[ended_count] = serials[i];
            ended[ended_count++] = member;
        }
    }
    check(model, ended, ended_count);
    for (uint32_t i = 0; i < ended_count; i++) {
        const member_t *member = model_member(model, (uint32_t)serials[i]);
        if (member != NULL && member->entry != NULL && member->state == MEMBER_LIVE) {
            again(arg, member->entry); /* a child has the lock */
        }
    }
}

/* --- leaving -------------------------------------------------------------------------- */

bool members_expire(model_t *model)
{
    uint64_t now = model_clock_ns();
    uint32_t removed = 0;
    for (uint32_t i = model->member_count; i > 0; i--) {
        member_t *member = model->members[i - 1];
        if (member->state != MEMBER_EXITED || process_is_live(member->process) ||
            now - member->exited_ns < EXITED_SHOWN_NS) {
            continue;
        }
        if (removed++ == EXPIRED_AT_ONCE) {
            return true;
        }
        model_remove_member(model, member);
    }
    return false;
}
