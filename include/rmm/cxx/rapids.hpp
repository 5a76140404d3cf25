/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/cxx/rapids.hpp
 *
 * A bridge into the RMM of RAPIDS that a program has already, for example below libcudf. Needs
 * the headers of RMM 24.12 or newer and its library; both folders are include folders.
 *
 *     rmmc::pool_resource pool{rmmc::cuda_resource()};
 *
 *     static rmmc::rapids_resource mr(pool);               RMM up to 26.04: by pointer
 *     rmm::mr::set_current_device_resource(&mr);
 *
 *     rmm::mr::set_current_device_resource(                RMM 26.06 and newer: by value
 *         rmmc::rapids_resource(pool));
 *
 * from_rapids() is the way back: a resource over one of RMM, as an upstream for example.
 *
 * RMM_CXX_RAPIDS_BY_VALUE is 1 with an RMM whose resources are values (classes that satisfy the
 * concepts of cuda::mr), 0 where they derive from rmm::mr::device_memory_resource.
 *
 * Lifetime: a rapids_resource holds a reference of its resource. RMM 26.06 and newer copy it.
 * RMM before that keeps the pointer: the object has to live while RMM may allocate or free by
 * it. If it ends while it is still RMM's default of its device, that becomes RMM's initial
 * resource again. An object that must outlive every static one is made with new and never
 * deleted.
 *
 * Streams, alignment: as RMM passes them on: before 26.06 each block is aligned to
 * RMM_ALIGN_DEFAULT.
 *
 * Exceptions: rmm::out_of_memory where a resource of this library throws rmmc::out_of_memory,
 * rmm::bad_alloc for any other failure, as RMM's own resources do. An exception of a C++
 * callback, also of an RMM resource below, comes out as it was thrown.
 *
 * Threads: as rmm/resource.h. Cost: one virtual call, or one of cuda::mr, per allocation.
 */
#ifndef RMM_CXX_RAPIDS_HPP
#define RMM_CXX_RAPIDS_HPP

#if !defined(__has_include) || !__has_include(<rmm/error.hpp>)
#error                                                                                 \
    "rmm/cxx/rapids.hpp needs the headers of RAPIDS RMM: add the include folder of librmm"
#include <rmm/needs_rapids_rmm> /* is not there: the compiler stops here */
#endif

#include <rmm/cxx/cccl.hpp> /* first: defines what RMM's headers need of CCCL before 3.1 */

#include <rmm/error.hpp>
#if __has_include(<rmm/mr/device_memory_resource.hpp>)
#define RMM_CXX_RAPIDS_BY_VALUE 0
#include <rmm/cuda_stream_view.hpp>
#include <rmm/mr/device_memory_resource.hpp>
#include <rmm/mr/per_device_resource.hpp>
#elif __has_include(<rmm/mr/device/device_memory_resource.hpp>)
#define RMM_CXX_RAPIDS_BY_VALUE 0
#include <rmm/cuda_stream_view.hpp>
#include <rmm/mr/device/device_memory_resource.hpp>
#include <rmm/mr/device/per_device_resource.hpp>
#else
#define RMM_CXX_RAPIDS_BY_VALUE 1
#include <rmm/resource_ref.hpp>
#endif

#if !RMM_CXX_HAS_CCCL
#error                                                                                 \
    "include rmm/cxx/rapids.hpp before <cuda/memory_resource>, or define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE"
#endif

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include <rmm/cxx/custom.hpp>
#include <rmm/cxx/resource.hpp>

