/* SPDX-License-Identifier: Apache-2.0 */
/* RMM's header names over this library: streams, devices, containers, allocators, errors. */
#define RMM_CXX_MAIN
#include "cxx/failed_wait.hpp"
#include "cxx/harness.hpp"
#include "driver/sim/control.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <rmm/aligned.hpp>
#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream.hpp>
#include <rmm/cuda_stream_pool.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/aligned.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/device_buffer.hpp>
#include <rmm/device_scalar.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/callback_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/limiting_resource_adaptor.hpp>
#include <rmm/mr/managed_memory_resource.hpp>
#include <rmm/mr/pinned_host_memory_resource.hpp>
#include <rmm/mr/polymorphic_allocator.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/mr/tracking_resource_adaptor.hpp>
#include <rmm/prefetch.hpp>
#include <rmm/process_is_exiting.hpp>
#include <rmm/version_config.hpp>

#include "driver/sim/control.h"

namespace
{

/* The call throws as it cannot wait for the stream, and leaves no work there. */
template <class Call> bool cannot_wait(rmm::cuda_stream_view stream, Call call)
{
    return test::cannot_wait<rmm::cuda_error>(rmmc::stream_view(stream.value()), call);
}

/* The bytes of a buffer. */
std::vector<unsigned char>
contents(const void *data, std::size_t bytes, rmm::cuda_stream_view stream)
{
    std::vector<unsigned char> host(bytes);

    rmm::detail::copy_in_order(host.data(), data, bytes, stream);
    stream.synchronize();
    return host;
}

} /* namespace */

CASE(streams_are_owned_viewed_and_compared)
{
    rmm::cuda_stream stream(rmm::cuda_stream::flags::non_blocking);
    const rmm::cuda_stream_view view = stream;
    std::ostringstream text, address;
    text << view;
    address << static_cast<const void *>(stream.value());
    CHECK(text.str() == address.str());

    rmm::cuda_stream moved = std::move(stream);
    CHECK(!stream.is_valid() && moved.is_valid() && moved.view() == view);
    moved.synchronize();
    moved.synchronize_no_throw();
    CHECK(rmm::cuda_stream_default.is_default());
    CHECK(rmm::cuda_stream_legacy.is_default());
    /* HIP has one handle for both */
    CHECK((rmm::cuda_stream_default == rmm::cuda_stream_legacy) == RMM_COMPAT_HAS_HIP);
    CHECK(rmm::cuda_stream_per_thread.is_per_thread_default());
    CHECK(!view.is_default() && !view.is_per_thread_default());
}

CASE(a_view_is_compared_with_a_handle_of_cuda)
{
    const rmm::cuda_stream stream;
    const rmm::cuda_stream_view view = stream;
    const cudaStream_t handle = stream.value();

    CHECK(handle == view && view == handle);
    CHECK(handle != rmm::cuda_stream_default && rmm::cuda_stream_default != handle);
    CHECK(!(handle != view) && !(view != handle));
}

CASE(a_view_has_the_functions_of_a_stream_ref)
{
    const rmm::cuda_stream stream;
    const rmm::cuda_stream_view view = stream;
    constexpr cudaStream_t default_handle = rmm::cuda_stream_default.get();

    CHECK(default_handle == nullptr && view.get() == stream.value());
    view.sync();
    CHECK(rmm_sim_fail("stream_synchronize:1"));
    THROWS(rmm::cuda_error, view.sync());
    (void)rmm_sim_fail(nullptr);
}

#if RMM_COMPAT_HAS_STREAM_REF
/* A function of a program for RMM 26.10. */
static cudaStream_t handle_of_ref(cuda::stream_ref stream)
{
    return stream.get();
}

