/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every part of the simulated GPU shares this: the lock, the thread, the settings, and which
 * devices there are.
 */
#include "driver/sim/internal.h"

rmm_mutex_t rmm__sim_lock = RMM_MUTEX_INITIALIZER;
_Thread_local sim_thread_t rmm__sim_thread;

static sim_config_t config;     /* constant once open */
static uint64_t last_thread_id; /* protected by rmm__sim_lock */
/* Bit d: the process has a context on device d, as cudaSetDevice makes one. Device 0 is every
 * thread's current one from the start. */
static atomic_uint active_devices = 1;

void rmm__sim_configure(const sim_config_t *chosen)
{
    config = *chosen;
}

uint64_t rmm__sim_thread_id_locked(void)
{
    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    if (rmm__sim_thread.id == 0) {
        rmm__sim_thread.id = ++last_thread_id;
    }
    return rmm__sim_thread.id;
}

int rmm__sim_device_count(void)
{
    return config.device_count;
}

uint64_t rmm__sim_device_bytes(void)
{
    return config.memory_bytes;
}

int rmm__sim_attribute(int ability)
{
    static const int all[] = {
#define X(name, ours, cuda, value) (int)(ours),
        SIM_ABILITY_MAP(X)
#undef X
    };
    uint64_t bit = 1;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++, bit <<= 1) {
        if (all[i] == ability) {
            return (config.attributes_off & bit) == 0;
        }
    }
    return 0;
}

bool rmm__sim_are_peers(uint32_t devices, int device)
{
    bool has_peers = rmm__sim_attribute(SIM_PEERS) != 0;

    for (int other = 0; other < RMM_DRIVER_SET_DEVICES; other++) {
        if ((devices & RMM_DRIVER_DEVICE(other)) != 0 &&
            (other >= config.device_count || (other != device && !has_peers))) {
            return false;
        }
    }
    return true;
}

int rmm__sim_device_choose(int device)
{
    if (device < 0 || device >= config.device_count) {
        return RMM_DRIVER_INVALID_DEVICE;
    }
    rmm__sim_thread.device = device;
    atomic_fetch_or_explicit(&active_devices, 1u << device, memory_order_relaxed);
    return RMM_DRIVER_OK;
}

bool rmm__sim_device_is_active(int device)
{
    return (atomic_load_explicit(&active_devices, memory_order_relaxed) &
            1u << device) != 0;
}