namespace rmmc
{
namespace detail
{

/* RMM's exception of a C function that just failed on this thread. */
[[noreturn]] inline void throw_as_rapids(rmm_status_t status)
{
    if (status == RMM_ERR_OUT_OF_MEMORY) {
        throw rmm::out_of_memory(rmm_last_error_message());
    }
    throw rmm::bad_alloc(rmm_last_error_message());
}

inline void *allocate_for_rapids(
    rmm_resource_t *mr, std::size_t bytes, std::size_t align, stream_view stream)
{
    void *ptr = nullptr;

    call().check(
        rmm_resource_alloc(mr, bytes, align, stream.value(), &ptr), throw_as_rapids);
    return ptr;
}

} /* namespace detail */

#if RMM_CXX_RAPIDS_BY_VALUE

/** A resource of this library that RMM takes. */
class rapids_resource
{
  public:
    /** @throws rmmc::invalid_argument if a device cannot access the memory, or mr is empty */
    explicit rapids_resource(const resource &mr) : mr_(mr)
    {
    }
    /** Adds a reference. */
    explicit rapids_resource(rmm_resource_t *mr) : rapids_resource(resource::share(mr))
    {
    }

    /** The resource that it stands for. */
    const device_resource &get() const noexcept
    {
        return mr_;
    }

    [[nodiscard]] void *allocate(
        cuda::stream_ref stream, std::size_t bytes,
        std::size_t align = RMM_ALIGN_DEFAULT)
    {
        return detail::allocate_for_rapids(mr_.get(), bytes, align, stream);
    }
    void deallocate(
        cuda::stream_ref stream, void *ptr, std::size_t bytes,
        std::size_t align = RMM_ALIGN_DEFAULT) noexcept
    {
        mr_.deallocate(stream, ptr, bytes, align);
    }
    [[nodiscard]] void *
    allocate_sync(std::size_t bytes, std::size_t align = RMM_ALIGN_DEFAULT)
    {
        void *ptr = nullptr;

        detail::call().check(
            rmm_resource_alloc_sync(mr_.get(), bytes, align, &ptr),
            detail::throw_as_rapids);
        return ptr;
    }
    void deallocate_sync(
        void *ptr, std::size_t bytes, std::size_t align = RMM_ALIGN_DEFAULT) noexcept
    {
        mr_.deallocate_sync(ptr, bytes, align);
    }

    /** May each free the other's memory? */
    friend bool operator==(const rapids_resource &a, const rapids_resource &b) noexcept
    {
        return a.mr_ == b.mr_;
    }
    friend bool operator!=(const rapids_resource &a, const rapids_resource &b) noexcept
    {
        return !(a == b);
    }
    friend constexpr void
    get_property(const rapids_resource &, cuda::mr::device_accessible) noexcept
    {
    }

  private:
    device_resource mr_;
};

#else

namespace detail
{

/* The functions that RMM calls. Uses nothing of RMM's defaults, which need the CUDA runtime. */
class rapids_functions : public rmm::mr::device_memory_resource
{
  public:
    explicit rapids_functions(const resource &mr) : mr_(mr)
    {
    }
    const device_resource &get() const noexcept
    {
        return mr_;
    }

  private:
    void *do_allocate(std::size_t bytes, rmm::cuda_stream_view stream) override
    {
        return allocate_for_rapids(mr_.get(), bytes, RMM_ALIGN_DEFAULT, stream);
    }
    void do_deallocate(
        void *ptr, std::size_t bytes, rmm::cuda_stream_view stream) noexcept override
    {
        mr_.deallocate(stream, ptr, bytes);
    }
    bool
    do_is_equal(const rmm::mr::device_memory_resource &other) const noexcept override
    {
        const auto *same = dynamic_cast<const rapids_functions *>(&other);

        return same != nullptr && mr_ == same->mr_;
    }

    device_resource mr_;
};

} /* namespace detail */

/** A resource of this library that RMM takes. */
class rapids_resource : public detail::rapids_functions
{
  public:
    /** @throws rmmc::invalid_argument if a device cannot access the memory, or mr is empty */
    explicit rapids_resource(const resource &mr) : rapids_functions(mr)
    {
        /* RMM's tables exist from here on, so a static object ends before they do. */
        (void)rmm::mr::get_per_device_resource(device());
        (void)rmm::mr::get_per_device_resource_ref(device());
    }
    /** Adds a reference. */
    explicit rapids_resource(rmm_resource_t *mr) : rapids_resource(resource::share(mr))
    {
    }
    rapids_resource(const rapids_resource &) = default;
    rapids_resource &operator=(const rapids_resource &) = default;
    ~rapids_resource() override
    {
        if (rmm::mr::get_per_device_resource(device()) == this) {
            rmm::mr::set_per_device_resource(
                device(), rmm::mr::detail::initial_resource());
        }
    }

