/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's own memory. Its blocks are remembered like those of a driver (tracked.h),
 * so a wrong free never reaches the program's function, and none is left at the end.
 *
 * The functions run as a driver call of ours would: with the device current that the
 * resource was made on, so that a cudaMalloc in them is of that device, and without
 * harm to the capture of another thread.
 *
 * Locking: as tracked.h; the program's functions are called with no lock held.
 */
#include <rmm/callback_resource.h>

#include <stdio.h>
#include <string.h>

#include "core/assert.h"
#include "core/host_memory.h"
#include "core/options.h"
#include "driver/driver.h"
#include "resources/tracked.h"

typedef struct callback {
    rmm_tracked_t tracked;      /* first member */
    const rmm_driver_t *driver; /* NULL: host memory, which has no device */
    rmm_callback_options_t functions;
} callback_t;

static callback_t *from_tracked(rmm_tracked_t *tracked)
{
    return RMM_CONTAINER_OF(tracked, callback_t, tracked);
}

static rmm_status_t enter(const callback_t *self, rmm_driver_scope_t *scope)
{
    rmm_status_t status =
        self->driver != NULL
            ? rmm__driver_scope_enter(scope, self->driver, self->tracked.base.device)
            : RMM_OK;

    if (status == RMM_OK) {
        rmm__callback_enter();
    }
    return status;
}

static void leave(const callback_t *self, rmm_driver_scope_t *scope)
{
    rmm__callback_leave();
    if (self->driver != NULL) {
        rmm__driver_scope_leave(scope);
    }
}

static void
call_dealloc(rmm_tracked_t *tracked, void *ptr, const rmm_request_t *request)
{
    const callback_t *self = from_tracked(tracked);
    const rmm_callback_options_t *functions = &self->functions;
    rmm_driver_scope_t scope;
    bool entered = enter(self, &scope) == RMM_OK;

    if (!entered) { /* the process exits: the program gets its block back all the same */
        rmm__callback_enter();
    }
    functions->dealloc(ptr, request->bytes, request->stream, functions->payload);
    if (entered) {
        leave(self, &scope);
    } else {
        rmm__callback_leave();
    }
}

/* What the function set as the last error, if it did, is the reason. */
RMM_COLD static rmm_status_t
refused(const callback_t *self, rmm_status_t status, size_t bytes, const char *before)
{
    char reason[RMM_ERROR_BYTES];
    bool told = strcmp(before, rmm_last_error_message()) != 0;

    snprintf(reason, sizeof(reason), "%.300s", told ? rmm_last_error_message() : "");
    return rmm__error(
        status, "callback '%s': the program's alloc function refused %zu bytes: %s%s%s",
        self->tracked.base.name, bytes, rmm_status_text(status), told ? ": " : "",
        reason);
}

/* Of what was given on RMM_OK: why it will not do, NULL if it will. */
static rmm_status_t inspect(callback_t *self, void *ptr, const rmm_request_t *request)
{
    if (ptr == NULL) {
        return rmm__error(
            RMM_ERR_BAD_ALLOC,
            "callback '%s': the program's alloc function said RMM_OK and gave NULL",
            self->tracked.base.name);
    }
    if ((uintptr_t)ptr % request->align != 0) {
        call_dealloc(&self->tracked, ptr, request);
        return rmm__error(
            RMM_ERR_BAD_ALLOC,
            "callback '%s': the program's alloc function gave %p, which is not aligned "
            "to %zu",
            self->tracked.base.name, ptr, request->align);
    }
    return RMM_OK;
}

static rmm_status_t
callback_obtain(rmm_tracked_t *tracked, const rmm_request_t *request, void **ptr_out)
{
    callback_t *self = from_tracked(tracked);
    const rmm_callback_options_t *functions = &self->functions;
    char before[RMM_ERROR_BYTES];
    rmm_driver_scope_t scope;
    void *ptr = NULL;
    rmm_status_t status = enter(self, &scope);

    if (status != RMM_OK) {
        return status;
    }
    snprintf(before, sizeof(before), "%s", rmm_last_error_message());
    status =
        functions->alloc(request->bytes, request->stream, functions->payload, &ptr);
    leave(self, &scope);
    if (status != RMM_OK) {
        return refused(self, status, request->bytes, before);
    }
    status = inspect(self, ptr, request);
    if (status == RMM_OK) {
        *ptr_out = ptr;
    }
    return status;
}

static void callback_destroy(rmm_tracked_t *tracked)
{
    rmm__free(from_tracked(tracked));
}

static const rmm_tracked_source_t source = {
    .obtain = callback_obtain,
    .give_back = call_dealloc,
    .destroy = callback_destroy,
};

static const rmm_resource_ops_t callback_ops = {
    .type_name = "callback",
    .alloc = rmm__tracked_alloc,
    .dealloc = rmm__tracked_dealloc,
    .trim = rmm__tracked_trim,
    .destroy = rmm__tracked_destroy,
    .ready_on_all_streams = false, /* the function knows its stream only */
    .settles = true,
};

static rmm_status_t create(
    const rmm_callback_options_t *options, const rmm_driver_t *driver, int device,
    rmm_resource_t **out)
{
    callback_t *self = rmm__calloc(1, sizeof(*self));
    rmm_status_t status;

    if (self == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    self->functions = *options;
    self->functions.name = NULL; /* the base has a copy */
    self->tracked.source = &source;
    self->driver = driver;
    status = rmm__tracked_init(
        &self->tracked, &(rmm_resource_desc_t){
                            .ops = &callback_ops,
                            .name = options->name,
                            .properties = options->properties,
                            .device = device,
                        });
    if (status != RMM_OK) {
        rmm__free(self);
        return status;
    }
    *out = &self->tracked.base;
    return RMM_OK;
}

/* Neither driver nor device where no device can reach the memory: none is asked for. */
static rmm_status_t choose_device(
    const rmm_callback_options_t *options, const rmm_driver_t **driver_out,
    int *device_out)
{
    const rmm_driver_t *driver;
    rmm_status_t status;
    int error;

    *driver_out = NULL;
    *device_out = -1;
    if ((options->properties & RMM_DEVICE_ACCESSIBLE) == 0) {
        return RMM_OK;
    }
    driver = rmm__driver(&status);
    if (driver == NULL) {
        return status;
    }
    *driver_out = driver;
    error = driver->device_get(device_out);
    return error == RMM_DRIVER_OK
               ? RMM_OK
               : rmm__driver_error(driver, error, "asking for the current device");
}

rmm_status_t rmm_callback_resource_create(
    const rmm_callback_options_t *options, rmm_resource_t **out)
{
    rmm_callback_options_t opts;
    const rmm_driver_t *driver;
    rmm_status_t status;
    int device;

    RMM_CHECK_ARG(options != NULL, "options are NULL");
    RMM_CHECK_ARG(out != NULL, "out is NULL");
    status = rmm__options_copy(&opts, sizeof(opts), options, sizeof(opts));
    if (status != RMM_OK) {
        return status;
    }
    RMM_CHECK_ARG(opts.alloc != NULL && opts.dealloc != NULL, "a function is NULL");
    RMM_CHECK_ARG(
        (opts.properties & ~(RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE)) == 0,
        "unknown property");
    if (opts.properties == 0) {
        opts.properties = RMM_DEVICE_ACCESSIBLE;
    }
    status = choose_device(&opts, &driver, &device);
    if (status != RMM_OK) {
        return status;
    }
    return create(&opts, driver, device, out);
}
