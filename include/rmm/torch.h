/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/torch.h
 *
 * The two functions that PyTorch's pluggable allocator asks for, over the default resource
 * of the device (rmm/device_resource.h):
 *
 *   alloc = torch.cuda.memory.CUDAPluggableAllocator(
 *       "librmm-c.so", "rmm_torch_malloc", "rmm_torch_free")
 *   torch.cuda.memory.change_current_allocator(alloc)   # before the first use of CUDA
 *
 * RMM_RESOURCE=pool:80% in the environment then chooses a pool. PyTorch's own memory
 * statistics are not there with a pluggable allocator; those in /rmm are.
 *
 * Lifetime: a block goes back to the resource that it came from, also when another one is
 * the default by then; that resource lives as long as any block of it.
 *
 * Threads: any. A lock around a hash table, beside what the resource does.
 *
 * Streams: a tensor belongs to the stream that is current at its creation and is freed in
 * that stream's order. PyTorch tells a pluggable allocator nothing of
 * Tensor.record_stream(): a tensor that another stream uses must be kept until that stream
 * is done with it.
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
 * PyTorch takes whatever comes back for an address, and the first kernel on NULL would end
 * the use of the GPU in this process. So where PyTorch is in the process (libc10.so is
 * loaded) a failure is raised as std::runtime_error, which Python sees as a RuntimeError
 * with the reason; its text says "out of memory" where that is the reason. Elsewhere it is
 * NULL, and rmm_last_error_message() has the reason. It is logged in any case.
 *
 * @param bytes   0 yields NULL, and is no failure
 * @param device  ordinal
 * @param stream  the stream of first use
 * @return the address, or NULL
 */
RMM_API RMM_NODISCARD void *
rmm_torch_malloc(size_t bytes, int device, rmm_stream_t stream);

/**
 * Give memory of rmm_torch_malloc() back in stream order. Never fails: a pointer that did
 * not come from there is logged and left alone.
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
