/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/managed_memory_resource.hpp
 *
 * Managed memory (rmm/managed_resource.h).
 */
#ifndef RMM_COMPAT_MR_MANAGED_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_MANAGED_MEMORY_RESOURCE_HPP

#include <rmm/detail/era.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/managed_resource.h>
#include <rmm/mr/detail/library_resource.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

class managed_memory_resource final
    : public detail::per_device_resource_class<rmm_managed_resource_create>,
      public detail::device_memory,
      public detail::host_memory
{
};

namespace detail
{
RMM_COMPAT_IS_KNOWN(managed_memory_resource)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_MANAGED_MEMORY_RESOURCE_HPP */
