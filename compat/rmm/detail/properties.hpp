/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/properties.hpp
 *
 * Properties of memory: CCCL's, cuda::mr::device_accessible and host_accessible, which a program
 * names in the get_property() of its own resources. Without a CCCL that has them (2.2 was the
 * first), classes of the same names stand for them.
 */
#ifndef RMM_COMPAT_DETAIL_PROPERTIES_HPP
#define RMM_COMPAT_DETAIL_PROPERTIES_HPP

#include <rmm/detail/cuda_api.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/export.hpp>

#define RMM_COMPAT_HAS_PROPERTIES 0
#if RMM_COMPAT_HAS_CUDA && !RMM_COMPAT_HAS_HIP && __has_include(<cuda/memory_resource>)
#include <cuda/std/version>
#if defined(CCCL_VERSION) || defined(LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE)
#undef RMM_COMPAT_HAS_PROPERTIES
#define RMM_COMPAT_HAS_PROPERTIES 1
#if CCCL_VERSION < 3001000 && !defined(LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE)
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE /* or that header has nothing */
#endif
#include <cuda/memory_resource>
#endif
#endif
/* A program for hipMM 23.12 may use the name `cuda` for something else. */
#define RMM_COMPAT_HIDES_CUDA (RMM_COMPAT_HAS_HIP && RMM_COMPAT_CLASSIC)
#if !RMM_COMPAT_HAS_PROPERTIES && !RMM_COMPAT_HIDES_CUDA
namespace cuda
{
namespace mr
{
struct device_accessible {
};
struct host_accessible {
};
} /* namespace mr */
} /* namespace cuda */
#endif

namespace RMM_NAMESPACE
{
namespace detail
{

#if RMM_COMPAT_HIDES_CUDA
struct device_accessible {
};
struct host_accessible {
};
#else
using cuda::mr::device_accessible;
using cuda::mr::host_accessible;
#endif

} /* namespace detail */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_DETAIL_PROPERTIES_HPP */
