/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a real GPU, from CUPTI callbacks of the driver API (calls of the runtime
 * API arrive there too). A launch is reported when the call returns: by then a refused launch is
 * known, and a lazily loaded function is loaded. A copy, fill or prefetch is reported before the
 * call, so that an error is found before it happens (bounds), and after it has
 * succeeded (usage).
 *
 * NVIDIA does not support driver calls in callbacks, so there are few. Once for each function
 * its parameters are queried (params.h): these two calls only read tables of the function
 * (measured to work on driver 580, CUDA 13.0), touch no stream and so may be made during a
 * capture. No callback is enabled for them, and a thread that is inside one ignores other
 * launches. While a capture is under way, the graph into which a call is recorded is queried
 * (cupti_graphs.h). A stream's flags and id are queried when it is seen first (streams.h), while no
 * capture is under way. Mode driver makes calls at stream-ordered allocations and frees
 * (cupti_blocks.c), and mode guards makes more (cupti_guards.h).
 *
 * Locks: none here; params.c and the engine have one each, never both at once.
 */
#include "inject/source.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "inject/cubin.h"
#include "inject/cupti_api.h"
#include "inject/cupti_blocks.h"
#include "inject/cupti_foreign.h"
#include "inject/cupti_graphs.h"
#include "inject/cupti_guards.h"
#include "inject/cupti_launches.h"
#include "inject/cupti_order.h"
#include "inject/cupti_params.h"
#include "inject/cupti_ranges.h"
#include "inject/cupti_switch.h"
#include "inject/streams.h"

#define CONTEXTS_KEPT 64u

static struct {
    cupti_switch_t callbacks;
    rmm_diag_engine_t *engine;
    inject_layouts_t layouts;
    cupti_stream_queries_t streams;
    cupti_blocks_t blocks;
    inject_library_fn library_copies; /* NULL: librmm-c is not loaded */
    /* knows what was freed, while blocks are followed; NULL: not yet */
    _Atomic(rmm_diag_engine_t *) remembering;
    atomic_bool
        has_blocks; /* they are followed: subscribed before there is an engine */
    atomic_bool stopped;
    /* context's unique number << 32 | device + 1, at number % CONTEXTS_KEPT */
    _Atomic(uint64_t) devices[CONTEXTS_KEPT];
} source;

static uint32_t modes_now(void)
{
    return cupti_switch_modes(&source.callbacks);
}

static _Thread_local bool inside;        /* a callback of ours, on this thread */
static _Thread_local bool context_ended; /* since a release of one began */

/* --- a launch ---------------------------------------------------------------------- */

/* -1: unknown. A context's number is never used again, so nothing goes stale. */
static int32_t device_of(const CUpti_CallbackData *data)
{
    _Atomic(uint64_t) *kept = &source.devices[data->contextUid % CONTEXTS_KEPT];
    uint64_t entry = atomic_load_explicit(kept, memory_order_relaxed);
    uint32_t device = 0;

    if (entry != 0 && entry >> 32 == data->contextUid) {
        return (int32_t)(uint32_t)entry - 1;
    }
    if (source.callbacks.api.device_of_context(data->context, &device) !=
        CUPTI_SUCCESS) {
        return -1;
    }
    entry = (uint64_t)data->contextUid << 32 | (device + 1);
    atomic_store_explicit(kept, entry, memory_order_relaxed);
    return (int32_t)device;
}

static void on_launch(CUpti_CallbackId call, const CUpti_CallbackData *data)
{
    cupti_launch_t launch = cupti_launch_read(call, data->functionParams);
    inject_words_t words;
    rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = RMM_DIAG_LAUNCH,
        .name = data->symbolName};

    if (!inject_words_collect(&words, &source.layouts, &launch.params)) {
        rmm__diag_engine_parameters_unknown(source.engine);
    }
    event.device = device_of(data);
    event.stream = launch.stream;
    event.graph = cupti_graphs_captured(event.stream);
    event.capturing = event.graph != 0 ? 1 : 0;
    event.function = launch.params.function;
    event.words = words.words;
    event.word_count = words.count;
    event.stale_words = words.stale_count;
    inject_streams_report(&event);
    inject_words_fini(&words);
}

