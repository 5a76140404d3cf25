/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells an attached diagnosis library (rmm/sys/diag.h), and a tool that takes annotations
 * (annotate.h), which blocks users hold. resource.c calls these at the public entry points,
 * never with a lock held:
 *   rmm__diag_report_alloc    after the block was obtained
 *   rmm__diag_report_free     before the resource frees it
 *   rmm__diag_report_refusal  after it refused to
 * Not for blocks of 0 bytes, and not for blocks that one resource allocates from another.
 * Blocks that a program's function allocates in a callback are reported to the tool only.
 *
 * Cost if nothing is attached: one load and one branch.
 */
#ifndef RMM_BASE_DIAG_ATTACH_H
#define RMM_BASE_DIAG_ATTACH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmm/resource.h>
#include <rmm/stream.h>
#include <rmm/sys/diag.h>

#include "base/annotate.h"

enum {
    RMM_DIAG_STATE_UNKNOWN = 0, /* no thread has looked for an injected library yet */
    RMM_DIAG_STATE_NONE = 1,
    RMM_DIAG_STATE_ATTACHED = 2
};

extern _Atomic(uint32_t) rmm__diag_state;

/* Bytes that the attached library wants behind each block; 0: none, or no library is attached. */
extern _Atomic(size_t) rmm__diag_guard_bytes;

/* Report blocks from now on even without a diagnosis library (for annotate.c). */
void rmm__diag_listen(void);

/*
 * A call of the program, while rmm__diag_may_ask() or rmm__diag_is_attached(). If the resource
 * refuses the free, rmm__diag_report_refusal() gets what rmm__diag_report_free() returned.
 */
void rmm__diag_report_alloc(const rmm_annotate_block_t *block);
size_t rmm__diag_report_free(const rmm_annotate_block_t *block);
void rmm__diag_report_refusal(
    const rmm_annotate_block_t *block, size_t annotated_bytes);

/* A free with the size `passed` is about to be carried out with the size that the block has. */
void rmm__diag_report_wrong_size(const rmm_annotate_block_t *passed, size_t bytes);

/* Memory that a resource is to divide, after it was obtained. No lock held. */
void rmm__diag_report_pool(const void *ptr, size_t bytes);

/* Look for the library now, so that a first block need not. No lock held. */
void rmm__diag_look(void);

/* Before a resource takes its first memory: whether its blocks should have room for guards behind
 * them. Looks for the library, which is to know of that memory. No lock held. */
bool rmm__diag_wants_guards(void);

/* The bytes that a base resource requests from the driver, with room for a guard if there is
 * one. */
static inline size_t rmm__diag_guarded_bytes(size_t bytes, bool has_guard)
{
    size_t room = atomic_load_explicit(&rmm__diag_guard_bytes, memory_order_relaxed);

    return has_guard && room != 0 && bytes < PTRDIFF_MAX / 2
               ? (bytes + RMM_ALIGN_DEFAULT - 1) / RMM_ALIGN_DEFAULT *
                         RMM_ALIGN_DEFAULT +
                     room
               : bytes;
}

/* Whether a new pool may be made to keep the last freed blocks from use (RMM_DIAG_QUARANTINE is
 * set), and how many bytes of it now. No lock held. */
bool rmm__diag_may_quarantine(void);
uint64_t rmm__diag_quarantine_bytes(void);

/* True if somebody is attached, or if that is not known yet. */
static inline bool rmm__diag_may_ask(void)
{
    /* relaxed: the slow half loads it again with acquire */
    return __builtin_expect(
        atomic_load_explicit(&rmm__diag_state, memory_order_relaxed) !=
            RMM_DIAG_STATE_NONE,
        0);
}

/* True if somebody is attached. */
static inline bool rmm__diag_is_attached(void)
{
    return __builtin_expect(
        atomic_load_explicit(&rmm__diag_state, memory_order_relaxed) ==
            RMM_DIAG_STATE_ATTACHED,
        0);
}

/* Where a resource ends, and with it a block that the program has not freed. */
static inline void rmm__diag_on_left(
    uint32_t resource_id, int device, const void *ptr, size_t bytes,
    rmm_stream_t stream)
{
    if (rmm__diag_is_attached()) {
        const rmm_annotate_block_t block = {
            .ptr = ptr,
            .bytes = bytes,
            .stream = stream,
            .resource_id = resource_id,
            .device = device,
            .flags = RMM_DIAG_BLOCK_LEFT,
        };

        (void)rmm__diag_report_free(&block);
    }
}

void rmm__diag_report_gone(const void *ptr, size_t bytes);

/* Before a resource gives back memory that it has kept when blocks were freed. No lock held. */
static inline void rmm__diag_on_gone(const void *ptr, size_t bytes)
{
    if (rmm__diag_is_attached()) {
        rmm__diag_report_gone(ptr, bytes);
    }
}

#endif /* RMM_BASE_DIAG_ATTACH_H */
