/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of users; see budget.h.
 *
 * A user has either an entry or a part of `others`, never both: a new entry is made only
 * while `others` uses nothing, and an entry in use is never taken away. So what was taken
 * is given back where it was counted.
 */
#include "support/budget.h"

#include <string.h>

typedef struct limits {
    const char *name;
    uint64_t user, system, together;
} limits_t;

static const limits_t limits[BUDGET_KIND_COUNT] = {
#define X(id, name, user, system, together) {name, user, system, together},
    BUDGET_KIND_MAP(X)
#undef X
};

void budget_init(budget_t *budget, uid_t own_uid)
{
    memset(budget, 0, sizeof(*budget));
    pthread_mutex_init(&budget->lock, NULL);
    memory_init(&budget->memory);
    budget->own_uid = own_uid;
    budget->others.uid = BUDGET_OTHERS;
    budget->users[budget->count++].uid = 0;
    if (own_uid != 0) {
        budget->users[budget->count++].uid = own_uid;
    }
}

void budget_fini(budget_t *budget)
{
    memory_fini(&budget->memory);
    pthread_mutex_destroy(&budget->lock);
}

bool budget_is_system(const budget_t *budget, uid_t uid)
{
    return uid == 0 || uid == budget->own_uid;
}

static bool uses_nothing(const budget_user_t *user)
{
    for (uint32_t kind = 0; kind < BUDGET_KIND_COUNT; kind++) {
        if (user->used[kind] != 0) {
            return false;
        }
    }
    return true;
}

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static budget_user_t *find_user(budget_t *budget, uid_t uid)
{
    for (uint32_t i = 0; i < budget->count; i++) {
        if (budget->users[i].uid == uid) {
            return &budget->users[i];
        }
    }
    return NULL;
}

/* The user with the fewest refusals among those that use nothing; `others` keeps the count.
 * NULL: all are in use. */
static budget_user_t *find_idle(budget_t *budget)
{
    budget_user_t *idle = NULL;
    uint64_t fewest = 0;
    for (uint32_t i = 0; i < budget->count; i++) {
        budget_user_t *user = &budget->users[i];
        if (budget_is_system(budget, user->uid) || !uses_nothing(user)) {
            continue;
        }
        uint64_t refused = 0;
        for (uint32_t kind = 0; kind < BUDGET_KIND_COUNT; kind++) {
            refused = add_saturating(refused, user->refused[kind]);
        }
        if (idle == NULL || refused < fewest) {
            idle = user;
            fewest = refused;
        }
    }
    return idle;
}

static budget_user_t *make_room(budget_t *budget)
{
    if (budget->count < BUDGET_USERS_MAX) {
        return &budget->users[budget->count++];
    }
    budget_user_t *idle = find_idle(budget);
    for (uint32_t kind = 0; idle != NULL && kind < BUDGET_KIND_COUNT; kind++) {
        budget->others.refused[kind] =
            add_saturating(budget->others.refused[kind], idle->refused[kind]);
    }
    return idle;
}

/* Where the user is counted, or is to be counted. */
static budget_user_t *entry_of(budget_t *budget, uid_t uid)
{
    budget_user_t *user = find_user(budget, uid);
    if (user == NULL && uid != BUDGET_OTHERS && uses_nothing(&budget->others)) {
        user = make_room(budget);
        if (user != NULL) {
            *user = (budget_user_t){.uid = uid};
        }
    }
    return user != NULL ? user : &budget->others;
}

uint64_t budget_limit(const budget_t *budget, uid_t uid, budget_kind_t kind)
{
    return budget_is_system(budget, uid) ? limits[kind].system : limits[kind].user;
}

uint64_t budget_limit_together(budget_kind_t kind)
{
    return limits[kind].together;
}

const char *budget_kind_name(budget_kind_t kind)
{
    return limits[kind].name;
}

static bool fits(uint64_t used, uint64_t amount, uint64_t limit)
{
    return used <= limit && amount <= limit - used;
}

bool budget_take(budget_t *budget, uid_t uid, budget_kind_t kind, uint64_t amount)
{
    uint64_t *together = &budget->used_together[kind];
    pthread_mutex_lock(&budget->lock);
    budget_user_t *user = entry_of(budget, uid);
    bool system = budget_is_system(budget, uid);
    bool taken = fits(user->used[kind], amount, budget_limit(budget, uid, kind)) &&
                 (system || fits(*together, amount, limits[kind].together));
    if (taken) {
        user->used[kind] += amount;
        *together += system ? 0 : amount;
    } else {
        user->refused[kind] = add_saturating(user->refused[kind], 1);
    }
    pthread_mutex_unlock(&budget->lock);
    return taken;
}

void budget_refuse(budget_t *budget, uid_t uid, budget_kind_t kind)
{
    pthread_mutex_lock(&budget->lock);
    budget_user_t *user = entry_of(budget, uid);
    user->refused[kind] = add_saturating(user->refused[kind], 1);
    pthread_mutex_unlock(&budget->lock);
}

void budget_give(budget_t *budget, uid_t uid, budget_kind_t kind, uint64_t amount)
{
    pthread_mutex_lock(&budget->lock);
    budget_user_t *user = find_user(budget, uid);
    user = user != NULL ? user : &budget->others;
    uint64_t given = amount < user->used[kind] ? amount : user->used[kind];
    user->used[kind] -= given;
    budget->used_together[kind] -= budget_is_system(budget, uid) ? 0 : given;
    pthread_mutex_unlock(&budget->lock);
}

uint64_t budget_refused(budget_t *budget, uid_t uid, budget_kind_t kind)
{
    pthread_mutex_lock(&budget->lock);
    const budget_user_t *user = find_user(budget, uid);
    uint64_t refused = (user != NULL ? user : &budget->others)->refused[kind];
    pthread_mutex_unlock(&budget->lock);
    return refused;
}

bool budget_user_at(budget_t *budget, uint32_t position, budget_user_t *user_out)
{
    pthread_mutex_lock(&budget->lock);
    bool found = position <= budget->count;
    if (found) {
        *user_out = position < budget->count ? budget->users[position] : budget->others;
    }
    pthread_mutex_unlock(&budget->lock);
    return found;
}
