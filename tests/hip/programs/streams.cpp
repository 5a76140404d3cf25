/* SPDX-License-Identifier: Apache-2.0 */
/* Streams as HIP's handles and as RMM's classes, events between them, and HIP's errors. */
#include "program.hpp"

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream.hpp>
#include <rmm/cuda_stream_pool.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/device_buffer.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>

#include <rmm/device.h>

static_assert(
    std::is_same<decltype(rmm::cuda_stream_view().value()), hipStream_t>::value,
    "a view holds HIP's handle");
static_assert(
    std::is_convertible<hipStream_t, rmm::cuda_stream_view>::value, "from it");
static_assert(std::is_convertible<rmm::cuda_stream_view, hipStream_t>::value, "to it");

/* hipMM leaves this name to programs. */
[[maybe_unused]] static const char *cuda = "a name of the program";

namespace
{

void views_and_handles_are_the_same()
{
    hipStream_t handle = nullptr;
    RMM_CUDA_TRY(hipStreamCreateWithFlags(&handle, hipStreamNonBlocking));
    const rmm::cuda_stream_view view{handle};

    REQUIRE(view == handle && view.value() == handle && !view.is_default());
    RMM_CUDA_TRY(hipStreamSynchronize(view));
    view.synchronize();
    view.synchronize_no_throw();
    RMM_CUDA_TRY(hipStreamDestroy(handle));
    REQUIRE(rmm::cuda_stream_view{} == rmm::cuda_stream_default);
    REQUIRE(rmm::cuda_stream_default.value() == nullptr);
    REQUIRE(rmm::cuda_stream_legacy.value() == nullptr);
    REQUIRE(rmm::cuda_stream_per_thread.value() == hipStreamPerThread);
    REQUIRE(rmm::cuda_stream_per_thread.is_per_thread_default());
}

void own_streams_work_in_calls_of_hip()
{
    const rmm::cuda_stream stream;
    const rmm::cuda_stream_pool streams{4};
    std::vector<int> host(1000, 7), back(1000);
    const std::size_t bytes = host.size() * sizeof(int);

    REQUIRE(
        streams.get_pool_size() == 4 && streams.get_stream(1) == streams.get_stream(5));
    const rmm::cuda_stream_view other = streams.get_stream();
    rmm::device_buffer buffer{host.data(), bytes, stream.view()};
    hipEvent_t event = nullptr;
    RMM_CUDA_TRY(hipEventCreateWithFlags(&event, hipEventDisableTiming));
    RMM_CUDA_TRY(hipEventRecord(event, stream.value()));
    RMM_CUDA_TRY(hipStreamWaitEvent(other.value(), event, 0));
    RMM_CUDA_TRY(hipMemcpyAsync(
        back.data(), buffer.data(), bytes, hipMemcpyDeviceToHost, other.value()));
    RMM_CUDA_TRY(hipStreamSynchronize(other.value()));
    RMM_CUDA_TRY(hipEventDestroy(event));
    RMM_CUDA_TRY(hipEventCreate(&event)); /* one that measures time */
    RMM_CUDA_TRY(hipEventDestroy(event));
    REQUIRE(back == host);
    buffer.set_stream(other);
}

template <class Exception, class Call> std::string thrown_by(Call call)
{
    try {
        call();
    } catch (const Exception &error) {
        return error.what();
    }
    return std::string();
}

void errors_of_hip_become_exceptions()
{
    const std::string text =
        thrown_by<rmm::cuda_error>([] { RMM_CUDA_TRY(hipSetDevice(1000)); });
    REQUIRE(text.find("Device error at: ") == 0);
    REQUIRE(text.find("hipErrorInvalidDevice") != std::string::npos);
    REQUIRE(hipGetLastError() == hipSuccess); /* the exception has it */

    REQUIRE(!thrown_by<std::runtime_error>([] {
                 RMM_CUDA_TRY(hipErrorInvalidValue, std::runtime_error);
             }).empty());
    REQUIRE(!thrown_by<rmm::out_of_memory>([] {
                 RMM_CUDA_TRY_ALLOC(hipErrorOutOfMemory);
             }).empty());
    REQUIRE(!thrown_by<rmm::bad_alloc>([] {
                 RMM_CUDA_TRY_ALLOC(hipErrorInvalidValue);
             }).empty());
    RMM_ASSERT_CUDA_SUCCESS(hipSuccess);
    const std::string logic =
        thrown_by<rmm::logic_error>([] { RMM_EXPECTS(false, "what was expected"); });
    REQUIRE(logic.find("what was expected") != std::string::npos);
    rmm::mr::cuda_memory_resource mr;
    REQUIRE(!thrown_by<rmm::out_of_memory>([&] {
                 (void)mr.allocate(std::size_t(1) << 50);
             }).empty());
}

void devices_change_for_a_scope()
{
    int device = -1;

    RMM_CUDA_TRY(hipSetDevice(0));
    {
        const rmm::cuda_set_device_raii scope{rmm::cuda_device_id{1}};
        RMM_CUDA_TRY(hipGetDevice(&device));
        REQUIRE(device == 1 && rmm::get_current_cuda_device().value() == 1);
    }
    RMM_CUDA_TRY(hipGetDevice(&device));
    REQUIRE(device == 0);
}

} /* namespace */

int main()
{
    REQUIRE(std::strcmp(rmm_driver_name(), "hip") == 0); /* without RMM_DRIVER */
    views_and_handles_are_the_same();
    own_streams_work_in_calls_of_hip();
    errors_of_hip_become_exceptions();
    devices_change_for_a_scope();
    return 0;
}
