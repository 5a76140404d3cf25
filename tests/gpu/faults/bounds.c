/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls whose range leaves a block: one call on a block between two neighbours of the same size.
 * The twin's range is cut to the block. 1000 bytes leave padding behind them; behind 1024 the next
 * block of a pool may begin.
 */
#include <pthread.h>
#include <string.h>

#include "gpu/faults/faults.h"

enum { BLOCKS = 3 };

static void take_and_fill(scene_t *scene, void *blocks[BLOCKS], size_t bytes)
{
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = scene_take(scene, bytes, scene->a);
        gpu_call(GPU_SET, blocks[i], NULL, bytes, scene->a);
    }
    gpu_synchronize(); /* a call that the host waits for is on another stream */
    scene->culprit = blocks[1];
}

static void drop_all(const scene_t *scene, void *blocks[BLOCKS], size_t bytes)
{
    for (int i = 0; i < BLOCKS; i++) {
        scene_drop(scene, blocks[i], bytes, scene->a);
    }
}

/* Of the range, where it is in the block. */
static void
make_call(const scene_t *scene, const fault_t *fault, bool is_faulty, void *other)
{
    size_t length = fault->length;
    long offset = fault->offset;

    if (!is_faulty) {
        long end = offset + (long)length;

        offset = offset < 0 ? 0 : offset;
        end = end > (long)fault->bytes ? (long)fault->bytes : end;
        length = (size_t)(end - offset);
    }
    gpu_call(fault->call, (char *)scene->culprit + offset, other, length, scene->a);
}

static void one_call(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *blocks[BLOCKS];

    take_and_fill(scene, blocks, fault->bytes);
    make_call(scene, fault, is_faulty, scene->host);
    gpu_synchronize();
    drop_all(scene, blocks, fault->bytes);
}

/* Element n of n, of `length` bytes; the twin's is the last one. With guards the kernel behind it
 * is not to blame. */
static void one_element(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    enum { ROOM = 4096 };
    bool is_between = fault->call == GPU_COPY_PEER || fault->call == GPU_COPY_BETWEEN;
    size_t at = is_faulty ? (size_t)fault->offset : fault->bytes - fault->length;
    void *other = is_between ? scene_take(scene, ROOM, scene->a) : scene->host;
    void *blocks[BLOCKS];

    take_and_fill(scene, blocks, fault->bytes);
    gpu_call(fault->call, (char *)scene->culprit + at, other, fault->length, scene->a);
    gpu_launch(GPU_KERNEL_reduce, scene->culprit, NULL, scene->a);
    gpu_synchronize();
    drop_all(scene, blocks, fault->bytes);
    if (is_between) {
        scene_drop(scene, other, ROOM, scene->a);
    }
}

/* The other side is a block, too, with room for all. */
static void between_blocks(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *blocks[BLOCKS];
    size_t room = fault->length + GPU_PITCH;
    void *other = scene_take(scene, room, scene->a);

    gpu_call(GPU_SET, other, NULL, room, scene->a);
    take_and_fill(scene, blocks, fault->bytes);
    make_call(scene, fault, is_faulty, other);
    gpu_synchronize();
    drop_all(scene, blocks, fault->bytes);
    scene_drop(scene, other, room, scene->a);
}

/* A block of more than 4 GiB, of which only what the call touches is ever written. */
static void at_end_of_giant(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    enum { TAIL = 4096 };
    char *block = scene_take(scene, fault->bytes, scene->a);
    void *neighbour = scene_take(scene, TAIL, scene->a);

    gpu_call(GPU_SET, block + fault->bytes - TAIL, NULL, TAIL, scene->a);
    gpu_call(GPU_SET, neighbour, NULL, TAIL, scene->a);
    gpu_synchronize();
    scene->culprit = block;
    make_call(scene, fault, is_faulty, scene->host);
    gpu_synchronize();
    scene_drop(scene, block, fault->bytes, scene->a);
    scene_drop(scene, neighbour, TAIL, scene->a);
}

/* The memory was a larger block before, in which the range would be right. */
static void in_reused_memory(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    size_t larger = fault->bytes * 4;
    void *before = scene_take(scene, larger, scene->a);

    gpu_call(GPU_SET, before, NULL, larger, scene->a);
    scene_drop(scene, before, larger, scene->a);
    one_call(scene, fault, is_faulty);
}

