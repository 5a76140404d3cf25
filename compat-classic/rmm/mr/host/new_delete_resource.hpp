/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/host/new_delete_resource.hpp
 *
 * Host memory (rmm/host_resource.h). Until RMM 25.12.
 */
#ifndef RMM_COMPAT_MR_HOST_NEW_DELETE_RESOURCE_HPP
#define RMM_COMPAT_MR_HOST_NEW_DELETE_RESOURCE_HPP

#include <rmm/detail/export.hpp>
#include <rmm/host_resource.h>
#include <rmm/mr/detail/host_class.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

class new_delete_resource final : public detail::host_class<rmm_host_resource_create>
{
};

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_HOST_NEW_DELETE_RESOURCE_HPP */
