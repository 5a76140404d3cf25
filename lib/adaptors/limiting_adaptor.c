/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limit on live bytes. Bytes are reserved by compare and swap before the upstream call:
 * adding first and subtracting on failure would briefly refuse concurrent requests
 * that fit. They are released after upstream has freed the block, so that upstream never holds
 * more than the limit either.
 */
#include <rmm/limiting_adaptor.h>

#include <inttypes.h>
#include <stdio.h>

#include "adaptors/adaptor.h"
#include "core/assert.h"
#include "core/uncancelled.h"

typedef struct limiting {
    rmm_adaptor_t adaptor; /* first member */
    uint64_t limit_bytes;
    uint64_t alignment_bytes;
    _Atomic(uint64_t) allocated_bytes; /* rounded up; never above the limit */
} limiting_t;

static limiting_t *from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, limiting_t, adaptor.base);
}

/* No overflow: bytes is at most PTRDIFF_MAX, alignment RMM_ALIGN_MAX. */
static uint64_t rounded(const limiting_t *self, size_t bytes)
{
    return (bytes + self->alignment_bytes - 1) & ~(self->alignment_bytes - 1);
}

static bool reserve(limiting_t *self, uint64_t bytes)
{
    uint64_t allocated =
        atomic_load_explicit(&self->allocated_bytes, memory_order_relaxed);

    do {
        if (bytes > self->limit_bytes - allocated) {
            return false;
        }
        /* acquire: pairs with unreserve(): upstream has got what made this room */
    } while (!atomic_compare_exchange_weak_explicit(
        &self->allocated_bytes, &allocated, allocated + bytes, memory_order_acquire,
        memory_order_relaxed));
    return true;
}

static void unreserve(limiting_t *self, uint64_t bytes)
{
    uint64_t allocated =
        atomic_load_explicit(&self->allocated_bytes, memory_order_relaxed);

    /* release: pairs with reserve() */
    while (!atomic_compare_exchange_weak_explicit(
        &self->allocated_bytes, &allocated, allocated > bytes ? allocated - bytes : 0,
        memory_order_release, memory_order_relaxed)) {
    }
}

/* Bytes that are not in use at the end of a scope, also where an exception of a program's own
 * function leaves upstream. */
typedef struct reservation {
    limiting_t *self; /* NULL: they stay in use */
    uint64_t bytes;
} reservation_t;

static void end_reservation(const reservation_t *reservation)
{
    if (reservation->self != NULL) {
        unreserve(reservation->self, reservation->bytes);
    }
}

RMM_COLD static rmm_status_t
over_limit(limiting_t *self, size_t bytes, uint64_t counted_bytes)
{
    char rounding[48] = "";

    if (counted_bytes != bytes) {
        (void)snprintf(
            rounding, sizeof(rounding), " (rounded up to %" PRIu64 ")", counted_bytes);
    }
    return rmm__adaptor_failed(
        &self->adaptor,
        rmm__error(
            RMM_ERR_OUT_OF_MEMORY,
            "limiting '%s': exceeded the limit of %" PRIu64
            " bytes: %zu requested%s, %" PRIu64 " allocated",
            self->adaptor.base.name, self->limit_bytes, bytes, rounding,
            atomic_load_explicit(&self->allocated_bytes, memory_order_relaxed)));
}

static rmm_status_t
limiting_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    limiting_t *self = from_base(mr);
    uint64_t bytes = rounded(self, request->bytes);
    RMM_AT_END(end_reservation) reservation_t reserved = {NULL, bytes};
    rmm_status_t status;

    if (!reserve(self, bytes)) {
        return over_limit(self, request->bytes, bytes);
    }
    reserved.self = self;
    status = rmm__resource_alloc(mr->upstream, request, ptr_out);
    if (status != RMM_OK) {
        return rmm__adaptor_failed(&self->adaptor, status);
    }
    reserved.self = NULL;
    rmm__adaptor_count_alloc(&self->adaptor, request->bytes);
    return RMM_OK;
}

static void
limiting_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    limiting_t *self = from_base(mr);
    RMM_AT_END(end_reservation)
    reservation_t freed = {self, rounded(self, request->bytes)};

    if (!rmm__adaptor_free(&self->adaptor, ptr, request)) {
        freed.self = NULL;
    }
}

static const rmm_resource_ops_t limiting_ops[] = RMM_ADAPTOR_OPS(
    "limiting", limiting_alloc, limiting_dealloc, rmm__adaptor_trim,
    rmm__adaptor_destroy);

static rmm_status_t check(const rmm_resource_t *mr, const uint64_t *bytes_out)
{
    rmm_status_t status = rmm__adaptor_check(mr, limiting_ops, "a limiting adaptor");

    if (status == RMM_OK) {
        RMM_CHECK_ARG(bytes_out != NULL, "bytes_out is NULL");
    }
    return status;
}

rmm_status_t rmm_limiting_get_allocated(const rmm_resource_t *mr, uint64_t *bytes_out)
{
    rmm_status_t status = check(mr, bytes_out);

    if (status == RMM_OK) {
        *bytes_out = atomic_load_explicit(
            &((const limiting_t *)mr)->allocated_bytes, memory_order_relaxed);
    }
    return status;
}

rmm_status_t rmm_limiting_get_limit(const rmm_resource_t *mr, uint64_t *bytes_out)
{
    rmm_status_t status = check(mr, bytes_out);

    if (status == RMM_OK) {
        *bytes_out = ((const limiting_t *)mr)->limit_bytes;
    }
    return status;
}

rmm_status_t rmm_limiting_get_alignment(const rmm_resource_t *mr, uint64_t *bytes_out)
{
    rmm_status_t status = check(mr, bytes_out);

    if (status == RMM_OK) {
        *bytes_out = ((const limiting_t *)mr)->alignment_bytes;
    }
    return status;
}

static rmm_status_t check_options(rmm_limiting_options_t *options)
{
    uint64_t alignment = options->alignment_bytes;

    if (alignment == 0) {
        alignment = RMM_ALIGN_DEFAULT;
    }
    options->alignment_bytes = alignment;
    return rmm__adaptor_check_alignment(alignment, RMM_ALIGN_MAX);
}

rmm_status_t rmm_limiting_adaptor_create(
    rmm_resource_t *upstream, const rmm_limiting_options_t *options,
    rmm_resource_t **out)
{
    rmm_limiting_options_t opts;
    rmm_adaptor_t *adaptor;
    limiting_t *self;
    rmm_status_t status;

    RMM_CHECK_ARG(options != NULL, "options are NULL");
    status = RMM_OPTIONS_OVER(upstream, out, &opts, options);
    if (status == RMM_OK) {
        status = check_options(&opts);
    }
    if (status == RMM_OK) {
        status = rmm__adaptor_create(
            &(rmm_adaptor_plan_t){limiting_ops, sizeof(limiting_t), opts.name},
            upstream, &adaptor);
    }
    if (status != RMM_OK) {
        return status;
    }
    self = from_base(&adaptor->base);
    self->limit_bytes = opts.limit_bytes;
    self->alignment_bytes = opts.alignment_bytes;
    *out = &adaptor->base;
    return RMM_OK;
}
