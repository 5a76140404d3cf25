/* SPDX-License-Identifier: Apache-2.0 */
/* RMM's header names over this library: resources, adaptors, upstreams of the program, defaults. */
#define RMM_CXX_MAIN
#include "cxx/harness.hpp"

#include <cstring>
#include <sstream>
#include <string>
#include <unistd.h>

#include <rmm/cuda_stream.hpp>
#include <rmm/device_buffer.hpp>
#include <rmm/mr/aligned_resource_adaptor.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/callback_memory_resource.hpp>
#include <rmm/mr/cuda_async_managed_memory_resource.hpp>
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <rmm/mr/cuda_async_view_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/failure_callback_resource_adaptor.hpp>
#include <rmm/mr/fixed_size_memory_resource.hpp>
#include <rmm/mr/is_resource_adaptor.hpp>
#include <rmm/mr/limiting_resource_adaptor.hpp>
#include <rmm/mr/logging_resource_adaptor.hpp>
#include <rmm/mr/managed_memory_resource.hpp>
#include <rmm/mr/per_device_resource.hpp>
#include <rmm/mr/pinned_host_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/mr/prefetch_resource_adaptor.hpp>
#include <rmm/mr/sam_headroom_memory_resource.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>
#include <rmm/mr/system_memory_resource.hpp>
#include <rmm/mr/thread_safe_resource_adaptor.hpp>
#include <rmm/mr/tracking_resource_adaptor.hpp>
#include <rmm/resource_ref.hpp>

namespace
{

using rmm::detail::any_device_resource;
using rmm::detail::stream_ref;

constexpr std::size_t mib = std::size_t(1) << 20;

/* Allocates in both ways, directly and through a reference, and frees. */
template <class Resource> void use(Resource &mr)
{
    const rmm::cuda_stream stream;
    rmm::device_async_resource_ref ref(mr);
    void *ordered = mr.allocate(stream.view(), 1000);
    void *synchronous = mr.allocate_sync(1000);
    void *erased = ref.allocate(stream.view(), 1000, 256);

    CHECK(ordered != nullptr && synchronous != nullptr && erased != nullptr);
    CHECK(ordered != synchronous && ordered != erased && synchronous != erased);
    CHECK(rmm::is_pointer_aligned(ordered) && rmm::is_pointer_aligned(erased));
    mr.deallocate(stream.view(), ordered, 1000);
    mr.deallocate_sync(synchronous, 1000);
    ref.deallocate(stream.view(), erased, 1000, 256);
    CHECK(mr.allocate_sync(0) == nullptr);
    mr.deallocate_sync(nullptr, 0);
}

/* What a program may throw, and its own memory: counts calls, and fails on request. */
struct program_error {
    int code;
};

struct program_memory {
    struct state {
        int live = 0, calls = 0, fail_with = 0;
        std::size_t align = 0;
    };
    state *shared;

    void *allocate(stream_ref stream, std::size_t bytes, std::size_t align)
    {
        shared->calls++;
        shared->align = align;
        if (shared->fail_with == 1) {
            throw program_error{7};
        }
        if (shared->fail_with == 2) {
            throw rmm::out_of_memory("the program has none");
        }
        if (shared->fail_with == 3) {
            throw rmm::bad_alloc("the program is broken");
        }
        if (shared->fail_with == 4) {
            return nullptr;
        }
        shared->live++;
        return rmm::mr::cuda_memory_resource().allocate(stream, bytes, 256);
    }
    void
    deallocate(stream_ref stream, void *ptr, std::size_t bytes, std::size_t) noexcept
    {
        shared->live--;
        rmm::mr::cuda_memory_resource().deallocate(stream, ptr, bytes, 256);
    }
    void *allocate_sync(std::size_t bytes, std::size_t align)
    {
        return allocate(rmm::cuda_stream_view(), bytes, align);
    }
    void deallocate_sync(void *ptr, std::size_t bytes, std::size_t align) noexcept
    {
        deallocate(rmm::cuda_stream_view(), ptr, bytes, align);
    }
    friend bool operator==(const program_memory &a, const program_memory &b) noexcept
    {
        return a.shared == b.shared;
    }
    friend bool operator!=(const program_memory &a, const program_memory &b) noexcept
    {
        return a.shared != b.shared;
    }
    friend constexpr void
    get_property(const program_memory &, rmm::detail::device_accessible) noexcept
    {
    }
};

} /* namespace */

