/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call of upstream at a time. The only place where upstream is called under a lock,
 * because that is what it is for: upstream cannot bear two calls at once.
 */
#include <rmm/thread_safe_adaptor.h>

#include "adaptors/adaptor.h"
#include "core/assert.h"
#include "core/mutex.h"
#include "core/options.h"

typedef struct thread_safe {
    rmm_adaptor_t adaptor; /* first member */
    rmm_mutex_t turn;      /* held by who calls upstream */
} thread_safe_t;

static thread_safe_t *from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, thread_safe_t, adaptor.base);
}

static rmm_status_t
thread_safe_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    thread_safe_t *self = from_base(mr);
    rmm_status_t status;

    rmm__mutex_lock(&self->turn);
    status = rmm__adaptor_alloc(mr, request, ptr_out);
    rmm__mutex_unlock(&self->turn);
    return status;
}

static void
thread_safe_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    thread_safe_t *self = from_base(mr);

    rmm__mutex_lock(&self->turn);
    rmm__adaptor_dealloc(mr, ptr, request);
    rmm__mutex_unlock(&self->turn);
}

static rmm_status_t thread_safe_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    thread_safe_t *self = from_base(mr);
    rmm_status_t status;

    rmm__mutex_lock(&self->turn);
    status = rmm__adaptor_trim(mr, keep_bytes);
    rmm__mutex_unlock(&self->turn);
    return status;
}

static void thread_safe_destroy(rmm_resource_t *mr)
{
    rmm__mutex_fini(&from_base(mr)->turn);
    rmm__adaptor_destroy(mr);
}

static const rmm_resource_ops_t thread_safe_ops[] = RMM_ADAPTOR_OPS(
    "thread_safe", thread_safe_alloc, thread_safe_dealloc, thread_safe_trim,
    thread_safe_destroy);

rmm_status_t rmm_thread_safe_adaptor_create(
    rmm_resource_t *upstream, const rmm_thread_safe_options_t *options,
    rmm_resource_t **out)
{
    rmm_thread_safe_options_t opts;
    rmm_adaptor_t *self;
    rmm_status_t status;

    RMM_CHECK_ARG(upstream != NULL, "upstream is NULL");
    RMM_CHECK_ARG(out != NULL, "out is NULL");
    status = rmm__options_copy(&opts, sizeof(opts), options, sizeof(opts));
    if (status == RMM_OK) {
        status = rmm__adaptor_create(
            &(rmm_adaptor_plan_t){thread_safe_ops, sizeof(thread_safe_t), opts.name},
            upstream, &self);
    }
    if (status == RMM_OK) {
        rmm__mutex_init(&from_base(&self->base)->turn);
        *out = &self->base;
    }
    return status;
}
