/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/cccl.hpp
 *
 * Resources as CCCL's memory resources. Needs CCCL, which is in the CUDA toolkit.
 *
 *     CCCL        CUDA         concepts of cuda::mr that each resource satisfies
 *     3.1, newer  13.1, newer  synchronous_resource, resource
 *     before      12, 13.0     resource (synchronous), async_resource
 *
 * With properties (device_accessible, host_accessible) each resource but the plain
 * rmmc::resource does: of that the properties are known when the program runs, and
 * device_resource(mr) checks them. So the classes of rmm/cxx/resources.hpp go into
 * cuda::mr::resource_ref<...>, and since CCCL 3.2 into any_resource<...> and cuda::buffer.
 *
 * A reference of CCCL (resource_ref) keeps no reference of the resource; any_resource does.
 *
 * CCCL before 3.1 has these concepts only with LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE.
 * This header defines it. If the file included CCCL's header without it before, then there
 * are no concepts, and RMM_CXX_HAS_CCCL is 0.
 *
 * Lifetime, threads, exceptions: as rmm/cxx/resource.hpp.
 */
#ifndef RMM_CXX_CCCL_HPP
#define RMM_CXX_CCCL_HPP

#include <cuda/std/version> /* CCCL_VERSION */

/* Guards of the header that has the concepts: in CCCL 3.0 and in 2. */
#if CCCL_VERSION < 3001000 &&                                                          \
    !defined(LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE) &&                        \
    (defined(_CUDA__MEMORY_RESOURCE_RESOURCE_H) || defined(_CUDA_MEMORY_RESOURCE))
#define RMM_CXX_HAS_CCCL 0
#else
#define RMM_CXX_HAS_CCCL 1
#ifndef LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE
#endif
#include <cuda/memory_resource>

#include <cstdint>
#include <type_traits>

#include <rmm/cxx/resource.hpp>

namespace rmmc
{

template <
    std::uint32_t Properties,
    class = std::enable_if_t<(Properties & RMM_DEVICE_ACCESSIBLE) != 0>>
constexpr void
get_property(const resource_with<Properties> &, cuda::mr::device_accessible) noexcept
{
}

template <
    std::uint32_t Properties,
    class = std::enable_if_t<(Properties & RMM_HOST_ACCESSIBLE) != 0>>
constexpr void
get_property(const resource_with<Properties> &, cuda::mr::host_accessible) noexcept
{
}

} /* namespace rmmc */

#endif /* RMM_CXX_HAS_CCCL */
#endif /* RMM_CXX_CCCL_HPP */