CASE(what_names_a_stream_is_a_stream_ref_of_cccl)
{
    const rmm::cuda_stream stream;
    const cuda::stream_ref ref = stream;
    const cuda::stream_ref null{cudaStream_t()};
    rmm::cuda_stream_pool pool(2);
    rmm::device_buffer buffer(64, ref);
    rmm::device_uvector<int> numbers(3, ref);
    const int seven = 7;
    rmm::device_scalar<int> scalar(seven, ref);
    const cuda::stream_ref of_pool = pool.get_stream(0);
    const std::vector<cuda::stream_ref> all{
        pool.get_stream(), buffer.stream(), rmm::cuda_stream_default};
    const auto chosen = numbers.is_empty() ? null : numbers.stream();

    static_assert(std::is_same_v<decltype(chosen), const cuda::stream_ref>);
    CHECK(of_pool == pool.get_stream(2) && pool.get_stream(1) != of_pool);
    CHECK(buffer.stream() == ref && ref == numbers.stream() && chosen == ref);
    CHECK(handle_of_ref(scalar.stream()) == stream.value());
    CHECK(handle_of_ref(stream) == stream.value());
    CHECK(null != buffer.stream() && null == rmm::cuda_stream_default);
    CHECK(all[1] == stream && all[0] != all[2]);
    buffer.set_stream(null);
    numbers.resize(5, null);
    CHECK(scalar.value(ref) == 7);
}

CASE(callbacks_of_a_program_take_a_stream_ref)
{
    rmm::cuda_stream stream;
    rmm::mr::cuda_memory_resource cuda_mr;
    cuda::stream_ref seen{cudaStream_t()};
    const std::function<void *(std::size_t, cuda::stream_ref, void *)> allocate =
        [&](std::size_t bytes, cuda::stream_ref on, void *) {
            seen = on;
            return cuda_mr.allocate(on, bytes);
        };
    rmm::mr::callback_memory_resource mr(
        allocate, [&](void *ptr, std::size_t bytes, cuda::stream_ref on, void *) {
            cuda_mr.deallocate(on, ptr, bytes);
        });
    const rmm::device_buffer buffer(64, stream, mr);

    CHECK(seen == stream);
}
#endif

CASE(a_stream_pool_hands_out_its_streams_in_turn)
{
    rmm::cuda_stream_pool pool(3);

    CHECK(pool.get_pool_size() == 3);
    CHECK(rmm::cuda_stream_pool().get_pool_size() == 16);
    CHECK(pool.get_stream() != pool.get_stream());
    CHECK(pool.get_stream(1) == pool.get_stream(4));
    CHECK(!pool.get_stream().is_default());
    THROWS(rmm::logic_error, rmm::cuda_stream_pool(0));
}

CASE(devices_are_counted_and_made_current_in_a_scope)
{
    CHECK(rmm::get_num_cuda_devices() == 2);
    {
        rmm::cuda_set_device_raii scope(rmm::cuda_device_id(1));
        CHECK(rmm::get_current_cuda_device() == rmm::cuda_device_id(1));
        CHECK(rmm::cuda_device_id() == rmm::cuda_device_id(1));
        rmm::cuda_set_device_raii unchanged(rmm::cuda_device_id(-1));
        CHECK(rmm::get_current_cuda_device().value() == 1);
    }
    CHECK(rmm::get_current_cuda_device() != rmm::cuda_device_id(1));
    const auto [free_bytes, total_bytes] = rmm::available_device_memory();
    CHECK(free_bytes <= total_bytes);
    CHECK(
        rmm::percent_of_free_device_memory(50) == rmm::align_down(free_bytes / 2, 256));
    THROWS(rmm::logic_error, rmm::percent_of_free_device_memory(101));
}

CASE(the_version_is_that_of_the_interface)
{
#if !RMM_VERSION_GT(26, 8, 0) || RMM_VERSION_LT(26, 10, 0) || RMM_VERSION_EQ(26, 8, 0)
    CHECK(false);
#endif
    CHECK(RMM_VERSION_MAJOR == 26 && RMM_VERSION_MINOR == 10 && RMM_VERSION_PATCH == 0);
    CHECK(RMM_VERSION == std::string("26.10.0"));
    CHECK(RMM_VERSION_EQ(26, 10, 0) && RMM_VERSION_GT(25, 12, 7));
    CHECK(RMM_VERSION_LT(27, 2, 0) && !RMM_VERSION_LT(26, 9, 999));
}

