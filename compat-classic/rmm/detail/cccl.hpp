/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/cccl.hpp
 *
 * The type-erased references of this interface, and the properties of memory.
 *
 * References are classes of these headers (rmm/detail/any_resource.hpp) with every CCCL: RMM
 * followed three generations of cuda::mr between 24.02 and 26.04, so no CCCL has them all. Classes
 * of resources that a program wrote for any of the three are accepted. The properties are CCCL's,
 * which programs name, or stand-ins of the same name where there is no CCCL.
 *
 * What takes a resource takes a reference, which does not keep its resource alive.
 */
#ifndef RMM_COMPAT_DETAIL_CCCL_HPP
#define RMM_COMPAT_DETAIL_CCCL_HPP

#include <cstddef>
#include <type_traits>
#include <utility>

#include <rmm/detail/any_resource.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/export.hpp>

#define RMM_COMPAT_HAS_CCCL 0

namespace RMM_NAMESPACE
{
namespace detail
{

/* The names of the functions until CCCL 3.0, RMM 24.02 to 25.10: allocate(bytes, alignment), and
 * with a stream allocate_async(bytes, alignment, stream). */
template <class T, class = void> struct has_allocate_sync : std::false_type {
};
template <class T>
struct has_allocate_sync<
    T, std::void_t<decltype(std::declval<T &>().allocate_sync(
           std::size_t(), std::size_t()))>> : std::true_type {
};
template <class T, class = void> struct has_older_names : std::false_type {
};
template <class T>
struct has_older_names<
    T, std::void_t<
           decltype(std::declval<T &>().allocate(std::size_t(), std::size_t())),
           decltype(std::declval<T &>().deallocate(
               std::declval<void *>(), std::size_t(), std::size_t())),
           decltype(std::declval<const T &>() == std::declval<const T &>())>>
    : std::negation<has_allocate_sync<T>> {
};
template <class T, class = void> struct has_older_stream_names : std::false_type {
};
template <class T>
struct has_older_stream_names<
    T, std::void_t<
           decltype(std::declval<T &>().allocate_async(
               std::size_t(), std::size_t(), stream_ref())),
           decltype(std::declval<T &>().deallocate_async(
               std::declval<void *>(), std::size_t(), std::size_t(), stream_ref()))>>
    : has_older_names<T> {
};

template <class T>
struct is_synchronous_resource<T, std::enable_if_t<has_older_names<T>::value>>
    : std::true_type {
};
template <class T>
struct is_resource<T, std::enable_if_t<has_older_stream_names<T>::value>>
    : std::true_type {
};
template <class T>
struct resource_calls<T, std::enable_if_t<has_older_names<T>::value>> {
    static void *
    allocate(T &object, stream_ref stream, std::size_t bytes, std::size_t align)
    {
        return object.allocate_async(bytes, align, stream);
    }
    static void deallocate(
        T &object, stream_ref stream, void *ptr, std::size_t bytes, std::size_t align)
    {
        object.deallocate_async(ptr, bytes, align, stream);
    }
    static void *allocate_sync(T &object, std::size_t bytes, std::size_t align)
    {
        return object.allocate(bytes, align);
    }
    static void
    deallocate_sync(T &object, void *ptr, std::size_t bytes, std::size_t align)
    {
        object.deallocate(ptr, bytes, align);
    }
};

} /* namespace detail */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_DETAIL_CCCL_HPP */
