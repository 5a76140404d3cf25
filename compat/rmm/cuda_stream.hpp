/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cuda_stream.hpp
 *
 * A stream that is owned. It is made by the library, which makes allocations on it cheaper.
 */
#ifndef RMM_COMPAT_CUDA_STREAM_HPP
#define RMM_COMPAT_CUDA_STREAM_HPP

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/stream.h>

namespace RMM_NAMESPACE
{

class cuda_stream
{
  public:
    enum class flags : unsigned int {
        sync_default = 0, /**< waits for the legacy default stream */
        non_blocking = RMM_STREAM_NON_BLOCKING /**< does not */
    };

    cuda_stream(flags kind = flags::sync_default)
    {
        detail::check([&] {
            return rmm_stream_create(static_cast<std::uint32_t>(kind), &stream_);
        });
    }
    cuda_stream(cuda_stream &&other) noexcept
        : stream_(std::exchange(other.stream_, nullptr))
    {
    }
    cuda_stream &operator=(cuda_stream &&other) noexcept
    {
        cuda_stream moved(std::move(other));
        std::swap(stream_, moved.stream_);
        return *this;
    }
    cuda_stream(const cuda_stream &) = delete;
    cuda_stream &operator=(const cuda_stream &) = delete;
    ~cuda_stream()
    {
        if (stream_ != nullptr) {
            (void)rmm_stream_destroy(stream_);
        }
    }

    /** False after a move. */
    [[nodiscard]] bool is_valid() const
    {
        return stream_ != nullptr;
    }
    [[nodiscard]] cudaStream_t value() const
    {
        return detail::native_of(stream_);
    }
    [[nodiscard]] cuda_stream_view view() const
    {
        return cuda_stream_view(stream_);
    }
    explicit operator cudaStream_t() const noexcept
    {
        return detail::native_of(stream_);
    }
    operator cuda_stream_view() const
    {
        return view();
    }
#if RMM_COMPAT_HAS_STREAM_REF
    operator cuda::stream_ref() const noexcept
    {
        return cuda::stream_ref(stream_);
    }
#endif
    void synchronize() const
    {
        view().synchronize();
    }
    void synchronize_no_throw() const noexcept
    {
        view().synchronize_no_throw();
    }

  private:
    rmm_stream_t stream_ = nullptr;
};

} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_CUDA_STREAM_HPP */
