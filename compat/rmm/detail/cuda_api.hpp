/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/cuda_api.hpp
 *
 * The CUDA runtime's header where there is one. Without a CUDA toolkit a program can use the
 * simulated GPU only; then this declares the few names of CUDA that RMM's interface contains,
 * and RMM_COMPAT_HAS_CUDA is 0. A program that does not link the CUDA runtime defines
 * RMM_COMPAT_HAS_CUDA=0 itself: some systems have CUDA's headers in the default search path.
 */
#ifndef RMM_COMPAT_DETAIL_CUDA_API_HPP
#define RMM_COMPAT_DETAIL_CUDA_API_HPP

#include <rmm/stream.h>

#if !defined(RMM_COMPAT_HAS_CUDA) && __has_include(<cuda_runtime_api.h>)
#define RMM_COMPAT_HAS_CUDA 1
#elif !defined(RMM_COMPAT_HAS_CUDA)
#define RMM_COMPAT_HAS_CUDA 0
#endif
#if RMM_COMPAT_HAS_CUDA
#include <cuda_runtime_api.h>
#else
using cudaStream_t = rmm_stream_t;
using cudaMemPool_t = struct CUmemPoolHandle_st *;
#define cudaStreamLegacy RMM_STREAM_LEGACY
#define cudaStreamPerThread RMM_STREAM_PER_THREAD
#endif

#endif /* RMM_COMPAT_DETAIL_CUDA_API_HPP */
