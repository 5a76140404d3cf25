/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where segments are. One decision for both sides: $RMM_RUNTIME_DIR, else /run/rmm where
 * it exists and is writable, else $XDG_RUNTIME_DIR/rmm, else /dev/shm/rmm-<uid> (0700).
 */
#ifndef RMM_SEGMENT_RUNTIME_DIR_H
#define RMM_SEGMENT_RUNTIME_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RMM_RUNTIME_DIR_BYTES 256
#define RMM_SYSTEM_RUNTIME_DIR "/run/rmm"
#define RMM_SWEEP_AFTER_SECONDS 60
#define RMM_SWEEP_WITH_TOTALS_SECONDS 3600 /* where a daemon keeps totals */
#define RMM_TOTALS_DIR "/run/rmmfs"        /* where root's does, */
#define RMM_TOTALS_FILE "rmmfs.state"      /* or in the directory of segments itself */

/*
 * The directory that this process writes its segment to; made if missing (0700, but for
 * the system's). False with a reason (one line) if there is none. True: reason is empty, or says
 * why it is not the system's, which is there.
 */
bool rmm__runtime_dir(
    char path[RMM_RUNTIME_DIR_BYTES], char *reason, size_t reason_bytes);

/* The inputs of the decision; NULL: not set, or not there. */
typedef struct rmm_runtime_roots {
    const char *wanted;  /* $RMM_RUNTIME_DIR: this or none */
    const char *system;  /* taken if it exists and is writable */
    const char *session; /* $XDG_RUNTIME_DIR: "rmm" in it, if it is this user's */
    const char *shared;  /* "rmm-<uid>" in it */
    uid_t uid;
} rmm_runtime_roots_t;

/* The decision itself, for tests. */
bool rmm__runtime_dir_from(
    const rmm_runtime_roots_t *roots, char path[RMM_RUNTIME_DIR_BYTES], char *reason,
    size_t reason_bytes);

/*
 * Remove from dirfd what no process holds any more: segments found dead at least
 * RMM_SWEEP_AFTER_SECONDS ago, side files without their segment, temporary files of that
 * age. The first process to find a segment dead makes it small and marks it (mode 0400, mtime
 * now): a file's times do not tell when its process died. only_uid: the owner of the files, -1
 * for all. It works in steps, because a user may have left millions of names.
 */
typedef struct rmm_sweep rmm_sweep_t;
/* Needs dirfd to begin only. NULL: no descriptor, or no memory. */
rmm_sweep_t *rmm__sweep_begin(int dirfd, long only_uid);
/* Examine so many names. False: all is swept. */
bool rmm__sweep_step(rmm_sweep_t *sweep, uint32_t names);
/* Returns the number of files removed. */
int rmm__sweep_end(rmm_sweep_t *sweep);

/*
 * The same for a few files, drawn at random: a bounded time, however many there are. Where a
 * daemon keeps totals, which may be down for a while, segments stay for
 * RMM_SWEEP_WITH_TOTALS_SECONDS: their counts are not in the totals yet.
 */
int rmm__runtime_dir_sweep_some(int dirfd, long only_uid);

/*
 * The file system is full: make segments of dead processes small or, if all are, remove the
 * oldest, as many as make room for one that starts. False: there is nothing to free.
 */
bool rmm__runtime_dir_reclaim(int dirfd, long only_uid);

#endif /* RMM_SEGMENT_RUNTIME_DIR_H */
