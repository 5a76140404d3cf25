/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon that has limits of groups in force says so by an empty file in each directory of
 * segments, "limits.<its uid>". A program looks for it once, when its segment has its name, and
 * then asks for its share before it takes memory: so a program that starts takes nothing that the
 * limit does not allow, although the daemon has yet to find it.
 *
 * Heard are root's daemon, that of the owner of the directory (root in a user namespace, where its
 * uid is not 0) and the user's own. A file of any other user would make programs wait in vain.
 */
#ifndef RMM_SEGMENT_LIMITS_MARK_H
#define RMM_SEGMENT_LIMITS_MARK_H

#include <stdbool.h>
#include <sys/types.h>

#define RMM_LIMITS_MARK_BYTES 32

void rmm__limits_mark_name(uid_t uid, char name[RMM_LIMITS_MARK_BYTES]);

/* The program's question. */
bool rmm__limits_are_in_force(int dirfd);

/* The daemon's answer. Whatever else has the name stays. */
void rmm__limits_mark(int dirfd, bool in_force);

#endif /* RMM_SEGMENT_LIMITS_MARK_H */
