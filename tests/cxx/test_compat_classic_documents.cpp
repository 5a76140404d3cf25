/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as RMM's documents show them: the READMEs of 0.15 to 26.04, the user guide, and the
 * comments of its headers. Ours, with the names and the order of calls of the documents. */
#define RMM_CXX_MAIN
#include "cxx/harness.hpp"

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <rmm/device_buffer.hpp> /* the two of the guide's introduction, before the others */
#include <rmm/mr/device/cuda_async_memory_resource.hpp>

namespace
{

/* "Quick Example" of the introduction, with these two headers only. */
void introduction()
{
    auto async_mr = rmm::mr::cuda_async_memory_resource{};
    rmm::mr::set_current_device_resource(&async_mr);

    rmm::cuda_stream stream;
    rmm::device_buffer buffer(1024, stream.view());
    stream.synchronize();
    auto another = rmm::device_buffer(1024, stream.view());
    CHECK(buffer.size() == 1024 && another.data() != buffer.data());
}

} /* namespace */

#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream.hpp>
#include <rmm/cuda_stream_pool.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/device_scalar.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/device/arena_memory_resource.hpp>
#include <rmm/mr/device/binning_memory_resource.hpp>
#include <rmm/mr/device/cnmem_managed_memory_resource.hpp>
#include <rmm/mr/device/cnmem_memory_resource.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/default_memory_resource.hpp>
#include <rmm/mr/device/failure_callback_resource_adaptor.hpp>
#include <rmm/mr/device/fixed_size_memory_resource.hpp>
#include <rmm/mr/device/limiting_resource_adaptor.hpp>
#include <rmm/mr/device/logging_resource_adaptor.hpp>
#include <rmm/mr/device/managed_memory_resource.hpp>
#include <rmm/mr/device/owning_wrapper.hpp>
#include <rmm/mr/device/per_device_resource.hpp>
#include <rmm/mr/device/polymorphic_allocator.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>
#include <rmm/mr/device/prefetch_resource_adaptor.hpp>
#include <rmm/mr/device/statistics_resource_adaptor.hpp>
#include <rmm/mr/device/thread_safe_resource_adaptor.hpp>
#include <rmm/mr/device/tracking_resource_adaptor.hpp>
#include <rmm/mr/host/new_delete_resource.hpp>
#include <rmm/mr/host/pinned_memory_resource.hpp>
#include <rmm/mr/pinned_host_memory_resource.hpp>
#include <rmm/resource_ref.hpp>

namespace
{

constexpr std::size_t mib = std::size_t(1) << 20;

/* A resource as programs for 0.15 and 0.16 wrote them: the stream is a handle. */
class custom_resource_of_016 : public rmm::mr::device_memory_resource
{
  public:
    bool supports_streams() const noexcept override
    {
        return false;
    }
    bool supports_get_mem_info() const noexcept override
    {
        return true;
    }

  private:
    void *do_allocate(std::size_t bytes, cudaStream_t stream) override
    {
        return upstream_.allocate(bytes, stream);
    }
    void do_deallocate(void *p, std::size_t bytes, cudaStream_t stream) override
    {
        upstream_.deallocate(p, bytes, stream);
    }
    bool do_is_equal(device_memory_resource const &other) const noexcept override
    {
        return dynamic_cast<custom_resource_of_016 const *>(&other) != nullptr;
    }
    std::pair<std::size_t, std::size_t> do_get_mem_info(cudaStream_t) const override
    {
        return std::make_pair(std::size_t(1), std::size_t(2));
    }

    rmm::mr::cuda_memory_resource upstream_;
};

/* One as programs for 0.17 to 26.04 did. */
class my_custom_resource : public rmm::mr::device_memory_resource
{
  public:
    std::size_t live_bytes = 0;

  private:
    void *do_allocate(std::size_t bytes, rmm::cuda_stream_view stream) override
    {
        live_bytes += bytes;
        return upstream_.allocate(bytes, stream);
    }
    void do_deallocate(
        void *p, std::size_t bytes, rmm::cuda_stream_view stream) noexcept override
    {
        live_bytes -= bytes;
        upstream_.deallocate(p, bytes, stream);
    }
    [[nodiscard]] bool
    do_is_equal(device_memory_resource const &other) const noexcept override
    {
        return this == &other;
    }

