/* SPDX-License-Identifier: Apache-2.0 */
/* The path of <rmm/mr/polymorphic_allocator.hpp> until RMM 25.12. */
#ifndef RMM_COMPAT_MR_DEVICE_POLYMORPHIC_ALLOCATOR_HPP
#define RMM_COMPAT_MR_DEVICE_POLYMORPHIC_ALLOCATOR_HPP

#include <rmm/mr/polymorphic_allocator.hpp>

#endif /* RMM_COMPAT_MR_DEVICE_POLYMORPHIC_ALLOCATOR_HPP */
