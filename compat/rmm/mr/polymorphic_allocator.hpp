/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/polymorphic_allocator.hpp
 *
 * Resources as allocators: of a stream at each call, or of one stream.
 *
 * Lifetime: an allocator keeps a copy of its resource, which it shares with its own copies.
 */
#ifndef RMM_COMPAT_MR_POLYMORPHIC_ALLOCATOR_HPP
#define RMM_COMPAT_MR_POLYMORPHIC_ALLOCATOR_HPP

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include <rmm/cuda_stream_view.hpp>
#include <rmm/cxx/allocators.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/per_device_resource.hpp>
#include <rmm/resource_ref.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

template <class T> class polymorphic_allocator
{
  public:
    using value_type = T;

    /** Over a copy of the current device's resource. */
    polymorphic_allocator() : polymorphic_allocator(detail::copy_of_current_default())
    {
    }
    polymorphic_allocator(detail::any_device_resource mr)
        : mr_(std::make_shared<detail::any_device_resource>(std::move(mr)))
    {
    }
#if RMM_COMPAT_CLASSIC
    template <
        class Resource, class = std::enable_if_t<std::is_convertible<
                            Resource *, detail::any_device_resource>::value>>
    polymorphic_allocator(Resource *mr)
        : polymorphic_allocator(detail::any_device_resource(mr))
    {
    }
#endif
    /* No move: a container that was moved from goes on with its allocator. */
    polymorphic_allocator(const polymorphic_allocator &) noexcept = default;
    polymorphic_allocator &operator=(const polymorphic_allocator &) noexcept = default;
    template <class U>
    polymorphic_allocator(const polymorphic_allocator<U> &other) noexcept
        : mr_(other.mr_)
    {
    }
    [[nodiscard]] value_type *allocate(std::size_t count, cuda_stream_view stream)
    {
        return static_cast<value_type *>(mr_->allocate(
            stream, rmmc::detail::bytes_of<T>(count), rmmc::detail::align_of<T>));
    }
    void
    deallocate(value_type *ptr, std::size_t count, cuda_stream_view stream) noexcept
    {
        mr_->deallocate(stream, ptr, count * sizeof(T), rmmc::detail::align_of<T>);
    }
    [[nodiscard]] device_async_resource_ref get_upstream_resource() const noexcept
    {
        return device_async_resource_ref(*mr_);
    }
#if RMM_COMPAT_CLASSIC
    /** Until RMM 23.10. */
    [[nodiscard]] device_memory_resource *resource() const noexcept
    {
        return *mr_;
    }
#endif

  private:
    template <class U> friend class polymorphic_allocator;

    /* shared with copies: a copy of the resource may throw */
    std::shared_ptr<detail::any_device_resource> mr_;
};

template <class T, class U>
bool operator==(const polymorphic_allocator<T> &a, const polymorphic_allocator<U> &b)
{
    return a.get_upstream_resource() == b.get_upstream_resource();
}
template <class T, class U>
bool operator!=(const polymorphic_allocator<T> &a, const polymorphic_allocator<U> &b)
{
    return !(a == b);
}

/** An allocator whose functions take a stream, as one whose functions take none. */
template <class Allocator>
class stream_allocator_adaptor
    : public rmmc::detail::stream_bound_allocator<
          stream_allocator_adaptor, Allocator, cuda_stream_view>
{
  public:
    using rmmc::detail::stream_bound_allocator<
        rmm::mr::stream_allocator_adaptor, Allocator,
        cuda_stream_view>::stream_bound_allocator;
};

template <class Allocator>
stream_allocator_adaptor(const Allocator &, cuda_stream_view)
    -> stream_allocator_adaptor<Allocator>;

#if RMM_COMPAT_CLASSIC
template <class Allocator>
auto make_stream_allocator_adaptor(const Allocator &allocator, cuda_stream_view stream)
{
    return stream_allocator_adaptor<Allocator>(allocator, stream);
}
#endif

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_POLYMORPHIC_ALLOCATOR_HPP */
