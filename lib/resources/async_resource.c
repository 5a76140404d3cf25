/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memory pool of our own; all but its making is in mempool.h.
 *
 * The release threshold is "keep all" unless an option says otherwise: CUDA's own default, 0, gives
 * everything unused back at each synchronise, after which the next allocation costs as
 * much as cudaMalloc.
 */
#include <rmm/async_resource.h>

#include <stddef.h>

#include "core/assert.h"
#include "core/options.h"
#include "resources/mempool.h"

#define HANDLE_TYPES                                                                   \
    (RMM_ASYNC_HANDLE_POSIX_FD | RMM_ASYNC_HANDLE_WIN32 | RMM_ASYNC_HANDLE_WIN32_KMT | \
     RMM_ASYNC_HANDLE_FABRIC)

#define FLAGS                                                                          \
    (RMM_ASYNC_RELEASE_UNUSED | RMM_ASYNC_WAIT_BEFORE_REFUSAL |                        \
     RMM_ASYNC_NO_PEER_ACCESS)

static const rmm_resource_ops_t async_ops = RMM_MEMPOOL_OPS("async");

static rmm_status_t check_options(const rmm_async_options_t *options)
{
    RMM_CHECK_ARG((options->handle_types & ~HANDLE_TYPES) == 0, "unknown handle type");
    RMM_CHECK_ARG((options->flags & ~FLAGS) == 0, "unknown flag");
    RMM_CHECK_ARG(
        (options->flags & RMM_ASYNC_RELEASE_UNUSED) == 0 ||
            options->release_threshold_bytes == 0,
        "RMM_ASYNC_RELEASE_UNUSED means a threshold of 0: leave "
        "release_threshold_bytes 0");
    return RMM_OK;
}

/* RMM_OK, or RMM_ERR_UNSUPPORTED with the attribute that says so. */
static rmm_status_t
check_device(const rmm_driver_t *driver, int device, uint32_t handle_types)
{
    rmm_status_t status = rmm__mempool_require(driver, device);
    int supported;

    if (status != RMM_OK || handle_types == 0) {
        return status;
    }
    status = rmm__driver_attribute(
        driver, RMM_ATTRIBUTE_MEMORY_POOL_HANDLE_TYPES, device,
        "querying the pools' handle types", &supported);
    if (status != RMM_OK) {
        return status;
    }
    if ((handle_types & ~(uint32_t)supported) != 0) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED,
            "device %d has no memory pools with handle types 0x%x "
            "(cudaDevAttrMemoryPoolSupportedHandleTypes is 0x%x)",
            device, handle_types, (unsigned)supported);
    }
    return RMM_OK;
}

/* --- the pool, in a scope ----------------------------------------------------------- */

static int take_and_free(
    const rmm_driver_t *driver, rmm_driver_mempool_t pool, size_t bytes,
    rmm_stream_t stream)
{
    void *ptr;
    int error = driver->mempool_alloc(pool, &ptr, bytes, stream);

    if (error == RMM_DRIVER_OK) {
        error = driver->mempool_free(ptr, stream);
    }
    return error == RMM_DRIVER_OK ? driver->stream_synchronize(stream) : error;
}

/* Once taken and given back, the memory stays in the pool. The stream has no other work: the wait
 * for it is short, and makes the memory free for every stream. */
static int prime(const rmm_driver_t *driver, rmm_driver_mempool_t pool, size_t bytes)
{
    rmm_stream_t stream;
    int error = driver->stream_create(RMM_STREAM_NON_BLOCKING, &stream);

    if (error == RMM_DRIVER_OK) {
        error = take_and_free(driver, pool, bytes, stream);
        (void)driver->stream_destroy(stream);
    }
    return error;
}

