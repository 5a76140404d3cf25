/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/device_scalar.hpp
 *
 * One value in device memory. It is copied as bytes.
 *
 * value() waits for the stream, as the constructor with a value does. The _async functions
 * do not wait: the host memory must stay valid and unchanged until the stream has run the
 * copy.
 *
 * Lifetime, exceptions, threads: as rmm/cxx/device_buffer.hpp. A moved-from scalar has no
 * value: out_of_range.
 */
#ifndef RMM_CXX_DEVICE_SCALAR_HPP
#define RMM_CXX_DEVICE_SCALAR_HPP

#include <cstddef>
#include <type_traits>

#include <rmm/cxx/device_buffer.hpp>
#include <rmm/cxx/resource.hpp>
#include <rmm/cxx/stream.hpp>
#include <rmm/device_scalar.h>

namespace rmmc
{

template <class T> class device_scalar
{
    static_assert(
        std::is_trivially_copyable<T>::value,
        "the value of device_scalar is copied as bytes: T must be trivially copyable");

  public:
    using value_type = T;

    /** Uninitialised. */
    explicit device_scalar(stream_view stream, const resource &mr = resource())
    {
        detail::call().check(rmm_device_scalar_init_aligned(
            &scalar_, sizeof(T), alignof(T), stream.value(), mr.get()));
    }
    /** With a value; waits until it is copied. */
    device_scalar(const T &value, stream_view stream, const resource &mr = resource())
        : device_scalar(stream, mr)
    {
        detail::call().check(
            rmm_device_array_set_element(&scalar_.array, 0, &value, stream.value()));
    }
    device_scalar(
        const device_scalar &other, stream_view stream, const resource &mr = resource())
    {
        detail::call().check(
            rmm_device_scalar_copy(&scalar_, &other.scalar_, stream.value(), mr.get()));
    }
    device_scalar(device_scalar &&other) noexcept
    {
        rmm_device_scalar_move(&scalar_, &other.scalar_);
    }
    device_scalar &operator=(device_scalar &&other) noexcept
    {
        rmm_device_scalar_move(&scalar_, &other.scalar_);
        return *this;
    }
    device_scalar(const device_scalar &) = delete;
    device_scalar &operator=(const device_scalar &) = delete;
    ~device_scalar()
    {
        rmm_device_scalar_fini(&scalar_);
    }

    /** @throws out_of_range after a move */
    T value(stream_view stream) const
    {
        detail::host_value<T> host;

        detail::call().check(
            rmm_device_scalar_value(&scalar_, &host.value, stream.value()));
        return host.value;
    }
    void set_value_async(const T &value, stream_view stream)
    {
        detail::call().check(
            rmm_device_scalar_set_value_async(&scalar_, &value, stream.value()));
    }
    /** A temporary ends before the stream copies it. */
    void set_value_async(const T &&, stream_view) = delete;
    void set_value_to_zero_async(stream_view stream)
    {
        detail::call().check(
            rmm_device_scalar_set_value_to_zero_async(&scalar_, stream.value()));
    }
    /** NULL after a move. */
    T *data() noexcept
    {
        return static_cast<T *>(rmm_device_scalar_data(&scalar_));
    }
    const T *data() const noexcept
    {
        return static_cast<const T *>(rmm_device_scalar_data(&scalar_));
    }
    /** 1, or 0 after a move. */
    std::size_t size() const noexcept
    {
        return rmm_device_scalar_size(&scalar_);
    }
    stream_view stream() const noexcept
    {
        return detail::handle_of_c(rmm_device_scalar_stream(&scalar_));
    }
    void set_stream(stream_view stream) noexcept
    {
        rmm_device_scalar_set_stream(&scalar_, stream.value());
    }
    resource get_resource() const noexcept
    {
        return resource::share(rmm_device_scalar_resource(&scalar_));
    }

  private:
    rmm_device_scalar_t scalar_ = RMM_DEVICE_SCALAR_INIT(sizeof(T));
};

} /* namespace rmmc */

#endif /* RMM_CXX_DEVICE_SCALAR_HPP */
