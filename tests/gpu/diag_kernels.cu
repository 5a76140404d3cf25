/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See diag_kernels.h. Kernels do a little work on what they are given, so that a wrong
 * address would be a fault and not only a wrong count.
 */
#include "gpu/diag_kernels.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime.h>

extern "C" __global__ void fill_kernel(float *block, int count)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

    if (i < count) {
        block[i] = (float)i;
    }
}

extern "C" __global__ void scale_kernel(float *out, const float *in)
{
    out[threadIdx.x] = in[threadIdx.x] * 2;
}

extern "C" __global__ void mix_kernel(diag_pair_t pair)
{
    if ((int)threadIdx.x < pair.count) {
        pair.second[threadIdx.x] += pair.first[threadIdx.x];
    }
}

extern "C" __global__ void big_kernel(diag_large_t large)
{
    *large.last = (float)large.filler[threadIdx.x];
}

template <typename T> __global__ void typed_kernel(T *block)
{
    block[threadIdx.x] = (T)threadIdx.x;
}

extern "C" __global__ void group_kernel(float *block)
{
    block[threadIdx.x] = 1;
}

extern "C" __global__ void extended_kernel(float *block)
{
    block[threadIdx.x] = 2;
}

extern "C" __global__ void packed_kernel(int value, float *block)
{
    block[threadIdx.x] = (float)value;
}

extern "C" __global__ void nothing_kernel(void)
{
}

extern "C" int diag_gpu_count(void)
{
    int count = 0;

    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

extern "C" int diag_synchronize(void)
{
    return cudaDeviceSynchronize();
}

extern "C" int diag_fill(float *block, int count, rmm_stream_t stream)
{
    fill_kernel<<<(count + 127) / 128, 128, 0, stream>>>(block, count);
    return cudaGetLastError();
}

extern "C" int diag_scale(float *out, const float *in, rmm_stream_t stream)
{
    scale_kernel<<<1, 32, 0, stream>>>(out, in);
    return cudaGetLastError();
}

extern "C" int diag_mix(const diag_pair_t *pair, rmm_stream_t stream)
{
    mix_kernel<<<1, 32, 0, stream>>>(*pair);
    return cudaGetLastError();
}

extern "C" int diag_big(const diag_large_t *large, rmm_stream_t stream)
{
    big_kernel<<<1, 1, 0, stream>>>(*large);
    return cudaGetLastError();
}

extern "C" int diag_typed(double *block, rmm_stream_t stream)
{
    typed_kernel<double><<<1, 32, 0, stream>>>(block);
    return cudaGetLastError();
}

extern "C" int diag_group(float *block, rmm_stream_t stream)
{
    void *arguments[] = {&block};

    return cudaLaunchCooperativeKernel(
        (const void *)group_kernel, dim3(1), dim3(32), arguments, 0, stream);
}

extern "C" int diag_extended(float *block, rmm_stream_t stream)
{
    cudaLaunchConfig_t config = {};

    config.gridDim = dim3(1);
    config.blockDim = dim3(32);
    config.stream = stream;
    return cudaLaunchKernelEx(&config, extended_kernel, block);
}

typedef CUresult (*launch_fn)(
    CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
    CUstream, void **, void **);

extern "C" int diag_packed(float *block, rmm_stream_t stream)
{
    struct {
        int value;
        float *block;
    } parameters = {3, block};
    size_t bytes = sizeof(parameters);
    void *extra[] = {
        CU_LAUNCH_PARAM_BUFFER_POINTER, &parameters, CU_LAUNCH_PARAM_BUFFER_SIZE,
        &bytes, CU_LAUNCH_PARAM_END};
    cudaFunction_t function = NULL;
    cudaError_t error = cudaGetFuncBySymbol(&function, (const void *)packed_kernel);
    launch_fn launch = (launch_fn)dlsym(
        dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cuLaunchKernel");

    if (error != cudaSuccess || launch == NULL) {
        return error != cudaSuccess ? error : cudaErrorUnknown;
    }
    return launch(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, extra);
}

extern "C" int diag_nothing(rmm_stream_t stream)
{
    nothing_kernel<<<1, 1, 0, stream>>>();
    return cudaGetLastError();
}

extern "C" int diag_refused(float *block, rmm_stream_t stream)
{
    fill_kernel<<<1, 4096, 0, stream>>>(block, 1);
    return cudaGetLastError();
}

static cudaError_t capture(cudaStream_t stream, float *block, int launches)
{
    cudaError_t error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);

    for (int i = 0; i < launches && error == cudaSuccess; i++) {
        error = (cudaError_t)diag_fill(block, 1, stream);
    }
    return error;
}

extern "C" int diag_graph(float *block, int launches, int replays)
{
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    cudaError_t error = cudaStreamCreate(&stream);

    if (error == cudaSuccess) {
        error = capture(stream, block, launches);
    }
    if (error == cudaSuccess) {
        error = cudaStreamEndCapture(stream, &graph);
    }
    if (error == cudaSuccess) {
        error = cudaGraphInstantiate(&executable, graph, 0);
    }
    for (int i = 0; i < replays && error == cudaSuccess; i++) {
        error = cudaGraphLaunch(executable, stream);
    }
    if (error == cudaSuccess) {
        error = cudaStreamSynchronize(stream);
    }
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    return error;
}

extern "C" int diag_set(float *block, size_t bytes, rmm_stream_t stream)
{
    return cudaMemsetAsync(block, 0, bytes, stream);
}

extern "C" int
diag_copy(float *to, const float *from, size_t bytes, rmm_stream_t stream)
{
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}
