/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's own memory. Its blocks are remembered like those of a driver (tracked.h),
 * so a wrong free never reaches the program's functions, and none is left at the end.
 *
 * The functions run as a driver call of ours would: with the device current that the
 * resource was made on, so that a cudaMalloc in them is of that device, and without
 * harm to the capture of another thread. There the handle of the per-thread default stream
 * means another stream than to a caller with another device current, so the two are ordered.
 *
 * Unchecked (RMM_CUSTOM_UNCHECKED): NULL on RMM_OK is not in the map; how many bytes of that
 * kind are out is counted, so that more of them are not freed than there are.
 *
 * Locking: as tracked.h; the program's functions are called with no lock held.
 */
#include "resources/custom_impl.h"

#include <stdio.h>
#include <string.h>

#include "base/callback.h"
#include "core/assert.h"
#include "core/options.h"
#include "core/uncancelled.h"
#include "driver/driver.h"
#include "driver/stream_order.h"
#include "resources/tracked.h"

typedef struct custom {
    rmm_tracked_t tracked;      /* first member */
    const rmm_driver_t *driver; /* NULL: host memory, which has no device */
    rmm_custom_resource_ops_t ops;
    void *payload;
} custom_t;

static custom_t *from_tracked(rmm_tracked_t *tracked)
{
    return RMM_CONTAINER_OF(tracked, custom_t, tracked);
}

static custom_t *from_base(rmm_resource_t *mr)
{
    return from_tracked(rmm__tracked_from_base(mr));
}

/* --- calls of the program's functions ------------------------------------------------- */

/* While a function runs. It ends with its scope, also by an exception of the function. */
typedef struct visit {
    rmm_driver_scope_t scope;
    rmm_status_t status;
    bool is_in_scope;
    int cancel_state;
} visit_t;

/* Where it fails, the function may be called all the same: the process exits. */
static visit_t enter(const custom_t *self)
{
    visit_t visit = {.status = RMM_OK, .cancel_state = rmm__cancel_off()};

    rmm__callback_enter();
    if (self->driver != NULL) {
        visit.status = rmm__driver_scope_enter(
            &visit.scope, self->driver, self->tracked.base.device);
        visit.is_in_scope = visit.status == RMM_OK;
    }
    return visit;
}

static void leave(visit_t *visit)
{
    if (visit->is_in_scope) {
        rmm__driver_scope_leave(&visit->scope);
    }
    rmm__callback_leave();
    rmm__cancel_restore(&visit->cancel_state);
}

typedef enum direction { TO_CALLER, FROM_CALLER } direction_t;

/* Outside of the scope. What the functions see as the per-thread default stream runs behind the
 * caller's, or the other way round. */
static void order_per_thread(
    const custom_t *self, const rmm_request_t *request, direction_t direction)
{
    rmm_stream_place_t own = {self->tracked.base.device, request->stream};
    rmm_stream_place_t callers = own;

    if (self->driver == NULL || !rmm_stream_is_per_thread_default(request->stream) ||
        self->driver->device_get(&callers.device) != RMM_DRIVER_OK) {
        return;
    }
    if (direction == FROM_CALLER) {
        (void)rmm__stream_order(self->driver, callers, own);
    } else {
        (void)rmm__stream_order(self->driver, own, callers);
    }
}

/* False, with the status: the function cannot be called. */
static bool call_alloc(
    const custom_t *self, const rmm_request_t *request, void **ptr_out,
    rmm_status_t *status)
{
    const rmm_custom_resource_ops_t *ops = &self->ops;
    RMM_AT_END(leave) visit_t visit = enter(self);

    *status = visit.status;
    if (visit.status != RMM_OK) {
        return false;
    }
    *status =
        request->sync && ops->alloc_sync != NULL
            ? ops->alloc_sync(request->bytes, request->align, self->payload, ptr_out)
            : ops->alloc(
                  request->bytes, request->align, request->stream, self->payload,
                  ptr_out);
    return true;
}

static void
call_dealloc(rmm_tracked_t *tracked, void *ptr, const rmm_request_t *request)
{
    const custom_t *self = from_tracked(tracked);
    const rmm_custom_resource_ops_t *ops = &self->ops;

    order_per_thread(self, request, FROM_CALLER);
    RMM_AT_END(leave) visit_t visit = enter(self);

    if (request->sync && ops->dealloc_sync != NULL) {
        ops->dealloc_sync(ptr, request->bytes, request->align, self->payload);
    } else {
        ops->dealloc(
            ptr, request->bytes, request->align, request->stream, self->payload);
    }
}

