/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/detail/library_resource.hpp
 *
 * The common part of RMM's resources: a device_memory_resource over a resource of this library.
 *
 * An upstream is named by its address. One of these classes is used directly: its library resource
 * becomes the upstream in the library, which keeps it alive. Another class is called by a custom
 * resource (object_link.hpp); what it throws comes out at the caller of the resource above it.
 *
 * Threads: any function, any thread, same resource.
 */
#ifndef RMM_COMPAT_MR_DETAIL_LIBRARY_RESOURCE_HPP
#define RMM_COMPAT_MR_DETAIL_LIBRARY_RESOURCE_HPP

#include <cstddef>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <rmm/aligned.hpp>
#include <rmm/cuda_device.hpp>
#include <rmm/cxx/resource.hpp>
#include <rmm/detail/cccl.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/detail/kept_resources.hpp>
#include <rmm/mr/device_memory_resource.hpp>
#include <rmm/resource_ref.hpp>

namespace RMM_NAMESPACE
{
namespace mr
{
namespace detail
{

using rmm::detail::any_device_resource;
using rmm::detail::device_accessible;
using rmm::detail::host_accessible;

/* A base class of resources, for each property of their memory. */
struct device_memory {
};
struct host_memory {
    friend constexpr void get_property(const host_memory &, host_accessible) noexcept
    {
    }
};

/* Does a class over an Upstream have this property from it? They all have device memory's. */
template <class Upstream, class Property>
inline constexpr bool gets_from_upstream =
    !std::is_same<Property, device_accessible>::value &&
    rmm::detail::has_property<Upstream, Property>::value;

class library_resource : public device_memory_resource
{
  public:
    /** Not in RMM: the resource of this library. */
    [[nodiscard]] rmmc::resource library() override
    {
        return mr_;
    }

  protected:
    explicit library_resource(rmmc::resource mr) noexcept : mr_(std::move(mr))
    {
    }
    rmmc::resource mr_;

  private:
    void *do_allocate(std::size_t bytes, cuda_stream_view stream) override
    {
        return translated([&] { return mr_.allocate(stream, bytes); });
    }
    void do_deallocate(void *ptr, std::size_t bytes, cuda_stream_view stream) override
    {
        mr_.deallocate(stream, ptr, bytes);
    }
    [[nodiscard]] bool
    do_is_equal(const device_memory_resource &other) const noexcept override
    {
        const auto *same = dynamic_cast<const library_resource *>(&other);

        return same != nullptr && mr_ == same->mr_;
    }
};

/* A resource of the library of which no class of RMM is known. */
class unnamed_resource : public library_resource
{
  public:
    explicit unnamed_resource(rmmc::resource mr) noexcept
        : library_resource(std::move(mr))
    {
    }
};

/* The library's resource for an upstream of any class. */
inline rmmc::resource library_resource_of(any_device_resource upstream)
{
    device_memory_resource *resource = upstream;

    return resource != nullptr ? resource->library() : wrap(upstream, "custom");
}

/* A resource over an upstream. */
class resource_over_upstream : public library_resource
{
  public:
    [[nodiscard]] device_async_resource_ref get_upstream_resource() const noexcept
    {
        return upstream_;
    }

  protected:
    /* make(upstream) creates the resource in the library. */
    template <class Make>
    resource_over_upstream(any_device_resource &&upstream, Make &&make)
        : library_resource(translated(
              [&]() -> rmmc::resource { return make(library_resource_of(upstream)); })),
          upstream_(upstream)
    {
    }
    template <class Upstream> Upstream *upstream_as() const noexcept
    {
        return dynamic_cast<Upstream *>(
            static_cast<device_memory_resource *>(upstream_));
    }

  private:
    any_device_resource upstream_;
};

/* An adaptor: two of the same class are equal if their upstreams are. */
class adaptor_over_upstream : public resource_over_upstream
{
  public:
    /** As the upstream says. */
    [[nodiscard]] bool supports_streams() const noexcept override
    {
        const auto *upstream = upstream_as<device_memory_resource>();

        return upstream == nullptr || upstream->supports_streams();
    }
    [[nodiscard]] bool supports_get_mem_info() const noexcept override
    {
        const auto *upstream = upstream_as<device_memory_resource>();

        return upstream != nullptr && upstream->supports_get_mem_info();
    }

  protected:
    using resource_over_upstream::resource_over_upstream;

  private:
    [[nodiscard]] std::pair<std::size_t, std::size_t>
    do_get_mem_info(cuda_stream_view stream) const override
    {
        const auto *upstream = upstream_as<device_memory_resource>();

        return upstream != nullptr ? upstream->get_mem_info(stream)
                                   : std::pair<std::size_t, std::size_t>(0, 0);
    }
    [[nodiscard]] bool
    do_is_equal(const device_memory_resource &other) const noexcept override
    {
        return this == &other || (typeid(*this) == typeid(other) &&
                                  get_upstream_resource() ==
                                      static_cast<const adaptor_over_upstream &>(other)
                                          .get_upstream_resource());
    }
};

/* A class without data, for a resource of which the library has one for each device. */
template <
    rmm_status_t (*Create)(rmm_resource_t **),
    stands_for Which = stands_for::that_of_current_device>
class per_device_resource_class : public device_memory_resource
{
  public:
    [[nodiscard]] bool supports_get_mem_info() const noexcept override
    {
        return Which == stands_for::that_of_current_device;
    }
    /** Not in RMM: the resource of this library that an allocation would use now. */
    [[nodiscard]] rmmc::resource library() override
    {
        return translated([] { return resources::now(); });
    }

    /** The driver's functions behind it know no stream. */
    [[nodiscard]] bool supports_streams() const noexcept override
    {
        return false;
    }

  private:
    using resources = resources_of_class<Create, Which>;

    void *do_allocate(std::size_t bytes, cuda_stream_view stream) override
    {
        return translated([&] { return resources::now().allocate(stream, bytes); });
    }
    void do_deallocate(void *ptr, std::size_t bytes, cuda_stream_view stream) override
    {
        resources::existing().deallocate(stream, ptr, bytes);
    }
    [[nodiscard]] bool
    do_is_equal(const device_memory_resource &other) const noexcept override
    {
        return dynamic_cast<const per_device_resource_class *>(&other) != nullptr;
    }
    [[nodiscard]] std::pair<std::size_t, std::size_t>
    do_get_mem_info(cuda_stream_view) const override
    {
        return Which == stands_for::that_of_current_device
                   ? available_device_memory()
                   : std::pair<std::size_t, std::size_t>(0, 0);
    }
};

} /* namespace detail */
} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_DETAIL_LIBRARY_RESOURCE_HPP */
