/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory the daemon's control group has left.
 *
 * The kernel fails no allocation of a process whose group is full: it kills the process. So
 * what may become large (texts, snapshots, programs that are shown) is requested here first. It
 * is refused where less than an eighth of the limit, at most MEMORY_RESERVE_BYTES, would be left:
 * that is for memory that is taken without a request.
 *
 * The daemon's own group and all above it count, since each may have a limit; the rest is
 * the least of what they have left. A limit that is set later counts, too. The page cache of a
 * group, which the kernel gives up before it kills, counts as free.
 *
 * Not covered: the kernel counts a page when it is first written to. So memory that was granted
 * and not yet written to is granted again when the kernel is next queried, and what another
 * process of a group takes meanwhile is not foreseen. Only the reserve is there for both.
 *
 * Threads: any; a lock of its own, under which nothing else is taken.
 * Cost: the kernel is queried once in MEMORY_CREDIT_BYTES, under the lock; 20 to 50 us for each
 * group that has a limit. When less than that is left, each call that wants more than the rest
 * queries it, some of them with the model locked.
 */
#ifndef RMM_FUSEFS_MEMORY_H
#define RMM_FUSEFS_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_GROUPS_ROOT "/sys/fs/cgroup"
#define MEMORY_PATH_BYTES 1024
#define MEMORY_CREDIT_BYTES (UINT64_C(2) << 20)
#define MEMORY_RESERVE_BYTES (UINT64_C(256) << 20)

typedef struct memory {
    pthread_mutex_t lock;
    char group[MEMORY_PATH_BYTES]; /* folder of the group; "": none is known */
    size_t root_length;            /* of its path, what no group is above */
    bool is_unified;               /* the names of its files */
    uint64_t credit; /* bytes that may be taken before the kernel is queried again */
} memory_t;

/* Without a group, and so without a limit. */
void memory_init(memory_t *memory);
void memory_fini(memory_t *memory);

/* groups: the text of /proc/self/cgroup. root: where the hierarchies are mounted. */
void memory_find_group(memory_t *memory, const char *root, const char *groups);
/* Find the control group of this process. */
void memory_find_own_group(memory_t *memory);

/*
 * False: so many more bytes would leave too little. What is taken and freed need not be given
 * back: the kernel knows.
 */
bool memory_take(memory_t *memory, uint64_t bytes);

#endif /* RMM_FUSEFS_MEMORY_H */
