/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses of a block after its free, in memory that nobody has taken since. The twin makes the same
 * call before the free. Which streams they are on does not matter.
 */
#include <pthread.h>

#include "gpu/faults/faults.h"

enum { BYTES = 4096, MIDDLE = BYTES / 2 };

static char *take_used(scene_t *scene, const fault_t *fault)
{
    char *block = scene_take(scene, fault->bytes, scene->a);

    gpu_call(GPU_SET, block, NULL, fault->bytes, scene->a);
    scene->culprit = block;
    return block;
}

static void drop(const scene_t *scene, const fault_t *fault, void *block)
{
    scene_drop(scene, block, fault->bytes, scene->a);
}

/* By fault->kernel, or by fault->call. */
static void use(const scene_t *scene, const fault_t *fault, char *at, rmm_stream_t on)
{
    if (fault->call != GPU_NO_CALL) {
        gpu_call(fault->call, at, scene->host, fault->length, on);
    } else {
        gpu_launch(GPU_KERNEL_reduce, at, NULL, on);
    }
}

static void
use_on_stream(scene_t *scene, const fault_t *fault, bool is_faulty, rmm_stream_t stream)
{
    char *block = take_used(scene, fault);

    gpu_wait(GPU_WAIT_EVENT, scene->a, scene->b);
    if (!is_faulty) {
        use(scene, fault, block + fault->offset, stream);
        gpu_wait(GPU_WAIT_EVENT, scene->b, scene->a);
    }
    drop(scene, fault, block);
    if (is_faulty) {
        use(scene, fault, block + fault->offset, stream);
    }
}

static void use_here(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    use_on_stream(scene, fault, is_faulty, scene->a);
}

/* A block beside it lives on: so the driver keeps the page, and the kernel runs. */
static void use_beside(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    enum { MINE = BYTES - 600 }; /* padding behind it: its end is not the freed block */
    char *mine = scene_take(scene, MINE, scene->a);

    gpu_call(GPU_SET, mine, NULL, MINE, scene->a);
    use_here(scene, fault, is_faulty);
    gpu_launch(GPU_KERNEL_sum, mine, NULL, scene->a);
    scene_drop(scene, mine, MINE, scene->a);
}

static void use_elsewhere(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    use_on_stream(scene, fault, is_faulty, scene->b);
}

static void use_in_struct(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    char *mine = scene_take(scene, BYTES, scene->a);
    char *block = take_used(scene, fault);
    const gpu_pair_t pair = {.count = 32, .first = mine, .second = block + 64};

    gpu_call(GPU_SET, mine, NULL, BYTES, scene->a);
    if (!is_faulty) {
        gpu_launch_pair(&pair, scene->a);
    }
    drop(scene, fault, block);
    if (is_faulty) {
        gpu_launch_pair(&pair, scene->a);
    }
    scene_drop(scene, mine, BYTES, scene->a);
}

/* A smaller block takes the front of the memory; the rest is nobody's. */
static void use_rest(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    char *block = take_used(scene, fault), *small = NULL;

    drop(scene, fault, block);
    small = scene_take(scene, 300, scene->a);
    gpu_call(GPU_SET, small, NULL, 300, scene->a);
    use(scene, fault, is_faulty ? block + fault->offset : small, scene->a);
    scene_drop(scene, small, 300, scene->a);
}

static void use_captured(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    char *block = take_used(scene, fault);

    if (is_faulty) {
        drop(scene, fault, block);
    }
    gpu_capture_begin(scene->a);
    use(scene, fault, block, scene->a);
    gpu_capture_end(scene->a, is_faulty ? 0 : 2, scene->a);
    if (!is_faulty) {
        drop(scene, fault, block);
    }
}

typedef struct other_free {
    const scene_t *scene;
    const fault_t *fault;
    void *block;
} other_free_t;

static void *free_in_thread(void *argument)
{
    const other_free_t *other = argument;

    drop(other->scene, other->fault, other->block);
    return NULL;
}

static void use_after_thread(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    other_free_t other = {scene, fault, take_used(scene, fault)};
    pthread_t thread;

    if (!is_faulty) {
        use(scene, fault, other.block, scene->a);
    }
    if (pthread_create(&thread, NULL, free_in_thread, &other) == 0) {
        pthread_join(thread, NULL);
    }
    if (is_faulty) {
        use(scene, fault, other.block, scene->a);
    }
}

/* --- right in both ------------------------------------------------------------------- */

/* Of one block that was freed, in a pool that hands out lower addresses first. */
static void take_neighbours(const scene_t *scene, char **first, char **second)
{
    scene_drop(scene, scene_take(scene, 2048, scene->a), 2048, scene->a);
    *first = scene_take(scene, 1024, scene->a);
    *second = scene_take(scene, 1024, scene->a);
    gpu_call(GPU_SET, *first, NULL, 1024, scene->a);
    gpu_call(GPU_SET, *second, NULL, 1024, scene->a);
}

