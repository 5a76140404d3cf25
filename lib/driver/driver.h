/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver table of this process (table.h), and what every part of the library does with it:
 * errors, scopes, waits. The table is chosen once, at the first call of rmm__driver(), by
 * RMM_DRIVER.
 */
#ifndef RMM_DRIVER_DRIVER_H
#define RMM_DRIVER_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmm/status.h>
#include <rmm/stream.h>

#include "driver/table.h"

/*
 * The table of this process, or NULL with the thread's last error set: RMM_ERR_NO_DEVICE
 * (no usable GPU, message names RMM_DRIVER) or RMM_ERR_INVALID_ARGUMENT (RMM_DRIVER says
 * none of cuda, hip and sim, or an RMM_SIM_* variable is malformed). A failure to find a GPU
 * is final for the process. Thread-safe; after the first call one load.
 */
const rmm_driver_t *rmm__driver(rmm_status_t *status_out);

/* The table if it is open already, else NULL: opens nothing, and is no error. */
const rmm_driver_t *rmm__driver_if_open(void);

/* Each returns NULL on failure and sets the last error. Used by driver.c only. */
const rmm_driver_t *rmm__driver_cuda_open(rmm_status_t *status_out);
const rmm_driver_t *rmm__driver_hip_open(rmm_status_t *status_out);
const rmm_driver_t *rmm__driver_sim_open(rmm_status_t *status_out);

/* Set the thread's last error from a failed driver call; returns OUT_OF_MEMORY for
 * MEMORY_ALLOCATION, NO_DEVICE for NO_DEVICE and INSUFFICIENT_DRIVER, else CUDA. */
rmm_status_t rmm__driver_error(const rmm_driver_t *driver, int error, const char *call);

/* RMM_OK for RMM_DRIVER_OK, else what rmm__driver_error() returns. */
static inline rmm_status_t
rmm__driver_status(const rmm_driver_t *driver, int error, const char *call)
{
    return error == RMM_DRIVER_OK ? RMM_OK : rmm__driver_error(driver, error, call);
}

/* An attribute of a device; untouched on failure, which is what rmm__driver_error() says of
 * `call`. */
rmm_status_t rmm__driver_attribute(
    const rmm_driver_t *driver, rmm_driver_attribute_t attribute, int device,
    const char *call, int *value_out);

/* RMM_OK if the device has this ability, an attribute of its own; else RMM_ERR_UNSUPPORTED, and
 * the last error is "device 0 " and `lacks`. */
rmm_status_t rmm__driver_require(
    const rmm_driver_t *driver, rmm_driver_attribute_t attribute, int device,
    const char *lacks);

/*
 * A scope in which any slow call of the driver is allowed: the resource's device is
 * current, and this thread's capture mode is relaxed, so that an allocation here does
 * not ruin a graph capture that another thread has under way. Restores both. Not for the
 * fast path (two calls at least).
 */
typedef struct rmm_driver_scope {
    const rmm_driver_t *driver;
    int previous_device; /* -1: it was current already */
    int previous_mode;
} rmm_driver_scope_t;

/* RMM_OK, or what the driver answered, with the last error set; then do not leave. */
rmm_status_t rmm__driver_scope_enter(
    rmm_driver_scope_t *scope, const rmm_driver_t *driver, int device);
void rmm__driver_scope_leave(rmm_driver_scope_t *scope);

/*
 * Around a call with a stream of the caller's. The legacy default stream is that of the
 * current device; for a resource it always means that of its own, which is made current.
 * No call at all for other streams. False: it cannot be; then do not leave.
 */
static inline bool rmm__driver_stream_enter(
    rmm_driver_scope_t *scope, const rmm_driver_t *driver, int device,
    rmm_stream_t stream)
{
    return !rmm_stream_is_default(stream) ||
           rmm__driver_scope_enter(scope, driver, device) == RMM_OK;
}

static inline void
rmm__driver_stream_leave(rmm_driver_scope_t *scope, rmm_stream_t stream)
{
    if (rmm_stream_is_default(stream)) {
        rmm__driver_scope_leave(scope);
    }
}

/*
 * The same around a call that would ruin the capture of another thread: the mode is relaxed
 * for every stream. Two calls of a few ns for other streams than the legacy default one.
 * False, with the last error set: do not leave.
 */
bool rmm__driver_relax_enter(
    rmm_driver_scope_t *scope, const rmm_driver_t *driver, int device,
    rmm_stream_t stream);

static inline void rmm__driver_relax_leave(rmm_driver_scope_t *scope)
{
    rmm__driver_scope_leave(scope);
}

/*
 * Wait for all work on the current device, also that of destroyed streams, and leave the
 * graph captures of other threads alone. In a scope only. Returns a driver's error.
 */
int rmm__driver_barrier(const rmm_driver_t *driver);

