/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/stream.hpp
 *
 * Streams: a view of any stream, a stream that is owned, and a pool of streams.
 *
 * Lifetime: a view is valid as long as its stream. stream and stream_pool destroy theirs;
 * queued work still finishes. A moved-from stream or pool may only be assigned to or
 * destroyed; any other use throws invalid_argument.
 *
 * Default stream: stream_view() is that of the file which contains the expression: the
 * legacy stream, or with CUDA_API_PER_THREAD_DEFAULT_STREAM (for HIP, with
 * HIP_API_PER_THREAD_DEFAULT_STREAM as well) the calling thread's. There the
 * handle 0 means the same, as it does to CUDA. A handle 0 that C code passed to the library is
 * the legacy stream in every file: callbacks and containers get it as that. A function that a
 * header defines and that files of both kinds use gets the default stream of either, and so
 * does a callback whose type files of both kinds give to a resource (a std::function, say):
 * pass such a function a stream, and make such a type in one file.
 *
 * Threads: a view, and stream_pool::get_stream(): any. Exceptions: as rmm/cxx/error.hpp.
 */
#ifndef RMM_CXX_STREAM_HPP
#define RMM_CXX_STREAM_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <rmm/cxx/callback.hpp>
#include <rmm/cxx/hip.hpp>
#include <rmm/stream.h>
#include <rmm/stream_pool.h>

#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) ||                                     \
    defined(HIP_API_PER_THREAD_DEFAULT_STREAM)
#define RMM_CXX_PER_THREAD_DEFAULT_STREAM
#endif

struct ihipStream_t; /* hipStream_t points to it */

#if defined(__GNUC__)
/* Files must not share a function that depends on CUDA_API_PER_THREAD_DEFAULT_STREAM. */
#define RMM_CXX_OF_THIS_FILE __attribute__((always_inline)) inline
#else
#define RMM_CXX_OF_THIS_FILE inline
#endif

namespace rmmc
{
namespace detail
{

/* The handle of a stream class of somebody else: get() of cuda::stream_ref, value() of
 * RMM's. */
template <class T>
auto handle_of(const T &stream, int) noexcept -> std::enable_if_t<
    std::is_same<decltype(stream.get()), rmm_stream_t>::value, rmm_stream_t>
{
    return stream.get();
}
template <class T>
auto handle_of(const T &stream, long) noexcept -> std::enable_if_t<
    std::is_same<decltype(stream.value()), rmm_stream_t>::value, rmm_stream_t>
{
    return stream.value();
}

/* The same of a class for AMD GPUs, whose handle is a hipStream_t. */
template <class T>
auto handle_of(const T &stream, long) noexcept -> std::enable_if_t<
    std::is_same<decltype(stream.value()), ihipStream_t *>::value, rmm_stream_t>
{
    return reinterpret_cast<rmm_stream_t>(stream.value());
}

/* The runtime's handle of a stream that the library names: HIP has none of the legacy default
 * stream but 0. */
#if RMM_CXX_HAS_HIP
inline ihipStream_t *native_of(rmm_stream_t stream) noexcept
{
    return stream == RMM_STREAM_LEGACY ? nullptr
                                       : reinterpret_cast<ihipStream_t *>(stream);
}
#else
inline rmm_stream_t native_of(rmm_stream_t stream) noexcept
{
    return stream;
}
#endif

/* A handle from the C library, to which 0 is the legacy stream, as one of this file. */
RMM_CXX_OF_THIS_FILE rmm_stream_t handle_of_c(rmm_stream_t handle) noexcept
{
#ifdef RMM_CXX_PER_THREAD_DEFAULT_STREAM
    return handle != nullptr ? handle : RMM_STREAM_LEGACY;
#else
    return handle;
#endif
}

} /* namespace detail */

/** A stream that something else owns. */
class stream_view
{
  public:
    RMM_CXX_OF_THIS_FILE stream_view() noexcept : handle_(RMM_STREAM_DEFAULT)
    {
    }
    RMM_CXX_OF_THIS_FILE stream_view(rmm_stream_t handle) noexcept
#ifdef RMM_CXX_PER_THREAD_DEFAULT_STREAM
        : handle_(handle != nullptr ? handle : RMM_STREAM_PER_THREAD)
#else
        : handle_(handle)
#endif
    {
    }
    /** From a hipStream_t. */
    RMM_CXX_OF_THIS_FILE stream_view(ihipStream_t *handle) noexcept
        : stream_view(reinterpret_cast<rmm_stream_t>(handle))
    {
    }
    /** From cuda::stream_ref, RMM's cuda_stream_view, or any class like them. */
    template <
        class T, class = decltype(detail::handle_of(std::declval<const T &>(), 0))>
    RMM_CXX_OF_THIS_FILE stream_view(const T &stream) noexcept
        : stream_view(detail::handle_of(stream, 0))
    {
    }
    stream_view(int) = delete;
    stream_view(std::nullptr_t) = delete;

