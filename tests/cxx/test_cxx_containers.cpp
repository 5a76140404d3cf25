/* SPDX-License-Identifier: Apache-2.0 */
/* Containers, streams, devices and allocators. */
#define RMM_CXX_MAIN
#include "cxx/failed_wait.hpp"
#include "cxx/harness.hpp"
#include "driver/sim/control.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>
#include <numeric>
#include <utility>

#if defined(__cpp_lib_span)
#include <span>

#include "driver/sim/control.h"
#endif

namespace
{

struct made { /* trivially copyable, without a default constructor */
    int value;

    explicit made(int number) : value(number)
    {
    }
};

struct alignas(1024) wide {
    char bytes[1024];
};

std::vector<int> numbers(std::size_t count)
{
    std::vector<int> values(count);

    std::iota(values.begin(), values.end(), 1);
    return values;
}

} /* namespace */

CASE(a_buffer_holds_what_it_was_given_and_frees_itself)
{
    rmmc::statistics_adaptor counted{rmmc::cuda_resource()};
    rmmc::stream stream;
    std::vector<int> values = numbers(1000);
    {
        rmmc::device_buffer buffer(values.data(), 4000, stream, counted);
        std::vector<int> back(1000);

        buffer.resize(8000, stream);
        buffer.copy_to_host(back.data(), 4000, stream);
        CHECK(back == values && buffer.size() == 8000 && buffer.capacity() == 8000);
        buffer.resize(4, stream);
        buffer.reserve(100, stream);
        CHECK(buffer.size() == 4 && buffer.capacity() == 8000);
        buffer.shrink_to_fit(stream);
        CHECK(buffer.capacity() == 4 && !buffer.is_empty());
        int nine = 9;
        buffer.copy_from_host(&nine, 4, stream);
        rmmc::device_buffer copy(buffer, stream, counted);
        copy.copy_to_host(back.data(), 4, stream);
        CHECK(back[0] == 9 && copy.data() != buffer.data());
        THROWS(rmmc::out_of_range, copy.copy_to_host(back.data(), 5, stream));
        THROWS(rmmc::out_of_range, copy.copy_from_host(back.data(), 1, stream, 4));
        CHECK(copy.stream() == stream && copy.get_resource() == counted);
        copy.set_stream(rmmc::stream_view());
        CHECK(copy.stream() == rmmc::stream_view() && copy.device() == 0);
        copy.prefetch(0, stream);
        stream.synchronize();
    }
    CHECK(counted.counters().current_bytes == 0 && counted.counters().total_count > 0);
}

CASE(a_buffer_keeps_its_alignment_and_refuses_a_wrong_one)
{
    int value = 5; /* until the pool's end: a copy of it is queued */
    rmmc::pool_resource pool{rmmc::cuda_resource()};
    rmmc::device_buffer buffer(10, 1024, {}, pool);

    CHECK(buffer.alignment() == 1024);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 1024 == 0);
    CHECK(rmmc::device_buffer(&value, 4, 2048, {}, pool).alignment() == 2048);
    THROWS(rmmc::invalid_argument, rmmc::device_buffer(10, 3, {}, pool));
    THROWS(rmmc::bad_alloc, rmmc::device_buffer(10, 512, {}, rmmc::cuda_resource()));
    THROWS(rmmc::invalid_argument, rmmc::device_buffer(nullptr, 10, {}, pool));
    CHECK(pool.get_stats().current_count == 1);
}

CASE(a_move_leaves_an_empty_buffer_that_can_be_used_again)
{
    rmmc::cuda_resource cuda;
    rmmc::device_buffer buffer(100, {}, cuda), empty;
    void *data = buffer.data();
    rmmc::device_buffer moved = std::move(buffer);

    CHECK(moved.data() == data && buffer.data() == nullptr && buffer.is_empty());
    CHECK(!buffer.get_resource());
    rmmc::device_buffer &same = moved;
    moved = std::move(same);
    CHECK(moved.data() == data);
    buffer.resize(50, {}); /* of the default resource now */
    CHECK(buffer.get_resource() == rmmc::get_current_device_resource());
    buffer = std::move(moved);
    CHECK(buffer.data() == data && buffer.size() == 100);
    empty = std::move(buffer);
    CHECK(empty.data() == data);
    rmm_device_buffer_t raw = RMM_DEVICE_BUFFER_INIT;
    CHECK(rmm_device_buffer_init(&raw, 10, nullptr, cuda.get()) == RMM_OK);
    empty = rmmc::device_buffer::adopt(&raw);
    CHECK(empty.size() == 10 && raw.data == nullptr);
}

