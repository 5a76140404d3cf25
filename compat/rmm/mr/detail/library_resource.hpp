/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/detail/library_resource.hpp
 *
 * The common part of RMM's resources: a reference of a resource of this library.
 *
 * Lifetime: a copy shares the resource, as RMM's copies do; the last one destroys it, unless
 * an adaptor or a default has a reference too. An adaptor keeps a copy of its upstream.
 *
 * An upstream is any resource. One of these classes is used directly: its library resource
 * becomes the upstream in the library. Any other class of resource is wrapped in a custom
 * resource (rmm/custom_resource.h), which keeps a copy. What it throws comes out at the caller
 * of the resource above it (rmm/cxx/callback.hpp).
 *
 * Threads: any function, any thread, same resource.
 */
#ifndef RMM_COMPAT_MR_DETAIL_LIBRARY_RESOURCE_HPP
#define RMM_COMPAT_MR_DETAIL_LIBRARY_RESOURCE_HPP

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <rmm/aligned.hpp>
#include <rmm/cxx/resource.hpp>
#include <rmm/detail/cccl.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/detail/kept_resources.hpp>
#include <rmm/resource_ref.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{
namespace detail
{

using rmm::detail::any_device_resource;
using rmm::detail::any_resource;
using rmm::detail::device_accessible;
using rmm::detail::host_accessible;
using rmm::detail::resource_cast;
using rmm::detail::stream_ref;
using rmm::detail::translated;

/* A base class of resources, for each property of their memory. */
struct device_memory {
    friend constexpr void
    get_property(const device_memory &, device_accessible) noexcept
    {
    }
};
struct host_memory {
    friend constexpr void get_property(const host_memory &, host_accessible) noexcept
    {
    }
};

class library_resource
{
  public:
    [[nodiscard]] void *allocate(
        stream_ref stream, std::size_t bytes,
        std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT)
    {
        return translated([&] { return mr_.allocate(stream, bytes, alignment); });
    }
    void deallocate(
        stream_ref stream, void *ptr, std::size_t bytes,
        std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT) noexcept
    {
        mr_.deallocate(stream, ptr, bytes, alignment);
    }
    [[nodiscard]] void *
    allocate_sync(std::size_t bytes, std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT)
    {
        return translated([&] { return mr_.allocate_sync(bytes, alignment); });
    }
    void deallocate_sync(
        void *ptr, std::size_t bytes,
        std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT) noexcept
    {
        mr_.deallocate_sync(ptr, bytes, alignment);
    }
    /** May each free the other's memory? */
    friend bool
    operator==(const library_resource &a, const library_resource &b) noexcept
    {
        return a.mr_ == b.mr_;
    }
    friend bool
    operator!=(const library_resource &a, const library_resource &b) noexcept
    {
        return !(a == b);
    }
    /** Not in RMM: the resource of this library. */
    [[nodiscard]] const rmmc::resource &library() const noexcept
    {
        return mr_;
    }

  protected:
    explicit library_resource(rmmc::resource mr) noexcept : mr_(std::move(mr))
    {
    }
    rmmc::resource mr_;
};

/* A resource of the library of which no class of RMM is known. */
class unnamed_resource : public library_resource, public device_memory
{
  public:
    explicit unnamed_resource(rmmc::resource mr) noexcept
        : library_resource(std::move(mr))
    {
    }
};

/* How to find the library's resource in an any_device_resource: a function for each class
 * that is in use in this program. Empty: the object is of another class. */
using unwrap_fn = rmmc::resource (*)(any_device_resource &);

struct unwrap_list {
    std::mutex
        lock; /* protects functions: a library that is loaded later adds its own */
    std::vector<unwrap_fn> functions;
};

RMM_EXPORT inline unwrap_list &unwrap_functions()
{
    static unwrap_list *list =
        new unwrap_list; /* for resources that end after main() */
    return *list;
}

template <class Resource> rmmc::resource unwrap(any_device_resource &upstream)
{
    const Resource *found = resource_cast<Resource>(&upstream);
    return found != nullptr ? found->library() : rmmc::resource();
}

/* Once for each class: inline const bool ... = knows<CLASS>(); */
template <class Resource> bool knows()
{
    unwrap_list &list = unwrap_functions();
    const std::lock_guard<std::mutex> guard(list.lock);

    list.functions.push_back(unwrap<Resource>);
    return true;
}

inline rmmc::resource find_library_resource(any_device_resource &upstream)
{
    unwrap_list &list = unwrap_functions();
    const std::lock_guard<std::mutex> guard(list.lock);
    rmmc::resource found;

    for (unwrap_fn function : list.functions) {
        found = function(upstream);
        if (found) {
            break;
        }
    }
    return found;
}

/* The library's resource for an upstream of any class. */
inline rmmc::resource library_resource_of(any_device_resource upstream)
{
    rmmc::resource found = find_library_resource(upstream);

    return found ? found : wrap(std::move(upstream), "custom");
}

/* A resource over an upstream. */
class resource_over_upstream : public library_resource, public device_memory
{
  public:
    /** Valid as long as this resource or a copy of it. */
    [[nodiscard]] device_async_resource_ref get_upstream_resource() const noexcept
    {
        return device_async_resource_ref(*upstream_);
    }

  protected:
    /* make(upstream) creates the resource in the library. */
    template <class Make>
    resource_over_upstream(any_device_resource &&upstream, Make &&make)
        : library_resource(translated(
              [&]() -> rmmc::resource { return make(library_resource_of(upstream)); })),
          upstream_(std::make_shared<any_device_resource>(std::move(upstream)))
    {
    }

  private:
    std::shared_ptr<any_device_resource> upstream_;
};

/* An adaptor: in this interface nothing more. */
class adaptor_over_upstream : public resource_over_upstream
{
  protected:
    using resource_over_upstream::resource_over_upstream;
};

/* A class without data, for a resource of which the library has one for each device. */
template <
    rmm_status_t (*Create)(rmm_resource_t **),
    stands_for Which = stands_for::that_of_current_device>
class per_device_resource_class
{
  public:
    [[nodiscard]] void *allocate(
        stream_ref stream, std::size_t bytes,
        std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT)
    {
        return translated(
            [&] { return resources::now().allocate(stream, bytes, alignment); });
    }
    void deallocate(
        stream_ref stream, void *ptr, std::size_t bytes,
        std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT) noexcept
    {
        resources::existing().deallocate(stream, ptr, bytes, alignment);
    }
    [[nodiscard]] void *
    allocate_sync(std::size_t bytes, std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT)
    {
        return translated(
            [&] { return resources::now().allocate_sync(bytes, alignment); });
    }
    void deallocate_sync(
        void *ptr, std::size_t bytes,
        std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT) noexcept
    {
        resources::existing().deallocate_sync(ptr, bytes, alignment);
    }
    [[nodiscard]] bool operator==(const per_device_resource_class &) const noexcept
    {
        return true;
    }
    [[nodiscard]] bool operator!=(const per_device_resource_class &) const noexcept
    {
        return false;
    }
    /** Not in RMM: the resource of this library that an allocation would use now. */
    [[nodiscard]] rmmc::resource library() const
    {
        return translated([] { return resources::now(); });
    }

  private:
    using resources = resources_of_class<Create, Which>;
};

} /* namespace detail */
} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_DETAIL_LIBRARY_RESOURCE_HPP */
