/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/allocators.hpp
 *
 * Resources as allocators of C++: polymorphic_allocator takes a stream at each call, and
 * stream_allocator_adaptor binds one to it, as the standard's containers need. Containers
 * that touch their elements on the host need memory that the host can access.
 *
 * Lifetime: an allocator keeps a reference of its resource; the stream must outlive it. An
 * allocator that keeps a stream allocates and frees with the device current that was current when
 * it was made: a default stream is that of this device.
 * Threads, exceptions: as rmm/cxx/resource.hpp; std::bad_array_new_length for a count whose
 * bytes do not fit into a size_t.
 */
#ifndef RMM_CXX_ALLOCATORS_HPP
#define RMM_CXX_ALLOCATORS_HPP

#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include <rmm/cxx/device.hpp>
#include <rmm/cxx/resource.hpp>
#include <rmm/cxx/stream.hpp>

namespace rmmc
{
namespace detail
{

template <class T>
constexpr std::size_t align_of = alignof(T) > RMM_ALIGN_DEFAULT ? alignof(T)
                                                                : RMM_ALIGN_DEFAULT;

template <class T> std::size_t bytes_of(std::size_t count)
{
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
        throw std::bad_array_new_length();
    }
    return count * sizeof(T);
}

} /* namespace detail */

template <class T> class polymorphic_allocator
{
  public:
    using value_type = T;

    /** Over the current device's resource. */
    polymorphic_allocator() : mr_(get_current_device_resource())
    {
    }
    polymorphic_allocator(resource mr) noexcept : mr_(std::move(mr))
    {
    }
    /* No move: a container that was moved from goes on with its allocator. */
    polymorphic_allocator(const polymorphic_allocator &) noexcept = default;
    polymorphic_allocator &operator=(const polymorphic_allocator &) noexcept = default;
    template <class U>
    polymorphic_allocator(const polymorphic_allocator<U> &other) noexcept
        : mr_(other.get_resource())
    {
    }

    [[nodiscard]] T *allocate(std::size_t count, stream_view stream) const
    {
        return static_cast<T *>(
            mr_.allocate(stream, detail::bytes_of<T>(count), detail::align_of<T>));
    }
    void deallocate(T *ptr, std::size_t count, stream_view stream) const noexcept
    {
        mr_.deallocate(stream, ptr, count * sizeof(T), detail::align_of<T>);
    }
    const resource &get_resource() const noexcept
    {
        return mr_;
    }

  private:
    resource mr_;
};

template <class T, class U>
bool operator==(
    const polymorphic_allocator<T> &a, const polymorphic_allocator<U> &b) noexcept
{
    return a.get_resource() == b.get_resource();
}
template <class T, class U>
bool operator!=(
    const polymorphic_allocator<T> &a, const polymorphic_allocator<U> &b) noexcept
{
    return !(a == b);
}

namespace detail
{

/* The current device; -1: there is no GPU. */
inline int device_here() noexcept
{
    int device = -1;

    return rmm_device_current(&device) == RMM_OK ? device : -1;
}

/* The common base of the allocator adaptors, of this library and with RMM's names. */
template <template <class> class Adaptor, class Allocator, class Stream>
class stream_bound_allocator
{
  public:
    using value_type = typename std::allocator_traits<Allocator>::value_type;
    template <class T> struct rebind {
        using other = Adaptor<
            typename std::allocator_traits<Allocator>::template rebind_alloc<T>>;
    };

    stream_bound_allocator(const Allocator &allocator, Stream stream)
        : allocator_(allocator), stream_(stream)
    {
    }
    template <class Other>
    stream_bound_allocator(const Adaptor<Other> &other)
        : allocator_(other.underlying_allocator()), stream_(other.stream()),
          device_(other.device())
    {
    }

    [[nodiscard]] value_type *allocate(std::size_t count)
    {
        const scoped_device scope(device_);

        return allocator_.allocate(count, stream_);
    }
    void deallocate(value_type *ptr, std::size_t count) noexcept
    {
        const device_of_free scope(device_);

        allocator_.deallocate(ptr, count, stream_);
    }
    [[nodiscard]] Stream stream() const noexcept
    {
        return stream_;
    }
    [[nodiscard]] const Allocator &underlying_allocator() const noexcept
    {
        return allocator_;
    }
    /** The device whose default streams are meant; -1: no GPU. */
    [[nodiscard]] int device() const noexcept
    {
        return device_;
    }

  private:
    Allocator allocator_;
    Stream stream_;
    int device_ = device_here();
};

/** Equal ones may free each other's memory, on whatever stream. */
template <template <class> class Adaptor, class A, class B, class Stream>
bool operator==(
    const stream_bound_allocator<Adaptor, A, Stream> &a,
    const stream_bound_allocator<Adaptor, B, Stream> &b) noexcept
{
    return a.underlying_allocator() == b.underlying_allocator();
}
template <template <class> class Adaptor, class A, class B, class Stream>
bool operator!=(
    const stream_bound_allocator<Adaptor, A, Stream> &a,
    const stream_bound_allocator<Adaptor, B, Stream> &b) noexcept
{
    return !(a == b);
}

} /* namespace detail */

/** An allocator whose functions take a stream, as one whose functions take none. */
template <class Allocator>
class stream_allocator_adaptor : public detail::stream_bound_allocator<
                                     stream_allocator_adaptor, Allocator, stream_view>
{
  public:
    using detail::stream_bound_allocator<
        rmmc::stream_allocator_adaptor, Allocator, stream_view>::stream_bound_allocator;
};

template <class Allocator>
stream_allocator_adaptor(const Allocator &, stream_view)
    -> stream_allocator_adaptor<Allocator>;

} /* namespace rmmc */

#endif /* RMM_CXX_ALLOCATORS_HPP */
