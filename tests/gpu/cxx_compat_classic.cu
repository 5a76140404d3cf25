/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thrust and kernels with RMM's names of 0.15 to 26.04, on a real GPU: every form of exec_policy
 * that the documents show, thrust_allocator, device_vector, and a class of the program as the
 * resource of all. Runs as gpu.cxx_compat_classic.
 */
#define RMM_CXX_MAIN
#include "cxx/harness.hpp"

#include <cstdint>
#include <utility>

#include <rmm/device_scalar.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/device_vector.hpp>
#include <rmm/exec_policy.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/per_device_resource.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>
#include <rmm/mr/device/thrust_allocator_adaptor.hpp>
#include <rmm/thrust_rmm_allocator.h>

#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/uninitialized_fill.h>

namespace
{

constexpr int count = 100000;

/* The older form of do_allocate(). */
class counted : public rmm::mr::device_memory_resource
{
  public:
    int calls = 0, live = 0;

  private:
    void *do_allocate(std::size_t bytes, cudaStream_t stream) override
    {
        calls++;
        live++;
        return pool_.allocate(bytes, stream);
    }
    void do_deallocate(void *p, std::size_t bytes, cudaStream_t stream) override
    {
        live--;
        pool_.deallocate(p, bytes, stream);
    }
    rmm::mr::cuda_memory_resource cuda_;
    rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource> pool_{&cuda_, 1 << 24};
};

__global__ void add_one(int *numbers, int size)
{
    const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);

    if (at < size) {
        numbers[at]++;
    }
}

/* Descending numbers sorted, and their sum. */
template <class Policy> long sorted_sum(const Policy &policy, int *numbers)
{
    thrust::sequence(policy, numbers, numbers + count, count, -1);
    thrust::sort(policy, numbers, numbers + count);
    return thrust::reduce(policy, numbers, numbers + count, 0L);
}

constexpr long sum = static_cast<long>(count) * (count + 1) / 2;

} /* namespace */

CASE(algorithms_take_their_memory_from_the_default)
{
    counted mr;
    rmm::mr::device_memory_resource *before = rmm::mr::set_current_device_resource(&mr);
    {
        rmm::cuda_stream stream;
        cudaStream_t handle = nullptr;
        rmm::device_uvector<int> numbers(count, handle);

        CHECK(sorted_sum(rmm::exec_policy(handle)->on(handle), numbers.data()) == sum);
        CHECK(sorted_sum(rmm::exec_policy(0)->on(0), numbers.data()) == sum);
        CHECK(sorted_sum(rmm::exec_policy(), numbers.data()) == sum);
        CHECK(sorted_sum(rmm::exec_policy(stream), numbers.data()) == sum);
        CHECK(sorted_sum(rmm::exec_policy(stream.view(), &mr), numbers.data()) == sum);
        CHECK(sorted_sum(rmm::exec_policy_nosync(stream), numbers.data()) == sum);
        CHECK(numbers.back_element(stream) == count && mr.calls > 1 && mr.live == 1);
        thrust::uninitialized_fill(
            thrust::cuda::par.on(handle), numbers.begin(), numbers.end(), 7);
        CHECK(numbers.element(5, handle) == 7);
    }
    CHECK(rmm::mr::set_current_device_resource(before) == &mr && mr.live == 0);
}

CASE(vectors_of_thrust_take_theirs_from_a_resource)
{
    counted mr;
    {
        rmm::device_vector<int> numbers(
            16, rmm::mr::thrust_allocator<int>(rmm::cuda_stream_default, &mr));
        thrust::device_vector<int, rmm::mr::thrust_allocator<int>> another(16, 7);
        rmm::device_vector<int> copy(numbers);

        numbers.resize(count);
        numbers = another;
        CHECK(numbers.size() == 16 && numbers[15] == 7 && copy.size() == 16);
        CHECK(mr.calls >= 2);
    }
    CHECK(mr.live == 0);
}

CASE(kernels_take_streams_of_every_kind)
{
    counted mr;
    rmm::cuda_stream stream;
    rmm::device_scalar<std::int32_t> one(stream, &mr);

    one.set_value(1, stream);
    add_one<<<1, 1, 0, stream.value()>>>(one.data(), 1);
    add_one<<<1, 1, 0, stream.view()>>>(one.data(), 1);
    CHECK(one.value(stream) == 3);
    stream.synchronize();
}
