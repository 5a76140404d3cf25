/* SPDX-License-Identifier: Apache-2.0 */
/* Shares out limits; see apportion.h. */
#include "model/apportion.h"

#include <stddef.h>

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* --- charges -------------------------------------------------------------------------- */

/* One that may take anything is charged with what it uses. */
static uint64_t charge_of(const claimant_t *claimant)
{
    const claim_t *claim = claimant->claim;
    bool is_bound = claimant->takes_shares && claim->share_bytes != APPORTION_NO_SHARE;
    return is_bound && claim->share_bytes > claim->used_bytes ? claim->share_bytes
                                                              : claim->used_bytes;
}

static uint64_t room_of(const quota_t *quota)
{
    return quota->limit_bytes > quota->charged_bytes
               ? quota->limit_bytes - quota->charged_bytes
               : 0;
}

static bool is_over(const quota_t *quota)
{
    return quota->charged_bytes > quota->limit_bytes;
}

static bool is_in(const claimant_t *claimant, uint32_t quota)
{
    for (uint32_t i = 0; i < claimant->quota_count; i++) {
        if (claimant->quotas[i] == quota) {
            return true;
        }
    }
    return false;
}

/* Sums can be at their end because of a segment that lies: so they are made anew. */
static void charge_quotas(apportion_t *run)
{
    for (uint32_t i = 0; i < run->quota_count; i++) {
        run->quotas[i].charged_bytes = 0;
        run->quotas[i].claimant_count = 0;
    }
    for (uint32_t i = 0; i < run->claimant_count; i++) {
        const claimant_t *claimant = &run->claimants[i];
        for (uint32_t k = 0; k < claimant->quota_count; k++) {
            quota_t *quota = &run->quotas[claimant->quotas[k]];
            quota->charged_bytes = add(quota->charged_bytes, charge_of(claimant));
            quota->claimant_count++;
        }
    }
}

static void recharge(
    const apportion_t *run, const claimant_t *claimant, uint64_t before, uint64_t now)
{
    for (uint32_t k = 0; k < claimant->quota_count; k++) {
        uint64_t *charged = &run->quotas[claimant->quotas[k]].charged_bytes;
        *charged = add(*charged > before ? *charged - before : 0, now);
    }
}

static void read_use(const apportion_t *run, claimant_t *claimant)
{
    uint64_t before = charge_of(claimant);
    claimant->claim->used_bytes = run->read(claimant, run->arg);
    claimant->is_read = true;
    recharge(run, claimant, before, charge_of(claimant));
}

/* --- shares --------------------------------------------------------------------------- */

static const quota_t *least_quota(const apportion_t *run, const claimant_t *claimant)
{
    const quota_t *least = NULL;
    for (uint32_t k = 0; k < claimant->quota_count; k++) {
        const quota_t *quota = &run->quotas[claimant->quotas[k]];
        if (least == NULL || room_of(quota) < room_of(least) ||
            (room_of(quota) == room_of(least) &&
             quota->limit_bytes < least->limit_bytes)) {
            least = quota;
        }
    }
    return least;
}

/* A lower one: what it uses is read when the program has it. */
static void
set_share(const apportion_t *run, claimant_t *claimant, uint64_t share_bytes)
{
    uint64_t before = charge_of(claimant);
    bool is_lower =
        share_bytes < claimant->claim->share_bytes || !claimant->claim->is_known;
    claimant->claim->share_bytes = share_bytes;
    claimant->claim->is_known = true;
    recharge(run, claimant, before, charge_of(claimant));
    run->set(claimant, least_quota(run, claimant), run->arg);
    if (is_lower) {
        read_use(run, claimant);
    }
}

/* One that was free to take anything, or of which is not known what it may, may take nothing
 * until it is known what it uses; one that is in no quota, anything. */
static void settle(apportion_t *run)
{
    for (uint32_t i = 0; i < run->claimant_count; i++) {
        claimant_t *claimant = &run->claimants[i];
        const claim_t *claim = claimant->claim;
        bool is_free = claim->share_bytes == APPORTION_NO_SHARE;
        if (!claimant->takes_shares) {
            read_use(run, claimant);
        } else if (claimant->quota_count == 0 && (!is_free || !claim->is_known)) {
            set_share(run, claimant, APPORTION_NO_SHARE);
        } else if (claimant->quota_count > 0 && (is_free || !claim->is_known)) {
            set_share(run, claimant, 0);
        }
    }
}

/* --- room ----------------------------------------------------------------------------- */

static void read_all_in(const apportion_t *run, uint32_t quota)
{
    for (uint32_t i = 0; i < run->claimant_count; i++) {
        claimant_t *claimant = &run->claimants[i];
        if (is_in(claimant, quota) && !claimant->is_read) {
            read_use(run, claimant);
        }
    }
}

/* Take unused parts of shares until the quota has so much room. */
static void
make_room(apportion_t *run, uint32_t quota, uint64_t bytes, const claimant_t *asking)
{
    read_all_in(run, quota);
    for (uint32_t i = 0; i < run->claimant_count; i++) {
        claimant_t *claimant = &run->claimants[i];
        const quota_t *of = &run->quotas[quota];
        const claim_t *claim = claimant->claim;
        if (room_of(of) >= bytes && !is_over(of)) {
            return;
        }
        if (claimant != asking && claimant->takes_shares && is_in(claimant, quota) &&
            claim->share_bytes > claim->used_bytes) {
            uint64_t unused = claim->share_bytes - claim->used_bytes;
            uint64_t lack = is_over(of)
                                ? add(of->charged_bytes - of->limit_bytes, bytes)
                                : bytes - room_of(of);
            set_share(run, claimant, claim->share_bytes - least_of(unused, lack));
        }
    }
}

