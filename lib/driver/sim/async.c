/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory in stream order. An address is known at the call; the memory behind it is the
 * program's from the moment when the allocation runs in its stream until the free does.
 * Both poison it then. So work that is ordered after the free sees the poison of the
 * free, work on another stream that does not wait for the allocation loses its data to
 * the poison of that, and work that runs before the free sees what it should.
 *
 * A freed block may be handed out again
 *  - to the same stream at once: the new allocation comes after the free;
 *  - to others when the free has run.
 * CUDA may do more, along events; a program may not rely on that.
 *
 * In a capture both become nodes of the graph. The graph owns the memory: its address is
 * the same at every launch, and it goes back to the device when the graph can no longer be
 * launched. Only memory of the same capture can be freed in it.
 *
 * A block lives while the table or a task refers to it.
 *
 * Locking: all under rmm__sim_lock.
 */
#include "driver/sim/mempool.h"

#include <stdlib.h>

#include "core/assert.h"

#define BUCKETS 4096u
#define ALIGN UINT64_C(512)
#define WASTE_MAX 2u /* a freed block is used again for one of half its size or more */

struct sim_async_block {
    sim_async_block_t *next; /* in its bucket */
    sim_async_block_t *next_pending;
    uint32_t references;
    sim_mempool_t *pool; /* NULL: a graph's */
    sim_piece_t piece;   /* of the pool; a graph's has no segment */
    uint64_t capture_id; /* a graph's: which capture made it; a pool's: 0 */
    uint32_t access; /* a graph's: other devices that may use it, as of the pool then */
    sim_stream_t *freed_on; /* while pending: alive, as its work has not run */
    bool has_run;           /* the allocation; a graph's: and no free since */
    bool is_taken;          /* handed out again before the free ran */
};

static sim_async_block_t *buckets[BUCKETS];

static sim_async_block_t **bucket_of(const void *ptr)
{
    return &buckets[(uintptr_t)ptr / ALIGN % BUCKETS];
}

/* With a reference, which passes to the table. */
static void table_add(sim_async_block_t *block)
{
    sim_async_block_t **bucket = bucket_of(block->piece.begin);

    block->next = *bucket;
    *bucket = block;
}

static sim_async_block_t *table_find(const void *ptr)
{
    sim_async_block_t *block = *bucket_of(ptr);

    while (block != NULL && block->piece.begin != ptr) {
        block = block->next;
    }
    return block;
}

static void block_drop(sim_async_block_t *block)
{
    if (--block->references == 0) {
        free(block);
    }
}

/* The table's reference passes to the caller. */
static void table_remove(sim_async_block_t *block)
{
    sim_async_block_t **link = bucket_of(block->piece.begin);

    while (*link != block) {
        link = &(*link)->next;
    }
    *link = block->next;
}

static void pending_remove(sim_async_block_t *block)
{
    sim_async_block_t **link = &block->pool->pending;

    while (*link != block) {
        link = &(*link)->next_pending;
    }
    *link = block->next_pending;
}

/* ---- what runs in the stream ---- */

static void run_alloc(void *object)
{
    sim_async_block_t *block = object;

    if (block->has_run && block->pool == NULL) { /* a pool's runs once */
        rmm__sim_violation_locked(
            "graph_launch: the graph runs again, but its allocation at %p has not been "
            "freed since the last launch",
            (void *)block->piece.begin);
    }
    block->has_run = true;
    rmm__sim_poison_locked(
        block->piece.begin, block->piece.bytes, RMM_SIM_POISON_ALLOC);
}

static void run_free(void *object)
{
    sim_async_block_t *block = object;

    if (!block->has_run) {
        rmm__sim_violation_locked(
            "mempool_free: the free of %p ran before its allocation: freed twice, or "
            "on a stream that does not wait for the allocation",
            (void *)block->piece.begin);
    }
    block->has_run = block->pool != NULL;
    rmm__sim_managed_forget_locked(block->piece.begin, block->piece.bytes);
    rmm__sim_poison_locked(block->piece.begin, block->piece.bytes, RMM_SIM_POISON_FREE);
    if (block->pool != NULL && !block->is_taken) {
        pending_remove(block);
        rmm__sim_mempool_give_locked(block->pool, &block->piece);
    }
}

/* The last task of a graph's block is gone: so is the graph, and all its launches ran.
 * Memory that the program has not freed stays until it does. */
