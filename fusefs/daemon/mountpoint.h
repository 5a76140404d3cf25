/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where to mount: choosing, checking, and clearing what a dead daemon left.
 *
 * After a daemon was killed its mount point returns ENOTCONN until it is unmounted, and a
 * plain restart fails. So a dead mount is cleared, but only if it is ours (fuse.rmmfs in
 * /proc/self/mountinfo); a live one is left alone. One whose daemon has just received SIGTERM
 * works for another moment, so a start waits for that end.
 */
#ifndef RMM_FUSEFS_MOUNTPOINT_H
#define RMM_FUSEFS_MOUNTPOINT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/options.h"
#include "segments/mounts.h"

#define MOUNT_TYPE "fuse.rmmfs"

typedef struct mountpoint {
    char path[PATH_MAX]; /* absolute, without links */
    bool made;           /* by us: taken away again if the mount fails */
    int lock_fd;         /* the directory below the mount, locked; -1: it is not open */
    /* Both identify our mount in the mount table; see mountpoint_find_own(). */
    uint64_t mount_id;
    char device[MOUNT_DEVICE_BYTES]; /* "0:45"; "": unknown */
} mountpoint_t;

/*
 * Without a name: /rmm for root, ~/rmm for a user, made if missing. False with a reason: one
 * line that says what is wrong and what to do. Until mountpoint_unlock() another start there waits.
 */
bool mountpoint_prepare(
    mountpoint_t *mountpoint, const options_t *options, char *reason,
    size_t reason_bytes);

/* The path of the mount point, without a request to what is mounted there. False with a reason. */
bool mountpoint_name(
    const char *wanted, char path[PATH_MAX], char *reason, size_t reason_bytes);

/* The same of a tree to look at: without a name that of root, if the user has mounted none. */
bool mountpoint_name_to_ask(
    const char *wanted, char path[PATH_MAX], char *reason, size_t reason_bytes);

/* Is a tree of rmmfs, alive or dead, on top there? */
bool mountpoint_is_ours(const char *path);

/* It is mounted, or will not be. */
void mountpoint_unlock(mountpoint_t *mountpoint);

/* Unmount a dead mount of ours, and nothing else: a live one is another daemon's. True too if
 * nothing is mounted there; false with a reason if wanted does not exist. Makes nothing. */
bool mountpoint_clear(const char *wanted, char *reason, size_t reason_bytes);

/* Undo what mountpoint_prepare made. */
void mountpoint_abandon(const mountpoint_t *mountpoint);

/* Our tree has just been mounted there. */
void mountpoint_note_mount(mountpoint_t *mountpoint);

/*
 * Where our tree is mounted now: the mount may have been moved, or its parent renamed. Where the
 * mount table cannot be read, the path of the start. False: nowhere, and what is at its path may be
 * another daemon's. Only while the connection to the kernel is alive: later another mount may have
 * its numbers.
 */
bool mountpoint_find_own(const mountpoint_t *mountpoint, char path[PATH_MAX]);

/* True, with the type of what is on top, if another file system is mounted over our tree there, or
 * over a folder above it ("unknown"). */
bool mountpoint_is_covered(
    const mountpoint_t *mountpoint, const char *path, char *type, size_t type_bytes);

/* Unmount at once, whatever has files open there. */
bool mountpoint_detach(const char *path);

/* The same only if our mount is on top there; false with errno. */
bool mountpoint_detach_own(const mountpoint_t *mountpoint, const char *path);

#endif /* RMM_FUSEFS_MOUNTPOINT_H */