CASE(each_base_resource_allocates_and_equals_another_of_its_class)
{
    rmm::mr::cuda_memory_resource cuda;
    rmm::mr::managed_memory_resource managed;
    rmm::mr::pinned_host_memory_resource pinned;
    rmm::mr::system_memory_resource system;
#if RMM_COMPAT_HAS_HIP /* which has no managed pools */
    THROWS(rmm::logic_error, rmm::mr::cuda_async_managed_memory_resource());
#else
    rmm::mr::cuda_async_managed_memory_resource async_managed;
    use(async_managed);
    CHECK(async_managed == rmm::mr::cuda_async_managed_memory_resource());
#endif

    use(cuda);
    use(managed);
    use(pinned);
    use(system);
    CHECK(cuda == rmm::mr::cuda_memory_resource());
}

CASE(a_resource_over_a_memory_pool_of_cuda_shares_its_handle)
{
    rmm::mr::cuda_async_memory_resource async(mib, mib);
    rmm::mr::cuda_async_view_memory_resource view(async.pool_handle());
    rmm::mr::sam_headroom_memory_resource headroom(mib);

    use(async);
    use(view);
    use(headroom);
    CHECK(view.pool_handle() == async.pool_handle());
    CHECK(async != rmm::mr::cuda_async_memory_resource());
    CHECK(headroom != rmm::mr::sam_headroom_memory_resource(2 * mib));
    THROWS(rmm::logic_error, rmm::mr::cuda_async_view_memory_resource(nullptr));
    rmm::mr::cuda_async_view_memory_resource none;
    CHECK(none.pool_handle() == nullptr);
    THROWS(rmm::logic_error, none.allocate_sync(1));
}

CASE(each_resource_over_an_upstream_names_it_and_is_shared_by_its_copies)
{
    rmm::mr::cuda_memory_resource cuda;
    const auto check = [&](auto mr) {
        auto copy = mr;
        void *ptr = mr.allocate_sync(1000);

        use(mr);
        CHECK(copy == mr);
        copy.deallocate_sync(ptr, 1000);
        CHECK(mr.get_upstream_resource() == rmm::device_async_resource_ref(cuda));
        CHECK(std::strlen(mr.library().type()) > 0);
    };

    check(rmm::mr::pool_memory_resource(cuda, mib));
    check(rmm::mr::arena_memory_resource(cuda, 64 * mib));
    check(rmm::mr::fixed_size_memory_resource(cuda));
    check(rmm::mr::binning_memory_resource(cuda, 8, 12));
    check(rmm::mr::aligned_resource_adaptor(cuda));
    check(rmm::mr::limiting_resource_adaptor(cuda, mib));
    check(rmm::mr::prefetch_resource_adaptor(cuda));
    check(rmm::mr::statistics_resource_adaptor(cuda));
    check(rmm::mr::thread_safe_resource_adaptor(cuda));
    check(rmm::mr::tracking_resource_adaptor(cuda));
    check(rmm::mr::failure_callback_resource_adaptor<>(
        cuda, [](std::size_t, void *) { return false; }, nullptr));
}

CASE(a_pool_over_a_class_of_rmm_is_a_pool_over_the_librarys_resource)
{
    rmm::mr::pool_memory_resource pool(rmm::mr::managed_memory_resource(), 0, 4 * mib);
    rmm::mr::statistics_resource_adaptor outer(pool);

    CHECK(std::strcmp(pool.library().upstream().type(), "managed") == 0);
    CHECK(outer.library().upstream().get() == pool.library().get());
    CHECK(pool.pool_size() == 0);
    use(outer);
    CHECK(pool.pool_size() > 0);
    THROWS(rmm::out_of_memory, pool.allocate_sync(8 * mib));
    try {
        (void)pool.allocate_sync(8 * mib);
    } catch (const rmm::bad_alloc &error) {
        CHECK(
            std::string(error.what()).rfind("std::bad_alloc: out_of_memory: ", 0) == 0);
    }
}

