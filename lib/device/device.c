/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public questions about devices: argument checks and the driver table.
 *
 * No state: the current device is the driver's, one for each thread.
 */
#include <rmm/device.h>

#include <stdint.h>

#include <rmm/resource.h>

#include "core/assert.h"
#include "driver/driver.h"

const char *rmm_driver_name(void)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);

    return driver != NULL ? driver->name : "none";
}

rmm_status_t rmm_device_count(int *count_out)
{
    const rmm_driver_t *driver;
    rmm_status_t status;
    int error;

    RMM_CHECK_ARG(count_out != NULL, "count_out is NULL");
    driver = rmm__driver(&status);
    if (driver == NULL) {
        return status;
    }
    error = driver->device_count(count_out);
    return rmm__driver_status(driver, error, "counting the devices");
}

rmm_status_t rmm_device_current(int *device_out)
{
    const rmm_driver_t *driver;
    rmm_status_t status;
    int error;

    RMM_CHECK_ARG(device_out != NULL, "device_out is NULL");
    driver = rmm__driver(&status);
    if (driver == NULL) {
        return status;
    }
    error = driver->device_get(device_out);
    return rmm__driver_status(driver, error, "querying the current device");
}

rmm_status_t rmm_device_set(int device)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    int error;

    if (driver == NULL) {
        return status;
    }
    error = driver->device_set(device);
    return rmm__driver_status(driver, error, "setting the current device");
}

rmm_status_t rmm_device_scope_enter(int device, rmm_device_scope_t *scope_out)
{
    rmm_status_t status = RMM_OK;
    int previous = -1;

    RMM_CHECK_ARG(scope_out != NULL, "scope_out is NULL");
    if (device >= 0) {
        status = rmm_device_current(&previous);
    }
    if (status == RMM_OK && previous == device) {
        previous = -1;
    }
    if (status == RMM_OK && previous >= 0) {
        status = rmm_device_set(device);
    }
    if (status == RMM_OK) {
        scope_out->previous = previous;
    }
    return status;
}

void rmm_device_scope_leave(rmm_device_scope_t *scope)
{
    if (scope != NULL && scope->previous >= 0) {
        /* it was current before: only a runtime that is going refuses */
        (void)!rmm_device_set(scope->previous);
        scope->previous = -1;
    }
}

rmm_status_t
rmm_available_device_memory(size_t *free_bytes_out, size_t *total_bytes_out)
{
    const rmm_driver_t *driver;
    rmm_status_t status;
    uint64_t free_bytes;
    uint64_t total_bytes;
    int error;

    RMM_CHECK_ARG(free_bytes_out != NULL, "free_bytes_out is NULL");
    RMM_CHECK_ARG(total_bytes_out != NULL, "total_bytes_out is NULL");
    driver = rmm__driver(&status);
    if (driver == NULL) {
        return status;
    }
    error = rmm__driver_memory_info(driver, &free_bytes, &total_bytes);
    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(driver, error, "querying the free memory");
    }
    *free_bytes_out = (size_t)free_bytes;
    *total_bytes_out = (size_t)total_bytes;
    return RMM_OK;
}

/* The room that remains when the first resource has taken its block for barriers. */
static rmm_status_t room_for_resources(size_t free_bytes, size_t *bytes_out)
{
    const rmm_driver_t *driver;
    int device;
    rmm_status_t status = rmm__driver_here(&driver, &device);

    if (status == RMM_OK) {
        uint64_t need = rmm__driver_barrier_need(device);

        *bytes_out = free_bytes > 2 * need ? free_bytes - need : free_bytes;
    }
    return status;
}

rmm_status_t rmm_percent_of_free_device_memory(int percent, size_t *bytes_out)
{
    size_t free_bytes;
    size_t total_bytes;
    size_t most;
    size_t share;
    rmm_status_t status;

    RMM_CHECK_ARG(bytes_out != NULL, "bytes_out is NULL");
    RMM_CHECK_ARG(percent >= 0 && percent <= 100, "percent is not 0 to 100");
    status = rmm_available_device_memory(&free_bytes, &total_bytes);
    if (status == RMM_OK) {
        status = room_for_resources(free_bytes, &most);
    }
    if (status != RMM_OK) {
        return status;
    }
    /* exact, and cannot overflow */
    share =
        free_bytes / 100 * (size_t)percent + free_bytes % 100 * (size_t)percent / 100;
    share = share < most ? share : most;
    *bytes_out = share & ~(RMM_ALIGN_DEFAULT - 1);
    return RMM_OK;
}

/* --- abilities ----------------------------------------------------------------------- */

static rmm_status_t has_attribute(
    const rmm_driver_t *driver, rmm_driver_attribute_t attribute, int device,
    bool *has_out)
{
    int value = 0;
    rmm_status_t status = rmm__driver_attribute(
        driver, attribute, device, "querying the device's attributes", &value);

    *has_out = value != 0;
    return status;
}

