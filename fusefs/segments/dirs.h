/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directories that may contain segments, and notices of changes in them.
 *
 *   with RMM_RUNTIME_DIR   only that one
 *   as root                /run/rmm, also below a mount on it, /run/user/<uid>/rmm and
 *                          /dev/shm/rmm-<uid> of all users
 *   as a user              /run/rmm and that user's own two
 *
 * A user's directory must belong to that user (fstat) and must not be a link, so that
 * no other user can make the daemon read another directory. It is opened from its parent
 * without crossing into a mount, and a parent that is a mount itself only if its file
 * system is local (mounts.h): a user can mount FUSE over a folder of his own and never
 * answer. RMM_RUNTIME_DIR may be on any file system but FUSE. Directories may appear and
 * disappear; the daemon watches their parents.
 *
 * inotify reports changes in the order of system calls: once a program's rename() has
 * returned, the next refresh sees the file. Times of files are less exact, because they
 * advance by clock ticks, and inotify takes one system call for all directories.
 * Without inotify (too many instances on the machine, a network file system) every
 * directory counts as changed at every refresh.
 *
 * In /dev/shm any user may make millions of names. So a survey looks at the directories that are
 * known there, and lists a piece of the names only; a notice is looked at by its name.
 *
 * Threads: the caller holds the model lock alone.
 */
#ifndef RMM_FUSEFS_DIRS_H
#define RMM_FUSEFS_DIRS_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "segment/runtime_dir.h"
#include "segments/entries.h"
#include "segments/mounts.h"

#define DIRS_REFUSED_MAX 64u /* more are not logged */

typedef struct segment_dir {
    int fd;
    int wd; /* of inotify; -1: not watched */
    uint32_t references;
    bool gone;      /* no longer one of those above */
    bool is_below;  /* a file system is mounted over it */
    bool is_opened; /* to all users, or that was tried */
    bool seen;      /* by the survey under way */
    bool changed;   /* to be listed: notices were lost, or there are none */
    uint64_t device, inode;
    char path[RMM_RUNTIME_DIR_BYTES];
    entries_t entries;       /* scan.c */
    uint32_t arrival_count;  /* of these, that are NEW */
    DIR *listing;            /* under way; NULL: none */
    uint32_t listing_number; /* of the last one that was begun */
} segment_dir_t;

/* A name appeared in a directory, or has another file; or it is gone. */
typedef void (*dirs_name_fn)(
    void *arg, segment_dir_t *dir, const char *name, bool is_gone);
/* The times of the file were changed. */
typedef void (*dirs_touched_fn)(void *arg, segment_dir_t *dir, const char *name);
/* A directory is about to be freed. */
typedef void (*dirs_dropped_fn)(void *arg, segment_dir_t *dir);

/* A directory in which one of ours may appear. */
typedef struct parent_dir {
    int wd;
    char name[48]; /* what matters in it: a name, "" for all, or the prefix "rmm-" */
} parent_dir_t;

typedef struct dirs {
    bool only_one;  /* RMM_RUNTIME_DIR */
    bool all_users; /* root */
    uid_t uid;
    char own_path[RMM_RUNTIME_DIR_BYTES]; /* where this daemon's own programs write */
    int inotify_fd;                       /* -1: without */
    mounts_t mounts;
    uint64_t refused[DIRS_REFUSED_MAX]; /* names of directories, hashed: logged */
    size_t refused_count;
    bool stale;         /* survey again */
    bool is_short;      /* of descriptors, the survey under way */
    int below_fd;       /* what may be below a mount on /run/rmm; -1: unknown */
    int shared_fd;      /* /dev/shm, for root's daemon; -1: not there */
    DIR *shared_names;  /* its listing under way; NULL: none */
    uint64_t shared_ns; /* when it goes on; 0: at the start, which lists all */
    segment_dir_t **list;
    uint32_t count, capacity;
    parent_dir_t *parents;
    uint32_t parent_count, parent_capacity;
    dirs_name_fn name_changed; /* of the scan, all four */
    dirs_touched_fn name_touched;
    dirs_dropped_fn dir_dropped;
    void *callback_arg;
} dirs_t;

/* Is $RMM_RUNTIME_DIR, if it is set and exists, on a file system that the daemon may touch?
 * Before anything else touches it. False with a reason. */
bool dirs_check_wanted(char *reason, size_t reason_bytes);

/* Makes what is missing. False with a reason (one line). */
bool dirs_open(dirs_t *dirs, bool use_inotify, char *reason, size_t reason_bytes);
void dirs_close(dirs_t *dirs);

/* True if there is news to take. Without a lock. */
bool dirs_have_news(const dirs_t *dirs);

/* Take a bounded part of the news, tell of names; `stale` and each directory's `changed`
 * are right when all is taken. */
void dirs_take_news(dirs_t *dirs);

/* Is it the one of all users? */
bool dirs_is_for_all(const segment_dir_t *dir);

/* Mode and owner of one now: DIR_OK, or what keeps programs from it. */
typedef enum dir_state {
    DIR_OK,
    DIR_BELOW, /* only containers that were started before the mount write there */
    DIR_CLOSED /* other users, for whom it is, may not write there */
} dir_state_t;
dir_state_t dirs_look_at(const segment_dir_t *dir, struct stat *status);

/* Look for directories that came or went; later, if the process is out of descriptors. */
void dirs_survey(dirs_t *dirs);

#endif /* RMM_FUSEFS_DIRS_H */
