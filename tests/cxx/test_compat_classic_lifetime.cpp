/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of RMM's classes up to 26.04 that end too early or too late, throw, serve two devices,
 * are used by C and by several threads. The program ends with status 0 only if its static objects
 * end without a violation. */
#define RMM_CXX_MAIN
#include "cxx/harness.hpp"

#include <atomic>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include <rmm/device_buffer.hpp>
#include <rmm/device_scalar.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/failure_callback_resource_adaptor.hpp>
#include <rmm/mr/device/limiting_resource_adaptor.hpp>
#include <rmm/mr/device/owning_wrapper.hpp>
#include <rmm/mr/device/per_device_resource.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>
#include <rmm/mr/device/statistics_resource_adaptor.hpp>
#include <rmm/mr/device/thread_safe_resource_adaptor.hpp>
#include <rmm/mr/device/tracking_resource_adaptor.hpp>
#include <rmm/rmm.h>

namespace
{

using rmm::mr::device_memory_resource;
using pool_t = rmm::mr::pool_memory_resource<device_memory_resource>;

constexpr std::size_t mib = std::size_t(1) << 20;

struct program_error {
    int code;
};

/* Memory of the program: counts, and throws on request. */
class counted : public device_memory_resource
{
  public:
    std::atomic<int> live{0};
    bool is_broken = false;

  private:
    void *do_allocate(std::size_t bytes, rmm::cuda_stream_view stream) override
    {
        if (is_broken) {
            throw program_error{7};
        }
        void *block = cuda_.allocate(bytes, stream);
        live++;
        return block;
    }
    void
    do_deallocate(void *p, std::size_t bytes, rmm::cuda_stream_view stream) override
    {
        live--;
        cuda_.deallocate(p, bytes, stream);
    }
    rmm::mr::cuda_memory_resource cuda_;
};

/* The default is what it was at the end of the block. */
struct default_kept {
    device_memory_resource *before = rmm::mr::get_current_device_resource();

    default_kept() = default;
    default_kept(const default_kept &) = delete;
    default_kept &operator=(const default_kept &) = delete;
    ~default_kept()
    {
        rmm::mr::set_current_device_resource(before);
    }
};

/* They end after main(): with memory, as defaults, and before the pool that they are of. */
rmm::mr::cuda_memory_resource static_cuda;
pool_t static_pool(&static_cuda, mib);
rmm::device_buffer static_buffer(100, rmm::cuda_stream_default, &static_pool);
rmm::device_scalar<int> static_scalar(rmm::cuda_stream_default);
counted static_counted;

} /* namespace */

CASE(a_default_that_has_ended_is_not_returned)
{
    void *was = nullptr;
    const default_kept kept;
    {
        auto mr = std::make_unique<rmm::mr::cuda_memory_resource>();
        was = mr.get();
        rmm::mr::set_current_device_resource(mr.get());
    }
    CHECK(rmm::mr::get_current_device_resource() != was);
    rmm::device_buffer b(100, rmm::cuda_stream_default);
    CHECK(b.memory_resource() != rmm::device_async_resource_ref(static_pool));
    CHECK(rmm::mr::set_current_device_resource(nullptr) != was);
}

CASE(a_pool_that_has_ended_still_serves_as_the_default)
{
    rmm::mr::cuda_memory_resource cuda;
    const default_kept kept;
    void *was = nullptr;
    {
        pool_t pool(&cuda, mib);
        was = &pool;
        rmm::mr::set_current_device_resource(&pool);
    }
    device_memory_resource *now = rmm::mr::get_current_device_resource();
    CHECK(
        now != nullptr && now != was && now == rmm::mr::get_current_device_resource());
    rmm::device_buffer b(100, rmm::cuda_stream_default);
    CHECK(b.memory_resource() == now);
}

