/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of a walk over all segments; see allowances.h.
 */
#include "model/allowances.h"

void allowances_init(allowances_t *allowances, budget_t *budget)
{
    allowances->budget = budget;
    allowances->count = 0;
    allowances->slots_together =
        budget != NULL ? (uint32_t)budget_limit_together(BUDGET_SUM_SLOTS) : UINT32_MAX;
}

static slot_allowance_t make_allowance(allowances_t *allowances, uid_t uid)
{
    budget_t *budget = allowances->budget;
    slot_allowance_t left = {.slots = UINT32_MAX, .retries = ALLOWANCES_RETRIES};
    if (budget != NULL) {
        left.slots = (uint32_t)budget_limit(budget, uid, BUDGET_SUM_SLOTS);
        left.slots_together =
            budget_is_system(budget, uid) ? NULL : &allowances->slots_together;
    }
    return left;
}

slot_allowance_t *allowances_of(allowances_t *allowances, uid_t uid)
{
    uint32_t at = 0;
    while (at < allowances->count && allowances->users[at].uid != uid) {
        at++;
    }
    if (at == ALLOWANCES_USERS_MAX) {
        return &allowances->users[ALLOWANCES_USERS_MAX - 1].left;
    }
    user_allowance_t *user = &allowances->users[at];
    if (at == allowances->count) {
        allowances->count++;
        *user = (user_allowance_t){uid, make_allowance(allowances, uid)};
    }
    return &user->left;
}

void allowances_tell(const allowances_t *allowances)
{
    for (uint32_t i = 0; i < allowances->count; i++) {
        const user_allowance_t *user = &allowances->users[i];
        if (user->left.is_over) {
            budget_refuse(allowances->budget, user->uid, BUDGET_SUM_SLOTS);
        }
    }
}
