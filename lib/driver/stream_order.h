/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order between two streams of any devices, made by an event: see stream_order.c.
 */
#ifndef RMM_DRIVER_STREAM_ORDER_H
#define RMM_DRIVER_STREAM_ORDER_H

#include "driver/driver.h"

/* A stream. A default stream has the same handle on every device: the device says which. */
typedef struct rmm_stream_place {
    int device; /* -1: no GPU, so nothing is ever queued */
    rmm_stream_t stream;
} rmm_stream_place_t;

/*
 * Work queued on `later` from now on runs after all that is queued on `earlier`. Both streams
 * exist; if `earlier` was destroyed with rmm_stream_destroy(), the host waits for its device.
 * Leaves captures alone: does nothing where only one of the two captures, or where they are part
 * of two captures. Returns a driver's error; the order is not made then.
 */
int rmm__stream_order(
    const rmm_driver_t *driver, rmm_stream_place_t earlier, rmm_stream_place_t later);

/*
 * The same for an object that goes over from a stream that may not exist any more. Does nothing
 * where the library cannot know that: it did not make the stream.
 */
int rmm__stream_take_over(
    const rmm_driver_t *driver, rmm_stream_place_t former, rmm_stream_place_t next);

#endif /* RMM_DRIVER_STREAM_ORDER_H */
