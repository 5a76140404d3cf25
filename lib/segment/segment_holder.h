/* SPDX-License-Identifier: Apache-2.0 */
/* The lock that shows that a file's process is alive; see segment_holder.c. */
#ifndef RMM_SEGMENT_HOLDER_H
#define RMM_SEGMENT_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A line of /proc/locks: the process that took an exclusive flock on a file. */
typedef struct rmm_lock_line {
    uint64_t device, inode;
    pid_t pid; /* as this process sees it */
} rmm_lock_line_t;

/* False: another kind of lock, one that waits, or a process that is not seen from here. */
bool rmm__lock_line_parse(const char *line, rmm_lock_line_t *lock_out);

/* True while somebody holds the exclusive lock on the file behind fd. */
bool rmm__file_is_held(int fd);

#endif /* RMM_SEGMENT_HOLDER_H */
