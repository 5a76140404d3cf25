/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges in the parameters of the driver's calls; see cupti_ranges.h. Most calls are described
 * by where their parameters are; those with a structure or with arrays have a function each.
 * The _ptds and _ptsz twins of a call have the same parameters.
 */
#include "inject/cupti_ranges.h"

#include <assert.h>
#include <stdbool.h>

#include "inject/cupti_params.h"

/* cuda.h maps these to their second versions; here both are meant. */
#undef cuGraphAddNode
#undef cuMemPrefetchAsync
#undef cuMemcpy3DBatchAsync
#undef cuMemcpyBatchAsync

typedef struct range_call range_call_t;
typedef struct listener {
    rmm_diag_event_fn visit;
    void *context;
    rmm_stream_t default_stream; /* what stream 0, or none, is */
} listener_t;

/* Gives the listener what a call of this kind was given. */
typedef void (*give_fn)(
    const range_call_t *call, const void *params, const listener_t *listener);

struct range_call {
    uint16_t id, twin; /* the twin: for the per-thread default stream; 0: none */
    give_fn give;
    uint8_t
        stream_at; /* where in the parameters; so in what follows, for give_span() */
    uint8_t to_at, from_at, count_at, rows_at, pitch_at;
    uint8_t kind;         /* rmm_diag_event_kind_t */
    uint8_t unit;         /* bytes of one element that is counted */
    bool is_recent;       /* since CUDA 12.0 */
    bool is_only_checked; /* it is no use: of a graph that may run later, or of order */
};

/* From the first byte to the last of so many rows. */
static uint64_t rows_span(uint64_t width, uint64_t rows, uint64_t pitch)
{
    return width == 0 || rows == 0 ? 0 : (rows - 1) * pitch + width;
}

static rmm_stream_t
stream_of(const range_call_t *call, const void *params, const listener_t *listener)
{
    uint64_t word = word_at(params, call->stream_at);

    return word == 0 ? listener->default_stream : (rmm_stream_t)(uintptr_t)word;
}

/* --- calls whose parameters are the ranges --------------------------------------------- */

static void
give_span(const range_call_t *call, const void *params, const listener_t *listener)
{
    uint64_t words[2] = {word_at(params, call->to_at)};
    rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = call->kind,
        .stream = stream_of(call, params, listener),
        .words = words,
        .word_count = 1,
        .bytes = word_at(params, call->count_at) * call->unit};

    if (call->from_at != ABSENT) {
        words[1] = word_at(params, call->from_at);
        event.word_count = 2;
    }
    event.is_sync = call->stream_at == ABSENT ? 1 : 0;
    event.has_pitch = call->rows_at != ABSENT ? 1 : 0;
    if (call->rows_at != ABSENT) {
        event.bytes = rows_span(
            event.bytes, word_at(params, call->rows_at),
            word_at(params, call->pitch_at));
    }
    listener->visit(listener->context, &event);
}

/* --- copies with pitches ----------------------------------------------------------------- */

/* One side of such a copy. An array has no address: its words are 0. */
typedef struct side {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    size_t x, y, z, pitch, height;
} side_t;

static uint64_t side_begin(const side_t *side)
{
    uint64_t base = side->type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)side->host
                                                     : side->device;

    return side->type == CU_MEMORYTYPE_ARRAY
               ? 0
               : base + (side->z * side->height + side->y) * side->pitch + side->x;
}

static uint64_t side_span(const side_t *side, const CUDA_MEMCPY3D *box)
{
    if (side->type == CU_MEMORYTYPE_ARRAY || box->Depth == 0 || box->Height == 0) {
        return 0;
    }
    return rows_span(
        box->WidthInBytes, (box->Depth - 1) * side->height + box->Height, side->pitch);
}

static void give_pair(
    const range_call_t *call, const side_t *to, const side_t *from,
    const CUDA_MEMCPY3D *box, const void *params, const listener_t *listener)
{
    const uint64_t words[] = {
        side_begin(to), side_begin(from), side_span(to, box), side_span(from, box)};
    const rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = RMM_DIAG_COPY,
        .stream = stream_of(call, params, listener),
        .is_sync = call->stream_at == ABSENT ? 1 : 0,
        .words = words,
        .word_count = 4,
        .bytes = box->WidthInBytes * box->Height * box->Depth};

    listener->visit(listener->context, &event);
}