/*
 * Is all work over that was queued on other devices than `device` before this call? `waits`: if
 * not, wait for these devices, without a call that ruins captures. Else true only if no primary
 * context of any of them is in use; work in other contexts is not seen. In a scope only.
 *
 * Work of another device may itself wait for what this thread is yet to queue: kernels of a
 * collective operation do. Such a wait never ends. So wait only in place of a refusal, and at a
 * pool's end, when memory that others may use goes back.
 */
bool rmm__driver_others_idle(const rmm_driver_t *driver, int device, bool waits);

/*
 * The barrier needs one free block of the device, or its fallback ruins captures. Between
 * keep and drop, which count, one is kept for it, if the device has one. Keep it before the
 * first memory is taken that may fill the device. When one thread keeps and another drops,
 * the drop may come first.
 */
void rmm__driver_barrier_keep(const rmm_driver_t *driver, int device);
void rmm__driver_barrier_drop(const rmm_driver_t *driver, int device);
/* Take the block if it is missing, as after keep() on a full device. No driver call if it is
 * there. */
void rmm__driver_barrier_refill(const rmm_driver_t *driver, int device);
/* An allocation of so many bytes has failed. Free the block if only its memory is missing, and
 * only the caller keeps it. True: try again, then refill. The last error stays. */
bool rmm__driver_barrier_yield(const rmm_driver_t *driver, int device, uint64_t bytes);
/* The bytes of the device that the barrier's block would take at most; 0: it exists. */
uint64_t rmm__driver_barrier_need(int device);

/* Wait for the device's legacy default stream, leaving captures alone. RMM_OK or why not. */
rmm_status_t rmm__driver_wait_default_stream(int device);

/*
 * Wait for a stream of the caller's, leaving the captures of other threads alone: while one
 * captures in global mode, cudaStreamSynchronize of any stream ruins it unless this
 * thread's mode is relaxed (docs/decisions/0004). Returns a driver's error.
 */
int rmm__driver_wait_stream(const rmm_driver_t *driver, rmm_stream_t stream);

/* The process sees no other device: nothing of it is used elsewhere. No driver call but the
 * first time. */
bool rmm__driver_has_one_device(const rmm_driver_t *driver);

/*
 * Before memory is freed by a call that waits for one device alone: wait for the stream that
 * it is freed on, which may be another's. A stream that captures has nothing queued; the legacy
 * default one is that of the resource's own device, for which the free waits. Returns a driver's
 * error.
 */
int rmm__driver_wait_before_free(const rmm_driver_t *driver, rmm_stream_t stream);

/*
 * What the current device has free for this process: less than the driver says where a control
 * group limits it (core/dmem.h). Returns a driver's error.
 */
int rmm__driver_memory_info(
    const rmm_driver_t *driver, uint64_t *free_bytes_out, uint64_t *total_bytes_out);

/* The same of any device, in a scope of its own. */
rmm_status_t
rmm__driver_free_memory(const rmm_driver_t *driver, int device, uint64_t *bytes_out);

/* Wait for all work on this device, leaving captures alone. RMM_OK or why not. */
rmm_status_t rmm__driver_wait_device(const rmm_driver_t *driver, int device);

/*
 * The other devices of this process that can access the memory of `device`. Empty, with a
 * warning, if the driver does not say. Warns as well, once for each, of a device that is in use
 * and cannot: mapped memory and that of memory pools is out of its reach, which the error of a
 * copy would not tell. One call in a process that sees one device, else two for each device.
 */
uint32_t rmm__driver_peers(const rmm_driver_t *driver, int device);

/* Warns that these devices get no access to memory of `what`, which is on `device`, because the
 * driver answered with an error. */
void rmm__driver_warn_shut_out(
    const char *what, const rmm_driver_t *driver, int device, uint32_t shut_out,
    int error);

/*
 * At the end of a resource with live blocks, which any stream of any device may use: wait for
 * this device and, as far as rmm__driver_others_idle() can, for the others. RMM_OK or why not.
 */
rmm_status_t rmm__driver_wait_all_devices(const rmm_driver_t *driver, int device);

/* The table and the calling thread's current device. RMM_OK or why not. */
rmm_status_t rmm__driver_here(const rmm_driver_t **driver_out, int *device_out);

/*
 * Around a driver call that may wait in the kernel, so that the thread is not cancelled in it
 * (core/uncancelled.h). leave() returns its argument.
 */
void rmm__driver_wait_enter(void);
int rmm__driver_wait_leave(int error);
#define RMM_DRIVER_WAITS(call)                                                         \
    (rmm__driver_wait_enter(), rmm__driver_wait_leave((int)(call)))

/*
 * The same around a driver call by which the library itself takes memory or gives it back: a
 * tool that watches the driver's calls from outside leaves it out, since a resource counts it.
 */
void rmm__driver_own_enter(void);
int rmm__driver_own_leave(int error);
/* True if the calling thread is in such a call. */
bool rmm__driver_in_own(void);

#endif /* RMM_DRIVER_DRIVER_H */
