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
static uint64_t charge_of(const party_t *party)
{
    const claim_t *claim = party->claim;
    bool is_bound = party->takes_shares && claim->share_bytes != APPORTION_NO_SHARE;
    return is_bound && claim->share_bytes > claim->used_bytes ? claim->share_bytes
                                                              : claim->used_bytes;
}

static uint64_t room_of(const pot_t *pot)
{
    return pot->limit_bytes > pot->charged_bytes ? pot->limit_bytes - pot->charged_bytes
                                                 : 0;
}

static bool is_over(const pot_t *pot)
{
    return pot->charged_bytes > pot->limit_bytes;
}

static bool is_in(const party_t *party, uint32_t pot)
{
    for (uint32_t i = 0; i < party->pot_count; i++) {
        if (party->pots[i] == pot) {
            return true;
        }
    }
    return false;
}

/* Sums can be at their end because of a segment that lies: so they are made anew. */
static void charge_pots(apportion_t *run)
{
    for (uint32_t i = 0; i < run->pot_count; i++) {
        run->pots[i].charged_bytes = 0;
        run->pots[i].party_count = 0;
    }
    for (uint32_t i = 0; i < run->party_count; i++) {
        const party_t *party = &run->parties[i];
        for (uint32_t k = 0; k < party->pot_count; k++) {
            pot_t *pot = &run->pots[party->pots[k]];
            pot->charged_bytes = add(pot->charged_bytes, charge_of(party));
            pot->party_count++;
        }
    }
}

static void
recharge(const apportion_t *run, const party_t *party, uint64_t before, uint64_t now)
{
    for (uint32_t k = 0; k < party->pot_count; k++) {
        uint64_t *charged = &run->pots[party->pots[k]].charged_bytes;
        *charged = add(*charged > before ? *charged - before : 0, now);
    }
}

static void read_use(const apportion_t *run, party_t *party)
{
    uint64_t before = charge_of(party);
    party->claim->used_bytes = run->read(party, run->arg);
    party->is_read = true;
    recharge(run, party, before, charge_of(party));
}

/* --- shares --------------------------------------------------------------------------- */

static const pot_t *least_pot(const apportion_t *run, const party_t *party)
{
    const pot_t *least = NULL;
    for (uint32_t k = 0; k < party->pot_count; k++) {
        const pot_t *pot = &run->pots[party->pots[k]];
        if (least == NULL || room_of(pot) < room_of(least) ||
            (room_of(pot) == room_of(least) && pot->limit_bytes < least->limit_bytes)) {
            least = pot;
        }
    }
    return least;
}

/* A lower one: what it uses is read when the program has it. */
static void set_share(const apportion_t *run, party_t *party, uint64_t share_bytes)
{
    uint64_t before = charge_of(party);
    bool is_lower = share_bytes < party->claim->share_bytes || !party->claim->is_known;
    party->claim->share_bytes = share_bytes;
    party->claim->is_known = true;
    recharge(run, party, before, charge_of(party));
    run->set(party, least_pot(run, party), run->arg);
    if (is_lower) {
        read_use(run, party);
    }
}

/* One that was free to take anything, or of which is not known what it may, may take nothing
 * until it is known what it uses; one that is in no pot, anything. */
static void settle(apportion_t *run)
{
    for (uint32_t i = 0; i < run->party_count; i++) {
        party_t *party = &run->parties[i];
        const claim_t *claim = party->claim;
        bool is_free = claim->share_bytes == APPORTION_NO_SHARE;
        if (!party->takes_shares) {
            read_use(run, party);
        } else if (party->pot_count == 0 && (!is_free || !claim->is_known)) {
            set_share(run, party, APPORTION_NO_SHARE);
        } else if (party->pot_count > 0 && (is_free || !claim->is_known)) {
            set_share(run, party, 0);
        }
    }
}

/* --- room ----------------------------------------------------------------------------- */

static void read_all_in(const apportion_t *run, uint32_t pot)
{
    for (uint32_t i = 0; i < run->party_count; i++) {
        party_t *party = &run->parties[i];
        if (is_in(party, pot) && !party->is_read) {
            read_use(run, party);
        }
    }
}

/* Take unused parts of shares until the pot has so much room. */
static void
make_room(apportion_t *run, uint32_t pot, uint64_t bytes, const party_t *asking)
{
    read_all_in(run, pot);
    for (uint32_t i = 0; i < run->party_count; i++) {
        party_t *party = &run->parties[i];
        const pot_t *of = &run->pots[pot];
        const claim_t *claim = party->claim;
        if (room_of(of) >= bytes && !is_over(of)) {
            return;
        }
        if (party != asking && party->takes_shares && is_in(party, pot) &&
            claim->share_bytes > claim->used_bytes) {
            uint64_t unused = claim->share_bytes - claim->used_bytes;
            uint64_t lack = is_over(of)
                                ? add(of->charged_bytes - of->limit_bytes, bytes)
                                : bytes - room_of(of);
            set_share(run, party, claim->share_bytes - least_of(unused, lack));
        }
    }
}

