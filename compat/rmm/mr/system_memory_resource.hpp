/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/system_memory_resource.hpp
 *
 * Memory of malloc() for devices that can access it (rmm/system_resource.h).
 */
#ifndef RMM_COMPAT_MR_SYSTEM_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_SYSTEM_MEMORY_RESOURCE_HPP

#include <rmm/cuda_device.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/device.h>
#include <rmm/mr/detail/library_resource.hpp>
#include <rmm/system_resource.h>

namespace RMM_NAMESPACE
{
namespace mr
{

namespace detail
{

inline bool is_system_memory_supported(cuda_device_id device)
{
    bool is_supported = false;

    rmm::detail::check([&] {
        return rmm_device_supports(device.value(), RMM_ABILITY_SYSTEM, &is_supported);
    });
    return is_supported;
}

} /* namespace detail */

class system_memory_resource final
    : public detail::per_device_resource_class<rmm_system_resource_create>,
      public detail::device_memory,
      public detail::host_memory
{
  public:
    /** @throws logic_error if the current device cannot access such memory */
    system_memory_resource()
    {
        (void)library();
    }
};

namespace detail
{
RMM_COMPAT_IS_KNOWN(system_memory_resource)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_SYSTEM_MEMORY_RESOURCE_HPP */
