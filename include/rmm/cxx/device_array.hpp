/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/device_array.hpp
 *
 * An array of uninitialised elements in device memory, RMM's device_uvector. Elements are
 * copied as bytes.
 *
 * Elements: element(), set_element(), front_element(), back_element() and the _host functions
 * copy in the order of the stream and wait for it. The _async functions do not wait: the host
 * memory must stay valid and unchanged until the stream has run the copy.
 *
 * Iterators are addresses in device memory: for kernels, not for the host (unless the
 * resource's memory is accessible there).
 *
 * Lifetime, exceptions, threads: as rmm/cxx/device_buffer.hpp; out_of_range for an index that
 * is not below the size. Units: elements.
 */
#ifndef RMM_CXX_DEVICE_ARRAY_HPP
#define RMM_CXX_DEVICE_ARRAY_HPP

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__has_include) && __cplusplus >= 202002L
#if __has_include(<span>)
#include <span>
#endif
#endif

#include <rmm/cxx/device_buffer.hpp>
#include <rmm/cxx/resource.hpp>
#include <rmm/cxx/stream.hpp>
#include <rmm/device_array.h>

namespace rmmc
{

template <class T> class device_array
{
    static_assert(
        std::is_trivially_copyable<T>::value,
        "elements of device_array are copied as bytes: T must be trivially copyable");

  public:
    using value_type = T;
    using size_type = std::size_t;
    using pointer = T *;
    using const_pointer = const T *;
    using iterator = T *;
    using const_iterator = const T *;
    using reverse_iterator = std::reverse_iterator<iterator>;
    using const_reverse_iterator = std::reverse_iterator<const_iterator>;

    device_array() noexcept = default;
    device_array(std::size_t count, stream_view stream, const resource &mr = resource())
    {
        detail::call().check(rmm_device_array_init_aligned(
            &array_, sizeof(T), alignof(T), count, stream.value(), mr.get()));
    }
    /** With the elements of a host array; waits until they are copied. */
    device_array(
        const std::vector<T> &values, stream_view stream,
        const resource &mr = resource())
        : device_array(values.size(), stream, mr)
    {
        if constexpr (std::is_same<T, bool>::value) { /* a std::vector of bits */
            const std::unique_ptr<T[]> host(new T[values.size()]);

            std::copy(values.begin(), values.end(), host.get());
            copy_from_host(host.get(), values.size(), stream);
        } else {
            copy_from_host(values.data(), values.size(), stream);
        }
    }
    device_array(
        const device_array &other, stream_view stream, const resource &mr = resource())
    {
        detail::call().check(
            rmm_device_array_copy(&array_, &other.array_, stream.value(), mr.get()));
    }
    device_array(device_array &&other) noexcept
    {
        rmm_device_array_move(&array_, &other.array_);
    }
    device_array &operator=(device_array &&other) noexcept
    {
        rmm_device_array_move(&array_, &other.array_);
        return *this;
    }
    device_array(const device_array &) = delete;
    device_array &operator=(const device_array &) = delete;
    ~device_array()
    {
        rmm_device_array_fini(&array_);
    }

    void resize(std::size_t count, stream_view stream)
    {
        detail::call().check(rmm_device_array_resize(&array_, count, stream.value()));
    }
    void reserve(std::size_t capacity, stream_view stream)
    {
        detail::call().check(
            rmm_device_array_reserve(&array_, capacity, stream.value()));
    }
    void shrink_to_fit(stream_view stream)
    {
        detail::call().check(rmm_device_array_shrink_to_fit(&array_, stream.value()));
    }
    /** Give the memory away; the array is empty then. */
    device_buffer release() noexcept
    {
        device_buffer released;
        rmm_device_array_release(&array_, released.get());
        return released;
    }

    T element(std::size_t index, stream_view stream) const
    {
        return get([&](void *value) {
            return rmm_device_array_get_element(&array_, index, value, stream.value());
        });
    }
    void set_element(std::size_t index, const T &value, stream_view stream)
    {
        detail::call().check(
            rmm_device_array_set_element(&array_, index, &value, stream.value()));
    }
    void set_element_async(std::size_t index, const T &value, stream_view stream)
    {
        detail::call().check(
            rmm_device_array_set_element_async(&array_, index, &value, stream.value()));
    }
    /** A temporary ends before the stream copies it. */
    void set_element_async(std::size_t, const T &&, stream_view) = delete;
    void set_element_to_zero_async(std::size_t index, stream_view stream)
    {
        detail::call().check(
            rmm_device_array_set_element_to_zero_async(&array_, index, stream.value()));
    }
    T front_element(stream_view stream) const
    {
        return get([&](void *value) {
            return rmm_device_array_front(&array_, value, stream.value());
        });
    }
    T back_element(stream_view stream) const
    {
        return get([&](void *value) {
            return rmm_device_array_back(&array_, value, stream.value());
        });
    }
    /** Copy @p count elements from @p first on. */
    void copy_to_host(
        T *host, std::size_t count, stream_view stream, std::size_t first = 0) const
    {
        check_range(first, count);
        detail::call().check(rmm_device_buffer_copy_to_host(
            &array_.buffer, first * sizeof(T), host, count * sizeof(T),
            stream.value()));
    }
    void copy_from_host(
        const T *host, std::size_t count, stream_view stream, std::size_t first = 0)
    {
        check_range(first, count);
        detail::call().check(rmm_device_buffer_copy_from_host(
            &array_.buffer, first * sizeof(T), host, count * sizeof(T),
            stream.value()));
    }
    /** All elements. */
    std::vector<T> to_vector(stream_view stream) const
    {
        if constexpr (std::is_same<T, bool>::value) {
            const std::unique_ptr<T[]> host(new T[size()]);

            copy_to_host(host.get(), size(), stream);
            return std::vector<T>(host.get(), host.get() + size());
        } else {
            std::vector<T> values(size());

            copy_to_host(values.data(), values.size(), stream);
            return values;
        }
    }
    void prefetch(int device, stream_view stream) const
    {
        detail::call().check(
            rmm_device_array_prefetch(&array_, 0, size(), device, stream.value()));
    }

    /** The address of an element; the index is not checked. */
    T *element_ptr(std::size_t index) noexcept
    {
        return data() + index;
    }
    const T *element_ptr(std::size_t index) const noexcept
    {
        return data() + index;
    }
    T *data() noexcept
    {
        return static_cast<T *>(rmm_device_array_data(&array_));
    }
    const T *data() const noexcept
    {
        return static_cast<const T *>(rmm_device_array_data(&array_));
    }
    iterator begin() noexcept
    {
        return data();
    }
    iterator end() noexcept
    {
        return data() + size();
    }
    const_iterator begin() const noexcept
    {
        return data();
    }
    const_iterator end() const noexcept
    {
        return data() + size();
    }
    const_iterator cbegin() const noexcept
    {
        return data();
    }
    const_iterator cend() const noexcept
    {
        return data() + size();
    }
    reverse_iterator rbegin() noexcept
    {
        return reverse_iterator(end());
    }
    reverse_iterator rend() noexcept
    {
        return reverse_iterator(begin());
    }
#if defined(__cpp_lib_span)
    operator std::span<T>() noexcept
    {
        return {data(), size()};
    }
    operator std::span<const T>() const noexcept
    {
        return {data(), size()};
    }
#endif
    std::size_t size() const noexcept
    {
        return rmm_device_array_size(&array_);
    }
    std::size_t capacity() const noexcept
    {
        return rmm_device_array_capacity(&array_);
    }
    bool is_empty() const noexcept
    {
        return rmm_device_array_is_empty(&array_);
    }
    /** The stream on which the memory is freed. */
    stream_view stream() const noexcept
    {
        return detail::handle_of_c(rmm_device_array_stream(&array_));
    }
    void set_stream(stream_view stream) noexcept
    {
        rmm_device_array_set_stream(&array_, stream.value());
    }
    resource get_resource() const noexcept
    {
        return resource::share(rmm_device_array_resource(&array_));
    }

  private:
    template <class Function> static T get(Function &&function)
    {
        detail::host_value<T> host;

        detail::call().check(std::forward<Function>(function)(&host.value));
        return host.value;
    }
    /* before a multiplication can overflow */
    void check_range(std::size_t first, std::size_t count) const
    {
        if (first > size() || count > size() - first) {
            throw_status(
                RMM_ERR_OUT_OF_RANGE, 0, "the range is not inside of the array");
        }
    }

    rmm_device_array_t array_ = RMM_DEVICE_ARRAY_INIT_ALIGNED(sizeof(T), alignof(T));
};

/** RMM's name. */
template <class T> using device_uvector = device_array<T>;

} /* namespace rmmc */

#endif /* RMM_CXX_DEVICE_ARRAY_HPP */
