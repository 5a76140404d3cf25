/* SPDX-License-Identifier: Apache-2.0 */
/* The path of <rmm/mr/cuda_async_view_memory_resource.hpp> until RMM 25.12. */
#ifndef RMM_COMPAT_MR_DEVICE_CUDA_ASYNC_VIEW_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_DEVICE_CUDA_ASYNC_VIEW_MEMORY_RESOURCE_HPP

#include <rmm/mr/cuda_async_view_memory_resource.hpp>

#endif /* RMM_COMPAT_MR_DEVICE_CUDA_ASYNC_VIEW_MEMORY_RESOURCE_HPP */
