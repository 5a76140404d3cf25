/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/device_resource.h
 *
 * The default resource of each device. Containers and other libraries allocate from it when
 * the caller names no resource.
 *
 * The first use creates the initial default: the resource that RMM_RESOURCE in the environment
 * names (rmm/resource_spec.h), else the cuda resource, or that of rmm/auto_resource.h after
 * rmm_default_resource_prefer_auto(). The library keeps it, so a reset restores the same one.
 *
 * Lifetime: the library retains a default as long as it is set, and the initial one until
 * the process ends; nothing is destroyed at exit. A get returns a reference of the caller's
 * own, so a resource that is replaced meanwhile lives until its last user releases it.
 *
 * Threads: any function, any thread. A get of an existing default takes no lock and calls
 * nothing (one atomic operation); the functions for the current device query the driver for
 * it first. The first use of a device creates the initial resource; threads that need it
 * meanwhile wait.
 *
 * In a forked child: a get returns the default that was set before the fork, which refuses
 * to allocate. If none was set and the parent has used a GPU, it is RMM_ERR_UNSUPPORTED.
 *
 * Devices: CUDA ordinals, from 0.
 */
#ifndef RMM_DEVICE_RESOURCE_H
#define RMM_DEVICE_RESOURCE_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The default resource of a device.
 *
 * @param device  ordinal
 * @param out     receives the resource, retained: release it; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    device is negative, out is NULL
 *         RMM_ERR_OUT_OF_RANGE        there is no such device
 *         RMM_ERR_NO_DEVICE           no usable GPU; the message says what to do
 *         RMM_ERR_UNSUPPORTED         the library does not support so many devices, or a
 *                                     log callback calls while its thread creates the
 *                                     initial resource
 *         and, if this call creates the initial resource:
 *         RMM_ERR_INVALID_ARGUMENT    RMM_RESOURCE is malformed; the message says how
 *         RMM_ERR_OUT_OF_MEMORY       RMM_RESOURCE asks for more than is free
 *         or another status of the functions that create its parts, for example
 *         RMM_ERR_IO for a log that cannot be written, or RMM_ERR_UNSUPPORTED
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_get_per_device_resource(int device, rmm_resource_t **out);

/**
 * Make @p mr_or_NULL the default of a device, retained.
 *
 * It must belong to that device (rmm_resource_device()): a resource allocates on the device that
 * was current when it was created, and orders by that device's default stream. That holds for
 * pinned, managed and custom resources, too, and for adaptors, which have the device of their
 * upstream. Create it while that device is current. A resource of host memory alone belongs to
 * no device and may be the default of any. Free memory of the previous default through the
 * previous default.
 *
 * @param device                ordinal
 * @param mr_or_NULL            NULL: the initial resource. One of another device is
 *                              RMM_ERR_INVALID_ARGUMENT
 * @param previous_out_or_NULL  receives the previous default, retained: release it. If
 *                              none was set or used before, this call creates the initial
 *                              resource and returns it here. Untouched on failure
 * @return as rmm_get_per_device_resource(); a failure changes nothing
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_set_per_device_resource(
    int device, rmm_resource_t *mr_or_NULL, rmm_resource_t **previous_out_or_NULL);

/** Make the initial resource the default again, as rmm_set_per_device_resource() of NULL. */
RMM_API RMM_NODISCARD rmm_status_t rmm_reset_per_device_resource(int device);

/**
 * The default resource of the calling thread's current device.
 *
 * @return as rmm_get_per_device_resource(), and RMM_ERR_CUDA if the driver cannot name the
 *         current device
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_get_current_device_resource(rmm_resource_t **out);
/** As rmm_set_per_device_resource(), of the calling thread's current device. */
RMM_API RMM_NODISCARD rmm_status_t rmm_set_current_device_resource(
    rmm_resource_t *mr_or_NULL, rmm_resource_t **previous_out_or_NULL);
/** As rmm_reset_per_device_resource(), of the calling thread's current device. */
RMM_API RMM_NODISCARD rmm_status_t rmm_reset_current_device_resource(void);

/**
 * Where RMM_RESOURCE is unset or empty, the initial default of each device that has none yet will
 * be that of rmm_auto_resource_create() instead of the cuda resource. For programs, and for
 * libraries that bring memory to a framework: rmm_torch_malloc() and the Python allocators do
 * it. Uses no device; cannot be undone.
 */
RMM_API void rmm_default_resource_prefer_auto(void);

#ifdef __cplusplus
}
#endif

#endif /* RMM_DEVICE_RESOURCE_H */
