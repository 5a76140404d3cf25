/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/aligned.hpp
 *
 * Alignments. All functions but is_pow2() expect a power of two. A debug build asserts it, and that
 * what align_up() returns fits into a size_t.
 */
#ifndef RMM_COMPAT_ALIGNED_HPP
#define RMM_COMPAT_ALIGNED_HPP

#include <cassert>
#include <cstddef>
#include <cstdint>

#include <rmm/detail/era.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/resource.h>

namespace RMM_NAMESPACE
{

/** What every resource aligns to at least, and what RMM's functions align to by default. */
inline constexpr std::size_t CUDA_ALLOCATION_ALIGNMENT = RMM_ALIGN_DEFAULT;

/** That of host memory. */
inline constexpr std::size_t RMM_DEFAULT_HOST_ALIGNMENT = alignof(std::max_align_t);

[[nodiscard]] constexpr bool is_pow2(std::size_t value) noexcept
{
    return value != 0 && (value & (value - 1)) == 0;
}

[[nodiscard]] constexpr bool is_supported_alignment(std::size_t alignment) noexcept
{
    return is_pow2(alignment);
}

/** Resources over functions of the driver align to 256 and no more. */
[[nodiscard]] constexpr bool
is_supported_base_resource_alignment(std::size_t alignment) noexcept
{
    return is_pow2(alignment) && alignment <= CUDA_ALLOCATION_ALIGNMENT;
}

[[nodiscard]] constexpr std::size_t
align_down(std::size_t value, std::size_t alignment) noexcept
{
    assert(is_pow2(alignment));
    return value & ~(alignment - 1);
}

[[nodiscard]] constexpr std::size_t
align_up(std::size_t value, std::size_t alignment) noexcept
{
    assert(value + (alignment - 1) >= value);
    return align_down(value + (alignment - 1), alignment);
}

[[nodiscard]] constexpr bool
is_aligned(std::size_t value, std::size_t alignment) noexcept
{
    return align_down(value, alignment) == value;
}

[[nodiscard]] inline bool is_pointer_aligned(
    void *ptr, std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT) noexcept
{
    return is_aligned(reinterpret_cast<std::uintptr_t>(ptr), alignment);
}

#if RMM_COMPAT_CLASSIC
/* Their place until RMM 24.02. */
namespace detail
{
using rmm::align_down;
using rmm::align_up;
using rmm::CUDA_ALLOCATION_ALIGNMENT;
using rmm::is_aligned;
using rmm::is_pointer_aligned;
using rmm::is_pow2;
using rmm::is_supported_alignment;
inline constexpr std::size_t RMM_DEFAULT_HOST_ALIGNMENT =
    rmm::RMM_DEFAULT_HOST_ALIGNMENT;
} /* namespace detail */
#endif

} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_ALIGNED_HPP */