CASE(wrong_arguments_throw_rmms_exceptions)
{
    rmm::mr::cuda_memory_resource cuda;

    THROWS(rmm::logic_error, rmm::mr::pool_memory_resource(cuda, 1000));
    THROWS(rmm::logic_error, rmm::mr::pool_memory_resource(cuda, 1024, 1000));
    THROWS(rmm::logic_error, rmm::mr::pool_memory_resource(cuda, 1024, 512));
    THROWS(rmm::logic_error, rmm::mr::pool_memory_resource(cuda, 0, 0));
    THROWS(rmm::logic_error, rmm::mr::fixed_size_memory_resource(cuda, 0));
    THROWS(rmm::logic_error, rmm::mr::fixed_size_memory_resource(cuda, 1024, 0));
    THROWS(rmm::logic_error, rmm::mr::arena_memory_resource(cuda, 1000));
    THROWS(rmm::logic_error, rmm::mr::arena_memory_resource(cuda, 0));
    THROWS(rmm::logic_error, rmm::mr::aligned_resource_adaptor(cuda, 255));
    THROWS(rmm::logic_error, rmm::mr::aligned_resource_adaptor(cuda, 0));
    THROWS(rmm::bad_alloc, cuda.allocate_sync(1, 512));
    THROWS(rmm::out_of_memory, cuda.allocate_sync(std::size_t(1) << 50));
}

CASE(memory_of_the_program_is_an_upstream_and_its_exceptions_come_out)
{
    program_memory::state state;
    {
        rmm::mr::pool_memory_resource pool(program_memory{&state}, 0);
        rmm::mr::statistics_resource_adaptor counted(program_memory{&state});

        use(pool);
        use(counted);
        CHECK(state.live == 1); /* the pool's chunk */
        state.fail_with = 1;
        THROWS(program_error, counted.allocate_sync(1000));
        CHECK(counted.get_allocations_counter().value == 0);
        state.fail_with = 2;
        THROWS(rmm::out_of_memory, counted.allocate_sync(1000));
        state.fail_with = 3;
        THROWS(rmm::bad_alloc, counted.allocate_sync(1000));
        state.fail_with = 0;
        CHECK(
            counted.get_upstream_resource() ==
            any_device_resource(program_memory{&state}));
    }
    CHECK(state.live == 0);
}

CASE(an_alignment_of_the_request_reaches_memory_of_the_program)
{
    program_memory::state state;
    rmm::mr::thread_safe_resource_adaptor mr(program_memory{&state});
    void *ptr = mr.allocate(rmm::cuda_stream_view(), 1000, 512);

    CHECK(state.align == 512);
    mr.deallocate(rmm::cuda_stream_view(), ptr, 1000, 512);
}

/* RMM's adaptors look at no result, so a mock of the program may return what it likes. */
CASE(memory_of_the_program_may_return_no_address)
{
    program_memory::state state;
    rmm::mr::thread_safe_resource_adaptor mr(program_memory{&state});

    state.fail_with = 4;
    CHECK(mr.allocate_sync(1000) == nullptr && state.calls == 1);
    CHECK(mr.allocate(rmm::cuda_stream_view(), 1000, 512) == nullptr);
    CHECK(state.calls == 2);
}

CASE(a_failure_callback_is_called_for_its_exception_only)
{
    program_memory::state state;
    int calls = 0;
    const auto give_up_at_two = [](std::size_t bytes, void *count) {
        CHECK(bytes == 1000);
        return ++*static_cast<int *>(count) < 2;
    };
    rmm::mr::failure_callback_resource_adaptor<> of_memory(
        program_memory{&state}, give_up_at_two, &calls);
    rmm::mr::failure_callback_resource_adaptor<rmm::bad_alloc> of_both(
        program_memory{&state}, give_up_at_two, &calls);
    rmm::mr::failure_callback_resource_adaptor<program_error> of_mine(
        program_memory{&state}, give_up_at_two, &calls);

    state.fail_with = 3;
    THROWS(rmm::bad_alloc, of_memory.allocate_sync(1000));
    CHECK(calls == 0);
    THROWS(rmm::bad_alloc, of_both.allocate_sync(1000));
    CHECK(calls == 2);
    state.fail_with = 2;
    calls = 0;
    THROWS(rmm::out_of_memory, of_memory.allocate_sync(1000));
    CHECK(calls == 2);
    calls = 0;
    THROWS(rmm::out_of_memory, of_mine.allocate_sync(1000));
    CHECK(calls == 0);
    state.fail_with = 1;
    THROWS(program_error, of_mine.allocate_sync(1000));
    CHECK(calls == 2);
}

