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
#include <rmm/detail/export.hpp>
#include <rmm/mr/detail/library_resource.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

class thread_safe_resource_adaptor : public detail::resource_over_upstream
{
  public:
    using lock_t = std::lock_guard<std::mutex>;

    explicit thread_safe_resource_adaptor(detail::any_device_resource upstream)
        : resource_over_upstream(std::move(upstream), [](const rmmc::resource &mr) {
              return rmmc::thread_safe_adaptor<>(mr);
          })
    {
    }
};

namespace detail
{
inline const bool thread_safe_resource_adaptor_is_known =
    knows<thread_safe_resource_adaptor>();
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_THREAD_SAFE_RESOURCE_ADAPTOR_HPP */