    rmm::mr::cuda_memory_resource upstream_;
};

/* Of the comments of owning_wrapper. */
template <typename Upstream1, typename Upstream2>
class example_resource : public rmm::mr::device_memory_resource
{
  public:
    example_resource(Upstream1 *u1, Upstream2 *u2, int n, double f)
        : first(u1), second(u2), sum(n + static_cast<int>(f))
    {
    }
    Upstream1 *first;
    Upstream2 *second;
    int sum;

  private:
    void *do_allocate(std::size_t bytes, rmm::cuda_stream_view stream) override
    {
        return first->allocate(bytes, stream);
    }
    void
    do_deallocate(void *p, std::size_t bytes, rmm::cuda_stream_view stream) override
    {
        second->deallocate(p, bytes, stream);
    }
};

bool failure_handler(std::size_t, void *arg)
{
    bool &retried = *reinterpret_cast<bool *>(arg);

    if (!retried) {
        retried = true;
        return true; /* once more */
    }
    return false;
}

/* "Taking ownership of C++ objects from Python": the namespace of the reference is the README's. */
using namespace rmm::mr;

std::unique_ptr<rmm::device_buffer> allocate(
    std::size_t size,
    rmm::mr::device_async_resource_ref mr = get_current_device_resource())
{
    return std::make_unique<rmm::device_buffer>(size, rmm::cuda_stream_default, mr);
}

} /* namespace */

CASE(the_introductions_example_needs_two_headers)
{
    introduction();
    rmm::mr::set_current_device_resource(nullptr);
}

CASE(a_pool_over_the_default_becomes_the_default)
{
    rmm::mr::device_memory_resource *mr = rmm::mr::get_current_device_resource();
    CHECK(dynamic_cast<rmm::mr::cuda_memory_resource *>(mr) != nullptr);
    {
        rmm::mr::pool_memory_resource<rmm::mr::device_memory_resource> pool_mr{mr};
        CHECK(rmm::mr::set_current_device_resource(&pool_mr) == mr);
        CHECK(rmm::mr::get_current_device_resource() == &pool_mr);
        CHECK(pool_mr.get_upstream() == mr);
        CHECK(rmm::mr::set_current_device_resource(nullptr) == &pool_mr);
    }
    CHECK(rmm::mr::get_current_device_resource() == mr);
}

CASE(a_pool_has_half_of_the_free_memory_at_first)
{
    const auto half_of_it = rmm::percent_of_free_device_memory(50);
    rmm::mr::cuda_memory_resource cuda_mr;
    {
        rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource> pool_mr{&cuda_mr};
        rmm::mr::set_current_device_resource(&pool_mr);
        CHECK(pool_mr.pool_size() == half_of_it);
        rmm::mr::device_memory_resource *mr = rmm::mr::get_current_device_resource();
        CHECK(mr == &pool_mr);
        rmm::mr::set_current_device_resource(nullptr);
    }
    auto initial_size = rmm::percent_of_free_device_memory(50);
    rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource> pool_mr{
        &cuda_mr, initial_size};
    CHECK(pool_mr.pool_size() == initial_size);
}

CASE(the_deprecated_default_is_the_current_devices)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    rmm::mr::managed_memory_resource managed;
    rmm::mr::device_memory_resource *before = rmm::mr::get_default_resource();

    CHECK(rmm::mr::set_default_resource(&managed) == before);
    CHECK(rmm::mr::get_default_resource() == &managed);
    CHECK(rmm::mr::get_current_device_resource() == &managed);
    CHECK(rmm::mr::set_default_resource(nullptr) == &managed);
#pragma GCC diagnostic pop
}

CASE(each_device_has_its_own_pool)
{
    using pool_mr = rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource>;
    using rmm::cuda_device_id;
    rmm::mr::cuda_memory_resource cuda_mr;
    auto *upstream = &cuda_mr;
    const auto initial_size = mib;
    const int N = rmm::get_num_cuda_devices();
    std::vector<std::unique_ptr<pool_mr>> per_device_pools;

    for (int i = 0; i < N; ++i) {
        const rmm::cuda_set_device_raii device(cuda_device_id{i});
        per_device_pools.push_back(std::make_unique<pool_mr>(upstream, initial_size));
        set_per_device_resource(cuda_device_id{i}, per_device_pools.back().get());
    }
    for (int i = 0; i < N; ++i) {
        const rmm::cuda_set_device_raii device(cuda_device_id{i});
        CHECK(
            get_per_device_resource(cuda_device_id{i}) ==
            per_device_pools[static_cast<std::size_t>(i)].get());
        rmm::device_buffer buf(16, rmm::cuda_stream_default);
        CHECK(
            buf.memory_resource() ==
            per_device_pools[static_cast<std::size_t>(i)].get());
    }
    for (int i = 0; i < N; ++i) {
        set_per_device_resource(cuda_device_id{i}, nullptr);
    }
}

