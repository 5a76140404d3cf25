/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps through the names in directories; see scan.h. A step is one name, or a piece of a
 * listing: some 10 to 100 us.
 */
#include "programs/scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "programs/admission.h"
#include "programs/refused.h"
#include "programs/sharing_out.h"
#include "programs/shortage.h"
#include "segment/open_in.h"
#include "support/daemon_log.h"

#define LISTING_NAMES 64u  /* of a step */
#define LISTING_AHEAD 128u /* names that wait to be looked at while more are listed */
#define MS 1000000ull

/* --- lists ---------------------------------------------------------------------------- */

/* NULL: nothing of this owner waits. */
static scan_owner_t *find_owner(const scan_t *scan, uid_t uid)
{
    scan_owner_t *owner;
    TAILQ_FOREACH(owner, &scan->owners, link)
    {
        if (owner->uid == uid) {
            return owner;
        }
    }
    return NULL;
}

/* NULL: no memory. */
static scan_owner_t *owner_for(scan_t *scan, uid_t uid)
{
    scan_owner_t *owner = find_owner(scan, uid);
    if (owner != NULL) {
        return owner;
    }
    owner = calloc(1, sizeof(*owner));
    if (owner != NULL) {
        owner->uid = uid;
        TAILQ_INIT(&owner->names);
        TAILQ_INSERT_TAIL(&scan->owners, owner, link);
    }
    return owner;
}

static void leave_owner(scan_t *scan, entry_t *entry)
{
    scan_owner_t *owner = find_owner(scan, entry->owner);
    TAILQ_REMOVE(&owner->names, entry, link);
    if (TAILQ_EMPTY(&owner->names)) {
        TAILQ_REMOVE(&scan->owners, owner, link);
        free(owner);
    }
}

static uint32_t wait_level(const entry_t *entry)
{
    uint32_t level = entry->tries - 1;
    return level < SCAN_WAIT_LEVELS ? level : SCAN_WAIT_LEVELS - 1;
}

/* Out of the list that its kind says. */
static void take_out(scan_t *scan, entry_t *entry)
{
    switch (entry->kind) {
    case ENTRY_NEW:
        TAILQ_REMOVE(&scan->arrivals, entry, link);
        entry->dir->arrival_count--;
        break;
    case ENTRY_QUEUED:
        leave_owner(scan, entry);
        break;
    case ENTRY_WAITING:
        TAILQ_REMOVE(&scan->waiting[wait_level(entry)], entry, link);
        break;
    case ENTRY_REFUSED:
        TAILQ_REMOVE(&scan->refused, entry, link);
        scan->refused_count--;
        break;
    case ENTRY_TAKEN:
        break;
    }
}

/* False: its owner has too many names. */
static bool charge(scan_t *scan, entry_t *entry)
{
    entry->is_charged =
        budget_take(&scan->model->budget, entry->owner, BUDGET_NAMES, 1);
    return entry->is_charged;
}

static void uncharge(scan_t *scan, entry_t *entry)
{
    if (entry->is_charged) {
        budget_give(&scan->model->budget, entry->owner, BUDGET_NAMES, 1);
        entry->is_charged = false;
    }
}

/* The name is not there (any more), or is not worth to be remembered. */
static void forget(scan_t *scan, entry_t *entry)
{
    take_out(scan, entry);
    uncharge(scan, entry);
    shortage_note(scan->model, entry, SHORT_OF_NOTHING);
    if (entry->member != NULL) {
        entry->member->entry = NULL;
    }
    entries_remove(&entry->dir->entries, entry);
}

static void put_new(scan_t *scan, entry_t *entry)
{
    entry->kind = ENTRY_NEW;
    entry->dir->arrival_count++;
    TAILQ_INSERT_TAIL(&scan->arrivals, entry, link);
}

static void put_waiting(scan_t *scan, entry_t *entry)
{
    entry->kind = ENTRY_WAITING;
    entry->tries++;
    entry->retry_ns = model_clock_ns() + (MS << wait_level(entry));
    TAILQ_INSERT_TAIL(&scan->waiting[wait_level(entry)], entry, link);
}

static void put_refused(scan_t *scan, entry_t *entry)
{
    entry->kind = ENTRY_REFUSED;
    TAILQ_INSERT_TAIL(&scan->refused, entry, link);
    if (++scan->refused_count > SCAN_REFUSED_MAX) {
        forget(scan, TAILQ_FIRST(&scan->refused));
    }
}

