/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/binning_memory_resource.hpp
 *
 * A resource for each range of sizes over an upstream (rmm/binning_resource.h).
 */
#ifndef RMM_COMPAT_MR_BINNING_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_BINNING_MEMORY_RESOURCE_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
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
#include <rmm/mr/fixed_size_memory_resource.hpp>
#include <rmm/process_is_exiting.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

RMM_COMPAT_OVER_UPSTREAM
class binning_memory_resource : public detail::resource_over_upstream
{
  public:
    RMM_COMPAT_UPSTREAM_MEMBERS(binning_memory_resource)

    explicit binning_memory_resource(detail::any_device_resource upstream)
        : binning_memory_resource(std::move(upstream), 0, 0)
    {
    }
    /** With a bin for each power of two from 2^min to 2^max. */
    binning_memory_resource(
        detail::any_device_resource upstream, std::int8_t min_size_exponent,
        std::int8_t max_size_exponent)
        : resource_over_upstream(std::move(upstream), [&](const rmmc::resource &mr) {
              rmmc::binning_options options;
              options.min_exponent = static_cast<std::uint32_t>(min_size_exponent);
              options.max_exponent = static_cast<std::uint32_t>(max_size_exponent);
              return rmmc::binning_resource(mr, options);
          })
    {
    }
#if RMM_COMPAT_CLASSIC
    /** @param bin_resource NULL: blocks of that size over the upstream */
    void add_bin(std::size_t allocation_size, device_memory_resource *bin_resource)
    {
        std::optional<device_async_resource_ref> bin;

        if (bin_resource != nullptr) {
            bin = device_async_resource_ref(bin_resource);
        }
        add_bin(allocation_size, bin);
    }
#endif
    /** @param bin_resource copied; without one, blocks of that size over the upstream */
    void add_bin(
        std::size_t allocation_size,
        std::optional<device_async_resource_ref> bin_resource = std::nullopt)
    {
        const rmmc::resource bin = bin_resource.has_value()
                                       ? detail::library_resource_of(
                                             detail::any_device_resource(*bin_resource))
                                       : rmmc::resource();

        rmm::detail::check([&] {
            return rmm_binning_resource_add_bin(mr_.get(), allocation_size, bin.get());
        });
    }
};
RMM_COMPAT_DEDUCTION(binning_memory_resource)

namespace detail
{
RMM_COMPAT_IS_KNOWN(binning_memory_resource)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_BINNING_MEMORY_RESOURCE_HPP */
