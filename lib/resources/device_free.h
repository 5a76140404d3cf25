/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a device has free, for a report of an out-of-memory. That is a question to the
 * driver that may take longer than all the rest: where requests fail one after the other,
 * the last answer is told again for a moment.
 */
#ifndef RMM_RESOURCES_DEVICE_FREE_H
#define RMM_RESOURCES_DEVICE_FREE_H

#include "base/resource_impl.h"
#include "driver/driver.h"

/* All zero at first. Relaxed: any answer of the last moment will do. */
typedef struct device_free {
    _Atomic(uint64_t) bytes, asked_ns;
} device_free_t;

/* 0 where the driver does not say. *since_out: "" if it was asked now, else when. The
 * answer is shown in /rmm from now on. */
uint64_t rmm__device_free_lately(
    device_free_t *known, const rmm_resource_t *mr, const rmm_driver_t *driver,
    const char **since_out);

#endif /* RMM_RESOURCES_DEVICE_FREE_H */
