/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/device_free.h"

#include <time.h>

#include "core/clock.h"

#define AGE_NS 100000000u /* how long an answer is reused */

static uint64_t ask(const rmm_resource_t *mr, const rmm_driver_t *driver)
{
    rmm_driver_scope_t scope;
    uint64_t free_bytes = 0;
    uint64_t total;

    if (rmm__driver_scope_enter(&scope, driver, mr->device) == RMM_OK) {
        if (driver->memory_info(&free_bytes, &total) == RMM_DRIVER_OK) {
            rmm__location_device_free(mr->accounting.location, free_bytes);
        }
        rmm__driver_scope_leave(&scope);
    }
    return free_bytes;
}

uint64_t rmm__device_free_lately(
    device_free_t *known, const rmm_resource_t *mr, const rmm_driver_t *driver,
    const char **since_out)
{
    uint64_t asked_ns = atomic_load_explicit(&known->asked_ns, memory_order_relaxed);
    uint64_t bytes;

    if (asked_ns != 0 && rmm__clock_ns(CLOCK_MONOTONIC_COARSE) - asked_ns <= AGE_NS) {
        *since_out = " a moment ago";
        return atomic_load_explicit(&known->bytes, memory_order_relaxed);
    }
    *since_out = "";
    bytes = ask(mr, driver);
    atomic_store_explicit(&known->bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(
        &known->asked_ns, rmm__clock_ns(CLOCK_MONOTONIC_COARSE), memory_order_relaxed);
    return bytes;
}
