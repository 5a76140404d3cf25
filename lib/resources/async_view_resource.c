/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Somebody else's memory pool; all else is in mempool.h.
 */
#include <rmm/async_resource.h>
#include <rmm/async_view_resource.h>

#include "core/assert.h"
#include "resources/mempool.h"

static const rmm_resource_ops_t async_view_ops = RMM_MEMPOOL_OPS("async_view");

static rmm_tracked_t *instances; /* one for each pool and flags; NULL: none lives */

/* The handle is checked by a query before it is used. The query ruins the captures of
 * other threads, unless this one's mode is relaxed. */
static rmm_status_t
check_pool(const rmm_driver_t *driver, int device, rmm_driver_mempool_t pool)
{
    rmm_driver_mempool_figures_t figures;
    rmm_driver_scope_t scope;
    rmm_status_t status = rmm__driver_scope_enter(&scope, driver, device);
    int error;

    if (status != RMM_OK) {
        return status;
    }
    error = driver->mempool_figures(pool, &figures);
    rmm__driver_scope_leave(&scope);
    if (error == RMM_DRIVER_INVALID_VALUE || error == RMM_DRIVER_INVALID_HANDLE) {
        return rmm__error_cuda(
            RMM_ERR_INVALID_ARGUMENT, error, "%p is not a memory pool of the driver",
            (void *)pool);
    }
    return rmm__driver_status(driver, error, "reading the memory pool");
}

rmm_status_t rmm_async_view_resource_create_with_flags(
    void *cuda_mem_pool, uint32_t flags, rmm_resource_t **out)
{
    rmm_mempool_plan_t plan = {
        .ops = &async_view_ops,
        .properties = RMM_DEVICE_ACCESSIBLE,
        .handle = (rmm_driver_mempool_t)cuda_mem_pool,
        .waits = flags != 0,
        .instances = &instances,
        .instance_key = (uint64_t)(uintptr_t)cuda_mem_pool ^ (uint64_t)flags << 62};
    rmm_status_t status;

    RMM_CHECK_ARG(out != NULL, "out is NULL");
    RMM_CHECK_ARG(cuda_mem_pool != NULL, "the pool is NULL");
    RMM_CHECK_ARG((flags & ~RMM_ASYNC_WAIT_BEFORE_REFUSAL) == 0, "unknown flag");
    status = rmm__driver_here(&plan.driver, &plan.device);
    if (status == RMM_OK) {
        status = rmm__mempool_require(plan.driver, plan.device);
    }
    if (status == RMM_OK) {
        status = check_pool(plan.driver, plan.device, plan.handle);
    }
    return status == RMM_OK ? rmm__mempool_resource_create(&plan, out) : status;
}

rmm_status_t rmm_async_view_resource_create(void *cuda_mem_pool, rmm_resource_t **out)
{
    return rmm_async_view_resource_create_with_flags(cuda_mem_pool, 0, out);
}
