/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled with the macro that -fgpu-default-stream=per-thread defines: stream 0 is the calling
 * thread's. */
#include "program.hpp"

#include <thread>
#include <vector>

#include <rmm/cuda_stream_view.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>

#ifndef HIP_API_PER_THREAD_DEFAULT_STREAM
#error "the compiler was not asked for a default stream of each thread"
#endif

int main()
{
    rmm::mr::cuda_memory_resource cuda;
    rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource> pool{&cuda, 1 << 20};
    std::vector<std::thread> threads;

    REQUIRE(rmm::cuda_stream_default.is_per_thread_default());
    REQUIRE(!rmm::cuda_stream_default.is_default());
    for (int i = 0; i < 8; i++) {
        threads.emplace_back([&pool, i] {
            for (int round = 0; round < 100; round++) {
                rmm::device_uvector<int> values(100, rmm::cuda_stream_default, &pool);
                values.set_element_async(5, i, rmm::cuda_stream_default);
                REQUIRE(values.element(5, rmm::cuda_stream_default) == i);
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    return 0;
}
