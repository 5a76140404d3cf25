/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device's default managed memory pool; all else is in mempool.h.
 */
#include <rmm/async_managed_resource.h>
#include <rmm/async_resource.h>

#include "core/assert.h"
#include "resources/mempool.h"

static const rmm_resource_ops_t async_managed_ops = RMM_MEMPOOL_OPS("async_managed");

static rmm_tracked_t *instances; /* one for each device and flags; NULL: none lives */

/* RMM_OK, or RMM_ERR_UNSUPPORTED with the attribute that says so. */
static rmm_status_t check_device(const rmm_driver_t *driver, int device)
{
    rmm_status_t status = rmm__mempool_require(driver, device);

    return status == RMM_OK
               ? rmm__driver_require(
                     driver, RMM_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device,
                     "and the host cannot use managed memory at the same time "
                     "(cudaDevAttrConcurrentManagedAccess is 0), which a managed "
                     "memory pool needs: use the managed resource")
               : status;
}

/* Keep what is freed, unless the program has said how much. */
static int keep_memory(const rmm_driver_t *driver, rmm_driver_mempool_t pool)
{
    uint64_t threshold;
    int error = driver->mempool_get_threshold(pool, &threshold);

    return error == RMM_DRIVER_OK && threshold == 0
               ? driver->mempool_set_threshold(pool, UINT64_MAX)
               : error;
}

/* In a scope. */
static rmm_status_t
find_pool(const rmm_driver_t *driver, rmm_driver_mempool_t *pool_out)
{
    int error = driver->mempool_managed(pool_out);

    if (error == RMM_DRIVER_NOT_SUPPORTED) {
        return rmm__error_cuda(
            RMM_ERR_UNSUPPORTED, error,
            "no managed memory pool: it needs CUDA 13, both in the driver and in the "
            "toolkit that built the library, and HIP has none; use the managed "
            "resource");
    }
    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(driver, error, "cudaMemGetDefaultMemPool");
    }
    error = keep_memory(driver, *pool_out);
    return rmm__driver_status(driver, error, "the pool's release threshold");
}

static rmm_status_t open_pool(rmm_mempool_plan_t *plan)
{
    rmm_driver_scope_t scope;
    rmm_status_t status = rmm__driver_scope_enter(&scope, plan->driver, plan->device);

    if (status == RMM_OK) {
        status = find_pool(plan->driver, &plan->handle);
        rmm__driver_scope_leave(&scope);
    }
    return status;
}

rmm_status_t
rmm_async_managed_resource_create_with_flags(uint32_t flags, rmm_resource_t **out)
{
    rmm_mempool_plan_t plan = {
        .ops = &async_managed_ops,
        .properties = RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE,
        .end = RMM_MEMPOOL_TRIM,
        .waits = flags != 0,
        .instances = &instances};
    rmm_status_t status;

    RMM_CHECK_ARG(out != NULL, "out is NULL");
    RMM_CHECK_ARG((flags & ~RMM_ASYNC_WAIT_BEFORE_REFUSAL) == 0, "unknown flag");
    status = rmm__driver_here(&plan.driver, &plan.device);
    if (status == RMM_OK) {
        status = check_device(plan.driver, plan.device);
    }
    if (status == RMM_OK) {
        status = open_pool(&plan);
    }
    plan.instance_key = (uint64_t)plan.device | (uint64_t)flags << 32;
    return status == RMM_OK ? rmm__mempool_resource_create(&plan, out) : status;
}

rmm_status_t rmm_async_managed_resource_create(rmm_resource_t **out)
{
    return rmm_async_managed_resource_create_with_flags(0, out);
}