CASE(a_failure_callback_of_out_of_memory_hears_the_library_too)
{
    int calls = 0;
    const auto count = [](std::size_t, void *counter) {
        ++*static_cast<int *>(counter);
        return false;
    };
    rmm::mr::failure_callback_resource_adaptor<> mr(
        rmm::mr::limiting_resource_adaptor(rmm::mr::cuda_memory_resource(), mib), count,
        &calls);

    THROWS(rmm::out_of_memory, mr.allocate_sync(2 * mib));
    CHECK(calls == 1);
    THROWS(rmm::bad_alloc, mr.allocate_sync(1, 512)); /* another failure than memory */
    CHECK(calls == 1);
}

CASE(callbacks_are_a_resource_that_keeps_them)
{
    int live = 0;
    rmm::mr::cuda_memory_resource cuda;
    rmm::mr::statistics_resource_adaptor mr{rmm::mr::callback_memory_resource(
        [cuda](std::size_t bytes, rmm::cuda_stream_view stream, void *count) mutable {
            ++*static_cast<int *>(count);
            return cuda.allocate(stream, bytes);
        },
        [cuda](
            void *ptr, std::size_t bytes, rmm::cuda_stream_view stream,
            void *count) mutable {
            --*static_cast<int *>(count);
            cuda.deallocate(stream, ptr, bytes);
        },
        &live, &live)};
    void *ptr = mr.allocate_sync(1000);

    CHECK(live == 1);
    mr.deallocate_sync(ptr, 1000);
    CHECK(live == 0);
}

CASE(the_default_of_a_device_is_the_librarys)
{
    rmm::mr::pool_memory_resource pool(rmm::mr::cuda_memory_resource(), 0);
    any_device_resource initial = rmm::mr::set_current_device_resource(pool);

    CHECK(rmmc::get_current_device_resource().get() == pool.library().get());
    CHECK(
        rmm::mr::get_current_device_resource_ref() ==
        rmm::device_async_resource_ref(pool));
    CHECK(initial == any_device_resource(rmm::mr::cuda_memory_resource()));
    any_device_resource previous = rmm::mr::reset_current_device_resource();
    CHECK(previous == any_device_resource(pool));
    CHECK(
        rmm::mr::get_current_device_resource_ref() ==
        rmm::device_async_resource_ref(rmm::mr::detail::initial_resource()));
}

CASE(a_default_that_was_set_in_c_is_the_default_here)
{
    rmm::cuda_set_device_raii device_1{rmm::cuda_device_id(1)};
    rmmc::pool_resource pool{rmmc::cuda_resource()};
    rmm::cuda_set_device_raii device_0{rmm::cuda_device_id(0)};
    (void)rmmc::set_per_device_resource(1, pool);
    rmm::device_async_resource_ref ref =
        rmm::mr::get_per_device_resource_ref(rmm::cuda_device_id(1));
    void *ptr = ref.allocate_sync(1000, 256);

    CHECK(pool.get_stats().current_bytes == 1000);
    ref.deallocate_sync(ptr, 1000, 256);
    rmmc::reset_per_device_resource(1);
    ref = rmm::mr::get_per_device_resource_ref(rmm::cuda_device_id(1));
    CHECK(ref == rmm::device_async_resource_ref(rmm::mr::detail::initial_resource()));
    THROWS(
        rmm::out_of_range,
        rmm::mr::get_per_device_resource_ref(rmm::cuda_device_id(99)));
}

