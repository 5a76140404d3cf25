/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools: what a pool reserves of its device, and how it gives that back. A pool
 * grows by segments of 32 MiB or what a block needs; a segment with no block in it goes
 * back when the pool is trimmed and the program has waited for something since the last
 * free there, when a program waits and the pool holds more than its threshold, or when
 * another allocation would fail.
 *
 * A destroyed pool has no handle any more; it stays until its last block has been freed,
 * by work that has run.
 *
 * Locking: all under rmm__sim_lock.
 */
#include "driver/sim/mempool.h"

#include <stdlib.h>

#include "core/assert.h"
#include "core/round.h"

#define POOL_TAG 0x4d50u                      /* "MP" */
#define SEGMENT_BYTES (UINT64_C(32) << 20)    /* as CUDA 13 on an H200 */
#define SEGMENT_BYTES_MIN (UINT64_C(2) << 20) /* where there is no room for that */
#define BLOCK_ALIGN UINT64_C(512)

/* cudaMemAllocationHandleType */
#define HANDLE_POSIX_FD 0x1u
#define HANDLE_ALL 0xfu /* posix fd, two of Windows, fabric */

static sim_table_t handles = {.what = "memory pool", .tag = POOL_TAG};
static sim_mempool_t *pools;
static sim_mempool_t *managed_pools[SIM_DEVICE_MAX];

/* ---- segments ---- */

