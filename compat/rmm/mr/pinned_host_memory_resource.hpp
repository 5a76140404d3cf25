/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/pinned_host_memory_resource.hpp
 *
 * Pinned host memory (rmm/pinned_resource.h).
 */
#ifndef RMM_COMPAT_MR_PINNED_HOST_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_PINNED_HOST_MEMORY_RESOURCE_HPP

#include <rmm/detail/era.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/detail/library_resource.hpp>
#include <rmm/pinned_resource.h>

namespace RMM_NAMESPACE
{
namespace mr
{

class pinned_host_memory_resource final
    : public detail::per_device_resource_class<
          rmm_pinned_resource_create, detail::stands_for::one_for_all_devices>,
      public detail::device_memory,
      public detail::host_memory
{
};

namespace detail
{
RMM_COMPAT_IS_KNOWN(pinned_host_memory_resource)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_PINNED_HOST_MEMORY_RESOURCE_HPP */
