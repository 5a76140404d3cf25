/* SPDX-License-Identifier: Apache-2.0 */
/* The switch of the modes; see mode_switch.h. */
#include "diag/mode_switch.h"

#include <time.h>

#include "core/clock.h"
#include "diag/modes.h"

/* Blocks that are allocated from now on can be judged by their uses; or none can. */
static void see_uses(rmm_mode_switch_t *mode_switch, bool sees)
{
    bool saw =
        atomic_load_explicit(&mode_switch->judged_since_ns, memory_order_relaxed) != 0;
    uint64_t since_ns = sees ? rmm__clock_ns(CLOCK_MONOTONIC) : 0;

    if (saw != sees) {
        atomic_store_explicit(
            &mode_switch->judged_since_ns, since_ns, memory_order_relaxed);
        atomic_store_explicit(
            &mode_switch->header->judged_since_ns, since_ns, memory_order_relaxed);
    }
}

static void put_in_force(rmm_mode_switch_t *mode_switch, uint32_t modes)
{
    uint32_t before = atomic_load_explicit(&mode_switch->modes, memory_order_relaxed);

    if ((before & RMM_DIAG_MODES_WITH_GRAPHS) == 0 &&
        (modes & RMM_DIAG_MODES_WITH_GRAPHS) != 0) {
        atomic_fetch_add_explicit(&mode_switch->graph_gaps, 1, memory_order_relaxed);
    }
    /* release: pairs with rmm__modes_now() */
    atomic_store_explicit(&mode_switch->modes, modes, memory_order_release);
    atomic_store_explicit(&mode_switch->header->modes_on, modes, memory_order_relaxed);
    see_uses(mode_switch, (modes & RMM_DIAG_MODES_WITH_USES) != 0);
}

/* Stored last: a reader that sees the request applied also sees the modes in force. */
static void publish_applied(rmm_mode_switch_t *mode_switch, uint32_t wanted)
{
    atomic_store_explicit(&mode_switch->applied, wanted, memory_order_relaxed);
    /* release: pairs with a reader of the side file */
    atomic_store_explicit(
        &mode_switch->header->modes_applied, wanted, memory_order_release);
}

void rmm__mode_switch_init(
    rmm_mode_switch_t *mode_switch, rmm_diag_header_t *header,
    rmm_mode_source_fn source, uint32_t modes)
{
    mode_switch->header = header;
    atomic_store_explicit(&mode_switch->judged_since_ns, 0, memory_order_relaxed);
    mode_switch->source = source;
    atomic_flag_clear(&mode_switch->busy);
    atomic_store_explicit(
        &header->modes_wanted, modes | RMM_DIAG_MODES_SET, memory_order_relaxed);
    put_in_force(mode_switch, modes);
    publish_applied(mode_switch, modes | RMM_DIAG_MODES_SET);
}

/* An engine that missed an event cannot judge order, and blocks that were made before have no
 * guards, so neither can be switched on. driver cannot change: memory that was taken before would
 * be missing from its figures. */
static uint32_t available_modes(const rmm_mode_switch_t *mode_switch, uint32_t wanted)
{
    uint32_t now = atomic_load_explicit(&mode_switch->modes, memory_order_relaxed);
    uint32_t kept = now & RMM_DIAG_MODE_DRIVER;

    return (wanted & (now | ~(RMM_DIAG_MODES_FROM_START | RMM_DIAG_MODE_DRIVER))) |
           kept;
}

void rmm__mode_switch_apply(rmm_mode_switch_t *mode_switch)
{
    uint32_t wanted, modes;

    /* acquire, release: the next thread sees the modes that this one gave the source */
    if (atomic_flag_test_and_set_explicit(&mode_switch->busy, memory_order_acquire)) {
        return;
    }
    wanted =
        atomic_load_explicit(&mode_switch->header->modes_wanted, memory_order_relaxed);
    if (wanted != atomic_load_explicit(&mode_switch->applied, memory_order_relaxed)) {
        modes = available_modes(mode_switch, wanted & rmm__diag_modes_all());
        if ((modes & RMM_DIAG_MODES_WITH_USES) == 0) {
            see_uses(mode_switch, false); /* before the source is silent */
        }
        put_in_force(
            mode_switch,
            mode_switch->source != NULL ? mode_switch->source(modes) : modes);
        publish_applied(mode_switch, wanted);
    }
    atomic_flag_clear_explicit(&mode_switch->busy, memory_order_release);
}

void rmm__mode_switch_set(rmm_mode_switch_t *mode_switch, uint32_t modes)
{
    atomic_store_explicit(
        &mode_switch->header->modes_wanted, modes | RMM_DIAG_MODES_SET,
        memory_order_relaxed);
    rmm__mode_switch_apply(mode_switch);
}
