/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/device_uvector.hpp
 *
 * An array of device memory, uninitialised, of a trivially copyable type.
 *
 * Lifetime, stream order, threads: as rmm/device_buffer.hpp. A default stream that an element is
 * set or read on is that of the array's device. Functions with _async do not wait: a value on the
 * host must stay valid until the stream has run.
 */
#ifndef RMM_COMPAT_DEVICE_UVECTOR_HPP
#define RMM_COMPAT_DEVICE_UVECTOR_HPP

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/exec_check_disable.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/device_buffer.hpp>
#include <rmm/mr/per_device_resource.hpp>
#include <rmm/resource_ref.hpp>
#if RMM_COMPAT_HAS_STREAM_REF
#include <cuda/std/iterator>
#include <cuda/std/span>
#endif

namespace RMM_NAMESPACE
{
namespace detail
{

#if RMM_COMPAT_HAS_STREAM_REF
template <class Iterator>
using reverse_iterator = cuda::std::reverse_iterator<Iterator>;
#else
template <class Iterator> using reverse_iterator = std::reverse_iterator<Iterator>;
#endif

} /* namespace detail */

template <class T> class device_uvector
{
    static_assert(
        std::is_trivially_copyable<T>::value,
        "device_uvector copies elements as bytes: T must be trivially copyable");

  public:
    using value_type = T;
    using size_type = std::size_t;
    using reference = T &;
    using const_reference = const T &;
    using pointer = T *;
    using const_pointer = const T *;
    using iterator = pointer;
    using const_iterator = const_pointer;
    using reverse_iterator = detail::reverse_iterator<iterator>;
    using const_reverse_iterator = detail::reverse_iterator<const_iterator>;

    device_uvector() = delete;
    explicit device_uvector(
        size_type size, cuda_stream_view stream,
        detail::any_device_resource mr = mr::detail::copy_of_current_default())
        : storage_(bytes_of(size), alignof(T), stream, std::move(mr))
    {
    }
    explicit device_uvector(
        const device_uvector &other, cuda_stream_view stream,
        detail::any_device_resource mr = mr::detail::copy_of_current_default())
        : storage_(other.storage_, stream, std::move(mr))
    {
    }
    RMM_EXEC_CHECK_DISABLE
    device_uvector(device_uvector &&) noexcept = default;
    RMM_EXEC_CHECK_DISABLE
    device_uvector &operator=(device_uvector &&) noexcept = default;
    device_uvector(const device_uvector &) = delete;
    device_uvector &operator=(const device_uvector &) = delete;
    RMM_EXEC_CHECK_DISABLE
    ~device_uvector() = default;

    [[nodiscard]] pointer element_ptr(size_type index) noexcept
    {
        assert(index < size());
        return data() + index;
    }
    [[nodiscard]] const_pointer element_ptr(size_type index) const noexcept
    {
        assert(index < size());
        return data() + index;
    }

    /** @throws out_of_range if there is no such element, as all that name one */
    void set_element_async(size_type index, const T &value, cuda_stream_view stream)
    {
        check_index(index);
        const cuda_set_device_raii scope(storage_.device());
        detail::copy_in_order(data() + index, &value, sizeof(T), stream);
    }
    /** A temporary would not live until the stream has copied it. */
#if RMM_COMPAT_CLASSIC
    void set_element_async(size_type index, const T &&value, cuda_stream_view stream)
    { /* until RMM 0.18 it was taken */
        set_element(index, value, stream);
    }
#else
    void set_element_async(size_type, const T &&, cuda_stream_view) = delete;
#endif
    void set_element_to_zero_async(size_type index, cuda_stream_view stream)
    {
        check_index(index);
        const cuda_set_device_raii scope(storage_.device());
        detail::fill_in_order(data() + index, 0, sizeof(T), stream);
    }
    /** Waits for the stream, as all that follow. */
    void set_element(size_type index, const T &value, cuda_stream_view stream)
    {
        check_index(index);
        const cuda_set_device_raii scope(storage_.device());
        detail::copy_and_wait(data() + index, &value, sizeof(T), stream);
    }
    [[nodiscard]] T element(size_type index, cuda_stream_view stream) const
    {
        std::remove_const_t<T> value;

        check_index(index);
        const cuda_set_device_raii scope(storage_.device());
        detail::copy_and_wait(&value, data() + index, sizeof(T), stream);
        return value;
    }
    [[nodiscard]] T front_element(cuda_stream_view stream) const
    {
        return element(0, stream);
    }
    [[nodiscard]] T back_element(cuda_stream_view stream) const
    {
        return element(size() - 1, stream);
    }

    void reserve(size_type new_capacity, cuda_stream_view stream)
    {
        storage_.reserve(bytes_of(new_capacity), stream);
    }
    /** Added elements are uninitialised. */
    void resize(size_type new_size, cuda_stream_view stream)
    {
        storage_.resize(bytes_of(new_size), stream);
    }
    void shrink_to_fit(cuda_stream_view stream)
    {
        storage_.shrink_to_fit(stream);
    }
    /** The memory, without the array. */
    device_buffer release() noexcept
    {
        return std::move(storage_);
    }

    [[nodiscard]] pointer data() noexcept
    {
        return static_cast<pointer>(storage_.data());
    }
    [[nodiscard]] const_pointer data() const noexcept
    {
        return static_cast<const_pointer>(storage_.data());
    }
    [[nodiscard]] size_type size() const noexcept
    {
        return storage_.size() / sizeof(T);
    }
    [[nodiscard]] std::int64_t ssize() const noexcept
    {
        return static_cast<std::int64_t>(size());
    }
    [[nodiscard]] size_type capacity() const noexcept
    {
        return storage_.capacity() / sizeof(T);
    }
    [[nodiscard]] bool is_empty() const noexcept
    {
        return size() == 0;
    }

    [[nodiscard]] iterator begin() noexcept
    {
        return data();
    }
    [[nodiscard]] const_iterator begin() const noexcept
    {
        return data();
    }
    [[nodiscard]] const_iterator cbegin() const noexcept
    {
        return data();
    }
    [[nodiscard]] iterator end() noexcept
    {
        return data() + size();
    }
    [[nodiscard]] const_iterator end() const noexcept
    {
        return data() + size();
    }
    [[nodiscard]] const_iterator cend() const noexcept
    {
        return data() + size();
    }
    [[nodiscard]] reverse_iterator rbegin() noexcept
    {
        return reverse_iterator(end());
    }
    [[nodiscard]] const_reverse_iterator rbegin() const noexcept
    {
        return const_reverse_iterator(end());
    }
    [[nodiscard]] const_reverse_iterator crbegin() const noexcept
    {
        return const_reverse_iterator(end());
    }
    [[nodiscard]] reverse_iterator rend() noexcept
    {
        return reverse_iterator(begin());
    }
    [[nodiscard]] const_reverse_iterator rend() const noexcept
    {
        return const_reverse_iterator(begin());
    }
    [[nodiscard]] const_reverse_iterator crend() const noexcept
    {
        return const_reverse_iterator(begin());
    }

#if RMM_COMPAT_HAS_STREAM_REF
    [[nodiscard]] operator cuda::std::span<const T>() const noexcept
    {
        return cuda::std::span<const T>(data(), size());
    }
    [[nodiscard]] operator cuda::std::span<T>() noexcept
    {
        return cuda::std::span<T>(data(), size());
    }
#endif

    [[nodiscard]] detail::resource_of_container
    memory_resource() RMM_COMPAT_CLASSIC_CONST noexcept
    {
        return storage_.memory_resource();
    }
    [[nodiscard]] detail::stream_of_container stream() const noexcept
    {
        return storage_.stream();
    }
    void set_stream(cuda_stream_view stream) noexcept
    {
        storage_.set_stream(stream);
    }
    /** Not in RMM: the device whose default streams are meant. */
    [[nodiscard]] cuda_device_id device() const noexcept
    {
        return storage_.device();
    }

  private:
    void check_index(size_type index) const
    {
        RMM_COMPAT_EXPECTS(index < size(), "there is no such element", out_of_range);
    }
    static size_type bytes_of(size_type count)
    {
        RMM_COMPAT_EXPECTS(
            count <= std::numeric_limits<size_type>::max() / sizeof(T),
            "the bytes of the elements do not fit into a size_t", invalid_argument);
        return count * sizeof(T);
    }

    device_buffer storage_;
};

} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_DEVICE_UVECTOR_HPP */
