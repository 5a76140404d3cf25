/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/resource_ref.hpp
 *
 * References of resources, by where their memory can be accessed. A reference is made of a
 * resource or of its address, has the functions of all versions of RMM that had it (24.02 to
 * 26.04), and is used like the pointer that it replaced: it converts to device_memory_resource *,
 * and has * and ->.
 *
 * A reference does not keep its resource alive. Threads: as the resource.
 */
#ifndef RMM_COMPAT_RESOURCE_REF_HPP
#define RMM_COMPAT_RESOURCE_REF_HPP

#include <cstddef>
#include <type_traits>

#include <rmm/aligned.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/cccl.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/device_memory_resource.hpp>

/* In CCCL 2.2 to 3.1 a program may name cuda::mr::resource_ref<...>, as RMM's own was. */
#if RMM_COMPAT_HAS_PROPERTIES &&                                                       \
    defined(LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE) &&                         \
    (!defined(CCCL_VERSION) || CCCL_VERSION < 3002000)
#define RMM_COMPAT_HAS_CCCL_REFERENCES 1
#else
#define RMM_COMPAT_HAS_CCCL_REFERENCES 0
#endif

namespace RMM_NAMESPACE
{
namespace detail
{

using mr::device_memory_resource;

template <class T> T &not_null(T *resource)
{
    RMM_EXPECTS(resource != nullptr, "the pointer of the resource is null");
    return *resource;
}

/* May a reference with these properties name a T? */
template <class Base, class T, class... Properties>
inline constexpr bool can_name = is_plain_object<T> &&
                                 (std::is_base_of<erased_stream_resource, Base>::value
                                      ? is_resource<T>::value
                                      : is_synchronous_resource<T>::value) &&
                                 (has_property<T, Properties>::value && ...);

/* Base: erased_resource or erased_stream_resource. */
template <class Base, class... Properties>
class reference : public memory_of<Base, Properties...>
{
    using base = memory_of<Base, Properties...>;

  public:
    template <class T, class = std::enable_if_t<can_name<Base, T, Properties...>>>
    reference(T &object) noexcept : base(&object)
    {
    }
    /** @throws logic_error if the address is null */
    template <
        class T, class = std::enable_if_t<can_name<Base, T, Properties...>>,
        class = void>
    reference(T *object) : base(&not_null(object))
    {
    }
    /** @throws logic_error */
    [[noreturn]] reference(std::nullptr_t)
    {
        RMM_FAIL("the pointer of the resource is null");
    }
    template <
        class T,
        class = std::enable_if_t<
            std::is_base_of<Base, T>::value &&
            (has_property<T, Properties>::value && ...)>,
        class = void, class = void>
    reference(const T &other) noexcept
    {
        static_cast<erased_resource &>(*this) = other;
    }
    reference(const reference &) = default;
    reference &operator=(const reference &) = default;

    /** The resource; NULL if it is of a class that is not derived from it. */
    operator device_memory_resource *() const noexcept
    {
        return resource_cast<device_memory_resource>(const_cast<reference *>(this));
    }
#if RMM_COMPAT_HAS_CCCL_REFERENCES
    /** CCCL's own of the same resource, which is a device_memory_resource. */
    template <auto Kind, class... Of>
    operator cuda::mr::basic_resource_ref<Kind, Of...>() const
    {
        return cuda::mr::basic_resource_ref<Kind, Of...>(**this);
    }
#endif
    device_memory_resource *operator->() const noexcept
    {
        return *this;
    }
    device_memory_resource &operator*() const
    {
        return not_null(static_cast<device_memory_resource *>(*this));
    }

    void *
    allocate_sync(std::size_t bytes, std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT)
    {
        return base::allocate_sync(bytes, alignment);
    }
    void deallocate_sync(
        void *ptr, std::size_t bytes,
        std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT) noexcept
    {
        base::deallocate_sync(ptr, bytes, alignment);
    }
    /** As allocate_sync(); until RMM 25.10 what is no alignment stood for that of any type. */
    void *allocate(std::size_t bytes, std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT)
    {
        return allocate_sync(bytes, supported(alignment));
    }
    void deallocate(
        void *ptr, std::size_t bytes,
        std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT) noexcept
    {
        deallocate_sync(ptr, bytes, supported(alignment));
    }

