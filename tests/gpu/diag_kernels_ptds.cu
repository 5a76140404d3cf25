/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled with --default-stream per-thread: its launches are the _ptsz calls. */
#include "gpu/diag_kernels.h"

#include <cuda_runtime.h>

extern "C" __global__ void own_stream_kernel(float *block)
{
    block[threadIdx.x] = 4;
}

extern "C" int diag_own_stream(float *block)
{
    own_stream_kernel<<<1, 32>>>(block);
    return cudaGetLastError();
}
