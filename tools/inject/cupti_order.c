/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order in the parameters of the driver's calls; see cupti_order.h. Each call is described by
 * what it means and where its parameters are; one that means two things stands there twice.
 * The _ptsz twins of a call have the same parameters.
 *
 * The end of a handle is reported before the call: after it another thread may have got the handle.
 */
#include "inject/cupti_order.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "inject/cupti_graphs.h"
#include "inject/cupti_params.h"

/* cuda.h maps these to newer versions; here each version has its own name. */
#undef cuEventDestroy
#undef cuEventElapsedTime
#undef cuGraphAddNode
#undef cuStreamBatchMemOp
#undef cuStreamBeginCapture
#undef cuStreamDestroy
#undef cuStreamWaitValue32
#undef cuStreamWaitValue64
#undef cuStreamWriteValue32
#undef cuStreamWriteValue64

typedef struct order_call {
    uint16_t id, twin; /* the twin: for the per-thread default stream; 0: none */
    uint8_t kind;      /* rmm_diag_event_kind_t */
    uint8_t stream_at; /* where in the parameters; so in what follows */
    uint8_t event_at;
    uint8_t flags_at;
    bool is_recent; /* since CUDA 12.0 */
    bool is_early;  /* its work may run before the call returns: reported before it */
} order_call_t;

#define ENTRY(call, twin_id, what, stream, event, flags, recent)                       \
    {                                                                                  \
        .id = CBID(call), .twin = twin_id, .kind = what, .stream_at = stream,          \
        .event_at = event, .flags_at = flags, .is_recent = recent                      \
    }
