/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the driver that launch a kernel or a graph, and what they are given.
 */
#ifndef RMM_TOOLS_INJECT_CUPTI_LAUNCHES_H
#define RMM_TOOLS_INJECT_CUPTI_LAUNCHES_H

#include <stdbool.h>
#include <stddef.h>

#include "inject/cupti_params.h"
#include "inject/params.h"

/* Callbacks to be enabled: of kernels and graphs. False: there are no more. */
bool cupti_launch_call(size_t i, cupti_call_t *call_out);

/* The call launches a kernel; has a configuration with attributes; launches a graph. */
bool cupti_launch_is_kernel(CUpti_CallbackId call);
bool cupti_launch_is_extended(CUpti_CallbackId call);
bool cupti_launch_is_graph(CUpti_CallbackId call);

typedef struct cupti_launch {
    inject_params_t params;
    rmm_stream_t stream;
} cupti_launch_t;

/* The stream and parameters of a call that launches a kernel. */
cupti_launch_t cupti_launch_read(CUpti_CallbackId call, const void *params);

/* The stream of a call that launches a graph. */
rmm_stream_t cupti_launch_graph_stream(CUpti_CallbackId call, const void *params);

#endif /* RMM_TOOLS_INJECT_CUPTI_LAUNCHES_H */
