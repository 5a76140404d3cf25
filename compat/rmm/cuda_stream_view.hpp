/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cuda_stream_view.hpp
 *
 * A stream that something else owns.
 *
 * The default stream is that of RMM: a cuda_stream_view() holds the handle 0. In a file that
 * is compiled with CUDA_API_PER_THREAD_DEFAULT_STREAM, CUDA takes this handle for the
 * per-thread stream, and so does this header when it passes it on to the library.
 */
#ifndef RMM_COMPAT_CUDA_STREAM_VIEW_HPP
#define RMM_COMPAT_CUDA_STREAM_VIEW_HPP

#include <cassert>
#include <cstddef>
#include <ostream>
#include <type_traits>

#include <rmm/cxx/stream.hpp>
#include <rmm/detail/cuda_api.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#if RMM_COMPAT_HAS_CUDA && __has_include(<cuda/stream_ref>)
#include <cuda/std/version>
#if defined(CCCL_VERSION) && CCCL_VERSION >= 2004000 /* experimental in those before */
#define RMM_COMPAT_HAS_STREAM_REF 1
#include <cuda/stream_ref>
#endif
#endif
#ifndef RMM_COMPAT_HAS_STREAM_REF
#define RMM_COMPAT_HAS_STREAM_REF 0
#endif

namespace RMM_NAMESPACE
{

class cuda_stream_view
{
  public:
    constexpr cuda_stream_view() noexcept = default;
    constexpr cuda_stream_view(cudaStream_t stream) noexcept : stream_(stream)
    {
    }
    cuda_stream_view(int) = delete;
    cuda_stream_view(std::nullptr_t) = delete;

    [[nodiscard]] constexpr cudaStream_t value() const noexcept
    {
        return stream_;
    }
    constexpr operator cudaStream_t() const noexcept
    {
        return stream_;
    }
#if RMM_COMPAT_HAS_STREAM_REF
    cuda_stream_view(cuda::stream_ref stream) noexcept : stream_(stream.get())
    {
    }
    operator cuda::stream_ref() const noexcept
    {
        return cuda::stream_ref(stream_);
    }
#endif

    /** True for the handle 0 too in a file with a default stream for each thread. */
    [[nodiscard]] RMM_CXX_OF_THIS_FILE bool is_per_thread_default() const noexcept
    {
        return rmm_stream_is_per_thread_default(rmmc::stream_view(stream_).value());
    }
    /** True for the legacy default stream. */
    [[nodiscard]] RMM_CXX_OF_THIS_FILE bool is_default() const noexcept
    {
        return rmm_stream_is_default(rmmc::stream_view(stream_).value());
    }
    RMM_CXX_OF_THIS_FILE void synchronize() const
    {
        const rmm_stream_t stream = rmmc::stream_view(stream_).value();
        detail::check([&] { return rmm_stream_synchronize(stream); });
    }
    RMM_CXX_OF_THIS_FILE void synchronize_no_throw() const noexcept
    {
        [[maybe_unused]] const rmm_status_t status =
            rmm_stream_synchronize(rmmc::stream_view(stream_).value());
        assert(status == RMM_OK);
    }

  private:
    cudaStream_t stream_ = nullptr;
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
/* With a handle, which converts both ways: exact, or the comparison is ambiguous. */
template <class T, std::enable_if_t<std::is_same_v<T, cudaStream_t>, int> = 0>
constexpr bool operator==(cuda_stream_view a, T b)
{
    return a.value() == b;
}
template <class T, std::enable_if_t<std::is_same_v<T, cudaStream_t>, int> = 0>
constexpr bool operator!=(cuda_stream_view a, T b)
{
    return a.value() != b;
}
template <class T, std::enable_if_t<std::is_same_v<T, cudaStream_t>, int> = 0>
constexpr bool operator==(T a, cuda_stream_view b)
{
    return a == b.value();
}
template <class T, std::enable_if_t<std::is_same_v<T, cudaStream_t>, int> = 0>
constexpr bool operator!=(T a, cuda_stream_view b)
{
    return a != b.value();
}

inline std::ostream &operator<<(std::ostream &out, cuda_stream_view stream)
{
    return out << static_cast<const void *>(stream.value());
}

} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_CUDA_STREAM_VIEW_HPP */
