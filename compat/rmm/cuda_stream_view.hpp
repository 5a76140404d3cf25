/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cuda_stream_view.hpp
 *
 * A stream that something else owns.
 *
 * Functions of RMM 26.10 take and return cuda::stream_ref where those of 26.08 have this class.
 * With a CCCL that has stream_ref (2.4 or newer) this class is one: it is derived from it, so that
 * a program for either version compiles. What it inherits calls CUDA; sync() and the others below
 * go through the library.
 *
 * The default stream is that of RMM: a cuda_stream_view() holds the handle 0. In a file that
 * is compiled with CUDA_API_PER_THREAD_DEFAULT_STREAM, CUDA takes this handle for the
 * per-thread stream, and so does this header when it passes it on to the library. The same
 * goes for HIP and HIP_API_PER_THREAD_DEFAULT_STREAM.
 *
 * In a file for AMD GPUs the handle is a hipStream_t (rmm/detail/cuda_api.hpp).
 */
#ifndef RMM_COMPAT_CUDA_STREAM_VIEW_HPP
#define RMM_COMPAT_CUDA_STREAM_VIEW_HPP

#include <cassert>
#include <cstddef>
#include <ostream>
#include <type_traits>

#include <rmm/cxx/stream.hpp>
#include <rmm/detail/cuda_api.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#define RMM_COMPAT_HAS_STREAM_REF 0
#if RMM_COMPAT_HAS_CUDA && !RMM_COMPAT_HAS_HIP && __has_include(<cuda/std/version>)
#include <cuda/std/version>
/* Experimental in those before 2.4, where RMM's CMake defines the macro. */
#if (defined(CCCL_VERSION) && CCCL_VERSION >= 2004000) ||                              \
    defined(LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE)
#undef RMM_COMPAT_HAS_STREAM_REF
#define RMM_COMPAT_HAS_STREAM_REF 1
#if __has_include(<cuda/stream>) /* the other name is deprecated since 3.4 */
#include <cuda/stream>
#else
#include <cuda/stream_ref>
#endif
#endif
#endif

namespace RMM_NAMESPACE
{

namespace detail
{

#if RMM_COMPAT_HAS_STREAM_REF
using stream_base = cuda::stream_ref;
#else
class stream_base
{
  public:
    constexpr stream_base(cudaStream_t stream) noexcept : stream_(stream)
    {
    }
    [[nodiscard]] constexpr cudaStream_t get() const noexcept
    {
        return stream_;
    }

  private:
    cudaStream_t stream_;
};
#endif

} /* namespace detail */

class cuda_stream_view : public detail::stream_base
{
  public:
    constexpr cuda_stream_view() noexcept : cuda_stream_view(cudaStream_t())
    {
    }
    constexpr cuda_stream_view(cudaStream_t stream) noexcept
        : detail::stream_base(stream)
    {
    }
#if RMM_COMPAT_HAS_HIP
    /** From a stream of the library. HIP has no handle of the legacy default stream but 0. A
     * template: for handles only, not for the number 0. */
    template <class T, std::enable_if_t<std::is_same_v<T, rmm_stream_t>, int> = 0>
    cuda_stream_view(T stream) noexcept : cuda_stream_view(detail::native_of(stream))
    {
    }
#endif
#if !RMM_COMPAT_CLASSIC /* which takes 0 for the default stream */
    cuda_stream_view(int) = delete;
    cuda_stream_view(std::nullptr_t) = delete;
#endif
#if RMM_COMPAT_HAS_STREAM_REF
    constexpr cuda_stream_view(cuda::stream_ref stream) noexcept
        : cuda_stream_view(stream.get())
    {
    }
#endif

    [[nodiscard]] constexpr cudaStream_t value() const noexcept
    {
        return get();
    }
    constexpr operator cudaStream_t() const noexcept
    {
        return get();
    }

    /** True for the handle 0 too in a file with a default stream for each thread. */
    [[nodiscard]] RMM_CXX_OF_THIS_FILE bool is_per_thread_default() const noexcept
    {
        return rmm_stream_is_per_thread_default(rmmc::stream_view(get()).value());
    }
    /** True for the legacy default stream. */
    [[nodiscard]] RMM_CXX_OF_THIS_FILE bool is_default() const noexcept
    {
        return rmm_stream_is_default(rmmc::stream_view(get()).value());
    }
    RMM_CXX_OF_THIS_FILE void synchronize() const
    {
        const rmm_stream_t stream = rmmc::stream_view(get()).value();
        detail::check([&] { return rmm_stream_synchronize(stream); });
    }
    RMM_CXX_OF_THIS_FILE void sync() const
    {
        synchronize();
    }
    RMM_CXX_OF_THIS_FILE void synchronize_no_throw() const noexcept
    {
        [[maybe_unused]] const rmm_status_t status =
            rmm_stream_synchronize(rmmc::stream_view(get()).value());
        assert(status == RMM_OK);
    }
};

inline constexpr cuda_stream_view cuda_stream_default{};
static const cuda_stream_view cuda_stream_legacy{cudaStreamLegacy};
static const cuda_stream_view cuda_stream_per_thread{cudaStreamPerThread};

/** Compares the handles: the handle 0 differs from cuda_stream_legacy, as in RMM. */
constexpr bool operator==(cuda_stream_view a, cuda_stream_view b)
{
    return a.value() == b.value();
}
constexpr bool operator!=(cuda_stream_view a, cuda_stream_view b)
{
    return !(a == b);
}
namespace detail
{

/* With what converts both ways: exact, or the comparison is ambiguous. */
template <class T>
using if_stream = std::enable_if_t<
    std::is_same_v<T, cudaStream_t> || std::is_same_v<T, stream_base>, int>;

} /* namespace detail */

template <class T, detail::if_stream<T> = 0>
constexpr bool operator==(cuda_stream_view a, T b)
{
    return a == cuda_stream_view(b);
}
template <class T, detail::if_stream<T> = 0>
constexpr bool operator!=(cuda_stream_view a, T b)
{
    return a != cuda_stream_view(b);
}
template <class T, detail::if_stream<T> = 0>
constexpr bool operator==(T a, cuda_stream_view b)
{
    return cuda_stream_view(a) == b;
}
template <class T, detail::if_stream<T> = 0>
constexpr bool operator!=(T a, cuda_stream_view b)
{
    return cuda_stream_view(a) != b;
}

namespace detail
{
/* What a container says of its stream: before RMM 0.17 the handle. */
#if RMM_COMPAT_CLASSIC && RMM_COMPAT_BEFORE_STREAM_VIEWS
using stream_of_container = cudaStream_t;
#else
using stream_of_container = cuda_stream_view;
#endif
} /* namespace detail */

inline std::ostream &operator<<(std::ostream &out, cuda_stream_view stream)
{
    return out << static_cast<const void *>(stream.value());
}

} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_CUDA_STREAM_VIEW_HPP */
