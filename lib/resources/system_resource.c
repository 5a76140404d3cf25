/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's heap for the device; all else is in system_memory.h.
 */
#include <rmm/system_resource.h>

#include <stdlib.h>

#include "core/assert.h"
#include "resources/system_memory.h"

static rmm_status_t
system_obtain(rmm_tracked_t *self, const rmm_request_t *request, void **ptr_out)
{
    (void)self;
    return rmm__system_heap_alloc(request, ptr_out);
}

static void
system_give_back(rmm_tracked_t *self, void *ptr, const rmm_request_t *request)
{
    if (rmm__system_wait(rmm__system_from_tracked(self), ptr, request)) {
        free(ptr);
    }
}

static const rmm_tracked_source_t source = {
    .obtain = system_obtain, .give_back = system_give_back};

static const rmm_resource_ops_t system_ops = RMM_SYSTEM_OPS("system");

static rmm_tracked_t *instances[RMM_SEGMENT_DEVICES]; /* borrowed; NULL: none lives */

rmm_status_t rmm_system_resource_create(rmm_resource_t **out)
{
    RMM_CHECK_ARG(out != NULL, "out is NULL");
    return rmm__system_create(
        &(rmm_system_plan_t){
            .ops = &system_ops, .source = &source, .instances = instances},
        out);
}
