/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of NVTX's memory annotations: it loads the tool that NVTX_INJECTION64_PATH names
 * (compute-sanitizer sets it) and passes on heaps and the regions in them. A heap is memory
 * that may be accessed in its registered regions only. The tool knows a region by its
 * address.
 *
 * Threads: open() once, before the others; then any. The caller orders what concerns the
 * same addresses.
 */
#ifndef RMM_BASE_NVTX_MEMORY_H
#define RMM_BASE_NVTX_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* True if the environment names a tool, and does not switch the annotations off. */
bool rmm__nvtx_memory_is_asked_for(void);

/* Load the tool, after CUDA was initialised: compute-sanitizer requires that. False: there is none
 * that takes annotations of memory. Logs nothing, so that the caller may hold what it likes. */
bool rmm__nvtx_memory_open(void);

/* After it: logs one line on the result. */
void rmm__nvtx_memory_log(void);

/* NULL: the tool refuses. */
void *rmm__nvtx_heap_register(const void *ptr, size_t bytes);
void rmm__nvtx_heap_unregister(void *heap);
void rmm__nvtx_region_register(void *heap, const void *ptr, size_t bytes);
void rmm__nvtx_region_unregister(const void *ptr);

#endif /* RMM_BASE_NVTX_MEMORY_H */
