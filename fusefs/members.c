/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a member; see members.h.
 */
#include "members.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpus.h"
#include "log.h"
#include "marks.h"
#include "segment/segment_shrink.h"

#define MAKING_NS                                                                      \
    (5ull * 1000000000u) /* a segment "being made" for longer is refused */

/* --- names ---------------------------------------------------------------------------- */

/* "4711"; nobody can tell the pid: "1000.0123456789abcdef" is "seg-0123456789abcdef". */
static void name_process(char *name, size_t bytes, const char *segment, pid_t pid)
{
    const char *dot = strchr(segment, '.');
    if (pid > 0) {
        (void)snprintf(name, bytes, "%d", (int)pid);
    } else {
        (void)snprintf(name, bytes, "seg-%.16s", dot != NULL ? dot + 1 : segment);
    }
}

/* Field 22 of /proc/<pid>/stat, which tells a process from a later one of its pid. False:
 * nobody has that pid. */
static bool read_start_time(pid_t pid, uint64_t *ticks_out)
{
    char path[32], line[1024];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    size_t got = file == NULL ? 0 : fread(line, 1, sizeof(line) - 1, file);
    if (file != NULL) {
        (void)fclose(file);
    }
    line[got] = '\0';
    const char *rest = strrchr(line, ')'); /* the name before it may hold anything */
    for (int field = 2; rest != NULL && field < 22; field++) {
        rest = strchr(rest + 1, ' ');
    }
    return rest != NULL && sscanf(rest, " %" SCNu64, ticks_out) == 1;
}