    /** The resource that it stands for. */
    using rapids_functions::get;

  private:
    rmm::cuda_device_id device() const noexcept
    {
        return rmm::cuda_device_id(get().device());
    }
};

#endif

/** The same of memory that the host can access too, for RMM's host_device_resource_ref. */
class rapids_host_device_resource : public rapids_resource
{
  public:
    /** @throws rmmc::invalid_argument if one of both cannot access the memory */
    explicit rapids_host_device_resource(const host_device_resource &mr)
        : rapids_resource(mr)
    {
    }
    friend constexpr void get_property(
        const rapids_host_device_resource &, cuda::mr::device_accessible) noexcept
    {
    }
    friend constexpr void get_property(
        const rapids_host_device_resource &, cuda::mr::host_accessible) noexcept
    {
    }
};

namespace detail
{

/* The object that T points to, or T itself. */
template <class T> auto rapids_object(T &memory, int) noexcept -> decltype(*memory) &
{
    return *memory;
}
template <class T> T &rapids_object(T &memory, long) noexcept
{
    return memory;
}

/* In stream order only: RMM before 26.02 does not wait in the functions without a stream. */
template <class T> struct rapids_memory {
    T memory;

    using object_type =
        std::remove_reference_t<decltype(rapids_object(std::declval<T &>(), 0))>;
    using functions = memory_functions<object_type>;

    void *allocate(rmm_stream_t stream, std::size_t bytes, std::size_t align)
    {
        return functions::allocate(rapids_object(memory, 0), bytes, align, stream);
    }
    void
    deallocate(rmm_stream_t stream, void *ptr, std::size_t bytes, std::size_t align)
    {
        functions::deallocate(rapids_object(memory, 0), ptr, bytes, align, stream);
    }
    friend bool operator==(const rapids_memory &a, const rapids_memory &b)
    {
        return rapids_object(a.memory, 0) == rapids_object(b.memory, 0);
    }
    static rmm_status_t exception_status() noexcept
    {
        try {
            throw;
        } catch (const rmm::out_of_memory &) {
            return RMM_ERR_OUT_OF_MEMORY;
        } catch (const rmm::bad_alloc &) {
            return RMM_ERR_BAD_ALLOC;
        } catch (...) {
            return cccl_memory<T>::exception_status();
        }
    }
};

} /* namespace detail */

/**
 * A resource over one of RMM: over a copy of @p memory, a class of RMM 26.06 and newer, an
 * any_resource, or a resource_ref (what it refers to has to live longer).
 */
template <
    class T, class = std::enable_if_t<
                 detail::memory_functions<T>::in_stream_order &&
                 detail::cccl_properties<T> != 0>>
custom_resource<detail::cccl_properties<T>>
from_rapids(T memory, const char *name = "rapids")
{
    return custom_resource<detail::cccl_properties<T>>(
        detail::rapids_memory<T>{std::move(memory)}, name);
}

#if !RMM_CXX_RAPIDS_BY_VALUE
/** The same over one that has to live longer; not NULL. */
inline custom_resource<>
from_rapids(rmm::mr::device_memory_resource *memory, const char *name = "rapids")
{
    return custom_resource<>(
        detail::rapids_memory<rmm::mr::device_memory_resource *>{memory}, name);
}

/** The same over one that the resource keeps alive; not NULL. */
inline custom_resource<> from_rapids(
    std::shared_ptr<rmm::mr::device_memory_resource> memory,
    const char *name = "rapids")
{
    return custom_resource<>(
        detail::rapids_memory<std::shared_ptr<rmm::mr::device_memory_resource>>{
            std::move(memory)},
        name);
}
#endif

} /* namespace rmmc */

#endif /* RMM_CXX_RAPIDS_HPP */
