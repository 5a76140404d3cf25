/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captured graphs in the driver's calls: when one is made, changed and ended, and into which one
 * a call is recorded. That is one question to the driver for each call while a capture is under
 * way, which only reads the stream's state and is allowed during a capture.
 *
 * Nodes that the program adds or changes itself are not read, but for graphs that become a part of
 * another one: the graph is reported as changed.
 */
#ifndef RMM_TOOLS_INJECT_CUPTI_GRAPHS_H
#define RMM_TOOLS_INJECT_CUPTI_GRAPHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmm/sys/diag.h>

#include "inject/cupti_params.h"

/* From the libcuda that the process has loaded. Once, before the callbacks. */
void cupti_graphs_open(void);

/* The calls to be enabled; false: there is none of that index. */
bool cupti_graph_call(size_t i, cupti_call_t *call_out);
/* Those of them that begin and end captures. They are enabled in every mode: else the count of
 * captures under way would be wrong when modes are switched on again. */
bool cupti_capture_call(size_t i, cupti_call_t *call_out);
bool cupti_capture_is_call(CUpti_CallbackId id);

/* The graph that calls on this stream are recorded into; 0: none, or it cannot be known. */
uint64_t cupti_graphs_captured(rmm_stream_t stream);

/* Some capture is under way. */
bool cupti_graphs_is_capturing(void);

/* Counts the captures that the call begins or ends. */
void cupti_graphs_count(CUpti_CallbackId id, const CUpti_CallbackData *data);

/* Visit the events in the lives of graphs that the call causes. */
void cupti_graphs_each(
    CUpti_CallbackId id, const CUpti_CallbackData *data, rmm_diag_event_fn visit,
    void *context);

#endif /* RMM_TOOLS_INJECT_CUPTI_GRAPHS_H */
