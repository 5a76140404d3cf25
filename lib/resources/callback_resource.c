/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A custom resource (custom_resource.c) over two functions with fewer parameters.
 */
#include <rmm/callback_resource.h>

#include "core/assert.h"
#include "core/host_memory.h"
#include "core/options.h"
#include "resources/custom_impl.h"

/* The payload of the custom resource. */
typedef struct callback {
    rmm_callback_alloc_fn alloc;
    rmm_callback_dealloc_fn dealloc;
    void *payload;
} callback_t;

static rmm_status_t callback_alloc(
    size_t bytes, size_t align, rmm_stream_t stream, void *payload, void **ptr_out)
{
    const callback_t *self = payload;

    (void)align;
    return self->alloc(bytes, stream, self->payload, ptr_out);
}

static void callback_dealloc(
    void *ptr, size_t bytes, size_t align, rmm_stream_t stream, void *payload)
{
    const callback_t *self = payload;

    (void)align;
    self->dealloc(ptr, bytes, stream, self->payload);
}

static void callback_destroy(void *payload)
{
    rmm__free(payload);
}

rmm_status_t rmm_callback_resource_create(
    const rmm_callback_options_t *options, rmm_resource_t **out)
{
    rmm_custom_resource_ops_t ops = RMM_CUSTOM_RESOURCE_OPS_INIT;
    rmm_callback_options_t opts;
    callback_t *self;
    rmm_status_t status;

    RMM_CHECK_ARG(options != NULL, "options are NULL");
    RMM_CHECK_ARG(out != NULL, "out is NULL");
    status = rmm__options_copy(&opts, sizeof(opts), options, sizeof(opts));
    if (status != RMM_OK) {
        return status;
    }
    RMM_CHECK_ARG(opts.alloc != NULL && opts.dealloc != NULL, "a function is NULL");
    self = rmm__calloc(1, sizeof(*self));
    if (self == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    *self = (callback_t){opts.alloc, opts.dealloc, opts.payload};
    ops.alloc = callback_alloc;
    ops.dealloc = callback_dealloc;
    ops.destroy = callback_destroy;
    ops.name = opts.name;
    ops.properties = opts.properties;
    ops.flags = opts.flags;
    status = rmm__custom_create(RMM_CUSTOM_CALLBACK, &ops, self, out);
    if (status != RMM_OK) {
        rmm__free(self);
    }
    return status;
}