CASE(a_class_of_the_program_that_has_ended_refuses)
{
    const default_kept kept;
    {
        counted mr;
        rmm::mr::set_current_device_resource(&mr);
        rmm::device_buffer b(100, rmm::cuda_stream_default);
        CHECK(mr.live == 1);
    }
    device_memory_resource *now = rmm::mr::get_current_device_resource();
    THROWS(rmm::logic_error, now->allocate(100));
    THROWS(rmm::logic_error, rmm::device_buffer(100, rmm::cuda_stream_default));
}

CASE(another_object_at_the_address_is_no_default)
{
    alignas(counted) unsigned char place[sizeof(counted)];
    const default_kept kept;
    auto *first = new (place) counted;

    rmm::mr::set_current_device_resource(first);
    first->~counted();
    auto *second = new (place) counted;
    CHECK(rmm::mr::get_current_device_resource() != second);
    rmm::mr::set_current_device_resource(second);
    CHECK(rmm::mr::get_current_device_resource() == second);
    rmm::mr::set_current_device_resource(nullptr);
    second->~counted();
}

CASE(an_upstream_may_end_first)
{
    auto cuda = std::make_unique<rmm::mr::cuda_memory_resource>();
    auto statistics =
        std::make_unique<rmm::mr::statistics_resource_adaptor<device_memory_resource>>(
            cuda.get());
    auto mine = std::make_unique<counted>();
    pool_t over_statistics(statistics.get(), mib), over_mine(mine.get(), mib);
    void *small = over_mine.allocate(100);

    cuda.reset();
    statistics.reset();
    mine.reset();
    void *block = over_statistics.allocate(4 * mib); /* grows */
    CHECK(block != nullptr && small != nullptr);
    over_statistics.deallocate(block, 4 * mib);
    over_mine.deallocate(small, 100);
    over_mine.deallocate(over_mine.allocate(100), 100);
    THROWS(rmm::logic_error, over_mine.allocate(4 * mib));
}

CASE(what_the_program_throws_comes_through_adaptors)
{
    counted mine;
    pool_t pool(&mine, 0);
    rmm::mr::tracking_resource_adaptor<pool_t> tracking(&pool);
    rmm::mr::statistics_resource_adaptor<device_memory_resource> statistics(&tracking);
    rmm::mr::limiting_resource_adaptor<device_memory_resource> limiting(
        &statistics, mib);
    rmm::mr::thread_safe_resource_adaptor<device_memory_resource> safe(&limiting);
    auto wrapped = rmm::mr::owning_wrapper<
        rmm::mr::statistics_resource_adaptor<device_memory_resource>,
        device_memory_resource>(std::make_tuple(std::shared_ptr<device_memory_resource>(
        &safe, [](device_memory_resource *) {})));

    mine.is_broken = true;
    for (int i = 0; i < 2; i++) {
        THROWS(program_error, wrapped.allocate(100));
        THROWS(program_error, rmm::device_buffer(100, rmm::cuda_stream_default, &safe));
    }
    CHECK(limiting.get_allocated_bytes() == 0 && tracking.get_allocated_bytes() == 0);
    mine.is_broken = false;
    rmm::device_buffer b(100, rmm::cuda_stream_default, wrapped);
    CHECK(statistics.get_bytes_counter().value == 100);
}

CASE(a_callback_is_asked_for_its_exception_only)
{
    counted mine;
    int calls = 0;
    const auto callback = [&](std::size_t, void *) {
        mine.is_broken = false;
        return ++calls == 1;
    };
    rmm::mr::failure_callback_resource_adaptor<counted> for_memory(
        &mine, callback, nullptr);
    rmm::mr::failure_callback_resource_adaptor<counted, program_error> for_mine(
        &mine, callback, nullptr);

    mine.is_broken = true;
    THROWS(program_error, for_memory.allocate(100));
    CHECK(calls == 0);
    for_mine.deallocate(for_mine.allocate(100), 100);
    CHECK(calls == 1);
}