CASE(a_buffer_ends_while_another_device_is_current)
{
    auto mr = rmm::mr::cuda_memory_resource{};
    rmm::device_buffer buf(16, rmm::cuda_stream_default, &mr);
    rmm::device_buffer buf_a(16);
    const rmm::cuda_set_device_raii other(rmm::cuda_device_id{1});
    rmm::device_buffer buf_b(16);
    CHECK(buf.data() != nullptr && buf_a.data() != nullptr && buf_b.data() != nullptr);
}

CASE(a_resource_allocates_with_every_kind_of_stream)
{
    custom_resource_of_016 older;
    my_custom_resource newer;
    rmm::mr::cuda_memory_resource cuda;
    cudaStream_t handle = nullptr;
    rmm::cuda_stream stream;

    for (rmm::mr::device_memory_resource *mr :
         {static_cast<rmm::mr::device_memory_resource *>(&older),
          static_cast<rmm::mr::device_memory_resource *>(&newer),
          static_cast<rmm::mr::device_memory_resource *>(&cuda)}) {
        void *p = mr->allocate(100);
        mr->deallocate(p, 100);
        p = mr->allocate(100, 0);
        mr->deallocate(p, 100, 0);
        p = mr->allocate(100, nullptr);
        mr->deallocate(p, 100, nullptr);
        p = mr->allocate(100, handle);
        mr->deallocate(p, 100, handle);
        p = mr->allocate(100, rmm::cuda_stream_view{});
        mr->deallocate(p, 100, {});
        p = mr->allocate(100, rmm::cuda_stream_default);
        mr->deallocate(p, 100, rmm::cuda_stream_legacy);
        p = mr->allocate(100, rmm::cuda_stream_per_thread);
        mr->deallocate(p, 100, cudaStreamPerThread);
        p = mr->allocate(100, stream);
        mr->deallocate(p, 100, stream.view());
        p = mr->allocate(100, stream.value());
        mr->deallocate(p, 100, stream.value());
        p = mr->allocate(stream, 100); /* 25.12 and newer */
        mr->deallocate(stream, p, 100);
        p = mr->allocate_sync(100);
        mr->deallocate_sync(p, 100);
        p = mr->allocate(stream.view(), 100, rmm::CUDA_ALLOCATION_ALIGNMENT);
        mr->deallocate(stream.view(), p, 100, rmm::CUDA_ALLOCATION_ALIGNMENT);
        CHECK(mr->is_equal(*mr) && *mr == *mr);
    }
    CHECK(newer.live_bytes == 0);
    CHECK(older.get_mem_info(0).second == 2 && older.get_mem_info(stream).first == 1);
    CHECK(!older.supports_streams() && older.supports_get_mem_info());
    CHECK(newer.supports_streams() && !newer.supports_get_mem_info());
    CHECK(newer.get_mem_info(rmm::cuda_stream_default).first == 0);
}

CASE(containers_of_the_documents)
{
    cudaStream_t s = nullptr;
    rmm::device_buffer b{100, s};
    void *p = b.data();
    std::unique_ptr<rmm::mr::device_memory_resource> mr(new my_custom_resource{});
    rmm::device_buffer b2{100, s, mr.get()};
    rmm::device_uvector<int32_t> v(100, s);
    rmm::device_uvector<int32_t> v2{100, s, mr.get()};
    rmm::device_scalar<int32_t> a{s};
    rmm::device_scalar<int32_t> none;

    CHECK(p != nullptr && p != b2.data() && v.size() == 100 && v2.capacity() == 100);
    CHECK(b2.memory_resource() == mr.get() && v2.memory_resource() == mr.get());
    a.set_value(42, s);
    CHECK(a.value(s) == 42);
    const rmm::device_buffer &constant = b2;
    CHECK(constant.memory_resource()->is_equal(*mr));

    int value{42};
    v.set_element(0, value, s);
    value = 13;
    CHECK(v.element(0, s) == 42 && v.front_element(s) == 42);
    v.set_element_async(1, value, s);
    v.set_element_to_zero_async(42, s);
    CHECK(v.element(1, s) == 13 && v.element(42, s) == 0);
    none.set_value_async(value, s);
    CHECK(none.value(s) == 13);
    none.set_value(value);
    CHECK(none.value() == 13);
    none.set_value_to_zero_async(s);
    CHECK(none.value(s) == 0);
}

