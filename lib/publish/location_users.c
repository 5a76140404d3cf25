/* SPDX-License-Identifier: Apache-2.0 */
/* Joining and leaving a location: see location_users.h. */
#include "publish/location_users.h"

#include <string.h>

#include "core/assert.h"
#include "core/fork.h"
#include "segment/segment_format.h"

static rmm_mutex_t lock = RMM_MUTEX_INITIALIZER; /* of all locations: joining is rare */
static rmm_location_user_t *users[RMM_SEGMENT_LOCATIONS]; /* lists */

/* Under the user's own lock, so that it may rely on the mode meanwhile. */
static void set_mode_locked(rmm_location_user_t *user, uint32_t mode)
{
    RMM_ASSERT_LOCKED(&lock);
    if (user->lock != NULL) {
        rmm__mutex_lock(user->lock);
    }
    /* release: pairs with rmm__location_be_user() */
    atomic_store_explicit(&user->mode, mode, memory_order_release);
    if (user->lock != NULL) {
        rmm__mutex_unlock(user->lock);
    }
}

static void enlist_locked(rmm_location_user_t *user)
{
    rmm_location_user_t *first = users[user->location];

    RMM_ASSERT_LOCKED(&lock);
    user->previous = NULL;
    user->next = first;
    if (first != NULL) {
        first->previous = user;
    }
    users[user->location] = user;
}

static void strike_locked(rmm_location_user_t *user)
{
    RMM_ASSERT_LOCKED(&lock);
    if (user->previous != NULL) {
        user->previous->next = user->next;
    } else {
        users[user->location] = user->next;
    }
    if (user->next != NULL) {
        user->next->previous = user->previous;
    }
}

static void join_locked(rmm_location_user_t *user)
{
    rmm_location_user_t *other = users[user->location];

    RMM_ASSERT_LOCKED(&lock);
    if (other != NULL && rmm__location_mode(other) == RMM_LOCATION_OWNS) {
        set_mode_locked(other, RMM_LOCATION_SHARES);
    }
    enlist_locked(user);
    set_mode_locked(
        user,
        other == NULL && user->lock != NULL ? RMM_LOCATION_OWNS : RMM_LOCATION_SHARES);
}

RMM_COLD void rmm__location_join(rmm_location_user_t *user)
{
    rmm__mutex_lock(&lock);
    if (rmm__location_mode(user) == RMM_LOCATION_OUTSIDE) { /* no other thread has */
        join_locked(user);
    }
    rmm__mutex_unlock(&lock);
}

void rmm__location_leave(rmm_location_user_t *user)
{
    rmm_location_user_t *left;

    rmm__mutex_lock(&lock);
    if (rmm__location_mode(user) != RMM_LOCATION_OUTSIDE) {
        strike_locked(user);
        set_mode_locked(user, RMM_LOCATION_OUTSIDE);
        left = users[user->location];
        if (left != NULL && left->next == NULL && left->lock != NULL) {
            set_mode_locked(left, RMM_LOCATION_OWNS);
        }
    }
    rmm__mutex_unlock(&lock);
}

static void forget_in_child(void)
{
    lock = (rmm_mutex_t)RMM_MUTEX_INITIALIZER;
    memset(users, 0, sizeof(users));
}

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_LOCATIONS, NULL, forget_in_child);
}
