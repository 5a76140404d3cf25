/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes what dead processes left. The lock decides, never an age alone:
 *   segment    unlocked is dead, for ever: the lock was taken before the name. Marked
 *              first, removed when the mark is old, so that readers see the last figures.
 *   side file  unlocked and without its segment: its maker died before the segment got
 *              its name, or the segment was removed.
 *   temporary  unlocked may also mean not locked yet: only an old one is abandoned.
 * Two sweepers at once do the same things twice, which is harmless.
 */
#include "segment/runtime_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "segment/segment_holder.h"
#include "segment/segment_name.h"
#include "segment/segment_reader.h"

typedef enum verdict { KEEP, MARK, REMOVE } verdict_t;

/* Negative if the file's time lies in the future. */
static int64_t age_seconds(const struct stat *status)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec - (int64_t)status->st_mtim.tv_sec;
}

static bool is_marked(const struct stat *status)
{
    return (status->st_mode & S_IWUSR) == 0;
}

static bool has_segment(int dirfd, const char *name, const rmm_file_name_t *parsed)
{
    char segment[RMM_SEGMENT_NAME_BYTES];
    struct stat status;

    snprintf(segment, sizeof(segment), "%.*s", (int)parsed->stem_bytes, name);
    return fstatat(dirfd, segment, &status, AT_SYMLINK_NOFOLLOW) == 0 ||
           errno != ENOENT;
}

/* What to do with a file that nobody holds. */
static verdict_t judge(const rmm_file_name_t *parsed, const struct stat *status)
{
    int64_t age = age_seconds(status);

    switch (parsed->kind) {
    case RMM_FILE_SEGMENT:
        if (!is_marked(status) || age < 0) {
            return MARK;
        }
        return age >= RMM_SWEEP_AFTER_SECONDS ? REMOVE : KEEP;
    case RMM_FILE_TEMPORARY:
        return age >= RMM_SWEEP_AFTER_SECONDS ? REMOVE : KEEP;
    case RMM_FILE_SIDE:
        return REMOVE;
    case RMM_FILE_OTHER:
        break;
    }
    return KEEP;
}

/* A file of the uid in its name, and no link to something else. */
static bool is_ours(int fd, const rmm_file_name_t *parsed, struct stat *status)
{
    return fstat(fd, status) == 0 && S_ISREG(status->st_mode) &&
           status->st_uid == parsed->uid && status->st_nlink == 1;
}

static int sweep_file(int dirfd, const char *name, const rmm_file_name_t *parsed)
{
    int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    verdict_t verdict = KEEP;
    struct stat status;

    if (fd < 0) {
        return 0;
    }
    if (is_ours(fd, parsed, &status) && !rmm__file_is_held(fd)) {
        verdict = judge(parsed, &status);
    }
    if (verdict == MARK && futimens(fd, NULL) == 0) {
        (void)fchmod(fd, S_IRUSR); /* last: the mark counts with its time only */
    }
    close(fd);
    return verdict == REMOVE && unlinkat(dirfd, name, 0) == 0 ? 1 : 0;
}

static int sweep_kinds(DIR *directory, long only_uid, bool side_files)
{
    int fd = dirfd(directory);
    struct dirent *entry;
    int removed = 0;

    rewinddir(directory);
    while ((entry = readdir(directory)) != NULL) {
        rmm_file_name_t parsed = rmm__file_name_parse(entry->d_name);

        if (parsed.kind == RMM_FILE_OTHER ||
            (only_uid >= 0 && parsed.uid != (uid_t)only_uid) ||
            (parsed.kind == RMM_FILE_SIDE) != side_files ||
            (side_files && has_segment(fd, entry->d_name, &parsed))) {
            continue;
        }
        removed += sweep_file(fd, entry->d_name, &parsed);
    }
    return removed;
}

int rmm__runtime_dir_sweep(int dirfd, long only_uid)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    int removed;

    if (directory == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return 0;
    }
    removed = sweep_kinds(directory, only_uid, false);
    removed += sweep_kinds(directory, only_uid, true); /* after their segments went */
    closedir(directory);
    return removed;
}