CASE(a_buffer_is_copied_and_moved_as_the_comments_show)
{
    my_custom_resource mr;
    rmm::cuda_stream_view stream = rmm::cuda_stream_view{};
    rmm::device_buffer buff(100);
    rmm::device_buffer custom_buff(100, stream, &mr);
    rmm::device_buffer buff_copy(buff);
    rmm::device_buffer another_copy(buff, stream);
    rmm::device_buffer to_buff(std::move(custom_buff));
    rmm::device_buffer buff_move(std::move(buff));
    rmm::device_buffer buff_default{};

    CHECK(buff_copy.size() == 100 && another_copy.size() == 100);
    CHECK(custom_buff.is_empty() && to_buff.size() == 100 && buff.size() == 0);
    buff_default.resize(100, stream);
    buff_default.resize(10);
    buff_default.shrink_to_fit(stream);
    CHECK(buff_default.size() == 10 && buff_default.capacity() == 10);
    buff_default = buff_move;
    CHECK(buff_default.size() == 100);
}

CASE(an_allocator_gets_a_stream)
{
    rmm::cuda_stream stream;
    rmm::mr::polymorphic_allocator<int> stream_alloc;
    auto adapted = rmm::mr::make_stream_allocator_adaptor(stream_alloc, stream);
    auto p = adapted.allocate(100);
    adapted.deallocate(p, 100);
    auto newer = rmm::mr::stream_allocator_adaptor(stream_alloc, stream);
    p = std::allocator_traits<decltype(newer)>::allocate(newer, 100);
    newer.deallocate(p, 100);
    CHECK(stream_alloc.resource() == rmm::mr::get_current_device_resource());
}

CASE(a_wrapper_owns_its_upstreams)
{
    auto cuda = std::make_shared<rmm::mr::cuda_memory_resource>();
    auto pool =
        rmm::mr::make_owning_wrapper<rmm::mr::pool_memory_resource>(cuda, mib, 2 * mib);
    CHECK(cuda.use_count() == 2 && pool->wrapped().pool_size() == mib);

    using cuda_mr_t = rmm::mr::cuda_memory_resource;
    using example = example_resource<cuda_mr_t, cuda_mr_t>;
    using wrapped_example = rmm::mr::owning_wrapper<example, cuda_mr_t, cuda_mr_t>;
    wrapped_example w{std::make_tuple(cuda, cuda), 42, 3.14};
    CHECK(w.wrapped().sum == 45 && w.wrapped().first == cuda.get());

    auto cuda_upstreams = std::make_tuple(cuda, cuda);
    auto made =
        rmm::mr::make_owning_wrapper<example_resource>(cuda_upstreams, 42, 3.14);
    rmm::device_buffer b(100, rmm::cuda_stream_default, made.get());
    CHECK(b.data() != nullptr && made->wrapped().sum == 45);
}

CASE(a_failed_allocation_calls_back)
{
    using failure_callback_adaptor =
        rmm::mr::failure_callback_resource_adaptor<rmm::mr::device_memory_resource>;
    for (const bool by_reference : {false, true}) {
        bool retried{false};
        failure_callback_adaptor mr{
            rmm::mr::get_current_device_resource(), failure_handler, &retried};
        failure_callback_adaptor newer{
            rmm::mr::get_current_device_resource_ref(), failure_handler, &retried};
        if (by_reference) {
            rmm::mr::set_current_device_resource_ref(newer);
        } else {
            rmm::mr::set_current_device_resource(&mr);
        }
        THROWS(
            rmm::out_of_memory,
            rmm::device_buffer(std::size_t(1) << 50, rmm::cuda_stream_default));
        CHECK(retried);
        rmm::mr::set_current_device_resource(nullptr);
    }
}

CASE(rows_are_written_to_a_file)
{
    std::string folder = "/tmp/rmm_documents_XXXXXX";
    CHECK(mkdtemp(&folder[0]) != nullptr);
    std::string filename{folder + "/test1.csv"};
    rmm::mr::cuda_memory_resource upstream;
    {
        rmm::mr::logging_resource_adaptor<rmm::mr::cuda_memory_resource> log_mr{
            &upstream, filename};
        log_mr.deallocate(log_mr.allocate(1000), 1000);
    }
    CHECK(setenv("RMM_LOG_FILE", filename.c_str(), 1) == 0);
    {
        rmm::mr::logging_resource_adaptor<rmm::mr::cuda_memory_resource> log_mr{
            &upstream};
        log_mr.flush();
    }
    CHECK(unsetenv("RMM_LOG_FILE") == 0);
    THROWS(
        rmm::logic_error,
        rmm::mr::logging_resource_adaptor<rmm::mr::cuda_memory_resource>{&upstream});
    std::ifstream file(filename);
    std::string row;
    std::getline(file, row);
    CHECK(row == "Thread,Time,Action,Pointer,Size,Stream");
    std::getline(file, row);
    CHECK(row.find(",allocate,") != std::string::npos);
    CHECK(std::remove(filename.c_str()) == 0 && std::remove(folder.c_str()) == 0);
}

