/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches of a real GPU, by CUPTI callbacks of the driver API (launches of the runtime
 * API arrive there too). Looked at on the way out: then a launch that the driver refused
 * is not counted, and a lazily loaded function is loaded.
 *
 * A callback makes one kind of driver call: what the parameters of a function are, once
 * a function (params.h). NVIDIA calls driver calls in callbacks unsupported; these two
 * only read tables of the function (measured to work on driver 580, CUDA 13.0), touch no
 * stream and so may be made while one is capturing. No callback is enabled for them, and
 * a thread that is inside one ignores other launches.
 *
 * A launch into a graph being captured counts as one, here and now; its replays are not
 * seen. `capturing` stays 0: asking costs one more driver call, and usage does not need it.
 *
 * Locks: none here; params.c and the engine have one each, never both at once.
 */
#include "inject/source.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "inject/cupti_api.h"

#define CONTEXTS_KEPT 64u
#define CUPTI_RIVAL_BYTES 128 /* CUPTI wants 64 at least */

static struct {
    cupti_api_t api;
    CUpti_SubscriberHandle subscriber;
    rmm_diag_engine_t *engine;
    inject_layouts_t layouts;
    atomic_bool stopped;
    /* context's unique number << 32 | device + 1, at number % CONTEXTS_KEPT */
    _Atomic(uint64_t) devices[CONTEXTS_KEPT];
} source;

static _Thread_local bool inside; /* a callback of ours, on this thread */

static const CUpti_CallbackId launch_calls[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
};

/* --- a launch ---------------------------------------------------------------------- */

typedef struct launch {
    inject_params_t params;
    CUstream stream;
} launch_t;

/* The _ptsz twins have structs of their own with the same members: asserted below. */
static launch_t read_launch(const cuLaunchKernel_params *call)
{
    return (launch_t){{call->f, call->kernelParams, call->extra}, call->hStream};
}

static launch_t read_launch_ex(const cuLaunchKernelEx_params *call)
{
    CUstream stream = call->config != NULL ? call->config->hStream : NULL;

    return (launch_t){{call->f, call->kernelParams, call->extra}, stream};
}

static launch_t read_cooperative(const cuLaunchCooperativeKernel_params *call)
{
    return (launch_t){{call->f, call->kernelParams, NULL}, call->hStream};
}

#define SAME_OFFSET(call, member)                                                      \
    static_assert(                                                                     \
        offsetof(call##_params, member) == offsetof(call##_ptsz_params, member),       \
        #call " and its twin differ")
SAME_OFFSET(cuLaunchKernel, f);
SAME_OFFSET(cuLaunchKernel, hStream);
SAME_OFFSET(cuLaunchKernel, kernelParams);
SAME_OFFSET(cuLaunchKernel, extra);
SAME_OFFSET(cuLaunchKernelEx, config);
SAME_OFFSET(cuLaunchKernelEx, f);
SAME_OFFSET(cuLaunchKernelEx, kernelParams);
SAME_OFFSET(cuLaunchKernelEx, extra);
SAME_OFFSET(cuLaunchCooperativeKernel, f);
SAME_OFFSET(cuLaunchCooperativeKernel, hStream);
SAME_OFFSET(cuLaunchCooperativeKernel, kernelParams);

static bool parse_launch(CUpti_CallbackId call, const void *params, launch_t *launch)
{
    switch (call) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
        *launch = read_launch(params);
        return true;
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz:
        *launch = read_launch_ex(params);
        return true;
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz:
        *launch = read_cooperative(params);
        return true;
    default:
        return false;
    }
}

/* -1: unknown. A context's number is never used again, so nothing goes stale. */
static int32_t device_of(const CUpti_CallbackData *data)
{
    _Atomic(uint64_t) *kept = &source.devices[data->contextUid % CONTEXTS_KEPT];
    uint64_t entry = atomic_load_explicit(kept, memory_order_relaxed);
    uint32_t device = 0;

    if (entry != 0 && entry >> 32 == data->contextUid) {
        return (int32_t)(uint32_t)entry - 1;
    }
    if (source.api.device_of_context(data->context, &device) != CUPTI_SUCCESS) {
        return -1;
    }
    entry = (uint64_t)data->contextUid << 32 | (device + 1);
    atomic_store_explicit(kept, entry, memory_order_relaxed);
    return (int32_t)device;
}

static void on_launch(CUpti_CallbackId call, const CUpti_CallbackData *data)
{
    launch_t launch;
    inject_words_t words;
    rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = RMM_DIAG_LAUNCH,
        .name = data->symbolName};

    if (!parse_launch(call, data->functionParams, &launch)) {
        return;
    }
    if (!inject_words_collect(&words, &source.layouts, &launch.params)) {
        rmm__diag_engine_parameters_unknown(source.engine);
    }
    event.device = device_of(data);
    event.stream = launch.stream;
    event.function = launch.params.function;
    event.words = words.words;
    event.word_count = words.count;
    rmm__diag_engine_on_event(source.engine, &event);
    inject_words_fini(&words);
}

