/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes the files of processes that have ended. A process holds a lock on its files, and age
 * alone is never a reason to remove one:
 *   segment    without a lock its process has ended, because a process takes the lock before it
 *              gives the file its name. The sweep first shrinks and marks it, so that readers can
 *              still see the last figures, and removes it when the mark is old.
 *   side file  removed if it has neither a lock nor a segment: its process died before the segment
 *              had its name, or the segment was removed. One whose process has ended is made
 *              thin (side_thin.h) as long as its segment is there.
 *   temporary  may be so new that it has no lock yet: removed only if it is old.
 * The owner of a file counts. The uid in its name is the one that its process saw, which differs
 * in a user namespace; a starting program uses it only to choose which files it examines.
 * Two concurrent sweeps do the same things twice, which is harmless.
 *
 * Cost: a starting program examines a few files only, chosen at random, so that its start takes
 * no longer with thousands of files. A marked file costs one statx.
 */
#include "segment/runtime_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "segment/list.h"
#include "segment/open_in.h"
#include "segment/segment_holder.h"
#include "segment/segment_name.h"
#include "segment/segment_reader.h"
#include "segment/segment_shrink.h"
#include "segment/side_thin.h"
#include "segment/temporary_file.h"

#define SOME_FILES 64u  /* that a starting program examines: 0.1 ms */
#define SOME_SHRINKS 4u /* segments or side files that it shrinks: 0.1 or 1 ms each */
#define RECLAIM_BYTES (64u * 1024u) /* what one program with a pool may take */
#define FILE_NAME_BYTES (RMM_SEGMENT_NAME_BYTES + RMM_SUFFIX_BYTES + 8)

typedef enum verdict { KEEP, MARK, REMOVE } verdict_t;

typedef struct rmm_sweep {
    DIR *directory;
    long only_uid;
    bool side_files; /* the second pass over the names, after segments were removed */
    uint32_t shrinks_left;
    int64_t segments_after_seconds;
    int removed;
} sweep_t;

/* Negative if the file's time lies in the future. */
static int64_t age_seconds(const struct stat *status)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec - (int64_t)status->st_mtim.tv_sec;
}

static bool has_segment(int dirfd, const char *name, const rmm_file_name_t *parsed)
{
    char segment[RMM_SEGMENT_NAME_BYTES];
    struct stat status;

    snprintf(segment, sizeof(segment), "%.*s", (int)parsed->stem_bytes, name);
    return rmm__stat_in(dirfd, segment, &status) == 0 || errno != ENOENT;
}

/* Decides about a file whose lock no process holds. */
static verdict_t
judge(const sweep_t *sweep, const rmm_file_name_t *parsed, const struct stat *status)
{
    int64_t age = age_seconds(status);

    switch (parsed->kind) {
    case RMM_FILE_SEGMENT:
        if (!rmm__segment_is_marked(status) || age < 0) {
            return MARK;
        }
        return age >= sweep->segments_after_seconds ? REMOVE : KEEP;
    case RMM_FILE_TEMPORARY:
        return age >= RMM_SWEEP_AFTER_SECONDS ? REMOVE : KEEP;
    case RMM_FILE_SIDE:
        return REMOVE;
    case RMM_FILE_OTHER:
        break;
    }
    return KEEP;
}

/* A regular file with one name, of the user whose files are swept. */
static bool is_ours(const sweep_t *sweep, const struct stat *status)
{
    return S_ISREG(status->st_mode) && status->st_nlink == 1 &&
           (sweep->only_uid < 0 || status->st_uid == (uid_t)sweep->only_uid);
}

/* Marked, and not long enough ago: true of most files where there are many. */
static bool is_kept_for_now(
    const sweep_t *sweep, const rmm_file_name_t *parsed, const struct stat *status)
{
    return parsed->kind == RMM_FILE_SEGMENT && rmm__segment_is_marked(status) &&
           judge(sweep, parsed, status) == KEEP;
}

/* Shrinks the segment, which marks it. One that cannot be shrunk (it may be inconsistent) is
 * marked as it is. */
static void mark(sweep_t *sweep, int fd, const char *name, const struct stat *status)
{
    if (!rmm__segment_is_marked(status)) {
        if (sweep->shrinks_left == 0) {
            return; /* left for the next sweep */
        }
        sweep->shrinks_left--;
        if (rmm__segment_shrink(dirfd(sweep->directory), name) == 0) {
            return;
        }
    }
    if (futimens(fd, NULL) == 0) {
        (void)fchmod(fd, S_IRUSR); /* last: the mark needs the time */
    }
}

