/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA's memory pools that resources use, and the bytes that each holds: see mempool.h.
 *
 * A thread that queries the driver writes the answer with an exchange and counts the
 * difference at the location. So the location has the sum of the last answers, even if
 * several threads query at once.
 *
 * The lists of kept blocks have no lock: a thread adds one block, or takes all.
 *
 * Locking: `pools_lock` protects the list and the references. A forked child begins
 * with an empty list: the pools in it belong to the parent's driver.
 */
#include "resources/mempool.h"

#include "core/assert.h"
#include "core/fork.h"
#include "core/host_memory.h"
#include "log/log.h"

static rmm_mutex_t pools_lock = RMM_MUTEX_INITIALIZER;
static rmm_mempool_t *pools;

static void forget_in_child(void)
{
    pools_lock = (rmm_mutex_t)RMM_MUTEX_INITIALIZER;
    pools = NULL;
}

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_MEMPOOLS, NULL, forget_in_child);
}

static rmm_mempool_t *find_locked(rmm_driver_mempool_t handle)
{
    RMM_ASSERT_LOCKED(&pools_lock);
    for (rmm_mempool_t *pool = pools; pool != NULL; pool = pool->next) {
        if (pool->handle == handle) {
            return pool;
        }
    }
    return NULL;
}

/* Returns the pool that is in the list already, with one more reference; otherwise adds `fresh`. */
static rmm_mempool_t *join(rmm_mempool_t *fresh)
{
    rmm_mempool_t *pool;

    rmm__mutex_lock(&pools_lock);
    pool = find_locked(fresh->handle);
    if (pool == NULL) {
        pool = fresh;
        pool->next = pools;
        pools = pool;
    }
    pool->end = fresh->end > pool->end ? fresh->end : pool->end;
    pool->references++;
    rmm__mutex_unlock(&pools_lock);
    return pool;
}

/* Drops a reference. True: it was the last one, and the pool was removed from the list. */
static bool leave(rmm_mempool_t *pool)
{
    rmm_mempool_t **link = &pools;
    bool is_last;

    rmm__mutex_lock(&pools_lock);
    is_last = --pool->references == 0;
    if (is_last) {
        while (*link != pool) {
            link = &(*link)->next;
        }
        *link = pool->next;
    }
    rmm__mutex_unlock(&pools_lock);
    return is_last;
}

