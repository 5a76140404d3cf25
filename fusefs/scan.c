/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in a directory; see scan.h. Old and new names are sorted lists that are merged,
 * so a scan is n log n however many programs run.
 */
#include "scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "members.h"

typedef struct names {
    entry_t *items;
    size_t count, capacity;
} names_t;

static int by_name(const void *left, const void *right)
{
    return strcmp(((const entry_t *)left)->name, ((const entry_t *)right)->name);
}

static bool add_name(names_t *names, const struct dirent *found)
{
    if (names->count == names->capacity) {
        size_t capacity = names->capacity == 0 ? 32 : names->capacity * 2;
        entry_t *grown = realloc(names->items, capacity * sizeof(entry_t));
        if (grown == NULL) {
            return false;
        }
        names->items = grown;
        names->capacity = capacity;
    }
    entry_t *entry = &names->items[names->count++];
    memset(entry, 0, sizeof(*entry));
    (void)snprintf(entry->name, sizeof(entry->name), "%.63s", found->d_name);
    entry->inode = found->d_ino;
    return true;
}

/* False: it could not be read whole; what was known stays. */
static bool list_names(const segment_dir_t *dir, long only_uid, names_t *names)
{
    int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (stream == NULL) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return false;
    }
    bool good = true;
    struct dirent *found;
    uid_t uid;
    while (good && (found = readdir(stream)) != NULL) {
        if (rmm_segment_name_parse(found->d_name, &uid) &&
            (only_uid < 0 || uid == (uid_t)only_uid)) {
            good = names->count < MEMBERS_MAX && add_name(names, found);
        }
    }
    (void)closedir(stream);
    if (names->count == MEMBERS_MAX) {
        log_warn(
            "%s has more than %u segments: rmmfs does not show the others", dir->path,
            MEMBERS_MAX);
        good = true;
    }
    if (names->count > 0) {
        qsort(names->items, names->count, sizeof(entry_t), by_name);
    }
    return good;
}

/* What is known of the name; NULL: new, or another file by now. */
static const entry_t *find_known(const segment_dir_t *dir, const entry_t *entry)
{
    const entry_t *known =
        dir->entry_count == 0
            ? NULL
            : bsearch(entry, dir->entries, dir->entry_count, sizeof(entry_t), by_name);
    return known != NULL && known->inode == entry->inode ? known : NULL;
}

void scan_dir(model_t *model, segment_dir_t *dir, long only_uid)
{
    names_t names = {0};
    dir->changed = false;
    if (!list_names(dir, only_uid, &names)) {
        dir->changed = true; /* again */
        free(names.items);
        return;
    }
    dir->pending = false;
    for (size_t i = 0; i < names.count; i++) {
        entry_t *entry = &names.items[i];
        const entry_t *known = find_known(dir, entry);
        entry->met_ns = known != NULL ? known->met_ns : model_clock_ns();
        entry->kind = known != NULL ? known->kind : ENTRY_PENDING;
        if (entry->kind == ENTRY_PENDING) {
            members_meet(model, dir, entry);
        }
        dir->pending = dir->pending || entry->kind == ENTRY_PENDING;
    }
    free(dir->entries);
    dir->entries = names.items;
    dir->entry_count = names.count;
}

static void mark_present(model_t *model, const segment_dir_t *dir)
{
    for (size_t i = 0; i < dir->entry_count; i++) {
        folded_t *folded = model_folded(model, dir->entries[i].name);
        if (folded != NULL) {
            folded->present = true;
        }
    }
}

void scan_forget_gone(model_t *model, const dirs_t *dirs)
{
    for (uint32_t i = 0; i < model->folded_count; i++) {
        model->folded[i].present = false;
    }
    for (size_t i = 0; i < dirs->count; i++) {
        if (!dirs->list[i]->gone) {
            mark_present(model, dirs->list[i]);
        }
    }
    for (uint32_t i = model->folded_count; i > 0; i--) {
        if (!model->folded[i - 1].present) {
            model_forget_folded(model, &model->folded[i - 1]);
        }
    }
}
