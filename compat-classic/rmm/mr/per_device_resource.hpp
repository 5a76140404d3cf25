/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/per_device_resource.hpp
 *
 * The default resource of each device, by its address: the library's own (rmm/device_resource.h),
 * so programs in C and Python use the same.
 *
 * Lifetime: the object whose address is set stays the caller's. The library keeps a reference of
 * the resource behind it, so memory is allocated and freed after the object has ended; the address
 * is no longer returned then.
 *
 * Threads: any.
 */
#ifndef RMM_COMPAT_MR_PER_DEVICE_RESOURCE_HPP
#define RMM_COMPAT_MR_PER_DEVICE_RESOURCE_HPP

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <rmm/cuda_device.hpp>
#include <rmm/cxx/device.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/detail/library_resource.hpp>
#include <rmm/mr/device_memory_resource.hpp>
#include <rmm/process_is_exiting.hpp>
#include <rmm/resource_ref.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{

namespace detail
{

RMM_EXPORT inline device_memory_resource *initial_resource()
{
    static auto *initial =
        new cuda_memory_resource; /* for objects that end after main() */
    return initial;
}

/* What the program set, and the library's resource behind it; or an object made here for a default
 * of another language, which stays as long as the process: its address was returned. */
class default_table
{
  public:
    /* The object of a default, which `library` is. */
    device_async_resource_ref name_of(int device, const rmmc::resource &library)
    {
        const std::lock_guard<std::mutex> guard(lock_);
        const std::optional<entry> &set = set_[device];

        if (set.has_value() && set->library.get() == library.get() &&
            !set->has_ended()) {
            return set->reference;
        }
        if (std::strcmp(library.type(), "cuda") == 0) {
            return device_async_resource_ref(initial_resource());
        }
        std::unique_ptr<unnamed_resource> &made = made_[library.get()];
        if (made == nullptr) {
            made = std::make_unique<unnamed_resource>(library);
        }
        return device_async_resource_ref(*made);
    }
    void
    set(int device, const rmmc::resource &library, device_async_resource_ref reference)
    {
        std::optional<entry> next(entry(library, reference));
        const std::lock_guard<std::mutex> guard(lock_);

        std::swap(set_[device], next); /* the previous one ends after the lock */
    }
    void forget(int device)
    {
        std::optional<entry> none;
        const std::lock_guard<std::mutex> guard(lock_);

        std::swap(set_[device], none);
    }

  private:
    struct entry {
        entry(rmmc::resource mr, device_async_resource_ref named)
            : library(std::move(mr)), reference(named)
        {
            device_memory_resource *object = named;

            if (object != nullptr) {
                place = object->place();
            }
        }
        /* Unknown of an object of another class: false. */
        bool has_ended() const
        {
            /* acquire: pairs with ~object_link() */
            return place != nullptr &&
                   place->load(std::memory_order_acquire) == nullptr;
        }

        rmmc::resource library;
        device_async_resource_ref reference;
        object_place<device_memory_resource> place;
    };

    std::mutex lock_; /* protects both maps */
    std::map<int, std::optional<entry>> set_;
    std::map<rmm_resource_t *, std::unique_ptr<unnamed_resource>> made_;
};

RMM_EXPORT inline default_table &defaults()
{
    static auto *table = new default_table; /* for objects that end after main() */
    rmm::detail::watch_for_exit();
    return *table;
}

inline device_async_resource_ref default_of(int device)
{
    return defaults().name_of(
        device, translated([&] { return rmmc::get_per_device_resource(device); }));
}

/* Makes `next` the default, or the initial resource. Returns the previous one. */
inline device_async_resource_ref
exchange_default(int device, std::optional<device_async_resource_ref> next)
{
    const device_async_resource_ref before = default_of(device);
    rmmc::resource library;

    if (next.has_value()) {
        const cuda_set_device_raii scope{cuda_device_id(device)};
        library = default_for(device, library_resource_of(*next));
    }
    (void)translated([&] { return rmmc::set_per_device_resource(device, library); });
    if (next.has_value()) {
        defaults().set(device, library, *next);
    } else {
        defaults().forget(device);
    }
    return before;
}

/* For a container or an allocator. */
inline any_device_resource copy_of_current_default()
{
    const int device = get_current_cuda_device().value();
    const rmmc::resource now =
        translated([&] { return rmmc::get_per_device_resource(device); });

    require_own_default(now);
    return defaults().name_of(device, now);
}

} /* namespace detail */

/** The default of a device; if that is no device_memory_resource but another class of the program,
 * NULL. */
inline device_memory_resource *get_per_device_resource(cuda_device_id device_id)
{
    return detail::default_of(device_id.value());
}
/** @param new_mr NULL for the initial resource: the one of RMM_RESOURCE in the environment, or
 * cuda
 * @return the previous one, as the functions that follow */
inline device_memory_resource *
set_per_device_resource(cuda_device_id device_id, device_memory_resource *new_mr)
{
    std::optional<device_async_resource_ref> next;

    if (new_mr != nullptr) {
        next = device_async_resource_ref(new_mr);
    }
    return detail::exchange_default(device_id.value(), next);
}
inline device_memory_resource *get_current_device_resource()
{
    return get_per_device_resource(get_current_cuda_device());
}
inline device_memory_resource *
set_current_device_resource(device_memory_resource *new_mr)
{
    return set_per_device_resource(get_current_cuda_device(), new_mr);
}

inline device_async_resource_ref get_per_device_resource_ref(cuda_device_id device_id)
{
    return detail::default_of(device_id.value());
}
inline device_async_resource_ref set_per_device_resource_ref(
    cuda_device_id device_id, device_async_resource_ref new_resource_ref)
{
    return detail::exchange_default(device_id.value(), new_resource_ref);
}
inline device_async_resource_ref get_current_device_resource_ref()
{
    return get_per_device_resource_ref(get_current_cuda_device());
}
inline device_async_resource_ref
set_current_device_resource_ref(device_async_resource_ref new_resource_ref)
{
    return set_per_device_resource_ref(get_current_cuda_device(), new_resource_ref);
}
inline device_async_resource_ref reset_per_device_resource_ref(cuda_device_id device_id)
{
    return detail::exchange_default(device_id.value(), std::nullopt);
}
inline device_async_resource_ref reset_current_device_resource_ref()
{
    return reset_per_device_resource_ref(get_current_cuda_device());
}

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_PER_DEVICE_RESOURCE_HPP */
