/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/device_buffer.hpp
 *
 * A buffer of untyped device memory that frees itself, in stream order.
 *
 * Lifetime: the buffer keeps a copy of its resource, which is of any class; so it is no
 * rmm_device_buffer_t. Memory is freed on stream(), which is the stream of the last
 * constructor, resize, reserve, shrink_to_fit or set_stream. All calls run with the device
 * current that was current at the construction, so default streams are those of that device. A
 * buffer that was moved from is empty, and shares its resource object with the one that it was
 * moved to.
 *
 * Stream order: as rmm/device_buffer.h has it. A copy of a buffer runs behind what is queued on
 * the source's stream, and before what will be; a new stream of a buffer is ordered behind the
 * one before, unless CUDA made that one. RMM leaves both to the caller.
 *
 * Threads: several threads may read one buffer. A thread that changes it needs it alone. A
 * buffer and the one that it was moved to may be in two threads, which then use one resource
 * object at once: the library's classes allow that, and a class of the program has to.
 *
 * Units: bytes. A function that throws has changed nothing.
 */
#ifndef RMM_COMPAT_DEVICE_BUFFER_HPP
#define RMM_COMPAT_DEVICE_BUFFER_HPP

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include <rmm/aligned.hpp>
#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/memory.h>
#include <rmm/mr/per_device_resource.hpp>
#include <rmm/resource_ref.hpp>
#include <rmm/stream.h>
#if RMM_COMPAT_CLASSIC
#include <rmm/cuda_stream.hpp> /* for programs: RMM's documents go without it */
#endif