static int segment_create(sim_mempool_t *pool, uint64_t bytes)
{
    sim_segment_t *segment = calloc(1, sizeof(*segment));
    sim_use_t use = pool->is_managed ? SIM_USE_MANAGED_POOL : SIM_USE_POOL;
    int error;

    if (segment == NULL || !rmm__sim_space_init(&segment->space, bytes)) {
        free(segment);
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    error = rmm__sim_memory_take_locked(
        sim_mempool_place(pool), bytes, use, &segment->begin);
    if (error != RMM_DRIVER_OK) {
        rmm__sim_space_fini(&segment->space);
        free(segment);
        return error;
    }
    segment->bytes = bytes;
    segment->next = pool->segments;
    pool->segments = segment;
    pool->reserved_bytes += bytes;
    return RMM_DRIVER_OK;
}

/* Give back empty segments while more than `above_bytes` are reserved, so that at least
 * `least_bytes` stay. */
static void
shrink(sim_mempool_t *pool, uint64_t above_bytes, uint64_t least_bytes, bool seen_only)
{
    for (sim_segment_t **link = &pool->segments; *link != NULL;) {
        sim_segment_t *segment = *link;

        if (segment->used_bytes != 0 || pool->reserved_bytes <= above_bytes ||
            pool->reserved_bytes - segment->bytes < least_bytes ||
            (seen_only && segment->has_unseen)) {
            link = &segment->next;
            continue;
        }
        *link = segment->next;
        pool->reserved_bytes -= segment->bytes;
        rmm__sim_memory_give_locked(segment->begin);
        rmm__sim_space_fini(&segment->space);
        free(segment);
    }
}

static void shrink_all(int place)
{
    for (sim_mempool_t *pool = pools; pool != NULL; pool = pool->next) {
        if (sim_mempool_place(pool) == place) {
            shrink(pool, 0, 0, false);
        }
    }
}

/* The pool notices the frees that have happened. */
static void see(sim_mempool_t *pool)
{
    for (sim_segment_t *segment = pool->segments; segment != NULL;
         segment = segment->next) {
        segment->has_unseen = false;
    }
    pool->used_bytes -= pool->unseen_bytes;
    pool->unseen_bytes = 0;
}

void rmm__sim_mempool_settle_locked(int device)
{
    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    for (sim_mempool_t *pool = pools; pool != NULL; pool = pool->next) {
        if (pool->device == device) {
            see(pool);
            shrink(pool, pool->threshold, 0, true);
        }
    }
}

/* The last try takes what other pools hold and do not use. */
static int grow(sim_mempool_t *pool, uint64_t bytes)
{
    int error = segment_create(pool, rmm__round_up(bytes, SEGMENT_BYTES));

    if (error != RMM_DRIVER_OK) {
        error = segment_create(pool, rmm__round_up(bytes, SEGMENT_BYTES_MIN));
    }
    if (error != RMM_DRIVER_OK) {
        shrink_all(sim_mempool_place(pool));
        error = segment_create(pool, bytes);
    }
    return error;
}

static bool take_from(sim_segment_t *segment, uint64_t bytes, sim_piece_t *piece_out)
{
    uint64_t offset;

    if (!rmm__sim_space_take(
            &segment->space, bytes, BLOCK_ALIGN, SIM_USE_POOL, &offset)) {
        return false;
    }
    segment->used_bytes += bytes;
    *piece_out = (sim_piece_t){
        .segment = segment, .begin = segment->begin + offset, .bytes = bytes};
    return true;
}

int rmm__sim_mempool_take_locked(
    sim_mempool_t *pool, uint64_t bytes, sim_piece_t *piece_out)
{
    int error;

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    if (pool->is_imported) {
        return RMM_DRIVER_NOT_SUPPORTED;
    }
    if (bytes > rmm__sim_device_bytes()) {
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    bytes = rmm__round_up(bytes, BLOCK_ALIGN);
    for (sim_segment_t *segment = pool->segments; segment != NULL;
         segment = segment->next) {
        if (take_from(segment, bytes, piece_out)) {
            return RMM_DRIVER_OK;
        }
    }
    error = grow(pool, bytes);
    if (error == RMM_DRIVER_OK && !take_from(pool->segments, bytes, piece_out)) {
        error = RMM_DRIVER_MEMORY_ALLOCATION;
    }
    return error;
}

/* ---- pools ---- */

static void pool_free_if_unused(sim_mempool_t *pool)
{
    sim_mempool_t **link = &pools;

    if (pool->entry != NULL) {
        return;
    }
    shrink(pool, 0, 0, false);
    if (pool->segments != NULL) {
        return;
    }
    while (*link != pool) {
        link = &(*link)->next;
    }
    *link = pool->next;
    rmm__sim_file_close(&pool->file);
    free(pool);
}

void rmm__sim_mempool_give_locked(sim_mempool_t *pool, const sim_piece_t *piece)
{
    sim_segment_t *segment = piece->segment;
    uint64_t bytes =
        rmm__sim_space_give(&segment->space, (uint64_t)(piece->begin - segment->begin));

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    RMM_ASSERT(bytes == piece->bytes);
    segment->used_bytes -= bytes;
    segment->has_unseen = true;
    pool_free_if_unused(pool);
}

sim_mempool_t *
rmm__sim_mempool_find_locked(rmm_driver_mempool_t handle, const char *call, int *error)
{
    return rmm__sim_find_locked(&handles, handle, call, error);
}

static sim_mempool_t *pool_create(int node, bool is_managed)
{
    sim_mempool_t *pool = calloc(1, sizeof(*pool));

    if (pool == NULL) {
        return NULL;
    }
    pool->entry = rmm__sim_entry_take_locked(&handles, pool);
    if (pool->entry == NULL) {
        free(pool);
        return NULL;
    }
    pool->device = rmm__sim_thread.device;
    pool->node = node;
    pool->is_managed = is_managed;
    pool->next = pools;
    pools = pool;
    return pool;
}

/* As the runtime, which knows the types of handles and what the device can do. */
static int check_handle_types(uint32_t types)
{
    if ((types & ~HANDLE_ALL) != 0) {
        return RMM_DRIVER_INVALID_VALUE;
    }
    if (rmm__sim_attribute(RMM_ATTRIBUTE_MEMORY_POOLS) == 0) {
        return RMM_DRIVER_NOT_SUPPORTED;
    }
    if (types != 0 && types != HANDLE_POSIX_FD) {
        return RMM_DRIVER_INVALID_VALUE; /* another system's */
    }
    return types == 0 || rmm__sim_attribute(RMM_ATTRIBUTE_MEMORY_POOL_HANDLE_TYPES) != 0
               ? RMM_DRIVER_OK
               : RMM_DRIVER_NOT_SUPPORTED;
}

/* INVALID_VALUE also where the ability is switched off: a driver without it does not know the
 * location. */
static int check_node(int node, uint32_t handle_types)
{
    bool is_valid;

    switch (node) {
    case RMM_DRIVER_ON_DEVICE:
        return RMM_DRIVER_OK;
    case RMM_DRIVER_HOST:
        is_valid = rmm__sim_attribute(RMM_ATTRIBUTE_HOST_MEMORY_POOLS) != 0 &&
                   handle_types == 0;
        break;
    default:
        is_valid = rmm__sim_attribute(RMM_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS) != 0 &&
                   node >= 0 && node < SIM_NODES;
    }
    return is_valid ? RMM_DRIVER_OK : RMM_DRIVER_INVALID_VALUE;
}

int rmm__sim_mempool_create(
    uint32_t handle_types, int node, rmm_driver_mempool_t *pool_out)
{
    int error = check_handle_types(handle_types);
    sim_mempool_t *pool = NULL;

    if (error == RMM_DRIVER_OK) {
        error = check_node(node, handle_types);
    }
    if (error == RMM_DRIVER_OK) {
        error = rmm__sim_enter("mempool_create");
    }
    if (error != RMM_DRIVER_OK) {
        return error;
    }
    error = rmm__sim_capture_forbids_locked();
    if (error == RMM_DRIVER_OK) {
        pool = pool_create(node, false);
        error = pool != NULL ? RMM_DRIVER_OK : RMM_DRIVER_MEMORY_ALLOCATION;
    }
    if (pool != NULL) {
        pool->handle_types = handle_types;
        *pool_out = rmm__sim_entry_handle(&handles, pool->entry);
    }
    rmm__sim_leave();
    return error;
}

int rmm__sim_mempool_add_import_locked(
    const sim_file_t *file, int device, rmm_driver_mempool_t *pool_out)
{
    sim_mempool_t *pool = pool_create(RMM_DRIVER_ON_DEVICE, false);

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    if (pool == NULL) {
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    pool->device = device;
    pool->is_imported = true;
    pool->file = *file;
    *pool_out = rmm__sim_entry_handle(&handles, pool->entry);
    return RMM_DRIVER_OK;
}

int rmm__sim_mempool_managed(rmm_driver_mempool_t *pool_out)
{
    sim_mempool_t **own = &managed_pools[rmm__sim_thread.device];
    int error;

    if (rmm__sim_attribute(RMM_ATTRIBUTE_MEMORY_POOLS) == 0 ||
        rmm__sim_attribute(RMM_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) == 0 ||
        rmm__sim_attribute(SIM_MANAGED_POOLS) == 0) {
        return RMM_DRIVER_NOT_SUPPORTED;
    }
    error = rmm__sim_enter("mempool_managed");
    if (error != RMM_DRIVER_OK) {
        return error;
    }
    if (*own == NULL) {
        *own = pool_create(RMM_DRIVER_ON_DEVICE, true);
    }
    if (*own != NULL) {
        *pool_out = rmm__sim_entry_handle(&handles, (*own)->entry);
    } else {
        error = RMM_DRIVER_MEMORY_ALLOCATION;
    }
    rmm__sim_leave();
    return error;
}

static int destroy_locked(sim_mempool_t *pool)
{
    int error;

    if (pool->is_managed) {
        rmm__sim_violation_locked("mempool_destroy: the pool is the device's own");
        return RMM_DRIVER_INVALID_VALUE;
    }
    error = rmm__sim_capture_forbids_locked();
    if (error == RMM_DRIVER_OK) {
        rmm__sim_entry_give_locked(&handles, pool->entry);
        pool->entry = NULL;
        pool_free_if_unused(pool);
    }
    return error;
}

int rmm__sim_mempool_destroy(rmm_driver_mempool_t handle)
{
    int error;
    sim_mempool_t *pool =
        rmm__sim_enter_object(&handles, handle, "mempool_destroy", &error);

    if (pool != NULL) {
        error = destroy_locked(pool);
        rmm__sim_leave();
    }
    return error;
}

int rmm__sim_mempool_trim(rmm_driver_mempool_t handle, size_t keep_bytes)
{
    int error;
    sim_mempool_t *pool =
        rmm__sim_enter_object(&handles, handle, "mempool_trim", &error);

    if (pool == NULL) {
        return error;
    }
    error = rmm__sim_capture_forbids_locked();
    if (error == RMM_DRIVER_OK) {
        shrink(pool, keep_bytes, keep_bytes, true);
    }
    rmm__sim_leave();
    return error;
}

/* Memory of the host is in reach of every device that there is. */
static bool may_be_let_in(const sim_mempool_t *pool, uint32_t devices)
{
    return pool->node == RMM_DRIVER_ON_DEVICE
               ? rmm__sim_are_peers(devices, pool->device)
               : (uint64_t)devices >> rmm__sim_device_count() == 0;
}

/* CUDA lets a fresh pool take devices that are no peers, and its allocations fail. */
int rmm__sim_mempool_access(rmm_driver_mempool_t handle, uint32_t devices)
{
    int error;
    sim_mempool_t *pool =
        rmm__sim_enter_object(&handles, handle, "mempool_access", &error);

    if (pool == NULL) {
        return error;
    }
    error = rmm__sim_capture_forbids_locked();
    if (error == RMM_DRIVER_OK && !may_be_let_in(pool, devices)) {
        error = RMM_DRIVER_INVALID_DEVICE;
    }
    if (error == RMM_DRIVER_OK) {
        pool->access |= devices;
    }
    rmm__sim_leave();
    return error;
}

/* The pool with a segment that begins there; NULL: none. */
static const sim_mempool_t *pool_of_segment(const char *begin)
{
    for (const sim_mempool_t *pool = pools; pool != NULL; pool = pool->next) {
        for (const sim_segment_t *segment = pool->segments; segment != NULL;
             segment = segment->next) {
            if (segment->begin == begin) {
                return pool;
            }
        }
    }
    return NULL;
}

uint32_t rmm__sim_mempool_access_locked(const char *begin)
{
    const sim_mempool_t *pool = pool_of_segment(begin);

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    return pool != NULL ? pool->access : 0;
}

int rmm__sim_mempool_node_locked(const char *begin)
{
    const sim_mempool_t *pool = pool_of_segment(begin);

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    return pool != NULL ? pool->node : RMM_DRIVER_ON_DEVICE;
}

/* Entered if there is such a pool; else NULL and the error. */
static sim_mempool_t *
enter_pool(const char *call, rmm_driver_mempool_t handle, int *error_out)
{
    sim_mempool_t *pool;

    *error_out = rmm__sim_enter_unsafe(call);
    if (*error_out != RMM_DRIVER_OK) {
        return NULL;
    }
    pool = rmm__sim_mempool_find_locked(handle, call, error_out);
    if (pool == NULL) {
        rmm__sim_leave();
    }
    return pool;
}

int rmm__sim_mempool_get_threshold(rmm_driver_mempool_t handle, uint64_t *bytes)
{
    int error;
    sim_mempool_t *pool = enter_pool("mempool_get_threshold", handle, &error);

    if (pool != NULL) {
        *bytes = pool->threshold;
        rmm__sim_leave();
    }
    return error;
}

int rmm__sim_mempool_set_threshold(rmm_driver_mempool_t handle, uint64_t bytes)
{
    int error;
    sim_mempool_t *pool = enter_pool("mempool_set_threshold", handle, &error);

    if (pool != NULL) {
        pool->threshold = bytes;
        rmm__sim_leave();
    }
    return error;
}

int rmm__sim_mempool_figures(
    rmm_driver_mempool_t handle, rmm_driver_mempool_figures_t *figures)
{
    int error;
    sim_mempool_t *pool = enter_pool("mempool_figures", handle, &error);

    if (pool != NULL) {
        *figures = (rmm_driver_mempool_figures_t){
            .reserved_bytes = pool->reserved_bytes, .used_bytes = pool->used_bytes};
        rmm__sim_leave();
    }
    return error;
}
