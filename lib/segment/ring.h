/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings between processes: the debug log's, the allocation events'. One process writes,
 * from any number of threads and without a lock; any number read, with pread.
 *
 * Each record begins with a commit word. Message n stands at n % count. A writer takes a
 * number from the ring's `next`, makes the word 2n + 1, fills the record, makes it 2n + 2.
 * If another writer still has the record, or was killed there, the message is lost. A
 * reader copies: a record whose word was 2n + 2 before and after the copy is message n.
 */
#ifndef RMM_SEGMENT_RING_H
#define RMM_SEGMENT_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* --- writing ------------------------------------------------------------------------ */

/* False: somebody still writes there, or has written a later one. */
static inline bool rmm__ring_take(_Atomic(uint64_t) *commit, uint64_t number)
{
    uint64_t before = atomic_load_explicit(commit, memory_order_relaxed);

    /* acquire: what follows stays behind the odd number */
    return before % 2 == 0 && before <= 2 * number &&
           atomic_compare_exchange_strong_explicit(
               commit, &before, 2 * number + 1, memory_order_acq_rel,
               memory_order_relaxed);
}

static inline void rmm__ring_give(_Atomic(uint64_t) *commit, uint64_t number)
{
    /* release: pairs with a reader's look at the word before its copy */
    atomic_store_explicit(commit, 2 * number + 2, memory_order_release);
}

/* --- reading ------------------------------------------------------------------------ */

/* A ring in a file; checked: count records of stride bytes at records_at are in it. */
typedef struct rmm_ring {
    int fd;
    uint32_t stride, count;
    uint64_t records_at; /* offset in the file */
    uint64_t next_at;    /* of the number of messages begun */
} rmm_ring_t;

/* Where a reader stands; all zero: at the beginning. */
typedef struct rmm_ring_cursor {
    uint64_t next; /* number of the message to come */
    uint64_t lost; /* messages that were gone before they could be read */
} rmm_ring_cursor_t;

/* `record`: stride bytes, aligned to 8. */
typedef void (*rmm_ring_fn)(uint64_t number, const unsigned char *record, void *arg);

/*
 * Every message from the cursor on, in order. One that is still being written ends the
 * walk, to be had next time, unless `ended` says that its writer is gone, or it is stuck.
 * Returns 0, -EPROTO (the file was cut), -ENOMEM.
 */
int rmm__ring_read(
    const rmm_ring_t *ring, rmm_ring_cursor_t *cursor, bool ended, rmm_ring_fn fn,
    void *arg);

#endif /* RMM_SEGMENT_RING_H */
