/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default resource of each device.
 *
 * Why nothing is released at exit: threads and exit handlers of the program may still
 * allocate and free after ours would have run. The table is static and its resources stay
 * reachable.
 *
 * Locking: none to get or set a default (atomic_resource.h). `maker` protects
 * `initial` and is held while an initial resource is made, driver calls included: two
 * threads that both begin must not make two pools of half the memory each. A creator may
 * log, and the program's log callback may come here: that thread is refused. In a forked
 * child the lock is made anew: a resource that another thread was making is lost there.
 */
#include <rmm/device_resource.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <rmm/auto_resource.h>
#include <rmm/cuda_resource.h>

#include "base/resource_impl.h"
#include "core/assert.h"
#include "core/fork.h"
#include "core/mutex.h"
#include "core/uncancelled.h"
#include "device/atomic_resource.h"
#include "device/spec.h"
#include "driver/driver.h"
#include "segment/segment_format.h"

static rmm_atomic_resource_t defaults[RMM_SEGMENT_DEVICES]; /* empty: the initial one */
static rmm_mutex_t maker = RMM_MUTEX_INITIALIZER;
static rmm_resource_t *initial[RMM_SEGMENT_DEVICES]; /* kept for ever; NULL: not made */
static atomic_bool prefers_auto;

static void forget_in_child(void)
{
    maker = (rmm_mutex_t)RMM_MUTEX_INITIALIZER;
}

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_DEFAULTS, NULL, forget_in_child);
}

static rmm_status_t open_driver(const rmm_driver_t **driver_out)
{
    rmm_status_t status = RMM_OK;

    *driver_out = rmm__driver(&status);
    return *driver_out != NULL ? RMM_OK : status;
}

static rmm_status_t check_device(const rmm_driver_t *driver, int device)
{
    int count;
    int error = driver->device_count(&count);

    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(driver, error, "counting the devices");
    }
    if (device < 0) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT, "device %d: ordinals begin at 0", device);
    }
    if (device >= count) {
        return rmm__error(
            RMM_ERR_OUT_OF_RANGE,
            "device %d does not exist: this process sees %d %s, numbered from 0",
            device, count, count == 1 ? "device" : "devices");
    }
    if (device >= (int)RMM_SEGMENT_DEVICES) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED, "device %d: only %u devices are supported", device,
            RMM_SEGMENT_DEVICES);
    }
    return RMM_OK;
}

static rmm_status_t check_address(const rmm_resource_t *mr)
{
    if (!rmm__atomic_resource_can_hold(mr)) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED,
            "resource at %p cannot be a default: its address has more than 52 bits",
            (const void *)mr);
    }
    return RMM_OK;
}

/* Memory of another device would be slow to reach, or not at all, and a default stream would be
 * the other device's. */
static rmm_status_t check_owner(const rmm_resource_t *mr, int device)
{
    if (mr == NULL || mr->device < 0 || mr->device == device) {
        return RMM_OK;
    }
    return rmm__error(
        RMM_ERR_INVALID_ARGUMENT,
        "%s '%s' allocates on device %d, which was current when it was created: it "
        "cannot "
        "be the default of device %d; make device %d current (rmm_device_set), then "
        "create a resource for it",
        rmm_resource_type(mr), mr->name, mr->device, device, device);
}

static rmm_status_t
make_initial(const rmm_driver_t *driver, int device, rmm_resource_t **out)
{
    const char *text = getenv("RMM_RESOURCE");
    rmm_resource_t *mr = NULL;
    rmm_driver_scope_t scope;
    rmm_status_t status = rmm__driver_scope_enter(&scope, driver, device);

    if (status != RMM_OK) {
        return status;
    }
    if (text != NULL && *text != '\0') {
        status = rmm__spec_create("RMM_RESOURCE is", text, &mr);
    } else if (atomic_load_explicit(&prefers_auto, memory_order_relaxed)) {
        status = rmm_auto_resource_create(NULL, &mr);
    } else {
        status = rmm_cuda_resource_create(&mr);
    }
    rmm__driver_scope_leave(&scope);
    if (status == RMM_OK) {
        status = check_address(mr);
    }
    if (status != RMM_OK) {
        rmm_resource_release(mr);
        return status;
    }
    *out = mr;
    return RMM_OK;
}

static _Thread_local bool is_making; /* this thread, above us */

/* Also where an exception of a log's callback ends the scope. */
static void end_making(rmm_mutex_t *const *held)
{
    is_making = false;
    rmm__mutex_unlock(*held);
}

/* Under the lock `maker`. */
static rmm_status_t
make_if_missing(const rmm_driver_t *driver, int device, rmm_resource_t **borrowed_out)
{
    rmm_status_t status = RMM_OK;

    rmm__mutex_lock(&maker);
    RMM_AT_END(end_making) rmm_mutex_t *held = &maker;
    if (initial[device] == NULL) {
        is_making = true;
        status = make_initial(driver, device, &initial[device]);
    }
    *borrowed_out = initial[device];
    return status;
}

