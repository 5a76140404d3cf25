/* SPDX-License-Identifier: Apache-2.0 */
/* A program for RMM 26.10, which compiles with that as well: streams are cuda::stream_ref,
 * resources those of cuda::mr. */
#if __has_include(<cuda/stream>)
#include <cuda/memory_resource>
#include <cuda/stream>
#endif
#include <cstdio>
#include <functional>
#include <vector>

#include <rmm/aligned.hpp>
#include <rmm/cuda_stream.hpp>
#include <rmm/cuda_stream_pool.hpp>
#include <rmm/device_buffer.hpp>
#include <rmm/device_scalar.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/error.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/callback_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/failure_callback_resource_adaptor.hpp>
#include <rmm/mr/limiting_resource_adaptor.hpp>
#include <rmm/mr/per_device_resource.hpp>
#include <rmm/mr/polymorphic_allocator.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>
#include <rmm/resource_ref.hpp>
#include <rmm/version_config.hpp>

#if RMM_VERSION_LT(26, 10, 0)
#error "the headers of an older RMM"
#endif

namespace program
{

const cuda::stream_ref default_stream{cudaStream_t{nullptr}};

/* A resource of the program. */
class counting_resource
{
  public:
    explicit counting_resource(int *count) : count_(count)
    {
    }
    void *allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment)
    {
        ++*count_;
        return upstream_.allocate(stream, bytes, alignment);
    }
    void deallocate(
        cuda::stream_ref stream, void *ptr, std::size_t bytes,
        std::size_t alignment) noexcept
    {
        --*count_;
        upstream_.deallocate(stream, ptr, bytes, alignment);
    }
    void *allocate_sync(std::size_t bytes, std::size_t alignment)
    {
        return upstream_.allocate_sync(bytes, alignment);
    }
    void deallocate_sync(void *ptr, std::size_t bytes, std::size_t alignment) noexcept
    {
        upstream_.deallocate_sync(ptr, bytes, alignment);
    }
    bool operator==(const counting_resource &other) const noexcept
    {
        return count_ == other.count_;
    }
    bool operator!=(const counting_resource &other) const noexcept
    {
        return count_ != other.count_;
    }
    friend void
    get_property(const counting_resource &, cuda::mr::device_accessible) noexcept
    {
    }

  private:
    rmm::mr::cuda_memory_resource upstream_;
    int *count_;
};

/* The number of live blocks while an array of 100 integers is there. */
int blocks_of_an_array(
    cuda::stream_ref stream, cuda::mr::any_resource<cuda::mr::device_accessible> mr,
    const int &live)
{
    rmm::device_uvector<int> numbers(100, stream, mr);
    rmm::device_buffer copy(numbers.data(), 400, stream, mr);

    numbers.set_element_to_zero_async(3, stream);
    copy.resize(800, stream);
    copy.shrink_to_fit(numbers.stream());
    return numbers.element(3, stream) == 0 && copy.stream() == stream ? live : -1;
}

bool streams_and_containers()
{
    rmm::cuda_stream owned{rmm::cuda_stream::flags::non_blocking};
    const cuda::stream_ref stream = owned;
    rmm::cuda_stream_pool pool{2};
    const std::vector<cuda::stream_ref> streams{
        pool.get_stream(0), pool.get_stream(1), stream, default_stream};
    const int seven = 7;
    rmm::device_scalar<int> scalar{seven, stream};

    scalar.set_stream(streams[0]);
    scalar.set_value_to_zero_async(stream);
    owned.synchronize();
    pool.get_stream(0).sync();
    return pool.get_stream(2).get() == streams[0].get() && stream != default_stream &&
           scalar.value(stream) == 0 && scalar.stream() == streams[0] &&
           rmm::align_up(1, 256) == 256;
}

bool resources_over_resources()
{
    int count = 0;
    rmm::mr::pool_memory_resource pool{counting_resource{&count}, 1 << 20, 1 << 22};
    rmm::mr::statistics_resource_adaptor statistics{pool};
    rmm::mr::limiting_resource_adaptor limiter{statistics, 1000};
    rmm::device_async_resource_ref mr = limiter;
    void *ptr = mr.allocate(default_stream, 512, 256);
    bool is_refused = false;

    try {
        (void)mr.allocate(default_stream, 512, 16);
    } catch (const rmm::out_of_memory &) {
        is_refused = true;
    }
    const bool is_counted = statistics.get_bytes_counter().value == 512 && count == 1;
    mr.deallocate(default_stream, ptr, 512, 256);
    return is_refused && is_counted &&
           blocks_of_an_array(default_stream, pool, count) == 1;
}

bool callbacks_and_allocators()
{
    rmm::mr::cuda_memory_resource cuda_mr;
    rmm::mr::allocate_callback_t allocate = [&](std::size_t bytes,
                                                cuda::stream_ref stream, void *) {
        return cuda_mr.allocate(stream, bytes);
    };
    rmm::mr::deallocate_callback_t deallocate = [&](void *ptr, std::size_t bytes,
                                                    cuda::stream_ref stream, void *) {
        cuda_mr.deallocate(stream, ptr, bytes);
    };
    rmm::mr::callback_memory_resource mr{allocate, deallocate};
    rmm::mr::binning_memory_resource bins{mr, 10, 12};
    rmm::mr::arena_memory_resource arena{mr, 1 << 24};
    rmm::mr::failure_callback_resource_adaptor<rmm::out_of_memory> retried{
        arena, [](std::size_t, void *) { return false; }, nullptr};
    rmm::mr::polymorphic_allocator<double> allocator{bins};
    double *ptr = allocator.allocate(10, default_stream);

    allocator.deallocate(ptr, 10, default_stream);
    auto adapted = rmm::mr::stream_allocator_adaptor(allocator, default_stream);
    adapted.deallocate(adapted.allocate(3), 3);
    const cuda::stream_ref stream = adapted.stream();
    const rmm::device_buffer buffer{1000, stream, retried};
    return buffer.size() == 1000;
}

bool defaults()
{
    int count = 0;
    cuda::mr::any_resource<cuda::mr::device_accessible> before =
        rmm::mr::set_current_device_resource(counting_resource{&count});
    const bool is_used =
        blocks_of_an_array(
            default_stream, rmm::mr::get_current_device_resource_ref(), count) == 2;

    rmm::mr::set_current_device_resource(before);
    return is_used && count == 0;
}

} /* namespace program */

int main()
{
    using namespace program;

    std::printf(
        "RMM %s: %d %d %d %d\n", RMM_VERSION, streams_and_containers(),
        resources_over_resources(), callbacks_and_allocators(), defaults());
}
