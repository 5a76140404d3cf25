/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/torch.h
 *
 * The functions that PyTorch's pluggable allocator calls. They use the default resource
 * of the device (rmm/device_resource.h):
 *
 *   alloc = torch.cuda.memory.CUDAPluggableAllocator(
 *       "librmm-c.so", "rmm_torch_malloc", "rmm_torch_free")
 *   library = ctypes.CDLL("librmm-c.so")
 *   alloc.allocator().set_record_stream_fn(
 *       ctypes.cast(library.rmm_torch_record_stream, ctypes.c_void_p).value)
 *   torch.cuda.memory.change_current_allocator(alloc)   # before the first use of CUDA
 *
 * RMM_RESOURCE in the environment chooses the default resource of the devices; without it the first
 * allocation of rmm_torch_malloc() calls rmm_default_resource_prefer_auto(). PyTorch has no memory
 * statistics of a pluggable allocator; use those in /rmm.
 *
 * Lifetime: a block is freed to the resource that it came from, even if the default has
 * changed. That resource lives as long as any block of it.
 *
 * Threads: any. Each call takes a lock around a hash table, besides the locks of the
 * resource.
 *
 * Streams: a tensor belongs to the stream that is current at its creation and is freed in
 * that stream's order. Tensor.record_stream() names a further stream, and the free is then
 * ordered after that stream too. PyTorch passes it on only if it was told the function, as
 * above; otherwise keep the tensor until the other stream is done.
 */
#ifndef RMM_TORCH_H
#define RMM_TORCH_H

#include <stddef.h>

#include <rmm/export.h>
#include <rmm/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Allocate for PyTorch.
 *
 * PyTorch uses any result as an address, and a kernel that accesses NULL makes the GPU
 * unusable for this process. So if PyTorch is loaded (libc10.so), a failure throws
 * std::runtime_error, which Python sees as a RuntimeError with the reason. Its text contains
 * "out of memory" if that is the reason. Without PyTorch the result of a failure is NULL,
 * and rmm_last_error_message() has the reason. Every failure is logged.
 *
 * @param bytes   0 yields NULL, which is not a failure
 * @param device  ordinal
 * @param stream  the stream of first use
 * @return the address, or NULL
 */
RMM_API RMM_NODISCARD void *
rmm_torch_malloc(size_t bytes, int device, rmm_stream_t stream);

/**
 * Free memory of rmm_torch_malloc() in stream order. Never fails: any other pointer is
 * logged and ignored.
 *
 * @param ptr     NULL is ignored
 * @param bytes   as at the allocation
 * @param device  as at the allocation
 * @param stream  a live stream after every use
 */
RMM_API void rmm_torch_free(void *ptr, size_t bytes, int device, rmm_stream_t stream);

/**
 * Another stream uses a block: rmm_torch_free() will order the free after the work that this
 * stream has then. The stream must live until then, as PyTorch's own streams do. Without host
 * memory it fails as rmm_torch_malloc() does.
 *
 * While a stream captures: if the free is captured too, and in the same capture, the order
 * becomes part of the graph. If only the free is captured, the host waits for the stream. If
 * only the use is captured, nothing is ordered: a block that a graph uses must outlive it.
 *
 * @param ptr     of rmm_torch_malloc(); any other pointer is ignored
 * @param stream  recording it again has no effect
 */
RMM_API void rmm_torch_record_stream(void *ptr, rmm_stream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* RMM_TORCH_H */
