/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a pid against the owner and the start time of a process. A pid alone proves nothing: any
 * process can write one into a header, and pids are given again.
 *
 * A process in a time namespace sees another start time than we: its boot clock is shifted. The
 * kernel reports by how much (/proc/<pid>/timens_offsets, time_namespaces(7)).
 *
 * Cost: two system calls and one small read; two reads more where the start times differ. Threads:
 * any.
 */
#ifndef RMM_SEGMENT_PROCESS_CHECK_H
#define RMM_SEGMENT_PROCESS_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* True if that process exists, belongs to `uid` and started then. False with errno EMFILE or
 * ENFILE: perhaps, no descriptor was left to look with. */
bool rmm__process_is(pid_t pid, uid_t uid, uint64_t start_time_ticks);
bool rmm__process_exists(pid_t pid);
/* True if `uid` is its effective user: the owner of its folder in /proc. */
bool rmm__process_belongs_to(pid_t pid, uid_t uid);

#endif /* RMM_SEGMENT_PROCESS_CHECK_H */
