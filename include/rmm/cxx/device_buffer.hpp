/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/device_buffer.hpp
 *
 * A buffer of untyped device memory that frees itself, in stream order.
 *
 * Lifetime, stream order, host memory, devices: as rmm/device_buffer.h. The buffer keeps a
 * reference of its resource, but not its stream: stream() must exist when the buffer ends. An
 * empty `resource` argument is the current device's. A copy names its stream, so there is no
 * copy constructor of one argument. A moved-from buffer is empty and has no resource.
 *
 * Exceptions: those of rmm/cxx/error.hpp and of callbacks. A function that throws has changed
 * nothing, except the host memory or the part of the buffer that a failed copy was for.
 *
 * Threads: several threads may read one buffer. A thread that changes it needs it alone.
 *
 * Units: bytes.
 */
#ifndef RMM_CXX_DEVICE_BUFFER_HPP
#define RMM_CXX_DEVICE_BUFFER_HPP

#include <cstddef>
#include <utility>

#include <rmm/cxx/resource.hpp>
#include <rmm/cxx/stream.hpp>
#include <rmm/device_buffer.h>

namespace rmmc
{
namespace detail
{

/* Room for a value that a copy from the device makes: T may have no default constructor. */
template <class T> union host_value {
    host_value() noexcept : nothing()
    {
    }
    char nothing;
    T value;
};

} /* namespace detail */

class device_buffer
{
  public:
    device_buffer() noexcept = default;
    device_buffer(
        std::size_t bytes, stream_view stream, const resource &mr = resource())
    {
        detail::call().check(
            rmm_device_buffer_init(&buffer_, bytes, stream.value(), mr.get()));
    }
    device_buffer(
        std::size_t bytes, std::size_t align, stream_view stream,
        const resource &mr = resource())
    {
        detail::call().check(rmm_device_buffer_init_aligned(
            &buffer_, bytes, align, stream.value(), mr.get()));
    }
    /** A copy of host or device memory, which must stay valid until the stream has copied. */
    device_buffer(
        const void *src, std::size_t bytes, stream_view stream,
        const resource &mr = resource())
    {
        detail::call().check(rmm_device_buffer_init_copy_from(
            &buffer_, src, bytes, stream.value(), mr.get()));
    }
    device_buffer(
        const void *src, std::size_t bytes, std::size_t align, stream_view stream,
        const resource &mr = resource())
    {
        detail::call().check(rmm_device_buffer_init_copy_from_aligned(
            &buffer_, src, bytes, align, stream.value(), mr.get()));
    }
    device_buffer(
        const device_buffer &other, stream_view stream, const resource &mr = resource())
    {
        copy_from(other, stream, mr);
    }
    /** Take over a buffer of C. */
    static device_buffer adopt(rmm_device_buffer_t *buffer) noexcept
    {
        device_buffer adopted;
        rmm_device_buffer_move(&adopted.buffer_, buffer);
        return adopted;
    }
    device_buffer(device_buffer &&other) noexcept
    {
        rmm_device_buffer_move(&buffer_, &other.buffer_);
    }
    device_buffer &operator=(device_buffer &&other) noexcept
    {
        rmm_device_buffer_move(&buffer_, &other.buffer_);
        return *this;
    }
    device_buffer(const device_buffer &) = delete;
    device_buffer &operator=(const device_buffer &) = delete;
    ~device_buffer()
    {
        rmm_device_buffer_fini(&buffer_);
    }

    /** Become a copy of @p other, with its size and alignment, of the resource @p mr. */
    void copy_from(
        const device_buffer &other, stream_view stream, const resource &mr = resource())
    {
        detail::call().check(
            rmm_device_buffer_copy(&buffer_, &other.buffer_, stream.value(), mr.get()));
    }
    /** To the exact size; added bytes are uninitialised. */
    void resize(std::size_t bytes, stream_view stream)
    {
        detail::call().check(rmm_device_buffer_resize(&buffer_, bytes, stream.value()));
    }
    void reserve(std::size_t capacity, stream_view stream)
    {
        detail::call().check(
            rmm_device_buffer_reserve(&buffer_, capacity, stream.value()));
    }
    void shrink_to_fit(stream_view stream)
    {
        detail::call().check(rmm_device_buffer_shrink_to_fit(&buffer_, stream.value()));
    }
    /** Copy from @p offset on, and wait. @throws out_of_range beyond the size */
    void copy_to_host(
        void *host, std::size_t bytes, stream_view stream, std::size_t offset = 0) const
    {
        detail::call().check(rmm_device_buffer_copy_to_host(
            &buffer_, offset, host, bytes, stream.value()));
    }
    void copy_from_host(
        const void *host, std::size_t bytes, stream_view stream, std::size_t offset = 0)
    {
        detail::call().check(rmm_device_buffer_copy_from_host(
            &buffer_, offset, host, bytes, stream.value()));
    }
    void prefetch(int device, stream_view stream) const
    {
        detail::call().check(
            rmm_device_buffer_prefetch(&buffer_, device, stream.value()));
    }

    /** NULL while the capacity is 0. */
    void *data() noexcept
    {
        return rmm_device_buffer_data(&buffer_);
    }
    const void *data() const noexcept
    {
        return rmm_device_buffer_data(&buffer_);
    }
    std::size_t size() const noexcept
    {
        return rmm_device_buffer_size(&buffer_);
    }
    std::size_t capacity() const noexcept
    {
        return rmm_device_buffer_capacity(&buffer_);
    }
    bool is_empty() const noexcept
    {
        return rmm_device_buffer_is_empty(&buffer_);
    }
    std::size_t alignment() const noexcept
    {
        return rmm_device_buffer_alignment(&buffer_);
    }
    /** The stream on which the memory is freed. */
    stream_view stream() const noexcept
    {
        return detail::handle_of_c(rmm_device_buffer_stream(&buffer_));
    }
    void set_stream(stream_view stream) noexcept
    {
        rmm_device_buffer_set_stream(&buffer_, stream.value());
    }
    /** Empty if it has none yet. */
    resource get_resource() const noexcept
    {
        return resource::share(rmm_device_buffer_resource(&buffer_));
    }
    /** -1: no resource, or host memory without a GPU. */
    int device() const noexcept
    {
        return rmm_device_buffer_device(&buffer_);
    }
    /** The buffer of C, for its functions. */
    rmm_device_buffer_t *get() noexcept
    {
        return &buffer_;
    }
    const rmm_device_buffer_t *get() const noexcept
    {
        return &buffer_;
    }

  private:
    rmm_device_buffer_t buffer_ = RMM_DEVICE_BUFFER_INIT;
};

} /* namespace rmmc */

#endif /* RMM_CXX_DEVICE_BUFFER_HPP */
