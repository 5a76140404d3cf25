/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of the resources over one pair of driver calls: cudaMalloc,
 * cudaMallocManaged, cudaHostAlloc. There is one instance for each kind and device,
 * shared by all that create one: memory of one may be freed through another, and the
 * accounting stays exact.
 *
 * Locking: as tracked.h; no lock is held during a driver call.
 */
#ifndef RMM_RESOURCES_DRIVER_MEMORY_H
#define RMM_RESOURCES_DRIVER_MEMORY_H

#include "driver/driver.h"
#include "resources/tracked.h"

/* One per kind, static. */
typedef struct rmm_driver_memory_kind {
    const rmm_resource_ops_t *ops; /* made by RMM_DRIVER_MEMORY_OPS */
    uint32_t properties;
    bool in_host_memory;
    bool of_every_device; /* work of others than its own may use it, too */
    const char *alloc_call, *free_call; /* as messages name them */
    int (*alloc)(const rmm_driver_t *driver, void **ptr_out, size_t bytes);
    int (*free)(const rmm_driver_t *driver, void *ptr);
    /* RMM_OK if the device has this kind, else why not, with the last error set. Asked
     * when the first instance of a device is made. */
    rmm_status_t (*check)(const rmm_driver_t *driver, int device);
    rmm_tracked_t **instances; /* a list with one for each device; NULL at first */
} rmm_driver_memory_kind_t;

#define RMM_DRIVER_MEMORY_OPS(name)                                                    \
    {                                                                                  \
        .type_name = (name), .alloc = rmm__tracked_alloc,                              \
        .dealloc = rmm__tracked_dealloc, .trim = rmm__tracked_trim,                    \
        .destroy = rmm__driver_memory_destroy, .ready_on_all_streams = true,           \
        .owns_blocks = true,                                                           \
    }

/* The op: waits for all devices if a block is live. */
void rmm__driver_memory_destroy(rmm_resource_t *mr);

/* A complete creator, except for the check of `out`. */
rmm_status_t
rmm__driver_memory_create(const rmm_driver_memory_kind_t *kind, rmm_resource_t **out);

#endif /* RMM_RESOURCES_DRIVER_MEMORY_H */
