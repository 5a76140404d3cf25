/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The callbacks that are enabled: those that the modes in force need, and no more.
 *
 * Threads: one at a time; any may read the modes.
 */
#ifndef RMM_TOOLS_INJECT_CUPTI_SWITCH_H
#define RMM_TOOLS_INJECT_CUPTI_SWITCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "diag/modes.h"
#include "inject/cupti_api.h"
#include "inject/cupti_params.h"

typedef struct cupti_switch {
    cupti_api_t api;
    CUpti_SubscriberHandle subscriber;
    _Atomic(uint32_t) modes; /* RMM_DIAG_MODE_... that the callbacks are enabled for */
} cupti_switch_t;

static inline uint32_t cupti_switch_modes(const cupti_switch_t *self)
{
    return atomic_load_explicit(&self->modes, memory_order_relaxed);
}

static inline bool cupti_needs_uses(uint32_t modes)
{
    return (modes & RMM_DIAG_MODES_WITH_USES) != 0;
}

/* Also for what a launch is given of blocks that were freed. */
static inline bool cupti_needs_launches(uint32_t modes)
{
    return cupti_needs_uses(modes) || (modes & RMM_DIAG_MODE_BOUNDS) != 0;
}

static inline bool cupti_needs_order(uint32_t modes)
{
    return (modes & RMM_DIAG_MODE_ORDER) != 0;
}

/* The calls of a list. */
CUptiResult cupti_switch_enable(
    const cupti_switch_t *self, bool (*call_at)(size_t, cupti_call_t *), bool on);

/* Enable a callback about modules or contexts. */
CUptiResult
cupti_switch_enable_resource(const cupti_switch_t *self, CUpti_CallbackId call);

/* Callbacks for these modes instead of those before. */
CUptiResult cupti_switch_follow(cupti_switch_t *self, uint32_t modes);

#endif /* RMM_TOOLS_INJECT_CUPTI_SWITCH_H */
