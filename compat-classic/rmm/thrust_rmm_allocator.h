/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/thrust_rmm_allocator.h
 *
 * Thrust with RMM's memory, under the name of the header until RMM 22.02: device_vector, and
 * exec_policy(stream)->on(stream).
 */
#ifndef RMM_COMPAT_THRUST_RMM_ALLOCATOR_H
#define RMM_COMPAT_THRUST_RMM_ALLOCATOR_H

#include <rmm/cuda_stream_view.hpp>
#include <rmm/device_vector.hpp>
#include <rmm/exec_policy.hpp>
#include <rmm/mr/thrust_allocator_adaptor.hpp>

#include <thrust/execution_policy.h>

namespace RMM_NAMESPACE
{

using exec_policy_t = exec_policy;

} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_THRUST_RMM_ALLOCATOR_H */
