// SPDX-License-Identifier: Apache-2.0
// Our headers and those of RAPIDS RMM in one file, in either order, and both used.
#ifdef OURS_FIRST
#include <rmm/rmm.hpp>
#endif

#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/error.hpp>
#if __has_include(<rmm/device_buffer.hpp>)
#include <rmm/device_buffer.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#endif
#if __has_include(<rmm/logger.hpp>)
#include <rmm/logger.hpp>
#endif

#ifdef THEIRS_FIRST
#include <rmm/rmm.hpp>
#endif

// A stream of theirs is a stream of ours, and a failure of ours can be one of theirs.
void *allocate(rmm_resource_t *mr, std::size_t bytes, rmm::cuda_stream_view stream)
{
    void *ptr = nullptr;

    RMM_EXPECTS(mr != nullptr, "the resource is NULL");
    if (rmm_resource_alloc(mr, bytes, 0, stream.value(), &ptr) != RMM_OK) {
        RMM_FAIL(rmm_last_error_message(), std::runtime_error);
    }
    return ptr;
}

// The same in C++: their stream is taken as it is.
void *allocate(
    const rmmc::device_resource &mr, std::size_t bytes, rmm::cuda_stream_view stream)
{
    return mr.allocate(stream, bytes);
}
