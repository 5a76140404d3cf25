/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/cuda_async_memory_resource.hpp
 *
 * A memory pool of CUDA, owned (rmm/async_resource.h).
 *
 * Without a release threshold the pool keeps unused memory. A threshold of 0 makes every
 * synchronise return it, as CUDA's pools do by default.
 */
#ifndef RMM_COMPAT_MR_CUDA_ASYNC_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_CUDA_ASYNC_MEMORY_RESOURCE_HPP

#include <cstddef>
#include <cstdint>
#include <optional>

#include <rmm/cxx/resources.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/cuda_async_view_memory_resource.hpp>
#include <rmm/mr/detail/library_resource.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

class cuda_async_memory_resource final : public detail::library_resource,
                                         public detail::device_memory
{
  public:
    enum class allocation_handle_type : std::int32_t {
        none = 0,
        posix_file_descriptor = RMM_ASYNC_HANDLE_POSIX_FD,
        win32 = RMM_ASYNC_HANDLE_WIN32,
        win32_kmt = RMM_ASYNC_HANDLE_WIN32_KMT,
        fabric = RMM_ASYNC_HANDLE_FABRIC
    };
    /** Until RMM 26.06. The library sets it where the driver has it. */
    enum class mempool_usage : unsigned short { hw_decompress = 0x2 };

    cuda_async_memory_resource(
        std::optional<std::size_t> initial_pool_size = {},
        std::optional<std::size_t> release_threshold = {},
        std::optional<allocation_handle_type> export_handle_type = {})
        : library_resource(detail::translated([&]() -> rmmc::resource {
              rmmc::async_options options;
              options.initial_pool_bytes = initial_pool_size.value_or(0);
              options.release_threshold_bytes = release_threshold.value_or(0);
              options.flags =
                  release_threshold == std::size_t(0) ? RMM_ASYNC_RELEASE_UNUSED : 0;
              options.handle_types = static_cast<std::uint32_t>(
                  export_handle_type.value_or(allocation_handle_type::none));
              return rmmc::async_resource(options);
          }))
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
RMM_COMPAT_IS_KNOWN(cuda_async_memory_resource)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_CUDA_ASYNC_MEMORY_RESOURCE_HPP */