CASE(a_default_belongs_to_its_device)
{
    const rmm::cuda_device_id other(1);
    program_memory::state state;
    rmm::mr::pool_memory_resource pool(rmm::mr::cuda_memory_resource(), 0);
    rmm::mr::statistics_resource_adaptor counted{rmm::mr::cuda_memory_resource()};

    /* set for every device, as in RMM, and used on its own only */
    for (rmm::device_async_resource_ref mr :
         {rmm::device_async_resource_ref(pool),
          rmm::device_async_resource_ref(counted)}) {
        (void)rmm::mr::set_per_device_resource(other, mr);
        CHECK(rmm::mr::get_per_device_resource_ref(other) == mr);
        rmm::device_async_resource_ref set =
            rmm::mr::get_per_device_resource_ref(other);
        CHECK(
            set.allocate_sync(100, 256) != nullptr); /* of device 0, which is current */
        const rmm::cuda_set_device_raii scope(other);
        THROWS(rmm::logic_error, rmm::device_buffer(100, rmm::cuda_stream_default));
    }
    THROWS(
        rmm::out_of_range,
        rmm::mr::set_per_device_resource(
            rmm::cuda_device_id(99), rmm::mr::cuda_memory_resource()));
    /* what has no device of its own becomes that device's */
    (void)rmm::mr::set_per_device_resource(other, rmm::mr::cuda_memory_resource());
    CHECK(rmm_resource_device(rmmc::get_per_device_resource(1).get()) == 1);
    (void)rmm::mr::set_per_device_resource(other, program_memory{&state});
    CHECK(rmm_resource_device(rmmc::get_per_device_resource(1).get()) == 1);
    CHECK(rmm::get_current_cuda_device() == rmm::cuda_device_id(0));
    (void)rmm::mr::reset_per_device_resource(other);
}

CASE(memory_of_the_program_is_a_default_that_c_uses)
{
    program_memory::state state;
    (void)rmm::mr::set_current_device_resource(program_memory{&state});
    rmmc::resource mr = rmmc::get_current_device_resource();
    void *ptr = mr.allocate_sync(1000);

    CHECK(state.live == 1);
    mr.deallocate_sync(ptr, 1000);
    CHECK(state.live == 0);
    (void)rmm::mr::reset_current_device_resource();
}

CASE(counters_of_scopes_and_the_live_allocations_are_those_of_rmm)
{
    rmm::mr::statistics_resource_adaptor counted{rmm::mr::cuda_memory_resource()};
    rmm::mr::tracking_resource_adaptor tracked(counted, true);
    void *first = tracked.allocate_sync(1000);
    (void)counted.push_counters();
    void *second = tracked.allocate_sync(500);

    CHECK(counted.get_bytes_counter().value == 500);
    tracked.deallocate_sync(first, 1000);
    auto [bytes, allocations] = counted.pop_counters();
    CHECK(bytes.value == -500 && bytes.peak == 500 && bytes.total == 500);
    CHECK(allocations.value == 0 && allocations.total == 1);
    CHECK(counted.get_bytes_counter().value == 500);
    CHECK(counted.get_bytes_counter().total == 1500);
    THROWS(rmm::out_of_range, (counted.pop_counters(), 0));

    const auto &live = tracked.get_outstanding_allocations();
    CHECK(live.size() == 1 && live.begin()->first == second);
    CHECK(live.begin()->second.allocation_size == 500);
    CHECK(live.begin()->second.strace != nullptr);
    CHECK(tracked.get_allocated_bytes() == 500);
    CHECK(tracked.get_outstanding_allocations_str().find("500 B") != std::string::npos);
    tracked.deallocate_sync(second, 500);
    CHECK(tracked.get_outstanding_allocations().empty());
}

