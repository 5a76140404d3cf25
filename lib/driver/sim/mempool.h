/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the two files of the simulated GPU's memory pools: mempool.c holds the
 * pools and the memory that they reserve, async.c hands it out in stream order.
 *
 * Locking: all under rmm__sim_lock.
 */
#ifndef RMM_DRIVER_SIM_MEMPOOL_H
#define RMM_DRIVER_SIM_MEMPOOL_H

#include "driver/sim/internal.h"

typedef struct sim_async_block sim_async_block_t;

/* Memory that a pool holds from its device, in one piece. */
typedef struct sim_segment {
    struct sim_segment *next;
    char *begin;
    uint64_t bytes;
    uint64_t used_bytes; /* 0: may go back to the device */
    bool is_shared;      /* it lies in the pool's file */
    bool has_unseen;     /* frees since the program waited the last time */
    sim_space_t space;
} sim_segment_t;

typedef struct sim_mempool {
    struct sim_mempool *next;
    sim_entry_t *entry; /* NULL: destroyed, and goes with its last block */
    int device;
    int node;        /* RMM_DRIVER_ON_DEVICE, or where on the host */
    bool is_managed; /* the device's own: never destroyed */
    uint32_t access; /* other devices that may use its memory */
    uint32_t handle_types;
    bool is_imported; /* another process's: it has blocks, and no memory to give */
    sim_file_t file;  /* that processes share; none before the first export */
    uint64_t threshold;
    uint64_t reserved_bytes;
    uint64_t used_bytes;   /* handed out, and not yet given to mempool_free() */
    uint64_t unseen_bytes; /* of these mem_free() took, since the program waited */
    sim_segment_t *segments;
    sim_async_block_t *pending; /* freed by work that has not run */
} sim_mempool_t;

/* A part of a segment. */
typedef struct sim_piece {
    sim_segment_t *segment;
    char *begin;
    uint64_t bytes;
} sim_piece_t;

/* The place of its memory: its device, or SIM_HOST. */
static inline int sim_mempool_place(const sim_mempool_t *pool)
{
    return pool->node == RMM_DRIVER_ON_DEVICE ? pool->device : SIM_HOST;
}

/* The pool of a handle, NULL with *error set. */
sim_mempool_t *
rmm__sim_mempool_find_locked(rmm_driver_mempool_t handle, const char *call, int *error);
/* Take memory that is not in use; MEMORY_ALLOCATION if neither pool nor device has any. */
int rmm__sim_mempool_take_locked(
    sim_mempool_t *pool, uint64_t bytes, sim_piece_t *piece_out);
/* A pool of another process, over its file, which is the pool's from then on. */
int rmm__sim_mempool_add_import_locked(
    const sim_file_t *file, int device, rmm_driver_mempool_t *pool_out);
/* The pool of a live block, and where it is; NULL: there is none. */
sim_mempool_t *rmm__sim_async_find_locked(const void *ptr, sim_piece_t *piece_out);
/* Memory that no work uses any more. The pool may be gone after. */
void rmm__sim_mempool_give_locked(sim_mempool_t *pool, const sim_piece_t *piece);

#endif /* RMM_DRIVER_SIM_MEMPOOL_H */
