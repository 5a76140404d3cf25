/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cuda_runtime_api.h
 *
 * hipMM's header: the GPU's runtime, HIP's by CUDA's names as well (rmm/detail/hip_names.hpp).
 * In a file that is not compiled for AMD it is CUDA's header, where there is one.
 */
#ifndef RMM_COMPAT_CUDA_RUNTIME_API_H
#define RMM_COMPAT_CUDA_RUNTIME_API_H

#include <rmm/detail/cuda_api.hpp>

#endif /* RMM_COMPAT_CUDA_RUNTIME_API_H */