CASE(rows_go_to_streams_sinks_and_files)
{
    std::ostringstream text, other;
    const std::string path = "/tmp/rmm-compat-" + std::to_string(getpid()) + ".csv";
    auto sink = std::make_shared<rapids_logger::ostream_sink_mt>(other);
    rmm::mr::logging_resource_adaptor to_stream(rmm::mr::cuda_memory_resource(), text);
    rmm::mr::logging_resource_adaptor to_sinks(to_stream, {sink, sink});
    rmm::mr::logging_resource_adaptor to_file(to_sinks, path);

    to_file.deallocate_sync(to_file.allocate_sync(1000), 1000);
    to_file.flush();
    to_sinks.flush();
    to_stream.flush();
    CHECK(text.str().rfind(to_stream.header() + "\n", 0) == 0);
    CHECK(text.str().find(",allocate,") != std::string::npos);
    CHECK(text.str().find(",free,") != std::string::npos);
    const std::size_t rows = other.str().find(to_sinks.header(), 1);
    CHECK(rows != std::string::npos); /* each sink has the header */
    CHECK(unlink(path.c_str()) == 0);
    unsetenv("RMM_LOG_FILE");
    THROWS(
        rmm::logic_error,
        rmm::mr::logging_resource_adaptor(any_device_resource(to_file)));
}

CASE(a_per_cent_sign_in_the_name_of_a_log_is_what_rmm_takes_it_for)
{
    const std::string begin = "/tmp/rmm-compat-" + std::to_string(getpid());
    const std::string path = begin + ".50% of 100%%, %d.csv%";
    const std::string expected = begin + ".50% of 100%, 0.csv%";

    {
        rmm::mr::logging_resource_adaptor logged(
            rmm::mr::cuda_memory_resource(), path, true);
        logged.deallocate_sync(logged.allocate_sync(1000), 1000);
    }
    CHECK(unlink(expected.c_str()) == 0);
}

CASE(the_logger_has_the_librarys_level_and_messages)
{
    std::ostringstream text;
    rmm::default_logger().sinks().push_back(
        std::make_shared<rapids_logger::ostream_sink_mt>(text));
    rmm::default_logger().set_level(rapids_logger::level_enum::warn);
    CHECK(rmm_log_get_level() == RMM_LEVEL_WARN);

    RMM_LOG_WARN("%d of %s", 3, "these");
    RMM_LOG_INFO("not this");
    rmm::default_logger().set_level(rapids_logger::level_enum::debug);
    RMM_LOG_DEBUG("compiled in");
    rmm::default_logger().set_level(rapids_logger::level_enum::warn);
    THROWS(
        rmm::out_of_memory,
        rmm::mr::cuda_memory_resource().allocate_sync(std::size_t(1) << 50));
    rmm::default_logger().set_level(rapids_logger::level_enum::off);
    rmm::default_logger().sinks().pop_back();
    CHECK(text.str().find("[warning] 3 of these\n") != std::string::npos);
    CHECK(text.str().find("not this") == std::string::npos);
    CHECK(
        (text.str().find("compiled in") != std::string::npos) ==
        (RMM_LOG_ACTIVE_LEVEL <= RAPIDS_LOGGER_LOG_LEVEL_DEBUG));
    CHECK(text.str().find("RMM_ERR_OUT_OF_MEMORY") != std::string::npos);
}

CASE(references_and_any_resources_are_compared_with_objects)
{
    rmm::mr::pinned_host_memory_resource pinned;
    rmm::mr::cuda_memory_resource cuda;
    rmm::mr::limiting_resource_adaptor limiter(cuda, mib), other(cuda, mib);
    const rmm::device_async_resource_ref ref(limiter);
    const rmm::host_resource_ref host(pinned);
    const any_device_resource any(limiter);

    CHECK(ref == limiter && limiter == ref && any == limiter && limiter == any);
    CHECK(ref != other && other != ref && any != other && !(ref != limiter));
    CHECK(ref != cuda && cuda != ref && host == pinned && pinned == host);
}

