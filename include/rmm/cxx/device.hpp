/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/device.hpp
 *
 * Devices, their default resources, and copies: the functions of rmm/device.h,
 * rmm/device_resource.h and rmm/memory.h.
 *
 * Lifetime, threads: as those headers. A default that a function returns is the caller's own
 * reference. Exceptions: as rmm/cxx/error.hpp.
 */
#ifndef RMM_CXX_DEVICE_HPP
#define RMM_CXX_DEVICE_HPP

#include <cstddef>

#include <rmm/cxx/resource.hpp>
#include <rmm/cxx/stream.hpp>
#include <rmm/device.h>
#include <rmm/device_resource.h>
#include <rmm/memory.h>

namespace rmmc
{

inline int device_count()
{
    int count = 0;

    detail::call().check(rmm_device_count(&count));
    return count;
}

inline int current_device()
{
    int device = 0;

    detail::call().check(rmm_device_current(&device));
    return device;
}

inline void set_device(int device)
{
    detail::call().check(rmm_device_set(device));
}

inline bool device_supports(int device, rmm_device_ability_t ability)
{
    bool is_supported = false;

    detail::call().check(rmm_device_supports(device, ability, &is_supported));
    return is_supported;
}

/** Another current device until the end of the scope, on the thread that it began on. */
class scoped_device
{
  public:
    /** @param device negative, or the current one: changes nothing */
    explicit scoped_device(int device)
    {
        detail::call().check(rmm_device_scope_enter(device, &scope_));
    }
    scoped_device(const scoped_device &) = delete;
    scoped_device &operator=(const scoped_device &) = delete;
    ~scoped_device()
    {
        rmm_device_scope_leave(&scope_);
    }

  private:
    rmm_device_scope_t scope_{};
};

struct memory_info {
    std::size_t free_bytes, total_bytes;
};

/** The memory of the current device. */
inline memory_info available_device_memory()
{
    memory_info info{};

    detail::call().check(
        rmm_available_device_memory(&info.free_bytes, &info.total_bytes));
    return info;
}

inline std::size_t percent_of_free_device_memory(int percent)
{
    std::size_t bytes = 0;

    detail::call().check(rmm_percent_of_free_device_memory(percent, &bytes));
    return bytes;
}

/** @param device the target, or RMM_DEVICE_HOST */
inline void prefetch(const void *ptr, std::size_t bytes, int device, stream_view stream)
{
    detail::call().check(rmm_prefetch(ptr, bytes, device, stream.value()));
}

inline void
memcpy_async(void *dst, const void *src, std::size_t bytes, stream_view stream)
{
    detail::call().check(rmm_memcpy_async(dst, src, bytes, stream.value()));
}

/** Waits until it is copied. Where it throws, nothing uses host memory any more either. */
inline void memcpy(void *dst, const void *src, std::size_t bytes, stream_view stream)
{
    detail::call().check(rmm_memcpy(dst, src, bytes, stream.value()));
}

inline void memset_async(void *ptr, int value, std::size_t bytes, stream_view stream)
{
    detail::call().check(rmm_memset_async(ptr, value, bytes, stream.value()));
}

/** Work that is queued on @p later from now on runs behind all that is queued on @p earlier, as
 * rmm_stream_order(). A default stream is that of the device before it. */
inline void order_streams(
    int earlier_device, stream_view earlier, int later_device, stream_view later)
{
    detail::call().check(
        rmm_stream_order(earlier_device, earlier.value(), later_device, later.value()));
}

/* --- the default resource of each device --------------------------------------------- */

inline resource get_per_device_resource(int device)
{
    return detail::create(rmm_get_per_device_resource, device);
}

/** @param mr empty: the initial resource. @return the previous default */
inline resource set_per_device_resource(int device, const resource &mr)
{
    return detail::create(rmm_set_per_device_resource, device, mr.get());
}

inline void reset_per_device_resource(int device)
{
    detail::call().check(rmm_reset_per_device_resource(device));
}

inline resource get_current_device_resource()
{
    return detail::create(rmm_get_current_device_resource);
}

/** @param mr empty: the initial resource. @return the previous default */
inline resource set_current_device_resource(const resource &mr)
{
    return detail::create(rmm_set_current_device_resource, mr.get());
}

inline void reset_current_device_resource()
{
    detail::call().check(rmm_reset_current_device_resource());
}

namespace detail
{

/* The device of an object's default stream, around a free, which cannot fail: if the driver
 * refuses, the current device stays. */
class device_of_free
{
  public:
    explicit device_of_free(int device) noexcept
        : is_entered_(rmm_device_scope_enter(device, &scope_) == RMM_OK)
    {
    }
    device_of_free(const device_of_free &) = delete;
    device_of_free &operator=(const device_of_free &) = delete;
    ~device_of_free()
    {
        if (is_entered_) {
            rmm_device_scope_leave(&scope_);
        }
    }

  private:
    rmm_device_scope_t scope_{};
    bool is_entered_;
};

} /* namespace detail */

} /* namespace rmmc */

#endif /* RMM_CXX_DEVICE_HPP */
