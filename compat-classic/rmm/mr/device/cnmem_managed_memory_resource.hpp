/* SPDX-License-Identifier: Apache-2.0 */
/* The path of <rmm/mr/cnmem_managed_memory_resource.hpp> until RMM 25.12. */
#ifndef RMM_COMPAT_MR_DEVICE_CNMEM_MANAGED_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_DEVICE_CNMEM_MANAGED_MEMORY_RESOURCE_HPP

#include <rmm/mr/cnmem_managed_memory_resource.hpp>

#endif /* RMM_COMPAT_MR_DEVICE_CNMEM_MANAGED_MEMORY_RESOURCE_HPP */
