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
#include <rmm/detail/export.hpp>
#include <rmm/mr/detail/library_resource.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

class prefetch_resource_adaptor : public detail::resource_over_upstream
{
  public:
    explicit prefetch_resource_adaptor(detail::any_device_resource upstream)
        : resource_over_upstream(std::move(upstream), [](const rmmc::resource &mr) {
              return rmmc::prefetch_adaptor<>(mr);
          })
    {
    }
};

namespace detail
{
inline const bool prefetch_resource_adaptor_is_known =
    knows<prefetch_resource_adaptor>();
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_PREFETCH_RESOURCE_ADAPTOR_HPP */
