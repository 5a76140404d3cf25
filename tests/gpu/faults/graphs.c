/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs that outlive a block that they use: a launch after its free; and the free itself, while
 * the graph can still be launched. The twin launches, or destroys the graph, before the free.
 */
#include <string.h>

#include "gpu/faults/faults.h"

enum { BYTES = 4096 };

static char *take_used(scene_t *scene)
{
    char *block = scene_take(scene, BYTES, scene->a);

    gpu_call(GPU_SET, block, NULL, BYTES, scene->a);
    gpu_synchronize();
    scene->culprit = block;
    return block;
}

static void drop(const scene_t *scene, void *block)
{
    gpu_synchronize();
    scene_drop(scene, block, BYTES, scene->a);
}

/* Of one node: the call that the finding names, or a kernel. */
static gpu_graph_t capture(const scene_t *scene, const fault_t *fault, char *block)
{
    gpu_call_t call = fault->call != GPU_NO_CALL ? fault->call : fault->other_call;

    gpu_capture_begin(scene->a);
    if (call != GPU_NO_CALL) {
        gpu_call(call, block, scene->host, BYTES, scene->a);
    } else if (fault->kernel != NULL && strcmp(fault->kernel, "mix") == 0) {
        gpu_launch_pair(
            &(gpu_pair_t){.count = 32, .first = scene->host, .second = block + 64},
            scene->a);
    } else {
        gpu_launch(GPU_KERNEL_reduce, block + 64, NULL, scene->a);
    }
    return gpu_capture_keep(scene->a);
}

static void launch_late(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    char *block = take_used(scene);
    gpu_graph_t graph = capture(scene, fault, block);

    gpu_graph_launch(graph, scene->a);
    if (!is_faulty) {
        gpu_graph_launch(graph, scene->b);
    }
    drop(scene, block);
    if (is_faulty) {
        gpu_graph_launch(graph, scene->b);
    }
    gpu_synchronize();
    gpu_graph_destroy(graph);
}

/* The memory is another block's by then. */
static void launch_on_others(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    char *block = take_used(scene), *other = NULL;
    gpu_graph_t graph = capture(scene, fault, block);

    gpu_graph_launch(graph, scene->a);
    drop(scene, block);
    other = scene_take(scene, BYTES, scene->a);
    gpu_call(GPU_SET, other, NULL, BYTES, scene->a);
    if (is_faulty) {
        gpu_graph_launch(graph, scene->a);
    }
    drop(scene, other);
    gpu_graph_destroy(graph);
}

static void free_early(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    char *block = take_used(scene);
    gpu_graph_t graph = capture(scene, fault, block);

    gpu_graph_launch(graph, scene->a);
    gpu_synchronize();
    if (!is_faulty) {
        gpu_graph_destroy(graph);
    }
    drop(scene, block);
    if (is_faulty) {
        gpu_graph_destroy(graph);
    }
}

/* It is used in a branch, on a stream that joined the capture and was joined in turn. */
static void launch_branch_late(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    char *block = take_used(scene);
    gpu_graph_t graph = NULL;

    (void)fault;
    gpu_capture_begin(scene->a);
    gpu_launch(GPU_KERNEL_sum, scene->host, NULL, scene->a);
    gpu_wait(GPU_WAIT_EVENT, scene->a, scene->b);
    gpu_launch(GPU_KERNEL_reduce, block + 64, NULL, scene->b);
    gpu_wait(GPU_WAIT_EVENT, scene->b, scene->a);
    graph = gpu_capture_keep(scene->a);
    gpu_graph_launch(graph, scene->a);
    if (is_faulty) {
        drop(scene, block);
    }
    gpu_graph_launch(graph, scene->a);
    gpu_synchronize();
    if (!is_faulty) {
        drop(scene, block);
    }
    gpu_graph_destroy(graph);
}

/* Blocks come and go on other streams, and one in the graph, while a stream captures that the
 * default stream waits for. */
