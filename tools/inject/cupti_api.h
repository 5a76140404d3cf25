/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI and the few driver functions that the source needs, found at run time: neither
 * library is linked, so a machine without them still loads librmm-inject.
 */
#ifndef RMM_TOOLS_INJECT_CUPTI_API_H
#define RMM_TOOLS_INJECT_CUPTI_API_H

#include <stdbool.h>
#include <stddef.h>

#include <cupti.h>

#include "inject/cupti_blocks.h"
#include "inject/params.h"

typedef struct cupti_api {
    CUptiResult(CUPTIAPI *subscribe)(
        CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *);
    /* CUDA 13.0 and newer, else NULL: also names the one who was first. The last
     * argument is CUpti_SubscriberParams, which older headers do not have. */
    CUptiResult(CUPTIAPI *subscribe_v2)(
        CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *, void *);
    CUptiResult(CUPTIAPI *unsubscribe)(CUpti_SubscriberHandle);
    CUptiResult(CUPTIAPI *enable_callback)(
        uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain, CUpti_CallbackId);
    CUptiResult(CUPTIAPI *result_string)(CUptiResult, const char **);
    CUptiResult(CUPTIAPI *device_of_context)(CUcontext, uint32_t *);
} cupti_api_t;

/* False with one line in `reason`. */
bool cupti_api_open(cupti_api_t *api, char *reason, size_t reason_bytes);

/* From the libcuda that the process has loaded; members that it lacks are NULL. */
inject_queries_t cupti_api_queries(void);
cupti_is_capturing_fn cupti_api_is_capturing(void);

typedef struct cupti_stream_queries {
    CUresult (*flags)(CUstream, unsigned *);
    CUresult (*id)(CUstream, unsigned long long *);
    cupti_is_capturing_fn is_capturing;
} cupti_stream_queries_t;

/* The same. False: it lacks one. */
bool cupti_api_stream_queries(cupti_stream_queries_t *queries_out);

#endif /* RMM_TOOLS_INJECT_CUPTI_API_H */