/* The end of an array, where a block began that was freed. */
static void end_of_array(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    char *first = NULL, *second = NULL;

    (void)fault, (void)is_faulty;
    take_neighbours(scene, &first, &second);
    scene_drop(scene, second, 1024, scene->a);
    gpu_launch(GPU_KERNEL_reduce, first, first + 1024, scene->a);
    scene_drop(scene, first, 1024, scene->a);
}

static void free_behind_launch(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    (void)is_faulty;
    for (size_t i = 0; i < 200; i++) {
        size_t bytes = 1 + i * 37 % 5000;
        char *block = scene_take(scene, bytes, scene->a);

        gpu_call(GPU_SET, block, NULL, bytes, scene->a);
        gpu_launch(GPU_KERNEL_reduce, block, NULL, scene->a);
        scene_drop(scene, block, bytes, scene->a);
        gpu_launch(GPU_KERNEL_sum, scene->host, NULL, scene->a);
    }
    (void)fault;
}

/* Memory that is allocated and freed in a capture is the graph's. */
static void block_of_graph(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    char *block = NULL;

    (void)is_faulty;
    gpu_capture_begin(scene->a);
    block = scene_take(scene, fault->bytes, scene->a);
    gpu_launch(GPU_KERNEL_fill, block, NULL, scene->a);
    drop(scene, fault, block);
    gpu_launch(GPU_KERNEL_reduce, block, NULL, scene->a);
    gpu_capture_end(scene->a, 3, scene->a);
}

/* What the graph has allocated the host frees; the next launch allocates it again. */
static void
block_that_a_graph_allocates(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    char *block = NULL;
    gpu_graph_t graph = NULL;

    (void)is_faulty;
    gpu_capture_begin(scene->a);
    block = scene_take(scene, fault->bytes, scene->a);
    gpu_call(GPU_SET, block, NULL, fault->bytes, scene->a);
    graph = gpu_capture_keep(scene->a);
    gpu_graph_launch(graph, scene->a);
    gpu_launch(GPU_KERNEL_reduce, block, NULL, scene->a);
    drop(scene, fault, block);
    gpu_graph_launch(graph, scene->a);
    gpu_launch(GPU_KERNEL_reduce, block, NULL, scene->a);
    gpu_synchronize();
    gpu_graph_destroy(graph);
}

/* --- the table ----------------------------------------------------------------------- */

#define POOL "pool:64MiB"
#define SEARCH .modes = "usage,bounds"
#define SEARCH_DRIVER .modes = "usage,bounds,driver"
#define LATE(spec, how) .resource = spec, .plant = how, .kind = "use_after_free"
#define LATE_KERNEL(spec, how, by)                                                     \
    LATE(spec, how), .bytes = BYTES, .access = "use", .kernel = by
#define LATE_CALL_DRIVER(spec, verb, by, from, count)                                  \
    SEARCH_DRIVER, LATE(spec, use_here), .access = verb, .call = by, .offset = from,   \
                                         .length = count
#define LATE_CALL(spec, verb, by, from, count)                                         \
    SEARCH, LATE(spec, use_here), .access = verb, .call = by, .offset = from,          \
                                  .length = count