CASE(c_and_cxx_have_one_default)
{
    const default_kept kept;
    counted mine;
    rmm_resource_t *in_c = nullptr;
    void *block = nullptr;

    rmm::mr::set_current_device_resource(&mine);
    CHECK(rmm_get_current_device_resource(&in_c) == RMM_OK);
    CHECK(rmm_resource_alloc(in_c, 100, 0, nullptr, &block) == RMM_OK);
    CHECK(mine.live == 1);
    rmm_resource_dealloc(in_c, block, 100, 0, nullptr);
    CHECK(mine.live == 0);
    rmm_resource_release(in_c);

    rmm_resource_t *managed = nullptr;
    CHECK(rmm_managed_resource_create(&managed) == RMM_OK);
    CHECK(rmm_set_current_device_resource(managed, nullptr) == RMM_OK);
    device_memory_resource *now = rmm::mr::get_current_device_resource();
    CHECK(now != &mine && now == rmm::mr::get_current_device_resource());
    CHECK(now->library().get() == managed);
    rmm_resource_release(managed);
    rmm::device_buffer b(100, rmm::cuda_stream_default);
    CHECK(mine.live == 0);
    CHECK(rmm::mr::set_current_device_resource(&mine) == now);
}

CASE(one_object_is_the_default_of_two_devices)
{
    const rmm::cuda_device_id first{0}, second{1};
    rmm::device_buffer of_first, of_second;
    counted mine;
    {
        const default_kept kept;
        device_memory_resource *before = rmm::mr::get_per_device_resource(second);

        rmm::mr::set_per_device_resource(first, &mine);
        rmm::mr::set_per_device_resource(second, &mine);
        of_first = rmm::device_buffer(100, rmm::cuda_stream_default);
        const rmm::cuda_set_device_raii scope(second);
        CHECK(rmm::mr::get_current_device_resource() == &mine);
        of_second = rmm::device_buffer(100, rmm::cuda_stream_default);
        rmm::mr::set_per_device_resource(second, before);
    }
    CHECK(mine.live == 2 && of_second.device() == second);
    of_second = rmm::device_buffer();
    of_first = rmm::device_buffer();
    CHECK(mine.live == 0);
    THROWS(
        rmm::out_of_range,
        rmm::mr::set_per_device_resource(rmm::cuda_device_id{5}, &mine));
}

CASE(threads_set_and_get_defaults)
{
    std::vector<std::thread> threads;
    std::atomic<int> failures{0};

    for (int k = 0; k < 4; k++) {
        threads.emplace_back([k, &failures] {
            const rmm::cuda_set_device_raii scope(rmm::cuda_device_id{k & 1});
            for (int i = 0; i < 200; i++) {
                rmm::mr::cuda_memory_resource mr;
                rmm::mr::set_current_device_resource(&mr);
                if (rmm::mr::get_current_device_resource() == nullptr) {
                    failures++;
                }
                rmm::mr::set_current_device_resource(nullptr);
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    CHECK(failures == 0);
}

CASE(objects_of_a_thread_end_with_it)
{
    const default_kept kept;

    std::thread([] {
        thread_local pool_t pool(&static_cuda, mib);
        thread_local rmm::device_buffer buffer(100, rmm::cuda_stream_default, &pool);
        rmm::mr::set_current_device_resource(&pool);
        CHECK(buffer.data() != nullptr);
    }).join();
    rmm::device_buffer b(100, rmm::cuda_stream_default);
    CHECK(b.data() != nullptr);
}

CASE(static_objects_stay_defaults_until_the_end)
{
    CHECK(static_scalar.value(rmm::cuda_stream_default) == static_scalar.value());
    {
        const rmm::cuda_set_device_raii scope(rmm::cuda_device_id{1});
        rmm::mr::set_current_device_resource(&static_counted);
        static rmm::device_buffer ends_before_its_default(
            100, rmm::cuda_stream_default);
        CHECK(static_counted.live == 1);
    }
    rmm::mr::set_current_device_resource(&static_pool);
    static rmm::device_buffer another(100, rmm::cuda_stream_default);
    CHECK(another.memory_resource() == &static_pool);
}