CASE(ownership_is_taken_of_a_buffer)
{
    my_custom_resource mr;
    auto buffer_bad = allocate(16);
    auto buffer_good = allocate(16, &mr);
    CHECK(buffer_bad->size() == 16 && mr.live_bytes == 16);
}

CASE(resources_of_older_versions)
{
    rmm::mr::cuda_memory_resource cuda;
    rmm::mr::cnmem_memory_resource cnmem{mib};
    rmm::mr::cnmem_managed_memory_resource cnmem_managed{mib, {0}};
    rmm::mr::fixed_size_memory_resource<rmm::mr::cuda_memory_resource> fixed{
        &cuda, 1024, 8};
    rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource> pool{&cuda, mib};
    rmm::mr::binning_memory_resource<decltype(pool)> binning{&pool, 10, 12};
    rmm::mr::arena_memory_resource<rmm::mr::cuda_memory_resource> arena{
        &cuda, 4 * mib, 8 * mib}; /* 0.16 to 22.02 */
    rmm::mr::arena_memory_resource<rmm::mr::cuda_memory_resource> newer_arena{
        &cuda, 8 * mib, true};
    rmm::mr::thread_safe_resource_adaptor<rmm::mr::cuda_memory_resource> safe{&cuda};

    binning.add_bin(1024, &fixed);
    binning.add_bin(1 << 14);
    binning.add_bin(1 << 15, nullptr);
    for (rmm::mr::device_memory_resource *mr : std::vector<device_memory_resource *>{
             &cnmem, &cnmem_managed, &fixed, &pool, &binning, &arena, &newer_arena,
             &safe}) {
        void *p = mr->allocate(1000, rmm::cuda_stream_default);
        CHECK(p != nullptr);
        mr->deallocate(p, 1000, rmm::cuda_stream_default);
    }
    CHECK(fixed.get_block_size() == 1024);
}

CASE(adaptors_stand_over_each_other)
{
    rmm::mr::cuda_memory_resource cuda;
    rmm::mr::pool_memory_resource pool{&cuda, mib};
    rmm::mr::limiting_resource_adaptor limiting{&pool, mib};
    rmm::mr::tracking_resource_adaptor tracking{&limiting, true};
    rmm::mr::statistics_resource_adaptor statistics{&tracking};
    rmm::mr::prefetch_resource_adaptor prefetch{&statistics};
    rmm::mr::logging_resource_adaptor<decltype(prefetch)> logging{&prefetch, std::cout};
    rmm::mr::failure_callback_resource_adaptor<decltype(logging)> failing{
        &logging, failure_handler, nullptr};
    {
        rmm::device_buffer b(1000, rmm::cuda_stream_default, &failing);
        CHECK(tracking.get_outstanding_allocations().size() == 1);
        CHECK(statistics.get_bytes_counter().value == 1000);
        CHECK(limiting.get_allocated_bytes() >= 1000);
    }
    CHECK(tracking.get_allocated_bytes() == 0);
    CHECK(statistics.get_allocations_counter().total == 1);
    CHECK(failing.get_upstream() == &logging && limiting.get_upstream() == &pool);
}

