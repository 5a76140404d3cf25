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
#include <rmm/detail/era.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/per_device_resource.hpp>
#include <rmm/mr/thrust_allocator_adaptor.hpp>
#include <rmm/resource_ref.hpp>
#if RMM_COMPAT_HAS_HIP
#include <thrust/system/hip/execution_policy.h>
namespace thrust
{
namespace cuda =
    hip; /* the documents of hipMM have thrust::cuda::par, as many programs */
}
#else
#include <thrust/system/cuda/execution_policy.h>
#endif

namespace RMM_NAMESPACE
{
namespace detail
{

#if RMM_COMPAT_HAS_HIP /* rocThrust */
namespace thrust_system = thrust::hip_rocprim;
namespace thrust_par = thrust::hip;
#else
namespace thrust_system = thrust::cuda_cub;
namespace thrust_par = thrust::cuda;
#endif

} /* namespace detail */

using thrust_exec_policy_t = thrust::detail::execute_with_allocator<
    mr::thrust_allocator<char>, detail::thrust_system::execute_on_stream_base>;
using thrust_exec_policy_nosync_t = thrust::detail::execute_with_allocator<
    mr::thrust_allocator<char>, detail::thrust_system::execute_on_stream_nosync_base>;

/** An algorithm has finished when its call returns. */
class exec_policy : public thrust_exec_policy_t
{
  public:
    explicit exec_policy(
        cuda_stream_view view = cuda_stream_default,
        detail::any_device_resource mr = mr::detail::copy_of_current_default())
        : thrust_exec_policy_t(
              detail::thrust_par::par(mr::thrust_allocator<char>(view, std::move(mr)))
                  .on(view.value()))
    {
    }
#if RMM_COMPAT_CLASSIC
    /** Until RMM 0.16 this was a pointer: exec_policy(stream)->on(stream). */
    const exec_policy *operator->() const noexcept
    {
        return this;
    }
#endif
};

/** An algorithm waits for the stream only where its result needs that. */
class exec_policy_nosync : public thrust_exec_policy_nosync_t
{
  public:
    explicit exec_policy_nosync(
        cuda_stream_view view = cuda_stream_default,
        detail::any_device_resource mr = mr::detail::copy_of_current_default())
        : thrust_exec_policy_nosync_t(
              detail::thrust_par::par_nosync(
                  mr::thrust_allocator<char>(view, std::move(mr)))
                  .on(view.value()))
    {
    }
};

} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_EXEC_POLICY_HPP */
