/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which devices can access each other's memory. For memory of cudaMalloc() the program enables
 * that (cudaDeviceEnablePeerAccess), and copies work without it, through the host. Memory that
 * is mapped, and that of memory pools, is different: whoever makes it has to let each device in,
 * and where that cannot be, cudaMemcpyAsync() and kernels end with an error that names neither
 * the device nor the reason.
 */
#include <stdatomic.h>

#include "driver/driver.h"
#include "log/log.h"

static void warn_of_stranger(const rmm_driver_t *driver, int device, int other)
{
    static _Atomic(uint32_t) is_logged;
    uint32_t bit = RMM_DRIVER_DEVICE(other);
    int active = 0;

    if (driver->device_active(other, &active) != RMM_DRIVER_OK || active == 0 ||
        (atomic_fetch_or_explicit(&is_logged, bit, memory_order_relaxed) & bit) != 0) {
        return;
    }
    rmm__log_warn(
        "device %d cannot access the memory of device %d (cudaDeviceCanAccessPeer): "
        "its "
        "kernels, and cudaMemcpyAsync() between the two, fail on memory of a virtual "
        "pool or "
        "an async resource; cudaMemcpyPeerAsync() works, and so do copies of "
        "cudaMalloc's "
        "memory (cuda, pool)",
        other, device);
}

static void warn_of_error(const rmm_driver_t *driver, int device, int error)
{
    rmm__log_warn(
        "which devices can access the memory of device %d is unknown, and none gets "
        "access: %s (%d)",
        device, driver->error_name(error), error);
}

uint32_t rmm__driver_peers(const rmm_driver_t *driver, int device)
{
    uint32_t peers = 0;
    int count;
    int error = driver->device_count(&count);

    for (int other = 0;
         error == RMM_DRIVER_OK && other < count && other < RMM_DRIVER_SET_DEVICES;
         other++) {
        int can = 0;

        if (other == device) {
            continue;
        }
        error = driver->peer_can_access(other, device, &can);
        if (error == RMM_DRIVER_OK && can != 0) {
            peers |= RMM_DRIVER_DEVICE(other);
        } else if (error == RMM_DRIVER_OK) {
            warn_of_stranger(driver, device, other);
        }
    }
    if (error != RMM_DRIVER_OK) {
        warn_of_error(driver, device, error);
        return 0;
    }
    return peers;
}

void rmm__driver_warn_shut_out(
    const char *what, const rmm_driver_t *driver, int device, uint32_t shut_out,
    int error)
{
    for (int other = 0; other < RMM_DRIVER_SET_DEVICES; other++) {
        if ((shut_out & RMM_DRIVER_DEVICE(other)) != 0) {
            rmm__log_warn(
                "%s on device %d: device %d gets no access, so that its kernels, and "
                "cudaMemcpyAsync() between the two, fail on this memory: %s (%d)",
                what, device, other, driver->error_name(error), error);
        }
    }
}
