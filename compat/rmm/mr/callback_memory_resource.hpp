/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/callback_memory_resource.hpp
 *
 * Two functions of the program as a resource (rmm/custom_resource.h). Results of the first pass
 * through unchecked, as in RMM.
 */
#ifndef RMM_COMPAT_MR_CALLBACK_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_CALLBACK_MEMORY_RESOURCE_HPP

#include <cstddef>
#include <functional>
#include <utility>

#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/detail/library_resource.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

using allocate_callback_t =
    std::function<void *(std::size_t, cuda_stream_view, void *)>;
using deallocate_callback_t =
    std::function<void(void *, std::size_t, cuda_stream_view, void *)>;

namespace detail
{

struct callback_functions {
    allocate_callback_t allocate_callback;
    deallocate_callback_t deallocate_callback;
    void *allocate_argument;
    void *deallocate_argument;

    void *allocate(rmm_stream_t stream, std::size_t bytes, std::size_t)
    {
        return allocate_callback(bytes, cuda_stream_view(stream), allocate_argument);
    }
    void deallocate(rmm_stream_t stream, void *ptr, std::size_t bytes, std::size_t)
    {
        deallocate_callback(ptr, bytes, cuda_stream_view(stream), deallocate_argument);
    }
};

} /* namespace detail */

class callback_memory_resource : public detail::library_resource,
                                 public detail::device_memory
{
  public:
    callback_memory_resource(
        allocate_callback_t allocate_callback,
        deallocate_callback_t deallocate_callback,
        void *allocate_callback_arg = nullptr, void *deallocate_callback_arg = nullptr)
        : library_resource(detail::wrap(
              detail::callback_functions{
                  std::move(allocate_callback), std::move(deallocate_callback),
                  allocate_callback_arg, deallocate_callback_arg},
              "callback"))
    {
    }
};

namespace detail
{
RMM_COMPAT_IS_KNOWN(callback_memory_resource)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_CALLBACK_MEMORY_RESOURCE_HPP */
