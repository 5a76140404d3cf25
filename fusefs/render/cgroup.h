/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control group of a process, and the container that the group's name identifies. Pure
 * except cgroup_of(), which reads /proc/<pid>/cgroup.
 *
 * Threads: any.
 */
#ifndef RMM_FUSEFS_CGROUP_H
#define RMM_FUSEFS_CGROUP_H

#include <stddef.h>
#include <sys/types.h>

#define CGROUP_PATH_BYTES 512
#define CGROUP_CONTAINER_BYTES 65

/*
 * The path in the text of /proc/<pid>/cgroup: that of the unified hierarchy, unless it is the
 * root and another hierarchy says more. Characters that would split a column of a table are
 * written as \ooo, like in /proc/mounts; what is longer than the buffer is cut. "" if there is
 * none.
 */
void cgroup_parse(const char *text, char path[CGROUP_PATH_BYTES]);

/* The 64 hex digits by which container runtimes name their groups; "" if there are none. */
void cgroup_container(const char *path, char id[CGROUP_CONTAINER_BYTES]);

/* "": it is unknown. */
void cgroup_of(pid_t pid, char path[CGROUP_PATH_BYTES]);

#endif /* RMM_FUSEFS_CGROUP_H */
