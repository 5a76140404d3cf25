/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/default_memory_resource.hpp
 *
 * The names of the current device's default until RMM 0.15.
 */
#ifndef RMM_COMPAT_MR_DEFAULT_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_DEFAULT_MEMORY_RESOURCE_HPP

#include <rmm/detail/export.hpp>
#include <rmm/mr/per_device_resource.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

[[deprecated("use get_current_device_resource()")]] inline device_memory_resource *
get_default_resource()
{
    return get_current_device_resource();
}
[[deprecated("use set_current_device_resource()")]] inline device_memory_resource *
set_default_resource(device_memory_resource *new_resource)
{
    return set_current_device_resource(new_resource);
}

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_DEFAULT_MEMORY_RESOURCE_HPP */