/* --- notices -------------------------------------------------------------------------- */

/* NULL: not ours, or no memory, or too many wait: then the next listing finds it. */
static entry_t *know(scan_t *scan, segment_dir_t *dir, const char *name)
{
    entry_t *entry = entries_find(&dir->entries, name);
    bool is_full = dir->arrival_count >= SCAN_ARRIVALS_MAX;
    dir->changed = dir->changed || (entry == NULL && is_full);
    if (entry == NULL && !is_full && rmm__segment_name_parse(name, NULL)) {
        entry = entries_add(&dir->entries, name);
        if (entry != NULL) {
            entry->dir = dir;
            entry->found_ns = model_clock_ns();
            put_new(scan, entry);
        }
    }
    return entry;
}

static void take_notice(void *arg, segment_dir_t *dir, const char *name, bool is_gone)
{
    scan_t *scan = arg;
    entry_t *entry =
        is_gone ? entries_find(&dir->entries, name) : know(scan, dir, name);
    if (entry == NULL) {
        return;
    }
    if (is_gone) {
        forget(scan, entry);
    } else if (entry->kind == ENTRY_TAKEN || entry->kind == ENTRY_REFUSED) {
        take_out(scan, entry); /* another file has the name, or it was written again */
        entry->found_ns = model_clock_ns();
        put_new(scan, entry);
    }
}

/* One that is not admitted yet is looked at when it is. */
static void take_touch(void *arg, segment_dir_t *dir, const char *name)
{
    scan_t *scan = arg;
    const entry_t *entry = entries_find(&dir->entries, name);
    if (entry != NULL && entry->member != NULL) {
        refused_touched(scan->model, entry->member);
        sharing_out_touched(scan->model, entry->member);
    }
}

/* --- one name ------------------------------------------------------------------------- */

/* Whose it is. The file of a known name is the known one unless it has another inode. */
static void look_at_arrival(scan_t *scan, entry_t *entry)
{
    struct stat status;
    if (entry->dir->gone || rmm__stat_in(entry->dir->fd, entry->name, &status) != 0 ||
        (scan->only_uid >= 0 && status.st_uid != (uid_t)scan->only_uid)) {
        forget(scan, entry);
        return;
    }
    take_out(scan, entry);
    entry->kind = ENTRY_TAKEN; /* in no list */
    uncharge(scan, entry);
    entry->owner = status.st_uid;
    entry->inode = status.st_ino;
    scan_owner_t *owner = charge(scan, entry) ? owner_for(scan, entry->owner) : NULL;
    if (owner == NULL) {
        forget(scan, entry);
        return;
    }
    entry->kind = ENTRY_QUEUED;
    TAILQ_INSERT_TAIL(&owner->names, entry, link);
}

static void meet(scan_t *scan, entry_t *entry)
{
    take_out(scan, entry);
    entry->kind = ENTRY_TAKEN;
    switch (members_admit(scan->model, entry)) {
    case ADMISSION_TAKEN:
        break;
    case ADMISSION_LATER:
        put_waiting(scan, entry);
        break;
    case ADMISSION_REFUSED:
        put_refused(scan, entry);
        break;
    case ADMISSION_GONE:
        forget(scan, entry);
        break;
    }
}

/* The first owner's first name; then it is the next owner's turn. */
static bool meet_next(scan_t *scan)
{
    scan_owner_t *owner = TAILQ_FIRST(&scan->owners);
    if (owner == NULL) {
        return false;
    }
    TAILQ_REMOVE(&scan->owners, owner, link);
    TAILQ_INSERT_TAIL(&scan->owners, owner, link);
    meet(scan, TAILQ_FIRST(&owner->names));
    return true;
}

static bool retry_next(scan_t *scan)
{
    uint64_t now = model_clock_ns();
    for (uint32_t i = 0; i < SCAN_WAIT_LEVELS; i++) {
        entry_t *entry = TAILQ_FIRST(&scan->waiting[i]);
        if (entry != NULL && entry->retry_ns <= now) {
            take_out(scan, entry);
            put_new(scan, entry);
            return true;
        }
    }
    return false;
}

/* --- listings ------------------------------------------------------------------------- */

static void begin_listing(segment_dir_t *dir)
{
    int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir->listing = fd < 0 ? NULL : fdopendir(fd);
    if (dir->listing == NULL) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return; /* out of descriptors: `changed` stays, and the next look tries again */
    }
    dir->changed = false;
    dir->listing_number++;
}

