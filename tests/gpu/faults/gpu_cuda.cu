/* SPDX-License-Identifier: Apache-2.0 */
/* A real GPU; see gpu.h. Kernels do what the twin of a planted fault may do. */
#include "gpu/faults/gpu.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <sched.h>

#include <cuda_runtime.h>

#include <rmm/rmm.h>

#include "gpu/faults/cuda_calls.h"

static void must(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        exit(EXIT_FAILURE);
    }
}

#define MUST(call) must(call, #call)

extern "C" bool gpu_is_there(void)
{
    int count = 0;

    return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

/* --- calls ------------------------------------------------------------------------------ */

/* The driver's functions, with or without the version at the end of the name. */
extern "C" const char *gpu_call_name(gpu_call_t call)
{
    switch (call) {
    case GPU_SET:
    case GPU_SET_BY_LIBRARY:
        return "cuMemsetD8Async*";
    case GPU_COPY_TO:
    case GPU_COPY_FROM:
        return "cuMemcpyAsync*";
    case GPU_PREFETCH:
        return "cuMemPrefetchAsync*";
    case GPU_SET_SYNC:
        return "cuMemsetD8*";
    case GPU_SET_ROWS:
        return "cuMemsetD2D8*";
    case GPU_COPY_SYNC_TO:
    case GPU_COPY_SYNC_FROM:
    case GPU_COPY_SYNC_ANY:
        return "cuMemcpy*";
    case GPU_COPY_HOST_TO:
        return "cuMemcpyHtoDAsync*";
    case GPU_COPY_HOST_FROM:
        return "cuMemcpyDtoHAsync*";
    case GPU_COPY_BETWEEN:
        return "cuMemcpyDtoDAsync*";
    case GPU_COPY_PEER:
        return "cuMemcpy*Async*"; /* it may choose, between addresses of one GPU */
    case GPU_COPY_PEER_SYNC:
        return "cuMemcpy*";
    case GPU_SET_ROWS_ASYNC:
        return "cuMemsetD2D8Async*";
    case GPU_COPY_ROWS_TO:
    case GPU_COPY_ROWS_FROM:
        return "cuMemcpy2D*";
    case GPU_COPY_BOX_FROM:
    case GPU_COPY_BOX_TO:
        return "cuMemcpy3D*";
    case GPU_COPY_ARRAY_FROM:
        return "cuMemcpy*";
    case GPU_COPY_BATCH_FROM:
    case GPU_COPY_BATCH_TO:
        return CUDART_VERSION >= 13000 ? "cuMemcpyBatchAsync*" : NULL;
    case GPU_COPY_BOXES_FROM:
        return CUDART_VERSION >= 13000 ? "cuMemcpy3DBatchAsync*" : NULL;
    case GPU_PREFETCH_BATCH:
        return CUDART_VERSION >= 13000 ? "cuMemPrefetchBatchAsync*" : NULL;
    case GPU_DISCARD:
        return CUDART_VERSION >= 13000 ? "cuMemDiscardBatchAsync*" : NULL;
    case GPU_SET_NODE:
        return "cuGraphAddMemsetNode*";
    case GPU_COPY_NODE_FROM:
        return "cuGraphAddMemcpyNode*";
    default:
        return NULL;
    }
}

static size_t width_of(size_t bytes)
{
    return bytes - (GPU_ROWS - 1) * GPU_PITCH;
}

static cudaError_t copy_box(void *to, void *from, size_t bytes, cudaStream_t stream)
{
    cudaMemcpy3DParms box = {};

    box.srcPtr = make_cudaPitchedPtr(from, GPU_PITCH, GPU_PITCH, GPU_ROWS / 2);
    box.dstPtr = make_cudaPitchedPtr(to, GPU_PITCH, GPU_PITCH, GPU_ROWS / 2);
    box.extent = make_cudaExtent(width_of(bytes), GPU_ROWS / 2, 2);
    box.kind = cudaMemcpyDefault;
    return stream != NULL ? cudaMemcpy3DAsync(&box, stream) : cudaMemcpy3D(&box);
}

static cudaError_t copy_to_array(void *block, size_t bytes)
{
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned char>();
    cudaArray_t array = NULL;
    cudaError_t error = cudaMallocArray(&array, &format, bytes, 1);

    if (error == cudaSuccess) {
        error = cudaMemcpy2DToArray(
            array, 0, 0, block, bytes, bytes, 1, cudaMemcpyDeviceToDevice);
        MUST(cudaFreeArray(array));
    }
    return error;
}

/* `from` NULL: it fills. */
static cudaError_t add_node(void *to, const void *from, size_t bytes)
{
    cudaMemsetParams fill = {};
    cudaGraph_t graph = NULL;
    cudaGraphNode_t node = NULL;
    cudaError_t error = cudaSuccess;

    fill.dst = to;
    fill.elementSize = 1;
    fill.width = bytes;
    fill.height = 1;
    MUST(cudaGraphCreate(&graph, 0));
    if (from != NULL) {
        error = cudaGraphAddMemcpyNode1D(
            &node, graph, NULL, 0, to, from, bytes, cudaMemcpyDeviceToHost);
    } else {
        error = cudaGraphAddMemsetNode(&node, graph, NULL, 0, &fill);
    }
    MUST(cudaGraphDestroy(graph));
    return error;
}

#if CUDART_VERSION >= 13000
/* The first of the two is right. */
static cudaError_t copy_batch(void *to, void *from, size_t bytes, cudaStream_t stream)
{
    const void *sources[] = {from, from};
    void *targets[] = {to, to};
    size_t sizes[] = {1, bytes};
    size_t first = 0;
    cudaMemcpyAttributes attributes = {};

    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    return cudaMemcpyBatchAsync(
        targets, sources, sizes, 2, &attributes, &first, 1, stream);
}

static cudaMemcpy3DOperand operand_of(void *address)
{
    cudaMemcpy3DOperand operand = {};

    operand.type = cudaMemcpyOperandTypePointer;
    operand.op.ptr.ptr = address;
    operand.op.ptr.rowLength = GPU_PITCH;
    operand.op.ptr.layerHeight = GPU_ROWS;
    return operand;
}

static cudaError_t copy_boxes(void *to, void *from, size_t bytes, cudaStream_t stream)
{
    cudaMemcpy3DBatchOp boxes[2] = {};

    for (cudaMemcpy3DBatchOp &box : boxes) {
        box.src = operand_of(from);
        box.dst = operand_of(to);
        box.extent = make_cudaExtent(1, 1, 1);
        box.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    }
    boxes[1].extent = make_cudaExtent(width_of(bytes), GPU_ROWS, 1);
    return cudaMemcpy3DBatchAsync(2, boxes, 0, stream);
}

static cudaError_t prefetch_batch(void *block, size_t bytes, cudaStream_t stream)
{
    size_t first = 0;
    cudaMemLocation location = {};

    location.type = cudaMemLocationTypeDevice;
    return cudaMemPrefetchBatchAsync(
        &block, &bytes, 1, &location, &first, 1, 0, stream);
}

static cudaError_t discard(void *block, size_t bytes, cudaStream_t stream)
{
    return cudaMemDiscardBatchAsync(&block, &bytes, 1, 0, stream);
}
#endif

/* Nodes of graphs, and what CUDA 13 has. */
static cudaError_t make_newer_call(
    gpu_call_t call, void *block, void *other, size_t bytes, cudaStream_t stream)
{
    switch (call) {
    case GPU_SET_NODE:
        return add_node(block, NULL, bytes);
    case GPU_COPY_NODE_FROM:
        return add_node(other, block, bytes);
#if CUDART_VERSION >= 13000
    case GPU_COPY_BATCH_FROM:
        return copy_batch(other, block, bytes, stream);
    case GPU_COPY_BATCH_TO:
        return copy_batch(block, other, bytes, stream);
    case GPU_COPY_BOXES_FROM:
        return copy_boxes(other, block, bytes, stream);
    case GPU_PREFETCH_BATCH:
        return prefetch_batch(block, bytes, stream);
    case GPU_DISCARD:
        return discard(block, bytes, stream);
#endif
    default:
        (void)block, (void)other, (void)bytes, (void)stream;
        return cudaErrorNotSupported;
    }
}

static cudaError_t
make_call(gpu_call_t call, void *block, void *other, size_t bytes, cudaStream_t stream)
{
    switch (call) {
    case GPU_SET:
        return cudaMemsetAsync(block, 1, bytes, stream);
    case GPU_COPY_TO:
        return cudaMemcpyAsync(block, other, bytes, cudaMemcpyDefault, stream);
    case GPU_COPY_FROM:
        return cudaMemcpyAsync(other, block, bytes, cudaMemcpyDefault, stream);
    case GPU_PREFETCH:
        return rmm_prefetch(block, bytes, 0, stream) == RMM_OK ? cudaSuccess
                                                               : cudaErrorUnknown;
    case GPU_SET_BY_LIBRARY:
        return rmm_memset_async(block, 1, bytes, stream) == RMM_OK ? cudaSuccess
                                                                   : cudaErrorUnknown;
    case GPU_SET_SYNC:
        return cudaMemset(block, 1, bytes);
    case GPU_SET_ROWS:
        return cudaMemset2D(block, GPU_PITCH, 1, width_of(bytes), GPU_ROWS);
    case GPU_COPY_SYNC_TO:
        return cudaMemcpy(block, other, bytes, cudaMemcpyHostToDevice);
    case GPU_COPY_SYNC_FROM:
        return cudaMemcpy(other, block, bytes, cudaMemcpyDeviceToHost);
    case GPU_COPY_SYNC_ANY:
        return cudaMemcpy(other, block, bytes, cudaMemcpyDefault);
    case GPU_COPY_HOST_TO:
        return cudaMemcpyAsync(block, other, bytes, cudaMemcpyHostToDevice, stream);
    case GPU_COPY_HOST_FROM:
        return cudaMemcpyAsync(other, block, bytes, cudaMemcpyDeviceToHost, stream);
    case GPU_COPY_BETWEEN:
        return cudaMemcpyAsync(other, block, bytes, cudaMemcpyDeviceToDevice, stream);
    case GPU_COPY_PEER:
        return cudaMemcpyPeerAsync(other, 0, block, 0, bytes, stream);
    case GPU_COPY_ROWS_TO:
        return cudaMemcpy2D(
            block, GPU_PITCH, other, GPU_PITCH, width_of(bytes), GPU_ROWS,
            cudaMemcpyHostToDevice);
    case GPU_COPY_ROWS_FROM:
        return cudaMemcpy2DAsync(
            other, GPU_PITCH, block, GPU_PITCH, width_of(bytes), GPU_ROWS,
            cudaMemcpyDefault, stream);
    case GPU_COPY_BOX_FROM:
        return copy_box(other, block, bytes, NULL);
    case GPU_COPY_BOX_TO:
        return copy_box(block, other, bytes, stream);
    case GPU_COPY_ARRAY_FROM:
        return copy_to_array(block, bytes);
    case GPU_COPY_PEER_SYNC:
        return cudaMemcpyPeer(other, 0, block, 0, bytes);
    case GPU_SET_ROWS_ASYNC:
        return cudaMemset2DAsync(
            block, GPU_PITCH, 1, width_of(bytes), GPU_ROWS, stream);
    default:
        return make_newer_call(call, block, other, bytes, stream);
    }
}

extern "C" void
gpu_call(gpu_call_t call, void *block, void *other, size_t bytes, rmm_stream_t stream)
{
    cudaError_t error = make_call(call, block, other, bytes, stream);

    if (error != cudaSuccess) { /* out of bounds it may fail */
        fprintf(stderr, "%s\n", cudaGetErrorString(error));
        (void)cudaGetLastError();
    }
}

/* --- kernels ---------------------------------------------------------------------------- */

#define KERNEL(name)                                                                   \
    extern "C" __global__ void name(float *first, const float *second)                 \
    {                                                                                  \
        first[threadIdx.x] = second != NULL ? second[threadIdx.x] : 1;                 \
    }
GPU_KERNELS(KERNEL)

extern "C" __global__ void mix(gpu_pair_t pair)
{
    if ((int)threadIdx.x < pair.count) {
        ((float *)pair.second)[threadIdx.x] = ((const float *)pair.first)[threadIdx.x];
    }
}

extern "C" __global__ void gather(gpu_parts_t parts)
{
    float *to = (float *)parts.parts[0].column.memory;

    if ((int)threadIdx.x < parts.count) {
        to[threadIdx.x] = *(const float *)parts.parts[threadIdx.x].column.memory;
    }
}

extern "C" __global__ void poke(char *block, size_t bytes)
{
    for (size_t i = threadIdx.x; i < bytes; i += blockDim.x) {
        block[i] = 1;
    }
}

extern "C" __global__ void idle(void)
{
}

#define KERNEL_NAME(name)                                                              \
    case GPU_KERNEL_##name:                                                            \
        return #name;

extern "C" const char *gpu_kernel_name(gpu_kernel_t kernel)
{
    switch (kernel) {
        GPU_KERNELS(KERNEL_NAME)
    default:
        return NULL;
    }
}

#define KERNEL_LAUNCH(name)                                                            \
    case GPU_KERNEL_##name:                                                            \
        name<<<1, 32, 0, stream>>>((float *)first, (const float *)second);             \
        break;

extern "C" void gpu_launch(
    gpu_kernel_t kernel, const void *first, const void *second, rmm_stream_t stream)
{
    switch (kernel) {
        GPU_KERNELS(KERNEL_LAUNCH)
    default:
        break;
    }
    MUST(cudaGetLastError());
}

extern "C" void gpu_launch_pair(const gpu_pair_t *pair, rmm_stream_t stream)
{
    mix<<<1, 32, 0, stream>>>(*pair);
    MUST(cudaGetLastError());
}

extern "C" void gpu_launch_parts(const gpu_parts_t *parts, rmm_stream_t stream)
{
    gather<<<1, GPU_PARTS, 0, stream>>>(*parts);
    MUST(cudaGetLastError());
}

extern "C" bool gpu_has_way(gpu_way_t way)
{
    int has_clusters = 0;

    return way != GPU_BY_CLUSTER ||
           (cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, 0) ==
                cudaSuccess &&
            has_clusters != 0);
}

