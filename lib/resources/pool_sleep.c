/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public functions by which a virtual pool sleeps and wakes, and the host memory for its
 * contents. What happens then is in pool/sleep.c.
 */
#include "resources/pool_resource.h"

#include <rmm/pinned_resource.h>
#include <rmm/pool_sleep.h>

#include <inttypes.h>
#include <string.h>

#include "log/log.h"
#include "pool/engine.h"

#define FLAGS (RMM_POOL_SLEEP_DISCARD | RMM_POOL_SLEEP_WAIT | RMM_POOL_SLEEP_KEEP_HOST)

/* --- which pool ----------------------------------------------------------------------- */

static const rmm_resource_ops_t *ops_of(const rmm_resource_t *mr)
{
    return atomic_load_explicit(&mr->ops, memory_order_relaxed);
}

static rmm_status_t find_pool(const rmm_resource_t *mr, pool_resource_t **pool_out)
{
    rmm_resource_t *found = (rmm_resource_t *)(uintptr_t)mr;

    RMM_CHECK_ARG(mr != NULL, "the resource is NULL");
    if (rmm__resource_is_forked(mr)) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED,
            "this process is a forked child of the one that made the pool");
    }
    while (rmm__resource_is_adaptor(found)) {
        found = found->upstream;
    }
    if (ops_of(found)->alloc != rmm__pool_alloc || !pool_from_base(found)->is_range) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED,
            "only a virtual pool can sleep (RMM_POOL_VIRTUAL), and '%s' is of type "
            "'%s'%s",
            found->name, rmm_resource_type(found),
            found->upstream != NULL ? ", over an upstream" : "");
    }
    *pool_out = pool_from_base(found);
    return RMM_OK;
}

/* --- host memory ---------------------------------------------------------------------- */

static rmm_request_t host_request(uint64_t bytes)
{
    return (rmm_request_t){
        .bytes = bytes,
        .align = RMM_ALIGN_DEFAULT,
        .stream = RMM_STREAM_LEGACY,
        .user = false, /* the pool's users are counted where they are */
    };
}

static rmm_status_t obtain(void *context, uint64_t bytes, void **ptr_out)
{
    rmm_resource_t *host = context;
    rmm_request_t request = host_request(bytes);
    rmm_status_t status = rmm__resource_alloc(host, &request, ptr_out);

    if (status == RMM_OK && host->device >= 0 &&
        !ops_of(host)->ready_on_all_streams) { /* earlier users may be at work */
        const rmm_driver_t *driver = rmm__driver(&status);

        status =
            driver != NULL ? rmm__driver_wait_device(driver, host->device) : status;
        if (status != RMM_OK) {
            rmm__resource_dealloc(host, *ptr_out, &request);
        }
    }
    return status;
}

static void give_back(void *context, void *ptr, uint64_t bytes)
{
    rmm_request_t request = host_request(bytes);

    rmm__resource_dealloc(context, ptr, &request);
}

static void close_host(void *context)
{
    rmm_resource_release(context);
}

static const engine_host_t host_ops = {obtain, give_back, close_host};

/* The pool's own resource of pinned memory: the same at each sleep, so that the pool can keep its
 * buffers. */
static rmm_status_t own_host(pool_resource_t *self, rmm_resource_t **out)
{
    rmm_resource_t *host =
        atomic_load_explicit(&self->sleep_host, memory_order_acquire);
    rmm_resource_t *none = NULL;
    rmm_driver_scope_t scope;
    rmm_status_t status;

    if (host != NULL) {
        *out = host;
        return RMM_OK;
    }
    status = rmm__driver_scope_enter(&scope, self->driver, self->base.device);
    if (status == RMM_OK) {
        status = rmm_pinned_resource_create(&host);
        rmm__driver_scope_leave(&scope);
    }
    if (status != RMM_OK) {
        return status;
    }
    /* release: pairs with the load above, in another thread */
    if (!atomic_compare_exchange_strong_explicit(
            &self->sleep_host, &none, host, memory_order_acq_rel,
            memory_order_acquire)) {
        rmm_resource_release(host);
        host = none;
    }
    *out = host;
    return RMM_OK;
}

