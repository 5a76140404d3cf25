/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pool says when nothing helped. How much the device has free is a question to the
 * driver that may take longer than all the rest: where requests fail one after the other,
 * the last answer is told for a moment, and that it is not of now.
 */
#include "resources/pool_front.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "log/log.h"

#define DEVICE_FREE_NS 100000000u /* so long an answer is told again */

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t rmm__pool_device_free(pool_t *self)
{
    rmm_driver_scope_t scope;
    uint64_t free_bytes = 0;
    uint64_t total;

    if (rmm__driver_scope_enter(&scope, self->driver, self->base.device) == RMM_OK) {
        if (self->driver->memory_info(&free_bytes, &total) == RMM_DRIVER_OK) {
            rmm__place_device_free(self->base.books.place, free_bytes);
        }
        rmm__driver_scope_leave(&scope);
    }
    atomic_store_explicit(&self->device_free_bytes, free_bytes, memory_order_relaxed);
    atomic_store_explicit(&self->device_free_ns, now_ns(), memory_order_relaxed);
    return free_bytes;
}

uint64_t rmm__pool_device_free_lately(pool_t *self, const char **since_out)
{
    uint64_t asked = atomic_load_explicit(&self->device_free_ns, memory_order_relaxed);

    if (asked == 0 || now_ns() - asked > DEVICE_FREE_NS) {
        *since_out = "";
        return rmm__pool_device_free(self);
    }
    *since_out = " a moment ago";
    return atomic_load_explicit(&self->device_free_bytes, memory_order_relaxed);
}

/* One line with all that an operator asks after an out-of-memory. */
RMM_COLD rmm_status_t
rmm__pool_give_up(pool_t *self, const pool_want_t *want, rmm_status_t status)
{
    char reason[RMM_ERROR_BYTES];
    const char *since;
    uint64_t device_free;
    uint64_t free_bytes;
    uint64_t largest_bytes;
    uint64_t reserved;

    snprintf(reason, sizeof(reason), "%.300s", rmm_last_error_message());
    device_free = rmm__pool_device_free_lately(self, &since);
    rmm__mutex_lock(&self->lock);
    free_bytes = pool_free_bytes(self);
    largest_bytes = self->largest_free_units * POOL_UNIT;
    reserved = self->reserved_bytes;
    rmm__mutex_unlock(&self->lock);
    rmm__pool_front_add_free(self, &free_bytes, &largest_bytes);

    if (status == RMM_ERR_OUT_OF_MEMORY) {
        rmm__books_oom(&self->base.books);
    }
    return rmm__error_cuda(
        status, rmm_last_cuda_error(),
        "%s '%s': no room for %zu bytes: largest free %" PRIu64 ", total free %" PRIu64
        ", reserved %" PRIu64 ", device free %" PRIu64 "%s, fragmentation %.3f; %s",
        rmm_resource_type(&self->base), self->base.name, want->request->bytes,
        largest_bytes, free_bytes, reserved, device_free, since,
        free_bytes != 0 ? 1.0 - (double)largest_bytes / (double)free_bytes : 0.0,
        reason);
}
