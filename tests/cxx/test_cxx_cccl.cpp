/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources as CCCL's memory resources, and CCCL's as ours, with the CCCL of the CUDA toolkit or
 * of RMM_CCCL_INCLUDE. Names changed in CCCL 3.1; any_resource and cuda::buffer came with 3.2.
 */
#define RMM_CXX_MAIN
#include "cxx/harness.hpp"

#if !RMM_CXX_HAS_CCCL
#error "rmm/rmm.hpp did not find CCCL"
#endif

#ifndef CCCL_VERSION /* in CUDA 12.3 */
#define CCCL_VERSION RMM_CXX_CCCL_VERSION
#endif
#if CCCL_VERSION >= 3004000
#include <cuda/buffer>
#endif

namespace
{

using device = cuda::mr::device_accessible;
using host = cuda::mr::host_accessible;

#if CCCL_VERSION >= 3001000
template <class T>
constexpr bool is_resource = cuda::mr::resource<T> &&cuda::mr::synchronous_resource<T>;
template <class T, class... Properties>
constexpr bool has = cuda::mr::resource_with<T, Properties...>
    &&cuda::mr::synchronous_resource_with<T, Properties...>;
using device_ref = cuda::mr::resource_ref<device>;

void *allocate(device_ref mr, std::size_t bytes, rmm_stream_t stream)
{
    return mr.allocate(cuda::stream_ref{stream}, bytes, 256);
}
void deallocate(device_ref mr, void *ptr, std::size_t bytes, rmm_stream_t stream)
{
    mr.deallocate(cuda::stream_ref{stream}, ptr, bytes, 256);
}
#else
template <class T>
constexpr bool is_resource = cuda::mr::resource<T> &&cuda::mr::async_resource<T>;
template <class T, class... Properties>
constexpr bool has = cuda::mr::resource_with<T, Properties...>
    &&cuda::mr::async_resource_with<T, Properties...>;
using device_ref = cuda::mr::async_resource_ref<device>;

void *allocate(device_ref mr, std::size_t bytes, rmm_stream_t stream)
{
    return mr.allocate_async(bytes, 256, cuda::stream_ref{stream});
}
void deallocate(device_ref mr, void *ptr, std::size_t bytes, rmm_stream_t stream)
{
    mr.deallocate_async(ptr, bytes, 256, cuda::stream_ref{stream});
}
#endif

template <class T>
constexpr bool is_of_device = is_resource<T> &&has<T, device> && !has<T, host>;
template <class T> constexpr bool is_of_both = is_resource<T> &&has<T, device, host>;

static_assert(is_resource<rmmc::resource> && !has<rmmc::resource, device>, "");
static_assert(is_resource<rmmc::host_resource> && has<rmmc::host_resource, host>, "");
static_assert(!has<rmmc::host_resource, device>, "");
static_assert(is_of_device<rmmc::device_resource>, "");
static_assert(is_of_device<rmmc::cuda_resource>, "");
static_assert(is_of_device<rmmc::pool_resource>, "");
static_assert(is_of_device<rmmc::arena_resource>, "");
static_assert(is_of_device<rmmc::fixed_size_resource>, "");
static_assert(is_of_device<rmmc::binning_resource>, "");
static_assert(is_of_device<rmmc::async_resource>, "");
static_assert(is_of_device<rmmc::async_view_resource>, "");
static_assert(is_of_device<rmmc::custom_resource<>>, "");
static_assert(is_of_device<rmmc::callback_resource<>>, "");
static_assert(is_of_device<rmmc::aligned_adaptor<>>, "");
static_assert(is_of_device<rmmc::failure_callback_adaptor<>>, "");
static_assert(is_of_device<rmmc::fallback_adaptor<>>, "");
static_assert(is_of_device<rmmc::limiting_adaptor<>>, "");
static_assert(is_of_device<rmmc::logging_adaptor<>>, "");
static_assert(is_of_device<rmmc::prefetch_adaptor<>>, "");
static_assert(is_of_device<rmmc::retry_adaptor<>>, "");
static_assert(is_of_device<rmmc::statistics_adaptor<>>, "");
static_assert(is_of_device<rmmc::thread_safe_adaptor<>>, "");
static_assert(is_of_device<rmmc::tracking_adaptor<>>, "");
static_assert(is_of_device<rmmc::wait_adaptor<>>, "");
static_assert(is_of_both<rmmc::managed_resource>, "");
static_assert(is_of_both<rmmc::pinned_resource>, "");
static_assert(is_of_both<rmmc::system_resource>, "");
static_assert(is_of_both<rmmc::sam_headroom_resource>, "");
static_assert(is_of_both<rmmc::async_managed_resource>, "");
static_assert(is_of_both<rmmc::async_pinned_resource>, "");

#if CCCL_VERSION >= 2005000
using cccl_error = cuda::cuda_error;
#else /* it has none of its own */
struct cccl_error : std::runtime_error {
    cccl_error(cudaError_t, const char *text) : std::runtime_error(text)
    {
    }
};
#endif

/* Memory of the program in the newer shape and, before CCCL 3.1, in the older. */
struct moody {
    rmmc::resource upstream;
    int *error;

