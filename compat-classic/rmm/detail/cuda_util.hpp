/* SPDX-License-Identifier: Apache-2.0 */
/** @file rmm/detail/cuda_util.hpp  As RMM until 24.02: available_device_memory(). */
#ifndef RMM_COMPAT_DETAIL_CUDA_UTIL_HPP
#define RMM_COMPAT_DETAIL_CUDA_UTIL_HPP
#include <rmm/cuda_device.hpp>
#include <rmm/detail/error.hpp>
#endif
