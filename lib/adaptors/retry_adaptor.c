/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tries again before a request fails for lack of memory. The last attempt's error is the
 * thread's last error.
 *
 * Cost: nothing to a request that succeeds. The pauses grow, so that a long wait takes little time
 * of a processor and a short one ends soon.
 *
 * Locking: none.
 */
#include <rmm/retry_adaptor.h>

#include <time.h>

#include "adaptors/adaptor.h"
#include "core/clock.h"
#include "core/uncancelled.h"

#define MS_NS UINT64_C(1000000)
#define PAUSE_NS_LEAST MS_NS
#define PAUSE_NS_MOST (50 * MS_NS)

typedef struct retry {
    rmm_adaptor_t adaptor; /* first member */
    uint64_t timeout_ns;
} retry_t;

static retry_t *from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, retry_t, adaptor.base);
}

static void pause_for(uint64_t pause_ns, uint64_t rest_ns)
{
    uint64_t ns = pause_ns < rest_ns ? pause_ns : rest_ns;

    (void)clock_nanosleep(
        CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = (long)ns}, NULL);
}

/* The last error is that of the first attempt. */
RMM_COLD static rmm_status_t
try_again(const retry_t *self, const rmm_request_t *request, void **ptr_out)
{
    RMM_UNCANCELLED;
    const rmm_resource_t *mr = &self->adaptor.base;
    const uint64_t begin_ns = rmm__clock_ns(CLOCK_MONOTONIC);
    uint64_t pause_ns = PAUSE_NS_LEAST, waited_ns;
    rmm_status_t status;

    if (!rmm__adaptor_may_wait(mr, request)) {
        return RMM_ERR_OUT_OF_MEMORY;
    }
    (void)rmm__adaptor_finish_work(mr, request);
    for (;;) {
        status = rmm__resource_alloc(mr->upstream, request, ptr_out);
        waited_ns = rmm__clock_ns(CLOCK_MONOTONIC) - begin_ns;
        if (status != RMM_ERR_OUT_OF_MEMORY || waited_ns >= self->timeout_ns) {
            return status;
        }
        pause_for(pause_ns, self->timeout_ns - waited_ns);
        pause_ns = 2 * pause_ns < PAUSE_NS_MOST ? 2 * pause_ns : PAUSE_NS_MOST;
    }
}

static rmm_status_t
retry_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    retry_t *self = from_base(mr);
    rmm_status_t status = rmm__resource_alloc(mr->upstream, request, ptr_out);

    if (__builtin_expect(status == RMM_ERR_OUT_OF_MEMORY, false)) {
        status = try_again(self, request, ptr_out);
    }
    if (status != RMM_OK) {
        return rmm__adaptor_failed(&self->adaptor, status);
    }
    rmm__adaptor_count_alloc(&self->adaptor, request->bytes);
    return RMM_OK;
}

static const rmm_resource_ops_t retry_ops[] = RMM_ADAPTOR_OPS(
    "retry", retry_alloc, rmm__adaptor_dealloc, rmm__adaptor_trim,
    rmm__adaptor_destroy);

rmm_status_t rmm_retry_adaptor_create(
    rmm_resource_t *upstream, const rmm_retry_options_t *options, rmm_resource_t **out)
{
    rmm_retry_options_t opts;
    rmm_adaptor_t *adaptor;
    rmm_status_t status = RMM_OPTIONS_OVER(upstream, out, &opts, options);

    if (status == RMM_OK) {
        status = rmm__adaptor_create(
            &(rmm_adaptor_plan_t){retry_ops, sizeof(retry_t), opts.name}, upstream,
            &adaptor);
    }
    if (status == RMM_OK) {
        from_base(&adaptor->base)->timeout_ns = opts.timeout_ms * MS_NS;
        *out = &adaptor->base;
    }
    return status;
}
