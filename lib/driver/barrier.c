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
 * for each device is kept while a resource may need a barrier. Resources take it before
 * their memory, because afterwards the device may be full. Cost: a byte, for which CUDA takes
 * 2 MiB from the device, at most once in a process.
 *
 * Locking: `kept_lock` protects the kept blocks. It is held on purpose while a kept
 * block is freed and allocated again: a second barrier on the full device has to wait
 * for the block.
 */
#include "driver/driver.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "core/error.h"
#include "core/fork.h"
#include "core/mutex.h"
#include "core/round.h"

#define DEVICES 32 /* as many as there are locations; others have no resources */
#define BLOCK_MOST ((uint64_t)2 * 1024 * 1024) /* CUDA's pages for small blocks */

typedef struct kept {
    /* NULL: the device had none, or gave none back. Written under the lock. */
    _Atomic(void *) block;
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

static void *get(const kept_t *of_device)
{
    return atomic_load_explicit(&of_device->block, memory_order_relaxed);
}

static void set(kept_t *of_device, void *block)
{
    atomic_store_explicit(&of_device->block, block, memory_order_relaxed);
}

static void take_block_locked(const rmm_driver_t *driver, kept_t *of_device)
{
    void *block;

    RMM_ASSERT_LOCKED(&kept_lock);
    if (get(of_device) == NULL && driver->mem_alloc(&block, 1) == RMM_DRIVER_OK) {
        set(of_device, block);
    }
}

static void take_block(const rmm_driver_t *driver, int device, int32_t more_users)
{
    kept_t *of_device = &kept[device];
    rmm_driver_scope_t scope;
    bool entered = rmm__driver_scope_enter(&scope, driver, device) == RMM_OK;

    rmm__mutex_lock(&kept_lock);
    of_device->users += more_users;
    if (of_device->users > 0 && entered) {
        take_block_locked(driver, of_device);
    }
    rmm__mutex_unlock(&kept_lock);
    if (entered) {
        rmm__driver_scope_leave(&scope);
    }
}

void rmm__driver_barrier_keep(const rmm_driver_t *driver, int device)
{
    if (device < DEVICES) {
        take_block(driver, device, 1);
    }
}

void rmm__driver_barrier_refill(const rmm_driver_t *driver, int device)
{
    /* without the lock, which a barrier holds while it waits */
    if (get(&kept[device]) == NULL) {
        take_block(driver, device, 0);
    }
}

uint64_t rmm__driver_barrier_need(int device)
{
    return device < DEVICES && get(&kept[device]) != NULL ? 0 : BLOCK_MOST;
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
    if ((get(of_device) != NULL || of_device->users <= 0) &&
        is_gone(driver->mem_free(block))) {
        block = NULL;
    }
    if (get(of_device) == NULL) {
        set(of_device, block);
    }
    rmm__mutex_unlock(&kept_lock);
}

/* The block, which the caller frees, if so many users are all. */
static void *take_out(kept_t *of_device, int32_t users, int32_t fewer_users)
{
    void *block = NULL;

    rmm__mutex_lock(&kept_lock);
    if (of_device->users == users) {
        block = get(of_device);
        set(of_device, NULL);
    }
    of_device->users -= fewer_users;
    rmm__mutex_unlock(&kept_lock);
    return block;
}

static void give_block(const rmm_driver_t *driver, int device, void *block)
{
    kept_t *of_device = &kept[device];
    rmm_driver_scope_t scope;
    bool entered;

    /* the free finds the block on any device, so it is tried without the scope as well */
    entered = rmm__driver_scope_enter(&scope, driver, device) == RMM_OK;
    if (!is_gone(driver->mem_free(block))) {
        keep_leftover(driver, of_device, block);
    }
    if (entered) {
        rmm__driver_scope_leave(&scope);
    }
}

void rmm__driver_barrier_drop(const rmm_driver_t *driver, int device)
{
    void *block = device < DEVICES ? take_out(&kept[device], 1, 1) : NULL;

    if (block != NULL) {
        give_block(driver, device, block);
    }
}

bool rmm__driver_barrier_yield(const rmm_driver_t *driver, int device, uint64_t bytes)
{
    uint64_t need = rmm__round_up(bytes, BLOCK_MOST);
    rmm_error_kept_t reason;
    uint64_t free_bytes;
    bool suffices;
    void *block = NULL;

    rmm__error_keep(&reason);
    suffices = rmm__driver_free_memory(driver, device, &free_bytes) == RMM_OK &&
               need > free_bytes && bytes <= free_bytes + BLOCK_MOST;
    rmm__error_restore(&reason);
    if (suffices) {
        block = take_out(&kept[device], 1, 0);
    }
    if (block != NULL) {
        give_block(driver, device, block);
    }
    return block != NULL;
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
    is_spent = get(of_device) != NULL;
    if (is_spent) {
        *error_out = driver->mem_free(get(of_device));
        is_spent = *error_out != RMM_DRIVER_INVALID_VALUE;
        set(of_device, is_gone(*error_out) ? NULL : get(of_device));
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