CASE(alignments_are_computed)
{
    CHECK(rmm::is_pow2(1) && rmm::is_pow2(256) && !rmm::is_pow2(0) && !rmm::is_pow2(3));
    CHECK(rmm::align_up(1, 256) == 256 && rmm::align_up(256, 256) == 256);
    CHECK(rmm::align_down(511, 256) == 256 && rmm::align_down(255, 256) == 0);
    CHECK(rmm::is_aligned(512, 256) && !rmm::is_aligned(100, 8));
    CHECK(rmm::is_supported_base_resource_alignment(256));
    CHECK(!rmm::is_supported_base_resource_alignment(512));
    for (std::size_t align : {8, 64, 4096}) {
        void *ptr = rmm::detail::aligned_host_allocate(
            100, align, [](std::size_t bytes) { return ::operator new(bytes); });
        CHECK(rmm::is_pointer_aligned(ptr, align));
        rmm::detail::aligned_host_deallocate(
            ptr, 100, align, [](void *block) { ::operator delete(block); });
    }
}

CASE(a_buffer_copies_grows_and_shrinks_with_its_contents)
{
    rmm::cuda_stream stream;
    const std::vector<unsigned char> source{1, 2, 3, 4, 5};
    rmm::device_buffer buffer(source.data(), source.size(), stream);
    rmm::device_buffer copy(buffer, stream);

    CHECK(buffer.size() == 5 && buffer.ssize() == 5 && buffer.capacity() == 5);
    CHECK(contents(copy.data(), copy.size(), stream) == source);
    buffer.resize(100, stream);
    CHECK(buffer.size() == 100 && buffer.capacity() == 100);
    CHECK(contents(buffer.data(), 5, stream) == source);
    buffer.resize(2, stream);
    CHECK(buffer.size() == 2 && buffer.capacity() == 100);
    buffer.shrink_to_fit(stream);
    CHECK(buffer.capacity() == 2);
    buffer.reserve(50, stream);
    CHECK(buffer.size() == 2 && buffer.capacity() == 50);
    CHECK(contents(buffer.data(), 2, stream)[1] == 2);
    buffer.resize(0, stream);
    buffer.shrink_to_fit(stream);
    CHECK(buffer.is_empty() && buffer.data() == nullptr);
}

CASE(a_buffer_that_cannot_grow_or_shrink_stays_as_it_was)
{
    rmm::cuda_stream first, second;
    rmm::mr::limiting_resource_adaptor mr(rmm::mr::cuda_memory_resource(), 1280);
    const std::vector<unsigned char> source{1, 2, 3, 4, 5};
    rmm::device_buffer buffer(source.data(), source.size(), first, mr);

    THROWS(rmm::out_of_memory, buffer.resize(2000, second));
    CHECK(buffer.size() == 5 && buffer.capacity() == 5);
    CHECK(buffer.stream() == first.view());
    first.synchronize();
    buffer.reserve(900, second);
    CHECK(buffer.stream() == second.view());
    const rmm::device_buffer rest(100, second, mr);
    THROWS(rmm::out_of_memory, buffer.shrink_to_fit(first));
    CHECK(buffer.size() == 5 && buffer.capacity() == 900);
    CHECK(buffer.stream() == second.view());
    CHECK(contents(buffer.data(), 5, second) == source);
}