    void *allocate_sync(std::size_t bytes, std::size_t align)
    {
        if (*error != 0) {
            throw cccl_error(static_cast<cudaError_t>(*error), "moody");
        }
        return upstream.allocate_sync(bytes, align);
    }
    void deallocate_sync(void *ptr, std::size_t bytes, std::size_t align) noexcept
    {
        upstream.deallocate_sync(ptr, bytes, align);
    }
    [[maybe_unused]] friend constexpr void get_property(const moody &, device) noexcept
    {
    }
};

std::uint64_t live(const rmmc::resource &mr)
{
    return mr.get_stats().current_count;
}

} /* namespace */

CASE(a_reference_of_cccl_allocates_from_a_resource)
{
    rmmc::pool_resource pool{rmmc::cuda_resource()};
    rmmc::stream stream;
    device_ref ref{pool};
    void *block = allocate(ref, 1000, stream.value());

    CHECK(live(pool) == 1);
    deallocate(ref, block, 1000, stream.value());
    CHECK(live(pool) == 0);
    THROWS(rmmc::out_of_memory, allocate(ref, std::size_t(1) << 50, stream.value()));
}

CASE(a_resource_of_cccl_is_memory_of_ours)
{
    rmmc::pool_resource pool{rmmc::cuda_resource()};
    device_ref ref{pool};
    rmmc::custom_resource custom(ref);
    rmmc::pool_resource over(custom);
    void *block = over.allocate({}, 1000);

    CHECK(live(pool) == 1 && live(custom) == 1);
    over.deallocate({}, block, 1000);
    CHECK(custom == rmmc::custom_resource(ref));
    /* an exception crosses both libraries, with a frame of C on each side */
    THROWS(rmmc::out_of_memory, over.allocate({}, std::size_t(1) << 39));
}

CASE(from_cccl_knows_properties_and_what_is_out_of_memory)
{
    rmmc::pinned_resource pinned;
    int error = 0, asked = 0;
    rmmc::resource_with<RMM_DEVICE_ACCESSIBLE> of_device =
        rmmc::from_cccl(moody{rmmc::cuda_resource(), &error}, "moody");
    rmmc::host_device_resource of_both = rmmc::from_cccl(pinned);
    rmmc::failure_callback_adaptor asking(of_device, [&](std::size_t) {
        asked++;
        return false;
    });

    CHECK(of_both.properties() == (RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE));
    CHECK(std::strcmp(of_device.name(), "moody") == 0);
    asking.deallocate({}, asking.allocate({}, 100), 100);
    of_both.deallocate({}, of_both.allocate({}, 100), 100);
    error = 2;
    THROWS(cccl_error, asking.allocate({}, 100));
    CHECK(
        asked ==
        (CCCL_VERSION >= 2008000 ? 1 : 0)); /* the exception has no number before */
    error = 700;
    THROWS(cccl_error, asking.allocate({}, 100));
    CHECK(asked == (CCCL_VERSION >= 2008000 ? 1 : 0));
}

/* As the exceptions of CCCL since 3.1, before, and of its first versions. */
CASE(an_exception_of_any_cccl_says_whether_it_is_out_of_memory)
{
    struct with_status {
        int number;

        int status() const noexcept
        {
            return number;
        }
    };
    struct with_text {
        const char *text;

        const char *what() const noexcept
        {
            return text;
        }
    };
    using held = rmmc::detail::cccl_memory<moody>;

    CHECK(held::is_out_of_memory(with_status{2}, 0));
    CHECK(!held::is_out_of_memory(with_status{700}, 0));
    CHECK(held::is_out_of_memory(with_text{"cudaError 2: moody"}, 0));
    CHECK(!held::is_out_of_memory(with_text{"cudaError 20: moody"}, 0));
    CHECK(!held::is_out_of_memory(with_text{"moody"}, 0));
    CHECK(!held::is_out_of_memory(700, 0));
}

#if CCCL_VERSION >= 3002000
CASE(any_resource_keeps_a_resource_alive)
{
    rmmc::statistics_adaptor upstream{rmmc::cuda_resource()};
    rmmc::stream stream;
    {
        cuda::mr::any_resource<device> any{rmmc::pool_resource(upstream)};
        cuda::mr::any_resource<device> copy = any;
        void *block = copy.allocate(cuda::stream_ref{stream.value()}, 1000, 256);

        CHECK(copy == any && live(upstream) == 1);
        any.deallocate(cuda::stream_ref{stream.value()}, block, 1000, 256);
        rmmc::custom_resource back(any);
        back.deallocate({}, back.allocate({}, 100), 100);
    }
    CHECK(live(upstream) == 0);
}

#endif

#if CCCL_VERSION >= 3004000 /* 3.2 and 3.3 compile it with nvcc only */
CASE(a_buffer_of_cccl_is_memory_of_a_resource)
{
    rmmc::pool_resource pool{rmmc::cuda_resource()};
    rmmc::stream stream;
    {
        cuda::buffer<int, device> buffer(
            cuda::stream_ref{stream.value()}, pool, 100, cuda::no_init);
        CHECK(buffer.size() == 100 && live(pool) == 1);
    }
    CHECK(live(pool) == 0);
}
#endif
