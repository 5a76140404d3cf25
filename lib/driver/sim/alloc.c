/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations and frees of device memory, as cudaMalloc and cudaFree.
 */
#include "driver/sim/internal.h"

static int alloc_locked(void **ptr_out, uint64_t bytes, sim_use_t use)
{
    char *fresh;
    int error = rmm__sim_memory_take_locked(rmm__sim_thread.device, bytes, use, &fresh);

    if (error == RMM_DRIVER_OK) {
        *ptr_out = fresh;
    }
    return error;
}

int rmm__sim_memory_take(const char *call, void **ptr_out, size_t bytes, sim_use_t use)
{
    int error = rmm__sim_enter_unsafe(call);

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    if (bytes == 0) {
        *ptr_out = NULL;
    } else {
        error = alloc_locked(ptr_out, bytes, use);
    }
    rmm__sim_leave();
    return error;
}

int rmm__sim_mem_alloc(void **ptr_out, size_t bytes)
{
    return rmm__sim_memory_take("mem_alloc", ptr_out, bytes, SIM_USE_PLAIN);
}

static bool is_pooled(const void *ptr)
{
    sim_block_t block;

    return rmm__sim_memory_find_locked(ptr, &block) &&
           (block.use == SIM_USE_POOL || block.use == SIM_USE_MANAGED_POOL ||
            block.use == SIM_USE_GRAPH);
}

/* As cudaFree: it waits for the device before the poison, which work that uses the block must not
 * see. Not for memory of a pool. */
static int free_locked(char *ptr, bool *has_waited)
{
    int device = rmm__sim_memory_device_locked(ptr);

    if (device < 0) {
        rmm__sim_violation_locked(
            "mem_free: %p is not an address of any device", (void *)ptr);
        return RMM_DRIVER_INVALID_VALUE;
    }
    if (is_pooled(ptr)) {
        return rmm__sim_async_free_now_locked(
            ptr, device != SIM_HOST ? device : rmm__sim_thread.device);
    }
    *has_waited = true;
    rmm__sim_finish_device_locked(device);
    if (!rmm__sim_memory_end_locked(device, ptr)) {
        rmm__sim_violation_locked(
            "mem_free: no allocation begins at %p of device %d: freed twice?",
            (void *)ptr, device);
        return RMM_DRIVER_INVALID_VALUE;
    }
    return RMM_DRIVER_OK;
}

int rmm__sim_mem_free(void *ptr)
{
    int error = rmm__sim_enter_unsafe("mem_free");
    bool has_waited = false;

    if (error == RMM_DRIVER_OK) {
        error = ptr != NULL ? free_locked(ptr, &has_waited) : RMM_DRIVER_OK;
        rmm__sim_leave();
    }
    if (error == RMM_DRIVER_OK && has_waited) {
        rmm__sim_tell(&(sim_observation_t){
            .kind = RMM_DIAG_DEVICE_SYNC, .device = -1}); /* as librmm-inject */
    }
    return error;
}

int rmm__sim_memory_info(uint64_t *free_bytes, uint64_t *total_bytes)
{
    int error = rmm__sim_enter("memory_info");

    if (error == RMM_DRIVER_OK) {
        *total_bytes = rmm__sim_device_bytes();
        *free_bytes =
            *total_bytes - rmm__sim_memory_allocated_locked(rmm__sim_thread.device);
        rmm__sim_leave();
    }
    return error;
}