/* Sees to it that the initial resource is there; borrowed from the table. */
static rmm_status_t
need_initial(const rmm_driver_t *driver, int device, rmm_resource_t **borrowed_out)
{
    if (is_making) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED,
            "device %d: a callback cannot use the default resource while this thread "
            "creates it",
            device);
    }
    return make_if_missing(driver, device, borrowed_out);
}

/* The default of a device whose place was found empty. */
RMM_COLD static rmm_status_t first_get(int device, rmm_resource_t **out)
{
    const rmm_driver_t *driver;
    rmm_resource_t *mr = NULL;
    rmm_resource_t *taken;
    rmm_status_t status = open_driver(&driver);

    if (status == RMM_OK) {
        status = check_device(driver, device);
    }
    if (status == RMM_OK) {
        status = need_initial(driver, device, &mr);
    }
    if (status != RMM_OK) {
        return status;
    }
    (void)rmm__atomic_resource_fill(&defaults[device], mr);
    taken = rmm__atomic_resource_load(&defaults[device]);
    /* emptied again by a reset: the initial one it is */
    *out = taken != NULL ? taken : rmm_resource_retain(mr);
    return RMM_OK;
}

rmm_status_t rmm_get_per_device_resource(int device, rmm_resource_t **out)
{
    rmm_resource_t *mr = NULL;

    RMM_CHECK_ARG(out != NULL, "out is NULL");
    if (device >= 0 && device < (int)RMM_SEGMENT_DEVICES) {
        mr = rmm__atomic_resource_load(&defaults[device]);
    }
    if (mr == NULL) {
        return first_get(device, out);
    }
    *out = mr;
    return RMM_OK;
}

/* An empty place is filled first, so that there is something to answer. */
static rmm_status_t
replace(int device, rmm_resource_t *mr_or_NULL, rmm_resource_t **previous_out)
{
    rmm_resource_t *previous;

    do {
        rmm_resource_t *current;
        rmm_status_t status = rmm_get_per_device_resource(device, &current);

        if (status != RMM_OK) {
            return status;
        }
        rmm_resource_release(current);
        previous = rmm__atomic_resource_replace(&defaults[device], mr_or_NULL);
    } while (previous == NULL); /* emptied meanwhile by a reset */
    *previous_out = previous;
    return RMM_OK;
}

rmm_status_t rmm_set_per_device_resource(
    int device, rmm_resource_t *mr_or_NULL, rmm_resource_t **previous_out_or_NULL)
{
    const rmm_driver_t *driver;
    rmm_status_t status = open_driver(&driver);

    if (status == RMM_OK) {
        status = check_device(driver, device);
    }
    if (status == RMM_OK) {
        status = check_owner(mr_or_NULL, device);
    }
    if (status == RMM_OK) {
        status = check_address(mr_or_NULL);
    }
    if (status != RMM_OK) {
        return status;
    }
    if (previous_out_or_NULL != NULL) {
        return replace(device, mr_or_NULL, previous_out_or_NULL);
    }
    rmm_resource_release(rmm__atomic_resource_exchange(&defaults[device], mr_or_NULL));
    return RMM_OK;
}

rmm_status_t rmm_reset_per_device_resource(int device)
{
    return rmm_set_per_device_resource(device, NULL, NULL);
}

/* --- of the current device ---------------------------------------------------------- */

static rmm_status_t current_device(int *device_out)
{
    const rmm_driver_t *driver;
    rmm_status_t status = open_driver(&driver);
    int error;

    if (status != RMM_OK) {
        return status;
    }
    error = driver->device_get(device_out);
    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(driver, error, "querying the current device");
    }
    return RMM_OK;
}

rmm_status_t rmm_get_current_device_resource(rmm_resource_t **out)
{
    int device;
    rmm_status_t status = current_device(&device);

    return status == RMM_OK ? rmm_get_per_device_resource(device, out) : status;
}

rmm_status_t rmm_set_current_device_resource(
    rmm_resource_t *mr_or_NULL, rmm_resource_t **previous_out_or_NULL)
{
    int device;
    rmm_status_t status = current_device(&device);

    return status == RMM_OK
               ? rmm_set_per_device_resource(device, mr_or_NULL, previous_out_or_NULL)
               : status;
}

rmm_status_t rmm_reset_current_device_resource(void)
{
    return rmm_set_current_device_resource(NULL, NULL);
}

/* --- without RMM_RESOURCE -------------------------------------------------------------- */

void rmm_default_resource_prefer_auto(void)
{
    if (!atomic_load_explicit(&prefers_auto, memory_order_relaxed)) {
        atomic_store_explicit(&prefers_auto, true, memory_order_relaxed);
    }
}
