/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/detail/host_class.hpp
 *
 * A host_memory_resource without data, over a resource of the library, which its objects share.
 */
#ifndef RMM_COMPAT_MR_DETAIL_HOST_CLASS_HPP
#define RMM_COMPAT_MR_DETAIL_HOST_CLASS_HPP

#include <cstddef>

#include <rmm/aligned.hpp>
#include <rmm/detail/aligned.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/detail/kept_resources.hpp>
#include <rmm/mr/host/host_memory_resource.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{
namespace detail
{

template <rmm_status_t (*Create)(rmm_resource_t **)>
class host_class : public host_memory_resource
{
    using resources = resources_of_class<Create, stands_for::one_for_all_devices>;

    void *do_allocate(
        std::size_t bytes, std::size_t alignment = RMM_DEFAULT_HOST_ALIGNMENT) override
    {
        const std::size_t align = supported(alignment);

        return translated([&]() -> void * {
            rmmc::resource mr = resources::now();

            if (align <= CUDA_ALLOCATION_ALIGNMENT) {
                return mr.allocate_sync(bytes, align);
            }
            return rmm::detail::aligned_host_allocate(
                bytes, align, [&](std::size_t size) { return mr.allocate_sync(size); });
        });
    }
    void do_deallocate(
        void *ptr, std::size_t bytes,
        std::size_t alignment = RMM_DEFAULT_HOST_ALIGNMENT) noexcept override
    {
        const std::size_t align = supported(alignment);
        rmmc::resource mr = resources::existing();

        if (align <= CUDA_ALLOCATION_ALIGNMENT) {
            mr.deallocate_sync(ptr, bytes, align);
            return;
        }
        rmm::detail::aligned_host_deallocate(ptr, bytes, align, [&](void *block) {
            mr.deallocate_sync(block, bytes + sizeof(block) + align - 1);
        });
    }
    /* RMM takes what is no power of two for the default. */
    static std::size_t supported(std::size_t alignment)
    {
        return is_supported_alignment(alignment) ? alignment
                                                 : RMM_DEFAULT_HOST_ALIGNMENT;
    }
    [[nodiscard]] bool
    do_is_equal(const host_memory_resource &other) const noexcept override
    {
        return dynamic_cast<const host_class *>(&other) != nullptr;
    }
};

} /* namespace detail */
} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_DETAIL_HOST_CLASS_HPP */
