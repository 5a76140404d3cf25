/* SPDX-License-Identifier: Apache-2.0 */
/* A pool as the default, one for each device, a resource of the program's own, and pointers. */
#include "program.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <rmm/cuda_device.hpp>
#include <rmm/device_buffer.hpp>
#include <rmm/device_scalar.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/device/arena_memory_resource.hpp>
#include <rmm/mr/device/binning_memory_resource.hpp>
#include <rmm/mr/device/cuda_async_memory_resource.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/device_memory_resource.hpp>
#include <rmm/mr/device/fixed_size_memory_resource.hpp>
#include <rmm/mr/device/managed_memory_resource.hpp>
#include <rmm/mr/device/owning_wrapper.hpp>
#include <rmm/mr/device/per_device_resource.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>
#include <rmm/mr/host/new_delete_resource.hpp>
#include <rmm/mr/host/pinned_memory_resource.hpp>

namespace
{

/* Memory by HIP itself, and what it was asked for. */
class hip_resource final : public rmm::mr::device_memory_resource
{
  public:
    std::atomic<int> allocations{0};
    hipStream_t last_stream = nullptr;

    [[nodiscard]] bool supports_streams() const noexcept override
    {
        return false;
    }
    [[nodiscard]] bool supports_get_mem_info() const noexcept override
    {
        return true;
    }

