/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefetches each allocation to the resource's device. A prefetch is a slow driver call anyway,
 * so the adaptor relaxes the capture mode each time. The caller's device stays current: it is the
 * one that the handle of a per-thread stream belongs to.
 */
#include <rmm/prefetch_adaptor.h>

#include "adaptors/adaptor.h"
#include "base/diag_attach.h"
#include "core/assert.h"
#include "driver/driver.h"

typedef struct prefetch {
    rmm_adaptor_t adaptor; /* first member */
    const rmm_driver_t
        *driver; /* NULL: this device cannot, so there is nothing to do */
} prefetch_t;

static prefetch_t *from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, prefetch_t, adaptor.base);
}

static int prefetch_relaxed(
    const rmm_driver_t *driver, int device, const void *ptr,
    const rmm_request_t *request)
{
    rmm_stream_key_t key;
    int error = driver->stream_key(request->stream, &key);

    if (error != RMM_DRIVER_OK || key.capture_id != 0) {
        return error;
    }
    error = driver->mem_prefetch(ptr, request->bytes, device, request->stream);
    /* the answer for memory that is not managed */
    return error == RMM_DRIVER_INVALID_VALUE ? RMM_DRIVER_OK : error;
}

static rmm_status_t
prefetch(const prefetch_t *self, const void *ptr, const rmm_request_t *request)
{
    const rmm_resource_t *mr = &self->adaptor.base;
    const rmm_driver_t *driver = self->driver;
    rmm_driver_scope_t scope;
    int error;

    if (!rmm__driver_relax_enter(&scope, driver, mr->device, request->stream)) {
        return RMM_ERR_BAD_ALLOC;
    }
    error = prefetch_relaxed(driver, mr->device, ptr, request);
    rmm__driver_relax_leave(&scope);
    if (error != RMM_DRIVER_OK) {
        return rmm__error_cuda(
            RMM_ERR_BAD_ALLOC, error,
            "prefetch '%s': prefetching %zu bytes to device %d failed: %s (%d): %s",
            mr->name, request->bytes, mr->device, driver->error_name(error), error,
            driver->error_text(error));
    }
    return RMM_OK;
}

static rmm_status_t
prefetch_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    prefetch_t *self = from_base(mr);
    void *ptr;
    rmm_status_t status = rmm__resource_alloc(mr->upstream, request, &ptr);

    if (status != RMM_OK) {
        return rmm__adaptor_failed(&self->adaptor, status);
    }
    if (self->driver != NULL && request->bytes != 0) {
        rmm__diag_on_gone(ptr, request->bytes); /* freed memory until it is reported */
        status = prefetch(self, ptr, request);
        if (status != RMM_OK) {
            rmm__resource_dealloc(mr->upstream, ptr, request);
            return status;
        }
    }
    rmm__adaptor_count_alloc(&self->adaptor, request->bytes);
    *ptr_out = ptr;
    return RMM_OK;
}

static const rmm_resource_ops_t prefetch_ops[] = RMM_ADAPTOR_OPS(
    "prefetch", prefetch_alloc, rmm__adaptor_dealloc, rmm__adaptor_trim,
    rmm__adaptor_destroy);

/* NULL in *driver_out where the device cannot. */
static rmm_status_t find_driver(int device, const rmm_driver_t **driver_out)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    int concurrent;

    if (driver == NULL) {
        return status;
    }
    status = rmm__driver_attribute(
        driver, RMM_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device,
        "querying concurrent managed access", &concurrent);
    if (status != RMM_OK) {
        return status;
    }
    *driver_out = concurrent != 0 ? driver : NULL;
    return RMM_OK;
}

rmm_status_t rmm_prefetch_adaptor_create(
    rmm_resource_t *upstream, const rmm_prefetch_options_t *options,
    rmm_resource_t **out)
{
    rmm_prefetch_options_t opts;
    const rmm_driver_t *driver = NULL;
    rmm_adaptor_t *self;
    rmm_status_t status = RMM_OPTIONS_OVER(upstream, out, &opts, options);

    if (status != RMM_OK) {
        return status;
    }
    if (upstream->device < 0) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED,
            "prefetch over '%s': its memory belongs to the host only, so no device can "
            "prefetch it",
            rmm_resource_name(upstream));
    }
    status = find_driver(upstream->device, &driver);
    if (status == RMM_OK) {
        status = rmm__adaptor_create(
            &(rmm_adaptor_plan_t){prefetch_ops, sizeof(prefetch_t), opts.name},
            upstream, &self);
    }
    if (status == RMM_OK) {
        from_base(&self->base)->driver = driver;
        *out = &self->base;
    }
    return status;
}
