/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of the runtime directory that has no name yet under which anybody looks for it:
 * ".<uid>.<16 hex digits>.tmp". One that its maker left is removed by a sweep.
 */
#ifndef RMM_SEGMENT_TEMPORARY_FILE_H
#define RMM_SEGMENT_TEMPORARY_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RMM_TEMPORARY_NAME_BYTES 64

/* For names: not guessable, unless the kernel has no randomness yet. */
uint64_t rmm__random64(void);

/* Make it, empty, to read and write, mode 0600. A descriptor, or a negative errno. */
int rmm__temporary_file_open(int dirfd, uid_t uid, char name[RMM_TEMPORARY_NAME_BYTES]);

/* A file of this process may be so large. Where it may not, a write, ftruncate() or
 * posix_fallocate() would be SIGXFSZ, which ends the process. */
bool rmm__file_size_is_allowed(uint64_t bytes);

#endif /* RMM_SEGMENT_TEMPORARY_FILE_H */