/*
 * More is used than the limit. Each share is lowered to what its claimant would use if the others
 * kept what they use: then any of them may free memory and take some again, and the sum is not
 * above the limit but for what is used now.
 */
static void squeeze(apportion_t *run, uint32_t quota)
{
    uint64_t over = run->quotas[quota].charged_bytes - run->quotas[quota].limit_bytes;
    for (uint32_t i = 0; i < run->claimant_count; i++) {
        claimant_t *claimant = &run->claimants[i];
        if (claimant->takes_shares && is_in(claimant, quota)) {
            uint64_t used = claimant->claim->used_bytes;
            uint64_t rest = used > over ? used - over : 0;
            if (claimant->claim->share_bytes > rest) {
                set_share(run, claimant, rest);
            }
        }
    }
}

static void obey_limits(apportion_t *run)
{
    for (uint32_t i = 0; i < run->quota_count; i++) {
        if (is_over(&run->quotas[i])) {
            make_room(run, i, 0, NULL);
        }
        if (is_over(&run->quotas[i])) {
            squeeze(run, i);
        }
    }
}

static bool is_over_any(const apportion_t *run, const claimant_t *claimant)
{
    for (uint32_t k = 0; k < claimant->quota_count; k++) {
        if (is_over(&run->quotas[claimant->quotas[k]])) {
            return true;
        }
    }
    return false;
}

/* What it would use if the others kept what they are charged with. */
static uint64_t left_for(const apportion_t *run, const claimant_t *claimant)
{
    uint64_t left = claimant->claim->used_bytes;
    for (uint32_t k = 0; k < claimant->quota_count; k++) {
        const quota_t *quota = &run->quotas[claimant->quotas[k]];
        uint64_t others = quota->charged_bytes - charge_of(claimant);
        uint64_t rest = quota->limit_bytes > others ? quota->limit_bytes - others : 0;
        left = least_of(left, rest);
    }
    return left;
}

/* Below what is used, which is charged anyway. */
static void raise_low_shares(apportion_t *run)
{
    for (uint32_t i = 0; i < run->claimant_count; i++) {
        claimant_t *claimant = &run->claimants[i];
        if (claimant->takes_shares &&
            claimant->claim->share_bytes < left_for(run, claimant)) {
            set_share(run, claimant, left_for(run, claimant));
        }
    }
}

/* --- requests ------------------------------------------------------------------------- */

static uint64_t room_for(const apportion_t *run, const claimant_t *claimant)
{
    uint64_t room = UINT64_MAX;
    for (uint32_t k = 0; k < claimant->quota_count; k++) {
        room = least_of(room, room_of(&run->quotas[claimant->quotas[k]]));
    }
    return room;
}

/* Of what is left beyond `lack` an equal part. */
static uint64_t
extra_for(const apportion_t *run, const claimant_t *claimant, uint64_t lack)
{
    uint64_t extra = UINT64_MAX;
    for (uint32_t k = 0; k < claimant->quota_count; k++) {
        const quota_t *quota = &run->quotas[claimant->quotas[k]];
        extra = least_of(extra, (room_of(quota) - lack) / quota->claimant_count);
    }
    return extra;
}

static bool is_hopeless(const apportion_t *run, const claimant_t *claimant)
{
    for (uint32_t k = 0; k < claimant->quota_count; k++) {
        if (claimant->wanted_bytes > run->quotas[claimant->quotas[k]].limit_bytes) {
            return true;
        }
    }
    return false;
}

static void grant(apportion_t *run, claimant_t *claimant)
{
    const claim_t *claim = claimant->claim;
    read_use(run, claimant);
    uint64_t need = add(claim->used_bytes, claimant->wanted_bytes);
    if (claimant->quota_count == 0 || need <= claim->share_bytes ||
        is_hopeless(run, claimant)) {
        return;
    }
    uint64_t charge = charge_of(claimant), lack = need - charge;
    for (uint32_t k = 0; k < claimant->quota_count; k++) {
        const quota_t *quota = &run->quotas[claimant->quotas[k]];
        if (room_of(quota) < lack) {
            make_room(run, claimant->quotas[k], lack, claimant);
        }
    }
    uint64_t room = room_for(run, claimant);
    if (is_over_any(run, claimant)) {
        return;
    }
    if (room >= lack) {
        set_share(run, claimant, add(need, extra_for(run, claimant, lack)));
    } else if (room > 0) { /* one of several threads may have enough of it */
        set_share(run, claimant, charge + room);
    }
}

void apportion_run(apportion_t *run)
{
    for (uint32_t i = 0; i < run->claimant_count; i++) {
        run->claimants[i].is_read = false;
    }
    charge_quotas(run);
    settle(run);
    obey_limits(run);
    raise_low_shares(run);
    for (uint32_t i = 0; i < run->claimant_count; i++) {
        claimant_t *claimant = &run->claimants[(run->first + i) % run->claimant_count];
        if (claimant->asks && claimant->takes_shares) {
            grant(run, claimant);
        }
    }
}
