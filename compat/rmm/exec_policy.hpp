/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/exec_policy.hpp
 *
 * Thrust's algorithms on a stream, with temporary memory from a resource. Needs Thrust.
 */
#ifndef RMM_COMPAT_EXEC_POLICY_HPP
#define RMM_COMPAT_EXEC_POLICY_HPP

#include <utility>

#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/per_device_resource.hpp>
#include <rmm/mr/thrust_allocator_adaptor.hpp>
#include <rmm/resource_ref.hpp>
#include <thrust/system/cuda/execution_policy.h>

namespace RMM_NAMESPACE
{

using thrust_exec_policy_t = thrust::detail::execute_with_allocator<
    mr::thrust_allocator<char>, thrust::cuda_cub::execute_on_stream_base>;
using thrust_exec_policy_nosync_t = thrust::detail::execute_with_allocator<
    mr::thrust_allocator<char>, thrust::cuda_cub::execute_on_stream_nosync_base>;

/** An algorithm has finished when its call returns. */
class exec_policy : public thrust_exec_policy_t
{
  public:
    explicit exec_policy(
        cuda_stream_view view = cuda_stream_default,
        detail::any_device_resource mr = mr::detail::copy_of_current_default())
        : thrust_exec_policy_t(
              thrust::cuda::par(mr::thrust_allocator<char>(view, std::move(mr)))
                  .on(view.value()))
    {
    }
};

/** An algorithm waits for the stream only where its result needs that. */
class exec_policy_nosync : public thrust_exec_policy_nosync_t
{
  public:
    explicit exec_policy_nosync(
        cuda_stream_view view = cuda_stream_default,
        detail::any_device_resource mr = mr::detail::copy_of_current_default())
        : thrust_exec_policy_nosync_t(
              thrust::cuda::par_nosync(mr::thrust_allocator<char>(view, std::move(mr)))
                  .on(view.value()))
    {
    }
};

} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_EXEC_POLICY_HPP */
