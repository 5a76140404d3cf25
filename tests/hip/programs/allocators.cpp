/* SPDX-License-Identifier: Apache-2.0 */
/* Allocators over a resource: of a stream at each call, and of one stream. */
#include "program.hpp"

#include <rmm/cuda_stream.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/per_device_resource.hpp>
#include <rmm/mr/device/polymorphic_allocator.hpp>

int main()
{
    const rmm::cuda_stream stream;
    rmm::mr::cuda_memory_resource cuda;
    rmm::mr::polymorphic_allocator<int> stream_alloc;
    const rmm::mr::polymorphic_allocator<int> other(&cuda);

    REQUIRE(stream_alloc.resource() == rmm::mr::get_current_device_resource());
    REQUIRE(other.resource() == &cuda);
    int *ptr = stream_alloc.allocate(100, stream);
    stream_alloc.deallocate(ptr, 100, stream);

    auto adapted = rmm::mr::make_stream_allocator_adaptor(stream_alloc, stream);
    ptr = adapted.allocate(100);
    REQUIRE(ptr != nullptr && adapted.stream() == stream.view());
    adapted.deallocate(ptr, 100);
    return 0;
}
