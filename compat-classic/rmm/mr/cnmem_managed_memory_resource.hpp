/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/cnmem_managed_memory_resource.hpp
 *
 * cnmem_memory_resource over managed memory, until RMM 0.15.
 */
#ifndef RMM_COMPAT_MR_CNMEM_MANAGED_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_CNMEM_MANAGED_MEMORY_RESOURCE_HPP

#include <cstddef>
#include <vector>

#include <rmm/detail/export.hpp>
#include <rmm/mr/cnmem_memory_resource.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

class cnmem_managed_memory_resource : public cnmem_memory_resource
{
  public:
    explicit cnmem_managed_memory_resource(
        std::size_t initial_pool_size = 0, const std::vector<int> &devices = {})
        : cnmem_memory_resource(initial_pool_size, devices, memory_kind::MANAGED)
    {
    }
};

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_CNMEM_MANAGED_MEMORY_RESOURCE_HPP */
