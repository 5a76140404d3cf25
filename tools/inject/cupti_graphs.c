/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs in the parameters of the driver's calls; see cupti_graphs.h. */
#include "inject/cupti_graphs.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

/* cuda.h maps these to newer versions; here each version is meant by its own name. */
#undef cuGraphAddKernelNode
#undef cuGraphAddNode
#undef cuGraphExecKernelNodeSetParams
#undef cuGraphExecUpdate
#undef cuGraphInstantiate
#undef cuGraphKernelNodeSetParams
#undef cuStreamBeginCapture

typedef CUresult(CUDAAPI *capture_info_fn)(
    CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
    const CUgraphNode **dependencies, size_t *dependency_count);

static capture_info_fn capture_info; /* NULL: this driver cannot say */
static _Atomic(uint32_t) captures;   /* under way */

typedef enum graph_action {
    GRAPH_BEGINS,      /* a capture */
    GRAPH_BEGINS_INTO, /* a capture that adds to a graph */
    GRAPH_IS_CAPTURED,
    GRAPH_IS_CREATED, /* empty, at an address */
    GRAPH_GETS_PART,
    GRAPH_IS_MADE,    /* at an address, of another one, to be launched */
    GRAPH_IS_CLONED,  /* the same, not to be launched itself */
    GRAPH_IS_UPDATED, /* it has the nodes of another one */
    GRAPH_IS_CHANGED,
    GRAPH_IS_DESTROYED
} graph_action_t;

typedef struct graph_call {
    uint16_t id;
    uint8_t action;
    uint8_t graph_at; /* where in the parameters; or the stream */
    uint8_t of_at;
    bool is_twin;
    bool is_recent;
} graph_call_t;

#define ENTRY(call, what, graph, of, twin, recent)                                     \
    {                                                                                  \
        CBID(call), what, graph, of, twin, recent                                      \
    }
