/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and keeps the segments of programs; see segments.h. */
#include "node/segments.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/node.h"
#include "segment/list.h"
#include "segment/process_check.h"
#include "segment/runtime_dir.h"

/* --- directories -------------------------------------------------------------------------- */

int segments_init_at(segments_t *segments, const char *path)
{
    memset(segments, 0, sizeof(*segments));
    segments->is_given = true;
    if (strlen(path) >= sizeof(segments->paths[0])) {
        return ENAMETOOLONG;
    }
    strcpy(segments->paths[segments->path_count++], path);
    return access(path, R_OK | X_OK) == 0 ? 0 : errno;
}

static bool
take_given(segments_t *segments, const char *path, char *message, size_t bytes)
{
    int error = segments_init_at(segments, path);

    if (error == ENAMETOOLONG) {
        snprintf(message, bytes, "RMM_RUNTIME_DIR is too long");
    } else if (error != 0) {
        snprintf(
            message, bytes, "cannot read RMM_RUNTIME_DIR %.100s: %s", path,
            strerror(error));
    }
    return error == 0;
}

/* Only writers need a directory that can be made, or written to. */
static bool can_hold_no_more(const char *path)
{
    return access(path, W_OK) != 0 && (errno == ENOENT || errno == EROFS);
}

bool segments_init(segments_t *segments, char *message, size_t message_bytes)
{
    const char *given = getenv("RMM_RUNTIME_DIR");

    memset(segments, 0, sizeof(*segments));
    if (given != NULL && given[0] != '\0') {
        return take_given(segments, given, message, message_bytes);
    }
    strcpy(segments->paths[segments->path_count++], RMM_SYSTEM_RUNTIME_DIR);
    if (!rmm__runtime_dir(
            segments->paths[segments->path_count], message, message_bytes) &&
        !can_hold_no_more(segments->paths[segments->path_count])) {
        return false;
    }
    segments->path_count += strcmp(segments->paths[1], RMM_SYSTEM_RUNTIME_DIR) != 0;
    return true;
}

static bool is_trusted(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 &&
           (status.st_uid == 0 || status.st_uid == geteuid());
}

/* -1: not there, or another user's. */
static int open_path(const segments_t *segments, const char *path)
{
    int links = segments->is_given ? 0 : O_NOFOLLOW;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | links);

    if (fd >= 0 && !segments->is_given && !is_trusted(fd)) {
        close(fd);
        return -1;
    }
    return fd;
}

static DIR *open_dir(const segments_t *segments, const char *path)
{
    int fd = open_path(segments, path);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    if (fd >= 0 && dir == NULL) {
        close(fd);
    }
    return dir;
}

open_segment_t *segments_find(const segments_t *segments, uint64_t id)
{
    for (uint32_t i = 0; i < segments->count; i++) {
        if (segments->list[i]->id == id) {
            return segments->list[i];
        }
    }
    return NULL;
}

int segments_open_dir(const segments_t *segments, const open_segment_t *one)
{
    return open_path(segments, segments->paths[one->path]);
}

/* --- the list ----------------------------------------------------------------------------- */

static void close_one(open_segment_t *one)
{
    rmm__segment_close(&one->segment);
    free(one);
}

void segments_fini(segments_t *segments)
{
    for (uint32_t i = 0; i < segments->count; i++) {
        close_one(segments->list[i]);
    }
    free(segments->list);
    memset(segments, 0, sizeof(*segments));
}