static void blocks_beside_capture(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    char *block = take_used(scene);
    rmm_stream_t normal = NULL;

    (void)is_faulty;
    if (rmm_stream_create(0, &normal) != RMM_OK) {
        return;
    }
    for (size_t i = 0; i < 20; i++) {
        const size_t bytes = fault->bytes + 100 * i;
        void *inside = NULL, *beside = NULL;
        gpu_graph_t graph = NULL;

        gpu_capture_begin(normal);
        gpu_launch(GPU_KERNEL_reduce, block, NULL, normal);
        inside = scene_take(scene, BYTES, normal);
        gpu_launch(GPU_KERNEL_fill, inside, NULL, normal);
        scene_drop(scene, inside, BYTES, normal);
        beside = scene_take(scene, bytes, scene->b);
        gpu_call(GPU_SET, beside, NULL, bytes, scene->b);
        scene_drop(scene, beside, bytes, scene->b);
        graph = gpu_capture_keep(normal);
        gpu_graph_launch(graph, scene->a);
        gpu_synchronize();
        gpu_graph_destroy(graph);
    }
    drop(scene, block);
    (void)rmm_stream_destroy(normal);
}

/* Many graphs of the same block, launched in turn. */
static void many_graphs(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    enum { GRAPHS = 8 };
    char *block = take_used(scene);
    gpu_graph_t graphs[GRAPHS];

    (void)is_faulty;
    for (int i = 0; i < GRAPHS; i++) {
        graphs[i] = capture(scene, fault, block);
    }
    for (int i = 0; i < 3 * GRAPHS; i++) {
        gpu_graph_launch(graphs[i % GRAPHS], scene->a);
    }
    gpu_synchronize();
    for (int i = 0; i < GRAPHS; i++) {
        gpu_graph_destroy(graphs[i]);
    }
    drop(scene, block);
}

/* --- graphs whose nodes the program adds or changes ------------------------------------ */

static void launch_and_end(const scene_t *scene, gpu_graph_t graph)
{
    gpu_graph_launch(graph, scene->a);
    gpu_synchronize();
    gpu_graph_destroy(graph);
}

static void begin_with_reduce(const scene_t *scene, char *block)
{
    gpu_capture_begin(scene->a);
    gpu_launch(GPU_KERNEL_reduce, block + 64, NULL, scene->a);
}

/* Its only node is given another block; then the first is freed. */
static void move_node(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    char *block = take_used(scene), *other = take_used(scene);
    gpu_graph_t graph = NULL;

    (void)fault, (void)is_faulty;
    begin_with_reduce(scene, block);
    graph = gpu_capture_moved(scene->a, other);
    drop(scene, block);
    launch_and_end(scene, graph);
    drop(scene, other);
}

/* The graph uses the block once more; it is freed before that, or after. */
static void
drop_around_launch(scene_t *scene, gpu_graph_t graph, void *block, bool is_faulty)
{
    if (is_faulty) {
        drop(scene, block);
    }
    launch_and_end(scene, graph);
    if (!is_faulty) {
        drop(scene, block);
    }
}

/* The graph gets another block by an update, and the first is freed, which is right. */
static void update_then_late(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    char *first = take_used(scene), *block = take_used(scene);
    gpu_graph_t graph = NULL;

    (void)fault;
    begin_with_reduce(scene, first);
    graph = gpu_capture_keep(scene->a);
    gpu_graph_launch(graph, scene->a);
    begin_with_reduce(scene, block);
    gpu_capture_update(scene->a, graph);
    drop(scene, first);
    gpu_graph_launch(graph, scene->a);
    drop_around_launch(scene, graph, block, is_faulty);
}

static void captured_into_body(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    char *block = take_used(scene);

    (void)fault, (void)is_faulty;
    launch_and_end(scene, gpu_capture_into_body(scene->a, block));
    drop(scene, block);
}

static void part_of_graph(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    char *block = take_used(scene);
    gpu_graph_t graph = NULL;

    (void)fault;
    begin_with_reduce(scene, block);
    graph = gpu_capture_child(scene->a);
    gpu_graph_launch(graph, scene->a);
    drop_around_launch(scene, graph, block, is_faulty);
}

static void on_condition(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    char *block = take_used(scene);

    (void)fault, (void)is_faulty;
    begin_with_reduce(scene, block);
    launch_and_end(scene, gpu_capture_condition(scene->a));
    drop(scene, block);
}