/* The last error that the function set, if it did, is the reason. */
RMM_COLD static rmm_status_t
refused(const custom_t *self, rmm_status_t status, size_t bytes, const char *before)
{
    const rmm_resource_t *mr = &self->tracked.base;
    char reason[RMM_ERROR_BYTES];
    bool has_message = strcmp(before, rmm_last_error_message()) != 0;

    snprintf(
        reason, sizeof(reason), "%.300s", has_message ? rmm_last_error_message() : "");
    return rmm__error(
        status, "%s '%s': the program's alloc function refused %zu bytes: %s%s%s",
        rmm_resource_type(mr), mr->name, bytes, rmm_status_text(status),
        has_message ? ": " : "", reason);
}

static rmm_status_t
ask(const custom_t *self, const rmm_request_t *request, void **ptr_out)
{
    char before[RMM_ERROR_BYTES];
    rmm_status_t status;
    void *ptr = NULL;

    snprintf(before, sizeof(before), "%s", rmm_last_error_message());
    if (!call_alloc(self, request, &ptr, &status)) {
        return status;
    }
    if (status != RMM_OK) {
        return refused(self, status, request->bytes, before);
    }
    order_per_thread(self, request, TO_CALLER);
    *ptr_out = ptr;
    return RMM_OK;
}

/* --- what they answer ------------------------------------------------------------------ */

static bool is_unchecked(const custom_t *self, const rmm_request_t *request)
{
    return (self->ops.flags & RMM_CUSTOM_UNCHECKED) != 0 && request->user;
}

RMM_COLD static rmm_status_t
unfit(custom_t *self, void *ptr, const rmm_request_t *request)
{
    const rmm_resource_t *mr = &self->tracked.base;

    if (ptr == NULL) {
        return rmm__error(
            RMM_ERR_BAD_ALLOC,
            "%s '%s': the program's alloc function returned RMM_OK with NULL",
            rmm_resource_type(mr), mr->name);
    }
    call_dealloc(&self->tracked, ptr, request);
    return request->bytes == 0
               ? rmm__error(
                     RMM_ERR_BAD_ALLOC,
                     "%s '%s': the program's alloc function returned %p for 0 bytes "
                     "instead of NULL",
                     rmm_resource_type(mr), mr->name, ptr)
               : rmm__error(
                     RMM_ERR_BAD_ALLOC,
                     "%s '%s': the program's alloc function returned %p, which is not "
                     "aligned to %zu",
                     rmm_resource_type(mr), mr->name, ptr, request->align);
}

static rmm_status_t
custom_obtain(rmm_tracked_t *tracked, const rmm_request_t *request, void **ptr_out)
{
    custom_t *self = from_tracked(tracked);
    void *ptr = NULL;
    rmm_status_t status = ask(self, request, &ptr);

    if (status != RMM_OK) {
        return status;
    }
    if ((ptr == NULL || (uintptr_t)ptr % request->align != 0) &&
        !is_unchecked(self, request)) {
        return unfit(self, ptr, request);
    }
    if (ptr == NULL) {
        atomic_fetch_add_explicit(
            &tracked->base.null_bytes, request->bytes, memory_order_relaxed);
    }
    *ptr_out = ptr;
    return RMM_OK;
}

/* --- the ops --------------------------------------------------------------------------- */

static rmm_status_t
custom_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    custom_t *self = from_base(mr);

    if (request->bytes == 0 && is_unchecked(self, request)) {
        void *ptr = NULL;
        rmm_status_t status = ask(self, request, &ptr);

        if (status == RMM_OK && ptr != NULL) {
            status = unfit(self, ptr, request);
        }
        if (status != RMM_OK) {
            return status;
        }
    }
    return rmm__tracked_alloc(mr, request, ptr_out);
}

static void custom_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    custom_t *self = from_base(mr);

    if (ptr == NULL && !rmm__figure_take(&mr->null_bytes, request->bytes)) {
        rmm__resource_refuse_free(mr, ptr, request, "no such allocation was NULL");
        return;
    }
    rmm__tracked_dealloc(mr, ptr, request);
    if (ptr == NULL && is_unchecked(self, request)) {
        call_dealloc(&self->tracked, NULL, request);
    }
}

static bool custom_is_equal(const rmm_resource_t *a, const rmm_resource_t *b)
{
    const custom_t *one = (const custom_t *)a;
    const custom_t *other = (const custom_t *)b;

    return one->ops.is_equal != NULL && one->ops.is_equal == other->ops.is_equal &&
           one->ops.is_equal(one->payload, other->payload);
}

