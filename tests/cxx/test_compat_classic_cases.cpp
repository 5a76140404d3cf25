/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of RMM 21.12 to 25.12 check, beside what its documents show. */
#define RMM_CXX_MAIN
#define RMM_LOG_ACTIVE_LEVEL RAPIDS_LOGGER_LOG_LEVEL_DEBUG
#include "cxx/harness.hpp"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <unistd.h>

#include <rmm/cuda_stream.hpp>
#include <rmm/detail/cuda_memory_resource.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/device/aligned_resource_adaptor.hpp>
#include <rmm/mr/device/cuda_async_memory_resource.hpp>
#include <rmm/mr/device/limiting_resource_adaptor.hpp>
#include <rmm/mr/device/logging_resource_adaptor.hpp>
#include <rmm/mr/device/managed_memory_resource.hpp>
#include <rmm/mr/device/polymorphic_allocator.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>
#include <rmm/mr/device/prefetch_resource_adaptor.hpp>
#include <rmm/mr/device/statistics_resource_adaptor.hpp>
#include <rmm/mr/device/tracking_resource_adaptor.hpp>
#include <rmm/mr/host/new_delete_resource.hpp>
#include <rmm/mr/host/pinned_memory_resource.hpp>

namespace
{

using rmm::mr::cuda_memory_resource;
using rmm::mr::device_memory_resource;

/* Says of itself what an adaptor is asked. */
class telling_resource : public device_memory_resource
{
  public:
    bool streams = false, info = true;

    bool supports_streams() const noexcept override
    {
        return streams;
    }
    bool supports_get_mem_info() const noexcept override
    {
        return info;
    }

