/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the programs of the machine would see a mount that the daemon makes. In a container the
 * folder of segments may be the machine's while the mount table is the container's own: a mount
 * over it hides the segments from the daemon, and nobody is told.
 *
 * What is known comes from the mount tables of this process and of process 1. Where process 1 is
 * the container's own, the machine's table cannot be read.
 *
 * Threads: any. Cost: two mount tables are read.
 */
#ifndef RMM_FUSEFS_REACH_H
#define RMM_FUSEFS_REACH_H

#include <stdbool.h>

typedef enum reach {
    REACH_PROGRAMS, /* they see it, or the folder is nobody else's */
    REACH_CONTAINER, /* the folder is the machine's, the mount would be the container's */
    REACH_UNKNOWN    /* the folder was given to a container, by whom cannot be seen */
} reach_t;

/* A mount over the folder fd, which may be O_PATH. */
reach_t reach_of_mount(int fd);

#endif /* RMM_FUSEFS_REACH_H */
