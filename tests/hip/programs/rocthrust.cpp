/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rocThrust's vectors and algorithms over RMM's resources. The stand-in of HIP's library runs no
 * kernel: what is shown is that this compiles, that temporary memory is that of the resource, and
 * that the kernels are launched on the stream of the policy.
 */
#include "program.hpp"

#include <cstddef>

#include <hip/hip_runtime.h>
#include <thrust/copy.h>
#include <thrust/execution_policy.h>
#include <thrust/fill.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/uninitialized_fill.h>

#include <rmm/cuda_stream.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/device_vector.hpp>
#include <rmm/exec_policy.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/per_device_resource.hpp>
#include <rmm/mr/device/statistics_resource_adaptor.hpp>
#include <rmm/mr/device/thrust_allocator_adaptor.hpp>

#include <rmm/cxx/thrust.hpp>
#include <rmm/rmm.hpp>

extern "C" unsigned long hip_standin_launches(hipStream_t *stream_out);

namespace
{

using upstream = rmm::mr::cuda_memory_resource;
using counted = rmm::mr::statistics_resource_adaptor<upstream>;

/* The call launches kernels, all on this stream as far as is seen. */
template <class Call> void launches_on(hipStream_t stream, Call call)
{
    const unsigned long before = hip_standin_launches(nullptr);
    hipStream_t last = nullptr;

    call();
    REQUIRE(hip_standin_launches(&last) > before);
    REQUIRE(last == stream);
}

__global__ void add_one(int *values, std::size_t count)
{
    const std::size_t at = blockIdx.x * blockDim.x + threadIdx.x;

    if (at < count) {
        values[at]++;
    }
}

/* The same without RMM's names. */
void library_has_policies_of_its_own()
{
    const rmmc::statistics_adaptor mr{rmmc::cuda_resource()};
    const rmmc::stream stream;
    hipStream_t handle = rmm::cuda_stream_view(stream.value());
    rmmc::device_vector<int> values(
        1000, 1, rmmc::thrust_allocator<int>(stream.view(), mr));

    launches_on(handle, [&] {
        thrust::sort(rmmc::exec_policy(handle, mr), values.begin(), values.end());
    });
    launches_on(nullptr, [&] {
        thrust::sort(
            rmmc::exec_policy_nosync(rmmc::stream_view(), mr), values.begin(),
            values.end());
    });
}

void kernels_follow_the_stream(rmm::cuda_stream_view s)
{
    rmm::device_vector<int> vector(1000, 1);
    rmm::device_uvector<int> values(1000, s);

    launches_on(s, [&] { add_one<<<4, 256, 0, s.value()>>>(values.data(), 1000); });
    launches_on(s, [&] {
        thrust::uninitialized_fill(
            thrust::hip::par.on(s.value()), values.begin(), values.end(), 0);
    });
    /* as hipMM's documents have it */
    launches_on(s, [&] {
        thrust::uninitialized_fill(
            thrust::cuda::par.on(s.value()), values.begin(), values.end(), 0);
    });
    launches_on(s, [&] {
        thrust::sequence(rmm::exec_policy(s), values.begin(), values.end());
    });
    launches_on(s, [&] {
        thrust::transform(
            rmm::exec_policy_nosync(s), values.begin(), values.end(), vector.begin(),
            [] __device__(int value) { return 2 * value; });
    });
}

void temporary_memory_is_the_resources(const counted &mr, rmm::cuda_stream_view s)
{
    rmm::device_vector<int> vector(1000, 1);
    rmm::device_uvector<int> values(1000, s);
    const auto before = mr.get_allocations_counter();

    launches_on(
        s, [&] { thrust::sort(rmm::exec_policy(s), vector.begin(), vector.end()); });
    launches_on(s, [&] {
        (void)thrust::reduce(rmm::exec_policy(s), values.begin(), values.end());
    });
    launches_on(s, [&] {
        thrust::inclusive_scan(
            rmm::exec_policy_nosync(s), values.begin(), values.end(), values.begin());
    });
    REQUIRE(mr.get_allocations_counter().total >= before.total + 3);
    REQUIRE(mr.get_allocations_counter().value == before.value);
}

void policies_and_allocators_take_a_resource(rmm::cuda_stream_view s)
{
    upstream cuda;
    counted other{&cuda};
    rmm::device_uvector<int> values(1000, s);

    launches_on(s, [&] {
        thrust::sort(rmm::exec_policy(s, &other), values.begin(), values.end());
    });
    REQUIRE(other.get_allocations_counter().total > 0);
    rmm::mr::thrust_allocator<int> allocator(s, &other);
    thrust::device_ptr<int> ptr = allocator.allocate(10);
    REQUIRE(allocator.stream() == s && other.get_allocations_counter().value == 1);
    REQUIRE(allocator.resource() == &other);
    allocator.deallocate(ptr, 10);
}

} /* namespace */

int main()
{
    RMM_CUDA_TRY(hipSetDevice(0));
    upstream cuda;
    counted mr{&cuda};
    rmm::mr::set_current_device_resource(&mr);
    {
        const rmm::cuda_stream stream;
        kernels_follow_the_stream(stream);
        temporary_memory_is_the_resources(mr, stream);
        policies_and_allocators_take_a_resource(stream);
    }
    REQUIRE(mr.get_allocations_counter().value == 0);
    rmm::mr::set_current_device_resource(nullptr);
    library_has_policies_of_its_own();
    return 0;
}
