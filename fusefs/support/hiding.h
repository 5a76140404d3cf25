/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a user sees of the processes of other users, as in /proc with hidepid (proc(5)):
 *
 *   off         everything but what only its owner may read
 *   noaccess    their directories under proc/ are listed, but cannot be entered
 *   invisible   nor are they listed
 *
 * With either of the last two, texts about several processes leave out those of other users.
 * Sums of a GPU stay sums over all. Root, the daemon's user and the members of one group are
 * shown everything.
 *
 * Set once, before the first reader. Threads: any.
 */
#ifndef RMM_FUSEFS_HIDING_H
#define RMM_FUSEFS_HIDING_H

#include <stdbool.h>
#include <sys/types.h>

typedef enum hiding_level {
    HIDING_OFF,
    HIDING_NOACCESS,
    HIDING_INVISIBLE,
    HIDING_LEVEL_COUNT
} hiding_level_t;

typedef struct hiding {
    hiding_level_t level;
    bool has_group;
    gid_t group; /* whose members are shown everything */
    uid_t own_uid;
} hiding_t;

/* Is a process of `owner` shown to the user `uid`? is_member: of the group. */
static inline bool
hiding_shows(const hiding_t *hiding, uid_t owner, uid_t uid, bool is_member)
{
    return hiding->level == HIDING_OFF || uid == owner || uid == 0 ||
           uid == hiding->own_uid || is_member;
}

#endif /* RMM_FUSEFS_HIDING_H */
