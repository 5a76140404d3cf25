/* SPDX-License-Identifier: Apache-2.0 */
/* The path of <rmm/mr/thrust_allocator_adaptor.hpp> until RMM 25.12. */
#ifndef RMM_COMPAT_MR_DEVICE_THRUST_ALLOCATOR_ADAPTOR_HPP
#define RMM_COMPAT_MR_DEVICE_THRUST_ALLOCATOR_ADAPTOR_HPP

#include <rmm/mr/thrust_allocator_adaptor.hpp>

#endif /* RMM_COMPAT_MR_DEVICE_THRUST_ALLOCATOR_ADAPTOR_HPP */
