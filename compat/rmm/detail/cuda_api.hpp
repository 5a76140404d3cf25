/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/cuda_api.hpp
 *
 * The CUDA runtime's header where there is one. Without a CUDA toolkit a program can use the
 * simulated GPU only; then this declares the few names of CUDA that RMM's interface contains,
 * and RMM_COMPAT_HAS_CUDA is 0.
 */
#ifndef RMM_COMPAT_DETAIL_CUDA_API_HPP
#define RMM_COMPAT_DETAIL_CUDA_API_HPP

#include <rmm/stream.h>

#if __has_include(<cuda_runtime_api.h>)
#define RMM_COMPAT_HAS_CUDA 1
#include <cuda_runtime_api.h>
#else
#define RMM_COMPAT_HAS_CUDA 0
using cudaStream_t = rmm_stream_t;
using cudaMemPool_t = struct CUmemPoolHandle_st *;
#define cudaStreamLegacy RMM_STREAM_LEGACY
#define cudaStreamPerThread RMM_STREAM_PER_THREAD
#endif

#endif /* RMM_COMPAT_DETAIL_CUDA_API_HPP */
