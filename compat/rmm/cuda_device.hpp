/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cuda_device.hpp
 *
 * Devices, and the calling thread's current one. @throws rmm::cuda_error if there is no
 * usable GPU.
 */
#ifndef RMM_COMPAT_CUDA_DEVICE_HPP
#define RMM_COMPAT_CUDA_DEVICE_HPP

#include <cstddef>
#include <utility>

#include <rmm/aligned.hpp>
#include <rmm/cxx/device.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/device.h>

namespace RMM_NAMESPACE
{

struct cuda_device_id {
    using value_type = int;

    /** The current device. Without a usable GPU: 0. */
    cuda_device_id() noexcept
    {
        if (rmm_device_current(&id_) != RMM_OK) {
            id_ = 0;
        }
    }
    explicit constexpr cuda_device_id(value_type id) noexcept : id_(id)
    {
    }
    [[nodiscard]] constexpr value_type value() const noexcept
    {
        return id_;
    }
    [[nodiscard]] friend constexpr bool
    operator==(const cuda_device_id &a, const cuda_device_id &b) noexcept
    {
        return a.id_ == b.id_;
    }
    [[nodiscard]] friend constexpr bool
    operator!=(const cuda_device_id &a, const cuda_device_id &b) noexcept
    {
        return a.id_ != b.id_;
    }

  private:
    value_type id_ = 0;
};

inline cuda_device_id get_current_cuda_device()
{
    int device = 0;

    detail::check([&] { return rmm_device_current(&device); });
    return cuda_device_id(device);
}

inline int get_num_cuda_devices()
{
    int count = 0;

    detail::check([&] { return rmm_device_count(&count); });
    return count;
}

/** The current device's free memory, and all its memory. */
inline std::pair<std::size_t, std::size_t> available_device_memory()
{
    std::size_t free_bytes = 0, total_bytes = 0;

    detail::check(
        [&] { return rmm_available_device_memory(&free_bytes, &total_bytes); });
    return {free_bytes, total_bytes};
}

/** Rounded down to a multiple of 256. */
inline std::size_t percent_of_free_device_memory(int percent)
{
    std::size_t bytes = 0;

    detail::check([&] { return rmm_percent_of_free_device_memory(percent, &bytes); });
    return bytes;
}

/** Another current device until the end of the scope. A negative one changes nothing. */
struct cuda_set_device_raii {
    explicit cuda_set_device_raii(cuda_device_id device)
    {
        detail::check([&] { return rmm_device_scope_enter(device.value(), &scope_); });
    }
    cuda_set_device_raii(const cuda_set_device_raii &) = delete;
    cuda_set_device_raii &operator=(const cuda_set_device_raii &) = delete;
    ~cuda_set_device_raii() noexcept
    {
        rmm_device_scope_leave(&scope_);
    }

  private:
    rmm_device_scope_t scope_{};
};

namespace detail
{

/* The same around a free, which cannot fail. */
using device_of_free = rmmc::detail::device_of_free;

#if RMM_COMPAT_CLASSIC
using rmm::available_device_memory;    /* its place until RMM 24.02 */
inline cuda_device_id current_device() /* its name until RMM 23.02 */
{
    return get_current_cuda_device();
}
#endif

} /* namespace detail */

} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_CUDA_DEVICE_HPP */
