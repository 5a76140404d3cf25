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

#define CUPTI_RIVAL_BYTES 128 /* CUPTI wants 64 at least */

typedef struct cupti_api {
    CUptiResult(CUPTIAPI *subscribe)(
        CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *);
    /* CUDA 13.0 and newer, else NULL. The last argument is CUpti_SubscriberParams. */
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

/*
 * Subscribe beside other tools where this CUPTI can (13.2 and newer, if they allow it too), else as
 * the only one. CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: another tool was first; `rival` is
 * its name, or "" if CUPTI does not tell.
 */
CUptiResult cupti_api_subscribe(
    const cupti_api_t *api, CUpti_SubscriberHandle *subscriber,
    CUpti_CallbackFunc callback, char rival[CUPTI_RIVAL_BYTES]);

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
