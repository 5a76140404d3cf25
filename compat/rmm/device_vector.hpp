/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/device_vector.hpp
 *
 * Thrust's vector of device memory, over RMM's resources. Needs Thrust.
 */
#ifndef RMM_COMPAT_DEVICE_VECTOR_HPP
#define RMM_COMPAT_DEVICE_VECTOR_HPP

#include <rmm/detail/export.hpp>
#include <rmm/mr/thrust_allocator_adaptor.hpp>
#include <thrust/device_vector.h>

namespace RMM_NAMESPACE
{

template <class T>
using device_vector = thrust::device_vector<T, mr::thrust_allocator<T>>;

} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_DEVICE_VECTOR_HPP */
