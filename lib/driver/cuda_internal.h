/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files over the CUDA runtime.
 *
 *   cuda.c          devices, memory, streams, events, the table, opening
 *   cuda_memory.c   copies, where managed memory lies, memory pools
 *   cuda_virtual.c  virtual memory, by the driver's entry points
 */
#ifndef RMM_DRIVER_CUDA_INTERNAL_H
#define RMM_DRIVER_CUDA_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Here NULL is the legacy default stream, whatever the program that builds this means by
 * it: that program names its own default stream (RMM_STREAM_DEFAULT in rmm/stream.h). */
#undef CUDA_API_PER_THREAD_DEFAULT_STREAM

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "driver/driver.h"

/*
 * The process exits: the runtime is about to go, and a call into it from a thread that
 * still runs, or from a later exit handler, may crash (seen on an H200: a thread in
 * cudaEventRecord). From here on every call returns cudaErrorCudartUnloading. A call that
 * is under way at that moment cannot be helped without a lock around each.
 */
extern atomic_bool rmm__cuda_exits;

static inline bool rmm__cuda_is_exiting(void)
{
    return atomic_load_explicit(&rmm__cuda_exits, memory_order_relaxed);
}

/* A failed call's code, with the runtime's last error cleared. */
static inline int rmm__cuda_cleared(cudaError_t error)
{
    if (error != cudaSuccess) {
        (void)cudaGetLastError();
    }
    return (int)error;
}

/* CALL(cudaFunction(...)): the call, unless the process exits. */
#define CALL(call)                                                                     \
    (rmm__cuda_is_exiting() ? RMM_DRIVER_UNLOADING : rmm__cuda_cleared(call))

/* OWN(CALL(...)): a call that takes memory for the library, or gives it back. */
#define OWN(call) (rmm__driver_own_enter(), rmm__driver_own_leave((int)(call)))

/* The function of that name with the meaning that it had in `cuda_version`. */
int rmm__cuda_find_entry(const char *name, unsigned cuda_version, void **function);

/* A descriptor that the driver has made, as the library keeps it: above those of the standard
 * streams, closed by an exec. -1: none is left. */
int rmm__cuda_own_descriptor(int fd);

/* ---- cuda_memory.c ---- */

int rmm__cuda_memcpy_async(
    void *dst, const void *src, size_t bytes, rmm_stream_t stream);
int rmm__cuda_memset_async(void *dst, int value, size_t bytes, rmm_stream_t stream);
int rmm__cuda_mem_prefer(void *ptr, size_t bytes, int device);
int rmm__cuda_mem_prefetch(
    const void *ptr, size_t bytes, int device, rmm_stream_t stream);
/* Look for the entry points of the two calls that an allocation and a free are. */
void rmm__cuda_mempool_open(void);
int rmm__cuda_mempool_create(
    uint32_t handle_types, int node, rmm_driver_mempool_t *pool);
/* One of RMM_DRIVER_HOST_ATTRIBUTE_MAP. */
int rmm__cuda_host_attribute(rmm_driver_attribute_t attribute, int device, int *value);
int rmm__cuda_mempool_destroy(rmm_driver_mempool_t pool);
int rmm__cuda_mempool_managed(rmm_driver_mempool_t *pool);
int rmm__cuda_mempool_get_threshold(rmm_driver_mempool_t pool, uint64_t *bytes);
int rmm__cuda_mempool_set_threshold(rmm_driver_mempool_t pool, uint64_t bytes);
int rmm__cuda_mempool_figures(
    rmm_driver_mempool_t pool, rmm_driver_mempool_figures_t *figures);
int rmm__cuda_mempool_trim(rmm_driver_mempool_t pool, size_t keep_bytes);
int rmm__cuda_mempool_alloc(
    rmm_driver_mempool_t pool, void **ptr, size_t bytes, rmm_stream_t stream);
int rmm__cuda_mempool_free(void *ptr, rmm_stream_t stream);
int rmm__cuda_mempool_access(rmm_driver_mempool_t pool, uint32_t devices);
int rmm__cuda_mempool_export(
    rmm_driver_mempool_t pool, uint32_t type, rmm_driver_handle_t *handle);
int rmm__cuda_mempool_export_pointer(
    const void *ptr, unsigned char data[RMM_DRIVER_HANDLE_BYTES]);
int rmm__cuda_mempool_import(
    const rmm_driver_handle_t *handle, rmm_driver_mempool_t *pool);
int rmm__cuda_mempool_import_pointer(
    rmm_driver_mempool_t pool, const unsigned char data[RMM_DRIVER_HANDLE_BYTES],
    void **ptr);
int rmm__cuda_peer_can_access(int device, int peer, int *can);

/* ---- cuda_virtual.c ---- */

/* Look for the entry points; without them each call returns NOT_SUPPORTED. */
void rmm__cuda_virtual_open(void);
/* An attribute as the driver knows it, whatever the headers and the runtime know; 0 where the entry
 * points are missing. */
int rmm__cuda_driver_attribute(int attribute, int device, int *value);

int rmm__cuda_virtual_granularity(size_t *bytes);
int rmm__cuda_address_reserve(void **ptr, size_t bytes);
int rmm__cuda_address_free(void *ptr, size_t bytes);
int rmm__cuda_physical_create(
    size_t bytes, uint32_t flags, rmm_driver_physical_t *physical);
int rmm__cuda_physical_export(
    rmm_driver_physical_t physical, uint32_t type, rmm_driver_handle_t *handle);
int rmm__cuda_physical_import(
    const rmm_driver_handle_t *handle, rmm_driver_physical_t *physical);
int rmm__cuda_physical_release(rmm_driver_physical_t physical);
int rmm__cuda_address_map(void *ptr, size_t bytes, rmm_driver_physical_t physical);
int rmm__cuda_address_unmap(void *ptr, size_t bytes);
int rmm__cuda_address_access(void *ptr, size_t bytes, uint32_t devices);

#endif /* RMM_DRIVER_CUDA_INTERNAL_H */