CASE(a_moved_from_buffer_is_empty_and_usable)
{
    rmm::device_buffer from(100, 64, rmm::cuda_stream_per_thread), to;
    const void *data = from.data();

    to = std::move(from);
    CHECK(to.data() == data && to.alignment() == 64 && to.size() == 100);
    CHECK(to.stream() == rmm::cuda_stream_per_thread);
    CHECK(from.data() == nullptr && from.size() == 0 && from.capacity() == 0);
    CHECK(from.alignment() == 1);
    from.resize(10, rmm::cuda_stream_default);
    CHECK(from.size() == 10);
    rmm::device_buffer constructed(std::move(to));
    CHECK(constructed.data() == data && to.is_empty());
    rmm::device_buffer &self = constructed;
    constructed = std::move(self);
    CHECK(constructed.data() == data);
}

/* Memory of the program of which no copy can be made. */
struct memory_without_copies : rmm::mr::limiting_resource_adaptor {
    memory_without_copies()
        : limiting_resource_adaptor(rmm::mr::cuda_memory_resource(), 1000)
    {
    }
    memory_without_copies(memory_without_copies &&) = default;
    memory_without_copies(const memory_without_copies &other)
        : limiting_resource_adaptor(other)
    {
        throw std::runtime_error("a copy");
    }
    memory_without_copies &operator=(memory_without_copies &&) = default;
    memory_without_copies &operator=(const memory_without_copies &) = default;
};

CASE(a_move_of_a_buffer_copies_no_resource)
{
    rmm::device_buffer from(100, rmm::cuda_stream_default, memory_without_copies());
    rmm::device_buffer to(std::move(from));

    from = std::move(to);
    CHECK(from.size() == 100 && to.is_empty());
    to.resize(10, rmm::cuda_stream_default);
    CHECK(to.memory_resource() == from.memory_resource());
}

CASE(a_buffer_is_freed_where_the_driver_refuses_its_device)
{
    rmm::mr::limiting_resource_adaptor mr(rmm::mr::cuda_memory_resource(), 1000);
    {
        rmm::device_buffer buffer(100, rmm::cuda_stream_default, mr);
        CHECK(mr.get_allocated_bytes() != 0);
        const rmm::cuda_set_device_raii scope(rmm::cuda_device_id(1));
        CHECK(rmm_sim_fail("device_set:1"));
        buffer = rmm::device_buffer();
        CHECK(rmm__sim_fault_has_struck());
        CHECK(rmm_sim_fail(nullptr));
    }
    CHECK(mr.get_allocated_bytes() == 0);
}

CASE(a_buffer_whose_construction_throws_leaves_no_memory)
{
    rmm::mr::tracking_resource_adaptor mr{rmm::mr::cuda_memory_resource()};

    THROWS(
        rmm::logic_error, rmm::device_buffer(nullptr, 1, rmm::cuda_stream_default, mr));
    THROWS(
        rmm::invalid_argument, rmm::device_buffer(1, 3, rmm::cuda_stream_default, mr));
    THROWS(rmm::bad_alloc, rmm::device_buffer(1, 512, rmm::cuda_stream_default, mr));
    CHECK(mr.get_outstanding_allocations().empty());
    rmm::device_buffer none(nullptr, 0, rmm::cuda_stream_default, mr);
    CHECK(none.memory_resource() == rmm::device_async_resource_ref(mr));
}

CASE(a_buffer_frees_on_its_own_device_and_stream)
{
    rmmc::resource pool;
    {
        rmm::cuda_set_device_raii scope(rmm::cuda_device_id(1));
        pool = rmmc::pool_resource(rmmc::cuda_resource());
        (void)rmmc::set_current_device_resource(pool);
        rmm::device_buffer buffer(1000, rmm::cuda_stream_default);
        rmm::cuda_set_device_raii other(rmm::cuda_device_id(0));
        buffer.resize(2000, rmm::cuda_stream_default);
        CHECK(pool.get_stats().current_bytes == 2000);
    }
    CHECK(pool.get_stats().current_bytes == 0);
    CHECK(pool.get_stats().invalid_free_count == 0);
    rmmc::reset_per_device_resource(1);
}

