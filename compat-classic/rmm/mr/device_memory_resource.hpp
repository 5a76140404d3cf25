/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/device_memory_resource.hpp
 *
 * The base class of resources up to RMM 26.04. A program derives its own from it:
 *
 *     class my_resource : public rmm::mr::device_memory_resource {
 *         void *do_allocate(std::size_t bytes, rmm::cuda_stream_view stream) override;
 *         void do_deallocate(void *ptr, std::size_t bytes, rmm::cuda_stream_view stream) override;
 *     };
 *
 * or, as in RMM 0.15 and 0.16, with a cudaStream_t as the stream. One of the two forms of each
 * function is overridden; without any, a call throws logic_error.
 *
 * Lifetime: the object is the caller's, and only its address is passed on. If it ends while it is
 * still a default or an upstream, requests to that fail with logic_error, and frees do nothing.
 *
 * Threads: as the derived class. Those of these headers: any function, any thread.
 *
 * Alignment: memory is aligned to 256 bytes. What asks for more throws bad_alloc; 0 is the default.
 */
#ifndef RMM_COMPAT_MR_DEVICE_MEMORY_RESOURCE_HPP
#define RMM_COMPAT_MR_DEVICE_MEMORY_RESOURCE_HPP

#include <cstddef>
#include <type_traits>
#include <utility>

#include <rmm/aligned.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/cxx/resource.hpp>
#include <rmm/detail/aligned.hpp> /* for programs: as RMM's */
#include <rmm/detail/cccl.hpp>
#include <rmm/detail/cuda_memory_resource.hpp> /* for programs: as RMM's */
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/mr/detail/object_link.hpp>

/* Compilers warn of a class that overrides one of two functions of a name, as every class here and
 * in the program does. nvcc and clang warn at that class, so they are told for the rest of the file,
 * gcc at the functions of the base. */
#ifdef __NVCC_DIAG_PRAGMA_SUPPORT__
#pragma nv_diag_suppress 611
#endif
#ifdef __clang__
#pragma clang diagnostic ignored "-Woverloaded-virtual"
#elif defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverloaded-virtual"
#endif

namespace RMM_NAMESPACE
{
namespace mr
{

class device_memory_resource
{
  public:
    device_memory_resource() = default;
    /* The link belongs to the object, not to its value. */
    device_memory_resource(const device_memory_resource &) noexcept
    {
    }
    device_memory_resource &operator=(const device_memory_resource &) noexcept
    {
        return *this;
    }
    virtual ~device_memory_resource() = default;

    /** In the order of the stream; without one, of the default stream. */
    void *allocate(std::size_t bytes, cuda_stream_view stream = cuda_stream_view())
    {
        return do_allocate(padded(bytes), stream);
    }
    void deallocate(
        void *ptr, std::size_t bytes, cuda_stream_view stream = cuda_stream_view())
    {
        do_deallocate(ptr, padded(bytes), stream);
    }
    void *allocate(std::size_t bytes, std::size_t alignment)
    {
        return allocate(cuda_stream_view(), bytes, alignment);
    }
    void deallocate(void *ptr, std::size_t bytes, std::size_t alignment)
    {
        deallocate(cuda_stream_view(), ptr, bytes, alignment);
    }
    void *allocate_async(std::size_t bytes, cuda_stream_view stream)
    {
        return do_allocate(padded(bytes), stream);
    }
    void *
    allocate_async(std::size_t bytes, std::size_t alignment, cuda_stream_view stream)
    {
        return allocate(stream, bytes, alignment);
    }
    void deallocate_async(void *ptr, std::size_t bytes, cuda_stream_view stream)
    {
        do_deallocate(ptr, padded(bytes), stream);
    }
    void deallocate_async(
        void *ptr, std::size_t bytes, std::size_t alignment, cuda_stream_view stream)
    {
        deallocate(stream, ptr, bytes, alignment);
    }
    /** The order of the arguments since 25.12. @throws bad_alloc for an alignment above 256 */
    void *allocate(
        cuda_stream_view stream, std::size_t bytes,
        std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT)
    {
        check_alignment(alignment);
        return do_allocate(padded(bytes), stream);
    }
    void deallocate(
        cuda_stream_view stream, void *ptr, std::size_t bytes,
        std::size_t = CUDA_ALLOCATION_ALIGNMENT) noexcept
    {
        do_deallocate(ptr, padded(bytes), stream);
    }
    void *
    allocate_sync(std::size_t bytes, std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT)
    {
        return allocate(cuda_stream_view(), bytes, alignment);
    }
    void deallocate_sync(
        void *ptr, std::size_t bytes,
        std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT) noexcept
    {
        deallocate(cuda_stream_view(), ptr, bytes, alignment);
    }

