/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/thrust_namespace.h
 *
 * Thrust's namespace where a program renamed it (THRUST_WRAPPED_NAMESPACE). Needs Thrust.
 */
#ifndef RMM_COMPAT_DETAIL_THRUST_NAMESPACE_H
#define RMM_COMPAT_DETAIL_THRUST_NAMESPACE_H

#include <rmm/detail/export.hpp>
#include <thrust/detail/config.h>

#ifdef THRUST_WRAPPED_NAMESPACE
namespace THRUST_WRAPPED_NAMESPACE
{
namespace thrust
{
} /* namespace thrust */
} /* namespace THRUST_WRAPPED_NAMESPACE */

namespace RMM_NAMESPACE
{
using namespace THRUST_WRAPPED_NAMESPACE;
} /* namespace RMM_NAMESPACE */
#endif

#endif /* RMM_COMPAT_DETAIL_THRUST_NAMESPACE_H */
