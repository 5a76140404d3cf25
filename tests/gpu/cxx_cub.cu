/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUB's device-wide algorithms on a real GPU, with input, output and temporary storage from
 * resources of rmm/rmm.hpp: results are right for each kind of resource, and temporary storage
 * may be freed as soon as the algorithm is queued. Compiled as C++17 and as C++20.
 */
#define RMM_CXX_MAIN
#include "cxx/harness.hpp"

#include <algorithm>
#include <numeric>

#include <cub/device/device_histogram.cuh>
#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_select.cuh>
#include <cuda/std/functional>
#if CCCL_VERSION >= 3004000
#include <cuda/std/execution>
#endif

namespace
{

constexpr int count = 200000;

const char *const specs[] = {
    "cuda",  "pool",    "pool_virtual:64MiB", "arena:64MiB",
    "async", "managed", "binning:64MiB",      "statistics+pool:64MiB",
};

/* Not sorted, each number from 0 to count - 1 once: 7919 and count have no common divisor. */
std::vector<int> shuffled()
{
    std::vector<int> numbers(count);

    for (int i = 0; i < count; i++) {
        numbers[i] = int((long)i * 7919 % count);
    }
    return numbers;
}

/* A stream, a resource, and CUB's protocol: ask for the size, then call with that storage. */
struct device {
    rmmc::stream_view stream;
    const rmmc::resource &mr;

    template <class Algorithm> void run(Algorithm algorithm) const
    {
        std::size_t bytes = 0;

        CHECK(algorithm(nullptr, bytes) == cudaSuccess);
        rmmc::device_buffer storage(bytes, stream, mr);
        CHECK(algorithm(storage.data(), bytes) == cudaSuccess);
    } /* freed in stream order, behind the algorithm */

    template <class T> rmmc::device_array<T> array(std::size_t size) const
    {
        return rmmc::device_array<T>(size, stream, mr);
    }
    rmmc::device_array<int> array(const std::vector<int> &values) const
    {
        return rmmc::device_array<int>(values, stream, mr);
    }
};

void reduces(const device &gpu)
{
    rmmc::device_array<int> values = gpu.array(shuffled());
    rmmc::device_scalar<int> largest(gpu.stream, gpu.mr);
    rmmc::device_scalar<long> sum(gpu.stream, gpu.mr);

    gpu.run([&](void *storage, std::size_t &bytes) {
        return cub::DeviceReduce::Max(
            storage, bytes, values.data(), largest.data(), count, gpu.stream.value());
    });
    gpu.run([&](void *storage, std::size_t &bytes) {
        return cub::DeviceReduce::Sum(
            storage, bytes, values.data(), sum.data(), count, gpu.stream.value());
    });
    CHECK(largest.value(gpu.stream) == count - 1);
    CHECK(sum.value(gpu.stream) == (long)count * (count - 1) / 2);
}

void scans(const device &gpu)
{
    std::vector<int> ones(count, 1), expected(count);
    rmmc::device_array<int> values = gpu.array(ones);
    rmmc::device_array<int> sums = gpu.array<int>(count);

    gpu.run([&](void *storage, std::size_t &bytes) {
        return cub::DeviceScan::ExclusiveSum(
            storage, bytes, values.data(), sums.data(), count, gpu.stream.value());
    });
    std::iota(expected.begin(), expected.end(), 0);
    CHECK(sums.to_vector(gpu.stream) == expected);
}

void sorts(const device &gpu)
{
    std::vector<int> expected(count);
    rmmc::device_array<int> values = gpu.array(shuffled());
    rmmc::device_array<int> sorted = gpu.array<int>(count);

    gpu.run([&](void *storage, std::size_t &bytes) {
        return cub::DeviceRadixSort::SortKeys(
            storage, bytes, values.data(), sorted.data(), count, 0, 32,
            gpu.stream.value());
    });
    gpu.run([&](void *storage, std::size_t &bytes) {
        return cub::DeviceMergeSort::SortKeys(
            storage, bytes, values.data(), count, cuda::std::less<int>(),
            gpu.stream.value());
    });
    std::iota(expected.begin(), expected.end(), 0);
    CHECK(sorted.to_vector(gpu.stream) == expected);
    CHECK(values.to_vector(gpu.stream) == expected);
}

struct is_even {
    __host__ __device__ bool operator()(int value) const
    {
        return value % 2 == 0;
    }
};

void selects(const device &gpu)
{
    rmmc::device_array<int> values = gpu.array(shuffled());
    rmmc::device_array<int> chosen = gpu.array<int>(count);
    rmmc::device_scalar<int> chosen_count(gpu.stream, gpu.mr);

    gpu.run([&](void *storage, std::size_t &bytes) {
        return cub::DeviceSelect::If(
            storage, bytes, values.data(), chosen.data(), chosen_count.data(), count,
            is_even(), gpu.stream.value());
    });
    CHECK(chosen_count.value(gpu.stream) == count / 2);
    std::vector<int> found = chosen.to_vector(gpu.stream);
    found.resize(count / 2);
    CHECK(std::all_of(found.begin(), found.end(), is_even()));
}

void encodes_runs(const device &gpu)
{
    std::vector<int> tens(count);
    rmmc::device_array<int> runs = gpu.array<int>(count),
                            lengths = gpu.array<int>(count);
    rmmc::device_scalar<int> run_count(gpu.stream, gpu.mr);

    for (int i = 0; i < count; i++) {
        tens[i] = i / 10;
    }
    rmmc::device_array<int> values = gpu.array(tens);
    gpu.run([&](void *storage, std::size_t &bytes) {
        return cub::DeviceRunLengthEncode::Encode(
            storage, bytes, values.data(), runs.data(), lengths.data(),
            run_count.data(), count, gpu.stream.value());
    });
    CHECK(run_count.value(gpu.stream) == count / 10);
    CHECK(lengths.element(count / 10 - 1, gpu.stream) == 10);
}

void counts_in_a_histogram(const device &gpu)
{
    rmmc::device_array<int> values = gpu.array(shuffled());
    rmmc::device_array<int> bins = gpu.array<int>(4);

    gpu.run([&](void *storage, std::size_t &bytes) {
        return cub::DeviceHistogram::HistogramEven(
            storage, bytes, values.data(), bins.data(), 5, 0, count, count,
            gpu.stream.value());
    });
    CHECK(bins.to_vector(gpu.stream) == std::vector<int>(4, count / 4));
}

void reduces_segments(const device &gpu)
{
    rmmc::device_array<int> values = gpu.array(std::vector<int>(count, 1));
    rmmc::device_array<int> offsets = gpu.array({0, 10, 30, count});
    rmmc::device_array<int> sums = gpu.array<int>(3);

    gpu.run([&](void *storage, std::size_t &bytes) {
        return cub::DeviceSegmentedReduce::Sum(
            storage, bytes, values.data(), sums.data(), 3, offsets.data(),
            offsets.data() + 1, gpu.stream.value());
    });
    CHECK(sums.to_vector(gpu.stream) == std::vector<int>({10, 20, count - 30}));
}

void run_all_of_cub(const device &gpu)
{
    reduces(gpu);
    scans(gpu);
    sorts(gpu);
    selects(gpu);
    encodes_runs(gpu);
    counts_in_a_histogram(gpu);
    reduces_segments(gpu);
}

} /* namespace */

