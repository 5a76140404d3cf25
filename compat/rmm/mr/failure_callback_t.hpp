/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/failure_callback_t.hpp
 *
 * The function that a failure_callback_resource_adaptor calls.
 */
#ifndef RMM_COMPAT_MR_FAILURE_CALLBACK_T_HPP
#define RMM_COMPAT_MR_FAILURE_CALLBACK_T_HPP

#include <cstddef>
#include <functional>

#include <rmm/detail/export.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

/** Gets the size of the failed request, and the argument. @return true: try again */
using failure_callback_t = std::function<bool(std::size_t, void *)>;

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_FAILURE_CALLBACK_T_HPP */
