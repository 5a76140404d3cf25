/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that moves between host and device; all but the calls is in driver_memory.c.
 */
#include <rmm/managed_resource.h>

#include "core/assert.h"
#include "resources/driver_memory.h"

static int managed_alloc(const rmm_driver_t *driver, void **ptr_out, size_t bytes)
{
    return driver->managed_alloc(ptr_out, bytes);
}

static int managed_free(const rmm_driver_t *driver, void *ptr)
{
    return driver->mem_free(ptr);
}

/* Allocates and frees the smallest piece, and returns the driver's error. */
static rmm_status_t probe(const rmm_driver_t *driver, int device, int *error_out)
{
    rmm_driver_scope_t scope;
    rmm_status_t status = rmm__driver_scope_enter(&scope, driver, device);
    void *ptr;

    if (status != RMM_OK) {
        return status;
    }
    *error_out = driver->managed_alloc(&ptr, 1);
    if (*error_out == RMM_DRIVER_OK) {
        driver->mem_free(ptr);
    }
    rmm__driver_scope_leave(&scope);
    return RMM_OK;
}

/*
 * The attribute is not enough: a virtual GPU without unified memory has it, and refuses
 * every allocation. A device that is full has managed memory all the same.
 */
static rmm_status_t try_it(const rmm_driver_t *driver, int device)
{
    int error;
    rmm_status_t status = probe(driver, device, &error);

    if (status != RMM_OK || error == RMM_DRIVER_OK ||
        error == RMM_DRIVER_MEMORY_ALLOCATION) {
        return status;
    }
    if (error == RMM_DRIVER_NOT_SUPPORTED) {
        return rmm__error_cuda(
            RMM_ERR_UNSUPPORTED, error,
            "device %d reports managed memory (cudaDevAttrManagedMemory is 1), but "
            "cudaMallocManaged returned cudaErrorNotSupported, as on a vGPU without "
            "unified memory: enable it in the vGPU's configuration, or use the cuda or "
            "the pinned resource",
            device);
    }
    return rmm__driver_error(driver, error, "cudaMallocManaged");
}

static rmm_status_t managed_check(const rmm_driver_t *driver, int device)
{
    rmm_status_t status = rmm__driver_require(
        driver, RMM_ATTRIBUTE_MANAGED_MEMORY, device,
        "has no managed memory (cudaDevAttrManagedMemory is 0): use the cuda or "
        "the pinned resource");

    return status == RMM_OK ? try_it(driver, device) : status;
}

static const rmm_resource_ops_t managed_ops = RMM_DRIVER_MEMORY_OPS("managed");

static rmm_tracked_t *instances; /* one for each device; NULL: none lives */

static const rmm_driver_memory_kind_t managed_kind = {
    .ops = &managed_ops,
    .properties = RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE,
    .in_host_memory = false,
    .of_every_device = true,
    .alloc_call = "cudaMallocManaged",
    .free_call = "cudaFree",
    .alloc = managed_alloc,
    .free = managed_free,
    .check = managed_check,
    .instances = &instances,
};

rmm_status_t rmm_managed_resource_create(rmm_resource_t **out)
{
    RMM_CHECK_ARG(out != NULL, "out is NULL");
    return rmm__driver_memory_create(&managed_kind, out);
}
