/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retries as long as the program's callback returns true. The thread's last error is that of
 * the failed allocation, even if the callback caused other errors.
 */
#include <rmm/failure_callback_adaptor.h>

#include <stdio.h>

#include "adaptors/adaptor.h"
#include "core/assert.h"
#include "core/uncancelled.h"

typedef struct failure_callback {
    rmm_adaptor_t adaptor; /* first member */
    rmm_failure_callback_fn callback;
    void *arg;
    uint32_t flags;
    void (*destroy)(void *arg); /* NULL: the program frees arg */
} failure_callback_t;

static failure_callback_t *from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, failure_callback_t, adaptor.base);
}

static bool is_asked_for(const failure_callback_t *self, rmm_status_t status)
{
    return status == RMM_ERR_OUT_OF_MEMORY ||
           ((self->flags & RMM_FAILURE_CALLBACK_ANY) != 0 &&
            rmm_status_is_alloc_failure(status));
}

RMM_COLD static bool
try_again(const failure_callback_t *self, rmm_status_t status, size_t bytes)
{
    RMM_UNCANCELLED;
    char message[RMM_ERROR_BYTES];
    int cuda_error = rmm_last_cuda_error();

    if (!is_asked_for(self, status)) {
        return false;
    }
    snprintf(message, sizeof(message), "%s", rmm_last_error_message());
    if (self->callback(bytes, self->arg)) {
        return true;
    }
    (void)rmm__error_cuda(status, cuda_error, "%s", message);
    return false;
}

static rmm_status_t
failure_callback_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    failure_callback_t *self = from_base(mr);
    rmm_status_t status;

    do {
        status = rmm__resource_alloc(mr->upstream, request, ptr_out);
    } while (status != RMM_OK && try_again(self, status, request->bytes));
    if (status != RMM_OK) {
        return rmm__adaptor_failed(&self->adaptor, status);
    }
    rmm__adaptor_count_alloc(&self->adaptor, request->bytes);
    return RMM_OK;
}

/* The program's function runs last, when nothing refers to its argument any more. */
static void failure_callback_destroy(rmm_resource_t *mr)
{
    void (*destroy)(void *) = from_base(mr)->destroy;
    void *arg = from_base(mr)->arg;

    rmm__adaptor_destroy(mr);
    if (destroy != NULL) {
        destroy(arg);
    }
}

static const rmm_resource_ops_t failure_callback_ops[] = RMM_ADAPTOR_OPS(
    "failure_callback", failure_callback_alloc, rmm__adaptor_dealloc, rmm__adaptor_trim,
    failure_callback_destroy);

rmm_status_t rmm_failure_callback_adaptor_create(
    rmm_resource_t *upstream, const rmm_failure_callback_options_t *options,
    rmm_resource_t **out)
{
    rmm_failure_callback_options_t opts;
    rmm_adaptor_t *adaptor;
    failure_callback_t *self;
    rmm_status_t status;

    RMM_CHECK_ARG(options != NULL, "options are NULL");
    status = RMM_OPTIONS_OVER(upstream, out, &opts, options);
    if (status != RMM_OK) {
        return status;
    }
    RMM_CHECK_ARG(opts.callback != NULL, "the callback is NULL");
    RMM_CHECK_ARG((opts.flags & ~RMM_FAILURE_CALLBACK_ANY) == 0, "unknown flag");
    status = rmm__adaptor_create(
        &(rmm_adaptor_plan_t){
            failure_callback_ops, sizeof(failure_callback_t), opts.name},
        upstream, &adaptor);
    if (status != RMM_OK) {
        return status;
    }
    self = from_base(&adaptor->base);
    self->callback = opts.callback;
    self->arg = opts.arg;
    self->flags = opts.flags;
    self->destroy = opts.destroy;
    *out = &adaptor->base;
    return RMM_OK;
}