rmm_status_t rmm__mempool_open(const rmm_mempool_plan_t *plan, rmm_mempool_t **pool_out)
{
    rmm_mempool_t *fresh = rmm__calloc(1, sizeof(*fresh));
    rmm_mempool_t *pool;

    if (fresh == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    fresh->driver = plan->driver;
    fresh->handle = plan->handle;
    fresh->device = plan->device;
    fresh->location =
        plan->in_host_memory ? RMM_SEGMENT_HOST_LOCATION : (uint32_t)plan->device;
    fresh->end = plan->end;
    pool = join(fresh);
    if (pool != fresh) {
        rmm__free(fresh);
    }
    if (plan->keeps_barrier) {
        rmm__mempool_keep_barrier(pool);
    }
    *pool_out = pool;
    return RMM_OK;
}

/* --- peers ------------------------------------------------------------------------- */

static int share_singly(
    const rmm_driver_t *driver, uint32_t peers, rmm_driver_mempool_t pool,
    uint32_t *shut_out)
{
    int last_error = RMM_DRIVER_OK;

    *shut_out = 0;
    for (int device = 0; device < RMM_DRIVER_SET_DEVICES; device++) {
        uint32_t peer = peers & RMM_DRIVER_DEVICE(device);
        int error = peer != 0 ? driver->mempool_access(pool, peer) : RMM_DRIVER_OK;

        if (error != RMM_DRIVER_OK) {
            *shut_out |= peer;
            last_error = error;
        }
    }
    return last_error;
}

static void let_in(
    const rmm_driver_t *driver, int device, uint32_t peers, rmm_driver_mempool_t pool)
{
    uint32_t shut_out;
    int error;

    if (peers == 0 || driver->mempool_access(pool, peers) == RMM_DRIVER_OK) {
        return;
    }
    error = share_singly(driver, peers, pool, &shut_out);
    if (shut_out != 0) {
        rmm__driver_warn_shut_out("a memory pool", driver, device, shut_out, error);
    }
}

void rmm__mempool_share(
    const rmm_driver_t *driver, int device, rmm_driver_mempool_t pool)
{
    let_in(driver, device, rmm__driver_peers(driver, device), pool);
}

void rmm__mempool_share_host(
    const rmm_driver_t *driver, int device, rmm_driver_mempool_t pool)
{
    uint32_t others = 0;
    int count = 0;

    (void)driver->device_count(&count);
    for (int other = 0; other < count && other < RMM_DRIVER_SET_DEVICES; other++) {
        others |= other != device ? RMM_DRIVER_DEVICE(other) : 0;
    }
    let_in(driver, device, others, pool);
}

/* --- the block for barriers -------------------------------------------------------- */

void rmm__mempool_keep_barrier(rmm_mempool_t *pool)
{
    if (!atomic_load_explicit(&pool->keeps_barrier, memory_order_relaxed) &&
        !atomic_exchange_explicit(&pool->keeps_barrier, true, memory_order_relaxed)) {
        rmm__driver_barrier_keep(pool->driver, pool->device);
    }
}

/* --- kept blocks -------------------------------------------------------------------- */

static void add_kept(_Atomic(rmm_mempool_kept_t *) *list, rmm_mempool_kept_t *block)
{
    block->next = atomic_load_explicit(list, memory_order_relaxed);
    /* release: pairs with the acquire of the thread that takes the list */
    while (!atomic_compare_exchange_weak_explicit(
        list, &block->next, block, memory_order_release, memory_order_relaxed)) {
    }
}

bool rmm__mempool_keep(rmm_mempool_t *pool, void *ptr, size_t bytes, bool to_end)
{
    rmm_mempool_kept_t *block = rmm__calloc(1, sizeof(*block));

    if (block == NULL) {
        return false;
    }
    block->ptr = ptr;
    block->bytes = bytes;
    add_kept(to_end ? &pool->kept_to_end : &pool->kept, block);
    return true;
}

/* The pool ends: no graph uses its memory any more, and no other thread uses the lists. */
static void keep_no_longer(rmm_mempool_t *pool)
{
    rmm_mempool_kept_t *block =
        atomic_exchange_explicit(&pool->kept_to_end, NULL, memory_order_acquire);

    while (block != NULL) {
        rmm_mempool_kept_t *next = block->next;

        add_kept(&pool->kept, block);
        block = next;
    }
}

static bool has_kept(const rmm_mempool_t *pool)
{
    return atomic_load_explicit(&pool->kept, memory_order_relaxed) != NULL;
}

static rmm_mempool_kept_t *take_kept(rmm_mempool_t *pool)
{
    /* acquire: pairs with add_kept() */
    return has_kept(pool)
               ? atomic_exchange_explicit(&pool->kept, NULL, memory_order_acquire)
               : NULL;
}

void rmm__mempool_log_free(
    const rmm_mempool_t *pool, const void *ptr, size_t bytes, int error)
{
    if (error != RMM_DRIVER_OK && error != RMM_DRIVER_UNLOADING) {
        rmm__log_error(
            "device %d: cudaFreeAsync of %p bytes %zu failed: %s (%d)", pool->device,
            ptr, bytes, pool->driver->error_name(error), error);
    }
}

void rmm__mempool_free_kept(rmm_mempool_t *pool, rmm_stream_t stream)
{
    rmm_mempool_kept_t *block = take_kept(pool);

    while (block != NULL) {
        rmm_mempool_kept_t *next = block->next;
        int error = pool->driver->mempool_free(block->ptr, stream);

        rmm__mempool_log_free(pool, block->ptr, block->bytes, error);
        rmm__free(block);
        block = next;
    }
}

/* The pool ends, and its device could not be waited for. */
static void forget_kept(rmm_mempool_t *pool)
{
    rmm_mempool_kept_t *block = take_kept(pool);

    while (block != NULL) {
        rmm_mempool_kept_t *next = block->next;

        rmm__log_error(
            "device %d: %p stays allocated from its memory pool: the device could not "
            "be made current",
            pool->device, block->ptr);
        rmm__free(block);
        block = next;
    }
}

/* --- the end of a pool -------------------------------------------------------------- */

/*
 * The barrier waits for the work. But a pool releases memory only after a synchronisation has seen
 * the free complete, and a cudaFree does not count as a synchronisation. One of any stream does, so
 * this synchronises an idle stream, which is part of no capture.
 */
int rmm__mempool_see_frees(rmm_mempool_t *pool)
{
    const rmm_driver_t *driver = pool->driver;
    int error = rmm__driver_barrier(driver);
    rmm_stream_t stream;

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    error = driver->stream_create(RMM_STREAM_NON_BLOCKING, &stream);
    if (error == RMM_DRIVER_OK) {
        rmm__mempool_free_kept(pool, stream);
        error = driver->stream_synchronize(stream);
        (void)driver->stream_destroy(stream);
    }
    return error;
}

bool rmm__mempool_wait(rmm_mempool_t *pool, rmm_stream_t stream)
{
    const rmm_driver_t *driver = pool->driver;
    rmm_driver_scope_t scope;
    int error;

    if (rmm__driver_scope_enter(&scope, driver, pool->device) != RMM_OK) {
        return false;
    }
    error = rmm__mempool_see_frees(pool);
    if (error == RMM_DRIVER_OK && rmm_stream_is_default(stream)) {
        (void)rmm__driver_wait_default_stream(pool->device);
    } else if (error == RMM_DRIVER_OK) {
        /* by the barrier its work is over; this shows CUDA the frees */
        error = rmm__driver_wait_before_free(driver, stream);
    }
    if (error == RMM_DRIVER_OK) {
        error = driver->mempool_trim(pool->handle, 0);
    }
    rmm__driver_scope_leave(&scope);
    return error == RMM_DRIVER_OK;
}

/* A pool of the program's gets back what was kept, and is otherwise left as it is. */
static void leave_pool(rmm_mempool_t *pool)
{
    rmm_driver_scope_t scope;

    if (has_kept(pool) &&
        rmm__driver_scope_enter(&scope, pool->driver, pool->device) == RMM_OK) {
        (void)rmm__mempool_see_frees(pool);
        rmm__driver_scope_leave(&scope);
    }
}

static void end_pool(rmm_mempool_t *pool)
{
    const rmm_driver_t *driver = pool->driver;
    bool destroys = pool->end == RMM_MEMPOOL_DESTROY;
    rmm_driver_scope_t scope;
    int error;

    if (rmm__driver_scope_enter(&scope, driver, pool->device) == RMM_OK) {
        /* so that the pool can release everything that was freed */
        (void)rmm__mempool_see_frees(pool);
        error = destroys ? driver->mempool_destroy(pool->handle)
                         : driver->mempool_trim(pool->handle, 0);
        rmm__driver_scope_leave(&scope);
    } else {
        error = rmm_last_cuda_error();
    }
    if (error != RMM_DRIVER_OK && error != RMM_DRIVER_UNLOADING) {
        rmm__log_error(
            "device %d: %s of %p failed: %s (%d)", pool->device,
            destroys ? "cudaMemPoolDestroy" : "cudaMemPoolTrimTo", (void *)pool->handle,
            driver->error_name(error), error);
    }
}

void rmm__mempool_close(rmm_mempool_t *pool, bool keep_native)
{
    uint64_t reserved;

    if (!leave(pool)) {
        return;
    }
    reserved = atomic_exchange_explicit(&pool->reserved_bytes, 0, memory_order_relaxed);
    if (reserved != 0) {
        rmm__location_unreserve(pool->location, reserved);
    }
    keep_no_longer(pool);
    if (!keep_native && pool->end != RMM_MEMPOOL_LEAVE) {
        end_pool(pool);
    } else {
        leave_pool(pool);
    }
    forget_kept(pool);
    if (atomic_load_explicit(&pool->keeps_barrier, memory_order_relaxed)) {
        rmm__driver_barrier_drop(pool->driver, pool->device);
    }
    rmm__free(pool);
}

int rmm__mempool_ask(rmm_mempool_t *pool, const rmm_accounting_t *accounting)
{
    rmm_driver_mempool_figures_t figures;
    int mode = RMM_CAPTURE_MODE_RELAXED;
    uint64_t before;
    int error = pool->driver->capture_mode_exchange(&mode);

    if (error == RMM_DRIVER_OK) {
        error = pool->driver->mempool_figures(pool->handle, &figures);
        pool->driver->capture_mode_exchange(&mode);
    }
    if (error != RMM_DRIVER_OK) {
        return error;
    }
    before = atomic_exchange_explicit(
        &pool->reserved_bytes, figures.reserved_bytes, memory_order_relaxed);
    /* if it fell, the unsigned difference wraps around and subtracts */
    rmm__location_reserve(pool->location, figures.reserved_bytes - before);
    RMM_ACCOUNTING_SET(accounting, reserved_bytes, figures.reserved_bytes);
    return RMM_DRIVER_OK;
}