CASE(algorithms_of_cub_run_in_memory_of_each_resource)
{
    for (const char *spec : specs) {
        rmmc::resource mr = rmmc::resource_from_spec(spec);
        rmmc::stream stream;

        std::printf("%s\n", spec);
        run_all_of_cub({stream, mr});
        CHECK(mr.get_stats().current_bytes == 0 && mr.get_stats().total_count > 20);
        CHECK(mr.get_stats().invalid_free_count == 0);
    }
}

/* The pool hands storage that one stream frees to algorithms of the other. */
CASE(algorithms_on_two_streams_share_a_small_pool)
{
    rmmc::resource pool = rmmc::resource_from_spec("pool:16MiB:16MiB");
    rmmc::stream streams[2];

    for (int i = 0; i < 40; i++) {
        sorts({streams[i % 2], pool});
        reduces({streams[i % 3 % 2], pool});
    }
    CHECK(pool.get_stats().current_bytes == 0);
}

#if CCCL_VERSION >= 3004000
CASE(cub_takes_storage_from_the_resource_of_its_environment)
{
    rmmc::statistics_adaptor<> counted{rmmc::pool_resource(rmmc::cuda_resource())};
    rmmc::stream stream;
    {
        const device gpu{stream, counted};
        rmmc::device_array<int> values = gpu.array(shuffled());
        rmmc::device_scalar<long> sum(stream, counted);
        std::uint64_t before = counted.counters().total_count;
        auto memory =
            cuda::std::execution::prop{cuda::mr::get_memory_resource_t{}, counted};
        auto environment =
            cuda::std::execution::env{cuda::stream_ref{stream.value()}, memory};

        CHECK(
            cub::DeviceReduce::Sum(values.data(), sum.data(), count, environment) ==
            cudaSuccess);
        CHECK(sum.value(stream) == (long)count * (count - 1) / 2);
        CHECK(counted.counters().total_count == before + 1);
    }
    CHECK(counted.counters().current_bytes == 0);
}
#endif
