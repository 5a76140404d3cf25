/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of the resources of system memory (system, sam_headroom): the host's
 * pages, which the device reads and writes directly if it has access to pageable memory
 * (HMM, or ATS on Grace). There is one instance for each device and headroom, shared by
 * all that create one.
 *
 * Returning pages to the host is not ordered on any stream, so a free first waits for
 * its stream.
 *
 * Locking: as tracked.h; no lock is held during a driver call.
 */
#ifndef RMM_RESOURCES_SYSTEM_MEMORY_H
#define RMM_RESOURCES_SYSTEM_MEMORY_H

#include "driver/driver.h"
#include "resources/tracked.h"

typedef struct rmm_system_memory {
    rmm_tracked_t tracked; /* first member */
    const rmm_driver_t *driver;
    uint64_t headroom_bytes;
    size_t page_bytes;
} rmm_system_memory_t;

typedef struct rmm_system_plan {
    const rmm_resource_ops_t *ops; /* made by RMM_SYSTEM_OPS */
    const rmm_tracked_source_t *source;
    const char *name; /* NULL: the type's */
    uint64_t headroom_bytes;
    /* Keys are too small for a device and a headroom: a list for each device. */
    rmm_tracked_t **instances; /* RMM_SEGMENT_DEVICES of them, all NULL at first */
} rmm_system_plan_t;

#define RMM_SYSTEM_OPS(type)                                                           \
    {                                                                                  \
        .type_name = (type), .alloc = rmm__tracked_alloc,                              \
        .dealloc = rmm__tracked_dealloc, .trim = rmm__tracked_trim,                    \
        .destroy = rmm__system_destroy, .ready_on_all_streams = true,                  \
        .owns_blocks = true,                                                           \
    }

static inline rmm_system_memory_t *rmm__system_from_tracked(rmm_tracked_t *tracked)
{
    return RMM_CONTAINER_OF(tracked, rmm_system_memory_t, tracked);
}

/* The op: waits for all devices if a block is live. */
void rmm__system_destroy(rmm_resource_t *mr);

/* Memory of the host's heap, or RMM_ERR_OUT_OF_MEMORY. */
rmm_status_t rmm__system_heap_alloc(const rmm_request_t *request, void **ptr_out);
rmm_status_t rmm__system_no_memory(const rmm_request_t *request);

/* Wait for the work on this stream that uses the block. False: the wait failed, which is
 * logged; the block must not be freed. */
bool rmm__system_wait(
    const rmm_system_memory_t *self, const void *ptr, const rmm_request_t *request);

/* A complete creator, except for the check of its arguments. */
rmm_status_t rmm__system_create(const rmm_system_plan_t *plan, rmm_resource_t **out);

#endif /* RMM_RESOURCES_SYSTEM_MEMORY_H */
