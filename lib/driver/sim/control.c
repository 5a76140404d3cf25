/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the simulated GPU for the tests of this tree; see control.h. */
#include "driver/sim/control.h"

#include "driver/sim/internal.h"

void rmm__sim_reseed(uint64_t seed)
{
    if (rmm_sim_active()) {
        rmm__mutex_lock(&rmm__sim_lock);
        rmm__sim_reseed_locked(seed);
        rmm__mutex_unlock(&rmm__sim_lock);
    }
}

int rmm__sim_device_set(int device)
{
    return rmm_sim_active() ? rmm__sim_device_choose(device) : RMM_DRIVER_NOT_SUPPORTED;
}

int rmm__sim_device_get(int *device_out)
{
    *device_out = rmm__sim_thread.device;
    return RMM_DRIVER_OK;
}

int rmm__sim_prefetched_to(const void *ptr, size_t bytes)
{
    int device;

    rmm__mutex_lock(&rmm__sim_lock);
    device = rmm__sim_prefetched_to_locked(ptr, bytes);
    rmm__mutex_unlock(&rmm__sim_lock);
    return device;
}

int rmm__sim_preferred_at(const void *ptr, size_t bytes)
{
    int device;

    rmm__mutex_lock(&rmm__sim_lock);
    device = rmm__sim_preferred_at_locked(ptr, bytes);
    rmm__mutex_unlock(&rmm__sim_lock);
    return device;
}

int rmm__sim_node_of(const void *ptr)
{
    sim_block_t block;
    int node = RMM_DRIVER_ON_DEVICE;

    rmm__mutex_lock(&rmm__sim_lock);
    if (rmm__sim_memory_find_locked(ptr, &block)) {
        node = rmm__sim_mempool_node_locked(block.begin);
    }
    rmm__mutex_unlock(&rmm__sim_lock);
    return node == RMM_DRIVER_ON_DEVICE ? SIM_NOWHERE : node;
}

uint64_t rmm__sim_address_bytes(void)
{
    uint64_t bytes;

    rmm__mutex_lock(&rmm__sim_lock);
    bytes = rmm__sim_address_bytes_locked();
    rmm__mutex_unlock(&rmm__sim_lock);
    return bytes;
}

uint32_t rmm__sim_physical_flags(const void *ptr)
{
    uint32_t flags;

    rmm__mutex_lock(&rmm__sim_lock);
    flags = rmm__sim_physical_flags_locked(ptr);
    rmm__mutex_unlock(&rmm__sim_lock);
    return flags;
}