/* As the runtime does not: all parameters in one piece of memory. */
static void launch_packed(const void *block, cudaStream_t stream)
{
    struct {
        const void *first, *second;
    } parameters = {block, NULL};
    size_t bytes = sizeof(parameters);
    void *extra[] = {
        CU_LAUNCH_PARAM_BUFFER_POINTER, &parameters, CU_LAUNCH_PARAM_BUFFER_SIZE,
        &bytes, CU_LAUNCH_PARAM_END};
    cudaFunction_t function = NULL;

    MUST(cudaGetFuncBySymbol(&function, (const void *)reduce));
    MUST_DRIVER(cuLaunchKernel, function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, extra);
}

extern "C" void gpu_launch_by(gpu_way_t way, const void *block, rmm_stream_t stream)
{
    const void *second = NULL;
    void *parameters[] = {&block, &second};
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute = {};

    if (way == GPU_BY_BUFFER) {
        launch_packed(block, stream);
        return;
    }
    if (way == GPU_BY_COOPERATIVE) {
        MUST(cudaLaunchCooperativeKernel(
            (const void *)reduce, dim3(1), dim3(32), parameters, 0, stream));
        return;
    }
    attribute.id = cudaLaunchAttributePriority;
    if (way == GPU_BY_CLUSTER) {
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim = {1, 1, 1};
    }
    config.gridDim = dim3(1);
    config.blockDim = dim3(32);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    MUST(cudaLaunchKernelExC(&config, (const void *)reduce, parameters));
}