static void on_graph_launch(CUpti_CallbackId call, const CUpti_CallbackData *data)
{
    const cuGraphLaunch_params *launch = data->functionParams;
    const uint64_t word = (uint64_t)(uintptr_t)launch->hGraph;
    rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = RMM_DIAG_GRAPH_LAUNCH,
        .device = device_of(data),
        .stream = cupti_launch_graph_stream(call, launch),
        .words = &word,
        .word_count = 1};

    event.graph = cupti_graphs_captured(event.stream);
    event.capturing = event.graph != 0 ? 1 : 0;
    inject_streams_report(&event);
}

/* --- a copy, fill or prefetch --------------------------------------------------------- */

static void on_range(void *context, const rmm_diag_event_v1_t *given)
{
    const CUpti_CallbackData *data = context;
    rmm_diag_event_v1_t event = *given;

    event.device = device_of(data);
    event.name = data->functionName;
    event.before = data->callbackSite == CUPTI_API_ENTER ? 1 : 0;
    event.graph = event.before != 0 ? 0 : cupti_graphs_captured(event.stream);
    event.capturing = event.graph != 0 ? 1 : 0;
    inject_streams_report(&event);
}

/* --- both ------------------------------------------------------------------------------ */

static bool call_succeeded(const CUpti_CallbackData *data)
{
    CUresult result = CUDA_ERROR_UNKNOWN;

    if (data->callbackSite != CUPTI_API_EXIT || data->functionReturnValue == NULL) {
        return false;
    }
    memcpy(&result, data->functionReturnValue, sizeof(result));
    return result == CUDA_SUCCESS;
}

static void on_ranges(CUpti_CallbackId call, const CUpti_CallbackData *data)
{
    if (source.library_copies != NULL && source.library_copies()) {
        return; /* a pool that sleeps: its copies go across the ends of blocks */
    }
    /* `context` is not written: on_range() reads it as const again */
    cupti_ranges_each(
        call, data->functionParams, data->callbackSite == CUPTI_API_ENTER, on_range,
        (void *)(uintptr_t)data);
}

/* --- order ----------------------------------------------------------------------------- */

static void on_order_event(void *context, const rmm_diag_event_v1_t *event)
{
    (void)context;
    inject_streams_report(event);
}

#if CUDA_VERSION >= 13000
static int32_t device_of_context(CUcontext context, const CUpti_CallbackData *data)
{
    uint32_t device = 0;

    if (context == NULL || context == data->context) {
        return device_of(data);
    }
    return source.callbacks.api.device_of_context(context, &device) == CUPTI_SUCCESS
               ? (int32_t)device
               : -1;
}
#endif

/* The device of a new stream, or the one that is waited for. -1: unknown, as for a cudaFree,
 * because CUDA does not say which devices it waits for, and for the stream of a green context,
 * which need not be current. */
static int32_t device_of_order(CUpti_CallbackId call, const CUpti_CallbackData *data)
{
    switch (call) {
    case CUPTI_DRIVER_TRACE_CBID_cuStreamCreate:
    case CUPTI_DRIVER_TRACE_CBID_cuStreamCreateWithPriority:
    case CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize:
        return device_of(data);
#if CUDA_VERSION >= 13000
    case CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize_v2:
        return device_of_context(
            ((const cuCtxSynchronize_v2_params *)data->functionParams)->ctx, data);
#endif
    default:
        return -1;
    }
}

static void on_order(CUpti_CallbackId call, const CUpti_CallbackData *data)
{
    if (!cupti_needs_order(modes_now()) &&
        (!cupti_needs_launches(modes_now()) || !cupti_order_is_stream_call(call))) {
        return;
    }
    if (cupti_launch_is_extended(call)) {
        const cuLaunchKernelEx_params *launch = data->functionParams;

        cupti_order_launch(launch->config, on_order_event, source.engine);
    } else if (!cupti_launch_is_kernel(call)) {
        cupti_order_each(
            call, data, device_of_order(call, data), on_order_event, source.engine);
    }
}

/* --- all of them ------------------------------------------------------------------------ */

