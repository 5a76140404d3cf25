/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets a request wait until another thread frees memory. Who waits and whose turn it is:
 * wait_queue.h; which thread holds memory: wait_threads.h.
 *
 * Cost while no thread waits: an addition and a comparison to a request, one atomic operation to a
 * free, and one more where the thread's blocks become none or are no longer none.
 *
 * Locking: none of its own. Upstream is called without a lock, also by a thread that waits.
 */
#include <rmm/wait_adaptor.h>

#include <inttypes.h>
#include <stdio.h>

#include "adaptors/adaptor.h"
#include "adaptors/wait_queue.h"
#include "core/assert.h"
#include "core/uncancelled.h"

#define TIMEOUT_MS_DEFAULT 10000u
#define MS_NS UINT64_C(1000000)

typedef struct wait_adaptor {
    rmm_adaptor_t adaptor; /* first member */
    bool
        leaves_it; /* to a wait adaptor below, which sees the same requests and frees */
    rmm_wait_queue_t queue;
} wait_adaptor_t;

static wait_adaptor_t *from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, wait_adaptor_t, adaptor.base);
}

/* --- a request that waits --------------------------------------------------------------- */

/* The last error becomes the reason. */
static rmm_status_t refuse_late(const wait_adaptor_t *self)
{
    char reason[RMM_ERROR_BYTES];

    snprintf(reason, sizeof(reason), "%s", rmm_last_error_message());
    return rmm__error_cuda(
        RMM_ERR_OUT_OF_MEMORY, rmm_last_cuda_error(),
        "wait '%s': waited %" PRIu64 " ms: %s", self->adaptor.base.name,
        self->queue.timeout_ns / MS_NS, reason);
}

static rmm_status_t refuse_now(const wait_adaptor_t *self)
{
    char reason[RMM_ERROR_BYTES];

    snprintf(reason, sizeof(reason), "%s", rmm_last_error_message());
    return rmm__error_cuda(
        RMM_ERR_OUT_OF_MEMORY, rmm_last_cuda_error(),
        "wait '%s': all threads that hold its memory wait for more; this one, the "
        "last, "
        "is refused so that it can give some back: %s",
        self->adaptor.base.name, reason);
}

/* The last error is upstream's, or there was no attempt yet. */
RMM_COLD static rmm_status_t wait_for_memory(
    wait_adaptor_t *self, rmm_wait_thread_t *thread, const rmm_request_t *request,
    void **ptr_out)
{
    RMM_UNCANCELLED;
    rmm_resource_t *mr = &self->adaptor.base;
    RMM_AT_END(rmm__wait_queue_leave) rmm_waiter_t waiter;
    rmm_status_t status;

    rmm__wait_queue_enter(&self->queue, thread, &waiter);
    for (;;) {
        switch (rmm__wait_queue_next(&waiter)) {
        case RMM_WAIT_TRY:
            status = rmm__resource_alloc(mr->upstream, request, ptr_out);
            if (status != RMM_ERR_OUT_OF_MEMORY) {
                return status;
            }
            break;
        case RMM_WAIT_FINISH:
            (void)rmm__adaptor_finish_work(mr, request);
            break;
        case RMM_WAIT_LATE:
            status = rmm__resource_alloc(mr->upstream, request, ptr_out);
            return status == RMM_ERR_OUT_OF_MEMORY ? refuse_late(self) : status;
        case RMM_WAIT_SLEEP:
        case RMM_WAIT_REFUSED:
            thread->was_refused = true;
            return refuse_now(self);
        }
    }
}

/* --- ops ------------------------------------------------------------------------------ */

static void end_request(rmm_wait_thread_t *const *thread)
{
    rmm__wait_thread_leave(*thread);
}

