/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directories that may contain segments, and notices of changes in them.
 *
 *   with RMM_RUNTIME_DIR   only that one
 *   as root                /run/rmm, /run/user/<uid>/rmm, /dev/shm/rmm-<uid> of all users
 *   as a user              /run/rmm and that user's own two
 *
 * A user's directory must belong to that user (fstat) and must not be a link, so that
 * no other user can make the daemon read another directory. Directories may appear and
 * disappear; the daemon watches their parents.
 *
 * inotify reports changes in the order of system calls: once a program's rename() has
 * returned, the next refresh sees the file. Times of files are less exact, because they
 * advance by clock ticks, and inotify takes one system call for all directories.
 * Without inotify (too many instances on the machine, a network file system) every
 * directory counts as changed at every refresh.
 *
 * Threads: the caller holds the model lock alone.
 */
#ifndef RMM_FUSEFS_DIRS_H
#define RMM_FUSEFS_DIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "segment/runtime_dir.h"

typedef enum entry_kind {
    ENTRY_TAKEN,   /* a member, or its totals are in the devices already */
    ENTRY_PENDING, /* being made: look again */
    ENTRY_REFUSED  /* counted and logged */
} entry_kind_t;

/* A segment's name, as found in a directory. */
typedef struct entry {
    char name[64];
    uint64_t inode;
    entry_kind_t kind;
    uint64_t met_ns;
} entry_t;

typedef struct segment_dir {
    int fd;
    int wd; /* of inotify; -1: not watched */
    uint32_t references;
    bool gone; /* no longer one of the locations */
    bool seen; /* by the survey under way */
    bool changed;
    bool pending; /* holds an ENTRY_PENDING */
    uint64_t device, inode;
    char path[RMM_RUNTIME_DIR_BYTES];
    entry_t *entries; /* by name; see scan.c */
    size_t entry_count;
} segment_dir_t;

/* A directory in which one of ours may appear. */
typedef struct parent_dir {
    int wd;
    char name[48]; /* what matters in it: a name, or a prefix ending in "-", or "" */
} parent_dir_t;

typedef struct dirs {
    bool only_one;  /* RMM_RUNTIME_DIR */
    bool all_users; /* root */
    uid_t uid;
    char home[RMM_RUNTIME_DIR_BYTES]; /* where this daemon's own programs write */
    int home_fd;                      /* and its state file is */
    int inotify_fd;                   /* -1: without */
    bool home_moved;                  /* made again: home_fd is another */
    bool stale;                       /* survey again */
    segment_dir_t **list;
    size_t count, capacity;
    parent_dir_t *parents;
    size_t parent_count, parent_capacity;
} dirs_t;

/* Makes what is missing. False with a reason (one line). */
bool dirs_open(dirs_t *dirs, bool use_inotify, char *reason, size_t reason_bytes);
void dirs_close(dirs_t *dirs);

/* True if there is news to take. Without a lock. */
bool dirs_have_news(const dirs_t *dirs);

/* Take the news: afterwards `stale` and each directory's `changed` are right. */
void dirs_take_news(dirs_t *dirs);

/* Look for directories that came or went. */
void dirs_survey(dirs_t *dirs);

#endif /* RMM_FUSEFS_DIRS_H */
