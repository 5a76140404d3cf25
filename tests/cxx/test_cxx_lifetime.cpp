/* SPDX-License-Identifier: Apache-2.0 */
/* Many copies in many threads, exceptions of threads, and a forked child; with RMM's header
 * names too. */
#define RMM_CXX_MAIN
#include "cxx/harness.hpp"

#include <atomic>
#include <optional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <rmm/device_buffer.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/limiting_resource_adaptor.hpp>
#include <rmm/mr/per_device_resource.hpp>

namespace
{

constexpr int thread_count = 16;

/* Runs it in each of 16 threads; a failure of one is the case's. */
template <class Function> void in_threads(Function function)
{
    std::vector<std::thread> threads;
    std::vector<std::exception_ptr> failures(thread_count);

    for (int i = 0; i < thread_count; i++) {
        threads.emplace_back([&, i] {
            try {
                function(i);
            } catch (...) {
                failures[i] = std::current_exception();
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    for (const std::exception_ptr &failure : failures) {
        if (failure != nullptr) {
            std::rethrow_exception(failure);
        }
    }
}

/* True when it ends, by an exception too. */
struct set_at_end {
    std::atomic<bool> &flag;

    ~set_at_end()
    {
        flag = true;
    }
};

} /* namespace */

/* First: a fork while threads are there would be another test. */
CASE(a_forked_child_refuses_to_allocate_and_ends_in_peace)
{
    rmmc::pool_resource pool{rmmc::cuda_resource()};
    int live = 0;
    rmmc::callback_resource counted(
        [&](std::size_t bytes, rmmc::stream_view stream) {
            live++;
            return pool.allocate(stream, bytes);
        },
        [&](void *ptr, std::size_t bytes, rmmc::stream_view stream) {
            live--;
            pool.deallocate(stream, ptr, bytes);
        });
    rmmc::device_buffer buffer(1000, {}, counted);
    std::optional<rmm::device_buffer> named(
        std::in_place, 1000, rmm::cuda_stream_default);
    pid_t child = fork();

    CHECK(child >= 0);
    if (child == 0) {
        int status = 1;
        try {
            rmmc::resource copy = counted;
            buffer = rmmc::device_buffer();
            named.reset();
            try {
                (void)copy.allocate({}, 10);
            } catch (const rmmc::unsupported &) {
                status = live == 1 ? 0 : 2;
            }
            rmmc::host_resource host;
            void *block = host.allocate({}, 10);
            host.deallocate({}, block, 10);
            copy = counted = {
                [](std::size_t, rmmc::stream_view) -> void * { return nullptr; },
                [](void *, std::size_t, rmmc::stream_view) {}};
        } catch (
            const rmmc::unsupported &) { /* of the new callback resource: a GPU's */
        } catch (...) {
            status = 3;
        }
        _exit(status);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(live == 1);
}

CASE(sixteen_threads_copy_one_resource_a_hundred_thousand_times)
{
    std::atomic<int> ended{0};
    {
        rmmc::limiting_adaptor limited(rmmc::cuda_resource(), 1 << 20);
        auto guard = std::shared_ptr<int>(new int(0), [&](int *value) {
            delete value;
            ended++;
        });
        rmmc::resource mr = rmmc::failure_callback_adaptor(
            limited, [guard](std::size_t) { return false; });
        guard.reset();
        in_threads([&](int) {
            std::vector<rmmc::resource> copies(8);
            for (int i = 0; i < 100000 / thread_count; i++) {
                rmmc::resource copy = mr;
                copies[i % 8] = copy;
                copies[(i + 3) % 8] = std::move(copy);
                CHECK(copies[i % 8] == mr);
            }
        });
        CHECK(ended == 0);
    }
    CHECK(ended == 1); /* exactly when the last reference ended */
}

CASE(sixteen_threads_allocate_a_hundred_thousand_times)
{
    rmmc::pool_resource pool{rmmc::cuda_resource()};
    rmmc::statistics_adaptor counted(pool);

    in_threads([&](int number) {
        rmmc::scoped_statistics scope(counted);
        rmmc::stream stream;
        for (int i = 0; i < 100000 / thread_count; i++) {
            std::size_t bytes = 1 + 64 * ((i + number) % 50);
            void *block = counted.allocate(stream, bytes);
            counted.deallocate(stream, block, bytes);
        }
        CHECK(scope.counters().total_count == 100000 / thread_count);
        CHECK(scope.pop().current_bytes == 0);
    });
    CHECK(
        counted.counters().total_count == 100000 &&
        pool.get_stats().current_count == 0);
}

CASE(each_thread_gets_the_exception_of_its_own_callback)
{
    rmmc::callback_resource refusing(
        [](std::size_t bytes, rmmc::stream_view) -> void * { throw bytes; },
        [](void *, std::size_t, rmmc::stream_view) {});
    rmmc::pool_resource pool(refusing);

    in_threads([&](int number) {
        for (int i = 0; i < 200; i++) {
            std::size_t bytes = std::size_t(1) << 24 | std::size_t(number * 1000 + i)
                                                           << 8;
            try {
                (void)pool.allocate({}, bytes);
                CHECK(!"it was refused");
            } catch (std::size_t thrown) {
                CHECK(thrown >= bytes && thrown < bytes + (1 << 22));
            }
        }
    });
}

CASE(a_resource_ends_after_its_last_buffer_in_whichever_thread)
{
    rmmc::statistics_adaptor upstream{rmmc::cuda_resource()};
    std::vector<rmmc::device_buffer> buffers(thread_count);
    {
        rmmc::pool_resource pool(upstream);
        for (rmmc::device_buffer &buffer : buffers) {
            buffer = rmmc::device_buffer(1000, {}, pool);
        }
    }
    CHECK(upstream.counters().current_count == 1); /* the pool's chunk */
    in_threads([&](int number) { buffers[number] = rmmc::device_buffer(); });
    CHECK(upstream.counters().current_count == 0);
}

CASE(buffers_are_made_while_another_thread_changes_the_default)
{
    using rmm::mr::limiting_resource_adaptor;
    limiting_resource_adaptor mrs[] = {
        limiting_resource_adaptor(rmm::mr::cuda_memory_resource(), 1 << 20),
        limiting_resource_adaptor(rmm::mr::cuda_memory_resource(), 1 << 20)};
    std::atomic<bool> is_over{false};
    int wrong = 0; /* of the first thread */

    in_threads([&](int number) {
        while (number != 0 && !is_over) {
            const rmm::device_buffer buffer(100, rmm::cuda_stream_per_thread);
            CHECK(buffer.data() != nullptr);
        }
        if (number != 0) {
            return;
        }
        const set_at_end end{is_over};
        for (int i = 0; i < 2000; i++) {
            rmm::mr::set_current_device_resource(mrs[i % 2]);
            const rmm::device_async_resource_ref now =
                rmm::mr::get_current_device_resource_ref();
            std::this_thread::yield();
            wrong += now != rmm::device_async_resource_ref(mrs[i % 2]);
        }
    });
    rmm::mr::reset_current_device_resource();
    CHECK(wrong == 0);
}

/* Another thread has looked at the library's table, and comes late. */
CASE(a_late_get_of_the_default_destroys_no_referenced_object)
{
    using rmm::mr::detail::find_default, rmm::mr::detail::renew_default;
    const rmm::cuda_device_id device(0);
    rmm::mr::limiting_resource_adaptor first(rmm::mr::cuda_memory_resource(), 1 << 20);
    rmm::mr::limiting_resource_adaptor next(rmm::mr::cuda_memory_resource(), 1 << 20);
    const rmmc::resource late = rmmc::get_per_device_resource(0);
    rmm::mr::detail::default_resource seen;

    (void)rmm::mr::set_per_device_resource(device, first);
    CHECK(find_default(0, late, seen) == nullptr);
    (void)rmm::mr::set_per_device_resource(device, next);
    CHECK(renew_default(0, late, seen) == nullptr); /* it is another */

    CHECK(find_default(0, late, seen) == nullptr);
    const auto ref = rmm::mr::get_per_device_resource_ref(device);
    CHECK(renew_default(0, late, seen) == nullptr); /* it was used since */
    CHECK(ref == rmm::device_async_resource_ref(next));

    CHECK(find_default(0, late, seen) == nullptr);
    rmmc::reset_per_device_resource(0);
    CHECK(renew_default(0, late, seen) != nullptr);
    rmm::mr::reset_current_device_resource();
}

CASE(a_hundred_thousand_exceptions_leave_nothing_behind)
{
    rmmc::callback_resource refusing(
        [](std::size_t bytes, rmmc::stream_view) -> void * { throw bytes; },
        [](void *, std::size_t, rmmc::stream_view) {});
    int caught = 0;

    for (int i = 1; i <= 100000; i++) {
        try {
            (void)refusing.allocate({}, i);
        } catch (std::size_t bytes) {
            caught += bytes == std::size_t(i);
        }
    }
    CHECK(caught == 100000 && refusing.get_stats().current_count == 0);
}