/* Where `name` is, or would be inserted. */
static bool find(const segments_t *segments, const char *name, uint32_t *index_out)
{
    uint32_t low = 0, high = segments->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(segments->list[middle]->segment.name, name);

        if (order == 0) {
            *index_out = middle;
            return true;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *index_out = low;
    return false;
}

static bool insert(segments_t *segments, uint32_t index, open_segment_t *one)
{
    open_segment_t **list = rmm__list_make_room(
        segments->list, segments->count, &segments->room, sizeof(*list));

    if (list == NULL) {
        return false;
    }
    segments->list = list;
    memmove(
        &segments->list[index + 1], &segments->list[index],
        (segments->count - index) * sizeof(segments->list[0]));
    segments->list[index] = one;
    segments->count++;
    return true;
}

/* --- one program -------------------------------------------------------------------------- */

/* A pid in another pid namespace is looked for in /proc/locks. */
static pid_t find_pid(const rmm_segment_t *segment)
{
    pid_t pid = (pid_t)segment->header.pid;

    return rmm__process_is(pid, segment->uid, segment->header.start_time_ticks)
               ? pid
               : rmm__segment_pid(segment);
}

/* NULL: no memory. */
static open_segment_t *
add(segments_t *segments, uint32_t index, const rmm_segment_t *segment)
{
    open_segment_t *one = calloc(1, sizeof(*one));

    if (one == NULL || !insert(segments, index, one)) {
        free(one);
        return NULL;
    }
    one->segment = *segment;
    one->id = ++segments->last_id;
    one->is_seen = true;
    one->is_live = rmm__segment_is_live(segment);
    one->pid = one->is_live ? find_pid(segment) : 0;
    (void)cgroup_of(one->pid, &one->group);
    node_name_user(segment->uid, one->user, sizeof(one->user));
    return one;
}

/* A directory that is being listed. */
typedef struct listing {
    DIR *dir;
    uint32_t path;
} listing_t;

/* A file that is not open yet. */
static bool add_file(
    segments_t *segments, uint32_t index, const listing_t *listing, const char *name)
{
    char reason[RMM_SEGMENT_REASON_BYTES];
    rmm_segment_t segment;
    open_segment_t *one;

    if (segments->count >= SEGMENTS_MAX) {
        segments->left_out++;
        return true;
    }
    errno = 0;
    switch (rmm__segment_open(&segment, dirfd(listing->dir), name, reason)) {
    case RMM_SEGMENT_GOOD:
        break;
    case RMM_SEGMENT_REFUSED:
    case RMM_SEGMENT_UNOPENED:
        segments->forbidden += errno == EACCES;
        segments->refused += errno != EACCES;
        return true;
    case RMM_SEGMENT_NOT_READY:
    case RMM_SEGMENT_GONE:
        return true;
    }
    if (!segments->keeps_ended && !rmm__segment_is_live(&segment)) {
        rmm__segment_close(&segment);
        return true;
    }
    one = add(segments, index, &segment);
    if (one == NULL) {
        rmm__segment_close(&segment);
        return false;
    }
    one->path = listing->path;
    return true;
}

/* --- a listing ---------------------------------------------------------------------------- */

static bool list_dir(segments_t *segments, const listing_t *listing)
{
    const struct dirent *entry;

    while ((entry = readdir(listing->dir)) != NULL) {
        uint32_t index;

        if (!rmm__segment_name_parse(entry->d_name, NULL)) {
            continue;
        }
        if (find(segments, entry->d_name, &index)) {
            segments->list[index]->is_seen = true;
        } else if (!add_file(segments, index, listing, entry->d_name)) {
            return false;
        }
    }
    return true;
}

/* Those whose name is gone, or whose program has ended. */
static void drop_ended(segments_t *segments)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < segments->count; i++) {
        open_segment_t *one = segments->list[i];

        one->is_live = one->is_live && rmm__segment_is_live(&one->segment);
        if (one->is_seen && (one->is_live || segments->keeps_ended)) {
            segments->list[kept++] = one;
        } else {
            close_one(one);
        }
    }
    segments->count = kept;
}

bool segments_list(segments_t *segments)
{
    bool is_whole = true;

    segments->forbidden = segments->refused = segments->left_out = 0;
    for (uint32_t i = 0; i < segments->count; i++) {
        segments->list[i]->is_seen = false;
    }
    for (uint32_t i = 0; is_whole && i < segments->path_count; i++) {
        const listing_t listing = {open_dir(segments, segments->paths[i]), i};

        if (listing.dir != NULL) {
            is_whole = list_dir(segments, &listing);
            closedir(listing.dir);
        }
    }
    if (is_whole) {
        drop_ended(segments);
    }
    return is_whole;
}
