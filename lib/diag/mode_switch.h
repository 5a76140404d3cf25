/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which modes are in force, and the switch that the side file has: an operator writes the modes
 * that are wanted into its header (diag/mode in the tree of rmmfs), and the first event or
 * block after that applies them, before it is looked at. Then the header says so.
 *
 * RMM_DIAG_MODE_ORDER needs every event since the start, RMM_DIAG_MODE_GUARDS room behind every
 * block: they can be switched off, and never on.
 * RMM_DIAG_MODE_DRIVER stays as it was at the start.
 *
 * Without a request the switch costs each event one load of a word that does not change.
 *
 * Threads: any, without a lock. One thread applies a request at a time; others go on with the old
 * modes.
 */
#ifndef RMM_DIAG_MODE_SWITCH_H
#define RMM_DIAG_MODE_SWITCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "diag/diag_format.h"

/* Makes the source of the events send what these modes need, and no more. Returns the modes for
 * which it does. Called by one thread at a time, never with the engine's lock held. */
typedef uint32_t (*rmm_mode_source_fn)(uint32_t modes);

typedef struct rmm_mode_switch {
    rmm_diag_header_t *header; /* borrowed */
    rmm_mode_source_fn source; /* NULL: it sends everything always */
    _Atomic(uint32_t) modes;   /* RMM_DIAG_MODE_... */
    /* how often captured graphs began to be followed again, after events of them were lost */
    _Atomic(uint32_t) graph_gaps;
    _Atomic(uint32_t)
        applied; /* the request that was applied last; also header->modes_applied */
    /* CLOCK_MONOTONIC: since when all uses are seen; 0: they are not. Also
     * header->judged_since_ns. */
    _Atomic(uint64_t) judged_since_ns;
    atomic_flag busy;
} rmm_mode_switch_t;

void rmm__mode_switch_init(
    rmm_mode_switch_t *mode_switch, rmm_diag_header_t *header,
    rmm_mode_source_fn source, uint32_t modes);

/* As if an operator wanted these modes. */
void rmm__mode_switch_set(rmm_mode_switch_t *mode_switch, uint32_t modes);
void rmm__mode_switch_apply(rmm_mode_switch_t *mode_switch);

/* The modes in force, after applying a pending request. */
static inline uint32_t rmm__modes_now(rmm_mode_switch_t *mode_switch)
{
    uint32_t wanted =
        atomic_load_explicit(&mode_switch->header->modes_wanted, memory_order_relaxed);

    if (__builtin_expect(
            wanted != atomic_load_explicit(&mode_switch->applied, memory_order_relaxed),
            0)) {
        rmm__mode_switch_apply(mode_switch);
    }
    /* acquire: pairs with put_in_force(); graph_gaps is not older */
    return atomic_load_explicit(&mode_switch->modes, memory_order_acquire);
}

#endif /* RMM_DIAG_MODE_SWITCH_H */
