/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page-locked host memory; all but the calls is in driver_memory.c.
 */
#include <rmm/pinned_resource.h>

#include "core/assert.h"
#include "resources/driver_memory.h"

static int pinned_alloc(const rmm_driver_t *driver, void **ptr_out, size_t bytes)
{
    return driver->host_alloc(ptr_out, bytes);
}

static int pinned_free(const rmm_driver_t *driver, void *ptr)
{
    return driver->host_free(ptr);
}

static const rmm_resource_ops_t pinned_ops = RMM_DRIVER_MEMORY_OPS("pinned");

static rmm_tracked_t *instances; /* one for each device; NULL: none lives */

static const rmm_driver_memory_kind_t pinned_kind = {
    .ops = &pinned_ops,
    .properties = RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE,
    .in_host_memory = true,
    .of_every_device = true,
    .alloc_call = "cudaHostAlloc",
    .free_call = "cudaFreeHost",
    .alloc = pinned_alloc,
    .free = pinned_free,
    .instances = &instances,
};

rmm_status_t rmm_pinned_resource_create(rmm_resource_t **out)
{
    RMM_CHECK_ARG(out != NULL, "out is NULL");
    return rmm__driver_memory_create(&pinned_kind, out);
}
