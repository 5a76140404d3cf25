/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a process a member of a group? The kernel tells a file system only the first group of the
 * caller; further ones are in /proc. Our own reader of it, because that of libfuse 3.14 reads past
 * the end of its buffer.
 *
 * Threads: any.
 */
#ifndef RMM_FUSEFS_GROUP_MEMBERS_H
#define RMM_FUSEFS_GROUP_MEMBERS_H

#include <stdbool.h>
#include <sys/types.h>

/* In the text of /proc/<pid>/status. */
bool groups_parse(const char *status, gid_t group);

/* Is the thread in the group? False also if that is unknown: it has ended, is in another pid
 * namespace, or has more than about 1,400 groups before this one. */
bool groups_have(pid_t thread, gid_t group);

#endif /* RMM_FUSEFS_GROUP_MEMBERS_H */