/* Bytes that were written last on the buffer's stream, as the host sees them. */
static bool holds(const rmm::device_buffer &buffer, unsigned char value)
{
    std::vector<unsigned char> found(buffer.size());
    const rmm::cuda_set_device_raii scope(buffer.device());

    rmmc::memcpy(found.data(), buffer.data(), found.size(), buffer.stream().value());
    return std::count(found.begin(), found.end(), value) ==
           static_cast<std::ptrdiff_t>(found.size());
}

static void fill(rmm::device_buffer &buffer, unsigned char value)
{
    const rmm::cuda_set_device_raii scope(buffer.device());

    rmmc::memset_async(buffer.data(), value, buffer.size(), buffer.stream().value());
}

/* A pool of a device, which gives a block of the same size again. */
static rmm::mr::pool_memory_resource pool_on(int device)
{
    const rmm::cuda_set_device_raii scope{rmm::cuda_device_id(device)};

    return rmm::mr::pool_memory_resource(rmm::mr::cuda_memory_resource(), 1 << 20);
}

static rmm::device_buffer
filled_on(int device, rmm::cuda_stream_view stream, unsigned char value)
{
    const rmm::cuda_set_device_raii scope{rmm::cuda_device_id(device)};
    static rmm::mr::pool_memory_resource pools[] = {pool_on(0), pool_on(1)};
    rmm::device_buffer buffer(2000, stream, pools[device]);

    fill(buffer, value);
    return buffer;
}

/* The default stream has the same handle on both devices. */
CASE(a_copy_is_ordered_with_its_source)
{
    const rmm::cuda_stream own(rmm::cuda_stream::flags::non_blocking);
    const rmm::cuda_stream_view streams[] = {
        rmm::cuda_stream_default, rmm::cuda_stream_per_thread, own.view()};

    for (unsigned seed = 1; seed < 20; seed++) {
        for (rmm::cuda_stream_view from : streams) {
            for (rmm::cuda_stream_view to : streams) {
                const auto value = static_cast<unsigned char>(seed);

                rmm__sim_reseed(seed);
                rmm::device_buffer source = filled_on(1, from, value);
                rmm::device_buffer copy(source, to); /* on device 0 */
                source = rmm::device_buffer();       /* its memory goes to the next */
                rmm::device_buffer next = filled_on(1, from, 0xee);

                CHECK(copy.device() == rmm::cuda_device_id(0));
                CHECK(holds(copy, value));
            }
        }
    }
}

CASE(a_buffer_takes_its_order_along_to_another_stream)
{
    const rmm::cuda_stream first(rmm::cuda_stream::flags::non_blocking);
    const rmm::cuda_stream other(rmm::cuda_stream::flags::non_blocking);

    for (unsigned seed = 1; seed < 40; seed++) {
        const auto value = static_cast<unsigned char>(seed);
        std::vector<unsigned char> seen(2000);

        rmm__sim_reseed(seed);
        {
            rmm::device_buffer buffer = filled_on(0, first, value);
            rmmc::memcpy_async(seen.data(), buffer.data(), seen.size(), first.value());
            switch (seed % 4) {
            case 0:
                buffer.set_stream(other);
                break;
            case 1:
                buffer.resize(3000, other);
                break;
            case 2:
                buffer.reserve(10, other);
                break;
            default:
                buffer.shrink_to_fit(other);
                break;
            }
            buffer.resize(2000, other);
            CHECK(holds(buffer, value));
        }
        rmm::device_buffer next = filled_on(0, other, 0xee);
        first.synchronize();
        CHECK(
            std::count(seen.begin(), seen.end(), value) ==
            static_cast<std::ptrdiff_t>(seen.size()));
    }
}

