/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/exec_check_disable.hpp
 *
 * Before a host function that nvcc takes for a __host__ __device__ one: no warning.
 */
#ifndef RMM_COMPAT_DETAIL_EXEC_CHECK_DISABLE_HPP
#define RMM_COMPAT_DETAIL_EXEC_CHECK_DISABLE_HPP

#if defined(__NVCC__) && defined(__CUDACC__)
#define RMM_EXEC_CHECK_DISABLE _Pragma("nv_exec_check_disable")
#else
#define RMM_EXEC_CHECK_DISABLE
#endif

#endif /* RMM_COMPAT_DETAIL_EXEC_CHECK_DISABLE_HPP */
