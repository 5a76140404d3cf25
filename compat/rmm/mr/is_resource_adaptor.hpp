/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/is_resource_adaptor.hpp
 *
 * Whether a class of resource has get_upstream_resource(). Until RMM 26.06.
 */
#ifndef RMM_COMPAT_MR_IS_RESOURCE_ADAPTOR_HPP
#define RMM_COMPAT_MR_IS_RESOURCE_ADAPTOR_HPP

#include <type_traits>
#include <utility>

#include <rmm/detail/cccl.hpp>
#include <rmm/detail/export.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

template <class Resource, class = void>
inline constexpr bool is_resource_adaptor = false;

template <class Resource>
inline constexpr bool is_resource_adaptor<
    Resource,
    std::void_t<decltype(std::declval<Resource &>().get_upstream_resource())>> =
#if RMM_COMPAT_HAS_CCCL
    cuda::mr::synchronous_resource<Resource>;
#else
    rmm::detail::is_synchronous_resource<Resource>::value;
#endif

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_IS_RESOURCE_ADAPTOR_HPP */
