/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cuda_stream_pool.hpp
 *
 * A fixed number of streams, used in turn.
 */
#ifndef RMM_COMPAT_CUDA_STREAM_POOL_HPP
#define RMM_COMPAT_CUDA_STREAM_POOL_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <rmm/cuda_stream.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/stream_pool.h>

namespace RMM_NAMESPACE
{

class cuda_stream_pool
{
  public:
    static constexpr std::size_t default_size = RMM_STREAM_POOL_DEFAULT_COUNT;

    /** @throws logic_error if pool_size is 0 */
    explicit cuda_stream_pool(
        std::size_t pool_size = default_size,
        cuda_stream::flags flags = cuda_stream::flags::sync_default)
    {
        detail::check([&] {
            return rmm_stream_pool_create(
                pool_size, static_cast<std::uint32_t>(flags), &pool_);
        });
    }
    cuda_stream_pool(const cuda_stream_pool &) = delete;
    cuda_stream_pool &operator=(const cuda_stream_pool &) = delete;
    ~cuda_stream_pool()
    {
        rmm_stream_pool_destroy(pool_);
    }

    cuda_stream_view get_stream() const noexcept
    {
        return cuda_stream_view(rmm_stream_pool_get(pool_));
    }
    /** The stream with this number modulo the size. */
    cuda_stream_view get_stream(std::size_t stream_id) const
    {
        return cuda_stream_view(rmm_stream_pool_get_at(pool_, stream_id));
    }
    std::size_t get_pool_size() const noexcept
    {
        return rmm_stream_pool_size(pool_);
    }

  private:
    rmm_stream_pool_t *pool_ = nullptr;
};

} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_CUDA_STREAM_POOL_HPP */
