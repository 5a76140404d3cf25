/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's names, which hipMM's headers make HIP's: a program of RMM's that was only recompiled. */
#include "program.hpp"

#include <type_traits>
#include <vector>

#include <rmm/cuda_runtime_api.h>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/device_uvector.hpp>

static_assert(std::is_same<cudaStream_t, hipStream_t>::value, "streams");
static_assert(std::is_same<cudaError_t, hipError_t>::value, "errors");
static_assert(std::is_same<cudaMemPool_t, hipMemPool_t>::value, "memory pools");
static_assert(cudaErrorMemoryAllocation == hipErrorOutOfMemory, "values of errors");

int main()
{
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
    std::vector<float> host(100, 1.5F), back(100);
    const std::size_t bytes = host.size() * sizeof(float);
    void *ptr = nullptr;

    RMM_CUDA_TRY(cudaSetDevice(0));
    RMM_CUDA_TRY(cudaStreamCreate(&stream));
    RMM_CUDA_TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    RMM_CUDA_TRY(cudaMalloc(&ptr, bytes));
    RMM_CUDA_TRY(cudaMemcpyAsync(ptr, host.data(), bytes, cudaMemcpyDefault, stream));
    {
        rmm::device_uvector<float> values(100, rmm::cuda_stream_view{stream});
        RMM_CUDA_TRY(
            cudaMemcpyAsync(values.data(), ptr, bytes, cudaMemcpyDefault, stream));
        RMM_CUDA_TRY(cudaMemcpyAsync(
            back.data(), values.data(), bytes, cudaMemcpyDefault, stream));
    }
    RMM_CUDA_TRY(cudaEventRecord(event, stream));
    RMM_CUDA_TRY(cudaEventSynchronize(event));
    REQUIRE(back == host);
    const cudaError_t state = cudaStreamQuery(stream);
    REQUIRE(state == cudaSuccess || state == cudaErrorNotReady);
    RMM_CUDA_TRY(cudaFree(ptr));
    RMM_CUDA_TRY(cudaEventDestroy(event));
    RMM_CUDA_TRY(cudaStreamSynchronize(cudaStreamPerThread));
    RMM_CUDA_TRY(cudaStreamDestroy(stream));
    RMM_CUDA_TRY(cudaDeviceSynchronize());
    return 0;
}
