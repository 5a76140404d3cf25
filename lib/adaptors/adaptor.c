/* SPDX-License-Identifier: Apache-2.0 */
/* The half of the adaptors' base that is not in every allocation: see adaptor.h. */
#include "adaptors/adaptor.h"

#include <sched.h>
#include <time.h>

#include "core/assert.h"
#include "core/host_memory.h"

#define SPINS 64u
#define YIELDS 32u

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/*
 * The holder is in a few stores, unless it was preempted there: then its processor is
 * offered, and in the end left alone for a while, because a thread of real-time priority
 * would never let it run by yielding.
 */
static void back_off(uint32_t round)
{
    if (round < SPINS) {
        relax();
    } else if (round < SPINS + YIELDS) {
        sched_yield();
    } else {
        nanosleep(&(struct timespec){0, 50 * 1000}, NULL);
    }
}

RMM_COLD void rmm__adaptor_wait_for_lock(rmm_adaptor_t *self)
{
    uint32_t idle;

    for (uint32_t round = 0;; round += round < SPINS + YIELDS) {
        idle = 0;
        /* acquire: pairs with rmm__adaptor_unlock() */
        if (atomic_load_explicit(&self->lock, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_weak_explicit(
                &self->lock, &idle, 1, memory_order_acquire, memory_order_relaxed)) {
            return;
        }
        back_off(round);
    }
}

RMM_COLD rmm_status_t rmm__adaptor_failed(rmm_adaptor_t *self, rmm_status_t status)
{
    if (status == RMM_ERR_OUT_OF_MEMORY) {
        rmm__books_oom(&self->base.books);
    }
    return status;
}

RMM_COLD void rmm__adaptor_refused(rmm_adaptor_t *self, const rmm_request_t *request)
{
    /* the slot's only: upstream has counted it at the place */
    rmm__figure_add(&self->base.books.slot->invalid_free_count, 1);
    if (request->refused != NULL) {
        *request->refused = true;
    }
}

bool rmm__adaptor_free(rmm_adaptor_t *self, void *ptr, const rmm_request_t *request)
{
    rmm__adaptor_count_free(self, request->bytes, 1);
    if (!rmm__adaptor_pass_free(self, ptr, request)) {
        rmm__adaptor_count_free(self, request->bytes, -1);
        rmm__adaptor_refused(self, request);
        return false;
    }
    return true;
}

rmm_status_t
rmm__adaptor_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    rmm_adaptor_t *self = rmm__adaptor_from_base(mr);
    rmm_status_t status = rmm__resource_alloc(mr->upstream, request, ptr_out);

    if (status != RMM_OK) {
        return rmm__adaptor_failed(self, status);
    }
    rmm__adaptor_count_alloc(self, request->bytes);
    return RMM_OK;
}

void rmm__adaptor_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    (void)rmm__adaptor_free(rmm__adaptor_from_base(mr), ptr, request);
}

rmm_status_t rmm__adaptor_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    return rmm_resource_trim(mr->upstream, keep_bytes);
}

void rmm__adaptor_destroy(rmm_resource_t *mr)
{
    rmm__resource_fini(mr);
    rmm__free(rmm__adaptor_from_base(mr));
}

rmm_status_t rmm__adaptor_create(
    const rmm_adaptor_plan_t *plan, rmm_resource_t *upstream, rmm_adaptor_t **out)
{
    rmm_adaptor_t *self = rmm__calloc(1, plan->bytes);
    const rmm_resource_ops_t *below =
        atomic_load_explicit(&upstream->ops, memory_order_relaxed);
    rmm_status_t status;

    if (self == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    status = rmm__resource_init(
        &self->base, &(rmm_resource_desc_t){
                         .ops = &plan->ops[below->ready_on_all_streams ? 1 : 0],
                         .name = plan->name,
                         .upstream = upstream,
                         .properties = rmm_resource_properties(upstream),
                         .device = upstream->device,
                     });
    if (status != RMM_OK) {
        rmm__free(self);
        return status;
    }
    *out = self;
    return RMM_OK;
}
