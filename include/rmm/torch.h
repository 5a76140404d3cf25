/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/torch.h
 *
 * The two functions that PyTorch's pluggable allocator needs. They use the default resource
 * of the device (rmm/device_resource.h):
 *
 *   alloc = torch.cuda.memory.CUDAPluggableAllocator(
 *       "librmm-c.so", "rmm_torch_malloc", "rmm_torch_free")
 *   torch.cuda.memory.change_current_allocator(alloc)   # before the first use of CUDA
 *
 * RMM_RESOURCE=pool:80% in the environment then chooses a pool. PyTorch has no memory
 * statistics of a pluggable allocator; use those in /rmm.
 *
 * Lifetime: a block is freed to the resource that it came from, even if the default has
 * changed. That resource lives as long as any block of it.
 *
 * Threads: any. Each call takes a lock around a hash table, besides the locks of the
 * resource.
 *
 * Streams: a tensor belongs to the stream that is current at its creation and is freed in
 * that stream's order. PyTorch does not pass Tensor.record_stream() on to a pluggable
 * allocator: if another stream uses a tensor, keep the tensor until that stream is done.
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
 * @param bytes   0 yields NULL, and is no failure
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
 * @param stream  a live stream behind every use
 */
RMM_API void rmm_torch_free(void *ptr, size_t bytes, int device, rmm_stream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* RMM_TORCH_H */