/* Of the array's device, whatever device is current. */
CASE(elements_are_on_the_default_stream_of_their_device)
{
    for (unsigned seed = 1; seed < 40; seed++) {
        std::unique_ptr<rmm::device_uvector<int>> array;
        std::unique_ptr<rmm::device_scalar<int>> scalar;
        const int value = static_cast<int>(seed);

        rmm__sim_reseed(seed);
        {
            const rmm::cuda_set_device_raii scope(rmm::cuda_device_id(1));
            array =
                std::make_unique<rmm::device_uvector<int>>(2, rmm::cuda_stream_default);
            scalar =
                std::make_unique<rmm::device_scalar<int>>(rmm::cuda_stream_default);
            array->set_element_async(0, value, rmm::cuda_stream_default);
            scalar->set_value_async(value, rmm::cuda_stream_default);
        }
        CHECK(array->element(0, rmm::cuda_stream_default) == value);
        CHECK(scalar->value(rmm::cuda_stream_default) == value);
        array->set_element_to_zero_async(1, rmm::cuda_stream_default);
        array->set_element_async(0, value, rmm::cuda_stream_default);
        CHECK(array->element(1, rmm::cuda_stream_default) == 0);
    }
}

CASE(an_array_has_elements_that_are_set_and_read)
{
    rmm::cuda_stream stream;
    rmm::device_uvector<double> array(3, stream);
    const double one = 1.0;

    array.set_element_async(0, one, stream);
    array.set_element(1, 2.0, stream);
    array.set_element_to_zero_async(2, stream);
    CHECK(array.front_element(stream) == 1.0 && array.element(1, stream) == 2.0);
    CHECK(array.back_element(stream) == 0.0);
    CHECK(array.end() - array.begin() == 3 && array.element_ptr(1) == array.data() + 1);
    CHECK(&*array.rbegin() == array.data() + 2 && array.rend() - array.rbegin() == 3);
    rmm::device_uvector<double> copy(array, stream);
    array.resize(10, stream);
    CHECK(array.size() == 10 && array.ssize() == 10 && array.element(1, stream) == 2.0);
    CHECK(copy.size() == 3 && copy.element(1, stream) == 2.0);
    copy.reserve(20, stream);
    copy.shrink_to_fit(stream);
    CHECK(copy.capacity() == 3);
    THROWS(rmm::out_of_range, array.element(10, stream));
    THROWS(
        rmm::out_of_range, rmm::device_uvector<int>(0, stream).front_element(stream));
    THROWS(rmm::invalid_argument, rmm::device_uvector<double>(SIZE_MAX / 4, stream));
    rmm::device_buffer storage = copy.release();
    CHECK(storage.size() == 3 * sizeof(double) && copy.is_empty());
}

/* The copy would come later, to a stack that belongs to others then. */
CASE(a_call_that_cannot_wait_for_its_copy_leaves_none)
{
    const rmm::cuda_stream owned;
    const rmm::cuda_stream_view stream = owned;
    const int seven = 7;
    rmm::device_scalar<int> scalar(seven, stream);
    rmm::device_uvector<int> array(2, stream);

    array.set_element(1, seven, stream);
    for (int i = 0; i < 20; i++) { /* each time the GPU is late in another way */
        CHECK(cannot_wait(stream, [&] { (void)scalar.value(stream); }));
        CHECK(cannot_wait(stream, [&] { (void)array.back_element(stream); }));
        CHECK(cannot_wait(stream, [&] { array.set_element(0, i, stream); }));
        CHECK(cannot_wait(stream, [&] { rmm::device_scalar<int>(i + 1, stream); }));
        CHECK(array.element(0, stream) == i);
    }
}

CASE(a_scalar_is_one_element)
{
    rmm::cuda_stream owner;
    const rmm::cuda_stream_view stream = owner;
    const int seven = 7;
    rmm::device_scalar<int> scalar(seven, stream), uninitialised(stream);
    rmm::device_scalar<int> copy(scalar, stream);

    CHECK(scalar.value(stream) == 7 && copy.value(stream) == 7 && scalar.size() == 1);
    scalar.set_value_to_zero_async(stream);
    CHECK(scalar.value(stream) == 0);
    uninitialised.set_value_async(seven, stream);
    CHECK(uninitialised.value(stream) == 7);
}