extern "C" void gpu_poke(void *block, size_t bytes, rmm_stream_t stream)
{
    poke<<<1, 256, 0, stream>>>((char *)block, bytes);
    MUST(cudaGetLastError());
}

/* --- order ------------------------------------------------------------------------------ */

extern "C" gpu_event_t gpu_event_create(void)
{
    cudaEvent_t event = NULL;

    MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return (gpu_event_t)event;
}

extern "C" void gpu_event_destroy(gpu_event_t event)
{
    MUST(cudaEventDestroy((cudaEvent_t)event));
}

extern "C" void gpu_event_record(gpu_event_t event, rmm_stream_t stream)
{
    MUST(cudaEventRecord((cudaEvent_t)event, stream));
}

extern "C" void gpu_event_wait(rmm_stream_t stream, gpu_event_t event)
{
    MUST(cudaStreamWaitEvent(stream, (cudaEvent_t)event, 0));
}

extern "C" void gpu_synchronize(void)
{
    MUST(cudaDeviceSynchronize());
}

/* Events of a launch came with CUDA 12.3. */
extern "C" bool gpu_has_wait(gpu_wait_t wait)
{
    return wait != GPU_NO_WAIT &&
           (wait != GPU_WAIT_LAUNCH_EVENT || CUDART_VERSION >= 12030);
}