static void custom_end(rmm_resource_t *mr)
{
    const custom_t *self = from_base(mr);

    /* what is still out may be in use on any stream, and the functions know of none */
    if (self->driver != NULL && self->tracked.blocks.count != 0) {
        (void)rmm__driver_wait_all_devices(self->driver, mr->device);
    }
    rmm__tracked_destroy(mr);
}

static void custom_destroy(rmm_tracked_t *tracked)
{
    custom_t *self = from_tracked(tracked);

    if (self->ops.destroy != NULL) {
        RMM_AT_END(leave) visit_t visit = enter(self);

        self->ops.destroy(self->payload);
    }
}

static const rmm_tracked_source_t source = {
    .obtain = custom_obtain,
    .give_back = call_dealloc,
    .destroy = custom_destroy,
    .may_nest = true,
};

/* The functions know their stream only, hence not ready on all. */
#define CUSTOM_OPS(type, has_twins)                                                    \
    {                                                                                  \
        .type_name = (type), .alloc = custom_alloc, .dealloc = custom_dealloc,         \
        .trim = rmm__tracked_trim, .destroy = custom_end, .is_equal = custom_is_equal, \
        .ready_on_all_streams = false, .owns_blocks = true,                            \
        .waits_for_sync = (has_twins)                                                  \
    }

static const rmm_resource_ops_t callback_ops = CUSTOM_OPS("callback", false);
static const rmm_resource_ops_t custom_ops = CUSTOM_OPS("custom", false);
static const rmm_resource_ops_t custom_sync_ops = CUSTOM_OPS("custom", true);

/* --- create ---------------------------------------------------------------------------- */

static const rmm_resource_ops_t *
table_of(rmm_custom_type_t type, const rmm_custom_resource_ops_t *ops)
{
    if (type == RMM_CUSTOM_CALLBACK) {
        return &callback_ops;
    }
    return ops->alloc_sync != NULL ? &custom_sync_ops : &custom_ops;
}

/* No driver and no device are needed where no device can reach the memory. */
static rmm_status_t
choose_device(uint32_t properties, const rmm_driver_t **driver_out, int *device_out)
{
    *driver_out = NULL;
    *device_out = -1;
    return (properties & RMM_DEVICE_ACCESSIBLE) != 0
               ? rmm__driver_here(driver_out, device_out)
               : RMM_OK;
}

rmm_status_t rmm__custom_create(
    rmm_custom_type_t type, const rmm_custom_resource_ops_t *ops, void *payload,
    rmm_resource_t **out)
{
    uint32_t properties =
        ops->properties != 0 ? ops->properties : RMM_DEVICE_ACCESSIBLE;
    rmm_resource_desc_t desc = {
        .ops = table_of(type, ops), .name = ops->name, .properties = properties};
    custom_t model = {.tracked.source = &source, .ops = *ops, .payload = payload};
    rmm_tracked_t *self;
    rmm_status_t status;

    RMM_CHECK_ARG(
        (properties & ~(RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE)) == 0,
        "unknown property");
    RMM_CHECK_ARG((ops->flags & ~RMM_CUSTOM_UNCHECKED) == 0, "unknown flag");
    status = choose_device(properties, &model.driver, &desc.device);
    if (status != RMM_OK) {
        return status;
    }
    model.ops.name = NULL; /* the base has a copy */
    status = rmm__tracked_create(&model.tracked, sizeof(model), &desc, &self);
    if (status == RMM_OK) {
        *out = &self->base;
    }
    return status;
}

rmm_status_t rmm_custom_resource_create(
    const rmm_custom_resource_ops_t *ops, void *payload, rmm_resource_t **out)
{
    rmm_custom_resource_ops_t copy;
    rmm_status_t status;

    RMM_CHECK_ARG(ops != NULL, "ops are NULL");
    RMM_CHECK_ARG(out != NULL, "out is NULL");
    status = rmm__options_copy(&copy, sizeof(copy), ops, sizeof(copy));
    if (status != RMM_OK) {
        return status;
    }
    RMM_CHECK_ARG(
        copy.alloc != NULL && copy.dealloc != NULL, "alloc or dealloc is NULL");
    RMM_CHECK_ARG(
        (copy.alloc_sync == NULL) == (copy.dealloc_sync == NULL),
        "only one of alloc_sync and dealloc_sync is NULL");
    return rmm__custom_create(RMM_CUSTOM_OWN, &copy, payload, out);
}
