/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/hip.hpp
 *
 * Is this file compiled for AMD GPUs? Then RMM_CXX_HAS_HIP is 1, and the process uses HIP unless
 * RMM_DRIVER says otherwise: rmm_driver_set_default("hip") is called when the program, or the
 * library that has the file, is loaded.
 *
 * Such a file is one of a compiler for HIP (hipcc, clang -x hip), or has __HIP_PLATFORM_AMD__
 * defined, as by the CMake target hip::host. No header of HIP is included here.
 */
#ifndef RMM_CXX_HIP_HPP
#define RMM_CXX_HIP_HPP

#include <rmm/cxx/error.hpp> /* refuses an older C++ */

#if defined(__HIP_PLATFORM_NVIDIA__)
#define RMM_CXX_HAS_HIP 0 /* HIP's names over CUDA: its types are CUDA's */
#elif defined(__HIP_PLATFORM_AMD__) || defined(__HIP_PLATFORM_HCC__) || defined(__HIP__)
#define RMM_CXX_HAS_HIP 1
#else
#define RMM_CXX_HAS_HIP 0
#endif

#if RMM_CXX_HAS_HIP

#include <rmm/device.h>

namespace rmmc
{
namespace detail
{

/* One for each file: it comes before what the file itself initialises. RMM_ERR_UNSUPPORTED: another
 * file has used the GPU already, and so has chosen. */
[[maybe_unused]] static const rmm_status_t hip_is_default =
    rmm_driver_set_default("hip");

} /* namespace detail */
} /* namespace rmmc */

#endif

#endif /* RMM_CXX_HIP_HPP */