  private:
    void *do_allocate(std::size_t, rmm::cuda_stream_view) override
    {
        return nullptr;
    }
    void do_deallocate(void *, std::size_t, rmm::cuda_stream_view) override
    {
    }
    std::pair<std::size_t, std::size_t>
    do_get_mem_info(rmm::cuda_stream_view) const override
    {
        return {3, 4};
    }
};

/* Has the functions of a resource, and no property. */
struct without_properties {
    void *allocate(std::size_t, std::size_t)
    {
        return nullptr;
    }
    void deallocate(void *, std::size_t, std::size_t)
    {
    }
    void *allocate_async(std::size_t, std::size_t, rmm::cuda_stream_view)
    {
        return nullptr;
    }
    void deallocate_async(void *, std::size_t, std::size_t, rmm::cuda_stream_view)
    {
    }
    bool operator==(const without_properties &) const
    {
        return true;
    }
};

namespace questions = rmm::detail::polyfill;
using cuda::mr::device_accessible;
using cuda::mr::host_accessible;

static_assert(questions::async_resource_with<cuda_memory_resource, device_accessible>);
static_assert(!questions::resource_with<cuda_memory_resource, host_accessible>);
static_assert(
    questions::resource_with<rmm::mr::pinned_memory_resource, host_accessible>);
static_assert(!questions::async_resource<rmm::mr::new_delete_resource>);
static_assert(questions::async_resource<without_properties>);
static_assert(!questions::resource_with<without_properties, device_accessible>);
static_assert(!questions::resource_with<
              rmm::mr::pool_memory_resource<without_properties>, device_accessible>);
static_assert(questions::async_resource_with<
              rmm::mr::pool_memory_resource<cuda_memory_resource>, device_accessible>);

CASE(a_null_pointer_is_no_upstream)
{
    device_memory_resource *none = nullptr;

    THROWS(
        rmm::logic_error,
        rmm::mr::pool_memory_resource<cuda_memory_resource>(nullptr, 0));
    THROWS(
        rmm::logic_error,
        rmm::mr::statistics_resource_adaptor<device_memory_resource>(nullptr));
    THROWS(rmm::logic_error, rmm::device_async_resource_ref(nullptr));
    THROWS(rmm::logic_error, rmm::device_async_resource_ref(none));
}

#if RMM_COMPAT_HAS_CCCL_REFERENCES
CASE(a_reference_of_cccl_is_made_of_ours_and_compared)
{
    cuda_memory_resource cuda;
    telling_resource other;
    device_memory_resource *base = &cuda;
    const rmm::device_async_resource_ref ours(cuda);
    cuda::mr::resource_ref<device_accessible> theirs = ours;
    const cuda::mr::resource_ref<device_accessible> same(base);

    CHECK(ours == same && same == ours && theirs == same);
    CHECK(rmm::device_async_resource_ref(other) != same && !(ours != same));
}
#endif

CASE(an_adaptor_answers_for_its_upstream)
{
    telling_resource mr;
    rmm::mr::aligned_resource_adaptor<telling_resource> aligned(&mr);
    rmm::mr::limiting_resource_adaptor<decltype(aligned)> limited(&aligned, 100);

    CHECK(!limited.supports_streams() && limited.supports_get_mem_info());
    CHECK(limited.get_mem_info(rmm::cuda_stream_view()).second == 4);
    mr.streams = true;
    mr.info = false;
    CHECK(limited.supports_streams() && !limited.supports_get_mem_info());

    cuda_memory_resource cuda;
    rmm::mr::pool_memory_resource<cuda_memory_resource> pool(&cuda, 0);
    CHECK(!cuda.supports_streams() && pool.supports_streams());
}

CASE(functions_make_adaptors)
{
    cuda_memory_resource cuda;
    auto limited = rmm::mr::make_limiting_adaptor(&cuda, 1000);
    auto counted = rmm::mr::make_statistics_adaptor(&limited);
    auto tracked = rmm::mr::make_tracking_adaptor(&counted);
    void *ptr = tracked.allocate(100);

    CHECK(
        tracked.get_allocated_bytes() == 100 &&
        counted.get_bytes_counter().value == 100);
    CHECK(limited.get_allocation_limit() == 1000);
    tracked.deallocate(ptr, 100);
}

CASE(a_log_makes_its_folder)
{
    const std::string folder = "/tmp/rmm-classic-" + std::to_string(getpid());
    const std::string file = folder + "/logs/rows.csv";
    cuda_memory_resource cuda;

    {
        auto logged = rmm::mr::make_logging_adaptor(&cuda, file);
        logged.deallocate(logged.allocate(100), 100);
        logged.flush();
    }
    std::FILE *rows = std::fopen(file.c_str(), "r");
    CHECK(rows != nullptr);
    std::fclose(rows);
    CHECK(unlink(file.c_str()) == 0);
    CHECK(rmdir((folder + "/logs").c_str()) == 0 && rmdir(folder.c_str()) == 0);
}

template <class Resource> void aligns_as_asked()
{
    Resource mr;

    for (std::size_t align = 16; align <= 65536; align *= 4) {
        void *ptr = mr.allocate(1000, align);
        CHECK(reinterpret_cast<std::uintptr_t>(ptr) % align == 0);
        mr.deallocate(ptr, 1000, align);

        ptr = mr.allocate(1000, align + 1); /* none: that of any type */
        CHECK(reinterpret_cast<std::uintptr_t>(ptr) % alignof(std::max_align_t) == 0);
        mr.deallocate(ptr, 1000, align + 1);
        THROWS(rmm::bad_alloc, mr.allocate_sync(1000, align + 1)); /* since 25.12 */

        rmm::host_resource_ref reference(mr);
        reference.deallocate(reference.allocate(1000, align + 1), 1000, align + 1);
        THROWS(rmm::bad_alloc, reference.allocate_sync(1000, align + 1));
    }
}

CASE(host_memory_is_aligned_to_any_power_of_two)
{
    aligns_as_asked<rmm::mr::new_delete_resource>();
    aligns_as_asked<rmm::mr::pinned_memory_resource>();
}

void take(const rmm::mr::polymorphic_allocator<int> &)
{
}

CASE(an_allocator_is_made_of_the_address_of_a_resource)
{
    cuda_memory_resource cuda;
    rmm::cuda_stream stream;
    const rmm::mr::polymorphic_allocator<int> allocator(&cuda);
    auto adapted = rmm::mr::make_stream_allocator_adaptor(allocator, stream);

    take(&cuda);
    CHECK(allocator.resource() == &cuda);
    adapted.deallocate(adapted.allocate(10), 10);
    stream.synchronize();
}

CASE(an_element_may_be_set_to_a_temporary)
{
    rmm::device_uvector<std::int64_t> vector(2, rmm::cuda_stream_view());

    vector.set_element_async(1, 1234, rmm::cuda_stream_view());
    CHECK(vector.element(1, rmm::cuda_stream_view()) == 1234);
}

CASE(the_log_of_25_02_has_names_of_its_own)
{
    std::ostringstream text;
    const rmm::level_enum before = rmm::default_logger().level();

    rmm::default_logger().sinks().push_back(
        std::make_shared<rmm::ostream_sink_mt>(text));
    rmm::default_logger().set_level(rmm::level_enum::debug);
    RMM_LOG_DEBUG("a line");
    rmm::default_logger().sinks().pop_back();
    rmm::default_logger().set_level(before);
    CHECK(text.str().find("a line") != std::string::npos);
}

CASE(headers_give_what_rmms_headers_gave)
{
    CHECK(rmm::detail::async_alloc::is_supported());
    CHECK(rmm::detail::runtime_async_alloc::is_supported());
#ifndef RMM_CUDA_MALLOC_ASYNC_SUPPORT
    test::fail(__FILE__, __LINE__, "the macro of until 24.12");
#endif
    rmm::mr::managed_memory_resource managed;
    void *ptr = managed.allocate(4096);
    rmm::prefetch(ptr, 4096, rmm::get_current_cuda_device(), rmm::cuda_stream_view());
    managed.deallocate(ptr, 4096);
}

} /* namespace */
