/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memory pool of our own, of device memory or of the host's; all but its making is in mempool.h.
 *
 * The release threshold is "keep all" unless an option says otherwise: CUDA's own default, 0, gives
 * everything unused back at each synchronise, after which the next allocation costs as
 * much as cudaMalloc.
 */
#include <rmm/async_resource.h>

#include <inttypes.h>
#include <limits.h>
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
static const rmm_resource_ops_t async_pinned_ops = RMM_MEMPOOL_OPS("async_pinned");

static bool is_on_host(const rmm_async_options_t *options)
{
    return options->location != RMM_ASYNC_ON_DEVICE;
}

static rmm_status_t check_location(const rmm_async_options_t *options)
{
    RMM_CHECK_ARG(options->location <= RMM_ASYNC_ON_NEAREST_NODE, "unknown location");
    RMM_CHECK_ARG(
        options->location == RMM_ASYNC_ON_NODE || options->numa_node == 0,
        "numa_node is for RMM_ASYNC_ON_NODE");
    RMM_CHECK_ARG(options->numa_node <= INT_MAX, "there is no such NUMA node");
    RMM_CHECK_ARG(
        options->location != RMM_ASYNC_ON_HOST || options->handle_types == 0,
        "memory of RMM_ASYNC_ON_HOST cannot be shared with other processes: name a "
        "NUMA node");
    return RMM_OK;
}

static rmm_status_t check_options(const rmm_async_options_t *options)
{
    RMM_CHECK_ARG((options->handle_types & ~HANDLE_TYPES) == 0, "unknown handle type");
    RMM_CHECK_ARG((options->flags & ~FLAGS) == 0, "unknown flag");
    RMM_CHECK_ARG(
        (options->flags & RMM_ASYNC_RELEASE_UNUSED) == 0 ||
            options->release_threshold_bytes == 0,
        "RMM_ASYNC_RELEASE_UNUSED means a threshold of 0: leave "
        "release_threshold_bytes 0");
    return check_location(options);
}

/* RMM_OK, or RMM_ERR_UNSUPPORTED with the attribute that says so. A device without such pools may
 * all the same make one, whose memory it cannot use. */
static rmm_status_t
check_host_pools(const rmm_driver_t *driver, int device, uint32_t location)
{
    switch (location) {
    case RMM_ASYNC_ON_DEVICE:
        return RMM_OK;
    case RMM_ASYNC_ON_HOST:
        return rmm__driver_require(
            driver, RMM_ATTRIBUTE_HOST_MEMORY_POOLS, device,
            "has no memory pools of the host's memory "
            "(cudaDevAttrHostMemoryPoolsSupported is 0; the driver must be of CUDA 13 "
            "at least): use a pool over the pinned resource");
    default:
        return rmm__driver_require(
            driver, RMM_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS, device,
            "has no memory pools on NUMA nodes of the host "
            "(cudaDevAttrHostNumaMemoryPoolsSupported is 0; the driver must be of CUDA "
            "12.6 at least): use a pool over the pinned resource");
    }
}

/* The node of the pool, as the driver takes it. */
static rmm_status_t choose_node(
    const rmm_driver_t *driver, int device, const rmm_async_options_t *options,
    int *node_out)
{
    rmm_status_t status = RMM_OK;

    switch (options->location) {
    case RMM_ASYNC_ON_DEVICE:
        *node_out = RMM_DRIVER_ON_DEVICE;
        break;
    case RMM_ASYNC_ON_HOST:
        *node_out = RMM_DRIVER_HOST;
        break;
    case RMM_ASYNC_ON_NODE:
        *node_out = (int)options->numa_node;
        break;
    default:
        status = rmm__driver_attribute(
            driver, RMM_ATTRIBUTE_HOST_NUMA_ID, device, "querying the nearest node",
            node_out);
        if (status == RMM_OK && *node_out < 0) {
            status = rmm__error(
                RMM_ERR_UNSUPPORTED,
                "the driver does not know which NUMA node is near device %d "
                "(cudaDevAttrHostNumaId is %d): name one",
                device, *node_out);
        }
    }
    return status;
}

