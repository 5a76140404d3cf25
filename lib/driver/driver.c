/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the driver table once in a process, by RMM_DRIVER: "cuda", "hip" or "sim"; when it is
 * unset, by the program's default, which is "cuda" until rmm_driver_set_default() says
 * otherwise. None is a fallback for another.
 *
 * Locking: `chooser` serialises the first call; afterwards the table is one load. A
 * library that the simulated GPU injects may call back into rmm__driver(): it finds
 * the table in place, because opened() is called after the store and outside of the
 * lock. The lock is held over a fork (core/fork.h), which waits for the first call to
 * end.
 *
 * Fork: CUDA and HIP do not survive it once they are initialised. In the child of a process
 * that had opened the driver this file refuses every call before it reaches them. It refuses
 * the simulated GPU too, so that a program behaves there as it does on a real one.
 */
#include "driver/driver.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/device.h>

#include "core/dmem.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/mutex.h"
#include "core/uncancelled.h"

static rmm_mutex_t chooser = RMM_MUTEX_INITIALIZER;
static _Atomic(const rmm_driver_t *) chosen;

/* Why there is none, kept because the answer is final; written under `chooser`. */
static rmm_status_t refusal;
static int refusal_cuda_error;
static char refusal_message[RMM_ERROR_BYTES];

static const char forked_message[] =
    "this process was forked after its parent had begun to use the GPU, whose driver "
    "does not survive fork(): call exec, or fork before the first call that needs a "
    "GPU";

static void refuse_in_child(void)
{
    if (atomic_load_explicit(&chosen, memory_order_relaxed) != NULL) {
        atomic_store_explicit(&chosen, NULL, memory_order_relaxed);
        refusal = RMM_ERR_UNSUPPORTED;
        memcpy(refusal_message, forked_message, sizeof(forked_message));
    }
}

static_assert(sizeof(forked_message) <= RMM_ERROR_BYTES, "it is kept whole");

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_DRIVER, &chooser, refuse_in_child);
}

typedef struct choice {
    const char *name;
    const rmm_driver_t *(*open)(rmm_status_t *status_out);
} choice_t;

static const choice_t choices[] = {
    {"cuda", rmm__driver_cuda_open},
    {"hip", rmm__driver_hip_open},
    {"sim", rmm__driver_sim_open},
};

/* When RMM_DRIVER is unset; protected by `chooser`. */
static const choice_t *default_choice = &choices[0];

static const choice_t *choice_of(const char *name)
{
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        if (strcmp(name, choices[i].name) == 0) {
            return &choices[i];
        }
    }
    return NULL;
}

static const rmm_driver_t *open_by_name(const char *name, rmm_status_t *status_out)
{
    const choice_t *choice =
        name == NULL || name[0] == '\0' ? default_choice : choice_of(name);

    if (choice != NULL) {
        return choice->open(status_out);
    }
    *status_out = rmm__error(
        RMM_ERR_INVALID_ARGUMENT,
        "RMM_DRIVER is '%s': set it to 'cuda' (the default), to 'hip' for an AMD "
        "GPU, or to 'sim' for the simulated GPU",
        name);
    return NULL;
}

static void remember_refusal(rmm_status_t status)
{
    RMM_ASSERT_LOCKED(&chooser);
    refusal = status;
    refusal_cuda_error = rmm_last_cuda_error();
    snprintf(refusal_message, sizeof(refusal_message), "%s", rmm_last_error_message());
}

/* True in *opened_out for the one call that opened the table. */
RMM_COLD static const rmm_driver_t *choose(rmm_status_t *status_out, bool *opened_out)
{
    RMM_UNCANCELLED;
    const rmm_driver_t *driver;

    *opened_out = false;
    rmm__mutex_lock(&chooser);
    driver = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (driver == NULL && refusal == RMM_OK) {
        driver = open_by_name(getenv("RMM_DRIVER"), status_out);
        *opened_out = driver != NULL;
        if (driver == NULL) {
            remember_refusal(*status_out);
        }
        /* release: pairs with the acquire load in rmm__driver() */
        atomic_store_explicit(&chosen, driver, memory_order_release);
    }
    if (driver == NULL) {
        *status_out =
            rmm__error_cuda(refusal, refusal_cuda_error, "%s", refusal_message);
    }
    rmm__mutex_unlock(&chooser);
    return driver;
}