CASE(a_scalar_of_a_temporary_keeps_its_value)
{
    rmm::cuda_stream owner;
    const rmm::cuda_stream_view stream = owner;
    std::vector<rmm::device_scalar<int>> scalars;
    const rmm::device_scalar<bool> is_true(true, stream);
    const rmm::device_scalar<double> a_half(0.5, stream);

    for (int i = -1; i < 100; i++) { /* the temporaries share a place on the stack */
        scalars.emplace_back(i + 0, stream);
    }
    for (int i = -1; i < 100; i++) {
        CHECK(scalars[static_cast<std::size_t>(i + 1)].value(stream) == i);
    }
    CHECK(is_true.value(stream) && a_half.value(stream) == 0.5);
}

CASE(an_allocator_over_a_resource_works_in_a_container_of_the_host)
{
    rmm::mr::pinned_host_memory_resource pinned;
    rmm::cuda_stream stream;
    using allocator = rmm::mr::polymorphic_allocator<int>;
    const rmm::mr::stream_allocator_adaptor<allocator> bound(allocator(pinned), stream);
    const auto deduced = rmm::mr::stream_allocator_adaptor(allocator(pinned), stream);
    static_assert(std::is_same<decltype(deduced), decltype(bound)>::value, "as named");
    static_assert(
        std::is_same<
            decltype(rmm::mr::stream_allocator_adaptor(bound)),
            rmm::mr::stream_allocator_adaptor<allocator>>::value,
        "a copy, not an adaptor of an adaptor");
    CHECK(deduced == bound && deduced.stream().value() == stream.value());
    std::vector<int, rmm::mr::stream_allocator_adaptor<allocator>> numbers(bound);

    for (int i = 0; i < 1000; i++) {
        numbers.push_back(i);
    }
    CHECK(numbers[999] == 999 && numbers.get_allocator() == bound);
    CHECK(allocator() == allocator() && allocator() != allocator(pinned));
    THROWS(std::bad_array_new_length, allocator().allocate(SIZE_MAX / 2, stream));
}

CASE(a_container_that_was_moved_from_can_be_filled_again)
{
    rmm::mr::pinned_host_memory_resource pinned;
    rmm::cuda_stream stream;
    rmm::mr::polymorphic_allocator<int> of_host(pinned), moved(std::move(of_host));
    CHECK(moved == of_host && moved != rmm::mr::polymorphic_allocator<int>());
    const rmm::mr::stream_allocator_adaptor numbers_of(of_host, stream.view());
    std::vector<int, std::decay_t<decltype(numbers_of)>> from(3, 7, numbers_of);

    std::vector<int, std::decay_t<decltype(numbers_of)>> to(std::move(from));
    from.assign(4, 1);
    CHECK(to.size() == 3 && to[2] == 7 && from[3] == 1);
}

CASE(an_allocator_aligns_as_its_type)
{
    struct alignas(1024) wide {
        char bytes[1024];
    };
    rmm::cuda_stream stream;
    rmm::mr::pool_memory_resource pool(rmm::mr::cuda_memory_resource(), 1 << 20);
    rmm::mr::polymorphic_allocator<wide> wides(pool);
    const rmm::device_buffer before(256, stream, pool);
    wide *block = wides.allocate(1, stream);

    CHECK(rmm::is_pointer_aligned(block, alignof(wide)));
    wides.deallocate(block, 1, stream);
    CHECK(pool.library().get_stats().invalid_free_count == 0);
    CHECK(pool.library().get_stats().current_count == 1);
}

CASE(a_prefetch_moves_managed_memory_and_ignores_other)
{
    rmm::cuda_stream stream;
    rmm::device_buffer managed(1000, stream, rmm::mr::managed_memory_resource());
    rmm::device_buffer device(1000, stream);

    rmm::prefetch(managed.data(), managed.size(), rmm::cuda_device_id(1), stream);
    rmm::prefetch(device.data(), device.size(), rmm::cuda_device_id(1), stream);
    stream.synchronize();
    CHECK(rmm__sim_prefetched_to(managed.data(), managed.size()) == 1);
}

