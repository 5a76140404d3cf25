/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/prefetch.hpp
 *
 * Moves managed memory to a device in stream order. A hint: nothing for other memory. A default
 * stream is that of the current device.
 */
#ifndef RMM_COMPAT_PREFETCH_HPP
#define RMM_COMPAT_PREFETCH_HPP

#include <cstddef>

#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/device.h>
#include <rmm/error.hpp>
#if RMM_COMPAT_HAS_STREAM_REF
#include <cuda/std/span>
#endif

namespace RMM_NAMESPACE
{

RMM_CXX_OF_THIS_FILE void prefetch(
    const void *ptr, std::size_t size, cuda_device_id device, cuda_stream_view stream)
{
    const rmm_stream_t handle = rmmc::stream_view(stream.value()).value();

    detail::check([&] { return rmm_prefetch(ptr, size, device.value(), handle); });
}

#if RMM_COMPAT_HAS_STREAM_REF
template <class T>
void prefetch(
    cuda::std::span<const T> data, cuda_device_id device, cuda_stream_view stream)
{
    prefetch(data.data(), data.size_bytes(), device, stream);
}
#endif

} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_PREFETCH_HPP */
