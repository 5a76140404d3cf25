/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares out the limits of groups among programs: the arithmetic, without a model.
 *
 * A party is a segment on one device; a pot is a limit, and the parties that it is for. A party
 * may take no more than its share, of whichever pots it is in. Of a pot is charged, for each
 * party, its share or what it uses (holds and promises), whichever is more. Invariant: a share is
 * raised only where all pots of the party have room for it, so that
 *
 *   the sum of shares in a pot <= its limit, or shares only fall.
 *
 * Shares follow what is asked for: a party that asks gets what it wants, and of the room that is
 * left an equal part. Where there is no room the unused part of others' shares is taken back. A
 * share is lowered first, and what its party uses is read after that (segment_growth.h): so what
 * the party took meanwhile is charged.
 *
 * Where more is used than the limit, each share is lowered by the excess, below what is used:
 * that takes no memory back, but the program gives up free memory before it grows.
 *
 * Cost: linear in the parties of a pot for the first party that finds no room, and then for each
 * the parties whose shares are lowered. Each use of a party is read at most once in a run, and
 * again when its share is lowered.
 */
#ifndef RMM_FUSEFS_APPORTION_H
#define RMM_FUSEFS_APPORTION_H

#include <stdbool.h>
#include <stdint.h>

#define APPORTION_POTS_OF_PARTY 32u
#define APPORTION_NO_SHARE UINT64_MAX /* may take anything */

typedef struct pot {
    uint64_t limit_bytes;
    uint64_t charged_bytes; /* here and below: of apportion_run() */
    uint32_t party_count;
    const void *group; /* of the caller, like the next two */
    uint32_t device, limit;
} pot_t;

/* What is kept of a party between two runs. */
typedef struct claim {
    uint64_t share_bytes; /* or APPORTION_NO_SHARE */
    uint64_t used_bytes;  /* as it was last read */
    uint32_t answered;    /* both of the caller: the last request */
    bool is_known;        /* the program's page has this share */
} claim_t;

typedef struct party {
    claim_t *claim;
    void *subject; /* of the caller */
    uint64_t wanted_bytes;
    bool asks;
    bool takes_shares; /* false: an older program, which only counts */
    bool is_read;      /* in this run */
    uint16_t pots[APPORTION_POTS_OF_PARTY];
    uint32_t pot_count;
} party_t;

typedef struct apportion {
    pot_t *pots;
    party_t *parties;
    uint32_t pot_count, party_count;
    uint32_t first; /* whose request is looked at first */
    /* What the party uses now. */
    uint64_t (*read)(const party_t *party, void *arg);
    /* The program is given this share. least: the pot that leaves least; NULL: none. */
    void (*set)(const party_t *party, const pot_t *least, void *arg);
    void *arg;
} apportion_t;

/* Every party that asks has the share that it can have, every other one has one if it is in a
 * pot. */
void apportion_run(apportion_t *run);

#endif /* RMM_FUSEFS_APPORTION_H */
