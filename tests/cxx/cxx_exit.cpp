/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that end after main(): static ones in two files and thread-local ones, with memory
 * held, and one that allocates and catches exceptions of a callback in its destructor, when the
 * thread's own objects have ended. Exit status 0, or the first step that failed.
 */
#include "cxx/cxx_exit.hpp"

#include <cstdlib>
#include <thread>
#include <unistd.h>
#include <utility>

namespace
{

void need(bool condition, int step)
{
    if (!condition) {
        _exit(step);
    }
}

/* Constructed first, so it ends last. */
struct last {
    rmmc::resource refusing;

    last() = default;
    last(const last &) = delete;
    last &operator=(const last &) = delete;
    ~last()
    {
        rmmc::resource pool = rmmc::pool_resource{rmmc::cuda_resource()};
        void *block = pool.allocate({}, 1000);
        bool failed = false;

        need(block != nullptr, 10);
        pool.deallocate({}, block, 1000);
        try {
            (void)refusing.allocate({}, 1000);
        } catch (
            const rmmc::bad_alloc &error) { /* the status; the exception is not kept */
            failed = error.status() == RMM_ERR_BAD_ALLOC;
        } catch (int number) {
            failed = number == 5; /* kept: this thread's objects live on */
        }
        need(failed, 11);
        need(rmmc::take_unhandled_exception() == nullptr, 12);
    }
};

/* NULL is the legacy stream to C, also where callbacks of the other file get it. */
void check_null_of_c()
{
    rmmc::stream_view on_alloc(RMM_STREAM_PER_THREAD), seen(RMM_STREAM_PER_THREAD);
    rmmc::resource mr = other_file_callbacks(&seen);
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;

    need(rmm_device_buffer_init(&buffer, 100, nullptr, mr.get()) == RMM_OK, 30);
    on_alloc = std::exchange(seen, rmmc::stream_view(RMM_STREAM_PER_THREAD));
    need(other_file_stream_of(&buffer).is_default(), 31); /* and frees it */
    need(on_alloc.is_default() && seen.is_default(), 32);
}

last ends_last;
rmmc::device_array<int> values;
thread_local rmmc::device_buffer of_thread;

} /* namespace */

int main()
{
    rmmc::pool_resource pool{rmmc::cuda_resource()};
    ends_last.refusing = rmmc::callback_resource(
        [](std::size_t, rmmc::stream_view) -> void * { throw 5; },
        [](void *, std::size_t, rmmc::stream_view) {});
    try {
        (void)ends_last.refusing.allocate({}, 1);
        return 1;
    } catch (int number) {
        need(number == 5, 2);
    }
    values = rmmc::device_array<int>(std::vector<int>(100, 7), {}, pool);
    of_thread = rmmc::device_buffer(100, {}, pool);
    other_file_buffer() = rmmc::device_buffer(100, {}, pool);
    std::thread([&] { of_thread = rmmc::device_buffer(200, {}, pool); }).join();
    need(pool.get_stats().current_count == 3, 3);
    need(other_file_default().is_per_thread_default(), 4);
    need(other_file_view_of_zero().is_per_thread_default(), 5);
    need(rmmc::stream_view().is_default(), 6);
    need(rmmc::stream_view(rmm_stream_t(nullptr)).is_default(), 7);
    check_null_of_c();
    std::atexit([] { need(values.to_vector({})[99] == 7, 20); });
    return 0;
}
