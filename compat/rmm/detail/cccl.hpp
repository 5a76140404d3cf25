/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/cccl.hpp
 *
 * Decides where the type-erased resources of RMM's interface come from.
 *
 * RMM 26.08 needs CCCL 3.3 or newer. With that, rmm::detail::any_resource and the references
 * are CCCL's own: cuda::mr::any_resource and so on. With an older CCCL (CUDA 13.0 has 3.0) or
 * none, and for HIP, they are the classes of rmm/detail/any_resource.hpp. The rest of these
 * headers does not know the difference. RMM_COMPAT_HAS_CCCL is 1 or 0; define
 * RMM_COMPAT_NO_CCCL to have 0 with a new CCCL too.
 *
 * All files of a program need the same answer, or its classes have two definitions under one
 * name. nvcc finds the toolkit's CCCL without being told, a C++ compiler beside it does not. A
 * program of both kinds of files ends when it starts, with logic_error.
 */
#ifndef RMM_COMPAT_DETAIL_CCCL_HPP
#define RMM_COMPAT_DETAIL_CCCL_HPP

#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/cuda_api.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/error.hpp>

#define RMM_COMPAT_HAS_CCCL 0
#if RMM_COMPAT_HAS_CUDA && !RMM_COMPAT_HAS_HIP && !defined(RMM_COMPAT_NO_CCCL) &&      \
    __has_include(<cuda/version>)
#include <cuda/version>
#if CCCL_VERSION >= 3003000
#undef RMM_COMPAT_HAS_CCCL
#define RMM_COMPAT_HAS_CCCL 1
#endif
#endif

#if RMM_COMPAT_HAS_CCCL

#include <cuda/memory_resource>

namespace RMM_NAMESPACE
{
namespace detail
{

using stream_ref = cuda::stream_ref;
using device_accessible = cuda::mr::device_accessible;
using host_accessible = cuda::mr::host_accessible;
using cuda::mr::any_resource;
using cuda::mr::resource_cast;
using cuda::mr::resource_ref;
using cuda::mr::synchronous_resource_ref;

} /* namespace detail */
} /* namespace RMM_NAMESPACE */

#else
#include <rmm/detail/any_resource.hpp>
/* The names of CCCL 3.3 where there is an older one, or none. */
#if !RMM_COMPAT_HAS_CUDA || !__has_include(<cuda/std/version>)
namespace cuda
{
using stream_ref = rmm::cuda_stream_view;
namespace mr
{
using rmm::detail::resource_ref;
} /* namespace mr */
} /* namespace cuda */
#endif
#if !RMM_COMPAT_HAS_PROPERTIES || CCCL_VERSION < 3001000
namespace cuda
{
namespace mr
{
using rmm::detail::any_resource;
using rmm::detail::resource_cast;
using rmm::detail::synchronous_resource_ref;
} /* namespace mr */
} /* namespace cuda */
#endif
#endif

namespace RMM_NAMESPACE
{
namespace detail
{

/* What every constructor of RMM takes as its upstream. */
using any_device_resource = any_resource<device_accessible>;

/* The program has the definition of one of its files. Volatile: it is read, not deduced. */
RMM_EXPORT inline const volatile bool has_cccl = RMM_COMPAT_HAS_CCCL != 0;

[[maybe_unused]] static const bool has_cccl_everywhere = [] {
    if (has_cccl != (RMM_COMPAT_HAS_CCCL != 0)) {
        throw logic_error(
            "some files of this program were compiled with CCCL 3.3 or newer and some "
            "without: name its include folder for all, or define RMM_COMPAT_NO_CCCL");
    }
    return true;
}();

} /* namespace detail */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_DETAIL_CCCL_HPP */
