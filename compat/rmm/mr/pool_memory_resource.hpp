/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/pool_memory_resource.hpp
 *
 * A pool over an upstream (rmm/pool_resource.h).
 */
#ifndef RMM_COMPAT_MR_POOL_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_POOL_MEMORY_RESOURCE_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <optional>
#include <utility>

#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/cxx/resources.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/logger.hpp>
#include <rmm/mr/detail/library_resource.hpp>
#include <rmm/process_is_exiting.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

class pool_memory_resource : public detail::resource_over_upstream
{
  public:
    /** @throws logic_error if a size is no multiple of 256, or the maximum is 0 or less than
     * the initial size */
    explicit pool_memory_resource(
        detail::any_device_resource upstream, std::size_t initial_pool_size,
        std::optional<std::size_t> maximum_pool_size = std::nullopt)
        : resource_over_upstream(std::move(upstream), [&](const rmmc::resource &mr) {
              rmmc::pool_options options;
              RMM_EXPECTS(
                  is_aligned(initial_pool_size, CUDA_ALLOCATION_ALIGNMENT) &&
                      is_aligned(
                          maximum_pool_size.value_or(0), CUDA_ALLOCATION_ALIGNMENT),
                  "the sizes of a pool are multiples of 256 bytes");
              RMM_EXPECTS(/* 0 is no maximum in the library */
                          maximum_pool_size != std::size_t(0),
                          "the maximum of the pool is 0");
              RMM_EXPECTS(
                  maximum_pool_size.value_or(initial_pool_size) >= initial_pool_size,
                  "the maximum of the pool is less than its initial size");
              options.initial_bytes = initial_pool_size;
              options.maximum_bytes = maximum_pool_size.value_or(0);
              return rmmc::pool_resource(mr, options);
          })
    {
    }
    /** What the pool holds from its upstream now, used and unused. */
    [[nodiscard]] std::size_t pool_size() const noexcept
    {
        rmm_stats_t stats = RMM_STATS_INIT;

        (void)!rmm_resource_get_stats(mr_.get(), &stats);
        return stats.reserved_bytes;
    }
};

namespace detail
{
inline const bool pool_memory_resource_is_known = knows<pool_memory_resource>();
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_POOL_MEMORY_RESOURCE_HPP */
