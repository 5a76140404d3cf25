/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/per_device_resource.hpp
 *
 * The default resource of each device: the library's own (rmm/device_resource.h), so programs in
 * C and Python use the same.
 *
 * A default belongs to its device: what allocates on the current device (cuda_memory_resource, a
 * class of the program) is used with that device current. A resource that was created on another
 * one, or an adaptor over it, may be set, as in RMM, and its use there throws rmm::logic_error.
 *
 * A reference is valid until the default of its device is changed. Threads: any.
 */
#ifndef RMM_COMPAT_MR_PER_DEVICE_RESOURCE_HPP
#define RMM_COMPAT_MR_PER_DEVICE_RESOURCE_HPP

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <rmm/cuda_device.hpp>
#include <rmm/cxx/device.hpp>
#include <rmm/detail/era.hpp>
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

/* The object that references of a default name, and the library's resource it stands for. The
 * object is shared with the threads that copy it, and not changed. */
struct default_resource {
    rmmc::resource library;
    std::shared_ptr<any_device_resource> object;
    std::uint64_t uses = 0; /* calls that got the object */

    bool is_for(const rmmc::resource &mr) const
    {
        return object != nullptr && library.get() == mr.get();
    }
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

/*
 * Makes `next` the default, or the initial resource. Returns a copy of the previous one.
 * Nothing of the program runs under the lock: what an entry held ends after it. Of two calls at
 * once the entry may be that of the one that the library forgot; then the next get makes it
 * anew.
 */
inline any_device_resource
exchange_default(int device, std::optional<any_device_resource> next)
{
    default_resource entry;

    if (next.has_value()) {
        (void)translated(
            [&] { return rmmc::get_per_device_resource(device); }); /* is one */
        const cuda_set_device_raii scope{cuda_device_id(device)};
        entry.library = default_for(device, library_resource_of(*next));
        entry.object = std::make_shared<any_device_resource>(std::move(*next));
    }
    const rmmc::resource before = translated(
        [&] { return rmmc::set_per_device_resource(device, entry.library); });
    {
        const std::lock_guard<std::mutex> guard(ref_map_lock());
        std::swap(get_ref_map()[device], entry);
    }
    return entry.is_for(before) ? *entry.object : object_of(before);
}

/* The object for `now`, or nullptr and a copy of what is there. */
inline std::shared_ptr<any_device_resource>
find_default(int device, const rmmc::resource &now, default_resource &there)
{
    const std::lock_guard<std::mutex> guard(ref_map_lock());
    default_resource &entry = get_ref_map()[device];

    if (!entry.is_for(now)) {
        there = entry;
        return nullptr;
    }
    entry.uses++;
    return entry.object;
}

/* A new object for `now`, or nullptr if the entry is not `seen` any more or was used since. */
inline std::shared_ptr<any_device_resource>
renew_default(int device, const rmmc::resource &now, const default_resource &seen)
{
    default_resource entry; /* its resources end after the lock */

    entry.library = now;
    entry.object = std::make_shared<any_device_resource>(object_of(now));
    const std::shared_ptr<any_device_resource> object = entry.object;
    const std::lock_guard<std::mutex> guard(ref_map_lock());
    default_resource &there = get_ref_map()[device];

    if (there.object != seen.object || there.uses != seen.uses) {
        return nullptr;
    }
    std::swap(there, entry);
    return object;
}

/* A look at the library's table may create the initial resource, which calls functions of the
 * program: so not under the lock. What it saw may be forgotten by then. An entry is replaced only
 * if a look that followed saw another default, and no call got the entry's object since. `now`
 * receives the library's resource of the object. */
inline std::shared_ptr<any_device_resource> default_of(int device, rmmc::resource &now)
{
    const auto look = [&] { return rmmc::get_per_device_resource(device); };
    std::shared_ptr<any_device_resource> object;

    while (object == nullptr) {
        default_resource seen;

        now = translated(look);
        object = find_default(device, now, seen);
        if (object == nullptr) {
            now = translated(look);
            object = seen.is_for(now) ? nullptr : renew_default(device, now, seen);
        }
    }
    return object;
}

/* For a container or an allocator: another thread may change the default meanwhile. */
inline any_device_resource copy_of_current_default()
{
    rmmc::resource now;
    const std::shared_ptr<any_device_resource> object =
        default_of(get_current_cuda_device().value(), now);

    require_own_default(now);
    return *object;
}

} /* namespace detail */

/** Valid until the default of the device changes, here or in C. */
inline device_async_resource_ref get_per_device_resource_ref(cuda_device_id device_id)
{
    rmmc::resource now;

    return device_async_resource_ref(*detail::default_of(device_id.value(), now));
}

/** @return a copy of the previous default, as the three that follow */
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

/* Their names until RMM 26.06. */
inline detail::any_device_resource set_per_device_resource_ref(
    cuda_device_id device_id, device_async_resource_ref new_resource)
{
    return set_per_device_resource(device_id, new_resource);
}
inline detail::any_device_resource
set_current_device_resource_ref(device_async_resource_ref new_resource)
{
    return set_current_device_resource(new_resource);
}
inline detail::any_device_resource
reset_per_device_resource_ref(cuda_device_id device_id)
{
    return reset_per_device_resource(device_id);
}
inline detail::any_device_resource reset_current_device_resource_ref()
{
    return reset_current_device_resource();
}

namespace detail
{
RMM_COMPAT_IS_KNOWN(unnamed_resource)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_PER_DEVICE_RESOURCE_HPP */