/* The owner of a process's folder is its effective user, whatever else it hides. */
static bool is_process_of(pid_t pid, uid_t uid)
{
    char path[32];
    struct stat status;
    (void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return stat(path, &status) == 0 && status.st_uid == uid;
}

/*
 * The pid of who holds the segment. Of one that ended before we could look, the pid that
 * it saw itself, if that was ours too: it is a zombie still, of the same user, or nobody
 * has it now, here or in the model.
 */
static pid_t find_pid(const model_t *model, const rmm_segment_t *segment)
{
    char name[32];
    uint64_t ticks;
    pid_t pid = rmm_segment_is_live(segment) ? rmm_segment_pid(segment) : 0;
    pid_t own = (pid_t)segment->header.pid;
    if (pid > 0 || rmm_segment_is_live(segment) || own <= 0) {
        return pid;
    }
    if (read_start_time(own, &ticks)) {
        return ticks == segment->header.start_time_ticks &&
                       is_process_of(own, segment->uid)
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

/* --- locations --------------------------------------------------------------------------- */

static bool knows_place(const member_t *member, uint32_t location)
{
    for (uint32_t i = 0; i < member->location_count; i++) {
        if (member->locations[i].location == location) {
            return true;
        }
    }
    return false;
}

static uint32_t
device_of_place(model_t *model, uint32_t location, const rmm_record_t *record)
{
    if (location == RMM_SEGMENT_HOST_LOCATION) {
        return DEVICE_HOST;
    }
    const rmm_segment_location_t *told = rmm_record_location(record);
    const gpu_identity_t identity = {
        told->uuid, told->pci_bus_id, told->name, told->capacity_bytes};
    return gpus_number(model, &identity);
}

static void add_place(model_t *model, member_t *member, uint32_t location)
{
    rmm_record_t record;
    if (!rmm_segment_read_location(&member->segment, location, &record)) {
        return;
    }
    uint32_t device = device_of_place(model, location, &record);
    member->locations[member->location_count].location = location;
    member->locations[member->location_count].device = device;
    member->location_count++;
    if (device == DEVICE_NONE) {
        log_warn(
            "segment %s: its device %u has no uuid", member->segment.name, location);
    }
}

/* Programs open locations as they go: one pread finds the new ones. False: it was cut. */
static bool find_places(model_t *model, member_t *member)
{
    static unsigned char table[RMM_SEGMENT_LOCATIONS * RMM_SEGMENT_RECORD_BYTES];
    const rmm_segment_header_t *header = &member->segment.header;
    uint32_t count = rmm_segment_location_count(&member->segment);
    count = count < RMM_SEGMENT_LOCATIONS ? count : RMM_SEGMENT_LOCATIONS;
    size_t bytes = (size_t)count * header->locations_stride;
    if (pread(member->segment.fd, table, bytes, header->locations_offset) !=
        (ssize_t)bytes) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t used;
        memcpy(
            &used,
            table + (size_t)i * header->locations_stride +
                offsetof(rmm_segment_location_t, used),
            sizeof(used));
        if (used != 0 && !knows_place(member, i)) {
            add_place(model, member, i);
        }
    }
    return true;
}

/* --- meeting -------------------------------------------------------------------------- */

static void drop_member(member_t *member)
{
    if (member->has_control) {
        rmm_control_close(&member->control);
    }
    rmm_segment_close(&member->segment);
    free(member);
}

static void open_control(member_t *member)
{
    if (!member->has_control && member->dir != NULL) {
        member->has_control =
            rmm_control_open(&member->control, member->dir->fd, &member->segment) == 0;
    }
}

/* A directory is one user's, who reads its logs: a segment of another's that has, or
 * pretends to have, the same pid gets its own. */
static bool join(model_t *model, member_t *member, const char *name, pid_t pid)
{
    const process_t *process = model_process_named(model, name);
    char own_name[32];
    if (process != NULL && process->uid != member->segment.uid) {
        name_process(own_name, sizeof(own_name), member->segment.name, 0);
        return model_process_named(model, own_name) == NULL &&
               model_add_member(model, member, own_name, 0);
    }
    return model_add_member(model, member, name, pid);
}

static void take(model_t *model, member_t *member, const char *name, pid_t pid)
{
    struct stat status;
    bool known = fstat(member->segment.fd, &status) == 0;
    member->gid = known ? status.st_gid : 0;
    open_control(member);
    member->is_settled =
        known && !member->has_control && rmm__segment_is_marked(&status);
    make_way(model, name, member);
    if (!join(model, member, name, pid)) {
        log_warn(
            "segment %s is not shown: out of memory, or process %s belongs to another "
            "user",
            member->segment.name, name);
        drop_member(member);
        return;
    }
    (void)find_places(model, member);
    log_debug(
        "segment %s belongs to process %s", member->segment.name,
        member->process->name);
}

/* Its totals are counted; it may still be shown. */
static void take_folded(model_t *model, member_t *member, folded_t *folded)
{
    uint64_t now = model_clock_ns();
    bool recent = folded->exited_ns <= now && now - folded->exited_ns < EXITED_SHOWN_NS;
    folded->present = true;
    if (!recent || model_process_named(model, folded->process) != NULL) {
        drop_member(member);
        return;
    }
    member->state = MEMBER_EXITED;
    member->exited_ns = folded->exited_ns;
    take(model, member, folded->process, 0);
}

static void take_good(model_t *model, member_t *member)
{
    char name[32];
    folded_t *folded = model_folded(model, member->segment.name);
    if (folded != NULL) {
        take_folded(model, member, folded);
        return;
    }
    pid_t pid = find_pid(model, &member->segment);
    name_process(name, sizeof(name), member->segment.name, pid);
    member->state = MEMBER_LIVE; /* the next refresh finds out if it is not */
    take(model, member, name, pid);
}

/* --- ended and made small ------------------------------------------------------------- */

static member_t *find_member(const model_t *model, const char *segment)
{
    for (uint32_t i = 0; i < model->process_count; i++) {
        const process_t *process = model->processes[i];
        for (uint32_t j = 0; j < process->member_count; j++) {
            if (strcmp(process->members[j]->segment.name, segment) == 0) {
                return process->members[j];
            }
        }
    }
    return NULL;
}

/* What asked for resets is gone with the control page: they are done in the small file. */
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
static void take_again(member_t *member, rmm_segment_t *segment, entry_t *entry)
{
    if (member->state == MEMBER_EXITED) {
        take_small(member, segment);
        return;
    }
    rmm_segment_close(segment);
    entry->kind = ENTRY_PENDING;
}

/* --- refusing ------------------------------------------------------------------------- */

/* Only what can be locked and read without waiting: never a FIFO or a device. */
static int open_refused(const segment_dir_t *dir, const char *name, struct stat *status)
{
    int fd = openat(dir->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, status) != 0 || !S_ISREG(status->st_mode))) {
        (void)close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

/* Shown as unreadable if somebody holds it. */
static void
take_refused(model_t *model, member_t *member, int fd, const struct stat *status)
{
    char name[32];
    member->segment.fd = fd;
    member->segment.uid = status->st_uid;
    member->segment.device = status->st_dev;
    member->segment.inode = status->st_ino;
    member->gid = status->st_gid;
    member->state = MEMBER_UNREADABLE;
    pid_t pid = rmm_segment_pid(&member->segment);
    name_process(name, sizeof(name), member->segment.name, pid);
    if (pid <= 0 || !join(model, member, name, pid)) {
        drop_member(member);
    }
}

static void refuse(
    model_t *model, segment_dir_t *dir, entry_t *entry, member_t *member,
    const char *reason)
{
    struct stat status;
    int fd = open_refused(dir, entry->name, &status);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
        free(member); /* our own trouble, not the segment's */
        entry->kind = ENTRY_PENDING;
        return;
    }
    model->segments_rejected++;
    entry->kind = ENTRY_REFUSED;
    log_warn("segment %s/%s refused: %s", dir->path, entry->name, reason);
    if (fd < 0) {
        free(member);
        return;
    }
    (void)snprintf(
        member->segment.name, sizeof(member->segment.name), "%s", entry->name);
    take_refused(model, member, fd, &status);
}

void members_meet(model_t *model, segment_dir_t *dir, entry_t *entry)
{
    char reason[RMM_SEGMENT_REASON_BYTES] = "";
    member_t *member = calloc(1, sizeof(*member));
    member_t *known;
    entry->kind = ENTRY_PENDING;
    if (member == NULL) {
        return;
    }
    member->dir = dir;
    switch (rmm_segment_open(&member->segment, dir->fd, entry->name, reason)) {
    case RMM_SEGMENT_GOOD:
        entry->kind = ENTRY_TAKEN;
        known = find_member(model, entry->name);
        if (known != NULL) {
            take_again(known, &member->segment, entry);
            break;
        }
        take_good(model, member);
        return;
    case RMM_SEGMENT_NOT_READY:
        if (model_clock_ns() - entry->met_ns < MAKING_NS) {
            break;
        }
        refuse(model, dir, entry, member, "the process did not finish writing it");
        return;
    case RMM_SEGMENT_REFUSED:
        refuse(model, dir, entry, member, reason);
        return;
    case RMM_SEGMENT_GONE:
        break;
    }
    free(member);
}

/* --- living --------------------------------------------------------------------------- */

static void become_unreadable(model_t *model, member_t *member)
{
    member->state = MEMBER_UNREADABLE;
    model->segments_rejected++;
    log_warn(
        "segment %s of process %s is ignored: the file was truncated while in use",
        member->segment.name, member->process->name);
}

/* True: it is over. */
static bool refresh_member(model_t *model, member_t *member)
{
    if (member->state == MEMBER_EXITED) {
        return false;
    }
    if (!rmm_segment_is_live(&member->segment)) {
        return true;
    }
    if (member->state == MEMBER_LIVE) {
        model->member_count++;
        open_control(member);
        if (!find_places(model, member)) {
            become_unreadable(model, member);
        }
    }
    return false;
}

static void end(model_t *model, member_t *member)
{
    member->state = MEMBER_EXITED;
    member->exited_ns = model_clock_ns();
    if (!model_add_folded(
            model, member->segment.name, member->process->name, member->exited_ns)) {
        log_warn(
            "out of memory: after a restart rmmfs would count segment %s twice",
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
    (void)find_places(model, member); /* its last */
    marks_fold(model, member);
    end(model, member);
    if (member->dir != NULL) {
        (void)rmm__segment_shrink(member->dir->fd, member->segment.name);
        follow_small(member);
    }
}

void members_disown_dead(model_t *model)
{
    for (uint32_t i = 0; i < model->process_count; i++) {
        process_t *process = model->processes[i];
        for (uint32_t j = 0; j < process->member_count; j++) {
            member_t *member = process->members[j];
            if (member->state == MEMBER_LIVE &&
                !rmm_segment_is_live(&member->segment)) {
                end(model, member);
            }
        }
    }
}

typedef struct over {
    member_t **items;
    size_t count, capacity;
} over_t;

static void note_over(over_t *over, member_t *member)
{
    if (over->count == over->capacity) {
        size_t capacity = over->capacity == 0 ? 16 : over->capacity * 2;
        member_t **grown = realloc(over->items, capacity * sizeof(member_t *));
        if (grown == NULL) {
            return; /* the next refresh sees it again */
        }
        over->items = grown;
        over->capacity = capacity;
    }
    over->items[over->count++] = member;
}

bool members_refresh(model_t *model)
{
    over_t over = {0};
    uint32_t gpus_before = model->gpu_count;
    model->member_count = 0;
    for (uint32_t i = 0; i < model->process_count; i++) {
        process_t *process = model->processes[i];
        for (uint32_t j = 0; j < process->member_count; j++) {
            if (refresh_member(model, process->members[j])) {
                note_over(&over, process->members[j]);
            }
        }
    }
    if (over.count > 0) {
        marks_note_upper(model);
    }
    bool folded = false;
    for (size_t i = 0; i < over.count; i++) {
        if (over.items[i]->state == MEMBER_LIVE) {
            fold(model, over.items[i]);
            folded = true;
        } else {
            model_remove_member(model, over.items[i]);
        }
    }
    free(over.items);
    return folded || model->gpu_count != gpus_before;
}

static bool is_beginner(const member_t *member)
{
    for (uint32_t i = 0; i < member->location_count; i++) {
        if (member->locations[i].device != DEVICE_HOST) {
            return false;
        }
    }
    return member->state == MEMBER_LIVE;
}

bool members_have_beginners(const model_t *model)
{
    for (uint32_t i = 0; i < model->process_count; i++) {
        const process_t *process = model->processes[i];
        for (uint32_t j = 0; j < process->member_count; j++) {
            if (is_beginner(process->members[j])) {
                return true;
            }
        }
    }
    return false;
}

/* --- leaving -------------------------------------------------------------------------- */

static member_t *find_expired(const model_t *model, uint64_t now)
{
    for (uint32_t i = 0; i < model->process_count; i++) {
        const process_t *process = model->processes[i];
        for (uint32_t j = 0; j < process->member_count; j++) {
            member_t *member = process->members[j];
            if (member->state == MEMBER_EXITED && !process_is_live(process) &&
                now - member->exited_ns >= EXITED_SHOWN_NS) {
                return member;
            }
        }
    }
    return NULL;
}

void members_expire(model_t *model)
{
    uint64_t now = model_clock_ns();
    member_t *member;
    while ((member = find_expired(model, now)) != NULL) {
        model_remove_member(model, member);
    }
}