static bool drop_unlisted(entry_t *entry, void *arg)
{
    scan_t *scan = arg;
    if (entry->listing != entry->dir->listing_number && entry->kind != ENTRY_NEW) {
        forget(scan, entry);
    }
    return true;
}

static void end_listing(scan_t *scan, segment_dir_t *dir)
{
    (void)closedir(dir->listing);
    dir->listing = NULL;
    entries_each(&dir->entries, drop_unlisted, scan);
}

static void take_listed(scan_t *scan, segment_dir_t *dir, const struct dirent *found)
{
    entry_t *entry = know(scan, dir, found->d_name);
    if (entry == NULL) {
        return;
    }
    entry->listing = dir->listing_number;
    if (entry->inode != 0 && entry->inode != found->d_ino) {
        take_notice(scan, dir, found->d_name, false);
    }
}

static void list_piece(scan_t *scan, segment_dir_t *dir)
{
    for (uint32_t i = 0; i < LISTING_NAMES; i++) {
        const struct dirent *found = readdir(dir->listing);
        if (found == NULL) {
            end_listing(scan, dir);
            return;
        }
        take_listed(scan, dir, found);
    }
}

static bool list_next(scan_t *scan)
{
    for (size_t i = 0; i < scan->dirs->count; i++) {
        segment_dir_t *dir = scan->dirs->list[i];
        if (dir->changed && dir->listing == NULL && !dir->gone) {
            begin_listing(dir);
        }
        if (dir->listing != NULL && dir->arrival_count < LISTING_AHEAD) {
            list_piece(scan, dir);
            return true;
        }
    }
    return false;
}

/* --- all ------------------------------------------------------------------------------ */

static bool forget_entry(entry_t *entry, void *arg)
{
    forget(arg, entry);
    return true;
}

static void drop_dir(void *arg, segment_dir_t *dir)
{
    if (dir->listing != NULL) {
        (void)closedir(dir->listing);
        dir->listing = NULL;
    }
    entries_each(&dir->entries, forget_entry, arg);
    entries_fini(&dir->entries);
}

void scan_init(scan_t *scan, model_t *model, dirs_t *dirs, long only_uid)
{
    memset(scan, 0, sizeof(*scan));
    scan->model = model;
    scan->dirs = dirs;
    scan->only_uid = only_uid;
    TAILQ_INIT(&scan->arrivals);
    TAILQ_INIT(&scan->owners);
    TAILQ_INIT(&scan->refused);
    for (uint32_t i = 0; i < SCAN_WAIT_LEVELS; i++) {
        TAILQ_INIT(&scan->waiting[i]);
    }
    dirs->name_changed = take_notice;
    dirs->name_touched = take_touch;
    dirs->dir_dropped = drop_dir;
    dirs->callback_arg = scan;
}

void scan_fini(scan_t *scan)
{
    for (size_t i = 0; i < scan->dirs->count; i++) {
        drop_dir(scan, scan->dirs->list[i]);
    }
}

bool scan_step(scan_t *scan)
{
    entry_t *arrival = TAILQ_FIRST(&scan->arrivals);
    bool did = arrival != NULL;
    if (did) {
        look_at_arrival(scan, arrival);
    }
    did = meet_next(scan) || did; /* each of them: none is starved by another */
    did = retry_next(scan) || did;
    return list_next(scan) || did;
}

void scan_again(scan_t *scan, entry_t *entry)
{
    if (entry->member != NULL) {
        model_remove_member(scan->model, entry->member);
    }
    take_out(scan, entry);
    put_new(scan, entry);
}

void scan_list_again(scan_t *scan)
{
    for (size_t i = 0; i < scan->dirs->count; i++) {
        scan->dirs->list[i]->changed = true;
    }
}

void scan_forget_gone(model_t *model, const dirs_t *dirs)
{
    for (uint32_t i = model->totalled_count; i > 0; i--) {
        bool present = false;
        for (size_t j = 0; j < dirs->count && !present; j++) {
            const segment_dir_t *dir = dirs->list[j];
            present = !dir->gone &&
                      entries_find(&dir->entries, model->totalled[i - 1].name) != NULL;
        }
        if (!present) {
            model_forget_totalled(model, &model->totalled[i - 1]);
        }
    }
}
