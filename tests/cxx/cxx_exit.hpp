/* SPDX-License-Identifier: Apache-2.0 */
/* What the two files of cxx_exit share. */
#ifndef RMM_TESTS_CXX_EXIT_HPP
#define RMM_TESTS_CXX_EXIT_HPP

#include <rmm/rmm.hpp>

rmmc::device_buffer &other_file_buffer();

/* Of a file that is compiled with CUDA_API_PER_THREAD_DEFAULT_STREAM. */
rmmc::stream_view other_file_default();
rmmc::stream_view other_file_view_of_zero();
rmmc::resource other_file_callbacks(rmmc::stream_view *seen);
rmmc::stream_view other_file_stream_of(rmm_device_buffer_t *buffer);

#endif /* RMM_TESTS_CXX_EXIT_HPP */