static rmm_status_t alloc_in_request(
    wait_adaptor_t *self, rmm_wait_thread_t *of, const rmm_request_t *request,
    void **ptr_out)
{
    RMM_AT_END(end_request) rmm_wait_thread_t *const thread = of;
    const rmm_resource_t *mr = &self->adaptor.base;
    const bool may_wait = thread->requests == 1;
    const bool is_late = thread->was_refused || rmm__wait_queue_is_closed(&self->queue);
    rmm_status_t status = RMM_ERR_OUT_OF_MEMORY;

    thread->was_refused = false;
    if (!is_late || !may_wait || !rmm__adaptor_may_wait(mr, request)) {
        status = rmm__resource_alloc(mr->upstream, request, ptr_out);
    }
    if (__builtin_expect(status == RMM_ERR_OUT_OF_MEMORY, false) && may_wait &&
        rmm__adaptor_may_wait(mr, request)) {
        status = wait_for_memory(self, thread, request, ptr_out);
    }
    if (status != RMM_OK) {
        return rmm__adaptor_failed(&self->adaptor, status);
    }
    thread->blocks++;
    rmm__adaptor_count_alloc(&self->adaptor, request->bytes);
    return RMM_OK;
}

static rmm_status_t
wait_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    rmm_wait_thread_t *thread;

    if (request->bytes == 0 || from_base(mr)->leaves_it) {
        return rmm__adaptor_alloc(mr, request, ptr_out);
    }
    thread = rmm__wait_thread_find(&from_base(mr)->queue.roster);
    if (thread == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    rmm__wait_thread_enter(thread);
    return alloc_in_request(from_base(mr), thread, request, ptr_out);
}

/* Without host memory for its record a thread's frees do not count. */
static void wait_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    wait_adaptor_t *self = from_base(mr);
    rmm_wait_thread_t *thread;

    if (!rmm__adaptor_free(&self->adaptor, ptr, request) || request->bytes == 0 ||
        self->leaves_it) {
        return;
    }
    rmm__wait_queue_freed(&self->queue);
    thread = rmm__wait_thread_find(&self->queue.roster);
    if (thread != NULL) {
        rmm__wait_thread_freed(thread);
    }
}

/* Upstream may share what it returns. */
static rmm_status_t wait_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    rmm_status_t status = rmm__adaptor_trim(mr, keep_bytes);

    rmm__wait_queue_freed(&from_base(mr)->queue);
    return status;
}

static void wait_destroy(rmm_resource_t *mr)
{
    rmm__wait_queue_fini(&from_base(mr)->queue);
    rmm__adaptor_destroy(mr);
}

static const rmm_resource_ops_t wait_ops[] =
    RMM_ADAPTOR_OPS("wait", wait_alloc, wait_dealloc, wait_trim, wait_destroy);

/* --- public ------------------------------------------------------------------------- */

rmm_status_t rmm_wait_get_waiting(const rmm_resource_t *mr, uint64_t *count_out)
{
    rmm_status_t status = rmm__adaptor_check(mr, wait_ops, "a wait adaptor");

    if (status != RMM_OK) {
        return status;
    }
    RMM_CHECK_ARG(count_out != NULL, "count_out is NULL");
    *count_out = atomic_load_explicit(
        &((const wait_adaptor_t *)mr)->queue.count, memory_order_relaxed);
    return RMM_OK;
}

/* Two that wait would each take a thread that waits in the other one for one that works. */
static bool is_wait_below(const rmm_resource_t *mr)
{
    while (mr != NULL && !rmm__adaptor_is(mr, wait_ops) &&
           !atomic_load_explicit(&mr->ops, memory_order_relaxed)->owns_blocks) {
        mr = mr->upstream;
    }
    return mr != NULL && rmm__adaptor_is(mr, wait_ops);
}

rmm_status_t rmm_wait_adaptor_create(
    rmm_resource_t *upstream, const rmm_wait_options_t *options, rmm_resource_t **out)
{
    rmm_wait_options_t opts;
    rmm_adaptor_t *adaptor;
    rmm_status_t status = RMM_OPTIONS_OVER(upstream, out, &opts, options);

    if (status == RMM_OK) {
        status = rmm__adaptor_create(
            &(rmm_adaptor_plan_t){wait_ops, sizeof(wait_adaptor_t), opts.name},
            upstream, &adaptor);
    }
    if (status != RMM_OK) {
        return status;
    }
    if (opts.timeout_ms == 0) {
        opts.timeout_ms = TIMEOUT_MS_DEFAULT;
    }
    from_base(&adaptor->base)->leaves_it = is_wait_below(upstream);
    rmm__wait_queue_init(
        &from_base(&adaptor->base)->queue, adaptor->base.instance_id,
        opts.timeout_ms * MS_NS, adaptor->base.device >= 0);
    *out = &adaptor->base;
    return RMM_OK;
}