static rmm_status_t choose_host(
    pool_resource_t *self, const rmm_pool_sleep_options_t *options,
    rmm_resource_t **out)
{
    rmm_status_t status = RMM_OK;

    if (options->host == NULL) {
        status = own_host(self, out);
    } else if ((rmm_resource_properties(options->host) & RMM_HOST_ACCESSIBLE) == 0) {
        status = rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "host '%s' (%s) is no resource of host memory: take a pinned resource, or "
            "a "
            "pool over one",
            options->host->name, rmm_resource_type(options->host));
    } else {
        *out = options->host;
    }
    return status;
}

void rmm__pool_close_host(pool_resource_t *self)
{
    rmm_resource_release(atomic_load_explicit(&self->sleep_host, memory_order_relaxed));
}

/* --- sleep, wake ---------------------------------------------------------------------- */

static rmm_status_t check_options(const rmm_pool_sleep_options_t *options)
{
    if ((options->flags & ~FLAGS) != 0) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "flags %#" PRIx64 " has a bit that is not one of RMM_POOL_SLEEP_*",
            options->flags);
    }
    RMM_CHECK_ARG(
        options->discarded != NULL || options->discarded_count == 0,
        "discarded is NULL, and discarded_count is not 0");
    return RMM_OK;
}

rmm_status_t rmm_pool_sleep(rmm_resource_t *mr, const rmm_pool_sleep_options_t *options)
{
    rmm_pool_sleep_options_t opts;
    rmm_resource_t *host = NULL;
    pool_resource_t *self;
    rmm_status_t status = rmm__options_copy(&opts, sizeof(opts), options, sizeof(opts));

    if (status == RMM_OK) {
        status = check_options(&opts);
    }
    if (status == RMM_OK) {
        status = find_pool(mr, &self);
    }
    if (status == RMM_OK) {
        status = choose_host(self, &opts, &host);
    }
    if (status != RMM_OK) {
        return status;
    }
    status = rmm__engine_sleep(
        self->engine, &(engine_sleep_plan_t){
                          .host = &host_ops,
                          .host_context = rmm_resource_retain(host),
                          .keeps_host = (opts.flags & RMM_POOL_SLEEP_KEEP_HOST) != 0,
                          .lets_wait = (opts.flags & RMM_POOL_SLEEP_WAIT) != 0,
                          .discards_all = (opts.flags & RMM_POOL_SLEEP_DISCARD) != 0,
                          .discarded = opts.discarded,
                          .discarded_count = opts.discarded_count});
    rmm__pool_log_changes(self);
    return status;
}

rmm_status_t rmm_pool_wake(rmm_resource_t *mr)
{
    pool_resource_t *self;
    rmm_status_t status = find_pool(mr, &self);

    if (status == RMM_OK) {
        status = rmm__engine_wake(self->engine);
        rmm__pool_log_changes(self);
    }
    return status;
}

static rmm_pool_state_t state_of(engine_sleep_state_t engine_state)
{
    switch (engine_state) {
    case ENGINE_AWAKE:
        break;
    case ENGINE_SETTLING:
    case ENGINE_FALLING:
        return RMM_POOL_FALLING_ASLEEP;
    case ENGINE_ASLEEP:
        return RMM_POOL_ASLEEP;
    case ENGINE_WAKING:
        return RMM_POOL_WAKING;
    }
    return RMM_POOL_AWAKE;
}

rmm_status_t rmm_pool_get_state(const rmm_resource_t *mr, rmm_pool_state_t *state_out)
{
    pool_resource_t *self;
    rmm_status_t status;

    RMM_CHECK_ARG(state_out != NULL, "state_out is NULL");
    status = find_pool(mr, &self);
    if (status == RMM_OK) {
        *state_out = state_of(rmm__engine_sleep_state(self->engine));
    }
    return status;
}
