/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides a limit; see shares.h. The level that each may reach rises until everything is
 * given: users who want less than an equal part leave the rest of it to the others.
 */
#include "support/shares.h"

static share_t *share_of(shares_t *shares, uid_t uid)
{
    uint32_t at = 0;
    while (at < shares->count && shares->users[at].uid != uid) {
        at++;
    }
    if (at == SHARES_USERS_MAX) {
        return &shares->users[SHARES_USERS_MAX - 1];
    }
    if (at == shares->count) {
        shares->users[shares->count++] = (share_t){.uid = uid};
    }
    return &shares->users[at];
}

void shares_want(shares_t *shares, uid_t uid, uint64_t amount)
{
    share_of(shares, uid)->wanted += amount;
}

/* Give each that is not content an equal part of what is left. What remains. */
static uint64_t give_part(shares_t *shares, uint64_t left, uint64_t part)
{
    for (uint32_t i = 0; i < shares->count; i++) {
        share_t *share = &shares->users[i];
        uint64_t missing = share->wanted - share->allowed;
        uint64_t given = missing < part ? missing : part;
        share->allowed += given;
        left -= given;
    }
    return left;
}

static uint32_t count_wanting(const shares_t *shares)
{
    uint32_t wanting = 0;
    for (uint32_t i = 0; i < shares->count; i++) {
        wanting += shares->users[i].allowed < shares->users[i].wanted;
    }
    return wanting;
}

/* Each round satisfies at least one user, or is the last one. */
void shares_allot(shares_t *shares, uint64_t total)
{
    uint32_t wanting = count_wanting(shares);
    while (wanting > 0 && total >= wanting) {
        total = give_part(shares, total, total / wanting);
        wanting = count_wanting(shares);
    }
}

bool shares_take(shares_t *shares, uid_t uid, uint64_t amount)
{
    share_t *share = share_of(shares, uid);
    if (amount > share->allowed - share->taken) {
        share->refused++;
        return false;
    }
    share->taken += amount;
    return true;
}

void shares_refuse(shares_t *shares, uid_t uid, uint64_t count)
{
    share_of(shares, uid)->refused += count;
}

uint64_t shares_refused(const shares_t *shares)
{
    uint64_t refused = 0;
    for (uint32_t i = 0; i < shares->count; i++) {
        refused += shares->users[i].refused;
    }
    return refused;
}