CASE(a_call_that_throws_changes_nothing)
{
    rmmc::limiting_adaptor limited(rmmc::cuda_resource(), 4096);
    rmmc::device_array<int> values(numbers(100), {}, limited);
    int *data = values.data();

    THROWS(rmmc::out_of_memory, values.resize(1 << 20, {}));
    THROWS(rmmc::out_of_memory, values.reserve(1 << 20, {}));
    CHECK(values.data() == data && values.to_vector({}) == numbers(100));
    THROWS(
        rmmc::out_of_memory,
        rmmc::device_array<int>(values, {}, rmmc::limiting_adaptor(limited, 1)));
    THROWS(
        rmmc::invalid_argument,
        rmmc::device_array<int>(std::numeric_limits<std::size_t>::max() / 2, {}));
}

CASE(an_array_has_typed_elements)
{
    rmmc::stream stream;
    rmmc::device_array<double> values(3, stream);
    double minus_zero = -0.0;

    values.set_element(0, 1.5, stream);
    values.set_element_async(1, minus_zero, stream);
    values.set_element_to_zero_async(2, stream);
    CHECK(values.front_element(stream) == 1.5 && values.back_element(stream) == 0.0);
    CHECK(std::signbit(values.element(1, stream)));
    THROWS(rmmc::out_of_range, values.element(3, stream));
    THROWS(rmmc::out_of_range, values.set_element(3, 1.0, stream));
    THROWS(rmmc::out_of_range, rmmc::device_array<int>().front_element(stream));
    CHECK(values.end() - values.begin() == 3 && values.cend() - values.cbegin() == 3);
    CHECK(values.element_ptr(1) == values.data() + 1);
    CHECK(&*values.rbegin() == values.data() + 2);
    values.prefetch(0, stream);
#if defined(__cpp_lib_span)
    std::span<const double> span = std::as_const(values);
    CHECK(span.data() == values.data() && span.size() == 3);
#endif
    rmmc::device_buffer released = values.release();
    CHECK(released.size() == 24 && values.is_empty() && values.size() == 0);
    stream.synchronize();
}

CASE(an_array_is_prefetched_whole)
{
    rmmc::device_array<int> values(1000, {}, rmmc::managed_resource());
    const std::size_t bytes = values.size() * sizeof(int);

    CHECK(rmm__sim_prefetched_to(values.data(), bytes) != 1);
    values.prefetch(1, {});
    CHECK(rmm__sim_prefetched_to(values.data(), bytes) == 1);
}

CASE(an_array_copies_a_range_and_refuses_one_beyond_it)
{
    rmmc::device_uvector<int> values(numbers(10), {});
    int host[3] = {0, 0, 0};

    values.copy_to_host(host, 3, {}, 7);
    CHECK(host[0] == 8 && host[2] == 10);
    values.copy_from_host(host, 2, {}, 0);
    CHECK(values.element(1, {}) == 9);
    THROWS(rmmc::out_of_range, values.copy_to_host(host, 3, {}, 8));
    THROWS(rmmc::out_of_range, values.copy_to_host(host, 1, {}, 11));
    std::size_t most = std::numeric_limits<std::size_t>::max();
    THROWS(rmmc::out_of_range, values.copy_from_host(host, most, {}, 1));
    THROWS(rmmc::out_of_range, values.copy_from_host(host, most / 4 + 2, {}, 0));
    CHECK(rmmc::device_array<int>(std::vector<int>(), {}).to_vector({}).empty());
}

CASE(an_array_of_bool_is_made_of_a_vector_of_bits)
{
    const std::vector<bool> bits = {true, false, true};
    const rmmc::device_array<bool> array(bits, {});

    CHECK(array.size() == 3 && array.element(0, {}) && !array.element(1, {}));
    CHECK(array.to_vector({}) == bits);
    CHECK(rmmc::device_array<bool>(std::vector<bool>(), {}).to_vector({}).empty());
}

CASE(an_array_of_a_type_of_large_alignment_needs_a_pool)
{
    rmmc::pool_resource pool{rmmc::cuda_resource()};
    rmmc::device_array<wide> values(3, {}, pool);

    CHECK(reinterpret_cast<std::uintptr_t>(values.data()) % alignof(wide) == 0);
    THROWS(rmmc::bad_alloc, rmmc::device_array<wide>(3, {}, rmmc::cuda_resource()));
}