static void on_enter(CUpti_CallbackId call, const CUpti_CallbackData *data)
{
    if ((modes_now() & (RMM_DIAG_MODE_BOUNDS | RMM_DIAG_MODE_GUARDS)) != 0 &&
        !cupti_launch_is_kernel(call)) {
        on_ranges(call, data);
    }
}

static void on_success(CUpti_CallbackId call, const CUpti_CallbackData *data)
{
    if (!cupti_needs_launches(modes_now())) {
        return;
    }
    if (cupti_launch_is_graph(call)) {
        on_graph_launch(call, data);
    } else if (cupti_launch_is_kernel(call)) {
        on_launch(call, data);
    } else if (cupti_needs_uses(modes_now()) || cupti_graphs_is_capturing()) {
        on_ranges(call, data);
    }
}

/* Addresses are in use again; what was freed there is no more to be known. */
static void on_taken(CUpti_CallbackId call, const CUpti_CallbackData *data)
{
    /* acquire: pairs with inject_cupti_start(); there is an engine */
    rmm_diag_engine_t *engine =
        atomic_load_explicit(&source.remembering, memory_order_acquire);
    cupti_foreign_t given;
    uint64_t address = 0, bytes = 0;

    if (engine == NULL || !call_succeeded(data)) {
        return;
    }
    if (cupti_blocks_range(call, data->functionParams, &address, &bytes)) {
        rmm__diag_engine_on_gone(engine, address, bytes);
    } else if (cupti_foreign_after(call, data->functionParams, &given)) {
        if (given.is_whole) {
            rmm__diag_engine_on_gone(engine, given.address, given.bytes);
        } else {
            rmm__diag_engine_driver_unseen(engine, false);
        }
    }
}

/* True if the program takes memory or gives it back: nothing else is to be done. Before the
 * engine is there no other call comes, so its members are not read. */
static bool on_block(CUpti_CallbackId call, const CUpti_CallbackData *data)
{
    if (!inject_cupti_follows_driver()) {
        return false;
    }
    if (data->callbackSite == CUPTI_API_ENTER) {
        return cupti_blocks_before(&source.blocks, call, data->functionParams);
    }
    on_taken(call, data);
    return cupti_blocks_is_call(call) &&
           (!call_succeeded(data) ||
            cupti_blocks_after(
                &source.blocks, call, data->functionParams, device_of(data)));
}

/* All have the device first. */
static const CUpti_CallbackId reset_calls[] = {
    CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset,
    CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset_v2,
    CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease,
    CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease_v2};

static bool reset_call(size_t i, cupti_call_t *call_out)
{
    if (i >= sizeof(reset_calls) / sizeof(reset_calls[0])) {
        return false;
    }
    *call_out = (cupti_call_t){.id = reset_calls[i]};
    return true;
}

static bool is_release(CUpti_CallbackId call)
{
    return call == reset_calls[2] || call == reset_calls[3];
}

/* False: it is another call. Of the releases only the last one ends the context, and CUPTI tells
 * that meanwhile, on this thread. */
static bool on_reset(CUpti_CallbackId call, const CUpti_CallbackData *data)
{
    const cuDevicePrimaryCtxReset_v2_params *reset = data->functionParams;

    if (call != reset_calls[0] && call != reset_calls[1] && !is_release(call)) {
        return false;
    }
    if (data->callbackSite == CUPTI_API_ENTER) {
        context_ended = false;
    } else if (call_succeeded(data) && (!is_release(call) || context_ended)) {
        rmm__diag_engine_reset(source.engine, (int32_t)reset->dev);
    }
    return true;
}

static void on_driver_call(CUpti_CallbackId call, const CUpti_CallbackData *data)
{
    if (!cupti_launch_is_kernel(call)) {
        cupti_graphs_count(call, data);
        if (cupti_needs_launches(modes_now())) {
            cupti_graphs_each(call, data, on_order_event, source.engine);
        }
    }
    on_order(call, data); /* before a copy between devices, which waits for them */
    if (!cupti_launch_is_kernel(call) &&
        (on_block(call, data) || on_reset(call, data))) {
        return;
    }
    if (data->callbackSite == CUPTI_API_ENTER) {
        on_enter(call, data);
    } else if (call_succeeded(data)) {
        on_success(call, data);
    }
}

