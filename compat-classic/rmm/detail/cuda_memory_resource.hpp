/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/cuda_memory_resource.hpp
 *
 * Whether a class is a resource, under the names of RMM 25.06 to 26.02, which do not depend on
 * CCCL's version. Nor does the answer: a class with the functions of any of them is one.
 */
#ifndef RMM_COMPAT_DETAIL_CUDA_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_DETAIL_CUDA_MEMORY_RESOURCE_HPP

#include <rmm/detail/cccl.hpp>
#include <rmm/detail/export.hpp>

namespace RMM_NAMESPACE
{
namespace detail
{
namespace polyfill
{

template <class T> inline constexpr bool resource = is_synchronous_resource<T>::value;
template <class T> inline constexpr bool async_resource = is_resource<T>::value;
template <class T, class... Properties>
inline constexpr bool resource_with = resource<T> &&
                                      (has_property<T, Properties>::value && ...);
template <class T, class... Properties>
inline constexpr bool async_resource_with = async_resource<T> &&
                                            (has_property<T, Properties>::value && ...);

} /* namespace polyfill */
} /* namespace detail */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_DETAIL_CUDA_MEMORY_RESOURCE_HPP */