static void wait_for_event(gpu_wait_t wait, cudaStream_t first, cudaStream_t later)
{
    cudaEvent_t event = (cudaEvent_t)gpu_event_create();

    MUST(cudaEventRecord(event, first));
    if (wait == GPU_WAIT_EVENT) {
        MUST(cudaStreamWaitEvent(later, event, 0));
    } else if (wait == GPU_WAIT_EVENT_SYNC) {
        MUST(cudaEventSynchronize(event));
    } else {
        while (cudaEventQuery(event) == cudaErrorNotReady) {
            sched_yield();
        }
    }
    MUST(cudaEventDestroy(event));
}

static void CUDART_CB raise_flag(void *flag)
{
    ((std::atomic<bool> *)flag)->store(true);
}

static void wait_for_function(cudaStream_t stream)
{
    std::atomic<bool> flag(false);

    MUST(cudaLaunchHostFunc(stream, raise_flag, &flag));
    while (!flag.load()) {
        sched_yield();
    }
}

static void free_memory(void)
{
    void *memory = NULL;

    MUST(cudaMalloc(&memory, 4096));
    MUST(cudaFree(memory));
}

#if CUDART_VERSION >= 12030

static void wait_for_launch_event(cudaStream_t first, cudaStream_t later)
{
    cudaEvent_t event = (cudaEvent_t)gpu_event_create();
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};

    attribute.id = cudaLaunchAttributeLaunchCompletionEvent;
    attribute.val.launchCompletionEvent.event = event;
    config.gridDim = dim3(1);
    config.blockDim = dim3(1);
    config.stream = first;
    config.attrs = &attribute;
    config.numAttrs = 1;
    MUST(cudaLaunchKernelExC(&config, (const void *)idle, NULL));
    MUST(cudaStreamWaitEvent(later, event, 0));
    MUST(cudaEventDestroy(event));
}

