/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/resource_ref.hpp
 *
 * References of resources, by where their memory can be accessed. With CCCL 3.3 or newer they
 * are CCCL's own (rmm/detail/cccl.hpp). A reference does not keep its resource alive.
 */
#ifndef RMM_COMPAT_RESOURCE_REF_HPP
#define RMM_COMPAT_RESOURCE_REF_HPP

#include <rmm/detail/cccl.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>

namespace RMM_NAMESPACE
{

using device_resource_ref = detail::synchronous_resource_ref<detail::device_accessible>;
using device_async_resource_ref = detail::resource_ref<detail::device_accessible>;
using host_resource_ref = detail::synchronous_resource_ref<detail::host_accessible>;
using host_async_resource_ref = detail::resource_ref<detail::host_accessible>;
using host_device_resource_ref = detail::synchronous_resource_ref<
    detail::host_accessible, detail::device_accessible>;
using host_device_async_resource_ref =
    detail::resource_ref<detail::host_accessible, detail::device_accessible>;

namespace detail
{
/* How a container names its resource. */
using resource_of_container = device_async_resource_ref;
} /* namespace detail */

/** @throws logic_error if the pointer is null */
template <class Resource>
device_async_resource_ref to_device_async_resource_ref_checked(Resource *resource)
{
    RMM_EXPECTS(resource != nullptr, "the pointer of the resource is null");
    return device_async_resource_ref(*resource);
}

} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_RESOURCE_REF_HPP */
