/* SPDX-License-Identifier: Apache-2.0 */
/* Logs, statistics, limits and callbacks around a resource. */
#include "program.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <rmm/cuda_stream.hpp>
#include <rmm/logger.hpp>
#include <rmm/mr/device/aligned_resource_adaptor.hpp>
#include <rmm/mr/device/callback_memory_resource.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/failure_callback_resource_adaptor.hpp>
#include <rmm/mr/device/limiting_resource_adaptor.hpp>
#include <rmm/mr/device/logging_resource_adaptor.hpp>
#include <rmm/mr/device/statistics_resource_adaptor.hpp>
#include <rmm/mr/device/thread_safe_resource_adaptor.hpp>
#include <rmm/mr/device/tracking_resource_adaptor.hpp>

namespace
{

using upstream = rmm::mr::cuda_memory_resource;

void log_of_events_is_written(const std::string &filename)
{
    upstream cuda;
    std::ostringstream text;
    {
        rmm::mr::logging_resource_adaptor<upstream> log_mr{&cuda, filename};
        const rmm::cuda_stream stream;
        void *ptr = log_mr.allocate(1024, stream);
        log_mr.deallocate(ptr, 1024, stream);
        log_mr.flush();
    }
    text << std::ifstream(filename).rdbuf();
    REQUIRE(text.str().find("Thread,Time,Action,Pointer,Size,Stream") == 0);
    REQUIRE(text.str().find(",allocate,") != std::string::npos);
    REQUIRE(text.str().find(",free,") != std::string::npos);
}

void log_of_the_variable_is_written(const std::string &filename)
{
    upstream cuda;
    bool has_thrown = false;

    (void)unsetenv("RMM_LOG_FILE");
    try {
        rmm::mr::logging_resource_adaptor<upstream> without{&cuda};
    } catch (const rmm::logic_error &) {
        has_thrown = true;
    }
    REQUIRE(has_thrown);
    (void)setenv("RMM_LOG_FILE", filename.c_str(), 1);
    {
        rmm::mr::logging_resource_adaptor<upstream> log_mr{&cuda};
        log_mr.deallocate(log_mr.allocate(10), 10);
    }
    REQUIRE(std::ifstream(filename).good());
}

void adaptors_count_limit_and_retry()
{
    upstream cuda;
    rmm::mr::statistics_resource_adaptor<upstream> statistics{&cuda};
    rmm::mr::tracking_resource_adaptor<upstream> tracking{&cuda, true};
    rmm::mr::limiting_resource_adaptor<upstream> limiting{&cuda, 1 << 20};
    rmm::mr::thread_safe_resource_adaptor<upstream> safe{&cuda};
    rmm::mr::aligned_resource_adaptor<upstream> aligned{&cuda, 4096};
    int failures = 0;
    auto again = [](std::size_t, void *count) {
        return ++*static_cast<int *>(count) < 3;
    };
    rmm::mr::failure_callback_resource_adaptor<
        rmm::mr::limiting_resource_adaptor<upstream>>
        retrying{&limiting, again, &failures};

    void *ptr = statistics.allocate(1000);
    REQUIRE(statistics.get_bytes_counter().value == 1000);
    statistics.deallocate(ptr, 1000);
    REQUIRE(statistics.get_bytes_counter().peak == 1000);
    REQUIRE(statistics.get_allocations_counter().total == 1);
    ptr = tracking.allocate(1000);
    REQUIRE(tracking.get_allocated_bytes() == 1000);
    tracking.deallocate(ptr, 1000);
    ptr = aligned.allocate(1000);
    REQUIRE(reinterpret_cast<std::uintptr_t>(ptr) % 4096 == 0);
    aligned.deallocate(ptr, 1000);
    safe.deallocate(safe.allocate(10), 10);
    try {
        (void)retrying.allocate(2 << 20);
        REQUIRE(false);
    } catch (const rmm::out_of_memory &) {
        REQUIRE(failures == 3);
    }
}

void callbacks_are_a_resource()
{
    int calls = 0;
    auto allocate = [](std::size_t bytes, rmm::cuda_stream_view, void *arg) {
        void *ptr = nullptr;
        RMM_CUDA_TRY_ALLOC(hipMalloc(&ptr, bytes));
        ++*static_cast<int *>(arg);
        return ptr;
    };
    auto deallocate = [](void *ptr, std::size_t, rmm::cuda_stream_view, void *arg) {
        RMM_ASSERT_CUDA_SUCCESS(hipFree(ptr));
        ++*static_cast<int *>(arg);
    };
    rmm::mr::callback_memory_resource mr{allocate, deallocate, &calls, &calls};

    mr.deallocate(mr.allocate(100), 100);
    REQUIRE(calls == 2);
}

} /* namespace */

int main(int argc, char **argv)
{
    REQUIRE(argc == 2); /* a folder */
    log_of_events_is_written(std::string(argv[1]) + "/one.csv");
    log_of_the_variable_is_written(std::string(argv[1]) + "/two.csv");
    adaptors_count_limit_and_retry();
    callbacks_are_a_resource();
    rmm::logger().set_level(spdlog::level::warn);
    RMM_LOG_INFO("a line of the program's");
    return 0;
}
