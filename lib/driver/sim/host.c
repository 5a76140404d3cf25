/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned memory of the simulated GPU: whole pages of the host's heap, poisoned like device
 * memory, with every block remembered so that a wrong free is a violation and not a crash.
 * As on a GPU, a copy may overrun a block up to the end of its last page; a block that
 * ended with its bytes would let AddressSanitizer end a program that the diagnosis is to
 * judge.
 *
 * Locking: all under rmm__sim_lock.
 */
#include "driver/sim/internal.h"

#include <stdlib.h>
#include <string.h>

#include "core/round.h"

#define PAGE 4096u /* as cudaHostAlloc gives whole pages */
#define BUCKETS 256u
#define POISON_MAX ((size_t)256 << 10) /* more would cost more than it finds */

typedef struct sim_host_block {
    struct sim_host_block *next;
    void *ptr;
    size_t bytes;
} sim_host_block_t;

static sim_host_block_t *buckets[BUCKETS];

static sim_host_block_t **bucket_of(const void *ptr)
{
    return &buckets[(uintptr_t)ptr / PAGE % BUCKETS];
}

static void poison(const sim_host_block_t *block, int value)
{
    memset(block->ptr, value, block->bytes < POISON_MAX ? block->bytes : POISON_MAX);
}

static int alloc_locked(void **ptr_out, size_t bytes)
{
    sim_host_block_t *block = bytes <= PTRDIFF_MAX ? malloc(sizeof(*block)) : NULL;
    sim_host_block_t **bucket;

    if (block == NULL ||
        posix_memalign(&block->ptr, PAGE, rmm__align_up(bytes, PAGE)) != 0) {
        free(block);
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    block->bytes = bytes;
    bucket = bucket_of(block->ptr);
    block->next = *bucket;
    *bucket = block;
    poison(block, RMM_SIM_POISON_ALLOC);
    *ptr_out = block->ptr;
    return RMM_DRIVER_OK;
}

static int free_locked(void *ptr)
{
    sim_host_block_t **link = bucket_of(ptr);
    sim_host_block_t *block;

    while (*link != NULL && (*link)->ptr != ptr) {
        link = &(*link)->next;
    }
    block = *link;
    if (block == NULL) {
        rmm__sim_violation_locked(
            "host_free: no pinned memory begins at %p: freed twice?", ptr);
        return RMM_DRIVER_INVALID_VALUE;
    }
    *link = block->next;
    rmm__sim_finish_device_locked(rmm__sim_thread.device); /* as cudaFreeHost */
    poison(block, RMM_SIM_POISON_FREE);
    free(block->ptr);
    free(block);
    return RMM_DRIVER_OK;
}

int rmm__sim_host_alloc(void **ptr_out, size_t bytes)
{
    int error = rmm__sim_enter_unsafe("host_alloc");

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    if (bytes == 0) {
        *ptr_out = NULL;
    } else {
        error = alloc_locked(ptr_out, bytes);
    }
    rmm__sim_leave();
    return error;
}

int rmm__sim_host_free(void *ptr)
{
    int error = rmm__sim_enter_unsafe("host_free");

    if (error == RMM_DRIVER_OK) {
        error = ptr != NULL ? free_locked(ptr) : RMM_DRIVER_OK;
        rmm__sim_leave();
    }
    return error;
}