static const fault_t faults[] = {
    {.name = "freed_kernel", SEARCH, LATE_KERNEL(POOL, use_here, "reduce")},
    {.name = "freed_kernel_inside",
     SEARCH,
     LATE_KERNEL(POOL, use_here, "reduce"),
     .offset = MIDDLE},
    {.name = "freed_kernel_elsewhere",
     SEARCH,
     LATE_KERNEL(POOL, use_elsewhere, "reduce")},
    {.name = "freed_kernel_struct", SEARCH, LATE_KERNEL(POOL, use_in_struct, "mix")},
    {.name = "freed_kernel_captured",
     SEARCH,
     LATE_KERNEL(POOL, use_captured, "reduce")},
    {.name = "freed_kernel_thread",
     SEARCH,
     LATE_KERNEL(POOL, use_after_thread, "reduce")},
    {.name = "freed_kernel_rest",
     SEARCH,
     LATE_KERNEL(POOL, use_rest, "reduce"),
     .offset = MIDDLE},
    {.name = "freed_only_bounds",
     .modes = "bounds",
     LATE_KERNEL(POOL, use_here, "reduce")},
    {.name = "freed_with_order",
     .modes = "usage,bounds,order",
     LATE_KERNEL(POOL, use_elsewhere, "reduce")},
    {.name = "freed_virtual",
     SEARCH,
     LATE_KERNEL("pool_virtual:64MiB", use_here, "reduce")},
    {.name = "freed_virtual_struct",
     SEARCH,
     LATE_KERNEL("pool_virtual:64MiB", use_in_struct, "mix")},
    {.name = "freed_virtual_fill",
     LATE_CALL("pool_virtual:64MiB", "write", GPU_SET, 64, 64),
     .bytes = BYTES},
    {.name = "freed_arena", SEARCH, LATE_KERNEL("arena:64MiB", use_here, "reduce")},
    {.name = "freed_fixed", SEARCH, LATE_KERNEL("fixed_size:4KiB", use_here, "reduce")},
    {.name = "freed_fixed_copy",
     LATE_CALL("fixed_size:4KiB", "read", GPU_COPY_FROM, 64, 128),
     .bytes = BYTES},
    {.name = "freed_binning_fill",
     LATE_CALL("binning:64MiB", "write", GPU_SET, 0, 8),
     .bytes = BYTES},
    {.name = "freed_byte",
     SEARCH,
     .resource = POOL,
     .plant = use_here,
     .kind = "use_after_free",
     .access = "use",
     .kernel = "reduce",
     .bytes = 1},
    {.name = "freed_byte_fill", LATE_CALL(POOL, "write", GPU_SET, 0, 1), .bytes = 1},
    {.name = "freed_arena_byte_copy",
     LATE_CALL("arena:64MiB", "read", GPU_COPY_FROM, 0, 1),
     .bytes = 1},
    {.name = "freed_binning", SEARCH, LATE_KERNEL("binning:64MiB", use_here, "reduce")},
    {.name = "freed_managed_pool",
     SEARCH,
     LATE_KERNEL("pool_managed:64MiB", use_here, "reduce")},
    {.name = "freed_adaptors",
     SEARCH,
     LATE_KERNEL("statistics+tracking+aligned:4KiB+pool:64MiB", use_here, "reduce")},
    {.name = "freed_cuda", SEARCH_DRIVER, LATE_KERNEL("cuda", use_beside, "reduce")},
    {.name = "freed_cuda_inside",
     SEARCH_DRIVER,
     LATE_KERNEL("cuda", use_beside, "reduce"),
     .offset = MIDDLE},
    {.name = "freed_cuda_struct",
     SEARCH_DRIVER,
     LATE_KERNEL("cuda", use_in_struct, "mix")},
    {.name = "freed_cuda_fill",
     LATE_CALL_DRIVER("cuda", "write", GPU_SET, 0, BYTES),
     .bytes = BYTES},
    {.name = "freed_cuda_fill_inside", /* a copy ends the program, on a real GPU */
     LATE_CALL_DRIVER("cuda", "write", GPU_SET, 64, 128),
     .bytes = BYTES},
    {.name = "freed_async", SEARCH_DRIVER, LATE_KERNEL("async", use_beside, "reduce")},
    {.name = "freed_async_fill",
     LATE_CALL_DRIVER("async", "write", GPU_SET, 64, 64),
     .bytes = BYTES},
    {.name = "freed_managed_fill",
     LATE_CALL_DRIVER("managed", "write", GPU_SET, 0, 8),
     .bytes = BYTES},
    {.name = "freed_fill", LATE_CALL(POOL, "write", GPU_SET, 0, BYTES), .bytes = BYTES},
    {.name = "freed_fill_last_byte",
     LATE_CALL(POOL, "write", GPU_SET, BYTES - 1, 1),
     .bytes = BYTES},
    {.name = "freed_copy_to",
     LATE_CALL(POOL, "write", GPU_COPY_TO, 64, 128),
     .bytes = BYTES},
    {.name = "freed_copy_from",
     LATE_CALL(POOL, "read", GPU_COPY_FROM, 0, BYTES),
     .bytes = BYTES},
    {.name = "freed_prefetch",
     LATE_CALL("pool_managed:64MiB", "read", GPU_PREFETCH, 0, BYTES),
     .bytes = BYTES},
    {.name = "freed_arena_copy",
     LATE_CALL("arena:64MiB", "read", GPU_COPY_FROM, 8, 8),
     .bytes = BYTES},
    {.name = "freed_rest_fill",
     SEARCH,
     LATE(POOL, use_rest),
     .bytes = BYTES,
     .access = "write",
     .call = GPU_SET,
     .offset = MIDDLE,
     .length = 64},
    {.name = "freed_huge_fill",
     LATE_CALL("pool:192MiB", "write", GPU_SET, 40000000, 1000),
     .bytes = 50000000},
    {.name = "freed_huge_copy",
     LATE_CALL("pool_virtual:192MiB", "read", GPU_COPY_FROM, 49999000, 1000),
     .bytes = 50000000},
    {.name = "end_of_array",
     .modes = "bounds",
     .resource = POOL,
     .plant = end_of_array},
    {.name = "free_behind_launch",
     SEARCH,
     .resource = POOL,
     .plant = free_behind_launch},
    {.name = "free_behind_launch_cuda",
     SEARCH_DRIVER,
     .resource = "cuda",
     .plant = free_behind_launch},
    {.name = "free_behind_launch_async",
     SEARCH_DRIVER,
     .resource = "async",
     .plant = free_behind_launch},
    {.name = "block_of_graph",
     SEARCH,
     .resource = POOL,
     .plant = block_of_graph,
     .bytes = BYTES},
    {.name = "block_that_a_graph_allocates",
     .modes = "usage,bounds,order,driver",
     .resource = "async:64MiB",
     .plant = block_that_a_graph_allocates,
     .bytes = BYTES},
};

const fault_table_t faults_freed = {faults, sizeof(faults) / sizeof(faults[0])};
