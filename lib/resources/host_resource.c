/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the host's heap, aligned. Asks for no driver: it works on a machine without
 * a GPU, and with a RMM_DRIVER that is wrong.
 *
 * One instance per process, which every create returns.
 *
 * Locking: as tracked.h.
 */
#include <rmm/host_resource.h>

#include <stdlib.h>

#include "core/assert.h"
#include "core/host_memory.h"
#include "resources/tracked.h"

static rmm_tracked_t *instances; /* a list of one; NULL: none lives */

static rmm_status_t
host_obtain(rmm_tracked_t *self, const rmm_request_t *request, void **ptr_out)
{
    (void)self;
    if (rmm__host_memory_should_fail() ||
        posix_memalign(ptr_out, request->align, request->bytes) != 0) {
        return rmm__error(
            RMM_ERR_OUT_OF_MEMORY,
            "no host memory for %zu bytes aligned to %zu: the process or the "
            "machine is at its limit",
            request->bytes, request->align);
    }
    return RMM_OK;
}

static void host_give_back(rmm_tracked_t *self, void *ptr, const rmm_request_t *request)
{
    (void)self;
    (void)request;
    free(ptr);
}

static const rmm_tracked_source_t host_source = {
    .obtain = host_obtain, .give_back = host_give_back};

static const rmm_resource_ops_t host_ops = {
    .type_name = "host",
    .alloc = rmm__tracked_alloc,
    .dealloc = rmm__tracked_dealloc,
    .trim = rmm__tracked_trim,
    .destroy = rmm__tracked_destroy,
    .ready_on_all_streams = true,
    .owns_blocks = true,
};

rmm_status_t rmm_host_resource_create(rmm_resource_t **out)
{
    const rmm_tracked_t model = {.source = &host_source};

    RMM_CHECK_ARG(out != NULL, "out is NULL");
    return rmm__tracked_get(
        &instances, &model, sizeof(model),
        &(rmm_resource_desc_t){
            .ops = &host_ops, .properties = RMM_HOST_ACCESSIBLE, .device = -1},
        out);
}
