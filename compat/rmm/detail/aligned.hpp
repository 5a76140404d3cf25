/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/aligned.hpp
 *
 * Aligned host memory from an allocator that aligns less. The block begins with unused bytes,
 * the last of which hold the address that the allocator returned.
 */
#ifndef RMM_COMPAT_DETAIL_ALIGNED_HPP
#define RMM_COMPAT_DETAIL_ALIGNED_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <rmm/aligned.hpp>
#include <rmm/detail/era.hpp>

namespace RMM_NAMESPACE
{
namespace detail
{

template <class Allocate>
void *aligned_host_allocate(std::size_t bytes, std::size_t alignment, Allocate allocate)
{
    void *block = allocate(bytes + sizeof(block) + alignment - 1);
    const auto start = reinterpret_cast<std::uintptr_t>(block) + sizeof(block);
    char *aligned =
        static_cast<char *>(block) +
        (align_up(start, alignment) - reinterpret_cast<std::uintptr_t>(block));

    std::memcpy(aligned - sizeof(block), &block, sizeof(block));
    return aligned;
}

template <class Deallocate>
void aligned_host_deallocate(
    void *ptr, std::size_t, std::size_t, Deallocate deallocate) noexcept
{
    void *block;

    if (ptr != nullptr) {
        std::memcpy(&block, static_cast<char *>(ptr) - sizeof(block), sizeof(block));
        deallocate(block);
    }
}

#if RMM_COMPAT_CLASSIC
/* Their names until RMM 24.02. */
template <class Allocate>
void *aligned_allocate(std::size_t bytes, std::size_t alignment, Allocate allocate)
{
    return aligned_host_allocate(bytes, alignment, allocate);
}
template <class Deallocate>
void aligned_deallocate(
    void *ptr, std::size_t bytes, std::size_t alignment, Deallocate deallocate) noexcept
{
    aligned_host_deallocate(ptr, bytes, alignment, deallocate);
}
#endif

} /* namespace detail */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_DETAIL_ALIGNED_HPP */