  private:
    void *do_allocate(std::size_t bytes, rmm::cuda_stream_view stream) override
    {
        void *ptr = nullptr;

        RMM_CUDA_TRY_ALLOC(hipMalloc(&ptr, bytes));
        allocations++;
        last_stream = stream.value();
        return ptr;
    }
    void do_deallocate(void *ptr, std::size_t, rmm::cuda_stream_view) override
    {
        RMM_ASSERT_CUDA_SUCCESS(hipFree(ptr));
    }
    [[nodiscard]] bool
    do_is_equal(const device_memory_resource &other) const noexcept override
    {
        return dynamic_cast<const hip_resource *>(&other) != nullptr;
    }
    [[nodiscard]] std::pair<std::size_t, std::size_t>
    do_get_mem_info(rmm::cuda_stream_view) const override
    {
        std::size_t free_bytes = 0, total_bytes = 0;

        RMM_CUDA_TRY(hipMemGetInfo(&free_bytes, &total_bytes));
        return {free_bytes, total_bytes};
    }
};

void pool_becomes_the_default()
{
    rmm::mr::cuda_memory_resource cuda_mr;
    rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource> pool_mr{
        &cuda_mr, 1 << 20};
    rmm::mr::device_memory_resource *before =
        rmm::mr::set_current_device_resource(&pool_mr);
    rmm::mr::device_memory_resource *mr = rmm::mr::get_current_device_resource();

    REQUIRE(mr == &pool_mr && pool_mr.get_upstream() == &cuda_mr);
    const rmm::device_buffer buffer(16, rmm::cuda_stream_default);
    auto *of_buffer = buffer.memory_resource();
    REQUIRE(of_buffer == mr && pool_mr.pool_size() >= 1 << 20);
    REQUIRE(rmm::mr::set_current_device_resource(before) == &pool_mr);
}

void each_device_has_its_pool()
{
    using pool = rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource>;
    rmm::mr::cuda_memory_resource cuda_mr;
    std::vector<std::unique_ptr<pool>> per_device_pools;
    int count = 0;

    RMM_CUDA_TRY(hipGetDeviceCount(&count));
    REQUIRE(count == 2);
    for (int i = 0; i < count; i++) {
        RMM_CUDA_TRY(hipSetDevice(i));
        per_device_pools.push_back(std::make_unique<pool>(&cuda_mr, 1 << 20));
        rmm::mr::set_per_device_resource(
            rmm::cuda_device_id{i}, per_device_pools.back().get());
    }
    {
        RMM_CUDA_TRY(hipSetDevice(0));
        rmm::device_buffer buf_a(16, rmm::cuda_stream_view{});
        {
            RMM_CUDA_TRY(hipSetDevice(1));
            rmm::device_buffer buf_b(16, rmm::cuda_stream_view{});
            REQUIRE(buf_b.memory_resource() == per_device_pools[1].get());
        }
        RMM_CUDA_TRY(hipSetDevice(0));
        REQUIRE(buf_a.memory_resource() == per_device_pools[0].get());
    }
    for (int i = 0; i < count; i++) {
        rmm::mr::set_per_device_resource(rmm::cuda_device_id{i}, nullptr);
    }
}

void own_resource_is_used_everywhere()
{
    hip_resource own;
    hipStream_t stream = nullptr;
    RMM_CUDA_TRY(hipStreamCreate(&stream));
    const rmm::cuda_stream_view s{stream};

    {
        rmm::device_buffer b2{100, s, &own};
        rmm::device_uvector<std::int32_t> v2{100, s, &own};
        rmm::device_scalar<std::int32_t> a{s, &own};
        REQUIRE(own.allocations == 3 && own.last_stream == stream);
        a.set_value(42, s);
        REQUIRE(a.value(s) == 42);
        const std::int32_t next = 43;
        a.set_value_async(next, s);
        REQUIRE(a.value(s) == 43);
        v2.set_element(7, next, s);
        REQUIRE(v2.element(7, s) == next);
    }
    {
        rmm::mr::pool_memory_resource<hip_resource> pool{&own, 1 << 20, 1 << 20};
        void *ptr = pool.allocate(1000, s);
        REQUIRE(own.allocations == 4);
        pool.deallocate(ptr, 1000, s);
        REQUIRE(own.get_mem_info(s).second > 0);
    }
    RMM_CUDA_TRY(hipStreamDestroy(stream));
}

void each_class_of_resources_allocates()
{
    rmm::mr::cuda_memory_resource cuda_mr;
    rmm::mr::managed_memory_resource managed_mr;
    rmm::mr::cuda_async_memory_resource async_mr{1 << 20};
    rmm::mr::pool_memory_resource<rmm::mr::managed_memory_resource> pool_mr{
        &managed_mr, 1 << 20};
    rmm::mr::arena_memory_resource<rmm::mr::cuda_memory_resource> arena_mr{
        &cuda_mr, 8 << 20};
    rmm::mr::fixed_size_memory_resource<rmm::mr::cuda_memory_resource> fixed_mr{
        &cuda_mr, 4096};
    rmm::mr::binning_memory_resource<
        rmm::mr::pool_memory_resource<rmm::mr::managed_memory_resource>>
        bins_mr{&pool_mr, 10, 12};
    auto owner = rmm::mr::make_owning_wrapper<rmm::mr::pool_memory_resource>(
        std::make_shared<rmm::mr::cuda_memory_resource>(), 1 << 20);
    rmm::mr::device_memory_resource *const all[] = {&cuda_mr, &managed_mr, &async_mr,
                                                    &pool_mr, &arena_mr,   &fixed_mr,
                                                    &bins_mr, owner.get()};

    for (rmm::mr::device_memory_resource *mr : all) {
        void *ptr = mr->allocate(4000, rmm::cuda_stream_per_thread);
        RMM_CUDA_TRY(hipMemsetAsync(ptr, 1, 4000, hipStreamPerThread));
        mr->deallocate(ptr, 4000, rmm::cuda_stream_per_thread);
        ptr = mr->allocate(4000);
        mr->deallocate(ptr, 4000);
        REQUIRE(mr->is_equal(*mr));
    }
}

void host_memory_has_its_interface()
{
    rmm::mr::pinned_memory_resource pinned;
    rmm::mr::new_delete_resource heap;
    rmm::mr::host_memory_resource *const all[] = {&pinned, &heap};

    for (rmm::mr::host_memory_resource *mr : all) {
        void *ptr = mr->allocate(1000);
        static_cast<char *>(ptr)[999] = 1;
        mr->deallocate(ptr, 1000);
        ptr = mr->allocate(1000, 64);
        REQUIRE(reinterpret_cast<std::uintptr_t>(ptr) % 64 == 0);
        mr->deallocate(ptr, 1000, 64);
    }
}

} /* namespace */

int main()
{
    pool_becomes_the_default();
    each_device_has_its_pool();
    own_resource_is_used_everywhere();
    each_class_of_resources_allocates();
    host_memory_has_its_interface();
    return 0;
}
