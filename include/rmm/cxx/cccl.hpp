/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/cccl.hpp
 *
 * Resources as CCCL's memory resources. Needs CCCL 2.2 or newer, which is in the CUDA toolkit.
 *
 *     CCCL        CUDA          concepts of cuda::mr that each resource satisfies
 *     3.1, newer  13.1, newer   synchronous_resource, resource
 *     2.2 to 3.0  12.3 to 13.0  resource (synchronous), async_resource
 *     older       12.0 to 12.2  none: there is no <cuda/memory_resource>
 *
 * With properties (device_accessible, host_accessible) each resource but the plain
 * rmmc::resource does: of that the properties are known when the program runs, and
 * device_resource(mr) checks them. So the classes of rmm/cxx/resources.hpp go into
 * cuda::mr::resource_ref<...>, and since CCCL 3.2 into any_resource<...> and cuda::buffer.
 *
 * from_cccl() is the way back: a resource over one of CCCL, or of RMM, which knows its
 * properties, and that CCCL's exception of cudaErrorMemoryAllocation means out of memory.
 * CCCL before 2.5 (CUDA 12.6) has no exception of its own.
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

#if !defined(__has_include) || !__has_include(<cuda/memory_resource>)
#error "rmm/cxx/cccl.hpp needs CCCL 2.2 or newer, which is in CUDA 12.3 and newer"
#define RMM_CXX_HAS_CCCL 0
#else

#include <cuda/std/version> /* CCCL_VERSION, but in CUDA 12.3 */
#ifdef CCCL_VERSION
#define RMM_CXX_CCCL_VERSION CCCL_VERSION
#else
#define RMM_CXX_CCCL_VERSION 2002000
#endif

/* Guards of the header that has the concepts: in CCCL 3.0 and in 2. */
#if RMM_CXX_CCCL_VERSION < 3001000 &&                                                  \
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
#include <cstring>
#include <type_traits>
#include <utility>

#include <rmm/cxx/custom.hpp>
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

namespace detail
{

template <class T> struct cccl_memory {
    T memory;

    /* CCCL before 3.1 has the number in the message only, early ones have neither */
    template <class Error>
    static auto is_out_of_memory(const Error &error, int) noexcept
        -> decltype(static_cast<int>(error.status()) == 0)
    {
        return static_cast<int>(error.status()) == 2; /* cudaErrorMemoryAllocation */
    }
    template <class Error>
    static auto is_out_of_memory(const Error &error, long) noexcept
        -> decltype(*error.what() == 0)
    {
        return std::strncmp(error.what(), "cudaError 2:", 12) == 0;
    }
    template <class Error> static bool is_out_of_memory(const Error &, ...) noexcept
    {
        return false;
    }
    static rmm_status_t exception_status() noexcept
    {
        try {
            throw;
#if RMM_CXX_CCCL_VERSION >= 2005000
        } catch (const cuda::cuda_error &error) {
            return is_out_of_memory(error, 0) ? RMM_ERR_OUT_OF_MEMORY
                                              : RMM_ERR_BAD_ALLOC;
#endif
        } catch (...) {
            return default_exception_status();
        }
    }
};

template <class T> T &object_of(cccl_memory<T> &held) noexcept
{
    return held.memory;
}

template <class T>
constexpr std::uint32_t cccl_properties =
    (cuda::has_property<T, cuda::mr::device_accessible> ? RMM_DEVICE_ACCESSIBLE : 0) |
    (cuda::has_property<T, cuda::mr::host_accessible> ? RMM_HOST_ACCESSIBLE : 0);

} /* namespace detail */

/**
 * A resource over a copy of @p memory, one of CCCL's or of that shape: any_resource, a
 * resource_ref (what it refers to has to live longer), cuda::device_memory_pool, ...
 */
template <class T>
custom_resource<detail::cccl_properties<T>>
from_cccl(T memory, const char *name = nullptr)
{
    static_assert(
        detail::cccl_properties<T> != 0,
        "the class has neither property, device_accessible nor host_accessible");
    return custom_resource<detail::cccl_properties<T>>(
        detail::cccl_memory<T>{std::move(memory)}, name);
}

} /* namespace rmmc */

#endif /* RMM_CXX_HAS_CCCL */
#endif /* __has_include */
#endif /* RMM_CXX_CCCL_HPP */