#endif

static void wait_for_value(cudaStream_t first, cudaStream_t later)
{
    static void *word = NULL;
    static unsigned value = 0;

    if (word == NULL) {
        MUST(cudaMalloc(&word, sizeof(value)));
        MUST(cudaMemset(word, 0, sizeof(value)));
        gpu_synchronize();
    }
    value++;
    MUST_DRIVER(cuStreamWriteValue32, first, (CUdeviceptr)word, value, 0);
    MUST_DRIVER(
        cuStreamWaitValue32, later, (CUdeviceptr)word, value, CU_STREAM_WAIT_VALUE_GEQ);
}

extern "C" void gpu_wait(gpu_wait_t wait, rmm_stream_t first, rmm_stream_t later)
{
    switch (wait) {
    case GPU_WAIT_STREAM:
        MUST(cudaStreamSynchronize(first));
        break;
    case GPU_WAIT_STREAM_QUERY:
        while (cudaStreamQuery(first) == cudaErrorNotReady) {
            sched_yield();
        }
        break;
    case GPU_WAIT_DEVICE:
        gpu_synchronize();
        break;
    case GPU_WAIT_HOST_FUNCTION:
        wait_for_function(first);
        break;
    case GPU_WAIT_FREE:
        free_memory();
        break;
    case GPU_WAIT_VALUE:
        wait_for_value(first, later);
        break;
#if CUDART_VERSION >= 12030
    case GPU_WAIT_LAUNCH_EVENT:
        wait_for_launch_event(first, later);
        break;
#endif
    default:
        wait_for_event(wait, first, later);
        break;
    }
}

extern "C" void gpu_capture_begin(rmm_stream_t stream)
{
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
}

static gpu_graph_t make_executable(cudaGraph_t graph)
{
    cudaGraphExec_t executable = NULL;

    MUST(cudaGraphInstantiate(&executable, graph, 0));
    MUST(cudaGraphDestroy(graph));
    return (gpu_graph_t)executable;
}

extern "C" gpu_graph_t gpu_capture_keep(rmm_stream_t stream)
{
    cudaGraph_t graph = NULL;

    MUST(cudaStreamEndCapture(stream, &graph));
    return make_executable(graph);
}

extern "C" void gpu_graph_launch(gpu_graph_t graph, rmm_stream_t on)
{
    MUST(cudaGraphLaunch((cudaGraphExec_t)graph, on));
}

extern "C" void gpu_graph_destroy(gpu_graph_t graph)
{
    MUST(cudaGraphExecDestroy((cudaGraphExec_t)graph));
}

extern "C" void gpu_capture_end(rmm_stream_t stream, int launches, rmm_stream_t on)
{
    gpu_graph_t graph = gpu_capture_keep(stream);

    for (int i = 0; i < launches; i++) {
        gpu_graph_launch(graph, on);
    }
    MUST(cudaStreamSynchronize(on));
    gpu_graph_destroy(graph);
}
