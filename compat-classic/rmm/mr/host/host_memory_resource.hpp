/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/host/host_memory_resource.hpp
 *
 * The base class of resources of host memory, until RMM 25.12. A program derives its own from it by
 * do_allocate() and do_deallocate(), both private. Threads: as the derived class.
 */
#ifndef RMM_COMPAT_MR_HOST_HOST_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_HOST_HOST_MEMORY_RESOURCE_HPP

#include <cstddef>

#include <rmm/aligned.hpp>
#include <rmm/detail/cccl.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

class host_memory_resource
{
  public:
    host_memory_resource() = default;
    host_memory_resource(const host_memory_resource &) = default;
    host_memory_resource(host_memory_resource &&) noexcept = default;
    host_memory_resource &operator=(const host_memory_resource &) = default;
    host_memory_resource &operator=(host_memory_resource &&) noexcept = default;
    virtual ~host_memory_resource() = default;

    /** @param alignment a power of two */
    void *
    allocate(std::size_t bytes, std::size_t alignment = RMM_DEFAULT_HOST_ALIGNMENT)
    {
        return do_allocate(bytes, alignment);
    }
    void deallocate(
        void *ptr, std::size_t bytes,
        std::size_t alignment = RMM_DEFAULT_HOST_ALIGNMENT) noexcept
    {
        do_deallocate(ptr, bytes, alignment);
    }
    /** The name since RMM 25.12. @throws bad_alloc if the alignment is no power of two */
    void *
    allocate_sync(std::size_t bytes, std::size_t alignment = RMM_DEFAULT_HOST_ALIGNMENT)
    {
        RMM_COMPAT_EXPECTS(
            is_supported_alignment(alignment), "the alignment is no power of two",
            bad_alloc);
        return do_allocate(bytes, alignment);
    }
    void deallocate_sync(
        void *ptr, std::size_t bytes,
        std::size_t alignment = RMM_DEFAULT_HOST_ALIGNMENT) noexcept
    {
        do_deallocate(ptr, bytes, alignment);
    }
    [[nodiscard]] bool is_equal(const host_memory_resource &other) const noexcept
    {
        return do_is_equal(other);
    }
    [[nodiscard]] bool operator==(const host_memory_resource &other) const noexcept
    {
        return do_is_equal(other);
    }
    [[nodiscard]] bool operator!=(const host_memory_resource &other) const noexcept
    {
        return !do_is_equal(other);
    }
    friend constexpr void
    get_property(const host_memory_resource &, rmm::detail::host_accessible) noexcept
    {
    }

  private:
    virtual void *do_allocate(
        std::size_t bytes, std::size_t alignment = RMM_DEFAULT_HOST_ALIGNMENT) = 0;
    virtual void do_deallocate(
        void *ptr, std::size_t bytes,
        std::size_t alignment = RMM_DEFAULT_HOST_ALIGNMENT) = 0;
    [[nodiscard]] virtual bool
    do_is_equal(const host_memory_resource &other) const noexcept
    {
        return this == &other;
    }
};

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_HOST_HOST_MEMORY_RESOURCE_HPP */