static void graph_block_settle(sim_async_block_t *block)
{
    if (block->references == 1 && !block->has_run) {
        rmm__sim_memory_give_locked(block->piece.begin);
        table_remove(block);
        block_drop(block);
    }
}

static void drop(void *object)
{
    sim_async_block_t *block = object;

    RMM_ASSERT(block->references > 0);
    if (block->pool == NULL) {
        block->references--;
        graph_block_settle(block);
    } else {
        block_drop(block);
    }
}

static int
submit(sim_stream_t *stream, sim_async_block_t *block, void (*run)(void *object))
{
    sim_task_t *task = rmm__sim_task_call(run, drop, block);
    bool capturing;
    int error;

    if (task == NULL) {
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    block->references++;
    error = rmm__sim_submit_locked(stream, task, &capturing);
    rmm__sim_task_release_locked(task);
    return error;
}

/* ---- allocation ---- */

static sim_async_block_t *block_create(sim_mempool_t *pool, const sim_piece_t *piece)
{
    sim_async_block_t *block = calloc(1, sizeof(*block));

    if (block != NULL) {
        block->pool = pool;
        block->piece = *piece;
        block->references = 1;
        table_add(block);
    }
    return block;
}

/* The smallest block that fits, freed on this stream by work that has not run. */
static sim_async_block_t *
pending_find(const sim_mempool_t *pool, const sim_stream_t *stream, uint64_t bytes)
{
    sim_async_block_t *best = NULL;

    for (sim_async_block_t *block = pool->pending; block != NULL;
         block = block->next_pending) {
        if (block->freed_on == stream && block->piece.bytes >= bytes &&
            block->piece.bytes / WASTE_MAX <= bytes &&
            (best == NULL || block->piece.bytes < best->piece.bytes)) {
            best = block;
        }
    }
    return best;
}

static int
alloc_locked(sim_mempool_t *pool, sim_stream_t *stream, uint64_t bytes, void **ptr_out)
{
    sim_async_block_t *again = pending_find(pool, stream, bytes);
    int error = rmm__sim_capture_forbids_locked();
    sim_async_block_t *block;
    sim_piece_t piece;

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    if (again != NULL) {
        piece = again->piece;
    } else {
        error = rmm__sim_mempool_take_locked(pool, bytes, &piece);
    }
    if (error != RMM_DRIVER_OK) {
        return error;
    }
    block = block_create(pool, &piece);
    if (again != NULL && block != NULL) {
        again->is_taken = true;
        pending_remove(again);
    }
    error =
        block != NULL ? submit(stream, block, run_alloc) : RMM_DRIVER_MEMORY_ALLOCATION;
    if (error == RMM_DRIVER_OK) {
        pool->used_bytes += piece.bytes;
        *ptr_out = piece.begin;
        return RMM_DRIVER_OK;
    }
    if (again == NULL) {
        rmm__sim_mempool_give_locked(pool, &piece);
    } else if (block != NULL) {
        again->is_taken = false;
        again->next_pending = pool->pending;
        pool->pending = again;
    }
    if (block != NULL) {
        table_remove(block);
        block_drop(block);
    }
    return error;
}

/* An allocation in a capture: memory of the graph's own. */
static int graph_alloc_locked(
    const sim_mempool_t *pool, sim_stream_t *stream, uint64_t bytes, void **ptr_out)
{
    sim_async_block_t *block = calloc(1, sizeof(*block));
    int error = RMM_DRIVER_MEMORY_ALLOCATION;

    if (block != NULL) {
        error = rmm__sim_memory_take_locked(
            sim_mempool_place(pool), bytes, SIM_USE_GRAPH, &block->piece.begin);
    }
    if (error != RMM_DRIVER_OK) {
        free(block);
        return error;
    }
    block->piece.bytes = bytes;
    block->capture_id = rmm__sim_capture_id_locked(stream);
    block->access = pool->access;
    block->references = 2;
    table_add(block);
    error = submit(stream, block, run_alloc);
    if (error == RMM_DRIVER_OK) {
        *ptr_out = block->piece.begin;
    }
    drop(block); /* refused: the last reference but the table's */
    return error;
}

int rmm__sim_mempool_alloc(
    rmm_driver_mempool_t handle, void **ptr_out, size_t bytes,
    rmm_stream_t stream_handle)
{
    int error;
    sim_stream_t *stream =
        rmm__sim_enter_stream(stream_handle, "mempool_alloc", &error);
    sim_mempool_t *pool;

    if (stream == NULL) {
        return error;
    }
    pool = rmm__sim_mempool_find_locked(handle, "mempool_alloc", &error);
    if (pool != NULL && bytes == 0) {
        *ptr_out = NULL;
    } else if (
        pool != NULL && stream->capture != NULL && pool->node != RMM_DRIVER_ON_DEVICE) {
        error = RMM_DRIVER_NOT_SUPPORTED; /* as CUDA: 801, and the capture goes on */
    } else if (pool != NULL && stream->capture != NULL) {
        error = graph_alloc_locked(pool, stream, bytes, ptr_out);
    } else if (pool != NULL) {
        error = alloc_locked(pool, stream, bytes, ptr_out);
    }
    rmm__sim_leave();
    return error;
}

/* ---- free ---- */

/* A pool's block, by work of a stream. */
static int free_locked(sim_async_block_t *block, sim_stream_t *stream)
{
    sim_mempool_t *pool = block->pool;
    uint64_t bytes = block->piece.bytes;
    int error = rmm__sim_capture_forbids_locked();

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    block->freed_on = stream;
    block->next_pending = pool->pending;
    pool->pending = block;
    pool->used_bytes -= bytes;
    table_remove(block);
    error = submit(stream, block, run_free);
    if (error == RMM_DRIVER_OK) { /* it may have run in there, and the pool be gone */
        block_drop(block);
    } else {
        pending_remove(block);
        pool->used_bytes += bytes;
        table_add(block);
    }
    return error;
}

sim_mempool_t *rmm__sim_async_find_locked(const void *ptr, sim_piece_t *piece_out)
{
    const sim_async_block_t *block = table_find(ptr);

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    if (block == NULL || block->pool == NULL) {
        return NULL;
    }
    *piece_out = block->piece;
    return block->pool;
}

static int refuse_free(const char *call, const void *ptr)
{
    rmm__sim_violation_locked(
        "%s: no allocation of a memory pool begins at %p: freed twice?", call, ptr);
    return RMM_DRIVER_INVALID_VALUE;
}

static int free_checked_locked(void *ptr, sim_stream_t *stream)
{
    sim_async_block_t *block = table_find(ptr);

    if (block == NULL && rmm__sim_mempool_end_import_locked(ptr)) {
        return RMM_DRIVER_OK;
    }
    if (block == NULL) {
        return refuse_free("mempool_free", ptr);
    }
    if (stream->capture != NULL &&
        block->capture_id != rmm__sim_capture_id_locked(stream)) {
        return RMM_DRIVER_INVALID_VALUE;
    }
    if (block->pool == NULL) {
        return submit(stream, block, run_free);
    }
    return free_locked(block, stream);
}

int rmm__sim_mempool_free(void *ptr, rmm_stream_t handle)
{
    int error;
    sim_stream_t *stream = rmm__sim_enter_stream(handle, "mempool_free", &error);

    if (stream == NULL) {
        return error;
    }
    if (ptr != NULL) {
        error = free_checked_locked(ptr, stream);
    }
    rmm__sim_leave();
    return error;
}

uint32_t rmm__sim_async_access_locked(const char *begin)
{
    const sim_async_block_t *block = table_find(begin);

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    return block != NULL ? block->access : 0;
}

/* mem_free() of such memory, which waits for nothing: only an allocation that has not run does. */
int rmm__sim_async_free_now_locked(void *ptr, int device)
{
    sim_async_block_t *block = table_find(ptr);

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    if (block != NULL &&
        !block->has_run) { /* what is queued may use the block before it */
        rmm__sim_finish_device_locked(device);
        block = table_find(ptr);
    }
    if (block != NULL &&
        rmm__sim_queue_uses_locked(block->piece.begin, block->piece.bytes)) {
        rmm__sim_violation_locked(
            "mem_free: a queued copy or fill uses %p, which is memory of a pool: wait "
            "for it first",
            ptr);
    }
    if (block == NULL) {
        return refuse_free("mem_free", ptr);
    }
    if (block->pool == NULL) {
        run_free(block);
        graph_block_settle(block);
        return RMM_DRIVER_OK;
    }
    table_remove(block);
    block->pool->unseen_bytes += block->piece.bytes; /* CUDA counts it for a while */
    block->freed_on = NULL;
    block->next_pending = block->pool->pending;
    block->pool->pending = block;
    run_free(block);
    block_drop(block);
    return RMM_DRIVER_OK;
}
