/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/cuda_async_view_memory_resource.hpp
 *
 * A memory pool of CUDA that the program owns (rmm/async_view_resource.h).
 */
#ifndef RMM_COMPAT_MR_CUDA_ASYNC_VIEW_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_CUDA_ASYNC_VIEW_MEMORY_RESOURCE_HPP

#include <rmm/cxx/resources.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/detail/runtime_capabilities.hpp> /* for programs: as RMM's */
#include <rmm/mr/detail/library_resource.hpp>
#if RMM_COMPAT_CLASSIC
#include <rmm/detail/dynamic_load_runtime.hpp> /* the same */
#endif

namespace RMM_NAMESPACE
{
namespace mr
{

class cuda_async_view_memory_resource final : public detail::library_resource,
                                              public detail::device_memory
{
  public:
    /** @throws logic_error if the handle is null */
    cuda_async_view_memory_resource(cudaMemPool_t pool_handle)
        : library_resource(detail::translated([&]() -> rmmc::resource {
              return rmmc::async_view_resource(pool_handle);
          }))
    {
    }
    /** Without a pool: an allocation throws logic_error. */
    cuda_async_view_memory_resource() : library_resource(rmmc::resource())
    {
    }
    [[nodiscard]] cudaMemPool_t pool_handle() const noexcept
    {
        return mr_ ? static_cast<cudaMemPool_t>(
                         rmm_async_resource_pool_handle(mr_.get()))
                   : nullptr;
    }
};

namespace detail
{
RMM_COMPAT_IS_KNOWN(cuda_async_view_memory_resource)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_CUDA_ASYNC_VIEW_MEMORY_RESOURCE_HPP */
