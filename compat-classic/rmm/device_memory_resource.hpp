/* SPDX-License-Identifier: Apache-2.0 */
/* The base class and the defaults, as <rmm/mr/device_memory_resource.hpp>. */
#ifndef RMM_COMPAT_DEVICE_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_DEVICE_MEMORY_RESOURCE_HPP

#include <rmm/mr/device_memory_resource.hpp>
#include <rmm/mr/per_device_resource.hpp>

#endif /* RMM_COMPAT_DEVICE_MEMORY_RESOURCE_HPP */