/* Of no bytes, at the end and beyond: nothing is accessed. */
static void of_nothing(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *blocks[BLOCKS];

    (void)is_faulty;
    take_and_fill(scene, blocks, fault->bytes);
    for (size_t offset = 0; offset <= fault->bytes + 16; offset += 8) {
        gpu_call(GPU_SET, (char *)blocks[1] + offset, NULL, 0, scene->a);
        gpu_call(GPU_COPY_FROM, (char *)blocks[1] + offset, scene->host, 0, scene->a);
    }
    gpu_synchronize();
    drop_all(scene, blocks, fault->bytes);
}

static void in_capture(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *blocks[BLOCKS];

    take_and_fill(scene, blocks, fault->bytes);
    gpu_capture_begin(scene->a);
    make_call(scene, fault, is_faulty, scene->host);
    gpu_capture_end(scene->a, is_faulty ? 0 : 2, scene->a);
    gpu_synchronize();
    drop_all(scene, blocks, fault->bytes);
}

/* --- threads ---------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 200 };

typedef struct worker {
    pthread_t thread;
    scene_t scene; /* its own culprit */
    const fault_t *fault;
    bool is_faulty;
} worker_t;

static void *work(void *argument)
{
    worker_t *worker = argument;
    const fault_t *fault = worker->fault;

    for (size_t i = 0; i < ROUNDS; i++) {
        size_t bytes = 1 + i * 37 % 5000;
        void *block = scene_take(&worker->scene, bytes, RMM_STREAM_PER_THREAD);

        gpu_call(GPU_SET, block, NULL, bytes, RMM_STREAM_PER_THREAD);
        scene_drop(&worker->scene, block, bytes, RMM_STREAM_PER_THREAD);
    }
    one_call(&worker->scene, fault, worker->is_faulty);
    return NULL;
}

static void in_one_of_threads(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    worker_t workers[THREADS];

    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){
            .scene = *scene,
            .fault = fault,
            .is_faulty = is_faulty && i == THREADS / 2};
        workers[i].scene.a = RMM_STREAM_PER_THREAD;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            return;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    scene->culprit = workers[THREADS / 2].scene.culprit;
}

/* --- the table -------------------------------------------------------------------------- */

#define ALL "usage,bounds,order"
#define ROW(row_name, spec, how, accesses, by, size, at, many)                         \
    {                                                                                  \
        .name = row_name, .modes = ALL, .resource = spec, .plant = how,                \
        .kind = "out_of_bounds", .access = accesses, .call = by, .bytes = size,        \
        .offset = at, .length = many                                                   \
    }
#define WRITE(name, resource, plant, call, bytes, offset, length)                      \
    ROW(name, resource, plant, "write", call, bytes, offset, length)
#define READ(name, resource, plant, call, bytes, offset, length)                       \
    ROW(name, resource, plant, "read", call, bytes, offset, length)
#define POOL "pool:64MiB"
#define GIANT 5000000000

