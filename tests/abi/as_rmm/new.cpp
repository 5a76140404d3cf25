/* SPDX-License-Identifier: Apache-2.0 */
/* A program for RMM 26.06 to 26.10. */
#include <cstdio>
#include <rmm/cuda_stream.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/logger.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/per_device_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>

int main()
{
    rmm::mr::pool_memory_resource pool(rmm::mr::cuda_memory_resource(), 1 << 20);
    rmm::mr::set_current_device_resource(pool);
    rmm::cuda_stream stream;
    rmm::device_uvector<int> numbers(10, stream);

    numbers.set_element(9, 26, stream);
    rmm::default_logger().debug("%d", 1);
    std::printf("new %d\n", numbers.back_element(stream));
}
