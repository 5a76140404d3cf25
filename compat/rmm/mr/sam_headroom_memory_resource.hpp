/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/sam_headroom_memory_resource.hpp
 *
 * Memory of malloc() that keeps a part of the device's memory free
 * (rmm/sam_headroom_resource.h).
 */
#ifndef RMM_COMPAT_MR_SAM_HEADROOM_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_SAM_HEADROOM_MEMORY_RESOURCE_HPP

#include <cstddef>

#include <rmm/cuda_device.hpp>
#include <rmm/cxx/resources.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/detail/library_resource.hpp>
#include <rmm/mr/system_memory_resource.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

class sam_headroom_memory_resource final : public detail::library_resource,
                                           public detail::device_memory,
                                           public detail::host_memory
{
  public:
    /** @throws logic_error if the current device cannot access such memory */
    explicit sam_headroom_memory_resource(std::size_t headroom)
        : library_resource(detail::translated([&]() -> rmmc::resource {
              rmmc::sam_headroom_options options;
              options.headroom_bytes = headroom;
              return rmmc::sam_headroom_resource(options);
          }))
    {
    }
};

namespace detail
{
RMM_COMPAT_IS_KNOWN(sam_headroom_memory_resource)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_SAM_HEADROOM_MEMORY_RESOURCE_HPP */