CASE(the_macros_throw_rmms_exceptions_with_place_and_reason)
{
    RMM_EXPECTS(true, "not this");
    RMM_EXPECTS(true, std::string("nor this"), std::runtime_error);
    try {
        RMM_EXPECTS(1 > 2, "one is not more than two");
        CHECK(false);
    } catch (const rmm::logic_error &error) {
        const std::string what = error.what();
        CHECK(what.find("RMM failure at: ") == 0);
        CHECK(what.find("test_compat_containers.cpp:") != std::string::npos);
        CHECK(what.find(": one is not more than two") != std::string::npos);
    }
    const auto fails = []() -> int { RMM_FAIL("why", std::out_of_range); };
    THROWS(std::out_of_range, fails());
}

CASE(the_process_is_not_exiting)
{
    CHECK(!rmm::process_is_exiting());
}

#if RMM_COMPAT_HAS_HIP /* hipMM's words, and the names of HIP's errors */
#define ERROR_WORDS "Device error"
#define API_NAME "hip"
#else
#define ERROR_WORDS "CUDA error"
#define API_NAME "cuda"
#endif
#if RMM_COMPAT_HAS_CUDA
CASE(the_macros_for_cuda_name_the_error_and_the_size)
{
    const auto message = [](auto fails) {
        try {
            fails();
        } catch (const std::exception &error) {
            return std::string(error.what());
        }
        return std::string();
    };

    RMM_CUDA_TRY(cudaSuccess);
    RMM_CUDA_TRY_ALLOC(cudaSuccess, 1000);
    RMM_ASSERT_CUDA_SUCCESS(cudaSuccess);
    RMM_ASSERT_CUDA_SUCCESS_SAFE_SHUTDOWN(cudaErrorCudartUnloading);
    const std::string plain = message([] { RMM_CUDA_TRY(cudaErrorInvalidValue); });
    CHECK(plain.find(ERROR_WORDS " at: ") == 0);
    CHECK(
        plain.find(API_NAME "ErrorInvalidValue invalid argument") != std::string::npos);
    const std::string sized =
        message([] { RMM_CUDA_TRY_ALLOC(cudaErrorMemoryAllocation, 1000); });
    CHECK(
        sized.find("out_of_memory: " ERROR_WORDS
                   " (failed to allocate 1000 bytes) at: ") != std::string::npos);
    const auto other = []() -> int {
        RMM_CUDA_TRY(cudaErrorInvalidValue, std::runtime_error);
        return 0;
    };
    const auto no_memory = []() -> int {
        RMM_CUDA_TRY_ALLOC(cudaErrorMemoryAllocation);
        return 0;
    };
    const auto invalid = []() -> int {
        RMM_CUDA_TRY_ALLOC(cudaErrorInvalidValue);
        return 0;
    };
    THROWS(std::runtime_error, other());
    THROWS(rmm::out_of_memory, no_memory());
    THROWS(rmm::bad_alloc, invalid());
}
#endif

#if RMM_COMPAT_HAS_STREAM_REF
CASE(views_and_arrays_convert_to_classes_of_cccl)
{
    rmm::cuda_stream stream;
    const cuda::stream_ref ref = stream;
    const rmm::cuda_stream_view view = ref;
    rmm::device_uvector<int> array(10, stream, rmm::mr::managed_memory_resource());
    const cuda::std::span<int> span = array;

    CHECK(ref.get() == stream.value() && view == stream.view());
    CHECK(span.data() == array.data() && span.size() == 10);
    rmm::prefetch<int>(array, rmm::cuda_device_id(1), stream);
    stream.synchronize();
    CHECK(rmm__sim_prefetched_to(array.data(), 10 * sizeof(int)) == 1);
}
#endif
