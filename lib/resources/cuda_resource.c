/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory from cudaMalloc; all but the calls is in driver_memory.c.
 */
#include <rmm/cuda_resource.h>

#include "core/assert.h"
#include "resources/driver_memory.h"

static int cuda_alloc(const rmm_driver_t *driver, void **ptr_out, size_t bytes)
{
    return driver->mem_alloc(ptr_out, bytes);
}

static int cuda_free(const rmm_driver_t *driver, void *ptr)
{
    return driver->mem_free(ptr);
}

static const rmm_resource_ops_t cuda_ops = RMM_DRIVER_MEMORY_OPS("cuda");

static rmm_tracked_t *instances; /* one for each device; NULL: none lives */

static const rmm_driver_memory_kind_t cuda_kind = {
    .ops = &cuda_ops,
    .properties = RMM_DEVICE_ACCESSIBLE,
    .in_host_memory = false,
    .alloc_call = "cudaMalloc",
    .free_call = "cudaFree",
    .alloc = cuda_alloc,
    .free = cuda_free,
    .instances = &instances,
};

rmm_status_t rmm_cuda_resource_create(rmm_resource_t **out)
{
    RMM_CHECK_ARG(out != NULL, "out is NULL");
    return rmm__driver_memory_create(&cuda_kind, out);
}
