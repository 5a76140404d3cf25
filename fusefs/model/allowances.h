/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many slots of each user a walk over all segments may read. A sum of free memory
 * reads every slot with the model's lock held, and a user may have 1024 segments of 256 slots,
 * full, or constantly being written. So each user has a limit (budget.h, sum_slots). Segments
 * beyond the limit are left out of the sum, which counts as one refusal.
 *
 * Threads: the owner's.
 */
#ifndef RMM_FUSEFS_ALLOWANCES_H
#define RMM_FUSEFS_ALLOWANCES_H

#include "model/slots.h"
#include "support/budget.h"

#define ALLOWANCES_USERS_MAX 64u /* further ones have the last entry together */
#define ALLOWANCES_RETRIES 64u   /* of each user */

typedef struct user_allowance {
    uid_t uid;
    slot_allowance_t left;
} user_allowance_t;

typedef struct allowances {
    budget_t *budget;
    uint32_t slots_together; /* left for all users but root and the daemon's */
    uint32_t count;
    user_allowance_t users[ALLOWANCES_USERS_MAX];
} allowances_t;

/* budget NULL: only retries are limited. */
void allowances_init(allowances_t *allowances, budget_t *budget);

/* The rest of a user's allowance. */
slot_allowance_t *allowances_of(allowances_t *allowances, uid_t uid);

/* At the end: count the users who wanted more. */
void allowances_tell(const allowances_t *allowances);

#endif /* RMM_FUSEFS_ALLOWANCES_H */