CASE(references_are_narrowed_and_any_resources_copied)
{
    rmm::mr::pinned_host_memory_resource pinned;
    rmm::host_device_async_resource_ref both(pinned);
    rmm::device_async_resource_ref device(both);
    rmm::host_resource_ref host(both);
    any_device_resource any(device), copy = any, moved = std::move(copy);
    rmm::mr::limiting_resource_adaptor limiter(pinned, mib);
    any_device_resource of_limiter(limiter);

    host.deallocate_sync(device.allocate_sync(1000, 256), 1000, 256);
    moved.deallocate_sync(any.allocate_sync(1000, 256), 1000, 256);
    CHECK(moved == any && any != of_limiter);
    using rmm::detail::resource_cast;
    using rmm::mr::limiting_resource_adaptor;
    CHECK(resource_cast<limiting_resource_adaptor>(&of_limiter) != nullptr);
    CHECK(
        resource_cast<limiting_resource_adaptor>(&of_limiter)->get_allocation_limit() ==
        mib);
    CHECK(resource_cast<rmm::mr::cuda_memory_resource>(&of_limiter) == nullptr);
    rmm::mr::cuda_memory_resource *missing = nullptr;
    THROWS(rmm::logic_error, rmm::to_device_async_resource_ref_checked(missing));
}

CASE(names_of_rmm_26_06_are_there)
{
    rmm::mr::limiting_resource_adaptor limiter(rmm::mr::cuda_memory_resource(), mib);
    any_device_resource before = rmm::mr::set_current_device_resource_ref(limiter);

    CHECK(rmm::mr::get_current_device_resource_ref() == limiter);
    CHECK(rmm::mr::reset_current_device_resource_ref() == limiter);
    const rmm::cuda_device_id device(0);
    rmm::mr::set_per_device_resource_ref(device, limiter);
    CHECK(rmm::mr::reset_per_device_resource_ref(device) == limiter);
    CHECK(rmm::mr::get_current_device_resource_ref() == before);
    static_assert(rmm::mr::is_resource_adaptor<rmm::mr::limiting_resource_adaptor>);
    static_assert(!rmm::mr::is_resource_adaptor<rmm::mr::cuda_memory_resource>);
    static_assert(!rmm::mr::is_resource_adaptor<int>);
    using usage = rmm::mr::cuda_async_memory_resource::mempool_usage;
    CHECK(static_cast<int>(usage::hw_decompress) == 2);
}

#if !RMM_COMPAT_HAS_CCCL
CASE(a_reference_has_a_default_alignment)
{
    rmm::mr::cuda_memory_resource cuda_mr;
    any_device_resource any(cuda_mr);
    rmm::device_async_resource_ref ref(any);
    const rmm::cuda_stream stream;

    void *ptr = any.allocate(stream, 100);
    CHECK(rmm::is_pointer_aligned(ptr));
    ref.deallocate(stream, ptr, 100);
    ref.deallocate_sync(any.allocate_sync(100), 100);
}
#if !__has_include(<cuda/std/version>)
/* A machine without CCCL: a program names the classes as those of CCCL. */
CASE(the_names_of_cccl_are_those_of_this_library)
{
    rmm::mr::cuda_memory_resource cuda_mr;
    cuda::mr::any_resource<cuda::mr::device_accessible> any(cuda_mr);
    cuda::mr::resource_ref<cuda::mr::device_accessible> ref(any);
    const cuda::stream_ref stream = rmm::cuda_stream_default;

    ref.deallocate(stream, ref.allocate(stream, 100), 100);
    static_assert(std::is_same_v<decltype(ref), rmm::device_async_resource_ref>);
    CHECK(any == cuda_mr && stream.get() == nullptr);
}
#endif
#endif

#if RMM_COMPAT_HAS_CCCL
CASE(resources_satisfy_the_concepts_of_cccl)
{
    using cuda::mr::device_accessible;
    using cuda::mr::host_accessible;

    static_assert(
        cuda::mr::resource_with<rmm::mr::cuda_memory_resource, device_accessible>);
    static_assert(
        cuda::mr::resource_with<rmm::mr::pool_memory_resource, device_accessible>);
    static_assert(
        cuda::mr::resource_with<
            rmm::mr::pinned_host_memory_resource, device_accessible, host_accessible>);
    static_assert(
        !cuda::mr::resource_with<rmm::mr::pool_memory_resource, host_accessible>);
    cuda::mr::any_resource<device_accessible> any{
        rmm::mr::pool_memory_resource(rmm::mr::cuda_memory_resource(), 0)};
    const rmm::cuda_stream stream;
    void *ptr = any.allocate(stream.view(), 1000, 256);

    CHECK(ptr != nullptr);
    any.deallocate(stream.view(), ptr, 1000, 256);
}
#endif
