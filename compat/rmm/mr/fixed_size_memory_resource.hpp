/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/fixed_size_memory_resource.hpp
 *
 * Blocks of one size over an upstream (rmm/fixed_size_resource.h).
 */
#ifndef RMM_COMPAT_MR_FIXED_SIZE_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_FIXED_SIZE_MEMORY_RESOURCE_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <utility>

#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/cxx/resources.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/logger.hpp>
#include <rmm/mr/detail/library_resource.hpp>
#include <rmm/process_is_exiting.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

RMM_COMPAT_OVER_UPSTREAM
class fixed_size_memory_resource : public detail::resource_over_upstream
{
  public:
    RMM_COMPAT_UPSTREAM_MEMBERS(fixed_size_memory_resource)

    static constexpr std::size_t default_block_size = std::size_t(1) << 20;
    static constexpr std::size_t default_blocks_to_preallocate = 128;

    /** @throws logic_error if a size is 0 */
    explicit fixed_size_memory_resource(
        detail::any_device_resource upstream,
        std::size_t block_size = default_block_size,
        std::size_t blocks_to_preallocate = default_blocks_to_preallocate)
        : resource_over_upstream(std::move(upstream), [&](const rmmc::resource &mr) {
              rmmc::fixed_size_options options;
              RMM_EXPECTS(/* 0 is a default in the library */
                          block_size != 0 && blocks_to_preallocate != 0,
                          "the size of the blocks, or how many are allocated at once, "
                          "is 0");
              options.block_bytes = block_size;
              options.blocks_per_chunk = blocks_to_preallocate;
              return rmmc::fixed_size_resource(mr, options);
          })
    {
    }
    [[nodiscard]] std::size_t get_block_size() const noexcept
    {
        std::uint64_t bytes = 0;

        (void)!rmm_fixed_size_get_block_bytes(mr_.get(), &bytes);
        return bytes;
    }
};
RMM_COMPAT_DEDUCTION(fixed_size_memory_resource)

namespace detail
{
RMM_COMPAT_IS_KNOWN(fixed_size_memory_resource)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_FIXED_SIZE_MEMORY_RESOURCE_HPP */
