/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs in the parameters of the driver's calls; see cupti_graphs.h. */
#include "inject/cupti_graphs.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

/* cuda.h maps these to newer versions; here each version has its own name. */
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

/* Captures under way whose begin was seen: how many, and of which streams, as handles (0: a free
 * place). Several threads may capture the stream of one handle, which is each thread's own. Those
 * for which there was no place are `unnamed`. */
enum { CAPTURES_NAMED = 64 };

static _Atomic(uint32_t) captures, unnamed;
static _Atomic(uint64_t) capturing[CAPTURES_NAMED];

typedef enum graph_action {
    GRAPH_BEGINS,      /* a capture */
    GRAPH_BEGINS_INTO, /* a capture that adds to a graph, which is at `of_at` */
    GRAPH_IS_CAPTURED, /* that, and those before, are followed in all modes */
    GRAPH_IS_CREATED,  /* empty, at an address */
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
#define BEGINS_INTO(call, twin)                                                        \
    ENTRY(call, GRAPH_BEGINS_INTO, AT(call, hStream), AT(call, hGraph), twin, true)
#define CHANGES(call, recent)                                                          \
    ENTRY(call, GRAPH_IS_CHANGED, AT(call, hGraph), ABSENT, false, recent)
#define CHANGES_EXEC(call, recent)                                                     \
    ENTRY(call, GRAPH_IS_CHANGED, AT(call, hGraphExec), ABSENT, false, recent)
#define CHANGES_SOME(call, recent)                                                     \
    ENTRY(call, GRAPH_IS_CHANGED, ABSENT, ABSENT, false, recent)

/* First those of captures: cupti_capture_call(). */
static const graph_call_t calls[] = {
    ON_STREAM(cuStreamBeginCapture, GRAPH_BEGINS),
    ON_STREAM(cuStreamBeginCapture_v2, GRAPH_BEGINS),
    ON_STREAM(cuStreamEndCapture, GRAPH_IS_CAPTURED),
#if CUDA_VERSION >= 12030
    BEGINS_INTO(cuStreamBeginCaptureToGraph, false),
    BEGINS_INTO(cuStreamBeginCaptureToGraph_ptsz, true),
#endif
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

bool cupti_capture_call(size_t i, cupti_call_t *call_out)
{
    return i < CALLS && calls[i].action <= GRAPH_IS_CAPTURED &&
           cupti_graph_call(i, call_out);
}

bool cupti_capture_is_call(CUpti_CallbackId id)
{
    cupti_call_t call;

    for (size_t i = 0; cupti_capture_call(i, &call); i++) {
        if (call.id == id) {
            return true;
        }
    }
    return false;
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

/* One of the places that have this handle gets another one; false: there is none. */
static bool rename_capture(uint64_t from, uint64_t to)
{
    for (size_t i = 0; i < CAPTURES_NAMED; i++) {
        uint64_t handle = from;

        if (atomic_compare_exchange_strong_explicit(
                &capturing[i], &handle, to, memory_order_relaxed,
                memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

static void begin_capture(uint64_t stream)
{
    if (!rename_capture(0, stream)) {
        atomic_fetch_add_explicit(&unnamed, 1, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&captures, 1, memory_order_relaxed);
}

/* False: it was 0. */
static bool count_down(_Atomic(uint32_t) *count)
{
    uint32_t now = atomic_load_explicit(count, memory_order_relaxed);

    while (now > 0 &&
           !atomic_compare_exchange_weak_explicit(
               count, &now, now - 1, memory_order_relaxed, memory_order_relaxed)) {
    }
    return now > 0;
}

/* A capture that began before its calls were followed is not among those that are counted. */
static void end_capture(uint64_t stream)
{
    if (rename_capture(stream, 0) || count_down(&unnamed)) {
        (void)count_down(&captures);
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
        graph = ask(cupti_stream(graph, call->is_twin));
        if (graph != 0) {
            tell(RMM_DIAG_GRAPH_MADE, graph, 0, visit, context);
        }
        break;
    case GRAPH_BEGINS_INTO:
        tell(RMM_DIAG_GRAPH_CHANGED, of, 0, visit, context);
        break;
    case GRAPH_IS_CAPTURED:
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

/* The call that has this id; NULL: none has. */
static const graph_call_t *find_call(CUpti_CallbackId id)
{
    size_t i = 0;

    while (i < CALLS && calls[i].id != id) {
        i++;
    }
    return i < CALLS ? &calls[i] : NULL;
}

void cupti_graphs_count(CUpti_CallbackId id, const CUpti_CallbackData *data)
{
    const graph_call_t *call = find_call(id);
    uint64_t stream = 0;

    if (call == NULL || call->action > GRAPH_IS_CAPTURED ||
        data->callbackSite == CUPTI_API_ENTER) {
        return;
    }
    stream = (uint64_t)(uintptr_t)cupti_stream(
        word_at(data->functionParams, call->graph_at), call->is_twin);
    if (call->action == GRAPH_IS_CAPTURED && has_ended(data)) {
        end_capture(stream);
    } else if (call->action != GRAPH_IS_CAPTURED && result_of(data) == CUDA_SUCCESS) {
        begin_capture(stream);
    }
}

void cupti_graphs_each(
    CUpti_CallbackId id, const CUpti_CallbackData *data, rmm_diag_event_fn visit,
    void *context)
{
    const graph_call_t *call = find_call(id);
    bool is_before = data->callbackSite == CUPTI_API_ENTER;

    if (call == NULL || is_before != (call->action == GRAPH_IS_DESTROYED)) {
        return;
    }
    if (is_before) {
        tell(
            RMM_DIAG_GRAPH_ENDS, word_at(data->functionParams, call->graph_at), 0,
            visit, context);
    } else if (result_of(data) == CUDA_SUCCESS) {
        tell_done(call, data->functionParams, visit, context);
    }
}
