/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells an attached diagnosis library (rmm/sys/diag.h) which blocks users hold.
 * resource.c calls these at the public entry points, never with a lock held:
 *   rmm__diag_on_alloc  after the block was obtained
 *   rmm__diag_on_free   before the resource frees it
 * Not for blocks of 0 bytes, and not for blocks that one resource allocates from another.
 *
 * Cost if nothing is attached: one load and one branch.
 */
#ifndef RMM_BASE_DIAG_ATTACH_H
#define RMM_BASE_DIAG_ATTACH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmm/stream.h>
#include <rmm/sys/diag.h>

enum {
    RMM_DIAG_STATE_UNKNOWN = 0, /* nobody has looked for an injected library yet */
    RMM_DIAG_STATE_NONE = 1,
    RMM_DIAG_STATE_ATTACHED = 2
};

extern _Atomic(uint32_t) rmm__diag_state;

/* The data of a call that the hooks report beside the block's address. */
typedef struct rmm_diag_owner {
    uint32_t resource_id;
    int device;
} rmm_diag_owner_t;

/* The slow halves: use the inline functions below. */
void rmm__diag_report_alloc(
    rmm_diag_owner_t owner, const void *ptr, size_t bytes, rmm_stream_t stream);
void rmm__diag_report_free(
    rmm_diag_owner_t owner, const void *ptr, size_t bytes, rmm_stream_t stream);

/* True if a library is attached, or if that is not known yet. */
static inline bool rmm__diag_may_ask(void)
{
    /* relaxed: the slow half loads it again with acquire */
    return __builtin_expect(
        atomic_load_explicit(&rmm__diag_state, memory_order_relaxed) !=
            RMM_DIAG_STATE_NONE,
        0);
}

static inline void rmm__diag_on_alloc(
    uint32_t resource_id, int device, const void *ptr, size_t bytes,
    rmm_stream_t stream)
{
    if (rmm__diag_may_ask()) {
        rmm__diag_report_alloc(
            (rmm_diag_owner_t){resource_id, device}, ptr, bytes, stream);
    }
}

static inline void rmm__diag_on_free(
    uint32_t resource_id, int device, const void *ptr, size_t bytes,
    rmm_stream_t stream)
{
    if (atomic_load_explicit(&rmm__diag_state, memory_order_relaxed) ==
        RMM_DIAG_STATE_ATTACHED) {
        rmm__diag_report_free(
            (rmm_diag_owner_t){resource_id, device}, ptr, bytes, stream);
    }
}

#endif /* RMM_BASE_DIAG_ATTACH_H */
