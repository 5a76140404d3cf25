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
#include <list> /* for programs: as RMM's */
#include <optional>
#include <utility>

#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/cxx/resources.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/logger.hpp>
#include <rmm/mr/detail/library_resource.hpp>
#include <rmm/mr/per_device_resource.hpp> /* for programs: as RMM's */
#include <rmm/process_is_exiting.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

namespace detail
{
#if RMM_COMPAT_CLASSIC
using rmm::available_device_memory; /* its place until RMM 0.18 */

/* A size or none, also of thrust::optional, which RMM's pools took until 24.02. */
struct optional_size : std::optional<std::size_t> {
    using std::optional<std::size_t>::optional;
    template <
        class Optional, class = decltype(std::declval<const Optional &>().has_value())>
    optional_size(const Optional &size)
    {
        if (size.has_value()) {
            emplace(static_cast<std::size_t>(size.value()));
        }
    }
};
using initial_size = optional_size; /* none: half of the free memory */
using maximum_size = optional_size;

inline std::size_t bytes_of(initial_size size)
{
    return size.has_value() ? *size : percent_of_free_device_memory(50);
}
#else
using initial_size = std::size_t;
using maximum_size = std::optional<std::size_t>;

inline std::size_t bytes_of(initial_size size)
{
    return size;
}
#endif
} /* namespace detail */

RMM_COMPAT_OVER_UPSTREAM
class pool_memory_resource : public detail::resource_over_upstream
{
  public:
    RMM_COMPAT_UPSTREAM_MEMBERS(pool_memory_resource)
#if RMM_COMPAT_CLASSIC
    static constexpr std::size_t allocation_alignment = CUDA_ALLOCATION_ALIGNMENT;

    /* No device memory's property without one of the upstream. */
    template <class Property>
    friend constexpr std::enable_if_t<
        std::is_same<Property, rmm::detail::device_accessible>::value &&
        !rmm::detail::has_property<Upstream, Property>::value>
    get_property(const pool_memory_resource &, Property) noexcept = delete;
#endif

    /** @throws logic_error if a size is no multiple of 256, or the maximum is 0 or less than
     * the initial size */
    explicit pool_memory_resource(
        detail::any_device_resource upstream,
        detail::initial_size initial_pool_size RMM_COMPAT_CLASSIC_DEFAULT(std::nullopt),
        detail::maximum_size maximum_pool_size = std::nullopt)
        : resource_over_upstream(std::move(upstream), [&](const rmmc::resource &mr) {
              rmmc::pool_options options;
              const std::size_t initial_bytes = detail::bytes_of(initial_pool_size);
              RMM_EXPECTS(
                  is_aligned(initial_bytes, CUDA_ALLOCATION_ALIGNMENT) &&
                      is_aligned(
                          maximum_pool_size.value_or(0), CUDA_ALLOCATION_ALIGNMENT),
                  "the sizes of a pool are multiples of 256 bytes");
              RMM_EXPECTS(/* 0 is no maximum in the library */
                          maximum_pool_size != std::size_t(0),
                          "the maximum of the pool is 0");
              RMM_EXPECTS(
                  maximum_pool_size.value_or(initial_bytes) >= initial_bytes,
                  "the maximum of the pool is less than its initial size");
              options.initial_bytes = initial_bytes;
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
RMM_COMPAT_DEDUCTION(pool_memory_resource)

namespace detail
{
RMM_COMPAT_IS_KNOWN(pool_memory_resource)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_POOL_MEMORY_RESOURCE_HPP */
