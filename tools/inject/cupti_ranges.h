/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of the driver API that are given ranges of memory: copies, fills, prefetches. What
 * a call was given is read from CUPTI's copy of its parameters, nothing is asked of the driver.
 *
 * Not read: copies between CUDA arrays, those of a 3D batch of which one side is an array, and the
 * calls of CUDA 3.
 */
#ifndef RMM_TOOLS_INJECT_CUPTI_RANGES_H
#define RMM_TOOLS_INJECT_CUPTI_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cupti.h>

#include <rmm/sys/diag.h>

#include "inject/cupti_params.h"

/* The i-th callback to be enabled; false behind the last. */
bool cupti_range_call(size_t i, cupti_call_t *call_out);

/*
 * Gives `visit` an event for each copy, fill or prefetch of the call: one, or many of a batch.
 * Kind, stream, words and bytes are set. None for a call that is not in the list. A node of a graph
 * is given only before the call: it is no use yet.
 */
void cupti_ranges_each(
    CUpti_CallbackId call, const void *params, bool is_before, rmm_diag_event_fn visit,
    void *context);

#endif /* RMM_TOOLS_INJECT_CUPTI_RANGES_H */