#define ON_STREAM(call, what, field)                                                   \
    ENTRY(call, CBID(call##_ptsz), what, AT(call, field), ABSENT, ABSENT, false)
#define BEFORE_ON_STREAM(call, what, field)                                            \
    {                                                                                  \
        .id = CBID(call), .twin = CBID(call##_ptsz), .kind = what,                     \
        .stream_at = AT(call, field), .event_at = ABSENT, .flags_at = ABSENT,          \
        .is_early = true                                                               \
    }
#define ON_EVENT(call, what, field)                                                    \
    ENTRY(call, 0, what, ABSENT, AT(call, field), ABSENT, false)
#define OF_ALL(call, what) ENTRY(call, 0, what, ABSENT, ABSENT, ABSENT, false)
#define RECENT_OF_ALL(call, what) ENTRY(call, 0, what, ABSENT, ABSENT, ABSENT, true)
#define CREATE(call, stream, flags)                                                    \
    ENTRY(                                                                             \
        call, 0, RMM_DIAG_STREAM_CREATE, AT(call, stream), ABSENT, AT(call, flags),    \
        false)

static const order_call_t calls[] = {
    CREATE(cuStreamCreate, phStream, Flags),
    CREATE(cuStreamCreateWithPriority, phStream, flags),
    ENTRY(
        cuStreamDestroy, 0, RMM_DIAG_STREAM_DESTROY, AT(cuStreamDestroy, hStream),
        ABSENT, ABSENT, false),
    ENTRY(
        cuStreamDestroy_v2, 0, RMM_DIAG_STREAM_DESTROY, AT(cuStreamDestroy_v2, hStream),
        ABSENT, ABSENT, false),
    ON_STREAM(cuStreamSynchronize, RMM_DIAG_STREAM_SYNC, hStream),
    ON_STREAM(cuStreamQuery, RMM_DIAG_STREAM_SYNC, hStream),
    /* as good as waited for, see above */
    BEFORE_ON_STREAM(cuLaunchHostFunc, RMM_DIAG_STREAM_SYNC, hStream),
    BEFORE_ON_STREAM(cuStreamAddCallback, RMM_DIAG_STREAM_SYNC, hStream),
    BEFORE_ON_STREAM(cuGraphLaunch, RMM_DIAG_STREAM_SYNC, hStream),
    BEFORE_ON_STREAM(cuStreamWriteValue32, RMM_DIAG_STREAM_SYNC, stream),
    BEFORE_ON_STREAM(cuStreamWriteValue64, RMM_DIAG_STREAM_SYNC, stream),
    BEFORE_ON_STREAM(cuStreamWriteValue32_v2, RMM_DIAG_STREAM_SYNC, stream),
    BEFORE_ON_STREAM(cuStreamWriteValue64_v2, RMM_DIAG_STREAM_SYNC, stream),
    BEFORE_ON_STREAM(cuStreamBatchMemOp, RMM_DIAG_STREAM_SYNC, stream),
    BEFORE_ON_STREAM(cuStreamBatchMemOp_v2, RMM_DIAG_STREAM_SYNC, stream),
    BEFORE_ON_STREAM(cuSignalExternalSemaphoresAsync, RMM_DIAG_STREAM_SYNC, stream),
    ON_STREAM(cuStreamBatchMemOp, RMM_DIAG_STREAM_UNSURE, stream),
    ON_STREAM(cuStreamBatchMemOp_v2, RMM_DIAG_STREAM_UNSURE, stream),
    ON_STREAM(cuStreamWaitValue32, RMM_DIAG_STREAM_UNSURE, stream),
    ON_STREAM(cuStreamWaitValue64, RMM_DIAG_STREAM_UNSURE, stream),
    ON_STREAM(cuStreamWaitValue32_v2, RMM_DIAG_STREAM_UNSURE, stream),
    ON_STREAM(cuStreamWaitValue64_v2, RMM_DIAG_STREAM_UNSURE, stream),
    ON_STREAM(cuWaitExternalSemaphoresAsync, RMM_DIAG_STREAM_UNSURE, stream),
    ON_STREAM(cuStreamBeginCapture, RMM_DIAG_CAPTURE_BEGIN, hStream),
    ON_STREAM(cuStreamBeginCapture_v2, RMM_DIAG_CAPTURE_BEGIN, hStream),
    ON_STREAM(cuStreamEndCapture, RMM_DIAG_CAPTURE_END, hStream),
    ENTRY(
        cuEventRecord, CBID(cuEventRecord_ptsz), RMM_DIAG_EVENT_RECORD,
        AT(cuEventRecord, hStream), AT(cuEventRecord, hEvent), ABSENT, false),
    ENTRY(
        cuEventRecordWithFlags, CBID(cuEventRecordWithFlags_ptsz),
        RMM_DIAG_EVENT_RECORD, AT(cuEventRecordWithFlags, hStream),
        AT(cuEventRecordWithFlags, hEvent), AT(cuEventRecordWithFlags, flags), false),
    ENTRY(
        cuStreamWaitEvent, CBID(cuStreamWaitEvent_ptsz), RMM_DIAG_EVENT_WAIT,
        AT(cuStreamWaitEvent, hStream), AT(cuStreamWaitEvent, hEvent),
        AT(cuStreamWaitEvent, Flags), false),
    ON_EVENT(cuEventSynchronize, RMM_DIAG_EVENT_SYNC, hEvent),
    ON_EVENT(cuEventQuery, RMM_DIAG_EVENT_SYNC, hEvent),
    ON_EVENT(cuEventElapsedTime, RMM_DIAG_EVENT_SYNC, hStart),
    ON_EVENT(cuEventElapsedTime, RMM_DIAG_EVENT_SYNC, hEnd),
    ON_EVENT(cuEventDestroy, RMM_DIAG_EVENT_DESTROY, hEvent),
    ON_EVENT(cuEventDestroy_v2, RMM_DIAG_EVENT_DESTROY, hEvent),
    /* they wait for one device or more; cupti_source.c knows which */
    OF_ALL(cuCtxSynchronize, RMM_DIAG_DEVICE_SYNC),
    OF_ALL(cuMemFree_v2, RMM_DIAG_DEVICE_SYNC),
    OF_ALL(cuMemFreeHost, RMM_DIAG_DEVICE_SYNC),
    OF_ALL(cuMemcpyPeer, RMM_DIAG_DEVICE_SYNC),
    OF_ALL(cuMemcpyPeer_ptds, RMM_DIAG_DEVICE_SYNC),
    OF_ALL(cuMemcpy3DPeer, RMM_DIAG_DEVICE_SYNC),
    OF_ALL(cuMemcpy3DPeer_ptds, RMM_DIAG_DEVICE_SYNC),
    OF_ALL(cuIpcOpenEventHandle, RMM_DIAG_ORDER_LOST),
    OF_ALL(cuIpcGetEventHandle, RMM_DIAG_ORDER_LOST),
    OF_ALL(cuGraphAddEventRecordNode, RMM_DIAG_ORDER_LOST),
    OF_ALL(cuGraphAddEventWaitNode, RMM_DIAG_ORDER_LOST),
    OF_ALL(cuGraphAddBatchMemOpNode, RMM_DIAG_ORDER_LOST),
    OF_ALL(cuGraphAddExternalSemaphoresWaitNode, RMM_DIAG_ORDER_LOST),
#if CUDA_VERSION >= 12020
    RECENT_OF_ALL(cuGraphAddNode, RMM_DIAG_ORDER_LOST),
#endif
#if CUDA_VERSION >= 12030
    RECENT_OF_ALL(cuGraphAddNode_v2, RMM_DIAG_ORDER_LOST),
    ENTRY(
        cuStreamBeginCaptureToGraph, CBID(cuStreamBeginCaptureToGraph_ptsz),
        RMM_DIAG_CAPTURE_BEGIN, AT(cuStreamBeginCaptureToGraph, hStream), ABSENT,
        ABSENT, true),
#endif
#if CUDA_VERSION >= 12040
    RECENT_OF_ALL(cuGreenCtxRecordEvent, RMM_DIAG_ORDER_LOST),
    RECENT_OF_ALL(cuGreenCtxWaitEvent, RMM_DIAG_ORDER_LOST),
#endif
#if CUDA_VERSION >= 12050
    RECENT_OF_ALL(cuCtxRecordEvent, RMM_DIAG_ORDER_LOST),
    RECENT_OF_ALL(cuCtxWaitEvent, RMM_DIAG_ORDER_LOST),
    ENTRY(
        cuGreenCtxStreamCreate, 0, RMM_DIAG_STREAM_CREATE,
        AT(cuGreenCtxStreamCreate, phStream), ABSENT, AT(cuGreenCtxStreamCreate, flags),
        true),
#endif
#if CUDA_VERSION >= 12080
    ENTRY(
        cuEventElapsedTime_v2, 0, RMM_DIAG_EVENT_SYNC, ABSENT,
        AT(cuEventElapsedTime_v2, hStart), ABSENT, true),
    ENTRY(
        cuEventElapsedTime_v2, 0, RMM_DIAG_EVENT_SYNC, ABSENT,
        AT(cuEventElapsedTime_v2, hEnd), ABSENT, true),
#endif
#if CUDA_VERSION >= 13000
    RECENT_OF_ALL(cuCtxSynchronize_v2, RMM_DIAG_DEVICE_SYNC),
#endif
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

bool cupti_order_call(size_t i, cupti_call_t *call_out)
{
    const order_call_t *call = &calls[i % CALLS];

    if (i >= CALLS * 2) {
        return false;
    }
    call_out->id = i < CALLS || call->twin == 0 ? call->id : call->twin;
    call_out->is_recent = call->is_recent;
    return true;
}

static bool is_of_stream(const order_call_t *call)
{
    return call->kind == RMM_DIAG_STREAM_CREATE ||
           call->kind == RMM_DIAG_STREAM_DESTROY;
}

bool cupti_order_stream_call(size_t i, cupti_call_t *call_out)
{
    for (size_t k = 0; k < CALLS; k++) {
        if (is_of_stream(&calls[k]) && i-- == 0) {
            *call_out = (cupti_call_t){calls[k].id, calls[k].is_recent};
            return true;
        }
    }
    return false;
}

bool cupti_order_is_stream_call(CUpti_CallbackId id)
{
    size_t i = 0;

    while (i < CALLS && (calls[i].id != id || !is_of_stream(&calls[i]))) {
        i++;
    }
    return i < CALLS;
}

/* --- one call ---------------------------------------------------------------------------- */

static uint32_t flags_at(const void *params, uint8_t at)
{
    uint32_t flags = 0;

    memcpy(&flags, (const char *)params + at, sizeof(flags));
    return flags;
}

static bool is_reported_early(const order_call_t *call)
{
    return call->is_early || call->kind == RMM_DIAG_STREAM_DESTROY ||
           call->kind == RMM_DIAG_EVENT_DESTROY;
}

/* It has happened, or is about to. A capture ends whatever comes of it, if it is the right one. */
static bool is_to_be_reported(const order_call_t *call, const CUpti_CallbackData *data)
{
    CUresult result = CUDA_ERROR_UNKNOWN;

    if (data->callbackSite == CUPTI_API_ENTER || is_reported_early(call)) {
        return data->callbackSite == CUPTI_API_ENTER && is_reported_early(call);
    }
    if (data->functionReturnValue != NULL) {
        memcpy(&result, data->functionReturnValue, sizeof(result));
    }
    return result == CUDA_SUCCESS || (call->kind == RMM_DIAG_CAPTURE_END &&
                                      result != CUDA_ERROR_STREAM_CAPTURE_UNMATCHED &&
                                      result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
}

static rmm_stream_t
stream_of(const order_call_t *call, bool is_twin, const void *params)
{
    uint64_t word = word_at(params, call->stream_at);

    if (call->kind == RMM_DIAG_STREAM_CREATE && word != 0) {
        memcpy(&word, (const void *)(uintptr_t)word, sizeof(word)); /* the new one */
    }
    return cupti_stream(word, is_twin);
}

static_assert(
    CU_STREAM_NON_BLOCKING == 1 && CU_EVENT_RECORD_EXTERNAL == 1 &&
        CU_EVENT_WAIT_EXTERNAL == 1,
    "the first flag");

/* A stream that captures records it. */
static bool is_work(const order_call_t *call)
{
    return call->kind == RMM_DIAG_EVENT_RECORD || call->kind == RMM_DIAG_EVENT_WAIT ||
           call->kind == RMM_DIAG_STREAM_SYNC;
}

static void tell(
    const order_call_t *call, bool is_twin, const void *params, int32_t device,
    rmm_diag_event_fn visit, void *context)
{
    uint32_t flag = call->flags_at == ABSENT ? 0 : flags_at(params, call->flags_at) & 1;
    uint64_t word = call->event_at == ABSENT ? flag : word_at(params, call->event_at);
    rmm_stream_t stream = stream_of(call, is_twin, params);
    const rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        /* an event that a graph records, or waits for, each time it runs */
        .kind =
            call->event_at != ABSENT && flag != 0 ? RMM_DIAG_ORDER_LOST : call->kind,
        .device = device,
        .stream = stream,
        .words = &word,
        .word_count = 1,
        .capturing = is_work(call) && cupti_graphs_captured(stream) != 0 ? 1 : 0};

    visit(context, &event);
}

void cupti_order_each(
    CUpti_CallbackId id, const CUpti_CallbackData *data, int32_t device,
    rmm_diag_event_fn visit, void *context)
{
    for (size_t i = 0; i < CALLS; i++) {
        bool is_twin = calls[i].twin == id && id != 0;

        if ((calls[i].id == id || is_twin) && is_to_be_reported(&calls[i], data)) {
            tell(&calls[i], is_twin, data->functionParams, device, visit, context);
        }
    }
}

static bool records_event(const CUlaunchAttribute *attribute)
{
#if CUDA_VERSION >= 12030
    if (attribute->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
        return true;
    }
#endif
    return attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
}

void cupti_order_launch(
    const CUlaunchConfig *config, rmm_diag_event_fn visit, void *context)
{
    for (unsigned i = 0;
         config != NULL && config->attrs != NULL && i < config->numAttrs; i++) {
        /* both kinds begin with the event */
        uint64_t word =
            (uint64_t)(uintptr_t)config->attrs[i].value.programmaticEvent.event;
        const rmm_diag_event_v1_t event = {
            .struct_size = sizeof(event),
            .kind = RMM_DIAG_EVENT_DESTROY,
            .words = &word,
            .word_count = 1};

        if (records_event(&config->attrs[i])) {
            visit(context, &event);
        }
    }
}
