/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/device_resource.h
 *
 * The default resource of each device: what containers and other libraries allocate from
 * when they are given none.
 *
 * The initial one is made at the first use: the cuda resource, or what RMM_RESOURCE in
 * the environment asks for (rmm/resource_spec.h). Once made it is kept, so a reset brings
 * the same one back.
 *
 * Lifetime: a default is retained for as long as it is set, the initial one until the
 * process ends; nothing is destroyed at exit. A get gives a reference of the caller's own,
 * so a resource that is replaced meanwhile lives until its last user lets go.
 *
 * Threads: any function, any thread. A get of what is set takes no lock and calls nothing
 * (one atomic operation); "current" asks the driver for the device first. The first use of
 * a device makes the initial resource, while other first users wait.
 *
 * In a forked child: a get gives what was set before the fork, which refuses to allocate;
 * where nothing was set, it is RMM_ERR_UNSUPPORTED once the parent has used a GPU.
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
 *         RMM_ERR_UNSUPPORTED         the device is one of more than are supported, or a
 *                                     log callback asks while its thread makes the
 *                                     initial resource
 *         and what making the initial resource answers, where none was made before:
 *         RMM_ERR_INVALID_ARGUMENT    RMM_RESOURCE is malformed; the message says how
 *         RMM_ERR_OUT_OF_MEMORY       RMM_RESOURCE asks for more than is free
 *         RMM_ERR_OUT_OF_HOST_MEMORY, RMM_ERR_CUDA
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_get_per_device_resource(int device, rmm_resource_t **out);

/**
 * Make @p mr_or_NULL the default of a device, retained.
 *
 * It should be of that device: a resource always gives memory of the one that it was made
 * on. Memory from the previous default goes back through the previous default.
 *
 * @param device                ordinal
 * @param mr_or_NULL            NULL: the initial resource
 * @param previous_out_or_NULL  receives what was the default, retained: release it; if
 *                              nothing was set or used before, the initial resource is
 *                              made to be answered here. Untouched on failure
 * @return as rmm_get_per_device_resource(); nothing is changed on failure
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_set_per_device_resource(
    int device, rmm_resource_t *mr_or_NULL, rmm_resource_t **previous_out_or_NULL);

/** As rmm_set_per_device_resource(device, NULL, NULL). */
RMM_API RMM_NODISCARD rmm_status_t rmm_reset_per_device_resource(int device);

/**
 * As the three above, for the calling thread's current device.
 *
 * @return as above, and RMM_ERR_CUDA if the driver does not tell the current device
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_get_current_device_resource(rmm_resource_t **out);
RMM_API RMM_NODISCARD rmm_status_t rmm_set_current_device_resource(
    rmm_resource_t *mr_or_NULL, rmm_resource_t **previous_out_or_NULL);
RMM_API RMM_NODISCARD rmm_status_t rmm_reset_current_device_resource(void);

#ifdef __cplusplus
}
#endif

#endif /* RMM_DEVICE_RESOURCE_H */
