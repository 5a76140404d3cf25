/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/per_device_resource.hpp
 *
 * The default resource of each device: the library's own (rmm/device_resource.h), so programs in
 * C and Python use the same.
 *
 * A reference is valid until the default of its device is changed. Threads: any.
 */
#ifndef RMM_COMPAT_MR_PER_DEVICE_RESOURCE_HPP
#define RMM_COMPAT_MR_PER_DEVICE_RESOURCE_HPP

#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <rmm/cuda_device.hpp>
#include <rmm/cxx/device.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/detail/library_resource.hpp>
#include <rmm/process_is_exiting.hpp>
#include <rmm/resource_ref.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

namespace detail
{

/* The object that references of a default name, and the library's resource it stands for. */
struct default_resource {
    rmmc::resource library;
    std::optional<any_device_resource> object;
};

using default_map = std::map<int, default_resource>;

RMM_EXPORT inline cuda_memory_resource &initial_resource()
{
    static cuda_memory_resource initial;
    return initial;
}

RMM_EXPORT inline std::mutex &ref_map_lock()
{
    static std::mutex *lock = new std::mutex; /* for objects that end after main() */
    return *lock;
}

/* Under ref_map_lock(). */
RMM_EXPORT inline default_map &get_ref_map()
{
    static default_map *map = new default_map;
    rmm::detail::watch_for_exit();
    return *map;
}

/* An object of RMM's for a resource of the library. */
inline any_device_resource object_of(const rmmc::resource &mr)
{
    if (std::strcmp(mr.type(), "cuda") == 0) {
        return any_device_resource(initial_resource());
    }
    return any_device_resource(unnamed_resource(mr));
}

/* The device's entry, made anew if somebody has set another default in C. Under the lock. */
inline default_resource &entry_of(int device, const rmmc::resource &now)
{
    default_resource &entry = get_ref_map()[device];

    if (!entry.object.has_value() || entry.library.get() != now.get()) {
        entry = {now, object_of(now)};
    }
    return entry;
}

/* Makes `next` the default, or the initial resource. Returns the previous default. */
inline any_device_resource
exchange_default(int device, std::optional<any_device_resource> next)
{
    const rmmc::resource library =
        next.has_value() ? library_resource_of(*next) : rmmc::resource();
    const std::lock_guard<std::mutex> guard(ref_map_lock());
    const rmmc::resource before =
        translated([&] { return rmmc::set_per_device_resource(device, library); });
    default_resource &entry = entry_of(device, before);
    any_device_resource previous = std::move(*entry.object);

    if (next.has_value()) {
        entry = {library, std::move(next)};
    } else {
        entry = {rmmc::resource(), std::nullopt};
    }
    return previous;
}

} /* namespace detail */

inline device_async_resource_ref get_per_device_resource_ref(cuda_device_id device_id)
{
    const rmmc::resource now = detail::translated(
        [&] { return rmmc::get_per_device_resource(device_id.value()); });
    const std::lock_guard<std::mutex> guard(detail::ref_map_lock());

    return device_async_resource_ref(*detail::entry_of(device_id.value(), now).object);
}

/** @return the previous default, as the three that follow */
inline detail::any_device_resource set_per_device_resource(
    cuda_device_id device_id, detail::any_device_resource new_resource)
{
    return detail::exchange_default(device_id.value(), std::move(new_resource));
}

/** Back to the initial resource: the one of RMM_RESOURCE in the environment, or cuda. */
inline detail::any_device_resource reset_per_device_resource(cuda_device_id device_id)
{
    return detail::exchange_default(device_id.value(), std::nullopt);
}

inline device_async_resource_ref get_current_device_resource_ref()
{
    return get_per_device_resource_ref(get_current_cuda_device());
}

inline detail::any_device_resource
set_current_device_resource(detail::any_device_resource new_resource)
{
    return set_per_device_resource(get_current_cuda_device(), std::move(new_resource));
}

inline detail::any_device_resource reset_current_device_resource()
{
    return reset_per_device_resource(get_current_cuda_device());
}

namespace detail
{
inline const bool unnamed_resource_is_known = knows<unnamed_resource>();
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_PER_DEVICE_RESOURCE_HPP */
