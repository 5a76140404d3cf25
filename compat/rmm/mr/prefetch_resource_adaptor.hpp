/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/prefetch_resource_adaptor.hpp
 *
 * Prefetches each allocation to the device (rmm/prefetch_adaptor.h).
 */
#ifndef RMM_COMPAT_MR_PREFETCH_RESOURCE_ADAPTOR_HPP
#define RMM_COMPAT_MR_PREFETCH_RESOURCE_ADAPTOR_HPP

#include <utility>

#include <rmm/cxx/adaptors.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/detail/library_resource.hpp>
#include <rmm/prefetch.hpp> /* for programs: as RMM's */

namespace RMM_NAMESPACE
{
namespace mr
{

RMM_COMPAT_OVER_UPSTREAM
class prefetch_resource_adaptor : public detail::adaptor_over_upstream
{
  public:
    RMM_COMPAT_UPSTREAM_MEMBERS(prefetch_resource_adaptor)

    explicit prefetch_resource_adaptor(detail::any_device_resource upstream)
        : adaptor_over_upstream(std::move(upstream), [](const rmmc::resource &mr) {
              return rmmc::prefetch_adaptor<>(mr);
          })
    {
    }
};
RMM_COMPAT_DEDUCTION(prefetch_resource_adaptor)

namespace detail
{
RMM_COMPAT_IS_KNOWN(prefetch_resource_adaptor)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_PREFETCH_RESOURCE_ADAPTOR_HPP */
