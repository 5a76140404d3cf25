/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/host/pinned_memory_resource.hpp
 *
 * Page-locked host memory, which devices access too (rmm/pinned_resource.h). Until RMM 25.12. The
 * functions with a stream do not wait for it.
 */
#ifndef RMM_COMPAT_MR_HOST_PINNED_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_HOST_PINNED_MEMORY_RESOURCE_HPP

#include <cstddef>

#include <rmm/aligned.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/cccl.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/detail/host_class.hpp>
#include <rmm/pinned_resource.h>

namespace RMM_NAMESPACE
{
namespace mr
{

class pinned_memory_resource final
    : public detail::host_class<rmm_pinned_resource_create>
{
  public:
    using host_memory_resource::allocate;
    using host_memory_resource::deallocate;

    void *allocate(
        cuda_stream_view, std::size_t bytes,
        std::size_t alignment = RMM_DEFAULT_HOST_ALIGNMENT)
    {
        return allocate(bytes, alignment);
    }
    void deallocate(
        cuda_stream_view, void *ptr, std::size_t bytes,
        std::size_t alignment = RMM_DEFAULT_HOST_ALIGNMENT) noexcept
    {
        deallocate(ptr, bytes, alignment);
    }
    void *allocate_async(std::size_t bytes, std::size_t alignment, cuda_stream_view)
    {
        return allocate(bytes, alignment);
    }
    void *allocate_async(std::size_t bytes, cuda_stream_view)
    {
        return allocate(bytes);
    }
    void deallocate_async(
        void *ptr, std::size_t bytes, std::size_t alignment, cuda_stream_view) noexcept
    {
        deallocate(ptr, bytes, alignment);
    }
    void deallocate_async(void *ptr, std::size_t bytes, cuda_stream_view) noexcept
    {
        deallocate(ptr, bytes);
    }
    friend constexpr void get_property(
        const pinned_memory_resource &, rmm::detail::device_accessible) noexcept
    {
    }
};

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_HOST_PINNED_MEMORY_RESOURCE_HPP */