static void give_sides(
    const range_call_t *call, const CUDA_MEMCPY3D *box, const void *params,
    const listener_t *listener)
{
    const side_t to = {box->dstMemoryType, box->dstHost,  box->dstDevice,
                       box->dstXInBytes,   box->dstY,     box->dstZ,
                       box->dstPitch,      box->dstHeight};
    const side_t from = {box->srcMemoryType, box->srcHost,  box->srcDevice,
                         box->srcXInBytes,   box->srcY,     box->srcZ,
                         box->srcPitch,      box->srcHeight};

    give_pair(call, &to, &from, box, params, listener);
}

/* NULL: the program passed none, and the call will be refused. */
static const void *structure_of(const void *params)
{
    return (const void *)(uintptr_t)word_at(params, 0);
}
#define FIRST(call)                                                                    \
    static_assert(                                                                     \
        offsetof(call##_params, pCopy) == 0, #call " begins with its structure")
FIRST(cuMemcpy2D_v2);
FIRST(cuMemcpy2DUnaligned_v2);
FIRST(cuMemcpy2DAsync_v2);
FIRST(cuMemcpy3D_v2);
FIRST(cuMemcpy3DAsync_v2);
FIRST(cuMemcpy3DPeer);
FIRST(cuMemcpy3DPeerAsync);

static void
give_box(const range_call_t *call, const void *params, const listener_t *listener)
{
    const CUDA_MEMCPY3D *box = structure_of(params);

    if (box != NULL) {
        give_sides(call, box, params, listener);
    }
}

static void
give_rectangle(const range_call_t *call, const void *params, const listener_t *listener)
{
    const CUDA_MEMCPY2D *copy = structure_of(params);

    if (copy != NULL) {
        const CUDA_MEMCPY3D box = {
            .srcXInBytes = copy->srcXInBytes,
            .srcY = copy->srcY,
            .srcMemoryType = copy->srcMemoryType,
            .srcHost = copy->srcHost,
            .srcDevice = copy->srcDevice,
            .srcPitch = copy->srcPitch,
            .dstXInBytes = copy->dstXInBytes,
            .dstY = copy->dstY,
            .dstMemoryType = copy->dstMemoryType,
            .dstHost = copy->dstHost,
            .dstDevice = copy->dstDevice,
            .dstPitch = copy->dstPitch,
            .WidthInBytes = copy->WidthInBytes,
            .Height = copy->Height,
            .Depth = 1};

        give_sides(call, &box, params, listener);
    }
}

/* A copy between devices has the same parameters, and contexts where the other has nothing. */
#define SAME(field)                                                                    \
    static_assert(                                                                     \
        offsetof(CUDA_MEMCPY3D, field) == offsetof(CUDA_MEMCPY3D_PEER, field),         \
        "CUDA_MEMCPY3D and its twin for devices differ")
SAME(srcDevice);
SAME(srcHeight);
SAME(dstDevice);
SAME(dstHeight);
SAME(Depth);

/* --- batches ------------------------------------------------------------------------------ */

#if CUDA_VERSION >= 12080
static void
give_batch(const range_call_t *call, const void *params, const listener_t *listener)
{
    const cuMemcpyBatchAsync_params *batch = params;

    if (batch->dsts == NULL || batch->srcs == NULL || batch->sizes == NULL) {
        return;
    }
    for (size_t i = 0; i < batch->count; i++) {
        const uint64_t words[] = {batch->dsts[i], batch->srcs[i]};
        const rmm_diag_event_v1_t event = {
            .struct_size = sizeof(event),
            .kind = RMM_DIAG_COPY,
            .stream = stream_of(call, params, listener),
            .words = words,
            .word_count = 2,
            .bytes = batch->sizes[i]};

        listener->visit(listener->context, &event);
    }
}
#endif

#if CUDA_VERSION >= 13000
#define SAME_IN_V2(field)                                                              \
    static_assert(                                                                     \
        offsetof(cuMemcpyBatchAsync_params, field) ==                                  \
            offsetof(cuMemcpyBatchAsync_v2_params, field),                             \
        "cuMemcpyBatchAsync and its second version differ")
SAME_IN_V2(dsts);
SAME_IN_V2(srcs);
SAME_IN_V2(sizes);
SAME_IN_V2(count);
#endif

/* The sizes of a copy between memory and an array are in elements of the array, and how large
 * these are only the driver knows: so such a copy is not reported. */
#if CUDA_VERSION >= 12080
static side_t side_of(const CUmemcpy3DOperand *operand, const CUextent3D *extent)
{
    if (operand->type != CU_MEMCPY_OPERAND_TYPE_POINTER) {
        return (side_t){.type = CU_MEMORYTYPE_ARRAY};
    }
    return (side_t){
        .type = CU_MEMORYTYPE_DEVICE,
        .device = operand->op.ptr.ptr,
        .pitch =
            operand->op.ptr.rowLength > 0 ? operand->op.ptr.rowLength : extent->width,
        .height = operand->op.ptr.layerHeight > 0 ? operand->op.ptr.layerHeight
                                                  : extent->height};
}

static void
give_boxes(const range_call_t *call, const void *params, const listener_t *listener)
{
    const cuMemcpy3DBatchAsync_params *batch = params;

    for (size_t i = 0; batch->opList != NULL && i < batch->numOps; i++) {
        const CUDA_MEMCPY3D_BATCH_OP *copy = &batch->opList[i];
        const CUDA_MEMCPY3D box = {
            .WidthInBytes = copy->extent.width,
            .Height = copy->extent.height,
            .Depth = copy->extent.depth};
        side_t to = side_of(&copy->dst, &copy->extent);
        side_t from = side_of(&copy->src, &copy->extent);

        if (to.type == from.type) {
            give_pair(call, &to, &from, &box, params, listener);
        }
    }
}

/* How much is written is not known before; what is known is that it begins at `dst`. */
static void
give_streams(const range_call_t *call, const void *params, const listener_t *listener)
{
    const cuMemBatchDecompressAsync_params *batch = params;

    for (size_t i = 0; batch->paramsArray != NULL && i < batch->count; i++) {
        const CUmemDecompressParams *one = &batch->paramsArray[i];
        const uint64_t words[] = {
            (uint64_t)(uintptr_t)one->dst, (uint64_t)(uintptr_t)one->src, 1,
            one->srcNumBytes};
        const rmm_diag_event_v1_t event = {
            .struct_size = sizeof(event),
            .kind = RMM_DIAG_COPY,
            .stream = stream_of(call, params, listener),
            .words = words,
            .word_count = 4,
            .bytes = one->srcNumBytes};

        listener->visit(listener->context, &event);
    }
}
#endif

#if CUDA_VERSION >= 13000
/* Prefetches and discards: they begin with the same parameters. */
static void
give_blocks(const range_call_t *call, const void *params, const listener_t *listener)
{
    const cuMemDiscardBatchAsync_params *batch = params;

    if (batch->dptrs == NULL || batch->sizes == NULL) {
        return;
    }
    for (size_t i = 0; i < batch->count; i++) {
        const uint64_t address = batch->dptrs[i];
        const rmm_diag_event_v1_t event = {
            .struct_size = sizeof(event),
            .kind = call->kind,
            .stream = stream_of(call, params, listener),
            .words = &address,
            .word_count = 1,
            .bytes = batch->sizes[i]};

        listener->visit(listener->context, &event);
    }
}

#define SAME_IN_BATCH(name)                                                            \
    static_assert(                                                                     \
        offsetof(name##_params, dptrs) ==                                              \
                offsetof(cuMemDiscardBatchAsync_params, dptrs) &&                      \
            offsetof(name##_params, sizes) ==                                          \
                offsetof(cuMemDiscardBatchAsync_params, sizes) &&                      \
            offsetof(name##_params, count) ==                                          \
                offsetof(cuMemDiscardBatchAsync_params, count),                        \
        #name " and cuMemDiscardBatchAsync begin differently")
SAME_IN_BATCH(cuMemPrefetchBatchAsync);
SAME_IN_BATCH(cuMemDiscardAndPrefetchBatchAsync);
static_assert(
    offsetof(cuMemcpy3DBatchAsync_params, opList) ==
            offsetof(cuMemcpy3DBatchAsync_v2_params, opList) &&
        offsetof(cuMemcpy3DBatchAsync_params, numOps) ==
            offsetof(cuMemcpy3DBatchAsync_v2_params, numOps),
    "cuMemcpy3DBatchAsync and its second version differ");
#endif

/* --- what is only checked ---------------------------------------------------------------- */

/* A node of a graph, by its parameters: what from_at is for other calls is where these are. */
static const void *node_at(const range_call_t *call, const void *params)
{
    return (const void *)(uintptr_t)word_at(params, call->from_at);
}

static void
give_copy_node(const range_call_t *call, const void *params, const listener_t *listener)
{
    const CUDA_MEMCPY3D *box = node_at(call, params);

    if (box != NULL) {
        give_sides(call, box, params, listener);
    }
}

static void give_fill(
    const range_call_t *call, const CUDA_MEMSET_NODE_PARAMS *fill, const void *params,
    const listener_t *listener)
{
    const uint64_t address = fill->dst;
    const rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = RMM_DIAG_SET,
        .stream = stream_of(call, params, listener),
        .words = &address,
        .word_count = 1,
        .bytes = rows_span(fill->width * fill->elementSize, fill->height, fill->pitch),
        .has_pitch = fill->height > 1 ? 1 : 0};

    listener->visit(listener->context, &event);
}

static void
give_fill_node(const range_call_t *call, const void *params, const listener_t *listener)
{
    const CUDA_MEMSET_NODE_PARAMS *fill = node_at(call, params);

    if (fill != NULL) {
        give_fill(call, fill, params, listener);
    }
}

#if CUDA_VERSION >= 12020
#define SAME_FILL(field)                                                               \
    static_assert(                                                                     \
        offsetof(CUDA_MEMSET_NODE_PARAMS, field) ==                                    \
            offsetof(CUDA_MEMSET_NODE_PARAMS_v2, field),                               \
        "CUDA_MEMSET_NODE_PARAMS and its second version differ")
SAME_FILL(dst);
SAME_FILL(pitch);
SAME_FILL(elementSize);
SAME_FILL(width);
SAME_FILL(height);

/* A node of any kind. */
static void
give_node(const range_call_t *call, const void *params, const listener_t *listener)
{
    const CUgraphNodeParams *node = node_at(call, params);

    if (node != NULL && node->type == CU_GRAPH_NODE_TYPE_MEMCPY) {
        give_sides(call, &node->memcpy.copyParams, params, listener);
    } else if (node != NULL && node->type == CU_GRAPH_NODE_TYPE_MEMSET) {
        give_fill(call, (const void *)&node->memset, params, listener);
    }
}
#endif

/* --- all of them -------------------------------------------------------------------------- */

#define CALL(name, twin_suffix, function, stream)                                      \
    .id = CBID(name), .twin = CBID(name##twin_suffix), .give = function,               \
    .stream_at = stream

#define COPY(name, to, from)                                                           \
    {                                                                                  \
        CALL(name, _ptds, give_span, ABSENT),                                          \
            .kind = RMM_DIAG_COPY, .to_at = AT(name, to), .from_at = AT(name, from),   \
            .count_at = AT(name, ByteCount), .rows_at = ABSENT, .unit = 1              \
    }
#define COPY_ASYNC(name, to, from)                                                     \
    {                                                                                  \
        CALL(name, _ptsz, give_span, AT(name, hStream)),                               \
            .kind = RMM_DIAG_COPY, .to_at = AT(name, to), .from_at = AT(name, from),   \
            .count_at = AT(name, ByteCount), .rows_at = ABSENT, .unit = 1              \
    }
/* The array has an offset and no address: only the other side is reported. */
#define COPY_TO_ARRAY(name, suffix, from, stream)                                      \
    {                                                                                  \
        CALL(name, suffix, give_span, stream),                                         \
            .kind = RMM_DIAG_COPY, .to_at = ABSENT, .from_at = AT(name, from),         \
            .count_at = AT(name, ByteCount), .rows_at = ABSENT, .unit = 1              \
    }
#define COPY_FROM_ARRAY(name, suffix, to, stream)                                      \
    {                                                                                  \
        CALL(name, suffix, give_span, stream),                                         \
            .kind = RMM_DIAG_COPY, .to_at = AT(name, to), .from_at = ABSENT,           \
            .count_at = AT(name, ByteCount), .rows_at = ABSENT, .unit = 1              \
    }
#define FILL_OF(size) .kind = RMM_DIAG_SET, .from_at = ABSENT, .unit = size
#define FILL(name, size)                                                               \
    {                                                                                  \
        CALL(name, _ptds, give_span, ABSENT), FILL_OF(size),                           \
            .to_at = AT(name, dstDevice), .count_at = AT(name, N), .rows_at = ABSENT   \
    }
#define FILL_ASYNC(name, size)                                                         \
    {                                                                                  \
        CALL(name, _ptsz, give_span, AT(name, hStream)), FILL_OF(size),                \
            .to_at = AT(name, dstDevice), .count_at = AT(name, N), .rows_at = ABSENT   \
    }
#define FILL_ROWS(name, size)                                                          \
    {                                                                                  \
        CALL(name, _ptds, give_span, ABSENT), FILL_OF(size),                           \
            .to_at = AT(name, dstDevice), .count_at = AT(name, Width),                 \
            .rows_at = AT(name, Height), .pitch_at = AT(name, dstPitch)                \
    }
#define FILL_ROWS_ASYNC(name, size)                                                    \
    {                                                                                  \
        CALL(name, _ptsz, give_span, AT(name, hStream)), FILL_OF(size),                \
            .to_at = AT(name, dstDevice), .count_at = AT(name, Width),                 \
            .rows_at = AT(name, Height), .pitch_at = AT(name, dstPitch)                \
    }
#define PREFETCH_OF(name)                                                              \
    CALL(name, _ptsz, give_span, AT(name, hStream)),                                   \
        .kind = RMM_DIAG_PREFETCH, .to_at = AT(name, devPtr), .from_at = ABSENT,       \
        .count_at = AT(name, count), .rows_at = ABSENT, .unit = 1
#define PREFETCH(name)                                                                 \
    {                                                                                  \
        PREFETCH_OF(name)                                                              \
    }

#define RECENT_PREFETCH(name)                                                          \
    {                                                                                  \
        PREFETCH_OF(name), .is_recent = true                                           \
    }
#define RECENT_BATCH(name, function, field, what)                                      \
    {                                                                                  \
        CALL(name, _ptsz, function, AT(name, field)), .kind = what, .is_recent = true  \
    }

#define NODE(name, function, field)                                                    \
    {                                                                                  \
        .id = CBID(name), .give = function, .stream_at = ABSENT,                       \
        .from_at = AT(name, field), .is_only_checked = true                            \
    }
#define RECENT_NODE(name, field)                                                       \
    {                                                                                  \
        .id = CBID(name), .give = give_node, .stream_at = ABSENT,                      \
        .from_at = AT(name, field), .is_recent = true, .is_only_checked = true         \
    }

static const range_call_t calls[] = {
    NODE(cuGraphAddMemcpyNode, give_copy_node, copyParams),
    NODE(cuGraphMemcpyNodeSetParams, give_copy_node, nodeParams),
    NODE(cuGraphExecMemcpyNodeSetParams, give_copy_node, copyParams),
    NODE(cuGraphAddMemsetNode, give_fill_node, memsetParams),
    NODE(cuGraphMemsetNodeSetParams, give_fill_node, nodeParams),
    NODE(cuGraphExecMemsetNodeSetParams, give_fill_node, memsetParams),
#if CUDA_VERSION >= 12020
    RECENT_NODE(cuGraphAddNode, nodeParams),
    RECENT_NODE(cuGraphNodeSetParams, nodeParams),
    RECENT_NODE(cuGraphExecNodeSetParams, nodeParams),
#endif
#if CUDA_VERSION >= 12030
    RECENT_NODE(cuGraphAddNode_v2, nodeParams),
#endif
    COPY(cuMemcpy, dst, src),
    COPY_ASYNC(cuMemcpyAsync, dst, src),
    COPY(cuMemcpyHtoD_v2, dstDevice, srcHost),
    COPY(cuMemcpyDtoH_v2, dstHost, srcDevice),
    COPY(cuMemcpyDtoD_v2, dstDevice, srcDevice),
    COPY_ASYNC(cuMemcpyHtoDAsync_v2, dstDevice, srcHost),
    COPY_ASYNC(cuMemcpyDtoHAsync_v2, dstHost, srcDevice),
    COPY_ASYNC(cuMemcpyDtoDAsync_v2, dstDevice, srcDevice),
    COPY(cuMemcpyPeer, dstDevice, srcDevice),
    COPY_ASYNC(cuMemcpyPeerAsync, dstDevice, srcDevice),
    COPY_TO_ARRAY(cuMemcpyDtoA_v2, _ptds, srcDevice, ABSENT),
    COPY_TO_ARRAY(cuMemcpyHtoA_v2, _ptds, srcHost, ABSENT),
    COPY_TO_ARRAY(
        cuMemcpyHtoAAsync_v2, _ptsz, srcHost, AT(cuMemcpyHtoAAsync_v2, hStream)),
    COPY_FROM_ARRAY(cuMemcpyAtoD_v2, _ptds, dstDevice, ABSENT),
    COPY_FROM_ARRAY(cuMemcpyAtoH_v2, _ptds, dstHost, ABSENT),
    COPY_FROM_ARRAY(
        cuMemcpyAtoHAsync_v2, _ptsz, dstHost, AT(cuMemcpyAtoHAsync_v2, hStream)),
    FILL(cuMemsetD8_v2, 1),
    FILL(cuMemsetD16_v2, 2),
    FILL(cuMemsetD32_v2, 4),
    FILL_ASYNC(cuMemsetD8Async, 1),
    FILL_ASYNC(cuMemsetD16Async, 2),
    FILL_ASYNC(cuMemsetD32Async, 4),
    FILL_ROWS(cuMemsetD2D8_v2, 1),
    FILL_ROWS(cuMemsetD2D16_v2, 2),
    FILL_ROWS(cuMemsetD2D32_v2, 4),
    FILL_ROWS_ASYNC(cuMemsetD2D8Async, 1),
    FILL_ROWS_ASYNC(cuMemsetD2D16Async, 2),
    FILL_ROWS_ASYNC(cuMemsetD2D32Async, 4),
    PREFETCH(cuMemPrefetchAsync),
#if CUDA_VERSION >= 12020
    RECENT_PREFETCH(cuMemPrefetchAsync_v2),
#endif
    {CALL(cuMemcpy2D_v2, _ptds, give_rectangle, ABSENT)},
    {CALL(cuMemcpy2DUnaligned_v2, _ptds, give_rectangle, ABSENT)},
    {CALL(cuMemcpy2DAsync_v2, _ptsz, give_rectangle, AT(cuMemcpy2DAsync_v2, hStream))},
    {CALL(cuMemcpy3D_v2, _ptds, give_box, ABSENT)},
    {CALL(cuMemcpy3DAsync_v2, _ptsz, give_box, AT(cuMemcpy3DAsync_v2, hStream))},
    {CALL(cuMemcpy3DPeer, _ptds, give_box, ABSENT)},
    {CALL(cuMemcpy3DPeerAsync, _ptsz, give_box, AT(cuMemcpy3DPeerAsync, hStream))},
#if CUDA_VERSION >= 12080
    RECENT_BATCH(cuMemcpyBatchAsync, give_batch, hStream, RMM_DIAG_COPY),
    RECENT_BATCH(cuMemcpy3DBatchAsync, give_boxes, hStream, RMM_DIAG_COPY),
    RECENT_BATCH(cuMemBatchDecompressAsync, give_streams, stream, RMM_DIAG_COPY),
#endif
#if CUDA_VERSION >= 13000
    RECENT_BATCH(cuMemcpyBatchAsync_v2, give_batch, hStream, RMM_DIAG_COPY),
    RECENT_BATCH(cuMemcpy3DBatchAsync_v2, give_boxes, hStream, RMM_DIAG_COPY),
    RECENT_BATCH(cuMemPrefetchBatchAsync, give_blocks, hStream, RMM_DIAG_PREFETCH),
    /* what was there is lost, as behind a fill */
    RECENT_BATCH(cuMemDiscardBatchAsync, give_blocks, hStream, RMM_DIAG_SET),
    RECENT_BATCH(cuMemDiscardAndPrefetchBatchAsync, give_blocks, hStream, RMM_DIAG_SET),
#endif
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

bool cupti_range_call(size_t i, cupti_call_t *call_out)
{
    if (i >= CALLS * 2) {
        return false;
    }
    call_out->id = i < CALLS || calls[i - CALLS].twin == 0 ? calls[i % CALLS].id
                                                           : calls[i - CALLS].twin;
    call_out->is_recent = calls[i % CALLS].is_recent;
    return true;
}

void cupti_ranges_each(
    CUpti_CallbackId call, const void *params, bool is_before, rmm_diag_event_fn visit,
    void *context)
{
    listener_t listener = {visit, context, NULL};

    for (size_t i = 0; i < CALLS; i++) {
        if (calls[i].id == call || calls[i].twin == call) {
            if (calls[i].is_only_checked && !is_before) {
                return;
            }
            if (calls[i].twin == call) {
                listener.default_stream = RMM_STREAM_PER_THREAD;
            }
            calls[i].give(&calls[i], params, &listener);
            return;
        }
    }
}
