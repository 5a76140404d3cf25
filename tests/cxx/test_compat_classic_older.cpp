/* SPDX-License-Identifier: Apache-2.0 */
/* What a program written for RMM 0.16 relies on that later versions define differently. */
#define RMM_COMPAT_VERSION 16
#define RMM_CXX_MAIN
#include "cxx/harness.hpp"

#include <cstddef>
#include <limits>

#include <rmm/device_buffer.hpp>
#include <rmm/device_scalar.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/device_memory_resource.hpp>
#include <rmm/mr/device/limiting_resource_adaptor.hpp>
#include <rmm/mr/device/per_device_resource.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>

namespace
{

/* Notes what it was asked for last. */
class noting_resource : public rmm::mr::device_memory_resource
{
  public:
    std::size_t allocated = 0, freed = 0;

  private:
    void *do_allocate(std::size_t bytes, rmm::cuda_stream_view stream) override
    {
        allocated = bytes;
        return cuda_.allocate(bytes, stream);
    }
    void
    do_deallocate(void *ptr, std::size_t bytes, rmm::cuda_stream_view stream) override
    {
        freed = bytes;
        cuda_.deallocate(ptr, bytes, stream);
    }

    rmm::mr::cuda_memory_resource cuda_;
};

CASE(containers_name_resource_and_stream_by_pointers)
{
    rmm::mr::cuda_memory_resource mr;
    const rmm::device_buffer buffer(100, 0, &mr);
    const rmm::device_uvector<int> vector(5, 0, &mr);
    auto *of_buffer = buffer.memory_resource();
    auto *of_vector = vector.memory_resource();
    cudaStream_t stream = buffer.stream();

    CHECK(of_buffer == &mr && of_vector == &mr);
    CHECK(stream == nullptr && vector.stream() == nullptr);
    CHECK(
        rmm::device_buffer().memory_resource() ==
        rmm::mr::get_current_device_resource());
}

CASE(a_resource_is_asked_for_multiples_of_8_bytes)
{
    noting_resource mr;
    void *ptr = mr.allocate(5);

    CHECK(mr.allocated == 8);
    mr.deallocate(ptr, 5);
    CHECK(mr.freed == 8);
    {
        const rmm::device_buffer buffer(13, 0, &mr);
        CHECK(mr.allocated == 16 && buffer.size() == 13);
    }
    CHECK(mr.freed == 16);
    THROWS(rmm::out_of_memory, mr.allocate(std::numeric_limits<std::size_t>::max()));
    CHECK(mr.allocated == std::numeric_limits<std::size_t>::max());
}

CASE(a_scalar_needs_neither_value_nor_stream)
{
    rmm::device_scalar<int> scalar;

    CHECK(scalar.data() != nullptr);
    scalar.set_value(7);
    CHECK(scalar.value() == 7);
}

CASE(an_assigned_buffer_takes_over_resource_and_stream)
{
    rmm::mr::cuda_memory_resource cuda;
    rmm::mr::limiting_resource_adaptor<rmm::mr::cuda_memory_resource> limited(
        &cuda, 4096);
    rmmc::stream stream;
    const char text[] = "what it holds";
    const rmm::device_buffer from(text, sizeof(text), stream.value(), &limited);
    rmm::device_buffer to, large(100, 0, &limited);
    char copy[sizeof(text)] = "";

    to = from;
    CHECK(to.memory_resource() == &limited && to.stream() == stream.value());
    CHECK(to.size() == sizeof(text) && to.data() != from.data());
    rmmc::stream_view(to.stream()).synchronize();
    CHECK(rmm_memcpy(copy, to.data(), sizeof(copy), stream.value()) == RMM_OK);
    CHECK(std::strcmp(copy, text) == 0);

    void *kept = large.data();
    large = from; /* it is enough, of an equal resource */
    CHECK(
        large.data() == kept && large.size() == sizeof(text) &&
        large.capacity() == 100);
    CHECK(large.stream() == stream.value());
    stream.synchronize();
}

CASE(names_of_that_version)
{
    using pool = rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource>;
    const auto bytes = rmm::mr::detail::available_device_memory();

    CHECK(bytes.first <= bytes.second && bytes.second != 0);
    CHECK(pool::allocation_alignment == 256);
    CHECK(rmm::detail::align_up(5, 8) == 8);
}

} /* namespace */