  private:
    static constexpr std::size_t supported(std::size_t alignment) noexcept
    {
        return is_supported_alignment(alignment) ? alignment
                                                 : RMM_DEFAULT_HOST_ALIGNMENT;
    }
};

template <class... Properties>
class stream_reference : public reference<erased_stream_resource, Properties...>
{
    using base = reference<erased_stream_resource, Properties...>;

  public:
    using base::allocate;
    using base::base;
    using base::deallocate;

    void *allocate(
        cuda_stream_view stream, std::size_t bytes,
        std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT)
    {
        return erased_stream_resource::allocate(stream, bytes, alignment);
    }
    void deallocate(
        cuda_stream_view stream, void *ptr, std::size_t bytes,
        std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT) noexcept
    {
        erased_stream_resource::deallocate(stream, ptr, bytes, alignment);
    }
    void *
    allocate_async(std::size_t bytes, std::size_t alignment, cuda_stream_view stream)
    {
        return allocate(stream, bytes, alignment);
    }
    void *allocate_async(std::size_t bytes, cuda_stream_view stream)
    {
        return allocate(stream, bytes);
    }
    void deallocate_async(
        void *ptr, std::size_t bytes, std::size_t alignment, cuda_stream_view stream)
    {
        deallocate(stream, ptr, bytes, alignment);
    }
    void deallocate_async(void *ptr, std::size_t bytes, cuda_stream_view stream)
    {
        deallocate(stream, ptr, bytes);
    }
};

#if RMM_COMPAT_HAS_CCCL_REFERENCES
/* With one of CCCL's: is that of an equal device_memory_resource? */
template <
    class Ours, auto Kind, class... Of,
    std::enable_if_t<std::is_base_of<erased_resource, Ours>::value, int> = 0>
bool operator==(const Ours &a, const cuda::mr::basic_resource_ref<Kind, Of...> &b)
{
    return static_cast<cuda::mr::basic_resource_ref<Kind, Of...>>(a) == b;
}
template <
    class Ours, auto Kind, class... Of,
    std::enable_if_t<std::is_base_of<erased_resource, Ours>::value, int> = 0>
bool operator==(const cuda::mr::basic_resource_ref<Kind, Of...> &a, const Ours &b)
{
    return b == a;
}
template <
    class Ours, auto Kind, class... Of,
    std::enable_if_t<std::is_base_of<erased_resource, Ours>::value, int> = 0>
bool operator!=(const Ours &a, const cuda::mr::basic_resource_ref<Kind, Of...> &b)
{
    return !(a == b);
}
template <
    class Ours, auto Kind, class... Of,
    std::enable_if_t<std::is_base_of<erased_resource, Ours>::value, int> = 0>
bool operator!=(const cuda::mr::basic_resource_ref<Kind, Of...> &a, const Ours &b)
{
    return !(b == a);
}
#endif

/* What takes a resource. */
using any_device_resource = stream_reference<device_accessible>;

/* How a container names its resource. */
#if RMM_COMPAT_BEFORE_REFERENCES
using resource_of_container = device_memory_resource *;
#else
using resource_of_container = stream_reference<device_accessible>;
#endif

} /* namespace detail */

using device_resource_ref =
    detail::reference<detail::erased_resource, detail::device_accessible>;
using device_async_resource_ref = detail::stream_reference<detail::device_accessible>;
using host_resource_ref =
    detail::reference<detail::erased_resource, detail::host_accessible>;
using host_async_resource_ref = detail::stream_reference<detail::host_accessible>;
using host_device_resource_ref = detail::reference<
    detail::erased_resource, detail::host_accessible, detail::device_accessible>;
using host_device_async_resource_ref =
    detail::stream_reference<detail::host_accessible, detail::device_accessible>;

/* The namespace that RMM's README writes. */
namespace mr
{
using rmm::device_async_resource_ref;
using rmm::device_resource_ref;
using rmm::host_async_resource_ref;
using rmm::host_device_async_resource_ref;
using rmm::host_device_resource_ref;
using rmm::host_resource_ref;
} /* namespace mr */

/** @throws logic_error if the pointer is null */
template <class Resource>
device_async_resource_ref to_device_async_resource_ref_checked(Resource *resource)
{
    return device_async_resource_ref(detail::not_null(resource));
}

} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_RESOURCE_REF_HPP */