    /** May each free the other's memory? */
    [[nodiscard]] bool is_equal(const device_memory_resource &other) const noexcept
    {
        return do_is_equal(other);
    }
    [[nodiscard]] bool operator==(const device_memory_resource &other) const noexcept
    {
        return do_is_equal(other);
    }
    [[nodiscard]] bool operator!=(const device_memory_resource &other) const noexcept
    {
        return !do_is_equal(other);
    }

    /** Up to RMM 23.12: true. */
    [[nodiscard]] virtual bool supports_streams() const noexcept
    {
        return true;
    }
    /** Up to RMM 24.02: whether get_mem_info() is more than a pair of zeros. */
    [[nodiscard]] virtual bool supports_get_mem_info() const noexcept
    {
        return false;
    }
    /** Free and total bytes. */
    [[nodiscard]] std::pair<std::size_t, std::size_t>
    get_mem_info(cuda_stream_view stream) const
    {
        return do_get_mem_info(stream);
    }

    friend constexpr void get_property(
        const device_memory_resource &, rmm::detail::device_accessible) noexcept
    {
    }
    /** Not in RMM: the resource of the library that allocates from this one. For an object of the
     * program, a custom resource that calls it. */
    [[nodiscard]] virtual rmmc::resource library()
    {
        return link_.resource_over(*this);
    }
    /** Not in RMM: where this object's address stands until the object ends, then NULL. */
    [[nodiscard]] detail::object_place<device_memory_resource> place()
    {
        return link_.place_of(*this);
    }

  private:
    virtual void *do_allocate(std::size_t bytes, cuda_stream_view stream)
    {
        return do_allocate(bytes, stream.value());
    }
    virtual void *do_allocate(std::size_t, cudaStream_t)
    {
        RMM_FAIL("the class does not override do_allocate()");
    }
    virtual void do_deallocate(void *ptr, std::size_t bytes, cuda_stream_view stream)
    {
        do_deallocate(ptr, bytes, stream.value());
    }
    virtual void do_deallocate(void *, std::size_t, cudaStream_t)
    {
        RMM_FAIL("the class does not override do_deallocate()");
    }
    [[nodiscard]] virtual bool
    do_is_equal(const device_memory_resource &other) const noexcept
    {
        return this == &other;
    }
    [[nodiscard]] virtual std::pair<std::size_t, std::size_t>
    do_get_mem_info(cuda_stream_view stream) const
    {
        return do_get_mem_info(stream.value());
    }
    [[nodiscard]] virtual std::pair<std::size_t, std::size_t>
    do_get_mem_info(cudaStream_t) const
    {
        return {0, 0};
    }

    static constexpr std::size_t padded(std::size_t bytes) noexcept
    {
        const bool is_padded = RMM_COMPAT_HAS_PADDING && bytes <= std::size_t(0) - 8;

        return is_padded ? align_up(bytes, 8) : bytes;
    }
    static void check_alignment(std::size_t alignment)
    {
        RMM_COMPAT_EXPECTS(
            alignment == 0 || (is_supported_alignment(alignment) &&
                               alignment <= CUDA_ALLOCATION_ALIGNMENT),
            "the alignment is no power of two up to 256", bad_alloc);
    }

    detail::object_link<device_memory_resource> link_;
};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

} /* namespace mr */

namespace detail
{

/* A reference names all classes of the hierarchy by their base. */
template <class T>
struct named_as<
    T, std::enable_if_t<std::is_base_of<mr::device_memory_resource, T>::value>> {
    using type = mr::device_memory_resource;
};

} /* namespace detail */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_DEVICE_MEMORY_RESOURCE_HPP */
