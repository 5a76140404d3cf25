/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/dynamic_load_runtime.hpp
 *
 * CUDA's functions for memory pools under RMM's names, until 24.12: rmm::detail::async_alloc. RMM
 * looks them up in the runtime at the call, here they are linked: every CUDA 12 has them.
 */
#ifndef RMM_COMPAT_DETAIL_DYNAMIC_LOAD_RUNTIME_HPP
#define RMM_COMPAT_DETAIL_DYNAMIC_LOAD_RUNTIME_HPP

#include <rmm/detail/cuda_api.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/detail/runtime_capabilities.hpp>

/** Until 24.12: the classes of CUDA's memory pools are there. */
#define RMM_CUDA_MALLOC_ASYNC_SUPPORT

namespace RMM_NAMESPACE
{
namespace detail
{

struct async_alloc : runtime_async_alloc {
#if RMM_COMPAT_HAS_CUDA
    template <class... Arguments> static cudaError_t cudaMemPoolCreate(Arguments... of)
    {
        return ::cudaMemPoolCreate(of...);
    }
    template <class... Arguments>
    static cudaError_t cudaMemPoolSetAttribute(Arguments... of)
    {
        return ::cudaMemPoolSetAttribute(of...);
    }
    template <class... Arguments> static cudaError_t cudaMemPoolDestroy(Arguments... of)
    {
        return ::cudaMemPoolDestroy(of...);
    }
    template <class... Arguments>
    static cudaError_t cudaMallocFromPoolAsync(Arguments... of)
    {
        return ::cudaMallocFromPoolAsync(of...);
    }
    template <class... Arguments> static cudaError_t cudaFreeAsync(Arguments... of)
    {
        return ::cudaFreeAsync(of...);
    }
    template <class... Arguments>
    static cudaError_t cudaDeviceGetDefaultMemPool(Arguments... of)
    {
        return ::cudaDeviceGetDefaultMemPool(of...);
    }
#endif
};

} /* namespace detail */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_DETAIL_DYNAMIC_LOAD_RUNTIME_HPP */
