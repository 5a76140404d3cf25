/* SPDX-License-Identifier: Apache-2.0 */
/* The second file of cxx_exit: its default stream is the thread's. */
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include "cxx/cxx_exit.hpp"

rmmc::device_buffer &other_file_buffer()
{
    static rmmc::device_buffer buffer;
    return buffer;
}

rmmc::stream_view other_file_default()
{
    return {};
}

rmmc::stream_view other_file_view_of_zero()
{
    return rmm_stream_t(nullptr);
}

rmmc::resource other_file_callbacks(rmmc::stream_view *seen)
{
    return rmmc::callback_resource(
        [seen](std::size_t bytes, rmmc::stream_view stream) {
            *seen = stream;
            return rmmc::cuda_resource().allocate(stream, bytes);
        },
        [seen](void *ptr, std::size_t bytes, rmmc::stream_view stream) {
            *seen = stream;
            rmmc::cuda_resource().deallocate(stream, ptr, bytes);
        });
}

rmmc::stream_view other_file_stream_of(rmm_device_buffer_t *buffer)
{
    return rmmc::device_buffer::adopt(buffer).stream();
}
