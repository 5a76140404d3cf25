/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides a limit fairly between users (max-min fairness): users who need little get all of it,
 * and the others get equal parts of the rest. So no user's programs displace those of another
 * from a text about the whole node.
 *
 *   shares_want() for everything, shares_allot() once, then shares_take() for everything.
 *
 * Knows nothing of what is divided. Threads: the owner's.
 */
#ifndef RMM_FUSEFS_SHARES_H
#define RMM_FUSEFS_SHARES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SHARES_USERS_MAX 256u /* further ones have the last entry together */

typedef struct share {
    uid_t uid;
    uint64_t wanted, allowed, taken;
    uint64_t refused; /* how often, not how much */
} share_t;

typedef struct shares {
    share_t users[SHARES_USERS_MAX];
    uint32_t count;
} shares_t;

void shares_want(shares_t *shares, uid_t uid, uint64_t amount);
void shares_allot(shares_t *shares, uint64_t total);

/* False, and counted: it is more than is left of this user's share. */
bool shares_take(shares_t *shares, uid_t uid, uint64_t amount);
/* Count what was not even tried. */
void shares_refuse(shares_t *shares, uid_t uid, uint64_t count);

uint64_t shares_refused(const shares_t *shares);

#endif /* RMM_FUSEFS_SHARES_H */
