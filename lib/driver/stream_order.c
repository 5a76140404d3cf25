/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One stream runs after another: an event is recorded on the one, and the other waits for it.
 * The host waits instead where that fails: an event of this device does not fit a stream of
 * another one, whose device is not known.
 *
 * A destroyed handle is fatal with CUDA. So a stream that rmm_stream_destroy() ended is never
 * named again; its device is waited for. Of a stream that CUDA made nothing is known.
 *
 * Captures: an event that leads into a capture or out of one ruins it, and so does any use of
 * the legacy default stream while a blocking stream of its device captures. The program orders
 * what it captures.
 *
 * Locking: none. Cost: no call where both are the same stream; else some ten driver calls,
 * about 5 us.
 */
#include "driver/stream_order.h"

#include <stdbool.h>

#include <rmm/stream.h>

#include "core/assert.h"
#include "driver/stream_ids.h"

static bool is_built_in(rmm_stream_t stream)
{
    return rmm_stream_is_default(stream) || rmm_stream_is_per_thread_default(stream);
}

static bool is_same(rmm_stream_place_t a, rmm_stream_place_t b)
{
    if (rmm_stream_is_default(a.stream) && rmm_stream_is_default(b.stream)) {
        return a.device == b.device;
    }
    return a.stream == b.stream && (a.device == b.device || !is_built_in(a.stream));
}

/* --- each in a scope of the stream's device ------------------------------------------- */

static int
enter(rmm_driver_scope_t *scope, const rmm_driver_t *driver, rmm_stream_place_t place)
{
    return rmm__driver_scope_enter(scope, driver, place.device) == RMM_OK
               ? RMM_DRIVER_OK
               : rmm_last_cuda_error();
}

/* The capture that the stream is part of; 0: none. is_open: work on it ruins no capture. */
static int look(
    const rmm_driver_t *driver, rmm_stream_place_t place, uint64_t *capture_id_out,
    int *is_open_out)
{
    rmm_stream_key_t key = {0, 0};
    rmm_driver_scope_t scope;
    int error = enter(&scope, driver, place);

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    *is_open_out = 1;
    if (rmm_stream_is_default(place.stream)) {
        error = driver->legacy_is_open(is_open_out);
    } else {
        error = driver->stream_key(place.stream, &key);
    }
    rmm__driver_scope_leave(&scope);
    *capture_id_out = key.capture_id;
    return error;
}

static int record(
    const rmm_driver_t *driver, rmm_stream_place_t place, rmm_driver_event_t *event_out)
{
    rmm_driver_scope_t scope;
    int error = enter(&scope, driver, place);

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    error = driver->event_create(event_out);
    if (error == RMM_DRIVER_OK) {
        error = driver->event_record(*event_out, place.stream);
        if (error != RMM_DRIVER_OK) {
            (void)driver->event_destroy(*event_out);
        }
    }
    rmm__driver_scope_leave(&scope);
    return error;
}

static int wait_for_event(
    const rmm_driver_t *driver, rmm_stream_place_t place, rmm_driver_event_t event)
{
    rmm_driver_scope_t scope;
    int error = enter(&scope, driver, place);

    if (error == RMM_DRIVER_OK) {
        error = driver->stream_wait_event(place.stream, event);
        rmm__driver_scope_leave(&scope);
    }
    return error;
}

/* Not for a stream that captures. */
static int wait_on_host(const rmm_driver_t *driver, rmm_stream_place_t place)
{
    rmm_driver_scope_t scope;
    int error = enter(&scope, driver, place);

    if (error == RMM_DRIVER_OK) {
        error = driver->stream_synchronize(place.stream);
        rmm__driver_scope_leave(&scope);
    }
    return error;
}

/* --- the order ------------------------------------------------------------------------ */

static int wait_on_device(
    const rmm_driver_t *driver, rmm_stream_place_t earlier, rmm_stream_place_t later)
{
    rmm_driver_event_t event;
    int error = record(driver, earlier, &event);

    if (error == RMM_DRIVER_OK) {
        error = wait_for_event(driver, later, event);
        (void)driver->event_destroy(event); /* what waits for it goes on waiting */
    }
    return error;
}

static int order_live(
    const rmm_driver_t *driver, rmm_stream_place_t earlier, rmm_stream_place_t later)
{
    uint64_t from = 0, to = 0;
    int from_open, to_open;
    int error = look(driver, earlier, &from, &from_open);

    if (error == RMM_DRIVER_OK) {
        error = look(driver, later, &to, &to_open);
    }
    if (error != RMM_DRIVER_OK) {
        return error;
    }
    if (from != to || from_open == 0 || to_open == 0) {
        return RMM_DRIVER_OK; /* the program's to order */
    }
    error = wait_on_device(driver, earlier, later);
    return error == RMM_DRIVER_OK || from != 0 ? error : wait_on_host(driver, earlier);
}

/* Before a stream that nothing can be queued on any more. */
static int finish(const rmm_driver_t *driver, rmm_stream_place_t earlier)
{
    uint64_t capture_id = 0;
    int is_open = 0;
    int error = look(driver, earlier, &capture_id, &is_open);

    return error != RMM_DRIVER_OK || capture_id != 0 || is_open == 0
               ? error
               : wait_on_host(driver, earlier);
}

int rmm__stream_order(
    const rmm_driver_t *driver, rmm_stream_place_t earlier, rmm_stream_place_t later)
{
    if (earlier.device < 0 || later.device < 0 || is_same(earlier, later)) {
        return RMM_DRIVER_OK;
    }
    if (rmm__stream_origin(earlier.stream) == RMM_STREAM_ENDED) {
        return rmm__driver_wait_device(driver, earlier.device) == RMM_OK
                   ? RMM_DRIVER_OK
                   : rmm_last_cuda_error();
    }
    return rmm__stream_origin(later.stream) == RMM_STREAM_ENDED
               ? finish(driver, earlier)
               : order_live(driver, earlier, later);
}

int rmm__stream_take_over(
    const rmm_driver_t *driver, rmm_stream_place_t former, rmm_stream_place_t next)
{
    return is_same(former, next) ||
                   rmm__stream_origin(former.stream) == RMM_STREAM_UNKNOWN
               ? RMM_DRIVER_OK
               : rmm__stream_order(driver, former, next);
}

/* --- the public functions --------------------------------------------------------------- */

typedef int (*order_fn)(
    const rmm_driver_t *driver, rmm_stream_place_t earlier, rmm_stream_place_t later);

static rmm_status_t
order(order_fn function, rmm_stream_place_t earlier, rmm_stream_place_t later)
{
    rmm_status_t status;
    const rmm_driver_t *driver;

    if (earlier.device < 0 || later.device < 0) {
        return RMM_OK;
    }
    driver = rmm__driver(&status);
    return driver == NULL ? status
                          : rmm__driver_status(
                                driver, function(driver, earlier, later),
                                "ordering a stream behind another");
}

rmm_status_t rmm_stream_order(
    int earlier_device, rmm_stream_t earlier, int later_device, rmm_stream_t later)
{
    return order(
        rmm__stream_order, (rmm_stream_place_t){earlier_device, earlier},
        (rmm_stream_place_t){later_device, later});
}

rmm_status_t rmm_stream_take_over(int device, rmm_stream_t former, rmm_stream_t next)
{
    return order(
        rmm__stream_take_over, (rmm_stream_place_t){device, former},
        (rmm_stream_place_t){device, next});
}