namespace RMM_NAMESPACE
{
namespace detail
{

/* A copy or fill of this library, in the order of a stream of RMM's. */
inline void
copy_in_order(void *dst, const void *src, std::size_t bytes, cuda_stream_view stream)
{
    const rmm_stream_t handle = rmmc::stream_view(stream.value()).value();

    check([&] { return rmm_memcpy_async(dst, src, bytes, handle); });
}

/* Such a copy, and the wait for it: nothing uses host memory when it returns or throws. */
inline void
copy_and_wait(void *dst, const void *src, std::size_t bytes, cuda_stream_view stream)
{
    const rmm_stream_t handle = rmmc::stream_view(stream.value()).value();

    check([&] { return rmm_memcpy(dst, src, bytes, handle); });
}

inline void fill_in_order(
    void *ptr, unsigned char value, std::size_t bytes, cuda_stream_view stream)
{
    const rmm_stream_t handle = rmmc::stream_view(stream.value()).value();

    check([&] { return rmm_memset_async(ptr, value, bytes, handle); });
}

/* The handle that the C library takes. */
RMM_CXX_OF_THIS_FILE rmm_stream_t handle_of(cuda_stream_view stream) noexcept
{
    return rmmc::stream_view(stream.value()).value();
}

/* A device buffer's device and stream: what the stream's handle means. */
struct stream_of_device {
    cuda_device_id device;
    rmm_stream_t stream;
};

/* What is queued on `later` from now on runs behind all that `earlier` has queued. */
inline void order_streams(stream_of_device earlier, stream_of_device later)
{
    check([&] {
        return rmm_stream_order(
            earlier.device.value(), earlier.stream, later.device.value(), later.stream);
    });
}

} /* namespace detail */

class device_buffer
{
  public:
    /** Empty, of the current device's resource. */
    device_buffer() : device_buffer(0, cuda_stream_view())
    {
    }
    explicit device_buffer(
        std::size_t size,
        cuda_stream_view stream RMM_COMPAT_CLASSIC_DEFAULT(cuda_stream_view()),
        detail::any_device_resource mr = mr::detail::copy_of_current_default())
        : device_buffer(size, CUDA_ALLOCATION_ALIGNMENT, stream, std::move(mr))
    {
    }
    /** @throws invalid_argument if the alignment is no power of two */
    explicit device_buffer(
        std::size_t size, std::size_t alignment, cuda_stream_view stream,
        detail::any_device_resource mr = mr::detail::copy_of_current_default())
        : mr_(std::make_shared<detail::any_device_resource>(std::move(mr))),
          alignment_(alignment), stream_(stream)
    {
        RMM_COMPAT_EXPECTS(
            is_supported_alignment(alignment), "the alignment is no power of two",
            invalid_argument);
        const cuda_set_device_raii scope(device_);
        data_ = new_block(size, stream);
        size_ = capacity_ = size;
    }
    /** A copy of host or device memory, which must stay valid until the stream has copied. */
    device_buffer(
        const void *source_data, std::size_t size,
        cuda_stream_view stream RMM_COMPAT_CLASSIC_DEFAULT(cuda_stream_view()),
        detail::any_device_resource mr = mr::detail::copy_of_current_default())
        : device_buffer(
              source_data, size, CUDA_ALLOCATION_ALIGNMENT, stream, std::move(mr))
    {
    }
    explicit device_buffer(
        const void *source_data, std::size_t size, std::size_t alignment,
        cuda_stream_view stream,
        detail::any_device_resource mr = mr::detail::copy_of_current_default())
        : device_buffer(size, alignment, stream, std::move(mr))
    { /* constructed already: a throw below frees the memory */
        const cuda_set_device_raii scope(device_);
        RMM_EXPECTS(size == 0 || source_data != nullptr, "a copy from a null pointer");
        copy_to(data_, source_data, size, stream);
    }
    /** With the size of the other, and its alignment. */
    device_buffer(
        const device_buffer &other,
        cuda_stream_view stream RMM_COMPAT_CLASSIC_DEFAULT(cuda_stream_view()),
        detail::any_device_resource mr = mr::detail::copy_of_current_default())
        : device_buffer(other.size(), other.alignment(), stream, std::move(mr))
    { /* constructed already: a throw below frees the memory */
        if (size_ != 0) {
            copy_of(other);
        }
    }
    device_buffer(device_buffer &&other) noexcept
        : mr_(other.mr_), data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)),
          capacity_(std::exchange(other.capacity_, 0)),
          alignment_(std::exchange(other.alignment_, 1)),
          stream_(std::exchange(other.stream_, cuda_stream_view())),
          device_(other.device_)
    {
    }
    device_buffer &operator=(device_buffer &&other) noexcept
    {
        if (this != &other) {
            free_block();
            mr_ = other.mr_;
            data_ = std::exchange(other.data_, nullptr);
            size_ = std::exchange(other.size_, 0);
            capacity_ = std::exchange(other.capacity_, 0);
            alignment_ = std::exchange(other.alignment_, 1);
            stream_ = std::exchange(other.stream_, cuda_stream_view());
            device_ = other.device_;
        }
        return *this;
    }
#if RMM_COMPAT_CLASSIC
    /** In the order of the other's stream, which becomes that of this one. The memory is kept if
     * it is enough and of an equal resource; else the resource becomes that of the other too. */
    device_buffer &operator=(const device_buffer &other)
    {
        if (this == &other) {
            return *this;
        }
        if (capacity_ < other.size() || *mr_ != *other.mr_) {
            const cuda_set_device_raii scope(other.device_);
            return *this = device_buffer(other, other.stream_, *other.mr_);
        }
        resize(other.size(), other.stream_);
        if (size_ != 0) {
            copy_of(other);
        }
        return *this;
    }
#else
    device_buffer(const device_buffer &) = delete;
    device_buffer &operator=(const device_buffer &) = delete;
