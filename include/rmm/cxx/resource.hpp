/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/resource.hpp
 *
 * A resource as a value: a pointer that owns one reference of the C object. Every class of
 * resource (rmm/cxx/resources.hpp, rmm/cxx/adaptors.hpp) derives from it and adds
 * functions, but no data: converting to `resource` loses nothing.
 *
 * Lifetime: a copy adds a reference, a move takes it over, the last end destroys the
 * resource. An adaptor, a container and a default keep references of their own, so the
 * order in which objects end does not matter. Values may end after main().
 *
 * Empty: `resource()`, and a resource that was moved from. It may be assigned to, compared
 * and destroyed; an allocation from it throws invalid_argument.
 *
 * Threads: one resource may be used, and different values of it copied and ended, on any
 * threads. One value is as a std::shared_ptr: a thread that changes it needs it alone.
 *
 * Exceptions: those of rmm/cxx/error.hpp, and what callbacks throw (rmm/cxx/callback.hpp).
 * Frees do not throw.
 *
 * CCCL: the functions have the shapes of CCCL's memory resources, old and new, and take
 * cuda::stream_ref as a stream. rmm/cxx/cccl.hpp adds the properties.
 */
#ifndef RMM_CXX_RESOURCE_HPP
#define RMM_CXX_RESOURCE_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include <rmm/cxx/callback.hpp>
#include <rmm/cxx/stream.hpp>
#include <rmm/resource.h>

namespace rmmc
{

/** Statistics of a resource. A value-initialised one is ready for the C functions. */
struct stats : rmm_stats_t {
    stats() noexcept : rmm_stats_t()
    {
        struct_size = sizeof(rmm_stats_t);
    }
    /** The current figures as signed numbers: in scopes of rmm/statistics_adaptor.h they may be
     * negative. */
    std::int64_t bytes_difference() const noexcept
    {
        return static_cast<std::int64_t>(current_bytes);
    }
    std::int64_t count_difference() const noexcept
    {
        return static_cast<std::int64_t>(current_count);
    }
};

/** The options of a C function, all defaults: as with its _INIT macro. */
template <class Options> struct with_defaults : Options {
    with_defaults() noexcept : Options()
    {
        this->struct_size = sizeof(Options);
    }
};

class resource
{
  public:
    /** Empty. */
    resource() noexcept = default;
    /** Take over the caller's reference. NULL makes an empty one. */
    static resource adopt(rmm_resource_t *mr) noexcept
    {
        resource adopted;
        adopted.mr_ = mr;
        return adopted;
    }
    /** Add a reference. NULL makes an empty one. */
    static resource share(rmm_resource_t *mr) noexcept
    {
        return adopt(mr != nullptr ? rmm_resource_retain(mr) : nullptr);
    }
    resource(const resource &other) noexcept : resource(share(other.mr_))
    {
    }
    resource(resource &&other) noexcept : mr_(std::exchange(other.mr_, nullptr))
    {
    }
    resource &operator=(const resource &other) noexcept
    {
        resource(other).swap(*this);
        return *this;
    }
    resource &operator=(resource &&other) noexcept
    {
        resource(std::move(other)).swap(*this);
        return *this;
    }
    ~resource()
    {
        rmm_resource_release(mr_);
    }
    void swap(resource &other) noexcept
    {
        std::swap(mr_, other.mr_);
    }

    /** The C object, borrowed. */
    rmm_resource_t *get() const noexcept
    {
        return mr_;
    }
    /** Give the reference to the caller; this value is empty then. */
    rmm_resource_t *release() noexcept
    {
        return std::exchange(mr_, nullptr);
    }
    explicit operator bool() const noexcept
    {
        return mr_ != nullptr;
    }

    /** As rmm_resource_alloc(): usable in the order of @p stream. */
    [[nodiscard]] void *allocate(
        stream_view stream, std::size_t bytes,
        std::size_t align = RMM_ALIGN_DEFAULT) const
    {
        void *ptr = nullptr;
        detail::call().check(
            rmm_resource_alloc(mr_, bytes, align, stream.value(), &ptr));
        return ptr;
    }
    /** As rmm_resource_dealloc(): with the size and alignment of the allocation. */
    void deallocate(
        stream_view stream, void *ptr, std::size_t bytes,
        std::size_t align = RMM_ALIGN_DEFAULT) const noexcept
    {
        if (mr_ != nullptr) {
            rmm_resource_dealloc(mr_, ptr, bytes, align, stream.value());
        }
    }
    /** As rmm_resource_alloc_sync(): usable on any stream at once. */
    [[nodiscard]] void *
    allocate_sync(std::size_t bytes, std::size_t align = RMM_ALIGN_DEFAULT) const
    {
        void *ptr = nullptr;
        detail::call().check(rmm_resource_alloc_sync(mr_, bytes, align, &ptr));
        return ptr;
    }
    void deallocate_sync(
        void *ptr, std::size_t bytes,
        std::size_t align = RMM_ALIGN_DEFAULT) const noexcept
    {
        if (mr_ != nullptr) {
            rmm_resource_dealloc_sync(mr_, ptr, bytes, align);
        }
    }