static void sweep_file(sweep_t *sweep, const char *name, const rmm_file_name_t *parsed)
{
    int dir = dirfd(sweep->directory);
    verdict_t verdict = KEEP;
    struct stat status;
    int fd;

    if (rmm__stat_in(dir, name, &status) != 0 || !is_ours(sweep, &status) ||
        is_kept_for_now(sweep, parsed, &status)) {
        return;
    }
    fd = rmm__open_in(dir, name, O_RDONLY | O_NONBLOCK);
    if (fd < 0) {
        return;
    }
    if (fstat(fd, &status) == 0 && is_ours(sweep, &status) && !rmm__file_is_held(fd)) {
        verdict = judge(sweep, parsed, &status);
    }
    if (verdict == MARK) {
        mark(sweep, fd, name, &status);
    }
    close(fd);
    sweep->removed += verdict == REMOVE && unlinkat(dir, name, 0) == 0;
}

/* It is that of a segment, which is there. */
static void thin_side_file(sweep_t *sweep, const char *name)
{
    int dir = dirfd(sweep->directory);
    struct stat status;
    int fd;

    if (sweep->shrinks_left == 0 || rmm__stat_in(dir, name, &status) != 0 ||
        !is_ours(sweep, &status) || !rmm__side_is_thick(&status)) {
        return;
    }
    fd = rmm__open_in(dir, name, O_RDWR | O_NONBLOCK);
    if (fd < 0) {
        return;
    }
    if (fstat(fd, &status) == 0 && is_ours(sweep, &status) &&
        rmm__side_is_thick(&status) && !rmm__file_is_held(fd)) {
        sweep->shrinks_left--;
        (void)rmm__side_thin(fd); /* else it stays as it is until it is removed */
    }
    close(fd);
}

static void sweep_if(sweep_t *sweep, const char *name)
{
    rmm_file_name_t parsed = rmm__file_name_parse(name);

    if (parsed.kind == RMM_FILE_OTHER ||
        (parsed.kind == RMM_FILE_SIDE) != sweep->side_files) {
        return;
    }
    if (sweep->side_files && has_segment(dirfd(sweep->directory), name, &parsed)) {
        thin_side_file(sweep, name);
    } else {
        sweep_file(sweep, name, &parsed);
    }
}

/* False: that was the last name. */
static bool sweep_next(sweep_t *sweep)
{
    const struct dirent *entry = readdir(sweep->directory);

    if (entry != NULL) {
        sweep_if(sweep, entry->d_name);
    }
    return entry != NULL;
}

static void sweep_all(sweep_t *sweep, bool side_files)
{
    rewinddir(sweep->directory);
    sweep->side_files = side_files;
    while (sweep_next(sweep)) {
    }
}

static bool open_sweep(sweep_t *sweep, int dirfd, long only_uid, uint32_t shrinks)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    *sweep = (sweep_t){
        .only_uid = only_uid,
        .shrinks_left = shrinks,
        .segments_after_seconds = RMM_SWEEP_AFTER_SECONDS};
    sweep->directory = fd < 0 ? NULL : fdopendir(fd);
    if (sweep->directory == NULL && fd >= 0) {
        close(fd);
    }
    return sweep->directory != NULL;
}

rmm_sweep_t *rmm__sweep_begin(int dirfd, long only_uid)
{
    sweep_t *sweep = malloc(sizeof(*sweep));

    if (sweep != NULL && !open_sweep(sweep, dirfd, only_uid, UINT32_MAX)) {
        free(sweep);
        sweep = NULL;
    }
    return sweep;
}

bool rmm__sweep_step(rmm_sweep_t *sweep, uint32_t names)
{
    for (uint32_t i = 0; i < names; i++) {
        if (!sweep_next(sweep)) {
            if (sweep->side_files) {
                return false;
            }
            rewinddir(sweep->directory);
            sweep->side_files = true;
        }
    }
    return true;
}

int rmm__sweep_end(rmm_sweep_t *sweep)
{
    int removed = sweep->removed;

    closedir(sweep->directory);
    free(sweep);
    return removed;
}

/* --- the sweep of a starting program -------------------------------------------------- */

typedef struct sample {
    char names[SOME_FILES][FILE_NAME_BYTES];
    uint32_t count;
} sample_t;

/* By the uid in the name, which misses files of the user's containers. */
static bool is_worth_a_look(const sweep_t *sweep, const rmm_file_name_t *parsed)
{
    return parsed->kind != RMM_FILE_OTHER &&
           (sweep->only_uid < 0 || parsed->uid == (uid_t)sweep->only_uid);
}

/* A random sample: each name has the same chance. */
static void draw(sweep_t *sweep, sample_t *sample)
{
    uint64_t seen = 0, random = rmm__random64();
    struct dirent *entry;

    while ((entry = readdir(sweep->directory)) != NULL) {
        rmm_file_name_t parsed = rmm__file_name_parse(entry->d_name);
        uint64_t place = seen;

        if (!is_worth_a_look(sweep, &parsed)) {
            continue;
        }
        if (seen++ >= SOME_FILES) {
            random = random * 6364136223846793005u + 1442695040888963407u; /* Knuth's */
            place = (random >> 32) % seen;
        }
        if (place < SOME_FILES) {
            snprintf(sample->names[place], FILE_NAME_BYTES, "%.80s", entry->d_name);
        }
    }
    sample->count = seen < SOME_FILES ? (uint32_t)seen : SOME_FILES;
}

