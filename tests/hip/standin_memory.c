/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the stand-in (standin.c) that came with HIP 5.1: uuids, memory pools, virtual
 * memory. HIP takes a device's number for each of them; it becomes the current device.
 */
#include <stdio.h>
#include <string.h>

#include "hip/standin.h"

hip_error_t hipDeviceGetUuid(hip_uuid_t *uuid, hip_device_t device)
{
    rmm_device_info_t info;
    char digits[sizeof(uuid->bytes) + 1];

    snprintf(digits, sizeof(digits), "5eed00000000%04x", (unsigned)device & 0xffff);
    memcpy(uuid->bytes, digits, sizeof(uuid->bytes));
    return SIM(sim->device_info(device, &info));
}

/* AT(location, call): with its device current. */
#define AT(location, call)                                                             \
    (is_open() && begin_at(location) ? end_at(call) : done(RMM_DRIVER_INVALID_VALUE))

static _Thread_local int device_before;

static bool begin_at(hip_location_t location)
{
    return location.type == HIP_LOCATION_DEVICE &&
           sim->device_get(&device_before) == RMM_DRIVER_OK &&
           (location.id == device_before ||
            sim->device_set(location.id) == RMM_DRIVER_OK);
}

static hip_error_t end_at(int error)
{
    int device = device_before;

    (void)sim->device_get(&device);
    if (device != device_before) {
        (void)sim->device_set(device_before);
    }
    return done(error);
}

/* The devices that a call lets in; 0: it is malformed. */
static uint32_t devices_of(const hip_access_t *access, size_t count)
{
    uint32_t devices = 0;

    for (size_t i = 0; i < count; i++) {
        if (access[i].flags != HIP_ACCESS_READ_WRITE ||
            access[i].location.type != HIP_LOCATION_DEVICE) {
            return 0;
        }
        devices |= RMM_DRIVER_DEVICE(access[i].location.id);
    }
    return devices;
}

/* ---- pools ---- */

static rmm_driver_mempool_t pool_of(hip_pool_t pool)
{
    return (rmm_driver_mempool_t)(void *)pool;
}

hip_error_t hipMemPoolCreate(hip_pool_t *pool, const hip_pool_properties_t *properties)
{
    rmm_driver_mempool_t fresh = NULL;
    hip_error_t error =
        properties->allocType != HIP_ALLOCATION_PINNED
            ? done(RMM_DRIVER_INVALID_VALUE)
            : AT(properties->location,
                 sim->mempool_create(
                     properties->handleTypes, RMM_DRIVER_ON_DEVICE, &fresh));

    *pool = (hip_pool_t)(void *)fresh;
    return error;
}

hip_error_t hipMemPoolDestroy(hip_pool_t pool)
{
    return SIM(sim->mempool_destroy(pool_of(pool)));
}

hip_error_t
hipMemPoolGetAttribute(hip_pool_t pool, hip_pool_attribute_t attribute, void *value)
{
    rmm_driver_mempool_figures_t figures = {0};
    uint64_t answer = 0;
    hip_error_t error;

    switch (attribute) {
    case HIP_POOL_RELEASE_THRESHOLD:
        error = SIM(sim->mempool_get_threshold(pool_of(pool), &answer));
        break;
    case HIP_POOL_RESERVED_BYTES:
    case HIP_POOL_USED_BYTES:
        error = SIM(sim->mempool_figures(pool_of(pool), &figures));
        answer = attribute == HIP_POOL_USED_BYTES ? figures.used_bytes
                                                  : figures.reserved_bytes;
        break;
    default:
        error = done(RMM_DRIVER_INVALID_VALUE);
    }
    memcpy(value, &answer, sizeof(answer));
    return error;
}

hip_error_t
hipMemPoolSetAttribute(hip_pool_t pool, hip_pool_attribute_t attribute, void *value)
{
    uint64_t bytes;

    memcpy(&bytes, value, sizeof(bytes));
    return attribute != HIP_POOL_RELEASE_THRESHOLD
               ? done(RMM_DRIVER_INVALID_VALUE)
               : SIM(sim->mempool_set_threshold(pool_of(pool), bytes));
}