    /* The shape of CCCL before 3.1: those without a stream wait. A template, so that
     * allocate({}, bytes) is that of the default stream. */
    template <class Size, class = std::enable_if_t<std::is_integral<Size>::value>>
    [[nodiscard]] void *allocate(Size bytes, std::size_t align) const
    {
        return allocate_sync(static_cast<std::size_t>(bytes), align);
    }
    void deallocate(void *ptr, std::size_t bytes, std::size_t align) const noexcept
    {
        deallocate_sync(ptr, bytes, align);
    }
    [[nodiscard]] void *
    allocate_async(std::size_t bytes, std::size_t align, stream_view stream) const
    {
        return allocate(stream, bytes, align);
    }
    [[nodiscard]] void *allocate_async(std::size_t bytes, stream_view stream) const
    {
        return allocate(stream, bytes);
    }
    void deallocate_async(
        void *ptr, std::size_t bytes, std::size_t align,
        stream_view stream) const noexcept
    {
        deallocate(stream, ptr, bytes, align);
    }
    void
    deallocate_async(void *ptr, std::size_t bytes, stream_view stream) const noexcept
    {
        deallocate(stream, ptr, bytes);
    }

    /** The type, for example "pool"; "" if this is empty. */
    const char *type() const noexcept
    {
        return mr_ != nullptr ? rmm_resource_type(mr_) : "";
    }
    /** The name shown in /rmm; "" if this is empty. Lives as long as the resource. */
    const char *name() const noexcept
    {
        return mr_ != nullptr ? rmm_resource_name(mr_) : "";
    }
    /** Where it allocates from; empty for a base resource. */
    resource upstream() const noexcept
    {
        return share(mr_ != nullptr ? rmm_resource_upstream(mr_) : nullptr);
    }
    /** RMM_DEVICE_ACCESSIBLE, RMM_HOST_ACCESSIBLE or both; 0 if this is empty. */
    std::uint32_t properties() const noexcept
    {
        return mr_ != nullptr ? rmm_resource_properties(mr_) : 0;
    }
    /** The CUDA ordinal of its device; -1: none. */
    int device() const noexcept
    {
        return mr_ != nullptr ? rmm_resource_device(mr_) : -1;
    }
    stats get_stats() const
    {
        stats figures;
        detail::call().check(rmm_resource_get_stats(mr_, &figures));
        return figures;
    }
    /** As rmm_resource_trim(). @throws unsupported where it cannot return memory */
    void trim(std::size_t keep_bytes = 0) const
    {
        detail::call().check(rmm_resource_trim(mr_, keep_bytes));
    }
    /** A pointer of the program's own: as rmm_resource_set_user_data(). */
    void set_user_data(void *data) const noexcept
    {
        if (mr_ != nullptr) {
            rmm_resource_set_user_data(mr_, data);
        }
    }
    void *get_user_data() const noexcept
    {
        return mr_ != nullptr ? rmm_resource_get_user_data(mr_) : nullptr;
    }

    /** May each free the other's memory? Two empty ones are equal. */
    friend bool operator==(const resource &a, const resource &b) noexcept
    {
        return a.mr_ == b.mr_ || (a.mr_ != nullptr && b.mr_ != nullptr &&
                                  rmm_resource_is_equal(a.mr_, b.mr_));
    }
    friend bool operator!=(const resource &a, const resource &b) noexcept
    {
        return !(a == b);
    }

  private:
    rmm_resource_t *mr_ = nullptr;
};

/**
 * A resource whose memory is known to have these RMM_*_ACCESSIBLE properties. The check is at
 * the conversion from a `resource`; classes of resources that always have them derive from
 * this one. It converts to those with fewer properties.
 */
template <std::uint32_t Properties> class resource_with : public resource
{
    static_assert(
        (Properties & ~(RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE)) == 0,
        "Properties are RMM_DEVICE_ACCESSIBLE, RMM_HOST_ACCESSIBLE or both");

  public:
    static constexpr std::uint32_t required_properties = Properties;

    /** @throws invalid_argument if a property is missing, or mr is empty */
    explicit resource_with(resource mr) : resource(checked(std::move(mr)))
    {
    }
    template <
        std::uint32_t More,
        class =
            std::enable_if_t<More != Properties && (More & Properties) == Properties>>
    resource_with(const resource_with<More> &other) noexcept : resource(other)
    {
    }

  private:
    static resource checked(resource &&mr)
    {
        if (!mr || (mr.properties() & Properties) != Properties) {
            throw_status(
                RMM_ERR_INVALID_ARGUMENT, 0,
                !mr ? "the resource is empty"
                    : "the resource's memory is not accessible from where it should "
                      "be");
        }
        return std::move(mr);
    }
};

using device_resource = resource_with<RMM_DEVICE_ACCESSIBLE>;
using host_accessible_resource = resource_with<RMM_HOST_ACCESSIBLE>;
using host_device_resource = resource_with<RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE>;

namespace detail
{

/* Marks the constructor that makes a resource one of its class without creating another. */
struct as_is {
};

/* Calls a creator of the C library, which writes a reference on success only. */
template <class Function, class... Arguments>
resource create(Function function, Arguments... arguments)
{
    rmm_resource_t *mr = nullptr;

    call().check(function(arguments..., &mr));
    return resource::adopt(mr);
}

/* Calls a getter of the C library, which writes a T. */
template <class T, class Function> T figure_of(Function function, const resource &mr)
{
    T figure{};

    call().check(function(mr.get(), &figure));
    return figure;
}

} /* namespace detail */

/**
 * The resource as one of class @p Resource, with its functions, if it is one:
 *
 *     if (auto pool = rmmc::resource_cast<rmmc::pool_resource>(mr)) { ... }
 */
template <class Resource> std::optional<Resource> resource_cast(const resource &mr)
{
    constexpr std::uint32_t required = Resource::required_properties;

    if (std::strcmp(mr.type(), Resource::type_name) != 0 ||
        (mr.properties() & required) != required) {
        return std::nullopt;
    }
    return Resource(detail::as_is(), mr);
}

} /* namespace rmmc */

#endif /* RMM_CXX_RESOURCE_HPP */