#define ON_STREAM(call, what)                                                          \
    ENTRY(call, what, AT(call, hStream), ABSENT, false, false),                        \
        ENTRY(call##_ptsz, what, AT(call, hStream), ABSENT, true, false)
#define MAKES(call)                                                                    \
    ENTRY(call, GRAPH_IS_MADE, AT(call, phGraphExec), AT(call, hGraph), false, false)
#define BEGINS_INTO(call)                                                              \
    ENTRY(call, GRAPH_BEGINS_INTO, AT(call, hGraph), ABSENT, false, true)
#define CHANGES(call, recent)                                                          \
    ENTRY(call, GRAPH_IS_CHANGED, AT(call, hGraph), ABSENT, false, recent)
#define CHANGES_EXEC(call, recent)                                                     \
    ENTRY(call, GRAPH_IS_CHANGED, AT(call, hGraphExec), ABSENT, false, recent)
#define CHANGES_SOME(call, recent)                                                     \
    ENTRY(call, GRAPH_IS_CHANGED, ABSENT, ABSENT, false, recent)

static const graph_call_t calls[] = {
    ON_STREAM(cuStreamBeginCapture, GRAPH_BEGINS),
    ON_STREAM(cuStreamBeginCapture_v2, GRAPH_BEGINS),
    ON_STREAM(cuStreamEndCapture, GRAPH_IS_CAPTURED),
    MAKES(cuGraphInstantiate),
    MAKES(cuGraphInstantiate_v2),
    MAKES(cuGraphInstantiateWithFlags),
    MAKES(cuGraphInstantiateWithParams),
    MAKES(cuGraphInstantiateWithParams_ptsz),
    ENTRY(
        cuGraphClone, GRAPH_IS_CLONED, AT(cuGraphClone, phGraphClone),
        AT(cuGraphClone, originalGraph), false, false),
    ENTRY(
        cuGraphExecUpdate, GRAPH_IS_UPDATED, AT(cuGraphExecUpdate, hGraphExec),
        AT(cuGraphExecUpdate, hGraph), false, false),
    ENTRY(
        cuGraphExecUpdate_v2, GRAPH_IS_UPDATED, AT(cuGraphExecUpdate_v2, hGraphExec),
        AT(cuGraphExecUpdate_v2, hGraph), false, false),
    ENTRY(
        cuGraphDestroy, GRAPH_IS_DESTROYED, AT(cuGraphDestroy, hGraph), ABSENT, false,
        false),
    ENTRY(
        cuGraphExecDestroy, GRAPH_IS_DESTROYED, AT(cuGraphExecDestroy, hGraphExec),
        ABSENT, false, false),
    CHANGES(cuGraphAddKernelNode, false),
    CHANGES(cuGraphAddKernelNode_v2, false),
    CHANGES(cuGraphAddMemcpyNode, false),
    CHANGES(cuGraphAddMemsetNode, false),
    ENTRY(
        cuGraphCreate, GRAPH_IS_CREATED, AT(cuGraphCreate, phGraph), ABSENT, false,
        false),
    ENTRY(
        cuGraphAddChildGraphNode, GRAPH_GETS_PART, AT(cuGraphAddChildGraphNode, hGraph),
        AT(cuGraphAddChildGraphNode, childGraph), false, false),
    CHANGES_SOME(
        cuGraphChildGraphNodeGetGraph, false), /* of a part, which may change */
    CHANGES_EXEC(cuGraphExecKernelNodeSetParams, false),
    CHANGES_EXEC(cuGraphExecKernelNodeSetParams_v2, false),
    CHANGES_EXEC(cuGraphExecMemcpyNodeSetParams, false),
    CHANGES_EXEC(cuGraphExecMemsetNodeSetParams, false),
    CHANGES_EXEC(cuGraphExecChildGraphNodeSetParams, false),
    CHANGES_EXEC(cuGraphNodeSetEnabled, false),
    CHANGES_SOME(cuGraphKernelNodeSetParams, false),
    CHANGES_SOME(cuGraphKernelNodeSetParams_v2, false),
    CHANGES_SOME(cuGraphMemcpyNodeSetParams, false),
    CHANGES_SOME(cuGraphMemsetNodeSetParams, false),
    CHANGES_SOME(cuGraphDestroyNode, false),
#if CUDA_VERSION >= 12020
    CHANGES(cuGraphAddNode, true),
    CHANGES_EXEC(cuGraphExecNodeSetParams, true),
    CHANGES_SOME(cuGraphNodeSetParams, true),
#endif
#if CUDA_VERSION >= 12030
    CHANGES(cuGraphAddNode_v2, true),
    BEGINS_INTO(cuStreamBeginCaptureToGraph),
    BEGINS_INTO(cuStreamBeginCaptureToGraph_ptsz),
#endif
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

bool cupti_graph_call(size_t i, cupti_call_t *call_out)
{
    if (i >= CALLS) {
        return false;
    }
    call_out->id = calls[i].id;
    call_out->is_recent = calls[i].is_recent;
    return true;
}

void cupti_graphs_open(void)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = cuda != NULL ? dlsym(cuda, "cuStreamGetCaptureInfo_v2") : NULL;

    memcpy(&capture_info, &symbol, sizeof(symbol));
    (void)dlerror();
}

static uint64_t ask(rmm_stream_t stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = NULL;

    return capture_info != NULL &&
                   capture_info(stream, &status, NULL, &graph, NULL, NULL) ==
                       CUDA_SUCCESS &&
                   status == CU_STREAM_CAPTURE_STATUS_ACTIVE
               ? (uint64_t)(uintptr_t)graph
               : 0;
}

bool cupti_graphs_is_capturing(void)
{
    /* relaxed: a thread that captures sees at least its own begin; a stale count of another
     * thread's captures is that of a moment ago */
    return atomic_load_explicit(&captures, memory_order_relaxed) != 0;
}

uint64_t cupti_graphs_captured(rmm_stream_t stream)
{
    return cupti_graphs_is_capturing() ? ask(stream) : 0;
}

static CUresult result_of(const CUpti_CallbackData *data)
{
    CUresult result = CUDA_ERROR_UNKNOWN;

    if (data->functionReturnValue != NULL) {
        memcpy(&result, data->functionReturnValue, sizeof(result));
    }
    return result;
}

/* Other errors are of a stream that did not capture. A count that is too high costs a question to
 * the driver for each call, one that is too low loses what is captured. */
static bool has_ended(const CUpti_CallbackData *data)
{
    CUresult result = result_of(data);

    return result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
           result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

static void end_capture(const CUpti_CallbackData *data)
{
    uint32_t count = atomic_load_explicit(&captures, memory_order_relaxed);

    while (
        has_ended(data) && count > 0 &&
        !atomic_compare_exchange_weak_explicit(
            &captures, &count, count - 1, memory_order_relaxed, memory_order_relaxed)) {
    }
}

static void tell_words(
    uint32_t kind, const uint64_t *words, size_t count, rmm_diag_event_fn visit,
    void *context)
{
    const rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = kind,
        .words = words,
        .word_count = count};

    visit(context, &event);
}

static void
tell(uint32_t kind, uint64_t graph, uint64_t of, rmm_diag_event_fn visit, void *context)
{
    tell_words(kind, (const uint64_t[]){graph, of}, 2, visit, context);
}

static void tell_copy(
    uint64_t place, uint64_t of, bool is_clone, rmm_diag_event_fn visit, void *context)
{
    uint64_t words[] = {0, of, is_clone ? 1 : 0};

    if (place != 0 && of != 0) {
        memcpy(&words[0], (const void *)(uintptr_t)place, sizeof(words[0]));
        tell_words(RMM_DIAG_GRAPH_MADE, words, 3, visit, context);
    }
}

/* The call has succeeded. */
static void tell_done(
    const graph_call_t *call, const void *params, rmm_diag_event_fn visit,
    void *context)
{
    uint64_t graph = word_at(params, call->graph_at);
    uint64_t of = word_at(params, call->of_at);

    switch (call->action) {
    case GRAPH_BEGINS:
        atomic_fetch_add_explicit(&captures, 1, memory_order_relaxed);
        graph = ask(cupti_stream(graph, call->is_twin));
        if (graph != 0) {
            tell(RMM_DIAG_GRAPH_MADE, graph, 0, visit, context);
        }
        break;
    case GRAPH_BEGINS_INTO:
        atomic_fetch_add_explicit(&captures, 1, memory_order_relaxed);
        tell(RMM_DIAG_GRAPH_CHANGED, graph, 0, visit, context);
        break;
    case GRAPH_IS_MADE:
    case GRAPH_IS_CLONED:
        tell_copy(graph, of, call->action == GRAPH_IS_CLONED, visit, context);
        break;
    case GRAPH_IS_CREATED:
        tell(RMM_DIAG_GRAPH_MADE, result_at(params, call->graph_at), 0, visit, context);
        break;
    case GRAPH_GETS_PART:
        tell(RMM_DIAG_GRAPH_PART, graph, of, visit, context);
        break;
    case GRAPH_IS_UPDATED:
        tell(RMM_DIAG_GRAPH_MADE, graph, of, visit, context);
        break;
    default: /* GRAPH_IS_CHANGED */
        tell(RMM_DIAG_GRAPH_CHANGED, graph, 0, visit, context);
        break;
    }
}

void cupti_graphs_each(
    CUpti_CallbackId id, const CUpti_CallbackData *data, rmm_diag_event_fn visit,
    void *context)
{
    bool is_before = data->callbackSite == CUPTI_API_ENTER;
    size_t i = 0;

    while (i < CALLS && calls[i].id != id) {
        i++;
    }
    if (i == CALLS || is_before != (calls[i].action == GRAPH_IS_DESTROYED)) {
        return;
    }
    if (is_before) {
        tell(
            RMM_DIAG_GRAPH_ENDS, word_at(data->functionParams, calls[i].graph_at), 0,
            visit, context);
    } else if (calls[i].action == GRAPH_IS_CAPTURED) {
        end_capture(data);
    } else if (result_of(data) == CUDA_SUCCESS) {
        tell_done(&calls[i], data->functionParams, visit, context);
    }
}