/* Whether a daemon keeps totals here: one that runs, or that may run again. */
static bool has_totals(int dirfd)
{
    struct stat status;

    return fstatat(dirfd, RMM_TOTALS_FILE, &status, AT_SYMLINK_NOFOLLOW) == 0 ||
           (lstat(RMM_TOTALS_DIR, &status) == 0 && S_ISDIR(status.st_mode) &&
            status.st_uid == 0);
}

int rmm__runtime_dir_sweep_some(int dirfd, long only_uid)
{
    sample_t sample;
    sweep_t sweep;

    if (!open_sweep(&sweep, dirfd, only_uid, SOME_SHRINKS)) {
        return 0;
    }
    if (has_totals(dirfd)) {
        sweep.segments_after_seconds = RMM_SWEEP_WITH_TOTALS_SECONDS;
    }
    draw(&sweep, &sample);
    for (uint32_t i = 0; i < 2 * sample.count; i++) { /* side files last */
        sweep.side_files = i >= sample.count;
        sweep_if(&sweep, sample.names[i % sample.count]);
    }
    closedir(sweep.directory);
    return sweep.removed;
}

/* --- a full file system --------------------------------------------------------------- */

typedef struct ended {
    char name[RMM_SEGMENT_NAME_BYTES];
    struct timespec when;
    uint64_t bytes;
} ended_t;

typedef struct ended_list {
    ended_t *items;
    uint32_t count, capacity;
} ended_list_t;

static int by_age(const void *left, const void *right)
{
    const struct timespec *a = &((const ended_t *)left)->when;
    const struct timespec *b = &((const ended_t *)right)->when;

    if (a->tv_sec != b->tv_sec) {
        return a->tv_sec < b->tv_sec ? -1 : 1;
    }
    return a->tv_nsec < b->tv_nsec ? -1 : a->tv_nsec > b->tv_nsec;
}

/* False: no host memory; the caller goes on with the files listed so far. */
static bool note_ended(ended_list_t *list, const char *name, const struct stat *status)
{
    ended_t *items =
        rmm__list_make_room(list->items, list->count, &list->capacity, sizeof(ended_t));
    ended_t *ended;

    if (items == NULL) {
        return false;
    }
    list->items = items;
    ended = &items[list->count++];
    snprintf(ended->name, sizeof(ended->name), "%.63s", name);
    ended->when = status->st_mtim;
    ended->bytes = (uint64_t)status->st_blocks * 512;
    return true;
}

/* Lists the marked segments: by now all of processes that ended, but for those that could not
 * be marked. */
static void list_ended(sweep_t *sweep, ended_list_t *list)
{
    int dir = dirfd(sweep->directory);
    bool good = true;
    struct dirent *entry;

    rewinddir(sweep->directory);
    while (good && (entry = readdir(sweep->directory)) != NULL) {
        rmm_file_name_t parsed = rmm__file_name_parse(entry->d_name);
        struct stat status;

        if (parsed.kind == RMM_FILE_SEGMENT &&
            rmm__stat_in(dir, entry->d_name, &status) == 0 && is_ours(sweep, &status) &&
            rmm__segment_is_marked(&status)) {
            good = note_ended(list, entry->d_name, &status);
        }
    }
}

/* Checks the lock again: the mark is a file mode, which any program of the user can set. */
static bool remove_ended(int dirfd, const char *name)
{
    int fd = rmm__open_in(dirfd, name, O_RDONLY | O_NONBLOCK);
    bool held = fd < 0 || rmm__file_is_held(fd);

    if (fd >= 0) {
        close(fd);
    }
    return !held && unlinkat(dirfd, name, 0) == 0;
}

static int remove_oldest(sweep_t *sweep, uint64_t bytes)
{
    ended_list_t list = {0};
    uint64_t freed = 0;
    int removed = 0;

    list_ended(sweep, &list);
    if (list.count > 0) {
        qsort(list.items, list.count, sizeof(ended_t), by_age);
    }
    for (size_t i = 0; i < list.count && freed < bytes; i++) {
        if (remove_ended(dirfd(sweep->directory), list.items[i].name)) {
            freed += list.items[i].bytes;
            removed++;
        }
    }
    free(list.items);
    return removed;
}

bool rmm__runtime_dir_reclaim(int dirfd, long only_uid)
{
    sweep_t sweep;
    bool freed;

    if (!open_sweep(&sweep, dirfd, only_uid, UINT32_MAX)) {
        return false;
    }
    sweep_all(&sweep, false);
    sweep_all(&sweep, true);
    freed = sweep.shrinks_left < UINT32_MAX || sweep.removed > 0;
    if (!freed && remove_oldest(&sweep, RECLAIM_BYTES) > 0) {
        freed = true;
        sweep_all(&sweep, true);
    }
    closedir(sweep.directory);
    return freed;
}
