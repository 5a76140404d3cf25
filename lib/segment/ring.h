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

/* False: another thread is writing this record, or has written a later message into it. */
static inline bool rmm__ring_take(_Atomic(uint64_t) *commit, uint64_t number)
{
    uint64_t before = atomic_load_explicit(commit, memory_order_relaxed);

    /* acquire: the caller's stores to the record come after the odd number */
    return before % 2 == 0 && before <= 2 * number &&
           atomic_compare_exchange_strong_explicit(
               commit, &before, 2 * number + 1, memory_order_acq_rel,
               memory_order_relaxed);
}

static inline void rmm__ring_give(_Atomic(uint64_t) *commit, uint64_t number)
{
    /* release: pairs with the reader's load of the word before it copies the record */
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

/* The position of a reader; all zero: at the beginning. */
typedef struct rmm_ring_cursor {
    uint64_t next; /* number of the next message */
    uint64_t lost; /* messages that were overwritten before they could be read */
} rmm_ring_cursor_t;

/* `record`: stride bytes, aligned to 8. */
typedef void (*rmm_ring_fn)(uint64_t number, const unsigned char *record, void *arg);

/*
 * Calls the function for every message from the cursor on, in order. A message that is still being
 * written ends the walk, and is read the next time; but if `ended` says that its writer has ended,
 * or if the message is stuck, it is skipped.
 * Returns 0, -EPROTO (the file was cut), -ENOMEM.
 */
int rmm__ring_read(
    const rmm_ring_t *ring, rmm_ring_cursor_t *cursor, bool ended, rmm_ring_fn fn,
    void *arg);

#endif /* RMM_SEGMENT_RING_H */
