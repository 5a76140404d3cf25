/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares out the limits of groups among programs: the arithmetic, without a model.
 *
 * A claimant is a segment on one device; a quota is a limit, and the claimants that it is for. A
 * claimant may take no more than its share, of whichever quotas it is in. A quota is charged, for
 * each claimant, its share or what it uses (holds and promises), whichever is more. Invariant: a
 * share is raised only where all quotas of the claimant have room for it, so that
 *
 *   the sum of shares in a quota <= its limit, or shares only fall.
 *
 * Shares follow what is asked for: a claimant that asks gets what it wants, and of the room that is
 * left an equal part. Where there is no room the unused part of others' shares is taken back. A
 * share is lowered first, and what its claimant uses is read after that (segment_growth.h): so what
 * the claimant took meanwhile is charged.
 *
 * Where more is used than the limit, each share is lowered by the excess, below what is used:
 * that takes no memory back, but the program gives up free memory before it grows.
 *
 * Cost: linear in the claimants of a quota for the first claimant that finds no room, and then for
 * each the claimants whose shares are lowered. Each use of a claimant is read at most once in a
 * run, and again when its share is lowered.
 */
#ifndef RMM_FUSEFS_APPORTION_H
#define RMM_FUSEFS_APPORTION_H

#include <stdbool.h>
#include <stdint.h>

#define APPORTION_QUOTAS_OF_CLAIMANT 32u
#define APPORTION_NO_SHARE UINT64_MAX /* may take anything */

typedef struct quota {
    uint64_t limit_bytes;
    uint64_t charged_bytes; /* here and below: of apportion_run() */
    uint32_t claimant_count;
    const void *group; /* of the caller, like the next two */
    uint32_t device, limit;
} quota_t;

/* What is kept of a claimant between two runs. */
typedef struct claim {
    uint64_t share_bytes; /* or APPORTION_NO_SHARE */
    uint64_t used_bytes;  /* as it was last read */
    uint32_t answered;    /* both of the caller: the last request */
    bool is_known;        /* the program's page has this share */
} claim_t;

typedef struct claimant {
    claim_t *claim;
    void *subject; /* of the caller */
    uint64_t wanted_bytes;
    bool asks;
    bool takes_shares; /* false: an older program, which only counts */
    bool is_read;      /* in this run */
    uint16_t quotas[APPORTION_QUOTAS_OF_CLAIMANT];
    uint32_t quota_count;
} claimant_t;

typedef struct apportion {
    quota_t *quotas;
    claimant_t *claimants;
    uint32_t quota_count, claimant_count;
    uint32_t first; /* whose request is looked at first */
    /* What the claimant uses now. */
    uint64_t (*read)(const claimant_t *claimant, void *arg);
    /* The program is given this share. least: the quota that leaves least; NULL: none. */
    void (*set)(const claimant_t *claimant, const quota_t *least, void *arg);
    void *arg;
} apportion_t;

/* Every claimant that asks has the share that it can have, every other one has one if it is in a
 * quota. */
void apportion_run(apportion_t *run);

#endif /* RMM_FUSEFS_APPORTION_H */
