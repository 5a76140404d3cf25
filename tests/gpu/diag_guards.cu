/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for diag_guards.c: each launches its kernel once and returns a cudaError_t. */
#include "gpu/diag_guards.h"

#include <cuda_runtime.h>

extern "C" __global__ void poke_kernel(char *block, int64_t offset)
{
    block[offset] = 0;
}

extern "C" __global__ void right_kernel(char *block, int64_t count)
{
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
        block[i] = 0;
    }
}

extern "C" __global__ void poke_range_kernel(char *block, int64_t count)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        block[i] = 0;
    }
}

extern "C" __global__ void poke_pair_kernel(guards_pair_t pair)
{
    pair.second[pair.offset] = pair.first[0];
}

extern "C" __global__ void poke_table_kernel(char **table, int64_t offset)
{
    table[0][offset] = 0;
}

extern "C" __global__ void ignore_kernel(const char *block, const char *other)
{
    if (block == other) {
        __trap();
    }
}

extern "C" __global__ void wait_kernel(int64_t cycles)
{
    int64_t begin = clock64();

    while (clock64() - begin < cycles) {
    }
}

extern "C" int guards_poke(char *block, int64_t offset, rmm_stream_t stream)
{
    poke_kernel<<<1, 1, 0, stream>>>(block, offset);
    return cudaGetLastError();
}

extern "C" int guards_right(char *block, int64_t count, rmm_stream_t stream)
{
    right_kernel<<<1, 256, 0, stream>>>(block, count);
    return cudaGetLastError();
}

extern "C" int guards_poke_range(char *block, int64_t count, rmm_stream_t stream)
{
    poke_range_kernel<<<(unsigned)((count + 255) / 256), 256, 0, stream>>>(
        block, count);
    return cudaGetLastError();
}

extern "C" int guards_poke_pair(const guards_pair_t *pair, rmm_stream_t stream)
{
    poke_pair_kernel<<<1, 1, 0, stream>>>(*pair);
    return cudaGetLastError();
}

extern "C" int guards_poke_table(char **table, int64_t offset, rmm_stream_t stream)
{
    poke_table_kernel<<<1, 1, 0, stream>>>(table, offset);
    return cudaGetLastError();
}

extern "C" int guards_poke_extended(char *block, int64_t offset, rmm_stream_t stream)
{
    cudaLaunchConfig_t config = {};

    config.gridDim = dim3(1);
    config.blockDim = dim3(1);
    config.stream = stream;
    return cudaLaunchKernelEx(&config, poke_kernel, block, offset);
}

extern "C" int guards_poke_cooperative(char *block, int64_t offset, rmm_stream_t stream)
{
    void *arguments[] = {&block, &offset};

    return cudaLaunchCooperativeKernel(
        (const void *)poke_kernel, dim3(1), dim3(1), arguments, 0, stream);
}

extern "C" int guards_ignore(const char *block, const char *other, rmm_stream_t stream)
{
    ignore_kernel<<<1, 1, 0, stream>>>(block, other);
    return cudaGetLastError();
}

extern "C" int guards_wait(int64_t cycles, rmm_stream_t stream)
{
    wait_kernel<<<1, 1, 0, stream>>>(cycles);
    return cudaGetLastError();
}
