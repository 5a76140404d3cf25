/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thrust, CUB and CCCL over resources of rmm/rmm.hpp, on a real GPU: vectors and temporary
 * memory are a pool's, results are right, nothing stays allocated. Runs as gpu.cxx_thrust, and
 * once more as gpu.cxx_thrust_ptds, compiled with per-thread default streams.
 */
#include <cstdio>
#include <cstring>
#include <vector>

#include <rmm/cxx/thrust.hpp>
#include <rmm/rmm.hpp>
#include <rmm/sim.h>

#include <cub/device/device_reduce.cuh>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>

#define EXIT_SKIP 77
#define COUNT 100000

static int failures;

#define CHECK(condition)                                                               \
    do {                                                                               \
        if (!(condition)) {                                                            \
            std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                \
            failures++;                                                                \
        }                                                                              \
    } while (0)

static bool gpu_is_missing()
{
    try {
        (void)rmmc::device_count();
        return false;
    } catch (const rmmc::cuda_error &error) {
        std::printf("skipped: %s\n", error.what());
        return error.status() == RMM_ERR_NO_DEVICE;
    }
}

static void sorts_and_reduces(const rmmc::resource &mr, rmmc::stream_view stream)
{
    rmmc::device_vector<int> values(COUNT, rmmc::thrust_allocator<int>(stream, mr));
    rmmc::exec_policy policy(stream, mr);
    long expected = (long)COUNT * (COUNT - 1) / 2;

    thrust::sequence(policy, values.rbegin(), values.rend());
    thrust::sort(policy, values.begin(), values.end());
    CHECK(thrust::reduce(policy, values.begin(), values.end(), 0L) == expected);
    CHECK(values[0] == 0 && values[COUNT - 1] == COUNT - 1);
    rmmc::device_vector<int> copy = values;
    CHECK(copy.get_allocator() == values.get_allocator());
    thrust::sort(rmmc::exec_policy_nosync(stream, mr), copy.begin(), copy.end());
    stream.synchronize();
}

static void feeds_cub(const rmmc::resource &mr, rmmc::stream_view stream)
{
    rmmc::device_array<int> values(std::vector<int>(COUNT, 2), stream, mr);
    rmmc::device_scalar<int> sum(stream, mr);
    std::size_t bytes = 0;

    CHECK(
        cub::DeviceReduce::Sum(
            nullptr, bytes, values.data(), sum.data(), COUNT, stream.value()) ==
        cudaSuccess);
    rmmc::device_buffer temporary(bytes, stream, mr);
    CHECK(
        cub::DeviceReduce::Sum(
            temporary.data(), bytes, values.data(), sum.data(), COUNT,
            stream.value()) == cudaSuccess);
    CHECK(sum.value(stream) == 2 * COUNT);
}

/* What the kernel of a vector's default stream writes, the vector's copy reads. */
static void agrees_on_the_default_stream(const rmmc::resource &mr)
{
    rmmc::device_vector<int> values(COUNT, 7, rmmc::thrust_allocator<int>({}, mr));

    CHECK(
        thrust::reduce(rmmc::exec_policy({}, mr), values.begin(), values.end()) ==
        7 * COUNT);
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
    CHECK(rmmc::stream_view().is_per_thread_default());
    CHECK(rmmc::stream_view(rmm_stream_t(0)).is_per_thread_default());
#else
    CHECK(rmmc::stream_view().is_default());
#endif
}

int main()
{
    if (gpu_is_missing()) {
        return EXIT_SKIP;
    }
    CHECK(!rmm_sim_active());
    rmmc::pool_resource pool{rmmc::cuda_resource()};
    rmmc::statistics_adaptor counted(pool);
    rmmc::stream stream;
    rmmc::resource before = rmmc::set_current_device_resource(counted);

    sorts_and_reduces(counted, stream);
    feeds_cub(counted, stream);
    agrees_on_the_default_stream(rmmc::resource());
    CHECK(counted.counters().total_count > 8); /* temporary memory too */
    CHECK(counted.counters().current_bytes == 0);
    CHECK(counted.get_stats().invalid_free_count == 0);
    rmmc::set_current_device_resource(before);
    std::printf("%d failures\n", failures);
    return failures == 0 ? 0 : 1;
}