/* Its variables may lie where a block was freed, and no call need say so: kernels know where they
 * are. Most modules have none: then there is no address that a program could use. */
static void on_module(const CUpti_ModuleResourceData *module)
{
    /* acquire: as in on_taken() */
    rmm_diag_engine_t *engine =
        atomic_load_explicit(&source.remembering, memory_order_acquire);

    if (engine != NULL && (module == NULL || inject_cubin_has_variables(
                                                 module->pCubin, module->cubinSize))) {
        rmm__diag_engine_driver_unseen(engine, false);
    }
}

/* A module comes or goes, or a context goes with all its modules. */
static void on_resource(CUpti_CallbackId call, const CUpti_ResourceData *resource)
{
    if (call == CUPTI_CBID_RESOURCE_MODULE_LOADED) {
        on_module(resource->resourceDescriptor);
        return;
    }
    if (call == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING) {
        context_ended = true;
        cupti_guards_context_ends(resource->context);
    }
    inject_layouts_clear(&source.layouts);
}

static void CUPTIAPI on_callback(
    void *user, CUpti_CallbackDomain domain, CUpti_CallbackId call, const void *data)
{
    (void)user;
    if (atomic_load_explicit(&source.stopped, memory_order_relaxed)) {
        return;
    }
    if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
        on_resource(call, data);
    } else if (!inside) {
        inside = true;
        on_driver_call(call, data);
        inside = false;
    }
}

/* --- starting ---------------------------------------------------------------------- */

static void
say_error(char text[INJECT_TEXT_BYTES], const char *call, CUptiResult result)
{
    const char *why = NULL;

    if (source.callbacks.api.result_string(result, &why) != CUPTI_SUCCESS ||
        why == NULL) {
        why = "unknown";
    }
    snprintf(text, INJECT_TEXT_BYTES, "error:%s: %s (%d)", call, why, (int)result);
}

uint32_t inject_cupti_set_modes(uint32_t modes)
{
    uint32_t before = modes_now();

    if (cupti_switch_follow(&source.callbacks, modes) == CUPTI_SUCCESS) {
        return modes;
    }
    (void)cupti_switch_follow(&source.callbacks, before);
    return before;
}

static bool enable_all(uint32_t modes, char text[INJECT_TEXT_BYTES])
{
    const cupti_switch_t *callbacks = &source.callbacks;
    CUptiResult result = cupti_switch_enable_resource(
        callbacks, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);

    if (result == CUPTI_SUCCESS) {
        result = cupti_switch_enable_resource(
            callbacks, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
    }
    if (result == CUPTI_SUCCESS) {
        result = cupti_switch_enable(callbacks, reset_call, true);
    }
    if (result == CUPTI_SUCCESS) {
        result = cupti_switch_enable(callbacks, cupti_capture_call, true);
    }
    if (result == CUPTI_SUCCESS) {
        result = cupti_switch_follow(&source.callbacks, modes);
    }
    if (result != CUPTI_SUCCESS) {
        say_error(text, "cuptiEnableCallback", result);
    }
    return result == CUPTI_SUCCESS;
}

static bool subscribe_or_say(char text[INJECT_TEXT_BYTES])
{
    char rival[CUPTI_RIVAL_BYTES];
    CUptiResult result = cupti_api_subscribe(
        &source.callbacks.api, &source.callbacks.subscriber, on_callback, rival);

    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
        snprintf(
            text, INJECT_TEXT_BYTES, "conflict:%.80s",
            rival[0] != '\0' ? rival : "another tool that uses CUPTI");
        return false;
    }
    if (result != CUPTI_SUCCESS) {
        say_error(text, "cuptiSubscribe", result);
        return false;
    }
    return true;
}

static bool open_and_subscribe(char text[INJECT_TEXT_BYTES])
{
    char reason[INJECT_TEXT_BYTES - sizeof("error:")] = "";

    if (!cupti_api_open(&source.callbacks.api, reason, sizeof(reason))) {
        snprintf(text, INJECT_TEXT_BYTES, "error:%s", reason);
        return false;
    }
    return subscribe_or_say(text);
}

