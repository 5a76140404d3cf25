/* SPDX-License-Identifier: Apache-2.0 */
/* The path of <rmm/mr/owning_wrapper.hpp> until RMM 25.12. */
#ifndef RMM_COMPAT_MR_DEVICE_OWNING_WRAPPER_HPP
#define RMM_COMPAT_MR_DEVICE_OWNING_WRAPPER_HPP

#include <rmm/mr/owning_wrapper.hpp>

#endif /* RMM_COMPAT_MR_DEVICE_OWNING_WRAPPER_HPP */
