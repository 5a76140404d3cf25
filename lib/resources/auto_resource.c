/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses between a virtual pool and a pool over a cuda resource; no resource of its own.
 *
 * Why a piece is mapped at once: a driver may have the attribute of virtual memory and refuse
 * the calls (virtual GPUs), and a program would learn that from its first allocation.
 *
 * Cost: a piece of 2 MiB, which the first allocation uses.
 */
#include <rmm/auto_resource.h>

#include <rmm/cuda_resource.h>
#include <rmm/device.h>

#include "base/annotate.h"
#include "core/assert.h"
#include "core/error.h"
#include "core/options.h"
#include "driver/driver.h"
#include "log/log.h"

static rmm_status_t create_chunks(rmm_pool_options_t options, rmm_resource_t **out)
{
    rmm_resource_t *upstream = NULL;
    rmm_status_t status = rmm_cuda_resource_create(&upstream);

    options.flags = 0;
    if (status == RMM_OK) {
        status = rmm_pool_resource_create(upstream, &options, out);
        rmm_resource_release(upstream);
    }
    return status;
}

static rmm_status_t create_virtual(rmm_pool_options_t options, rmm_resource_t **out)
{
    const bool is_empty = options.initial_bytes == 0;
    rmm_status_t status;

    options.flags |= RMM_POOL_VIRTUAL;
    options.name = options.name != NULL ? options.name : "pool_virtual";
    options.initial_bytes = is_empty ? 1 : options.initial_bytes;
    status = rmm_pool_resource_create(NULL, &options, out);
    if (status == RMM_ERR_OUT_OF_MEMORY &&
        is_empty) { /* a full device, or no addresses */
        options.initial_bytes = 0;
        status = rmm_pool_resource_create(NULL, &options, out);
    }
    return status;
}

/* The caller's mistake, or nothing that another pool could do better. */
static bool is_final(rmm_status_t status)
{
    return status == RMM_OK || status == RMM_ERR_INVALID_ARGUMENT ||
           status == RMM_ERR_NO_DEVICE || status == RMM_ERR_OUT_OF_HOST_MEMORY;
}

/* CUDA copies memory of cudaMalloc() between devices that are no peers, but not mapped memory. */
static rmm_status_t check_peers(const rmm_driver_t *driver, int device)
{
    int count;
    int error = driver->device_count(&count);

    for (int other = 0; error == RMM_DRIVER_OK && other < count; other++) {
        int can = 1;

        if (other != device) {
            error = driver->peer_can_access(other, device, &can);
        }
        if (error == RMM_DRIVER_OK && can == 0) {
            return rmm__error(
                RMM_ERR_UNSUPPORTED,
                "device %d, which this process sees, cannot access mapped memory of "
                "device %d (cudaDeviceCanAccessPeer)",
                other, device);
        }
    }
    return rmm__driver_status(driver, error, "querying which devices are peers");
}

/* RMM_OK, or why chunks are better here. */
static rmm_status_t
check_mapping(const rmm_driver_t *driver, int device, bool serves_peers)
{
    rmm_status_t status = rmm__driver_require(
        driver, RMM_ATTRIBUTE_VIRTUAL_MEMORY, device,
        "cannot map virtual memory "
        "(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED is 0)");

    if (status == RMM_OK && rmm__annotate_open(device)) {
        status = rmm__error(
            RMM_ERR_UNSUPPORTED,
            "the tool in NVTX_INJECTION64_PATH refuses mapped memory");
    }
    return status == RMM_OK && serves_peers ? check_peers(driver, device) : status;
}

rmm_status_t
rmm_auto_resource_create(const rmm_pool_options_t *options, rmm_resource_t **out)
{
    const uint64_t soft_flags = RMM_POOL_VIRTUAL | RMM_POOL_NO_PEER_ACCESS;
    rmm_pool_options_t opts;
    const rmm_driver_t *driver;
    int device;
    rmm_status_t status;

    RMM_CHECK_ARG(out != NULL, "out is NULL");
    status = rmm__options_copy(
        &opts, sizeof(opts), options, offsetof(rmm_pool_options_t, flags));
    opts.struct_size = sizeof(opts);
    if (status == RMM_OK) {
        status = rmm__driver_here(&driver, &device);
    }
    if (status != RMM_OK) {
        return status;
    }
    if ((opts.flags & ~soft_flags) != 0) {
        return create_virtual(opts, out);
    }
    status = check_mapping(driver, device, (opts.flags & RMM_POOL_NO_PEER_ACCESS) == 0);
    if (status == RMM_OK) {
        status = create_virtual(opts, out);
    }
    if (is_final(status)) {
        return status;
    }
    rmm__log_info(
        "auto on device %d: a pool of chunks of cudaMalloc, because %s", device,
        rmm_last_error_message());
    return create_chunks(opts, out);
}
