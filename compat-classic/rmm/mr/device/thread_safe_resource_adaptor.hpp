/* SPDX-License-Identifier: Apache-2.0 */
/* The path of <rmm/mr/thread_safe_resource_adaptor.hpp> until RMM 25.12. */
#ifndef RMM_COMPAT_MR_DEVICE_THREAD_SAFE_RESOURCE_ADAPTOR_HPP
#define RMM_COMPAT_MR_DEVICE_THREAD_SAFE_RESOURCE_ADAPTOR_HPP

#include <rmm/mr/thread_safe_resource_adaptor.hpp>

#endif /* RMM_COMPAT_MR_DEVICE_THREAD_SAFE_RESOURCE_ADAPTOR_HPP */