#endif
    ~device_buffer() noexcept
    {
        free_block();
    }

    /** Raise the capacity to at least this. */
    void reserve(
        std::size_t new_capacity,
        cuda_stream_view stream RMM_COMPAT_CLASSIC_DEFAULT(cuda_stream_view()))
    {
        go_over(stream);
        if (new_capacity > capacity_) {
            reallocate(new_capacity, stream);
        }
        stream_ = stream;
    }
    /** Keeps the contents; added bytes are uninitialised. Memory only grows. */
    void resize(
        std::size_t new_size,
        cuda_stream_view stream RMM_COMPAT_CLASSIC_DEFAULT(cuda_stream_view()))
    {
        reserve(new_size, stream);
        size_ = new_size;
    }
    void shrink_to_fit(
        cuda_stream_view stream RMM_COMPAT_CLASSIC_DEFAULT(cuda_stream_view()))
    {
        go_over(stream);
        if (size_ != capacity_) {
            reallocate(size_, stream);
        }
        stream_ = stream;
    }

    [[nodiscard]] const void *data() const noexcept
    {
        return data_;
    }
    void *data() noexcept
    {
        return data_;
    }
    [[nodiscard]] std::size_t size() const noexcept
    {
        return size_;
    }
    [[nodiscard]] std::int64_t ssize() const noexcept
    {
        assert(size_ <= static_cast<std::size_t>(INT64_MAX));
        return static_cast<std::int64_t>(size_);
    }
    [[nodiscard]] bool is_empty() const noexcept
    {
        return size_ == 0;
    }
    [[nodiscard]] std::size_t capacity() const noexcept
    {
        return capacity_;
    }
    [[nodiscard]] std::size_t alignment() const noexcept
    {
        return alignment_;
    }
    [[nodiscard]] detail::stream_of_container stream() const noexcept
    {
        return stream_;
    }
    /** Orders the new stream behind the one before. The caller orders it behind uses on others. */
    void set_stream(cuda_stream_view stream) noexcept
    {
        try {
            go_over(stream);
        } catch (...) { /* a driver that refuses this refuses the free as well */
        }
        stream_ = stream;
    }
    /** Not in RMM: the device whose default streams are meant. */
    [[nodiscard]] cuda_device_id device() const noexcept
    {
        return device_;
    }
    [[nodiscard]] detail::resource_of_container
    memory_resource() RMM_COMPAT_CLASSIC_CONST noexcept
    {
        return device_async_resource_ref(*mr_);
    }

  private:
    /* The device is current. */
    void *new_block(std::size_t bytes, cuda_stream_view stream)
    {
        return bytes != 0 ? mr_->allocate(stream, bytes, alignment_) : nullptr;
    }
    void free_block() noexcept
    {
        if (capacity_ != 0) {
            const detail::device_of_free scope(device_.value());
            mr_->deallocate(stream_, data_, capacity_, alignment_);
        }
    }
    static void
    copy_to(void *dst, const void *src, std::size_t bytes, cuda_stream_view stream)
    {
        if (bytes != 0) {
            detail::copy_in_order(dst, src, bytes, stream);
        }
    }
    [[nodiscard]] detail::stream_of_device place() const noexcept
    {
        return {device_, detail::handle_of(stream_)};
    }
    /* What follows on this stream runs behind the work of the stream before. */
    void go_over(cuda_stream_view stream)
    {
        if (capacity_ != 0) {
            detail::check([&] {
                return rmm_stream_take_over(
                    device_.value(), place().stream, detail::handle_of(stream));
            });
        }
    }
    /* Behind what was queued on the other's stream, and before what will be, its end above
     * all. */
    void copy_of(const device_buffer &other)
    {
        const cuda_set_device_raii scope(device_);

        detail::order_streams(other.place(), place());
        copy_to(data_, other.data(), size_, stream_);
        try {
            detail::order_streams(place(), other.place());
        } catch (...) {
            stream_.synchronize(); /* then the other cannot end too early */
        }
    }
    /* To another block, with the contents. The old one is freed behind the copy. */
    void reallocate(std::size_t capacity, cuda_stream_view stream)
    {
        const cuda_set_device_raii scope(device_);
        void *block = new_block(capacity, stream);

        try {
            copy_to(block, data_, size_, stream);
        } catch (...) {
            mr_->deallocate(stream, block, capacity, alignment_);
            throw;
        }
        stream_ = stream;
        free_block();
        data_ = block;
        capacity_ = capacity;
    }

    /* shared with the buffers that were moved from: a copy of the resource may throw */
    std::shared_ptr<detail::any_device_resource> mr_;
    void *data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
    std::size_t alignment_;
    cuda_stream_view stream_;
    cuda_device_id device_ = get_current_cuda_device();
};

} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_DEVICE_BUFFER_HPP */
