/* SPDX-License-Identifier: Apache-2.0 */
/* The path of <rmm/mr/per_device_resource.hpp> until RMM 25.12. */
#ifndef RMM_COMPAT_MR_DEVICE_PER_DEVICE_RESOURCE_HPP
#define RMM_COMPAT_MR_DEVICE_PER_DEVICE_RESOURCE_HPP

#include <rmm/mr/per_device_resource.hpp>

#endif /* RMM_COMPAT_MR_DEVICE_PER_DEVICE_RESOURCE_HPP */
