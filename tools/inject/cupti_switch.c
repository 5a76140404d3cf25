/* SPDX-License-Identifier: Apache-2.0 */
/* Which callbacks are enabled; see cupti_switch.h. */
#include "inject/cupti_switch.h"

#include "inject/cupti_blocks.h"
#include "inject/cupti_foreign.h"
#include "inject/cupti_graphs.h"
#include "inject/cupti_launches.h"
#include "inject/cupti_order.h"
#include "inject/cupti_ranges.h"
#include "inject/source.h"

static bool needs_ranges(uint32_t modes)
{
    return (modes & ~RMM_DIAG_MODE_DRIVER) != 0;
}

CUptiResult
cupti_switch_enable_resource(const cupti_switch_t *self, CUpti_CallbackId call)
{
    return self->api.enable_callback(
        1, self->subscriber, CUPTI_CB_DOMAIN_RESOURCE, call);
}

/* Calls that are followed until the end, whatever the modes are. */
static bool is_lasting(CUpti_CallbackId call)
{
    return cupti_capture_is_call(call) ||
           (inject_cupti_follows_driver() &&
            (cupti_blocks_is_call(call) || cupti_foreign_is_call(call)));
}

static CUptiResult enable(const cupti_switch_t *self, CUpti_CallbackId call, bool on)
{
    if (!on && is_lasting(call)) {
        return CUPTI_SUCCESS;
    }
    return self->api.enable_callback(
        on, self->subscriber, CUPTI_CB_DOMAIN_DRIVER_API, call);
}

CUptiResult cupti_switch_enable(
    const cupti_switch_t *self, bool (*call_at)(size_t, cupti_call_t *), bool on)
{
    CUptiResult result = CUPTI_SUCCESS;
    cupti_call_t call;

    for (size_t i = 0; result == CUPTI_SUCCESS && call_at(i, &call); i++) {
        result = enable(self, call.id, on);
        if (result == CUPTI_ERROR_INVALID_PARAMETER && call.is_recent) {
            result = CUPTI_SUCCESS; /* CUPTI is older than the headers */
        }
    }
    return result;
}

/* The groups of callbacks of which `on` says whether these modes need them. */
static CUptiResult
enable_groups(const cupti_switch_t *self, uint32_t before, uint32_t modes, bool on)
{
    CUptiResult result = CUPTI_SUCCESS;

    if (cupti_needs_launches(modes) == on && (on || cupti_needs_launches(before))) {
        result = cupti_switch_enable(self, cupti_launch_call, on);
        if (result == CUPTI_SUCCESS) {
            result = cupti_switch_enable(self, cupti_graph_call, on);
        }
        if (result == CUPTI_SUCCESS) {
            result = cupti_switch_enable(self, cupti_order_stream_call, on);
        }
    }
    if (result == CUPTI_SUCCESS && needs_ranges(modes) == on &&
        (on || needs_ranges(before))) {
        result = cupti_switch_enable(self, cupti_range_call, on);
    }
    if (result == CUPTI_SUCCESS && cupti_needs_order(modes) == on &&
        (on || cupti_needs_order(before))) {
        result = cupti_switch_enable(self, cupti_order_call, on);
    }
    return result;
}

/* Groups have calls in common: so those that are needed are enabled last, also if they were. */
CUptiResult cupti_switch_follow(cupti_switch_t *self, uint32_t modes)
{
    uint32_t before = cupti_switch_modes(self);
    CUptiResult result = enable_groups(self, before, modes, false);

    if (result == CUPTI_SUCCESS) {
        result = enable_groups(self, before, modes, true);
    }
    atomic_store_explicit(&self->modes, modes, memory_order_relaxed);
    return result;
}
