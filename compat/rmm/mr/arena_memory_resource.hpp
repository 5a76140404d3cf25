/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/arena_memory_resource.hpp
 *
 * An arena for each thread or stream over an upstream (rmm/arena_resource.h).
 */
#ifndef RMM_COMPAT_MR_ARENA_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_ARENA_MEMORY_RESOURCE_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <optional>
#include <utility>

#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/cxx/resources.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/logger.hpp>
#include <rmm/mr/detail/library_resource.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

RMM_COMPAT_OVER_UPSTREAM
class arena_memory_resource : public detail::resource_over_upstream
{
  public:
    RMM_COMPAT_UPSTREAM_MEMBERS(arena_memory_resource)

    /** @param arena_size without one, half of the device's free memory */
    explicit arena_memory_resource(
        detail::any_device_resource upstream,
        std::optional<std::size_t> arena_size = std::nullopt,
        bool dump_log_on_failure = false)
        : resource_over_upstream(std::move(upstream), [&](const rmmc::resource &mr) {
              rmmc::arena_options options;
              RMM_EXPECTS(arena_size != std::size_t(0), "the size of the arena is 0");
              options.arena_bytes = arena_size.value_or(0);
              options.dump_on_failure = dump_log_on_failure;
              return rmmc::arena_resource(mr, options);
          })
    {
    }
#if RMM_COMPAT_CLASSIC
    /** The two sizes of RMM 0.16 to 22.02: an arena does not grow, so the second counts. A byte is
     * no size but the truth value of another language: dump_log_on_failure. */
    template <
        class Size, class = std::enable_if_t<
                        std::is_integral<Size>::value && (sizeof(Size) > sizeof(bool))>>
    arena_memory_resource(
        detail::any_device_resource upstream, std::size_t, Size maximum_size)
        : arena_memory_resource(
              std::move(upstream),
              std::optional<std::size_t>(static_cast<std::size_t>(maximum_size)), false)
    {
    }
#endif
};
RMM_COMPAT_DEDUCTION(arena_memory_resource)

namespace detail
{
RMM_COMPAT_IS_KNOWN(arena_memory_resource)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_ARENA_MEMORY_RESOURCE_HPP */