CASE(an_array_that_begins_empty_is_aligned_as_its_type)
{
    rmmc::resource previous =
        rmmc::set_current_device_resource(rmmc::pool_resource{rmmc::cuda_resource()});
    rmmc::device_buffer odd(256, {});
    rmmc::device_array<wide> values;

    for (std::size_t count = 1; count < 4; count++) {
        values.resize(count, {});
        CHECK(reinterpret_cast<std::uintptr_t>(values.data()) % alignof(wide) == 0);
        rmmc::device_array<wide> taken(std::move(values)); /* and values empty again */
    }
    rmmc::set_current_device_resource(previous);
}

CASE(elements_need_no_default_constructor)
{
    rmmc::device_array<made> values(2, {});

    values.set_element(1, made(7), {});
    CHECK(values.element(1, {}).value == 7);
    CHECK(rmmc::device_scalar<made>(made(8), {}).value({}).value == 8);
}

CASE(a_scalar_has_one_value_until_it_is_moved_from)
{
    rmmc::stream stream;
    rmmc::device_scalar<int> scalar(42, stream), other(stream);
    int seven = 7;

    CHECK(scalar.value(stream) == 42 && scalar.size() == 1);
    other.set_value_async(seven, stream);
    CHECK(other.value(stream) == 7);
    other.set_value_to_zero_async(stream);
    CHECK(other.value(stream) == 0);
    rmmc::device_scalar<int> copy(scalar, stream);
    CHECK(copy.value(stream) == 42 && copy.data() != scalar.data());
    other = std::move(scalar);
    CHECK(other.value(stream) == 42 && scalar.size() == 0 && scalar.data() == nullptr);
    THROWS(rmmc::out_of_range, scalar.value(stream));
    other.set_stream(rmmc::stream_view());
    CHECK(other.stream() == rmmc::stream_view());
    CHECK(other.get_resource() == rmmc::get_current_device_resource());
}

CASE(a_scalar_has_copied_its_value_when_it_is_made)
{
    rmmc::device_buffer pinned(sizeof(int), {}, rmmc::pinned_resource());
    rmmc::stream stream(RMM_STREAM_NON_BLOCKING);
    int *source = static_cast<int *>(pinned.data());

    *source = 1;
    rmmc::device_scalar<int> scalar(*source, stream);
    *source = 2;
    CHECK(scalar.value(stream) == 1);
}

/* Host memory is the caller's again, whatever becomes of the wait. */
CASE(a_call_that_cannot_wait_for_its_copy_leaves_none)
{
    using test::cannot_wait;
    const rmmc::stream stream(RMM_STREAM_NON_BLOCKING);
    const rmmc::pool_resource pool{
        rmmc::cuda_resource()}; /* a free waits for nothing */
    const std::vector<int> host = numbers(1);
    const rmmc::device_array<int> array(host, stream, pool);

    for (int i = 0; i < 20; i++) { /* each time the GPU is late in another way */
        int value = 0;
        CHECK(cannot_wait<rmmc::cuda_error>(stream, [&] {
            rmmc::memcpy(&value, array.data(), sizeof(value), stream);
        }));
        CHECK(cannot_wait<rmmc::cuda_error>(
            stream, [&] { rmmc::device_scalar<int>(7, stream, pool); }));
        CHECK(cannot_wait<rmmc::cuda_error>(
            stream, [&] { (void)array.to_vector(stream); }));
        CHECK(cannot_wait<rmmc::cuda_error>(
            stream, [&] { rmmc::device_array<int>(host, stream, pool); }));
    }
}

/* The default stream that is waited for is that of the scalar's device. */
CASE(a_scalar_waits_on_its_own_device)
{
    rmmc::resource other;
    {
        rmmc::scoped_device scope(1);
        other = rmmc::pool_resource{rmmc::cuda_resource()};
    }
    for (int i = 0; i < 20; i++) {
        int value = i;
        const rmmc::device_scalar<int> scalar(value, {}, other);
        value = -1;
        CHECK(scalar.value({}) == i);
    }
}

CASE(a_buffer_keeps_its_resource_alive)
{
    rmmc::device_array<int> values;
    {
        rmmc::pool_resource pool{rmmc::cuda_resource()};
        values = rmmc::device_array<int>(numbers(1000), {}, pool);
    }
    CHECK(values.to_vector({}) == numbers(1000));
}