static bool call_succeeded(const CUpti_CallbackData *data)
{
    CUresult result = CUDA_ERROR_UNKNOWN;

    if (data->callbackSite != CUPTI_API_EXIT || data->functionReturnValue == NULL) {
        return false;
    }
    memcpy(&result, data->functionReturnValue, sizeof(result));
    return result == CUDA_SUCCESS;
}

static void CUPTIAPI on_callback(
    void *user, CUpti_CallbackDomain domain, CUpti_CallbackId call, const void *data)
{
    (void)user;
    if (atomic_load_explicit(&source.stopped, memory_order_relaxed)) {
        return;
    }
    if (domain == CUPTI_CB_DOMAIN_RESOURCE) { /* the only one: a module goes */
        inject_layouts_clear(&source.layouts);
    } else if (!inside && call_succeeded(data)) {
        inside = true;
        on_launch(call, data);
        inside = false;
    }
}

/* --- starting ---------------------------------------------------------------------- */

static void
say_error(char text[INJECT_TEXT_BYTES], const char *call, CUptiResult result)
{
    const char *why = NULL;

    if (source.api.result_string(result, &why) != CUPTI_SUCCESS || why == NULL) {
        why = "unknown";
    }
    snprintf(text, INJECT_TEXT_BYTES, "error:%s: %s (%d)", call, why, (int)result);
}

static CUptiResult subscribe(char *rival, size_t rival_bytes)
{
#ifdef CUpti_SubscriberParams_STRUCT_SIZE
    if (source.api.subscribe_v2 != NULL) {
        CUpti_SubscriberParams params = {
            .structSize = CUpti_SubscriberParams_STRUCT_SIZE,
            .subscriberName = "rmm-c",
            .oldSubscriberName = rival,
            .oldSubscriberSize = rival_bytes,
        };

        return source.api.subscribe_v2(&source.subscriber, on_callback, NULL, &params);
    }
#else
    (void)rival_bytes;
    rival[0] = '\0';
#endif
    return source.api.subscribe(&source.subscriber, on_callback, NULL);
}

static bool enable_all(char text[INJECT_TEXT_BYTES])
{
    CUptiResult result = source.api.enable_callback(
        1, source.subscriber, CUPTI_CB_DOMAIN_RESOURCE,
        CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);

    for (size_t i = 0;
         i < sizeof(launch_calls) / sizeof(launch_calls[0]) && result == CUPTI_SUCCESS;
         i++) {
        result = source.api.enable_callback(
            1, source.subscriber, CUPTI_CB_DOMAIN_DRIVER_API, launch_calls[i]);
    }
    if (result != CUPTI_SUCCESS) {
        say_error(text, "cuptiEnableCallback", result);
    }
    return result == CUPTI_SUCCESS;
}

static bool listen(char text[INJECT_TEXT_BYTES])
{
    char rival[CUPTI_RIVAL_BYTES] = "";
    CUptiResult result = subscribe(rival, sizeof(rival));

    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
        rival[sizeof(rival) - 1] = '\0';
        snprintf(
            text, INJECT_TEXT_BYTES, "conflict:%.80s",
            rival[0] != '\0' ? rival : "another tool that uses CUPTI");
        return false;
    }
    if (result != CUPTI_SUCCESS) {
        say_error(text, "cuptiSubscribe", result);
        return false;
    }
    if (!enable_all(text)) {
        (void)source.api.unsubscribe(source.subscriber);
        return false;
    }
    snprintf(text, INJECT_TEXT_BYTES, "active");
    return true;
}

bool inject_cupti_start(rmm_diag_engine_t *engine, char text[INJECT_TEXT_BYTES])
{
    char reason[INJECT_TEXT_BYTES - sizeof("error:")] = "";

    if (!cupti_api_open(&source.api, reason, sizeof(reason))) {
        snprintf(text, INJECT_TEXT_BYTES, "error:%s", reason);
        return false;
    }
    if (!inject_layouts_init(&source.layouts, cupti_api_queries())) {
        snprintf(text, INJECT_TEXT_BYTES, "error:no host memory");
        return false;
    }
    source.engine = engine;
    return listen(text);
}

void inject_cupti_stop(void)
{
    atomic_store_explicit(&source.stopped, true, memory_order_relaxed);
}
