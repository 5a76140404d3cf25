/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that are one driver call each: see driver_memory.h.
 */
#include "resources/driver_memory.h"

#include "base/diag_attach.h"
#include "core/assert.h"
#include "log/log.h"

typedef struct driver_memory {
    rmm_tracked_t tracked; /* first member */
    const rmm_driver_t *driver;
    const rmm_driver_memory_kind_t *kind;
} driver_memory_t;

static driver_memory_t *from_tracked(rmm_tracked_t *tracked)
{
    return RMM_CONTAINER_OF(tracked, driver_memory_t, tracked);
}

/* An allocation's failure in the words of rmm/status.h: memory, or another reason. */
static rmm_status_t alloc_error(const driver_memory_t *self, int error, size_t bytes)
{
    rmm_status_t status = error == RMM_DRIVER_MEMORY_ALLOCATION ? RMM_ERR_OUT_OF_MEMORY
                                                                : RMM_ERR_BAD_ALLOC;

    return rmm__error_cuda(
        status, error, "%s of %zu bytes on device %d failed: %s (%d): %s",
        self->kind->alloc_call, bytes, self->tracked.base.device,
        self->driver->error_name(error), error, self->driver->error_text(error));
}

static rmm_status_t
obtain(rmm_tracked_t *tracked, const rmm_request_t *request, void **ptr_out)
{
    driver_memory_t *self = from_tracked(tracked);
    size_t bytes = rmm__diag_guarded_bytes(
        request->bytes, request->facts_out != NULL && !self->kind->in_host_memory);
    rmm_driver_scope_t scope;
    rmm_status_t status;
    int error;

    if (request->align > RMM_ALIGN_DEFAULT) {
        return rmm__error(
            RMM_ERR_BAD_ALLOC,
            "the %s resource aligns to %zu, not %zu: use a pool on top of it",
            self->kind->ops->type_name, RMM_ALIGN_DEFAULT, request->align);
    }
    status = rmm__driver_scope_enter(&scope, self->driver, tracked->base.device);
    if (status != RMM_OK) {
        return status;
    }
    error = self->kind->alloc(self->driver, ptr_out, bytes);
    if (error == RMM_DRIVER_MEMORY_ALLOCATION && bytes != request->bytes) {
        bytes = request->bytes; /* rather a block without a guard than none */
        error = self->kind->alloc(self->driver, ptr_out, bytes);
    }
    rmm__driver_scope_leave(&scope);
    if (error != RMM_DRIVER_OK) {
        return alloc_error(self, error, request->bytes);
    }
    rmm__request_tell_returned(request, (uintptr_t)*ptr_out + bytes);
    return RMM_OK;
}

static void give_back(rmm_tracked_t *tracked, void *ptr, const rmm_request_t *request)
{
    driver_memory_t *self = from_tracked(tracked);
    int device = tracked->base.device;
    rmm_driver_scope_t scope;
    bool has_entered;
    int error;

    if (self->kind->of_every_device || !rmm__driver_has_one_device(self->driver)) {
        /* the free waits for one device; it returns the errors of this wait as well */
        (void)rmm__driver_wait_before_free(self->driver, request->stream);
    }
    /* the free finds the block on any device, so it is tried without the scope as well;
     * while the process exits the driver refuses both */
    has_entered = rmm__driver_scope_enter(&scope, self->driver, device) == RMM_OK;
    error = self->kind->free(self->driver, ptr);
    if (has_entered) {
        rmm__driver_scope_leave(&scope);
    }
    if (error != RMM_DRIVER_OK && error != RMM_DRIVER_UNLOADING) {
        rmm__log_error(
            "device %d: %s of %p bytes %zu failed: %s (%d)", device,
            self->kind->free_call, ptr, request->bytes, self->driver->error_name(error),
            error);
    }
}

void rmm__driver_memory_destroy(rmm_resource_t *mr)
{
    rmm_tracked_t *tracked = rmm__tracked_from_base(mr);

    /* what is still out may be in use on any stream; each free waits for this device only */
    if (tracked->blocks.count != 0) {
        (void)rmm__driver_wait_all_devices(from_tracked(tracked)->driver, mr->device);
    }
    rmm__tracked_destroy(mr);
}

static const rmm_tracked_source_t source = {.obtain = obtain, .give_back = give_back};

rmm_status_t
rmm__driver_memory_create(const rmm_driver_memory_kind_t *kind, rmm_resource_t **out)
{
    driver_memory_t model = {.tracked.source = &source, .kind = kind};
    rmm_resource_desc_t desc = {
        .ops = kind->ops,
        .properties = kind->properties,
        .in_host_memory = kind->in_host_memory};
    rmm_status_t status = rmm__driver_here(&model.driver, &desc.device);
    rmm_resource_t *shared;

    if (status != RMM_OK) {
        return status;
    }
    model.tracked.instance_key = (uint64_t)desc.device;
    shared = rmm__tracked_share(kind->instances, model.tracked.instance_key);
    if (shared != NULL) {
        *out = shared;
        return RMM_OK;
    }
    status = kind->check != NULL ? kind->check(model.driver, desc.device) : RMM_OK;
    return status == RMM_OK
               ? rmm__tracked_get(
                     kind->instances, &model.tracked, sizeof(model), &desc, out)
               : status;
}