static const fault_t faults[] = {
    WRITE("pool_fill_1_into_padding", POOL, one_call, GPU_SET, 1000, 0, 1001),
    WRITE("pool_fill_into_neighbour", POOL, one_call, GPU_SET, 1024, 1000, 100),
    WRITE("pool_fill_over_neighbours", POOL, one_call, GPU_SET, 1024, 0, 3072),
    WRITE("pool_fill_before_begin", POOL, one_call, GPU_SET, 1000, -8, 16),
    WRITE("pool_fill_around", POOL, one_call, GPU_SET, 1000, -8, 1016),
    WRITE("pool_copy_to_1_past", POOL, one_call, GPU_COPY_TO, 1000, 1, 1000),
    WRITE("pool_copy_to_last_word", POOL, one_call, GPU_COPY_TO, 1000, 996, 8),
    READ("pool_copy_from_1_past", POOL, one_call, GPU_COPY_FROM, 1000, 0, 1001),
    READ("pool_copy_from_neighbour", POOL, one_call, GPU_COPY_FROM, 1024, 512, 1024),
    READ("pool_copy_from_before", POOL, one_call, GPU_COPY_FROM, 1000, -4, 8),
    READ("pool_copy_between", POOL, between_blocks, GPU_COPY_FROM, 1000, 0, 1024),
    WRITE("pool_copy_between_to", POOL, between_blocks, GPU_COPY_TO, 4096, 96, 4096),
    WRITE("pool_byte_fill_2", POOL, one_call, GPU_SET, 1, 0, 2),
    READ("pool_byte_copy_from_256", POOL, one_call, GPU_COPY_FROM, 1, 0, 256),
    WRITE(
        "pool_huge_fill_1_past", "pool:192MiB", one_call, GPU_SET, 50000000, 0,
        50000001),
    READ(
        "pool_huge_copy_from_past", "pool:192MiB", one_call, GPU_COPY_FROM, 50000000,
        49999000, 2000),
    WRITE(
        "pool_giant_fill_1_past", "pool:6GiB", at_end_of_giant, GPU_SET, GIANT,
        GIANT - 1000, 1001),
    READ(
        "pool_giant_copy_from_past", "pool:6GiB", at_end_of_giant, GPU_COPY_FROM, GIANT,
        GIANT - 8, 16),
    READ(
        "virtual_giant_copy_from_past", "pool_virtual:6GiB", at_end_of_giant,
        GPU_COPY_FROM, GIANT, GIANT - 64, 65),
    WRITE(
        "cuda_giant_copy_to_past", "cuda", at_end_of_giant, GPU_COPY_TO, GIANT,
        GIANT - 1000, 1001),
    WRITE("pool_reused_fill", POOL, in_reused_memory, GPU_SET, 1000, 0, 4000),
    READ("pool_reused_copy", POOL, in_reused_memory, GPU_COPY_FROM, 1000, 0, 1008),
    WRITE("pool_captured_fill", POOL, in_capture, GPU_SET, 1000, 0, 1001),
    READ("pool_captured_copy", POOL, in_capture, GPU_COPY_FROM, 1000, 1, 1000),
    WRITE("pool_threads_fill", POOL, in_one_of_threads, GPU_SET, 1000, 0, 1001),
    WRITE(
        "virtual_fill_1_past", "pool_virtual:64MiB", one_call, GPU_SET, 1000, 0, 1001),
    READ(
        "virtual_copy_from_past", "pool_virtual:64MiB", one_call, GPU_COPY_FROM, 4096,
        96, 4096),
    WRITE(
        "virtual_huge_fill_1_past", "pool_virtual:192MiB", one_call, GPU_SET, 50000000,
        0, 50000001),
    WRITE(
        "virtual_threads_fill", "pool_virtual:64MiB", in_one_of_threads, GPU_SET, 1000,
        0, 1001),
    WRITE("arena_fill_1_past", "arena:64MiB", one_call, GPU_SET, 1000, 0, 1001),
    READ("arena_copy_from_before", "arena:64MiB", one_call, GPU_COPY_FROM, 1000, -1, 2),
    WRITE(
        "arena_threads_fill", "arena:64MiB", in_one_of_threads, GPU_SET, 1000, 0, 1001),
    WRITE("arena_byte_fill_2", "arena:64MiB", one_call, GPU_SET, 1, 0, 2),
    WRITE("fixed_byte_fill_before", "fixed_size:1KiB", one_call, GPU_SET, 1, -1, 2),
    READ("cuda_byte_copy_from_2", "cuda", one_call, GPU_COPY_FROM, 1, 0, 2),
    WRITE("fixed_fill_1_past", "fixed_size:1KiB", one_call, GPU_SET, 1000, 0, 1001),
    READ(
        "fixed_copy_from_neighbour", "fixed_size:1KiB", one_call, GPU_COPY_FROM, 1024,
        1000, 48),
    WRITE("binning_fill_1_past", "binning:64MiB", one_call, GPU_SET, 1000, 0, 1001),
    WRITE(
        "binning_large_copy_to_past", "binning:64MiB", one_call, GPU_COPY_TO, 30000, 0,
        30001),
    WRITE("async_fill_1_past", "async:64MiB", one_call, GPU_SET, 1000, 0, 1001),
    READ(
        "async_copy_from_past", "async:64MiB", one_call, GPU_COPY_FROM, 1000, 500, 501),
    WRITE("async_copy_to_past", "async:64MiB", one_call, GPU_COPY_TO, 1000, 500, 501),
    WRITE("pinned_copy_to_past", "pinned", one_call, GPU_COPY_TO, 1000, 0, 1001),
    READ("pinned_copy_from_past", "pinned", one_call, GPU_COPY_FROM, 1000, 8, 993),
    WRITE(
        "pinned_pool_copy_to_past", "pool_pinned:1MiB", one_call, GPU_COPY_TO, 1000,
        500, 501),
    {.name = "pool_of_nothing",
     .modes = ALL,
     .resource = POOL,
     .plant = of_nothing,
     .bytes = 1000},
    WRITE("cuda_fill_1_past", "cuda", one_call, GPU_SET, 1000, 0, 1001),
    WRITE("cuda_copy_to_past", "cuda", one_call, GPU_COPY_TO, 1000, 0, 1016),
    READ("cuda_copy_between", "cuda", between_blocks, GPU_COPY_FROM, 1000, 0, 1001),
    WRITE("managed_fill_1_past", "managed", one_call, GPU_SET, 1000, 0, 1001),
    READ("managed_copy_from_past", "managed", one_call, GPU_COPY_FROM, 1000, 8, 993),
    READ("managed_prefetch_past", "managed", one_call, GPU_PREFETCH, 4096, 0, 4097),
    READ(
        "managed_pool_prefetch_neighbour", "pool_managed:64MiB", one_call, GPU_PREFETCH,
        4096, 4000, 200),
    WRITE(
        "adaptors_fill_1_past", "statistics+tracking+pool:64MiB", one_call, GPU_SET,
        1000, 0, 1001),
    READ(
        "aligned_copy_from_past", "aligned:4KiB+pool:64MiB", one_call, GPU_COPY_FROM,
        1000, 0, 1001),
    WRITE("pool_fill_by_library", POOL, one_call, GPU_SET_BY_LIBRARY, 1000, 0, 1001),
    WRITE("pool_fill_sync", POOL, one_call, GPU_SET_SYNC, 1000, 0, 1001),
    WRITE("pool_fill_rows", POOL, one_call, GPU_SET_ROWS, 1000, 0, 1001),
    WRITE("pool_copy_sync_to", POOL, one_call, GPU_COPY_SYNC_TO, 1000, 0, 1001),
    READ("pool_copy_sync_from", POOL, one_call, GPU_COPY_SYNC_FROM, 1000, 0, 1001),
    READ("pool_copy_sync_any", POOL, one_call, GPU_COPY_SYNC_ANY, 1000, 0, 1001),
    WRITE("pool_copy_host_to", POOL, one_call, GPU_COPY_HOST_TO, 1000, 96, 905),
    READ("pool_copy_host_from", POOL, one_call, GPU_COPY_HOST_FROM, 1000, 0, 1001),
    READ(
        "pool_copy_between_gpu", POOL, between_blocks, GPU_COPY_BETWEEN, 1000, 1, 1000),
    READ("pool_copy_peer", POOL, between_blocks, GPU_COPY_PEER, 1000, 1, 1000),
    WRITE("pool_copy_rows_to", POOL, one_call, GPU_COPY_ROWS_TO, 1000, 1, 1000),
    READ("pool_copy_rows_from", POOL, one_call, GPU_COPY_ROWS_FROM, 1000, 0, 1001),
    READ("pool_copy_box_from", POOL, one_call, GPU_COPY_BOX_FROM, 1000, 0, 1001),
    READ("pool_copy_batch_from", POOL, one_call, GPU_COPY_BATCH_FROM, 1000, 0, 1001),
    WRITE("pool_copy_batch_to", POOL, one_call, GPU_COPY_BATCH_TO, 1000, 0, 1001),
    READ("pool_copy_boxes_from", POOL, one_call, GPU_COPY_BOXES_FROM, 1000, 0, 1001),
    WRITE("pool_copy_box_to", POOL, one_call, GPU_COPY_BOX_TO, 1000, 1, 1000),
    READ("pool_copy_array_from", POOL, one_call, GPU_COPY_ARRAY_FROM, 1000, 0, 1001),
    READ(
        "pool_copy_peer_sync", POOL, between_blocks, GPU_COPY_PEER_SYNC, 1000, 1, 1000),
    WRITE("pool_fill_rows_async", POOL, one_call, GPU_SET_ROWS_ASYNC, 1000, 0, 1001),
    WRITE(
        "arena_fill_rows_into_neighbour", "arena:64MiB", one_call, GPU_SET_ROWS_ASYNC,
        1024, 128, 1000),
    READ(
        "managed_prefetch_batch", "managed", one_call, GPU_PREFETCH_BATCH, 4096, 0,
        4097),
    WRITE("pool_element_behind", POOL, one_element, GPU_SET, 1000, 1000, 8),
    WRITE("pool_element_behind_copy_to", POOL, one_element, GPU_COPY_TO, 1000, 1000, 8),
    READ(
        "pool_element_behind_copy_from", POOL, one_element, GPU_COPY_FROM, 1000, 1000,
        8),
    WRITE("pool_last_byte_of_padding", POOL, one_element, GPU_SET, 1000, 1023, 1),
    WRITE("pool_element_behind_sync", POOL, one_element, GPU_SET_SYNC, 1000, 1000, 8),
    WRITE(
        "pool_element_behind_copy_sync", POOL, one_element, GPU_COPY_SYNC_TO, 1000,
        1000, 8),
    WRITE(
        "pool_element_behind_copy_host", POOL, one_element, GPU_COPY_HOST_TO, 1000,
        1000, 8),
    READ("pool_element_behind_peer", POOL, one_element, GPU_COPY_PEER, 1000, 1000, 8),
    READ(
        "pool_element_behind_between", POOL, one_element, GPU_COPY_BETWEEN, 1000, 1000,
        8),
    WRITE(
        "pool_element_behind_by_library", POOL, one_element, GPU_SET_BY_LIBRARY, 1000,
        1000, 8),
    WRITE("pool_element_behind_node", POOL, one_element, GPU_SET_NODE, 1000, 1000, 8),
    READ(
        "pool_element_behind_copy_node", POOL, one_element, GPU_COPY_NODE_FROM, 1000,
        1000, 8),
    WRITE("pool_row_behind", POOL, one_element, GPU_SET_ROWS_ASYNC, 4000, 4000, 1000),
    WRITE("pool_box_behind", POOL, one_element, GPU_COPY_BOX_TO, 4000, 4000, 1000),
    WRITE(
        "virtual_element_behind", "pool_virtual:64MiB", one_element, GPU_SET, 1000,
        1000, 8),
    WRITE(
        "arena_element_behind", "arena:64MiB", one_element, GPU_COPY_TO, 1000, 1000, 8),
    WRITE(
        "fixed_element_behind", "fixed_size:1KiB", one_element, GPU_SET, 1000, 1000, 8),
    WRITE(
        "binning_element_behind", "binning:64MiB", one_element, GPU_SET, 1000, 1000, 8),
    WRITE("cuda_element_behind", "cuda", one_element, GPU_SET, 1000, 1000, 8),
    /* not of async: CUDA takes an address behind such a block for one of the host, and reads it */
    WRITE("managed_element_behind", "managed", one_element, GPU_SET, 1000, 1000, 8),
    READ(
        "managed_prefetch_behind", "managed", one_element, GPU_PREFETCH, 1000, 1000, 8),
    WRITE(
        "adaptors_element_behind", "statistics+tracking+pool:64MiB", one_element,
        GPU_SET, 1000, 1000, 8),
    {.name = "guarded_element_behind",
     .modes = "usage,bounds,guards",
     .resource = POOL,
     .plant = one_element,
     .kind = "out_of_bounds",
     .access = "write",
     .call = GPU_SET,
     .bytes = 1000,
     .offset = 1000,
     .length = 8},
    {.name = "guarded_copy_past",
     .modes = "usage,bounds,guards",
     .resource = POOL,
     .plant = one_element,
     .kind = "out_of_bounds",
     .access = "write",
     .call = GPU_COPY_TO,
     .bytes = 1000,
     .offset = 500,
     .length = 501},
    {.name = "guards_alone_copy_past",
     .modes = "guards",
     .resource = POOL,
     .plant = one_element,
     .kind = "out_of_bounds",
     .access = "write",
     .call = GPU_COPY_TO,
     .bytes = 1000,
     .offset = 500,
     .length = 501},
    {.name = "guarded_fill_beyond",
     .modes = "usage,bounds,guards",
     .resource = POOL,
     .plant = one_element,
     .kind = "out_of_bounds",
     .access = "write",
     .call = GPU_SET,
     .bytes = 1000,
     .offset = 1100,
     .length = 8},
    WRITE("pool_fill_node", POOL, one_call, GPU_SET_NODE, 1000, 0, 1001),
    READ("pool_copy_node_from", POOL, one_call, GPU_COPY_NODE_FROM, 1000, 1, 1000),
    WRITE("managed_discard_past", "managed", one_call, GPU_DISCARD, 4096, 0, 8192),
    WRITE(
        "managed_pool_discard_neighbour", "pool_managed:64MiB", one_call, GPU_DISCARD,
        4096, 4000, 200),
};

const fault_table_t faults_bounds = {faults, sizeof(faults) / sizeof(faults[0])};