/* The guide of C++: every class from its arguments. */
CASE(class_templates_deduce_their_upstream)
{
    auto cuda_mr = rmm::mr::cuda_memory_resource{};
    auto async_mr = rmm::mr::cuda_async_memory_resource{};
    auto managed_mr = rmm::mr::managed_memory_resource{};
    auto pool_mr = rmm::mr::pool_memory_resource{&async_mr, 1ULL << 20};
    auto arena_mr = rmm::mr::arena_memory_resource{&cuda_mr};
    auto small_mr = rmm::mr::fixed_size_memory_resource{&cuda_mr, 256};
    auto binning_mr = rmm::mr::binning_memory_resource{&pool_mr};
    auto stats_mr = rmm::mr::statistics_resource_adaptor{&binning_mr};
    auto prefetch_mr = rmm::mr::prefetch_resource_adaptor{&managed_mr};
    auto failure_callback = [](std::size_t, void *) { return false; };
    auto callback_mr = rmm::mr::failure_callback_resource_adaptor{
        &stats_mr, failure_callback, nullptr};

    binning_mr.add_bin(256, &small_mr);
    binning_mr.add_bin(1024, nullptr);
    rmm::mr::set_current_device_resource(&callback_mr);
    {
        rmm::cuda_stream stream;
        rmm::device_buffer buffer(1024, stream.view());
        rmm::device_buffer buffer2 = buffer;
        rmm::device_buffer buffer3 = std::move(buffer);
        buffer3.resize(2048, stream.view());
        buffer3.shrink_to_fit(stream.view());
        auto *mr = rmm::mr::get_current_device_resource();
        void *ptr = mr->allocate(1024, stream.view());
        mr->deallocate(ptr, 1024, stream.view());
        rmm::mr::polymorphic_allocator<int> alloc{&async_mr};
        int *numbers = alloc.allocate(100, stream.view());
        alloc.deallocate(numbers, 100, stream.view());
        CHECK(stats_mr.get_bytes_counter().value == 2048 + 1024);
    }
    rmm::mr::set_current_device_resource(nullptr);
    CHECK(stats_mr.get_bytes_counter().value == 0);
    rmm::device_buffer of_arena(100, rmm::cuda_stream_default, &arena_mr);
    rmm::device_buffer prefetched(100, rmm::cuda_stream_default, &prefetch_mr);
}

CASE(host_memory_has_two_resources)
{
    rmm::mr::new_delete_resource plain;
    rmm::mr::pinned_memory_resource pinned;
    for (rmm::mr::host_memory_resource *mr :
         {static_cast<rmm::mr::host_memory_resource *>(&plain),
          static_cast<rmm::mr::host_memory_resource *>(&pinned)}) {
        void *p = mr->allocate(100);
        mr->deallocate(p, 100);
        p = mr->allocate(100, 64);
        CHECK(reinterpret_cast<std::uintptr_t>(p) % 64 == 0);
        mr->deallocate(p, 100, 64);
        CHECK(mr->is_equal(*mr));
    }
}

CASE(streams_of_the_documents)
{
    rmm::cuda_stream_pool pool{4};
    rmm::cuda_stream stream;
    rmm::cuda_stream moved{std::move(stream)};
    rmm::cuda_stream_view view = pool.get_stream();

    CHECK(pool.get_pool_size() == 4 && !stream.is_valid() && moved.is_valid());
    CHECK(pool.get_stream(1) == pool.get_stream(5) && view != moved.view());
    CHECK(rmm::cuda_stream_view{}.is_default() && !moved.view().is_default());
    view.synchronize();
    view.synchronize_no_throw();
}

CASE(checks_take_the_exception_in_either_place)
{
    int *p = nullptr;

    THROWS(rmm::logic_error, [&] {
        RMM_EXPECTS(p != nullptr, "Unexpected null pointer");
    }());
    THROWS(std::runtime_error, [&] {
        RMM_EXPECTS(p != nullptr, std::runtime_error, "Unexpected nullptr");
    }());
    THROWS(std::runtime_error, [&] {
        RMM_EXPECTS(p != nullptr, "Unexpected nullptr", std::runtime_error);
    }());
    THROWS(rmm::logic_error, [] { RMM_FAIL("Unsupported code path"); }());
    THROWS(std::runtime_error, [] {
        RMM_FAIL("Unsupported code path", std::runtime_error);
    }());
    THROWS(rmm::out_of_memory, [] { RMM_FAIL("none left", rmm::out_of_memory); }());
#if RMM_COMPAT_HAS_CUDA
    THROWS(rmm::cuda_error, [] { RMM_CUDA_TRY(cudaErrorInvalidValue); }());
    THROWS(std::runtime_error, [] {
        RMM_CUDA_TRY(cudaErrorInvalidValue, std::runtime_error);
    }());
    THROWS(rmm::out_of_memory, [] { RMM_CUDA_TRY_ALLOC(cudaErrorMemoryAllocation); }());
    THROWS(rmm::bad_alloc, [] { RMM_CUDA_TRY_ALLOC(cudaErrorInvalidValue, 100); }());
    RMM_ASSERT_CUDA_SUCCESS(cudaSuccess);
#endif
}