rmm_status_t rmm_driver_set_default(const char *name)
{
    RMM_UNCANCELLED;
    rmm_status_t status = RMM_OK;
    const choice_t *choice;

    RMM_CHECK_ARG(name != NULL, "name is NULL");
    choice = choice_of(name);
    if (choice == NULL) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "the default driver '%s' is unknown: the names are 'cuda', 'hip' and 'sim'",
            name);
    }
    rmm__mutex_lock(&chooser);
    if (choice != default_choice) {
        if (atomic_load_explicit(&chosen, memory_order_relaxed) == NULL &&
            refusal == RMM_OK) {
            default_choice = choice;
        } else {
            status = rmm__error(
                RMM_ERR_UNSUPPORTED,
                "the default driver cannot become '%s': this process has looked for a "
                "GPU already",
                name);
        }
    }
    rmm__mutex_unlock(&chooser);
    return status;
}

const rmm_driver_t *rmm__driver(rmm_status_t *status_out)
{
    /* acquire: pairs with the release store in choose() */
    const rmm_driver_t *driver = atomic_load_explicit(&chosen, memory_order_acquire);
    bool opened;

    if (driver == NULL) {
        driver = choose(status_out, &opened);
        if (opened && driver->opened != NULL) {
            driver->opened();
        }
    }
    return driver;
}

const rmm_driver_t *rmm__driver_if_open(void)
{
    /* acquire: pairs with the release store in choose() */
    return atomic_load_explicit(&chosen, memory_order_acquire);
}

static rmm_status_t status_of(int error)
{
    switch (error) {
    case RMM_DRIVER_MEMORY_ALLOCATION:
        return RMM_ERR_OUT_OF_MEMORY;
    case RMM_DRIVER_NO_DEVICE:
    case RMM_DRIVER_INSUFFICIENT_DRIVER:
        return RMM_ERR_NO_DEVICE;
    default:
        return RMM_ERR_CUDA;
    }
}

rmm_status_t rmm__driver_error(const rmm_driver_t *driver, int error, const char *call)
{
    return rmm__error_cuda(
        status_of(error), error, "%s failed: %s (%d): %s", call,
        driver->error_name(error), error, driver->error_text(error));
}

rmm_status_t rmm__driver_attribute(
    const rmm_driver_t *driver, rmm_driver_attribute_t attribute, int device,
    const char *call, int *value_out)
{
    int error = driver->device_attribute(attribute, device, value_out);

    return rmm__driver_status(driver, error, call);
}

rmm_status_t rmm__driver_require(
    const rmm_driver_t *driver, rmm_driver_attribute_t attribute, int device,
    const char *lacks)
{
    int value = 0;
    rmm_status_t status = rmm__driver_attribute(
        driver, attribute, device, "querying what the device can do", &value);

    return status == RMM_OK && value == 0
               ? rmm__error(RMM_ERR_UNSUPPORTED, "device %d %s", device, lacks)
               : status;
}

rmm_status_t rmm__driver_scope_enter(
    rmm_driver_scope_t *scope, const rmm_driver_t *driver, int device)
{
    int current;
    int error = driver->device_get(&current);

    scope->driver = driver;
    scope->previous_device = -1;
    scope->previous_mode = RMM_CAPTURE_MODE_RELAXED;
    if (error == RMM_DRIVER_OK && current != device) {
        scope->previous_device = current;
        error = driver->device_set(device);
    }
    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(
            driver, error, "setting the resource's device as current");
    }
    error = driver->capture_mode_exchange(&scope->previous_mode);
    if (error != RMM_DRIVER_OK) {
        if (scope->previous_device >= 0) {
            driver->device_set(scope->previous_device);
        }
        return rmm__driver_error(driver, error, "relaxing the capture mode");
    }
    return RMM_OK;
}

void rmm__driver_scope_leave(rmm_driver_scope_t *scope)
{
    scope->driver->capture_mode_exchange(&scope->previous_mode);
    if (scope->previous_device >= 0) {
        scope->driver->device_set(scope->previous_device);
    }
}

bool rmm__driver_relax_enter(
    rmm_driver_scope_t *scope, const rmm_driver_t *driver, int device,
    rmm_stream_t stream)
{
    int error;

    if (rmm_stream_is_default(stream)) {
        return rmm__driver_scope_enter(scope, driver, device) == RMM_OK;
    }
    scope->driver = driver;
    scope->previous_device = -1;
    scope->previous_mode = RMM_CAPTURE_MODE_RELAXED;
    error = driver->capture_mode_exchange(&scope->previous_mode);
    if (error != RMM_DRIVER_OK) {
        (void)rmm__driver_error(driver, error, "relaxing the capture mode");
    }
    return error == RMM_DRIVER_OK;
}

rmm_status_t rmm__driver_wait_default_stream(int device)
{
    rmm_driver_scope_t scope;
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    int error;

    if (driver == NULL) {
        return status;
    }
    status = rmm__driver_scope_enter(&scope, driver, device);
    if (status != RMM_OK) {
        return status;
    }
    error = driver->stream_synchronize(RMM_STREAM_LEGACY);
    rmm__driver_scope_leave(&scope);
    return rmm__driver_status(driver, error, "waiting for the default stream");
}

