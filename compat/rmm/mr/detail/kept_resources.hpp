/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/detail/kept_resources.hpp
 *
 * Resources of the library behind objects that hold none: those of the classes without data, one
 * for each device, and a custom resource around an object of the program. For the classes of
 * both interfaces (rmm/detail/era.hpp).
 *
 * Threads: any function, any thread.
 */
#ifndef RMM_COMPAT_MR_DETAIL_KEPT_RESOURCES_HPP
#define RMM_COMPAT_MR_DETAIL_KEPT_RESOURCES_HPP

#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include <rmm/custom_resource.h>
#include <rmm/cxx/custom.hpp>
#include <rmm/cxx/device.hpp>
#include <rmm/cxx/resource.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{
namespace detail
{

using rmm::detail::translated;

/* A custom resource that keeps `object`. Unchecked: results pass through, as in RMM. */
template <class Object> rmmc::resource wrap(Object object, const char *name)
{
    return translated([&] {
        return rmmc::detail::create_custom(
            std::move(object), RMM_DEVICE_ACCESSIBLE, name, RMM_CUSTOM_UNCHECKED);
    });
}

/* Which of the library's resources a class without data stands for. */
enum class stands_for {
    that_of_current_device, /* at the call: memory is freed with the same device current */
    one_for_all_devices     /* host memory, which belongs to no device */
};

/*
 * The library's resources of one kind, for each device. Never destroyed: an object without
 * data holds no reference, and the last one would free what is live.
 */
template <rmm_status_t (*Create)(rmm_resource_t **)> class kept_resources
{
  public:
    static rmmc::resource of(int device)
    {
        static kept_resources *kept = new kept_resources;
        const std::lock_guard<std::mutex> guard(kept->lock_);
        rmmc::resource &mr = kept->by_device_[device];

        if (!mr) {
            mr = rmmc::detail::create(Create);
        }
        return mr;
    }

  private:
    std::mutex lock_; /* protects by_device_ */
    std::map<int, rmmc::resource> by_device_;
};

/* Stands in the library for a resource of another device as a default: requests are refused. */
struct other_device {
    static constexpr const char *name = "other_device";

    void *allocate(rmm_stream_t, std::size_t, std::size_t)
    {
        RMM_FAIL(
            "the default of the current device is a resource of another one: create "
            "one while this device is current, and set that");
    }
    void deallocate(rmm_stream_t, void *, std::size_t, std::size_t)
    {
    }
};

/* What becomes the default of `device`. The library refuses a resource of another one, whose use is
 * undefined in RMM; programs of RMM set one pool for all devices and use it on one. */
inline rmmc::resource default_for(int device, rmmc::resource mr)
{
    const int owner = mr.device();

    return owner == device || owner < 0 ? mr : wrap(other_device(), other_device::name);
}

/* What has no resource of its own uses the default: of another device it is refused here too. */
inline void require_own_default(const rmmc::resource &now)
{
    if (std::strcmp(now.name(), other_device::name) == 0) {
        (void)other_device().allocate(nullptr, 0, 0);
    }
}

/* The resources of a class without data. */
template <rmm_status_t (*Create)(rmm_resource_t **), stands_for Which>
struct resources_of_class {
    /* What an allocation uses now. */
    static rmmc::resource now()
    {
        const bool is_one = Which == stands_for::one_for_all_devices;

        return kept_resources<Create>::of(is_one ? -1 : rmmc::current_device());
    }
    /* The same; empty if the driver fails, as at the end of the process. */
    static rmmc::resource existing() noexcept
    {
        try {
            return now();
        } catch (...) {
            return rmmc::resource();
        }
    }
};

} /* namespace detail */
} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_DETAIL_KEPT_RESOURCES_HPP */
