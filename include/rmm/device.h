/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/device.h
 *
 * Queries about devices, the calling thread's current device, and prefetches of managed
 * memory.
 *
 * Lifetime: the library keeps nothing of these calls.
 *
 * Threads: any. Each thread has a current device of its own, which is CUDA's.
 *
 * Units: bytes; devices by CUDA ordinal.
 *
 * Every function but rmm_driver_set_default() calls the driver and may return the statuses that
 * rmm/status.h lists for that. A device that does not exist is RMM_ERR_CUDA, a NULL pointer for
 * a result RMM_ERR_INVALID_ARGUMENT.
 */
#ifndef RMM_DEVICE_H
#define RMM_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include <rmm/export.h>
#include <rmm/status.h>
#include <rmm/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** rmm_prefetch(): to the host's memory. */
#define RMM_DEVICE_HOST (-1)

/**
 * The driver of this process, selected by RMM_DRIVER: "cuda", "hip" (AMD) or "sim" (the
 * simulated GPU); "none" if there is no usable GPU: the last error has the reason. Static.
 */
RMM_API const char *rmm_driver_name(void);

/**
 * The driver to use when RMM_DRIVER is unset. It is "cuda" until a program says otherwise: one for
 * AMD GPUs calls this before anything else of the library. C++ files that are compiled for AMD
 * do it by themselves (rmm/cxx/hip.hpp). Calls no driver.
 *
 * @param name  "cuda", "hip" or "sim"
 * @return RMM_OK, also if it is the default already, or
 *         RMM_ERR_INVALID_ARGUMENT  name is NULL or none of these
 *         RMM_ERR_UNSUPPORTED       too late: this process has looked for a GPU already
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_driver_set_default(const char *name);

/** The number of devices that are visible to this process. */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_count(int *count_out);

/** The calling thread's current device. */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_current(int *device_out);

/** Make @p device the calling thread's current one. */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_set(int device);

/** Abilities that a device may lack: rmm_device_supports(). Appended only. */
typedef enum rmm_device_ability {
    RMM_ABILITY_MANAGED, /**< rmm/managed_resource.h */
    RMM_ABILITY_SYSTEM,  /**< rmm/system_resource.h, rmm/sam_headroom_resource.h */
    RMM_ABILITY_ASYNC,   /**< rmm/async_resource.h */
    RMM_ABILITY_ASYNC_MANAGED, /**< rmm/async_managed_resource.h */
    RMM_ABILITY_POOL_VIRTUAL,  /**< RMM_POOL_VIRTUAL of rmm/pool_resource.h */
    RMM_ABILITY_ASYNC_PINNED,  /**< RMM_ASYNC_ON_HOST of rmm/async_resource.h */
    RMM_ABILITY_ASYNC_ON_NODE  /**< RMM_ASYNC_ON_NODE of it */
} rmm_device_ability_t;

/**
 * Does the device support this kind of resource? Asks the driver and allocates nothing. The
 * creator may still return RMM_ERR_UNSUPPORTED if the driver promises too much, as for
 * managed memory of a vGPU.
 *
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  device is negative, ability is unknown, is_out is NULL
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_device_supports(int device, rmm_device_ability_t ability, bool *is_out);

/** The device that rmm_device_scope_leave() restores. The field is private. */
typedef struct rmm_device_scope {
    int previous; /* -1: nothing to restore */
} rmm_device_scope_t;

/**
 * Make a device the calling thread's current one until rmm_device_scope_leave()
 * [cuda_set_device_raii].
 *
 * @param device     negative, or the current one: the scope changes and restores nothing
 * @param scope_out  for rmm_device_scope_leave() on the same thread; untouched on failure,
 *                   and rmm_device_scope_leave() must not be called then
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_device_scope_enter(int device, rmm_device_scope_t *scope_out);

/** Make the previous device current again. A second call does nothing. */
RMM_API void rmm_device_scope_leave(rmm_device_scope_t *scope);

/**
 * The free memory of the current device (other processes use it as well), and its total memory.
 * Where a control group limits this process (dmem.max of Linux 6.14, AMD and Intel), no more than
 * that leaves is free.
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_available_device_memory(size_t *free_bytes_out, size_t *total_bytes_out);

/**
 * A share of the memory that is free on the current device, rounded down to a multiple
 * of RMM_ALIGN_DEFAULT (256). It leaves the 2 MiB that the library needs on a device before
 * its first pool takes memory there, so a pool can have 100 percent.
 *
 * @param percent  0 to 100; any other is RMM_ERR_INVALID_ARGUMENT
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_percent_of_free_device_memory(int percent, size_t *bytes_out);

/**
 * Migrate managed (or system) memory to a device in the order of a stream, before a kernel
 * needs it there. This is a hint: on a device without concurrent managed access, and for
 * memory that cannot migrate (the driver's cudaErrorInvalidValue), it does nothing and
 * returns RMM_OK. Do not call it on a stream that captures: CUDA refuses the call and
 * invalidates the capture.
 *
 * @param ptr     start of the range; bytes 0 is RMM_OK
 * @param device  the target, or RMM_DEVICE_HOST
 * @param stream  a default stream is that of the current device
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  ptr is NULL with bytes not 0, or device is negative
 *                                   and not RMM_DEVICE_HOST
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_prefetch(const void *ptr, size_t bytes, int device, rmm_stream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* RMM_DEVICE_H */