    rmm_stream_t value() const noexcept
    {
        return handle_;
    }
    rmm_stream_t get() const noexcept
    {
        return handle_;
    }
    operator rmm_stream_t() const noexcept
    {
        return handle_;
    }
    /** Wait on the host for all work that is queued on the stream. */
    void synchronize() const
    {
        detail::call().check(rmm_stream_synchronize(handle_));
    }
    /** True for the legacy default stream. */
    bool is_default() const noexcept
    {
        return rmm_stream_is_default(handle_);
    }
    bool is_per_thread_default() const noexcept
    {
        return rmm_stream_is_per_thread_default(handle_);
    }

    friend bool operator==(stream_view a, stream_view b) noexcept
    {
        return a.handle_ == b.handle_ || (a.is_default() && b.is_default());
    }
    friend bool operator!=(stream_view a, stream_view b) noexcept
    {
        return !(a == b);
    }
    /* Templates, for handles only: what converts to a handle and to a stream_view compares as the
     * latter. */
    template <class T, std::enable_if_t<std::is_same_v<T, rmm_stream_t>, int> = 0>
    friend bool operator==(stream_view a, T b) noexcept
    {
        return a == stream_view(b);
    }
    template <class T, std::enable_if_t<std::is_same_v<T, rmm_stream_t>, int> = 0>
    friend bool operator!=(stream_view a, T b) noexcept
    {
        return !(a == stream_view(b));
    }
    template <class T, std::enable_if_t<std::is_same_v<T, rmm_stream_t>, int> = 0>
    friend bool operator==(T a, stream_view b) noexcept
    {
        return stream_view(a) == b;
    }
    template <class T, std::enable_if_t<std::is_same_v<T, rmm_stream_t>, int> = 0>
    friend bool operator!=(T a, stream_view b) noexcept
    {
        return !(stream_view(a) == b);
    }

  private:
    rmm_stream_t handle_;
};

/** A stream of its own on the device that was current at its creation. */
class stream
{
  public:
    /** @param flags 0, or RMM_STREAM_NON_BLOCKING, RMM_STREAM_NEVER_CAPTURES, both */
    explicit stream(std::uint32_t flags = 0)
    {
        detail::call().check(rmm_stream_create(flags, &handle_));
    }
    stream(stream &&other) noexcept : handle_(std::exchange(other.handle_, nullptr))
    {
    }
    stream &operator=(stream &&other) noexcept
    {
        stream(std::move(other)).swap(*this);
        return *this;
    }
    stream(const stream &) = delete;
    stream &operator=(const stream &) = delete;
    ~stream()
    {
        if (handle_ != nullptr) {
            (void)rmm_stream_destroy(handle_);
        }
    }

    void swap(stream &other) noexcept
    {
        std::swap(handle_, other.handle_);
    }
    /** False after a move. */
    explicit operator bool() const noexcept
    {
        return handle_ != nullptr;
    }
    /** @throws invalid_argument after a move, as all that follow. */
    rmm_stream_t value() const
    {
        detail::check_not_moved_from(handle_, "stream");
        return handle_;
    }
    stream_view view() const
    {
        return value();
    }
    operator stream_view() const
    {
        return value();
    }
    void synchronize() const
    {
        view().synchronize();
    }

  private:
    rmm_stream_t handle_ = nullptr;
};

/** A fixed number of streams, used in turn. */
class stream_pool
{
  public:
    explicit stream_pool(
        std::size_t count = RMM_STREAM_POOL_DEFAULT_COUNT, std::uint32_t flags = 0)
    {
        detail::call().check(rmm_stream_pool_create(count, flags, &pool_));
    }
    stream_pool(stream_pool &&other) noexcept
        : pool_(std::exchange(other.pool_, nullptr))
    {
    }
    stream_pool &operator=(stream_pool &&other) noexcept
    {
        stream_pool(std::move(other)).swap(*this);
        return *this;
    }
    stream_pool(const stream_pool &) = delete;
    stream_pool &operator=(const stream_pool &) = delete;
    ~stream_pool()
    {
        rmm_stream_pool_destroy(pool_);
    }

    void swap(stream_pool &other) noexcept
    {
        std::swap(pool_, other.pool_);
    }
    /** The next stream, in turn. */
    stream_view get_stream() const
    {
        detail::check_not_moved_from(pool_, "stream pool");
        return rmm_stream_pool_get(pool_);
    }
    /** The stream with the number @p index modulo the size. */
    stream_view get_stream(std::size_t index) const
    {
        detail::check_not_moved_from(pool_, "stream pool");
        return rmm_stream_pool_get_at(pool_, index);
    }
    /** 0 after a move. */
    std::size_t size() const noexcept
    {
        return pool_ != nullptr ? rmm_stream_pool_size(pool_) : 0;
    }

  private:
    rmm_stream_pool_t *pool_ = nullptr;
};

} /* namespace rmmc */

#endif /* RMM_CXX_STREAM_HPP */
