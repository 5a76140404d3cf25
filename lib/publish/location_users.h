/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which resources count users' memory at a location, and how. The figures of a location are
 * sums over all its resources, and an atomic addition costs as much as the rest of a pool's
 * hot path. Most programs have one pool on a GPU. So if exactly one resource counts at a
 * location, and one lock of its own protects all its accounting, it OWNS the location's
 * figures and writes them with plain stores. Otherwise all resources SHARE them, with atomic
 * additions. Readers see no difference: every figure is correct at any time.
 *
 * Life of a user. A user that is OUTSIDE joins with its first request that counts (once, a slow
 * path), and leaves when the resource is destroyed. A single user that has a lock owns the
 * location. When a second user joins, ownership ends under the owner's lock, so the owner is in
 * no critical section. When all but one have left, that one owns the location again, if it has
 * a lock.
 *
 * Invariants:
 *  - At most one user of a location owns it; then it is the only user and the only writer.
 *  - `mode` of a user that has a lock changes only under that lock: a thread that holds the
 *    lock may rely on the mode until the unlock.
 *  - Only users that have joined write figures. "Figures" here are those of users' blocks and
 *    their padding; reserved bytes, refusals and the driver's free bytes are always atomic.
 *
 * Locking: one lock protects the lists and orders all changes of mode. Users' locks are taken
 * under it, so a thread that joins or leaves must hold no lock of a resource.
 *
 * Fork: the child's figures begin anew in private memory and the resources that it
 * inherits count no more, so it begins without users.
 */
#ifndef RMM_PUBLISH_LOCATION_USERS_H
#define RMM_PUBLISH_LOCATION_USERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/mutex.h"
#include "segment/stat_fields.h"

#define RMM_LOCATION_OUTSIDE 0u
#define RMM_LOCATION_SHARES 1u
#define RMM_LOCATION_OWNS 2u

/* Zero but for the first two when its resource begins. */
typedef struct rmm_location_user {
    uint32_t location;
    rmm_mutex_t
        *lock; /* under which its resource writes all accounting; NULL: it has none */
    _Atomic(uint32_t) mode;                    /* RMM_LOCATION_* */
    struct rmm_location_user *next, *previous; /* users of the location */
} rmm_location_user_t;

/* First request that counts of a user that is OUTSIDE; others: no effect. */
void rmm__location_join(rmm_location_user_t *user);

/* The resource ends, its figures have left. Its lock must still exist. A user that is OUTSIDE: no
 * effect. */
void rmm__location_leave(rmm_location_user_t *user);

static inline uint32_t rmm__location_mode(const rmm_location_user_t *user)
{
    /* relaxed: an owner's changes only under the lock that is held */
    return atomic_load_explicit(&user->mode, memory_order_relaxed);
}

/* Before a request that counts. */
static inline void rmm__location_be_user(rmm_location_user_t *user)
{
    /* acquire: pairs with set_mode(); the former owner's stores come before */
    if (RMM_ACCOUNTING_ON &&
        __builtin_expect(
            atomic_load_explicit(&user->mode, memory_order_acquire) ==
                RMM_LOCATION_OUTSIDE,
            0)) {
        rmm__location_join(user);
    }
}

/* May this user write plainly? Its lock is held. */
static inline bool rmm__location_is_owned_locked(const rmm_location_user_t *user)
{
    if (RMM_ACCOUNTING_ON && rmm__location_mode(user) != RMM_LOCATION_OWNS) {
        return false;
    }
    RMM_ASSERT_LOCKED(user->lock);
    return true;
}

#endif /* RMM_PUBLISH_LOCATION_USERS_H */
