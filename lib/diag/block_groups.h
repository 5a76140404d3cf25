/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks by what they have in common. The writer of the side file sums up those that deserve a
 * verdict; a reader makes the rows of a table that people read: at most RMM_DIAG_GROUPS_MAX of
 * them, whatever a file says; further blocks are the rest.
 *
 * Threads: one at a time.
 */
#ifndef RMM_DIAG_BLOCK_GROUPS_H
#define RMM_DIAG_BLOCK_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/hash.h"

#define RMM_DIAG_GROUPS_MAX 4096u
#define RMM_DIAG_GROUPS_WITH_SITE                                                      \
    3072u /* of them; other blocks are in groups without */

typedef struct rmm_diag_group {
    /* what its blocks have in common */
    uint32_t verdict; /* 0 in a peak */
    uint32_t resource_id;
    uint32_t first_user;
    int32_t device;
    uint32_t size_class; /* 0 in a peak */
    uint32_t site;       /* entry of the allocation's stack + 1; 0: not known */
    /* sums over its blocks */
    uint64_t bytes, count;
    uint64_t largest; /* not a sum */
    uint64_t byte_ms; /* wasted; 0 in a peak */
} rmm_diag_group_t;

/* They are of one kind. */
static inline bool
rmm__diag_group_is_like(const rmm_diag_group_t *a, const rmm_diag_group_t *b)
{
    return a->verdict == b->verdict && a->resource_id == b->resource_id &&
           a->first_user == b->first_user && a->device == b->device &&
           a->size_class == b->size_class && a->site == b->site;
}

/* A hash of what the group's blocks have in common. */
static inline uint32_t rmm__diag_group_hash(const rmm_diag_group_t *group)
{
    uint64_t hash = (uint64_t)group->resource_id << 32 | group->first_user;

    hash = rmm__hash(hash ^ group->verdict ^ group->size_class << 8);
    hash = rmm__hash(hash ^ (uint32_t)group->device);
    hash = rmm__hash(hash ^ group->site);
    return (uint32_t)(hash >> 32);
}

typedef struct rmm_diag_groups {
    uint32_t count;
    rmm_diag_group_t entries[RMM_DIAG_GROUPS_MAX];
    uint64_t rest_bytes, rest_count;
    uint16_t slots[2 * RMM_DIAG_GROUPS_MAX]; /* entry + 1; 0: free */
} rmm_diag_groups_t;

/* Empty; NULL: no memory. free() it. */
rmm_diag_groups_t *rmm__diag_groups_create(void);
void rmm__diag_groups_clear(rmm_diag_groups_t *groups);

/* Adds the sums to those of the group of its kind. */
void rmm__diag_groups_add(rmm_diag_groups_t *groups, const rmm_diag_group_t *group);

/* Most bytes x time first, then most bytes. Nothing can be added any more. */
void rmm__diag_groups_sort(rmm_diag_groups_t *groups);

#endif /* RMM_DIAG_BLOCK_GROUPS_H */
