/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/cuda_api.hpp
 *
 * The header of the GPU's runtime, and the names of CUDA that RMM's interface contains:
 *
 *  - in a file that is compiled for AMD GPUs, the types are HIP's, by CUDA's names as in hipMM
 *    (rmm/detail/hip_names.hpp), and RMM_COMPAT_HAS_HIP is 1. Such a file is one of a compiler
 *    for HIP (hipcc, clang -x hip), or has __HIP_PLATFORM_AMD__ defined, as by the CMake target
 *    hip::host;
 *  - otherwise those of CUDA, where its header is found;
 *  - without either a program can use the simulated GPU only. Then this declares the few names,
 *    and RMM_COMPAT_HAS_CUDA is 0. A program that does not link the CUDA runtime defines
 *    RMM_COMPAT_HAS_CUDA=0 itself: some systems have CUDA's headers in the default search path.
 *
 * RMM_COMPAT_HAS_CUDA is 1 for HIP as well: the names are there.
 */
#ifndef RMM_COMPAT_DETAIL_CUDA_API_HPP
#define RMM_COMPAT_DETAIL_CUDA_API_HPP

#include <rmm/cxx/hip.hpp>
#include <rmm/cxx/stream.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/stream.h>

#define RMM_COMPAT_HAS_HIP RMM_CXX_HAS_HIP
#if RMM_COMPAT_HAS_HIP
#undef RMM_COMPAT_HAS_CUDA
#define RMM_COMPAT_HAS_CUDA 1
#elif !defined(RMM_COMPAT_HAS_CUDA) && __has_include(<cuda_runtime_api.h>)
#define RMM_COMPAT_HAS_CUDA 1
#elif !defined(RMM_COMPAT_HAS_CUDA)
#define RMM_COMPAT_HAS_CUDA 0
#endif
#if RMM_COMPAT_HAS_HIP
#include <rmm/detail/hip_names.hpp>
#elif RMM_COMPAT_HAS_CUDA
#include <cuda_runtime_api.h>
#else
using cudaStream_t = rmm_stream_t;
using cudaMemPool_t = struct CUmemPoolHandle_st *;
#define cudaStreamLegacy RMM_STREAM_LEGACY
#define cudaStreamPerThread RMM_STREAM_PER_THREAD
#endif

namespace RMM_NAMESPACE
{
namespace detail
{

/* The runtime's handle of a stream that the library names. */
using rmmc::detail::native_of;

} /* namespace detail */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_DETAIL_CUDA_API_HPP */
