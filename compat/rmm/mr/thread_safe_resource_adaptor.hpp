/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/thread_safe_resource_adaptor.hpp
 *
 * A lock around the upstream, which a resource of this library does not need
 * (rmm/thread_safe_adaptor.h).
 */
#ifndef RMM_COMPAT_MR_THREAD_SAFE_RESOURCE_ADAPTOR_HPP
#define RMM_COMPAT_MR_THREAD_SAFE_RESOURCE_ADAPTOR_HPP

#include <mutex>
#include <utility>

#include <rmm/cuda_stream_view.hpp>
#include <rmm/cxx/adaptors.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/detail/library_resource.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

RMM_COMPAT_OVER_UPSTREAM
class thread_safe_resource_adaptor : public detail::adaptor_over_upstream
{
  public:
    RMM_COMPAT_UPSTREAM_MEMBERS(thread_safe_resource_adaptor)

    using lock_t = std::lock_guard<std::mutex>;

    explicit thread_safe_resource_adaptor(detail::any_device_resource upstream)
        : adaptor_over_upstream(std::move(upstream), [](const rmmc::resource &mr) {
              return rmmc::thread_safe_adaptor<>(mr);
          })
    {
    }
};
RMM_COMPAT_DEDUCTION(thread_safe_resource_adaptor)

namespace detail
{
RMM_COMPAT_IS_KNOWN(thread_safe_resource_adaptor)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_THREAD_SAFE_RESOURCE_ADAPTOR_HPP */
