/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which device may use which memory, when a copy is queued and when a task runs. It calls
 * the files of all kinds of memory, none of which calls it.
 */
#include "driver/sim/internal.h"

#include <stdio.h>
#include <string.h>

/* "device 3", or "the host": for a message. */
static const char *name_of(int device)
{
    static char name[24]; /* under the simulation's lock */

    snprintf(name, sizeof(name), "device %d", device);
    return device == SIM_HOST ? "the host" : name;
}

/* May the device use the block? Copies reach plain memory of every device, through the host. */
static bool is_open_to(const sim_block_t *block, int device)
{
    if (block->device == device || device == SIM_ANY_DEVICE) {
        return true;
    }
    switch (block->use) {
    case SIM_USE_POOL:
        return (rmm__sim_mempool_access_locked(block->begin) >> device & 1) != 0;
    case SIM_USE_GRAPH:
        return (rmm__sim_async_access_locked(block->begin) >> device & 1) != 0;
    case SIM_USE_PLAIN:
    case SIM_USE_MANAGED:
    case SIM_USE_MANAGED_POOL:
        break;
    }
    return true;
}

/* A violation if not; true outside of device memory that is not mapped. */
static bool memory_allows(const void *ptr, size_t bytes, int device)
{
    int owner = rmm__sim_memory_device_locked(ptr);
    sim_block_t block;

    if (owner < 0) {
        return true;
    }
    if (!rmm__sim_memory_find_locked(ptr, &block) ||
        bytes > (uint64_t)(block.begin + block.bytes - (const char *)ptr)) {
        rmm__sim_violation_locked(
            "a copy or fill of %zu bytes at %p: not within one allocation of %s", bytes,
            ptr, name_of(owner));
        return false;
    }
    if (!is_open_to(&block, device)) {
        rmm__sim_violation_locked(
            "a copy or fill of %zu bytes at %p on device %d: no access to this memory "
            "pool of %s",
            bytes, ptr, device, name_of(owner));
        return false;
    }
    return true;
}

static bool memory_reaches(const char *what, const void *ptr, int device)
{
    sim_block_t block;

    if (!rmm__sim_memory_find_locked(ptr, &block) || is_open_to(&block, device)) {
        return true;
    }
    rmm__sim_violation_locked(
        "%s on device %d: no access to the memory pool of %s at %p", what, device,
        name_of(block.device), ptr);
    return false;
}

bool rmm__sim_reaches_locked(const char *what, const void *ptr, int device)
{
    return rmm__sim_virtual_reaches_locked(what, ptr, device) &&
           memory_reaches(what, ptr, device);
}

static bool may_use(const void *ptr, size_t bytes, int device)
{
    return rmm__sim_virtual_allows_locked(ptr, bytes, device) &&
           memory_allows(ptr, bytes, device);
}

/* No parameter is an address that is out of the device's reach. */
static bool params_reach(const sim_task_t *task, int device)
{
    const char *words = task->src;

    for (size_t at = 0; at < task->bytes; at += sizeof(void *)) {
        const void *ptr;

        memcpy(&ptr, words + at, sizeof(ptr));
        if (!rmm__sim_reaches_locked("a kernel", ptr, device)) {
            return false;
        }
    }
    return true;
}

/* False, and a violation, where a real GPU would refuse it or end the program's context. */
bool rmm__sim_task_may_run(const sim_task_t *task, int device)
{
    switch (task->kind) {
    case SIM_TASK_COPY:
        return may_use(task->src, task->bytes, SIM_ANY_DEVICE) &&
               may_use(task->dst, task->bytes, SIM_ANY_DEVICE);
    case SIM_TASK_SET:
        return may_use(task->dst, task->bytes, device);
    case SIM_TASK_KERNEL:
        return params_reach(task, device);
    case SIM_TASK_CALL:
        break;
    }
    return true;
}
