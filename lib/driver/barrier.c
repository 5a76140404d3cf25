/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for all work of a device without invalidating a graph capture.
 *
 * cudaDeviceSynchronize invalidates every capture of the process, whatever the calling
 * thread's capture mode (it returns 900, the capture's end returns 901). cudaFree in
 * relaxed mode waits for the device too, and leaves captures valid: measured on an H200
 * (driver 580.159) with blocks of 256 B to 64 MiB, behind a kernel on a destroyed
 * stream.
 *
 * Work of other devices is not waited for. rmm__driver_others_idle() returns whether there can be
 * any, or waits for them one by one.
 *
 * On a device without free memory there is no block to allocate and free. So one block
 * for each device is kept while a resource may need a barrier.
 *
 * Locking: `kept_lock` protects the kept blocks. It is held on purpose while a kept
 * block is freed and allocated again: a second barrier on the full device has to wait
 * for the block.
 */
#include "driver/driver.h"

#include <stdbool.h>
#include <string.h>

#include "core/fork.h"
#include "core/mutex.h"

#define DEVICES 32 /* as many as there are locations; others have no resources */

typedef struct kept {
    void *block; /* NULL: the device had none, or gave none back */
    int32_t
        users; /* keepers that have not dropped it; -1: a drop came before its keep */
} kept_t;

static rmm_mutex_t kept_lock = RMM_MUTEX_INITIALIZER;
static kept_t kept[DEVICES];

/* Not held over a fork, which would wait for the device. The child's driver refuses all. */
static void forget_in_child(void)
{
    kept_lock = (rmm_mutex_t)RMM_MUTEX_INITIALIZER;
    memset(kept, 0, sizeof(kept));
}

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_BARRIER, NULL, forget_in_child);
}

static void take_block_locked(const rmm_driver_t *driver, kept_t *of_device)
{
    RMM_ASSERT_LOCKED(&kept_lock);
    if (of_device->block == NULL &&
        driver->mem_alloc(&of_device->block, 1) != RMM_DRIVER_OK) {
        of_device->block = NULL;
    }
}

void rmm__driver_barrier_keep(const rmm_driver_t *driver, int device)
{
    kept_t *of_device = &kept[device];
    rmm_driver_scope_t scope;
    bool entered = rmm__driver_scope_enter(&scope, driver, device) == RMM_OK;

    rmm__mutex_lock(&kept_lock);
    if (++of_device->users > 0 && entered) {
        take_block_locked(driver, of_device);
    }
    rmm__mutex_unlock(&kept_lock);
    if (entered) {
        rmm__driver_scope_leave(&scope);
    }
}

/* By the error of its free. A block that the driver does not know, as after a cudaDeviceReset(), is
 * gone, too: its address may be another's. */
static bool is_gone(int error)
{
    return error == RMM_DRIVER_OK || error == RMM_DRIVER_INVALID_VALUE;
}

/* A block that could not be freed becomes the kept one. Without a user the free is repeated; if
 * that fails too, the block stays for the next user. */
static void keep_leftover(const rmm_driver_t *driver, kept_t *of_device, void *block)
{
    rmm__mutex_lock(&kept_lock);
    if ((of_device->block != NULL || of_device->users <= 0) &&
        is_gone(driver->mem_free(block))) {
        block = NULL;
    }
    if (of_device->block == NULL) {
        of_device->block = block;
    }
    rmm__mutex_unlock(&kept_lock);
}

void rmm__driver_barrier_drop(const rmm_driver_t *driver, int device)
{
    kept_t *of_device = &kept[device];
    void *block = NULL;
    rmm_driver_scope_t scope;
    bool entered;

    rmm__mutex_lock(&kept_lock);
    if (--of_device->users == 0) {
        block = of_device->block;
        of_device->block = NULL;
    }
    rmm__mutex_unlock(&kept_lock);
    if (block == NULL) {
        return;
    }
    /* the free finds the block on any device, so it is tried without the scope as well */
    entered = rmm__driver_scope_enter(&scope, driver, device) == RMM_OK;
    if (!is_gone(driver->mem_free(block))) {
        keep_leftover(driver, of_device, block);
    }
    if (entered) {
        rmm__driver_scope_leave(&scope);
    }
}

/* The kept block's free is the barrier. False: none is kept. */
static bool spend_kept(const rmm_driver_t *driver, int *error_out)
{
    kept_t *of_device;
    bool is_spent;
    int device;

    *error_out = driver->device_get(&device);
    if (*error_out != RMM_DRIVER_OK || device >= DEVICES) {
        return false;
    }
    of_device = &kept[device];
    rmm__mutex_lock(&kept_lock);
    is_spent = of_device->block != NULL;
    if (is_spent) {
        *error_out = driver->mem_free(of_device->block);
        is_spent = *error_out != RMM_DRIVER_INVALID_VALUE;
        of_device->block = is_gone(*error_out) ? NULL : of_device->block;
    }
    if (of_device->users > 0) {
        take_block_locked(driver, of_device);
    }
    rmm__mutex_unlock(&kept_lock);
    return is_spent;
}

/* False: there is no block to free. */
static bool free_a_block(const rmm_driver_t *driver, int *error_out)
{
    void *block;
    int device;

    if (driver->mem_alloc(&block, 1) != RMM_DRIVER_OK) {
        return spend_kept(driver, error_out);
    }
    *error_out = driver->mem_free(block);
    if (*error_out != RMM_DRIVER_OK && driver->device_get(&device) == RMM_DRIVER_OK &&
        device < DEVICES) {
        keep_leftover(driver, &kept[device], block);
    }
    return true;
}

int rmm__driver_barrier(const rmm_driver_t *driver)
{
    int error;

    return free_a_block(driver, &error) ? error : driver->device_synchronize();
}

static bool wait_for(const rmm_driver_t *driver, int device)
{
    rmm_driver_scope_t scope;
    int error;
    bool is_done;

    if (rmm__driver_scope_enter(&scope, driver, device) != RMM_OK) {
        return false;
    }
    is_done = free_a_block(driver, &error) && error == RMM_DRIVER_OK;
    rmm__driver_scope_leave(&scope);
    return is_done;
}

bool rmm__driver_others_idle(const rmm_driver_t *driver, int device, bool waits)
{
    int count;

    if (driver->device_count(&count) != RMM_DRIVER_OK) {
        return false;
    }
    for (int other = 0; other < count; other++) {
        int active;

        if (other == device) {
            continue;
        }
        if (driver->device_active(other, &active) != RMM_DRIVER_OK ||
            (active != 0 && !(waits && wait_for(driver, other)))) {
            return false;
        }
    }
    return true;
}
