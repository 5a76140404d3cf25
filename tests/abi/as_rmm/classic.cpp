/* SPDX-License-Identifier: Apache-2.0 */
/* A program for RMM 0.17 to 25.12. */
#include <cstdio>
#include <rmm/cuda_stream.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/per_device_resource.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>
#include <rmm/version_config.hpp>

#if defined(WANTED_MINOR) &&                                                           \
    (RMM_VERSION_MAJOR != 24 || RMM_VERSION_MINOR != WANTED_MINOR)
#error "find_package(rmm 24.06) did not say so"
#endif
#if RMM_VERSION_MAJOR > 26 || (RMM_VERSION_MAJOR == 26 && RMM_VERSION_MINOR > 4)
#error "the version of the other interface"
#endif

int main()
{
    rmm::mr::cuda_memory_resource cuda;
    rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource> pool(&cuda, 1 << 20);
    rmm::mr::device_memory_resource *before =
        rmm::mr::set_current_device_resource(&pool);
    {
        rmm::cuda_stream stream;
        rmm::device_uvector<int> numbers(10, stream);

        numbers.set_element(9, 24, stream);
        std::printf("classic %d\n", numbers.back_element(stream));
    }
    rmm::mr::set_current_device_resource(before);
}
