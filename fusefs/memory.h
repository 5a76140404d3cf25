/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory the daemon's control group has left.
 *
 * The kernel fails no allocation of a process whose group is full: it kills the process. So
 * what may become large (texts, snapshots, programs that are shown) is asked for here first, and is
 * refused while an eighth of the limit is left: for what is not asked for.
 *
 * The group that counts is the one with the lowest limit among the daemon's own and those above
 * it. Its page cache, which the kernel gives up before it kills, counts as free.
 *
 * Threads: any; a lock of its own, under which nothing else is taken.
 * Cost: the kernel is asked once in MEMORY_CREDIT_BYTES, which takes some 50 us.
 */
#ifndef RMM_FUSEFS_MEMORY_H
#define RMM_FUSEFS_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define MEMORY_GROUPS_ROOT "/sys/fs/cgroup"
#define MEMORY_PATH_BYTES 1024
#define MEMORY_CREDIT_BYTES (UINT64_C(2) << 20)

typedef struct memory {
    pthread_mutex_t lock;
    char group[MEMORY_PATH_BYTES]; /* folder of the group; "": no limit */
    bool is_unified;               /* the names of its files */
    uint64_t credit; /* bytes that may be taken before the kernel is asked again */
} memory_t;

/* Without a limit. */
void memory_init(memory_t *memory);
void memory_fini(memory_t *memory);

/* groups: the text of /proc/self/cgroup. root: where the hierarchies are mounted. */
void memory_find_group(memory_t *memory, const char *root, const char *groups);
/* Of this process. */
void memory_find_own_group(memory_t *memory);

/*
 * False: so many more bytes would leave too little. What is taken and freed need not be given
 * back: the kernel knows.
 */
bool memory_take(memory_t *memory, uint64_t bytes);

#endif /* RMM_FUSEFS_MEMORY_H */
