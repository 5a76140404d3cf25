/* SPDX-License-Identifier: Apache-2.0 */
/* A real GPU; see gpu.h. Kernels do what the twin of a planted fault may do. */
#include "gpu/faults/gpu.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <sched.h>

#include <cuda_runtime.h>

#include <rmm/rmm.h>

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
    case GPU_COPY_ROWS_TO:
    case GPU_COPY_ROWS_FROM:
        return "cuMemcpy2D*";
    case GPU_COPY_BOX_FROM:
        return "cuMemcpy3D*";
    case GPU_COPY_BATCH_FROM:
        return CUDART_VERSION >= 13000 ? "cuMemcpyBatchAsync*" : NULL;
    default:
        return NULL;
    }
}

static size_t width_of(size_t bytes)
{
    return bytes - (GPU_ROWS - 1) * GPU_PITCH;
}

static cudaError_t copy_box(void *block, void *other, size_t bytes)
{
    cudaMemcpy3DParms box = {};

    box.srcPtr = make_cudaPitchedPtr(block, GPU_PITCH, GPU_PITCH, GPU_ROWS / 2);
    box.dstPtr = make_cudaPitchedPtr(other, GPU_PITCH, GPU_PITCH, GPU_ROWS / 2);
    box.extent = make_cudaExtent(width_of(bytes), GPU_ROWS / 2, 2);
    box.kind = cudaMemcpyDefault;
    return cudaMemcpy3D(&box);
}

static cudaError_t
copy_batch(void *block, void *other, size_t bytes, cudaStream_t stream)
{
#if CUDART_VERSION >= 13000
    const void *from[] = {block, block};
    void *to[] = {other, (char *)other + bytes};
    size_t sizes[] = {1, bytes};
    size_t first = 0;
    cudaMemcpyAttributes attributes = {};

    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    return cudaMemcpyBatchAsync(to, from, sizes, 2, &attributes, &first, 1, stream);
#else
    (void)block, (void)other, (void)bytes, (void)stream;
    return cudaErrorNotSupported;
#endif
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
        return copy_box(block, other, bytes);
    case GPU_COPY_BATCH_FROM:
        return copy_batch(block, other, bytes, stream);
    default:
        return cudaErrorInvalidValue;
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

extern "C" __global__ void poke(char *block, size_t bytes)
{
    for (size_t i = threadIdx.x; i < bytes; i += blockDim.x) {
        block[i] = 1;
    }
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

extern "C" bool gpu_has_wait(gpu_wait_t wait)
{
    return wait != GPU_NO_WAIT;
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
    default:
        wait_for_event(wait, first, later);
        break;
    }
}

extern "C" void gpu_capture_begin(rmm_stream_t stream)
{
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
}

extern "C" gpu_graph_t gpu_capture_keep(rmm_stream_t stream)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;

    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&executable, graph, 0));
    MUST(cudaGraphDestroy(graph));
    return (gpu_graph_t)executable;
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
