/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/thrust_allocator_adaptor.hpp
 *
 * A resource as an allocator of Thrust. Needs Thrust, and CCCL 3.3 or newer as RMM does.
 */
#ifndef RMM_COMPAT_MR_THRUST_ALLOCATOR_ADAPTOR_HPP
#define RMM_COMPAT_MR_THRUST_ALLOCATOR_ADAPTOR_HPP

#include <cstddef>
#include <thrust/device_malloc_allocator.h>
#include <thrust/device_ptr.h>
#include <thrust/memory.h>
#include <utility>

#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/cxx/allocators.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/exec_check_disable.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/per_device_resource.hpp>
#include <rmm/resource_ref.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

/* The device, stream and resource are those of the construction. */
template <class T> class thrust_allocator : public thrust::device_malloc_allocator<T>
{
    using base = thrust::device_malloc_allocator<T>;

  public:
    using Base = base;
    using pointer = typename base::pointer;
    using size_type = typename base::size_type;
    template <class U> struct rebind {
        using other = thrust_allocator<U>;
    };

    RMM_EXEC_CHECK_DISABLE
    thrust_allocator() : thrust_allocator(cuda_stream_view())
    {
    }
    RMM_EXEC_CHECK_DISABLE
    explicit thrust_allocator(cuda_stream_view stream)
        : thrust_allocator(stream, detail::copy_of_current_default())
    {
    }
    RMM_EXEC_CHECK_DISABLE
    thrust_allocator(cuda_stream_view stream, detail::any_device_resource mr)
        : mr_(std::move(mr)), stream_(stream), device_(get_current_cuda_device())
    {
    }
    RMM_EXEC_CHECK_DISABLE
    thrust_allocator(const thrust_allocator &other)
        : base(other), mr_(other.mr_), stream_(other.stream_), device_(other.device_)
    {
    }
    RMM_EXEC_CHECK_DISABLE
    template <class U>
    thrust_allocator(const thrust_allocator<U> &other)
        : mr_(other.get_upstream_resource()), stream_(other.stream()),
          device_(other.device())
    {
    }
    RMM_EXEC_CHECK_DISABLE
    thrust_allocator &operator=(const thrust_allocator &) = default;
    RMM_EXEC_CHECK_DISABLE
    ~thrust_allocator()
    {
    }

    pointer allocate(size_type count)
    {
        const cuda_set_device_raii scope(device_);

        return thrust::device_pointer_cast(static_cast<T *>(mr_.allocate(
            stream_, rmmc::detail::bytes_of<T>(count), rmmc::detail::align_of<T>)));
    }
    void deallocate(pointer ptr, size_type count) noexcept
    {
        const rmm::detail::device_of_free scope(device_.value());

        mr_.deallocate(
            stream_, thrust::raw_pointer_cast(ptr), count * sizeof(T),
            rmmc::detail::align_of<T>);
    }
    [[nodiscard]] device_async_resource_ref get_upstream_resource() const noexcept
    {
        return device_async_resource_ref(mr_);
    }
#if RMM_COMPAT_CLASSIC
    /** Until RMM 23.12. */
    [[nodiscard]] rmm::detail::resource_of_container memory_resource() const noexcept
    {
        return get_upstream_resource();
    }
    [[nodiscard]] device_memory_resource *resource() const noexcept
    {
        return get_upstream_resource();
    }
#endif
    [[nodiscard]] cuda_stream_view stream() const noexcept
    {
        return stream_;
    }
    /** Not in RMM. */
    [[nodiscard]] cuda_device_id device() const noexcept
    {
        return device_;
    }
    friend constexpr void
    get_property(const thrust_allocator &, detail::device_accessible) noexcept
    {
    }

  private:
    mutable detail::any_device_resource mr_;
    cuda_stream_view stream_;
    cuda_device_id device_;
};

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_THRUST_ALLOCATOR_ADAPTOR_HPP */
