/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots from the tree of rmmfs: where only the mount can be seen, as in a container, and of
 * what the daemon alone knows (the peak of a GPU). Figures come from the file `json`, command
 * lines from `proc/<pid>/cmdline`, once a program.
 *
 * A daemon that hangs blocks its readers, so a process of its own reads, and a thread waits for it.
 * No caller waits longer than it wants; an answer that comes too late is taken by the next call. A
 * path is opened for each snapshot: a daemon that was started again is found.
 *
 * Locking: `lock` protects state, is_ending and the reading unless state is MOUNT_READING: then
 * the thread has it.
 */
#ifndef RMM_TOP_MOUNT_H
#define RMM_TOP_MOUNT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "top/mount_read.h"

typedef enum mount_state { MOUNT_IDLE, MOUNT_READING, MOUNT_READY } mount_state_t;

typedef struct mount {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    mount_state_t state;
    bool is_ending, is_started;
    mount_reading_t reading;
    char reason
        [MOUNT_REASON_BYTES]; /* why the last call got nothing; "": it got something */
    uint64_t answered_ns;     /* CLOCK_MONOTONIC: the last that got something */
} mount_t;

/* False with one line in message: it is no tree of rmmfs, or it does not answer. */
bool mount_open(mount_t *mount, const char *path, char *message, size_t message_bytes);
void mount_close(mount_t *mount);

/* Fill `node` anew; or leave it as it was, with the reason. Waits at most so long. False: no
 * memory. */
bool mount_take(mount_t *mount, node_t *node, uint64_t wait_ns);

#endif /* RMM_TOP_MOUNT_H */