/*
 * More is used than the limit. Each share is lowered to what its party would use if the others kept
 * what they use: then any of them may free memory and take some again, and the sum is not above
 * the limit but for what is used now.
 */
static void squeeze(apportion_t *run, uint32_t pot)
{
    uint64_t over = run->pots[pot].charged_bytes - run->pots[pot].limit_bytes;
    for (uint32_t i = 0; i < run->party_count; i++) {
        party_t *party = &run->parties[i];
        if (party->takes_shares && is_in(party, pot)) {
            uint64_t used = party->claim->used_bytes;
            uint64_t rest = used > over ? used - over : 0;
            if (party->claim->share_bytes > rest) {
                set_share(run, party, rest);
            }
        }
    }
}

static void obey_limits(apportion_t *run)
{
    for (uint32_t i = 0; i < run->pot_count; i++) {
        if (is_over(&run->pots[i])) {
            make_room(run, i, 0, NULL);
        }
        if (is_over(&run->pots[i])) {
            squeeze(run, i);
        }
    }
}

static bool is_over_any(const apportion_t *run, const party_t *party)
{
    for (uint32_t k = 0; k < party->pot_count; k++) {
        if (is_over(&run->pots[party->pots[k]])) {
            return true;
        }
    }
    return false;
}

/* What it would use if the others kept what they are charged with. */
static uint64_t left_for(const apportion_t *run, const party_t *party)
{
    uint64_t left = party->claim->used_bytes;
    for (uint32_t k = 0; k < party->pot_count; k++) {
        const pot_t *pot = &run->pots[party->pots[k]];
        uint64_t others = pot->charged_bytes - charge_of(party);
        uint64_t rest = pot->limit_bytes > others ? pot->limit_bytes - others : 0;
        left = least_of(left, rest);
    }
    return left;
}

/* Below what is used, which is charged anyway. */
static void raise_low_shares(apportion_t *run)
{
    for (uint32_t i = 0; i < run->party_count; i++) {
        party_t *party = &run->parties[i];
        if (party->takes_shares && party->claim->share_bytes < left_for(run, party)) {
            set_share(run, party, left_for(run, party));
        }
    }
}

/* --- requests ------------------------------------------------------------------------- */

static uint64_t room_for(const apportion_t *run, const party_t *party)
{
    uint64_t room = UINT64_MAX;
    for (uint32_t k = 0; k < party->pot_count; k++) {
        room = least_of(room, room_of(&run->pots[party->pots[k]]));
    }
    return room;
}

/* Of what is left beyond `lack` an equal part. */
static uint64_t extra_for(const apportion_t *run, const party_t *party, uint64_t lack)
{
    uint64_t extra = UINT64_MAX;
    for (uint32_t k = 0; k < party->pot_count; k++) {
        const pot_t *pot = &run->pots[party->pots[k]];
        extra = least_of(extra, (room_of(pot) - lack) / pot->party_count);
    }
    return extra;
}

static bool is_hopeless(const apportion_t *run, const party_t *party)
{
    for (uint32_t k = 0; k < party->pot_count; k++) {
        if (party->wanted_bytes > run->pots[party->pots[k]].limit_bytes) {
            return true;
        }
    }
    return false;
}

static void grant(apportion_t *run, party_t *party)
{
    const claim_t *claim = party->claim;
    read_use(run, party);
    uint64_t need = add(claim->used_bytes, party->wanted_bytes);
    if (party->pot_count == 0 || need <= claim->share_bytes ||
        is_hopeless(run, party)) {
        return;
    }
    uint64_t charge = charge_of(party), lack = need - charge;
    for (uint32_t k = 0; k < party->pot_count; k++) {
        const pot_t *pot = &run->pots[party->pots[k]];
        if (room_of(pot) < lack) {
            make_room(run, party->pots[k], lack, party);
        }
    }
    uint64_t room = room_for(run, party);
    if (is_over_any(run, party)) {
        return;
    }
    if (room >= lack) {
        set_share(run, party, add(need, extra_for(run, party, lack)));
    } else if (room > 0) { /* one of several threads may have enough of it */
        set_share(run, party, charge + room);
    }
}

void apportion_run(apportion_t *run)
{
    for (uint32_t i = 0; i < run->party_count; i++) {
        run->parties[i].is_read = false;
    }
    charge_pots(run);
    settle(run);
    obey_limits(run);
    raise_low_shares(run);
    for (uint32_t i = 0; i < run->party_count; i++) {
        party_t *party = &run->parties[(run->first + i) % run->party_count];
        if (party->asks && party->takes_shares) {
            grant(run, party);
        }
    }
}
