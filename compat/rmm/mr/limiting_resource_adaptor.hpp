/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/limiting_resource_adaptor.hpp
 *
 * Limits the bytes that are live at once (rmm/limiting_adaptor.h).
 */
#ifndef RMM_COMPAT_MR_LIMITING_RESOURCE_ADAPTOR_HPP
#define RMM_COMPAT_MR_LIMITING_RESOURCE_ADAPTOR_HPP

#include <atomic>
#include <cstddef>
#include <utility>

#include <rmm/aligned.hpp>
#include <rmm/cxx/adaptors.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/detail/library_resource.hpp>
#include <rmm/mr/per_device_resource.hpp> /* for programs: as RMM's */

namespace RMM_NAMESPACE
{
namespace mr
{

RMM_COMPAT_OVER_UPSTREAM
class limiting_resource_adaptor : public detail::adaptor_over_upstream
{
  public:
    RMM_COMPAT_UPSTREAM_MEMBERS(limiting_resource_adaptor)

    limiting_resource_adaptor(
        detail::any_device_resource upstream, std::size_t allocation_limit,
        std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT)
        : adaptor_over_upstream(std::move(upstream), [&](const rmmc::resource &mr) {
              rmmc::limiting_options options;
              options.limit_bytes = allocation_limit;
              options.alignment_bytes = alignment;
              return rmmc::limiting_adaptor<>(mr, options);
          })
    {
    }
    [[nodiscard]] std::size_t get_allocated_bytes() const
    {
        return figure(rmm_limiting_get_allocated);
    }
    [[nodiscard]] std::size_t get_allocation_limit() const
    {
        return figure(rmm_limiting_get_limit);
    }

  private:
    template <class Function> std::size_t figure(Function function) const
    {
        std::uint64_t bytes = 0;

        rmm::detail::check([&] { return function(mr_.get(), &bytes); });
        return bytes;
    }
};
RMM_COMPAT_DEDUCTION(limiting_resource_adaptor)
RMM_COMPAT_MAKER(make_limiting_adaptor, limiting_resource_adaptor)

namespace detail
{
RMM_COMPAT_IS_KNOWN(limiting_resource_adaptor)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_LIMITING_RESOURCE_ADAPTOR_HPP */