/* A capture that began before the diagnosis is not counted. */
static bool ask_stream(rmm_stream_t stream, uint32_t *flags_out, uint64_t *id_out)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    unsigned long long id = 0;
    bool was_inside = inside, good = false;

    inside = true; /* what is called here is not looked at */
    if (!cupti_graphs_is_capturing() &&
        source.streams.is_capturing((CUstream)stream, &status) == CUDA_SUCCESS &&
        status == CU_STREAM_CAPTURE_STATUS_NONE) {
        good = source.streams.flags((CUstream)stream, flags_out) == CUDA_SUCCESS;
        *id_out = good && source.streams.id((CUstream)stream, &id) == CUDA_SUCCESS
                      ? id
                      : UINT64_MAX;
    }
    inside = was_inside;
    return good;
}

bool inject_cupti_start(
    rmm_diag_engine_t *engine, uint32_t modes, char text[INJECT_TEXT_BYTES])
{
    inject_layouts_init(&source.layouts, cupti_api_queries());
    source.engine = engine;
    source.library_copies = inject_library_copies();
    if (inject_cupti_follows_driver()) {
        /* release: pairs with on_taken() */
        atomic_store_explicit(&source.remembering, engine, memory_order_release);
    }
    cupti_graphs_open();
    inject_streams_open(
        engine, cupti_api_stream_queries(&source.streams) ? ask_stream : NULL);
    if (!inject_cupti_follows_driver() && !open_and_subscribe(text)) {
        return false;
    }
    if (!enable_all(modes, text)) {
        if (!inject_cupti_follows_driver()) {
            (void)source.callbacks.api.unsubscribe(source.callbacks.subscriber);
        }
        return false;
    }
    snprintf(text, INJECT_TEXT_BYTES, "active");
    return true;
}

void inject_cupti_follow_driver(const inject_library_t *library)
{
    char text[INJECT_TEXT_BYTES] = "";

    if (!open_and_subscribe(text)) {
        return;
    }
    source.blocks = (cupti_blocks_t){*library, cupti_api_is_capturing()};
    /* relaxed: no call is seen before it is enabled */
    atomic_store_explicit(&source.has_blocks, true, memory_order_relaxed);
    if (cupti_switch_enable(&source.callbacks, cupti_block_call, true) !=
            CUPTI_SUCCESS ||
        cupti_switch_enable(&source.callbacks, cupti_foreign_call, true) !=
            CUPTI_SUCCESS ||
        cupti_switch_enable_resource(
            &source.callbacks, CUPTI_CBID_RESOURCE_MODULE_LOADED) != CUPTI_SUCCESS) {
        (void)source.callbacks.api.unsubscribe(source.callbacks.subscriber);
        atomic_store_explicit(&source.has_blocks, false, memory_order_relaxed);
    }
}

void inject_cupti_leave_driver(void)
{
    /* acquire: as in on_taken() */
    rmm_diag_engine_t *engine =
        atomic_load_explicit(&source.remembering, memory_order_acquire);

    if (atomic_exchange_explicit(&source.has_blocks, false, memory_order_relaxed)) {
        if (engine != NULL) {
            rmm__diag_engine_driver_unseen(engine, true);
        }
        source.blocks.library.driver_forget();
    }
}

bool inject_cupti_follows_driver(void)
{
    return atomic_load_explicit(&source.has_blocks, memory_order_relaxed);
}

static rmm_guard_answer_t queue_guards(
    int32_t device, rmm_stream_t stream, const rmm_guard_job_t *job, int *error_out)
{
    bool was_inside = inside;
    rmm_guard_answer_t answer = RMM_GUARD_FAILED;

    inside = true; /* what the work itself calls is not looked at */
    if (!atomic_load_explicit(&source.stopped, memory_order_relaxed)) {
        answer = cupti_guards_queue(device, stream, job, error_out);
    }
    inside = was_inside;
    return answer;
}

rmm_guard_queue_fn inject_cupti_guards(void)
{
    return cupti_guards_open() ? queue_guards : NULL;
}

void inject_cupti_stop(void)
{
    atomic_store_explicit(&source.stopped, true, memory_order_relaxed);
}