/* RMM_OK, or RMM_ERR_UNSUPPORTED with the attribute that says so. */
static rmm_status_t
check_handle_types(const rmm_driver_t *driver, int device, uint32_t handle_types)
{
    rmm_status_t status;
    int supported;

    if (handle_types == 0) {
        return RMM_OK;
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

static rmm_status_t
check_device(const rmm_driver_t *driver, int device, const rmm_async_options_t *options)
{
    rmm_status_t status = rmm__mempool_require(driver, device);

    if (status == RMM_OK) {
        status = check_host_pools(driver, device, options->location);
    }
    return status == RMM_OK ? check_handle_types(driver, device, options->handle_types)
                            : status;
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
    if (error == RMM_DRIVER_MEMORY_ALLOCATION && !is_on_host(options) &&
        rmm__driver_barrier_yield(driver, device, options->initial_pool_bytes)) {
        error = prime(driver, pool, (size_t)options->initial_pool_bytes);
    }
    return rmm__driver_status(driver, error, "allocating initial_pool_bytes");
}

/* An error of cudaMemPoolCreate. */
static rmm_status_t
refusal(const rmm_driver_t *driver, int error, const rmm_async_options_t *options)
{
    if (error == RMM_DRIVER_INVALID_VALUE && options->location == RMM_ASYNC_ON_NODE) {
        return rmm__error_cuda(
            RMM_ERR_INVALID_ARGUMENT, error,
            "cudaMemPoolCreate returned cudaErrorInvalidValue for NUMA node %" PRIu32
            ": is there such a node with memory "
            "(/sys/devices/system/node/has_memory)?",
            options->numa_node);
    }
    if (error == RMM_DRIVER_NOT_SUPPORTED ||
        (error == RMM_DRIVER_INVALID_VALUE && is_on_host(options))) {
        return rmm__error_cuda(
            RMM_ERR_UNSUPPORTED, error,
            "cudaMemPoolCreate returned %s for %s, handle types 0x%x: "
            "the driver or the runtime is too old, or the system is not set up for "
            "them",
            driver->error_name(error),
            is_on_host(options) ? "the host's memory" : "device memory",
            options->handle_types);
    }
    return rmm__driver_error(driver, error, "cudaMemPoolCreate");
}

/* Lets devices use the pool. Until then one of the host's memory is open to no device, and one of
 * a device's memory to that device. */
static rmm_status_t let_in(
    const rmm_driver_t *driver, int device, const rmm_async_options_t *options,
    rmm_driver_mempool_t pool)
{
    bool has_peers = (options->flags & RMM_ASYNC_NO_PEER_ACCESS) == 0;
    int error = RMM_DRIVER_OK;

    if (!is_on_host(options)) {
        if (has_peers) {
            rmm__mempool_share(driver, device, pool);
        }
        return RMM_OK;
    }
    error = device < RMM_DRIVER_SET_DEVICES
                ? driver->mempool_access(pool, RMM_DRIVER_DEVICE(device))
                : RMM_DRIVER_INVALID_DEVICE;
    if (error == RMM_DRIVER_OK && has_peers) {
        rmm__mempool_share_host(driver, device, pool);
    }
    return rmm__driver_status(driver, error, "cudaMemPoolSetAccess");
}

static rmm_status_t make_pool(
    const rmm_driver_t *driver, int device, const rmm_async_options_t *options,
    rmm_driver_mempool_t *pool_out)
{
    rmm_driver_mempool_t pool;
    int node;
    rmm_status_t status = choose_node(driver, device, options, &node);
    int error;

    if (status != RMM_OK) {
        return status;
    }
    error = driver->mempool_create(options->handle_types, node, &pool);
    if (error != RMM_DRIVER_OK) {
        return refusal(driver, error, options);
    }
    status = let_in(driver, device, options, pool);
    if (status == RMM_OK) {
        status = fill(driver, device, options, pool);
    }
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
    bool in_host_memory = is_on_host(options);
    rmm_mempool_plan_t plan = {
        .ops = in_host_memory ? &async_pinned_ops : &async_ops,
        .name = options->name,
        .properties =
            RMM_DEVICE_ACCESSIBLE | (in_host_memory ? RMM_HOST_ACCESSIBLE : 0),
        .driver = driver,
        .device = device,
        .in_host_memory = in_host_memory,
        .end = RMM_MEMPOOL_DESTROY,
        .keeps_barrier = options->initial_pool_bytes != 0 && !in_host_memory,
        .handle_types = in_host_memory ? 0 : options->handle_types,
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
    status = rmm__options_copy(
        &opts, sizeof(opts), options, offsetof(rmm_async_options_t, location));
    if (status == RMM_OK) {
        status = check_options(&opts);
    }
    if (status == RMM_OK) {
        status = rmm__driver_here(&driver, &device);
    }
    if (status == RMM_OK) {
        status = check_device(driver, device, &opts);
    }
    return status == RMM_OK ? create(driver, device, &opts, out) : status;
}
