/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of the driver API that say in which order work runs: streams and events made, ended,
 * recorded, waited for; captures. Read from CUPTI's copy of their parameters, without a call of
 * the driver.
 *
 * Work that may tell the host that a stream is done (a host function, a value written to memory, a
 * graph, which may have either) counts as if the host had waited for the stream. A call that
 * lets a stream wait for unreported work makes the stream unsure; one that does so for later
 * calls, or for other processes, ends all judging (rmm/sys/diag.h).
 */
#ifndef RMM_TOOLS_INJECT_CUPTI_ORDER_H
#define RMM_TOOLS_INJECT_CUPTI_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include <cupti.h>

#include <rmm/sys/diag.h>

#include "inject/cupti_params.h"

/* The i-th callback to be enabled; false behind the last. */
bool cupti_order_call(size_t i, cupti_call_t *call_out);

/* Those of them that make and end streams: they are enabled in other modes, too, because findings
 * name streams. */
bool cupti_order_stream_call(size_t i, cupti_call_t *call_out);
bool cupti_order_is_stream_call(CUpti_CallbackId id);

/* Gives `visit` the events that the callback reports, if any. device: that the call makes a stream
 * of, or waits for; -1: unknown. */
void cupti_order_each(
    CUpti_CallbackId call, const CUpti_CallbackData *data, int32_t device,
    rmm_diag_event_fn visit, void *context);

/* The same of a launch that records events by itself: they are not known any more. */
void cupti_order_launch(
    const CUlaunchConfig *config, rmm_diag_event_fn visit, void *context);

#endif /* RMM_TOOLS_INJECT_CUPTI_ORDER_H */