CASE(streams_move_and_a_moved_from_one_refuses)
{
    rmmc::stream stream(RMM_STREAM_NON_BLOCKING);
    rmm_stream_t handle = stream.value();
    rmmc::stream moved = std::move(stream);

    CHECK(moved.view() == handle && moved && !stream);
    THROWS(rmmc::invalid_argument, stream.view());
    THROWS(rmmc::invalid_argument, stream.synchronize());
    rmmc::stream &same = moved;
    moved = std::move(same);
    CHECK(moved.value() == handle);
    stream = std::move(moved);
    stream.synchronize();
    THROWS(rmmc::invalid_argument, rmmc::stream(~0u));

    rmmc::stream_pool pool(3), other = std::move(pool);
    CHECK(other.size() == 3 && other.get_stream(1) == other.get_stream(4));
    CHECK(other.get_stream() != other.get_stream());
    CHECK(pool.size() == 0);
    THROWS(rmmc::invalid_argument, pool.get_stream());
    THROWS(rmmc::invalid_argument, pool.get_stream(0));
    THROWS(rmmc::invalid_argument, rmmc::stream_pool(0));
}

CASE(streams_are_destroyed_with_their_owner)
{
    {
        rmmc::stream stream;
        CHECK(rmm_sim_fail("stream_destroy:1"));
    }
    CHECK(rmm__sim_fault_has_struck());
    {
        rmmc::stream_pool pool(3);
        CHECK(rmm_sim_fail("stream_destroy:3"));
    }
    CHECK(rmm__sim_fault_has_struck());
    CHECK(rmm_sim_fail(nullptr));
}

CASE(a_view_is_made_of_any_stream_and_of_no_number)
{
    struct foreign { /* as cuda::stream_ref */
        rmm_stream_t get() const
        {
            return RMM_STREAM_PER_THREAD;
        }
    };
    struct convertible { /* as RMM's cuda_stream_view, and its handle too */
        operator rmm_stream_t() const
        {
            return RMM_STREAM_PER_THREAD;
        }
        rmm_stream_t value() const
        {
            return RMM_STREAM_PER_THREAD;
        }
    };
    struct other_foreign { /* as RMM's cuda_stream_view */
        rmm_stream_t value() const
        {
            return RMM_STREAM_LEGACY;
        }
    };

    CHECK(rmmc::stream_view(foreign()).is_per_thread_default());
    CHECK(rmmc::stream_view(other_foreign()).is_default());
    CHECK(
        rmmc::stream_view(rmm_stream_t(nullptr)) ==
        rmmc::stream_view(RMM_STREAM_LEGACY));
    CHECK(rmmc::stream_view() != RMM_STREAM_PER_THREAD);
    CHECK(RMM_STREAM_PER_THREAD != rmmc::stream_view());
    CHECK(rmm_stream_t(nullptr) == rmmc::stream_view());
    CHECK(convertible() == rmmc::stream_view(RMM_STREAM_PER_THREAD));
    CHECK(rmmc::stream_view() != convertible());
    static_assert(!std::is_convertible<int, rmmc::stream_view>::value, "");
    static_assert(!std::is_convertible<std::nullptr_t, rmmc::stream_view>::value, "");
    static_assert(!std::is_convertible<std::string, rmmc::stream_view>::value, "");
    rmmc::stream_view().synchronize();
}

CASE(containers_stay_on_the_device_of_their_resource)
{
    rmmc::resource of_second;
    CHECK(rmmc::device_count() == 2 && rmmc::current_device() == 0);
    {
        rmmc::scoped_device second(1);
        CHECK(rmmc::current_device() == 1);
        of_second = rmmc::pool_resource{rmmc::cuda_resource()};
        {
            rmmc::scoped_device none(-1);
            CHECK(rmmc::current_device() == 1);
        }
    }
    CHECK(rmmc::current_device() == 0 && of_second.device() == 1);
    rmmc::device_array<int> values(numbers(100), {}, of_second);
    values.resize(200, {});
    CHECK(values.element(99, {}) == 100);
    CHECK(of_second.get_stats().current_count == 1 && rmmc::current_device() == 0);
    CHECK(rmmc::device_buffer(10, {}, of_second).device() == 1);
    THROWS(rmmc::cuda_error, rmmc::scoped_device(7));
    THROWS(rmmc::cuda_error, rmmc::set_device(7));
    rmmc::set_device(1);
    rmmc::set_device(0);
}

