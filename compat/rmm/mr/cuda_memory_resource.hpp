/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/cuda_memory_resource.hpp
 *
 * Memory of the current device, directly from CUDA (rmm/cuda_resource.h).
 */
#ifndef RMM_COMPAT_MR_CUDA_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_CUDA_MEMORY_RESOURCE_HPP

#include <rmm/cuda_resource.h>
#include <rmm/detail/era.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/detail/library_resource.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

class cuda_memory_resource final
    : public detail::per_device_resource_class<rmm_cuda_resource_create>,
      public detail::device_memory
{
};

namespace detail
{
RMM_COMPAT_IS_KNOWN(cuda_memory_resource)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_CUDA_MEMORY_RESOURCE_HPP */
