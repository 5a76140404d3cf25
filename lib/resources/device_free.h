/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The free memory of a device, for the report of an out-of-memory. The query of the driver
 * may take longer than the rest of a failing request. So if requests fail one after another,
 * a recent answer is used again.
 */
#ifndef RMM_RESOURCES_DEVICE_FREE_H
#define RMM_RESOURCES_DEVICE_FREE_H

#include "base/resource_impl.h"
#include "driver/driver.h"

/* All zero at first. Relaxed: any answer of the last moment will do. */
typedef struct device_free {
    _Atomic(uint64_t) bytes, asked_ns;
} device_free_t;

/* 0 if the driver does not answer. *since_out: "" if it was queried now, else when. /rmm
 * shows the answer from now on. */
uint64_t rmm__device_free_lately(
    device_free_t *known, const rmm_resource_t *mr, const rmm_driver_t *driver,
    const char **since_out);

#endif /* RMM_RESOURCES_DEVICE_FREE_H */