CASE(defaults_are_set_for_each_device)
{
    rmmc::resource initial = rmmc::get_per_device_resource(1);
    rmmc::pool_resource pool{rmmc::cuda_resource()};

    CHECK(
        rmmc::set_current_device_resource(pool) == rmmc::get_per_device_resource(0) ||
        rmmc::get_current_device_resource() == pool);
    CHECK(rmmc::device_buffer(10, {}).get_resource() == pool);
    CHECK(rmmc::get_per_device_resource(1) == initial);
    rmmc::reset_current_device_resource();
    CHECK(rmmc::get_current_device_resource() != pool);
    THROWS(rmmc::invalid_argument, rmmc::set_per_device_resource(1, pool));
    CHECK(rmmc::get_per_device_resource(1) == initial);
    {
        const rmmc::scoped_device scope(1);
        pool = rmmc::pool_resource{rmmc::cuda_resource()};
    }
    CHECK(rmmc::set_per_device_resource(1, pool) == initial);
    rmmc::reset_per_device_resource(1);
    CHECK(rmmc::get_per_device_resource(1) == initial);
    THROWS(rmmc::out_of_range, rmmc::get_per_device_resource(7));
}

/* A default stream is that of the allocator's device, also when it frees. */
CASE(an_allocator_with_a_stream_keeps_its_device)
{
    const rmmc::stream_view stream(RMM_STREAM_PER_THREAD);
    rmmc::resource pool;

    for (unsigned seed = 1; seed < 40; seed++) {
        unsigned char seen[1000] = {0};

        rmm__sim_reseed(seed);
        rmmc::set_device(1);
        if (!pool) {
            pool = rmmc::pool_resource(rmmc::cuda_resource());
        }
        {
            rmmc::stream_allocator_adaptor allocator(
                rmmc::polymorphic_allocator<unsigned char>(pool), stream);
            CHECK(allocator.device() == 1);
            unsigned char *block = allocator.allocate(sizeof(seen));
            rmmc::memset_async(block, 1, sizeof(seen), stream);
            rmmc::memcpy_async(seen, block, sizeof(seen), stream);
            rmmc::set_device(0);
            rmmc::stream_allocator_adaptor<rmmc::polymorphic_allocator<unsigned char>>
                copy(allocator);
            copy.deallocate(block, sizeof(seen)); /* behind the copy to `seen` */
            CHECK(copy.device() == 1 && rmmc::current_device() == 0);
        }
        rmmc::stream other;
        rmmc::device_buffer next(sizeof(seen), other, pool);
        rmmc::memset_async(next.data(), 2, sizeof(seen), other);
        other.synchronize();
        rmmc::set_device(1);
        stream.synchronize();
        rmmc::set_device(0);
        CHECK(std::count(seen, seen + sizeof(seen), 1) == sizeof(seen));
    }
}

CASE(streams_are_ordered)
{
    for (unsigned seed = 1; seed < 40; seed++) {
        unsigned char bytes[2] = {0, 0};

        rmm__sim_reseed(seed);
        rmmc::set_device(1);
        rmmc::memset_async(bytes, 1, 1, RMM_STREAM_PER_THREAD);
        rmmc::set_device(0);
        rmmc::order_streams(1, RMM_STREAM_PER_THREAD, 0, RMM_STREAM_PER_THREAD);
        rmmc::memcpy_async(bytes + 1, bytes, 1, RMM_STREAM_PER_THREAD);
        rmmc::stream_view(RMM_STREAM_PER_THREAD).synchronize();
        CHECK(bytes[1] == 1);
    }
}

CASE(questions_about_devices_and_copies_are_answered)
{
    rmmc::memory_info info = rmmc::available_device_memory();
    rmmc::device_buffer buffer(16, {});
    unsigned char host[16];

    CHECK(info.free_bytes <= info.total_bytes && info.free_bytes > 0);
    CHECK(rmmc::percent_of_free_device_memory(50) <= info.total_bytes / 2);
    THROWS(rmmc::invalid_argument, rmmc::percent_of_free_device_memory(101));
    CHECK(rmmc::device_supports(0, RMM_ABILITY_ASYNC));
    rmmc::memset_async(buffer.data(), 3, 16, {});
    rmmc::memcpy_async(host, buffer.data(), 16, {});
    rmmc::stream_view().synchronize();
    CHECK(host[0] == 3 && host[15] == 3);
    rmmc::prefetch(buffer.data(), 16, 0, {});
    THROWS(rmmc::cuda_error, rmmc::prefetch(buffer.data(), 16, 7, {}));
    THROWS(rmmc::invalid_argument, rmmc::memset_async(nullptr, 0, 1, {}));
}