/* --- the table ----------------------------------------------------------------------- */

#define POOL "pool:64MiB"
#define BOUNDS .modes = "usage,bounds", .bytes = BYTES
#define ALL .modes = "usage,bounds,order", .bytes = BYTES
#define LATE(spec, how)                                                                \
    BOUNDS, .resource = spec, .plant = how, .kind = "use_after_free", .access = "use"
#define EARLY(spec)                                                                    \
    .modes = "usage,bounds,order", .bytes = BYTES, .resource = spec,                   \
    .plant = free_early, .kind = "free_under_graph", .access = "free"

static const fault_t faults[] = {
    {.name = "graph_kernel_late", LATE(POOL, launch_late), .kernel = "reduce"},
    {.name = "graph_fill_late", LATE(POOL, launch_late), .call = GPU_SET},
    {.name = "graph_copy_late", LATE(POOL, launch_late), .call = GPU_COPY_FROM},
    {.name = "graph_copy_to_late", LATE(POOL, launch_late), .call = GPU_COPY_TO},
    {.name = "graph_copy_reused", LATE(POOL, launch_on_others), .call = GPU_COPY_FROM},
    {.name = "graph_struct_late", LATE(POOL, launch_late), .kernel = "mix"},
    {.name = "graph_struct_reused", LATE(POOL, launch_on_others), .kernel = "mix"},
    {.name = "graph_kernel_reused", LATE(POOL, launch_on_others), .kernel = "reduce"},
    {.name = "graph_virtual_late",
     LATE("pool_virtual:64MiB", launch_late),
     .kernel = "reduce"},
    {.name = "graph_arena_late", LATE("arena:64MiB", launch_late), .kernel = "reduce"},
    {.name = "graph_fixed_late",
     LATE("fixed_size:4KiB", launch_late),
     .kernel = "reduce"},
    {.name = "graph_fixed_copy_late",
     LATE("fixed_size:4KiB", launch_late),
     .call = GPU_COPY_FROM},
    {.name = "graph_binning_late",
     LATE("binning:64MiB", launch_late),
     .kernel = "reduce"},
    {.name = "graph_managed_late",
     LATE("pool_managed:64MiB", launch_late),
     .kernel = "reduce"},
    {.name = "graph_free_early", EARLY(POOL), .other = "reduce"},
    {.name = "graph_copy_free_early",
     EARLY(POOL),
     .other_call = GPU_COPY_TO,
     .needs = GPU_COPY_TO},
    {.name = "graph_fill_free_early",
     EARLY(POOL),
     .other_call = GPU_SET,
     .needs = GPU_SET},
    {.name = "graph_arena_free_early", EARLY("arena:64MiB"), .other = "reduce"},
    {.name = "graph_async_free_early", EARLY("async:64MiB"), .other = "reduce"},
    {.name = "graph_managed_free_early", EARLY("managed"), .other = "reduce"},
    {.name = "graph_moved", /* no error, in all modes, as below */
     ALL,
     .resource = POOL,
     .plant = move_node,
     .needs_cuda_13 = true},
    {.name = "graph_condition",
     ALL,
     .resource = POOL,
     .plant = on_condition,
     .needs_cuda_13 = true},
    {.name = "graph_child_late",
     LATE(POOL, part_of_graph),
     .kernel = "reduce",
     .needs_cuda_13 = true},
    {.name = "graph_branch_late", LATE(POOL, launch_branch_late), .kernel = "reduce"},
    {.name = "graph_update_late",
     LATE(POOL, update_then_late),
     .kernel = "reduce",
     .needs_cuda_13 = true},
    {.name = "graph_body",
     ALL,
     .resource = POOL,
     .plant = captured_into_body,
     .needs_cuda_13 = true},
    {.name = "blocks_beside_capture",
     .modes = "usage,bounds,order,guards",
     .bytes = BYTES,
     .resource = POOL,
     .plant = blocks_beside_capture},
    {.name = "many_graphs", BOUNDS, .resource = POOL, .plant = many_graphs},
};

const fault_table_t faults_graphs = {faults, sizeof(faults) / sizeof(faults[0])};
