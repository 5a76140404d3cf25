/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thrust over resources of rmm/rmm.hpp, on a real GPU: vectors and temporary memory are a
 * pool's, results are right, nothing stays allocated. Runs as gpu.cxx_thrust, and once more as
 * gpu.cxx_thrust_ptds, compiled with per-thread default streams.
 */
#define RMM_CXX_MAIN
#include "cxx/harness.hpp"

#include <cstdint>
#include <limits>
#include <new>
#include <utility>

#include <rmm/cxx/thrust.hpp>
#include <rmm/mr/thrust_allocator_adaptor.hpp>

#include <thrust/memory.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>

namespace
{

constexpr int count = 100000;

/* A pool that is the default resource, and has nothing left at the end. */
struct counted_pool {
    rmmc::statistics_adaptor<> mr{rmmc::pool_resource(rmmc::cuda_resource())};
    rmmc::resource before = rmmc::set_current_device_resource(mr);

    void check_end()
    {
        CHECK(mr.counters().total_count > 0);
        CHECK(mr.counters().current_bytes == 0);
        CHECK(mr.get_stats().invalid_free_count == 0);
    }
    ~counted_pool()
    {
        rmmc::set_current_device_resource(before);
    }
};

struct alignas(1024) wide {
    char bytes[1024];
};

template <class Ints, class Wides> void check_requests(Ints ints, Wides wides)
{
    std::vector<std::pair<typename Ints::pointer, typename Wides::pointer>> blocks;

    for (int i = 0; i < 8; i++) { /* ints put what follows at 256 bytes */
        blocks.emplace_back(ints.allocate(1), wides.allocate(1));
        CHECK(
            reinterpret_cast<std::uintptr_t>(
                thrust::raw_pointer_cast(blocks.back().second)) %
                alignof(wide) ==
            0);
    }
    for (const auto &[number, block] : blocks) {
        ints.deallocate(number, 1);
        wides.deallocate(block, 1);
    }
    THROWS(
        std::bad_array_new_length,
        wides.allocate(std::numeric_limits<std::size_t>::max() / sizeof(wide) + 1));
}

} /* namespace */

CASE(thrust_sorts_and_reduces_in_memory_of_a_pool)
{
    counted_pool pool;
    rmmc::stream stream;
    {
        rmmc::device_vector<int> values(
            count, rmmc::thrust_allocator<int>(stream, pool.mr));
        rmmc::exec_policy policy(stream, pool.mr);
        long expected = (long)count * (count - 1) / 2;

        thrust::sequence(policy, values.rbegin(), values.rend());
        thrust::sort(policy, values.begin(), values.end());
        CHECK(thrust::reduce(policy, values.begin(), values.end(), 0L) == expected);
        CHECK(values[0] == 0 && values[count - 1] == count - 1);
        rmmc::device_vector<int> copy = values;
        CHECK(copy.get_allocator() == values.get_allocator());
        rmmc::device_vector<int> moved = std::move(copy);
        copy = moved; /* allocates again */
        CHECK(copy.get_allocator() == moved.get_allocator());
        thrust::sort(
            rmmc::exec_policy_nosync(stream, pool.mr), copy.begin(), copy.end());
        stream.synchronize();
    }
    CHECK(pool.mr.counters().total_count > 4); /* temporary memory too */
    pool.check_end();
}

/* What the kernel of a vector's default stream writes, the vector's copy reads. */
CASE(thrust_agrees_with_the_library_on_the_default_stream)
{
    counted_pool pool;
    {
        rmmc::device_vector<int> values(count, 7, rmmc::thrust_allocator<int>());

        CHECK(
            thrust::reduce(rmmc::exec_policy(), values.begin(), values.end()) ==
            7 * count);
    }
    pool.check_end();
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
    CHECK(rmmc::stream_view().is_per_thread_default());
    CHECK(rmmc::stream_view(rmm_stream_t(0)).is_per_thread_default());
#else
    CHECK(rmmc::stream_view().is_default());
#endif
}

/* Both the allocator of rmm/rmm.hpp and that with RMM's name. */
CASE(thrust_allocators_align_as_their_type_and_refuse_overflow)
{
    counted_pool pool;

    check_requests(rmmc::thrust_allocator<int>(), rmmc::thrust_allocator<wide>());
    check_requests(rmm::mr::thrust_allocator<int>(), rmm::mr::thrust_allocator<wide>());
    pool.check_end();
}