/* Not a scope: which stream "per thread" means depends on the device that is current. */
int rmm__driver_wait_stream(const rmm_driver_t *driver, rmm_stream_t stream)
{
    int mode = RMM_CAPTURE_MODE_RELAXED;
    int error = driver->capture_mode_exchange(&mode);

    if (error == RMM_DRIVER_OK) {
        error = driver->stream_synchronize(stream);
        driver->capture_mode_exchange(&mode);
    }
    return error;
}

bool rmm__driver_has_one_device(const rmm_driver_t *driver)
{
    static _Atomic(int) seen; /* 0: not asked yet */
    int count = atomic_load_explicit(&seen, memory_order_relaxed);

    if (count == 0 && driver->device_count(&count) == RMM_DRIVER_OK) {
        atomic_store_explicit(&seen, count, memory_order_relaxed);
    }
    return count == 1;
}

int rmm__driver_wait_before_free(const rmm_driver_t *driver, rmm_stream_t stream)
{
    rmm_stream_key_t key;
    int error;

    if (rmm_stream_is_default(stream)) {
        return RMM_DRIVER_OK;
    }
    error = driver->stream_key(stream, &key);
    return error != RMM_DRIVER_OK || key.capture_id != 0
               ? error
               : rmm__driver_wait_stream(driver, stream);
}

static rmm_status_t wait_device(
    const rmm_driver_t *driver, int device, bool waits_for_others, const char *doing)
{
    rmm_driver_scope_t scope;
    rmm_status_t status = rmm__driver_scope_enter(&scope, driver, device);
    int error;

    if (status != RMM_OK) {
        return status;
    }
    error = rmm__driver_barrier(driver);
    if (waits_for_others) {
        (void)rmm__driver_others_idle(driver, device, true);
    }
    rmm__driver_scope_leave(&scope);
    return rmm__driver_status(driver, error, doing);
}

rmm_status_t rmm__driver_wait_device(const rmm_driver_t *driver, int device)
{
    return wait_device(driver, device, false, "waiting for the device");
}

rmm_status_t rmm__driver_wait_all_devices(const rmm_driver_t *driver, int device)
{
    return wait_device(driver, device, true, "waiting for the devices");
}

/* What the groups of this process leave of the current device. */
static uint64_t group_room(const rmm_driver_t *driver)
{
    rmm_device_info_t info;
    int device;

    return rmm__dmem_is_on() && driver->device_get(&device) == RMM_DRIVER_OK &&
                   driver->device_info(device, &info) == RMM_DRIVER_OK
               ? rmm__dmem_room(info.pci_bus_id)
               : RMM_DMEM_UNLIMITED;
}

int rmm__driver_memory_info(
    const rmm_driver_t *driver, uint64_t *free_bytes_out, uint64_t *total_bytes_out)
{
    int error = driver->memory_info(free_bytes_out, total_bytes_out);

    if (error == RMM_DRIVER_OK) {
        RMM_UNCANCELLED;
        uint64_t room = group_room(driver);

        *free_bytes_out = room < *free_bytes_out ? room : *free_bytes_out;
    }
    return error;
}

rmm_status_t
rmm__driver_free_memory(const rmm_driver_t *driver, int device, uint64_t *bytes_out)
{
    rmm_driver_scope_t scope;
    rmm_status_t status = rmm__driver_scope_enter(&scope, driver, device);
    uint64_t total;
    int error;

    if (status != RMM_OK) {
        return status;
    }
    error = rmm__driver_memory_info(driver, bytes_out, &total);
    rmm__driver_scope_leave(&scope);
    return rmm__driver_status(driver, error, "querying the free memory");
}

rmm_status_t rmm__driver_here(const rmm_driver_t **driver_out, int *device_out)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    int error;

    if (driver == NULL) {
        return status;
    }
    error = driver->device_get(device_out);
    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(driver, error, "querying the current device");
    }
    *driver_out = driver;
    return RMM_OK;
}

/* --- calls for the library itself ------------------------------------------------------- */

static _Thread_local uint32_t wait_depth, own_depth;
static _Thread_local int state_before_wait;

void rmm__driver_wait_enter(void)
{
    if (wait_depth++ == 0) {
        state_before_wait = rmm__cancel_off();
    }
}

int rmm__driver_wait_leave(int error)
{
    if (--wait_depth == 0) {
        rmm__cancel_restore(&state_before_wait);
    }
    return error;
}

void rmm__driver_own_enter(void)
{
    own_depth++;
    rmm__driver_wait_enter();
}

int rmm__driver_own_leave(int error)
{
    own_depth--;
    return rmm__driver_wait_leave(error);
}

bool rmm__driver_in_own(void)
{
    return own_depth != 0;
}