hip_error_t
hipMemPoolSetAccess(hip_pool_t pool, const hip_access_t *access, size_t count)
{
    uint32_t devices = devices_of(access, count);

    return devices == 0 ? done(RMM_DRIVER_INVALID_VALUE)
                        : SIM(sim->mempool_access(pool_of(pool), devices));
}

hip_error_t hipMemPoolTrimTo(hip_pool_t pool, size_t keep_bytes)
{
    return SIM(sim->mempool_trim(pool_of(pool), keep_bytes));
}

hip_error_t
hipMallocFromPoolAsync(void **ptr, size_t bytes, hip_pool_t pool, hip_stream_t stream)
{
    *ptr = NULL;
    return ON(stream, sim->mempool_alloc(pool_of(pool), ptr, bytes, of(stream)));
}

hip_error_t hipFreeAsync(void *ptr, hip_stream_t stream)
{
    return ptr == NULL && HIP_VERSION < 70000000
               ? done(RMM_DRIVER_INVALID_VALUE)
               : ON(stream, sim->mempool_free(ptr, of(stream)));
}

/* ---- virtual memory ---- */

/* Before 5.3 the properties had another layout; no caller should come here then. */
static bool is_pinned(const hip_allocation_t *properties)
{
    return HIP_VERSION >= 50300000 && properties->type == HIP_ALLOCATION_PINNED;
}

hip_error_t hipMemGetAllocationGranularity(
    size_t *bytes, const hip_allocation_t *properties, hip_granularity_t which)
{
    *bytes = 0;
    return !is_pinned(properties) || which != HIP_GRANULARITY_MINIMUM
               ? done(RMM_DRIVER_INVALID_VALUE)
               : AT(properties->location, sim->virtual_granularity(bytes));
}

hip_error_t hipMemAddressReserve(
    void **ptr, size_t bytes, size_t align, void *requested, unsigned long long flags)
{
    *ptr = NULL;
    return align != 0 || requested != NULL || flags != 0
               ? done(RMM_DRIVER_INVALID_VALUE)
               : SIM(sim->address_reserve(ptr, bytes));
}

hip_error_t hipMemAddressFree(void *ptr, size_t bytes)
{
    return SIM(sim->address_free(ptr, bytes));
}

hip_error_t hipMemCreate(
    hip_memory_t *memory, size_t bytes, const hip_allocation_t *properties,
    unsigned long long flags)
{
    rmm_driver_physical_t fresh = 0;
    hip_error_t error =
        !is_pinned(properties) || flags != 0
            ? done(RMM_DRIVER_INVALID_VALUE)
            : AT(properties->location, sim->physical_create(bytes, 0, &fresh));

    *memory = (hip_memory_t)(uintptr_t)fresh;
    return error;
}

static rmm_driver_physical_t physical_of(hip_memory_t memory)
{
    return (rmm_driver_physical_t)(uintptr_t)memory;
}

hip_error_t hipMemRelease(hip_memory_t memory)
{
    return SIM(sim->physical_release(physical_of(memory)));
}

hip_error_t hipMemMap(
    void *ptr, size_t bytes, size_t offset, hip_memory_t memory,
    unsigned long long flags)
{
    return offset != 0 || flags != 0
               ? done(RMM_DRIVER_INVALID_VALUE)
               : SIM(sim->address_map(ptr, bytes, physical_of(memory)));
}

hip_error_t hipMemUnmap(void *ptr, size_t bytes)
{
    return SIM(sim->address_unmap(ptr, bytes));
}

hip_error_t
hipMemSetAccess(void *ptr, size_t bytes, const hip_access_t *access, size_t count)
{
    uint32_t devices = devices_of(access, count);

    return devices == 0 ? done(RMM_DRIVER_INVALID_VALUE)
                        : SIM(sim->address_access(ptr, bytes, devices));
}