/* The attributes do not tell whether the runtime knows the managed pool. */
static rmm_status_t
has_managed_pool(const rmm_driver_t *driver, int device, bool *has_out)
{
    rmm_driver_mempool_t pool;
    rmm_driver_scope_t scope;
    rmm_status_t status = rmm__driver_scope_enter(&scope, driver, device);
    int error;

    if (status != RMM_OK) {
        return status;
    }
    error = driver->mempool_managed(&pool);
    rmm__driver_scope_leave(&scope);
    *has_out = error == RMM_DRIVER_OK;
    return error == RMM_DRIVER_OK || error == RMM_DRIVER_NOT_SUPPORTED
               ? RMM_OK
               : rmm__driver_error(driver, error, "cudaMemGetDefaultMemPool");
}

static rmm_status_t
has_async_managed(const rmm_driver_t *driver, int device, bool *has_out)
{
    rmm_status_t status =
        has_attribute(driver, RMM_ATTRIBUTE_MEMORY_POOLS, device, has_out);

    if (status == RMM_OK && *has_out) {
        status = has_attribute(
            driver, RMM_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device, has_out);
    }
    return status == RMM_OK && *has_out ? has_managed_pool(driver, device, has_out)
                                        : status;
}

static rmm_status_t has_host_pools(
    const rmm_driver_t *driver, rmm_driver_attribute_t attribute, int device,
    bool *has_out)
{
    rmm_status_t status =
        has_attribute(driver, RMM_ATTRIBUTE_MEMORY_POOLS, device, has_out);

    return status == RMM_OK && *has_out
               ? has_attribute(driver, attribute, device, has_out)
               : status;
}

static rmm_status_t has_ability(
    const rmm_driver_t *driver, rmm_device_ability_t ability, int device, bool *has_out)
{
    switch (ability) {
    case RMM_ABILITY_MANAGED:
        return has_attribute(driver, RMM_ATTRIBUTE_MANAGED_MEMORY, device, has_out);
    case RMM_ABILITY_SYSTEM:
        return has_attribute(
            driver, RMM_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, device, has_out);
    case RMM_ABILITY_ASYNC:
        return has_attribute(driver, RMM_ATTRIBUTE_MEMORY_POOLS, device, has_out);
    case RMM_ABILITY_ASYNC_MANAGED:
        return has_async_managed(driver, device, has_out);
    case RMM_ABILITY_POOL_VIRTUAL:
        return has_attribute(driver, RMM_ATTRIBUTE_VIRTUAL_MEMORY, device, has_out);
    case RMM_ABILITY_ASYNC_PINNED:
        return has_host_pools(driver, RMM_ATTRIBUTE_HOST_MEMORY_POOLS, device, has_out);
    case RMM_ABILITY_ASYNC_ON_NODE:
        return has_host_pools(
            driver, RMM_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS, device, has_out);
    }
    return rmm__error(RMM_ERR_INVALID_ARGUMENT, "unknown ability");
}

rmm_status_t rmm_device_supports(int device, rmm_device_ability_t ability, bool *is_out)
{
    const rmm_driver_t *driver;
    rmm_status_t status;
    bool is = false;

    RMM_CHECK_ARG(device >= 0, "device is negative");
    RMM_CHECK_ARG((unsigned)ability <= RMM_ABILITY_ASYNC_ON_NODE, "unknown ability");
    RMM_CHECK_ARG(is_out != NULL, "is_out is NULL");
    driver = rmm__driver(&status);
    if (driver == NULL) {
        return status;
    }
    status = has_ability(driver, ability, device, &is);
    if (status == RMM_OK) {
        *is_out = is;
    }
    return status;
}

/* --- prefetch ------------------------------------------------------------------------ */

/* Pages of managed memory can move there while kernels run. */
static rmm_status_t can_prefetch(const rmm_driver_t *driver, int device, int *can_out)
{
    rmm_status_t status = RMM_OK;

    if (device == RMM_DEVICE_HOST) {
        status = rmm_device_current(&device); /* the one that they come from */
    }
    return status != RMM_OK
               ? status
               : rmm__driver_attribute(
                     driver, RMM_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device,
                     "querying concurrent managed access", can_out);
}

rmm_status_t
rmm_prefetch(const void *ptr, size_t bytes, int device, rmm_stream_t stream)
{
    const rmm_driver_t *driver;
    rmm_status_t status;
    int can = 0;
    int error;

    RMM_CHECK_ARG(ptr != NULL || bytes == 0, "ptr is NULL");
    RMM_CHECK_ARG(
        device >= 0 || device == RMM_DEVICE_HOST,
        "device is neither an ordinal nor RMM_DEVICE_HOST");
    if (bytes == 0) {
        return RMM_OK;
    }
    driver = rmm__driver(&status);
    if (driver == NULL) {
        return status;
    }
    status = can_prefetch(driver, device, &can);
    if (status != RMM_OK || can == 0) {
        return status;
    }
    error = driver->mem_prefetch(
        ptr, bytes, device == RMM_DEVICE_HOST ? RMM_DRIVER_HOST : device, stream);
    return error == RMM_DRIVER_OK || error == RMM_DRIVER_INVALID_VALUE
               ? RMM_OK
               : rmm__driver_error(driver, error, "prefetching");
}