CASE(allocators_serve_containers_of_the_standard)
{
    rmmc::pool_resource pool{rmmc::pinned_resource()};
    rmmc::stream stream;
    using allocator = rmmc::stream_allocator_adaptor<rmmc::polymorphic_allocator<int>>;
    allocator numbers_of(rmmc::polymorphic_allocator<int>(pool), stream);
    {
        std::vector<int, allocator> values(100, 7, numbers_of);
        std::list<int, allocator> list({1, 2, 3}, numbers_of); /* rebinds */
        CHECK(
            values[99] == 7 && list.back() == 3 && pool.get_stats().current_count == 4);
        std::vector<int, allocator> other = std::move(values);
        CHECK(other.size() == 100 && other.get_allocator() == numbers_of);
    }
    CHECK(pool.get_stats().current_count == 0);
    rmmc::polymorphic_allocator<int> of_default, of_pool(pool);
    rmmc::polymorphic_allocator<double> doubles = of_pool;
    CHECK(of_default != of_pool && doubles == of_pool);
    THROWS(
        std::bad_array_new_length,
        doubles.allocate(std::numeric_limits<std::size_t>::max() / 4, stream));
}

CASE(a_container_that_was_moved_from_can_be_filled_again)
{
    rmmc::pool_resource pool{rmmc::pinned_resource()};
    rmmc::stream stream;
    rmmc::polymorphic_allocator<int> of_pool(pool), moved(std::move(of_pool));
    CHECK(moved == of_pool && of_pool.get_resource() == pool);
    const rmmc::stream_allocator_adaptor numbers_of(of_pool, stream);
    std::vector<int, std::decay_t<decltype(numbers_of)>> from(3, 7, numbers_of),
        to(numbers_of);

    to = std::move(from);
    from.assign(2, 5);
    std::vector<int, std::decay_t<decltype(numbers_of)>> last(std::move(from));
    from.assign(4, 1);
    CHECK(to.size() == 3 && last[1] == 5 && from[3] == 1);
}

CASE(an_allocator_asks_for_the_alignment_of_its_type)
{
    rmmc::pool_resource pool{rmmc::cuda_resource()};
    rmmc::polymorphic_allocator<int> ints(pool);
    rmmc::polymorphic_allocator<wide> wides(pool);
    std::vector<std::pair<int *, wide *>> blocks;

    for (int i = 0; i < 8; i++) { /* ints put what follows at 256 bytes */
        blocks.emplace_back(ints.allocate(1, {}), wides.allocate(1, {}));
        CHECK(
            reinterpret_cast<std::uintptr_t>(blocks.back().second) % alignof(wide) ==
            0);
    }
    for (auto [number, aligned] : blocks) {
        ints.deallocate(number, 1, {});
        wides.deallocate(aligned, 1, {});
    }
    CHECK(pool.get_stats().current_count == 0);
    CHECK(pool.get_stats().invalid_free_count == 0);
}

CASE(each_container_asks_its_own_object)
{
    rmmc::stream stream, other;
    rmmc::device_array<int> values(numbers(10), stream);
    rmmc::memory_info info = rmmc::available_device_memory();
    std::size_t most = std::numeric_limits<std::size_t>::max();

    values.reserve(20, stream);
    CHECK(values.size() == 10 && values.capacity() == 20);
    CHECK(
        &*(values.rend() - 1) == values.data() &&
        values.rend() - values.rbegin() == 10);
    values.shrink_to_fit(stream);
    CHECK(values.capacity() == 10);
    values.set_stream(other);
    CHECK(values.stream() == other && values.stream() != stream);
    THROWS(rmmc::out_of_range, values.copy_to_host(nullptr, 2, {}, most));
    rmmc::device_buffer buffer = values.release();
    buffer.reserve(4000, other);
    CHECK(buffer.size() == 40 && buffer.capacity() == 4000);
    THROWS(rmmc::cuda_error, buffer.prefetch(7, other));
    THROWS(rmmc::cuda_error, rmmc::device_supports(7, RMM_ABILITY_ASYNC));
    CHECK(info.free_bytes < info.total_bytes); /* the array has some */
}

CASE(a_pool_of_streams_gives_the_one_of_each_number)
{
    rmmc::stream_pool pool(3);

    CHECK(pool.get_stream(0) != pool.get_stream(1));
    CHECK(pool.get_stream(1) != pool.get_stream(2));
    CHECK(pool.get_stream(2) != pool.get_stream(0));
    THROWS(rmmc::invalid_argument, rmmc::stream_pool(3, ~0u));
}
