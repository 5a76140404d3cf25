/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where segments are. One decision for both sides: $RMM_RUNTIME_DIR, else /run/rmm where
 * it exists and is writable, else $XDG_RUNTIME_DIR/rmm, else /dev/shm/rmm-<uid> (0700).
 */
#ifndef RMM_PUBLISH_RUNTIME_DIR_H
#define RMM_PUBLISH_RUNTIME_DIR_H

#include <stdbool.h>
#include <stddef.h>

#define RMM_RUNTIME_DIR_BYTES 256
#define RMM_SYSTEM_RUNTIME_DIR "/run/rmm"
#define RMM_SWEEP_AFTER_SECONDS 60

/*
 * The directory that this process writes its segment to; made if missing (0700, but for
 * the system's). False with a reason (one line) if there is none.
 */
bool rmm__runtime_dir(char path[RMM_RUNTIME_DIR_BYTES], char *reason, size_t reason_bytes);

/*
 * Remove segments (with their side files) in dirfd that nobody has held for
 * RMM_SWEEP_AFTER_SECONDS, and abandoned temporary files of that age. only_uid: -1 for
 * all. Returns how many.
 */
int rmm__runtime_dir_sweep(int dirfd, long only_uid);

#endif /* RMM_PUBLISH_RUNTIME_DIR_H */