static rmm_status_t fill(
    const rmm_driver_t *driver, int device, const rmm_async_options_t *options,
    rmm_driver_mempool_t pool)
{
    uint64_t threshold = options->release_threshold_bytes;
    int error;

    if (threshold == 0 && (options->flags & RMM_ASYNC_RELEASE_UNUSED) == 0) {
        threshold = UINT64_MAX;
    }
    error = driver->mempool_set_threshold(pool, threshold);
    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(driver, error, "setting the pool's release threshold");
    }
    if (options->initial_pool_bytes > PTRDIFF_MAX) {
        return rmm__error(
            RMM_ERR_OUT_OF_MEMORY, "initial_pool_bytes do not fit in an address space");
    }
    if (options->initial_pool_bytes != 0) {
        error = prime(driver, pool, (size_t)options->initial_pool_bytes);
    }
    if (error == RMM_DRIVER_MEMORY_ALLOCATION &&
        rmm__driver_barrier_yield(driver, device, options->initial_pool_bytes)) {
        error = prime(driver, pool, (size_t)options->initial_pool_bytes);
    }
    return rmm__driver_status(driver, error, "allocating initial_pool_bytes");
}

static rmm_status_t make_pool(
    const rmm_driver_t *driver, int device, const rmm_async_options_t *options,
    rmm_driver_mempool_t *pool_out)
{
    rmm_driver_mempool_t pool;
    int error = driver->mempool_create(options->handle_types, &pool);
    rmm_status_t status;

    if (error == RMM_DRIVER_NOT_SUPPORTED) {
        return rmm__error_cuda(
            RMM_ERR_UNSUPPORTED, error,
            "cudaMemPoolCreate returned cudaErrorNotSupported for handle types 0x%x: "
            "the driver or the runtime is too old, or the system is not set up for "
            "them",
            options->handle_types);
    }
    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(driver, error, "cudaMemPoolCreate");
    }
    if ((options->flags & RMM_ASYNC_NO_PEER_ACCESS) == 0) {
        rmm__mempool_share(driver, device, pool);
    }
    status = fill(driver, device, options, pool);
    if (status != RMM_OK) {
        driver->mempool_destroy(pool);
        return status;
    }
    *pool_out = pool;
    return RMM_OK;
}

/* --- the resource ------------------------------------------------------------------- */

static rmm_status_t create(
    const rmm_driver_t *driver, int device, const rmm_async_options_t *options,
    rmm_resource_t **out)
{
    rmm_mempool_plan_t plan = {
        .ops = &async_ops,
        .name = options->name,
        .properties = RMM_DEVICE_ACCESSIBLE,
        .driver = driver,
        .device = device,
        .end = RMM_MEMPOOL_DESTROY,
        .keeps_barrier = options->initial_pool_bytes != 0,
        .waits = (options->flags & RMM_ASYNC_WAIT_BEFORE_REFUSAL) != 0};
    rmm_driver_scope_t scope;
    rmm_status_t status = rmm__driver_scope_enter(&scope, driver, device);

    if (status != RMM_OK) {
        return status;
    }
    if (plan.keeps_barrier) { /* before the initial memory; the resource keeps it, too */
        rmm__driver_barrier_keep(driver, device);
    }
    status = make_pool(driver, device, options, &plan.handle);
    if (status == RMM_OK) {
        status = rmm__mempool_resource_create(&plan, out);
        if (status != RMM_OK) {
            driver->mempool_destroy(plan.handle);
        }
    }
    if (plan.keeps_barrier) {
        rmm__driver_barrier_drop(driver, device);
    }
    rmm__driver_scope_leave(&scope);
    return status;
}

rmm_status_t
rmm_async_resource_create(const rmm_async_options_t *options, rmm_resource_t **out)
{
    const rmm_driver_t *driver;
    rmm_async_options_t opts;
    rmm_status_t status;
    int device;

    RMM_CHECK_ARG(out != NULL, "out is NULL");
    status = rmm__options_copy(&opts, sizeof(opts), options, sizeof(opts));
    if (status == RMM_OK) {
        status = check_options(&opts);
    }
    if (status == RMM_OK) {
        status = rmm__driver_here(&driver, &device);
    }
    if (status == RMM_OK) {
        status = check_device(driver, device, opts.handle_types);
    }
    return status == RMM_OK ? create(driver, device, &opts, out) : status;
}
