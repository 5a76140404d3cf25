/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/cuda_async_managed_memory_resource.hpp
 *
 * The current device's memory pool of managed memory (rmm/async_managed_resource.h).
 */
#ifndef RMM_COMPAT_MR_CUDA_ASYNC_MANAGED_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_CUDA_ASYNC_MANAGED_MEMORY_RESOURCE_HPP

#include <rmm/cxx/resources.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/cuda_async_view_memory_resource.hpp>
#include <rmm/mr/detail/library_resource.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

class cuda_async_managed_memory_resource final : public detail::library_resource,
                                                 public detail::device_memory,
                                                 public detail::host_memory
{
  public:
    /** @throws logic_error if the driver or the device has no such pool */
    cuda_async_managed_memory_resource()
        : library_resource(detail::translated(
              []() -> rmmc::resource { return rmmc::async_managed_resource(); }))
    {
    }
    /** Borrowed. */
    [[nodiscard]] cudaMemPool_t pool_handle() const noexcept
    {
        return static_cast<cudaMemPool_t>(rmm_async_resource_pool_handle(mr_.get()));
    }
};

namespace detail
{
RMM_COMPAT_IS_KNOWN(cuda_async_managed_memory_resource)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_CUDA_ASYNC_MANAGED_MEMORY_RESOURCE_HPP */
