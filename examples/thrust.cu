/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thrust over a pool: the vector and the temporary memory of the algorithms are the pool's, in the
 * order of one stream. Needs a GPU and nvcc: nvcc -std=c++17 thrust.cu -lrmm-c
 */
#include <cstdio>

#include <rmm/rmm.hpp>

#include <rmm/cxx/thrust.hpp>

#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>

int main()
{
    try {
        rmmc::pool_resource pool{rmmc::cuda_resource()};
        rmmc::stream stream;
        rmmc::exec_policy policy(stream, pool);

        rmmc::device_vector<int> values(
            1000, rmmc::thrust_allocator<int>(stream, pool));
        thrust::sequence(policy, values.rbegin(), values.rend()); /* 999, 998, ... 0 */
        thrust::sort(policy, values.begin(), values.end());
        int sum = thrust::reduce(policy, values.begin(), values.end());
        std::printf("the sum of 0 to 999 is %d\n", sum);
        std::printf(
            "allocations of the pool: %llu\n",
            (unsigned long long)pool.get_stats()
                .total_count); /* more than the vector */
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
