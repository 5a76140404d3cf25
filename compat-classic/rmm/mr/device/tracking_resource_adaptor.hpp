/* SPDX-License-Identifier: Apache-2.0 */
/* The path of <rmm/mr/tracking_resource_adaptor.hpp> until RMM 25.12. */
#ifndef RMM_COMPAT_MR_DEVICE_TRACKING_RESOURCE_ADAPTOR_HPP
#define RMM_COMPAT_MR_DEVICE_TRACKING_RESOURCE_ADAPTOR_HPP

#include <rmm/mr/tracking_resource_adaptor.hpp>

#endif /* RMM_COMPAT_MR_DEVICE_TRACKING_RESOURCE_ADAPTOR_HPP */
