/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the arena resource, shared by its files:
 *   arena_resource.c  the ops, the creator
 *   arena_ladder.c    what is tried, in order, when an arena has no block that fits
 *   arena_report.c    what is said when nothing helped
 *
 * An arena resource is a front (pool_front.h) that is always open, over a pool with one
 * block from upstream. What this resource calls arenas are the shards, and the back is the
 * global arena.
 *
 * Locking: the front's.
 */
#ifndef RMM_RESOURCES_ARENA_IMPL_H
#define RMM_RESOURCES_ARENA_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include <rmm/arena_resource.h>

#include "resources/pool_front.h"

enum { ARENA_PATIENCE = 32 }; /* rounds of questions about events, some 150 ns each */
/* A request for such a share of all memory is huge, and placed with care. */
#define ARENA_HUGE_SHARE 64

typedef struct arena_resource {
    rmm_resource_t base; /* first member */
    const rmm_driver_t *driver;
    char *memory; /* the one block */
    uint64_t bytes;
    uint32_t first_unit;   /* its number, so that aligned units are aligned memory */
    char *dump_path;       /* owned; NULL: no dump */
    bool is_synchronised;  /* by the rescue under way; of its lock */
    rmm_mutex_t dump_lock; /* while the dump is written: its own file, nothing else */
    pool_t global;
    pool_front_t front; /* its back is `global` */
} arena_resource_t;

static inline arena_resource_t *arena_from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, arena_resource_t, base);
}

static inline char *rmm__arena_address_of(const arena_resource_t *self, uint32_t unit)
{
    return self->memory + (uint64_t)(unit - self->first_unit) * POOL_UNIT;
}

/* --- arena_ladder.c ----------------------------------------------------------------- */

/* For a request that neither its arena nor, if it is small, a superblock could serve. */
rmm_status_t rmm__arena_alloc_slow(
    arena_resource_t *self, const pool_want_t *want, uint32_t *unit_out);

/* --- arena_report.c ----------------------------------------------------------------- */

/* Count, dump if asked to, and set the last error: one line with all that an operator asks
 * after an out-of-memory; `why` ends it. Returns RMM_ERR_OUT_OF_MEMORY. */
RMM_COLD rmm_status_t rmm__arena_give_up(
    arena_resource_t *self, const rmm_request_t *request, const char *why);

#endif /* RMM_RESOURCES_ARENA_IMPL_H */
