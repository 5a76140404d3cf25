/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order of whole programs on the simulated GPU, through librmm-inject: correct programs have no
 * finding. Errors are planted in tests/gpu/faults. One attachment a process, so each case runs in
 * a child.
 */
#include "sim/diag/diagnosed.h"

#include <rmm/device.h>
#include <rmm/device_buffer.h>
#include <rmm/memory.h>
#include <rmm/resource_spec.h>
#include <rmm/sim.h>
#include <rmm/sys/diag.h>

static runtime_t runtime;

static int make_runtime(void **state)
{
    unsetenv("RMM_PUBLISH");
    setenv("RMM_DIAG", "order", 1);
    runtime_open(&runtime);
    return 0;
}

static int drop_runtime(void **state)
{
    runtime_close(&runtime);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, make_runtime, drop_runtime)

/* --- two streams ------------------------------------------------------------------------ */

enum { BYTES = 4096 };

typedef struct scene {
    rmm_resource_t *pool;
    rmm_stream_t a, b;
    rmm_sim_event_t event;
} scene_t;

static void open_scene(scene_t *scene, uint32_t flags)
{
    scene->pool = make_pool();
    rmm_resource_dealloc(/* the diagnosis begins with the first block */
                         scene->pool, take(scene->pool, BYTES, RMM_STREAM_DEFAULT),
                         BYTES, 0, RMM_STREAM_DEFAULT);
    CHECK(rmm_stream_create(flags, &scene->a) == RMM_OK);
    CHECK(rmm_stream_create(flags, &scene->b) == RMM_OK);
    CHECK(rmm_sim_event_create(&scene->event) == 0);
}

/* What is done on `later` from now on follows what was done on `first`. */
static void order_streams(const scene_t *scene, rmm_stream_t first, rmm_stream_t later)
{
    CHECK(rmm_sim_event_record(scene->event, first) == 0);
    CHECK(rmm_sim_stream_wait_event(later, scene->event) == 0);
}

static void kernel(const void *const *params)
{
    (void)params;
}

static void launch(const char *name, const void *block, rmm_stream_t stream)
{
    const void *params[] = {&block};
    const size_t bytes[] = {sizeof(block)};

    CHECK(rmm_sim_launch(name, kernel, stream, params, bytes, 1) == 0);
}

static void drop(const scene_t *scene, void *block, rmm_stream_t stream)
{
    rmm_resource_dealloc(scene->pool, block, BYTES, 0, stream);
}

/* --- an error ---------------------------------------------------------------------------- */

static void name_both_sides(child_t *self, void *argument)
{
    scene_t scene;
    diag_file_t file;
    void *block = NULL;

    open_scene(&scene, RMM_STREAM_NON_BLOCKING);
    block = take(scene.pool, BYTES, scene.a);
    order_streams(&scene, scene.a, scene.b);
    launch("reduce", block, scene.b);
    launch("sum", block, scene.b);
    drop(&scene, block, scene.a);
    open_own_file(&runtime, &file);
    CHECK(file.header->findings.used == 1);
    CHECK(strcmp(diag_file_user(&file, file.findings[0].other_user), "sum") == 0);
    CHECK(file.findings[0].user == RMM_DIAG_NO_USER);
    CHECK(file.findings[0].block_address == (uint64_t)(uintptr_t)block);
    CHECK(file.findings[0].stream_id == file.findings[0].block_stream_id);
    diag_file_close(&file);
}

CASE(names_the_kernel_that_used_and_the_stream_that_freed)
{
    child_run(name_both_sides, NULL);
}

/* A pointer of a kernel may be the end of an array, behind which the next block begins. */
static void use_and_free(child_t *self, void *argument)
{
    scene_t scene;
    diag_file_t file;
    void *filled = NULL, *passed = NULL;

    open_scene(&scene, RMM_STREAM_NON_BLOCKING);
    filled = take(scene.pool, BYTES, scene.a);
    passed = take(scene.pool, BYTES, scene.a);
    CHECK(rmm_memset_async(filled, 1, BYTES, scene.b) == RMM_OK);
    launch("reduce", passed, scene.b);
    drop(&scene, passed, scene.a);
    open_own_file(&runtime, &file);
    CHECK(file.header->findings.used == 3);
    CHECK(file.findings[0].kind == RMM_DIAG_USE_UNORDERED);
    CHECK(file.findings[0].confidence == RMM_DIAG_CERTAIN);
    CHECK(file.findings[1].kind == RMM_DIAG_USE_UNORDERED);
    CHECK(file.findings[1].confidence == RMM_DIAG_LIKELY);
    CHECK(file.findings[2].kind == RMM_DIAG_FREE_UNORDERED);
    CHECK(file.findings[2].confidence == RMM_DIAG_LIKELY);
    diag_file_close(&file);
}

CASE(is_certain_of_what_no_kernel_takes_part_in)
{
    child_run(use_and_free, NULL);
}

/* --- correct programs -------------------------------------------------------------------- */

/* No finding, in a process whose calls the diagnosis has seen. */
static void expect_nothing(void)
{
    diag_file_t file;

    expect_findings(&runtime, 0);
    open_own_file(&runtime, &file);
    CHECK(file.header->launches + file.header->copies > 0);
    diag_file_close(&file);
}

static void use_default_streams(child_t *self, void *argument)
{
    scene_t scene;

    open_scene(&scene, 0);
    for (int i = 0; i < 100; i++) {
        void *block = take(scene.pool, BYTES, RMM_STREAM_DEFAULT);

        launch("first", block, scene.a);
        launch("second", block, scene.b);
        CHECK(rmm_memset_async(block, 0, BYTES, RMM_STREAM_LEGACY) == RMM_OK);
        launch("third", block, RMM_STREAM_PER_THREAD);
        drop(&scene, block, RMM_STREAM_DEFAULT);
    }
    expect_nothing();
}

CASE(finds_nothing_where_the_default_stream_orders)
{
    child_run(use_default_streams, NULL);
}

static void read_on_two_streams(child_t *self, void *argument)
{
    scene_t scene;
    void *weights = NULL;

    open_scene(&scene, RMM_STREAM_NON_BLOCKING);
    weights = take(scene.pool, BYTES, scene.a);
    CHECK(rmm_memset_async(weights, 1, BYTES, scene.a) == RMM_OK);
    order_streams(&scene, scene.a, scene.b);
    for (int i = 0; i < 100; i++) {
        void *mine = take(scene.pool, BYTES, scene.a);
        void *other = take(scene.pool, BYTES, scene.b);

        launch("reads", weights, scene.a);
        launch("writes", mine, scene.a);
        launch("reads", weights, scene.b);
        launch("writes", other, scene.b);
        drop(&scene, mine, scene.a);
        drop(&scene, other, scene.b);
    }
    order_streams(&scene, scene.b, scene.a);
    drop(&scene, weights, scene.a);
    expect_nothing();
}

CASE(finds_nothing_where_two_streams_read_one_block)
{
    child_run(read_on_two_streams, NULL);
}

/* Each stream copies its part of one block and works on it. */
static void divide_among_streams(child_t *self, void *argument)
{
    scene_t scene;
    char host[BYTES] = "";
    char *block = NULL;

    open_scene(&scene, RMM_STREAM_NON_BLOCKING);
    block = take(scene.pool, BYTES, scene.a);
    CHECK(rmm_stream_synchronize(scene.a) == RMM_OK);
    for (int i = 0; i < 16; i++) {
        size_t begin = (size_t)i * BYTES / 16;
        rmm_stream_t stream = i % 2 == 0 ? scene.a : scene.b;

        CHECK(
            rmm_memcpy_async(block + begin, host + begin, BYTES / 16, stream) ==
            RMM_OK);
        launch("scale", block, stream);
        CHECK(
            rmm_memcpy_async(host + begin, block + begin, BYTES / 16, stream) ==
            RMM_OK);
    }
    CHECK(rmm_sim_device_synchronize() == 0);
    drop(&scene, block, scene.b);
    expect_nothing();
}

CASE(finds_nothing_where_streams_share_a_block)
{
    child_run(divide_among_streams, NULL);
}

static void capture_and_replay(child_t *self, void *argument)
{
    scene_t scene;
    rmm_sim_graph_t graph = NULL;
    void *block = NULL;

    open_scene(&scene, RMM_STREAM_NON_BLOCKING);
    block = take(scene.pool, BYTES, scene.a);
    launch("warm", block, scene.a);
    CHECK(rmm_stream_synchronize(scene.a) == RMM_OK);
    CHECK(rmm_sim_begin_capture(scene.a, 2) == 0);
    order_streams(&scene, scene.a, scene.b);
    launch("captured", block, scene.a);
    launch("captured", block, scene.b);
    order_streams(&scene, scene.b, scene.a);
    CHECK(rmm_sim_end_capture(scene.a, &graph) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK(rmm_sim_graph_launch(graph, scene.b) == 0);
    }
    CHECK(rmm_stream_synchronize(scene.b) == RMM_OK);
    launch("after", block, scene.b);
    CHECK(rmm_sim_graph_destroy(graph) == 0);
    drop(&scene, block, scene.b);
    expect_nothing();
}

CASE(finds_nothing_in_captures_and_replays)
{
    child_run(capture_and_replay, NULL);
}

static void use_buffers(rmm_resource_t *mr, const scene_t *scene)
{
    rmm_device_buffer_t buffer;
    char host[3000] = "";

    CHECK(rmm_device_buffer_init_copy_from(&buffer, host, 1, scene->a, mr) == RMM_OK);
    for (size_t size = 1; size < sizeof(host); size = size * 2 + 1) {
        rmm_device_buffer_t copy = RMM_DEVICE_BUFFER_INIT;

        CHECK(rmm_device_buffer_resize(&buffer, size, scene->a) == RMM_OK);
        CHECK(
            rmm_device_buffer_copy_from_host(&buffer, 0, host, size, scene->a) ==
            RMM_OK);
        CHECK(
            rmm_device_buffer_copy_to_host(&buffer, 0, host, size, scene->a) == RMM_OK);
        order_streams(scene, scene->a, scene->b);
        CHECK(rmm_device_buffer_copy(&copy, &buffer, scene->b, mr) == RMM_OK);
        order_streams(scene, scene->b, scene->a);
        rmm_device_buffer_fini(&copy);
    }
    rmm_device_buffer_fini(&buffer);
}

static void use_every_resource(child_t *self, void *argument)
{
    static const char *const specs[] = {
        "cuda",
        "pool",
        "arena",
        "async",
        "fixed_size",
        "binning",
        "managed",
        "prefetch+managed",
        "aligned:4096+pool",
        "tracking+statistics+pool",
        "pinned"};
    scene_t scene;

    open_scene(&scene, RMM_STREAM_NON_BLOCKING);
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        rmm_resource_t *mr = NULL;
        void *block = NULL;

        CHECK(rmm_resource_create_from_spec(specs[i], &mr) == RMM_OK);
        use_buffers(mr, &scene);
        CHECK(rmm_resource_alloc_sync(mr, BYTES, 0, &block) == RMM_OK);
        launch("any", block, scene.b);
        CHECK(rmm_stream_synchronize(scene.b) == RMM_OK);
        rmm_resource_dealloc_sync(mr, block, BYTES, 0);
        (void)take(mr, BYTES, scene.a); /* left to the resource's end */
        rmm_resource_release(mr);
    }
    expect_nothing();
}

CASE(finds_nothing_in_what_the_library_does_itself)
{
    child_run(use_every_resource, NULL);
}

/* Work of one device is ordered by a wait for it, or for another whose streams wait for it. */
static void wait_for_devices(child_t *self, void *argument)
{
    scene_t scenes[2];

    for (int device = 0; device < 2; device++) {
        CHECK(rmm_device_set(device) == RMM_OK);
        open_scene(&scenes[device], device == 0 ? 0 : RMM_STREAM_NON_BLOCKING);
    }
    for (int i = 0; i < 100; i++) {
        const scene_t *here = &scenes[i % 2], *there = &scenes[1 - i % 2];
        void *block = NULL;

        CHECK(rmm_device_set(i % 2) == RMM_OK);
        block = take(here->pool, BYTES, here->a);
        launch("first", block, here->a);
        CHECK(rmm_sim_device_synchronize() == 0);
        launch("second", block, here->b);
        order_streams(here, here->b, there->a);
        CHECK(rmm_device_set(1 - i % 2) == RMM_OK);
        CHECK(rmm_sim_device_synchronize() == 0);
        CHECK(rmm_device_set(i % 2) == RMM_OK);
        drop(here, block, here->a);
    }
    expect_nothing();
}

CASE(finds_nothing_where_the_host_waits_for_devices)
{
    child_run(wait_for_devices, NULL);
}

static void use_cuda_memory(child_t *self, void *argument)
{
    scene_t scene;
    rmm_resource_t *cuda = NULL;
    void *block = NULL;

    open_scene(&scene, RMM_STREAM_NON_BLOCKING);
    CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    block = take(cuda, BYTES, scene.a);
    launch("scale", block, scene.b);
    rmm_resource_dealloc(cuda, block, BYTES, 0, scene.a);
    expect_nothing();
}

CASE(memory_of_the_driver_is_ready_for_every_stream)
{
    child_run(use_cuda_memory, NULL);
}

/* A table of pointers by value, in which an earlier call left one of another stream. */
static void pass_a_large_struct(child_t *self, void *argument)
{
    scene_t scene;
    diag_file_t file;
    void *table[200] = {NULL};
    const void *params[] = {table};
    const size_t bytes[] = {sizeof(table)};

    open_scene(&scene, RMM_STREAM_NON_BLOCKING);
    table[0] = take(scene.pool, BYTES, scene.b);
    table[199] = take(scene.pool, BYTES, scene.a);
    CHECK(rmm_sim_launch("foreach", kernel, scene.b, params, bytes, 1) == 0);
    drop(&scene, table[199], scene.a);
    drop(&scene, table[0], scene.b);
    open_own_file(&runtime, &file);
    CHECK(file.header->findings_total == 0);
    CHECK(file.header->unjudged == 1);
    diag_file_close(&file);
}

CASE(finds_nothing_in_what_large_structs_have_left_over)
{
    child_run(pass_a_large_struct, NULL);
}

/* More streams than are told apart: what the last one does is judged only against others. */
static void use_many_streams(child_t *self, void *argument)
{
    enum { STREAMS = 70 };
    scene_t scene;
    diag_file_t file;
    void *block = NULL;

    open_scene(&scene, RMM_STREAM_NON_BLOCKING);
    block = take(scene.pool, BYTES, scene.a);
    for (int i = 0; i < STREAMS; i++) {
        rmm_stream_t stream = NULL;

        CHECK(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream) == RMM_OK);
        order_streams(&scene, scene.a, stream);
        launch("scale", block, stream);
        order_streams(&scene, stream, scene.a);
        if (i == STREAMS / 2) { /* these are told apart */
            open_own_file(&runtime, &file);
            CHECK(file.header->unjudged == 0);
            diag_file_close(&file);
        }
    }
    drop(&scene, block, scene.a);
    open_own_file(&runtime, &file);
    CHECK(file.header->findings_total == 0);
    CHECK(file.header->unjudged > 0 && file.header->unjudged < STREAMS / 2);
    diag_file_close(&file);
}

CASE(counts_what_streams_do_that_are_not_told_apart)
{
    child_run(use_many_streams, NULL);
}

/* Streams hand blocks of one pool to each other, in threads, with streams that come and go. */
enum { ROUNDS = 1000 };

static void *work(void *argument)
{
    rmm_resource_t *pool = argument;
    scene_t scene = {.pool = pool};

    CHECK(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &scene.a) == RMM_OK);
    CHECK(rmm_sim_event_create(&scene.event) == 0);
    for (size_t i = 0; i < ROUNDS; i++) {
        void *block = take(pool, BYTES, scene.a);
        void *other = take(pool, BYTES, RMM_STREAM_PER_THREAD);

        if (i % 10 == 0) {
            CHECK(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &scene.b) == RMM_OK);
        }
        launch("fill", block, scene.a);
        launch("fill", other, RMM_STREAM_PER_THREAD);
        order_streams(&scene, scene.a, scene.b);
        launch("scale", block, scene.b);
        drop(&scene, block, scene.b);
        drop(&scene, other, RMM_STREAM_PER_THREAD);
        if (i % 10 == 9) {
            CHECK(rmm_stream_destroy(scene.b) == RMM_OK);
        }
        if (i % 50 == 49) {
            CHECK(rmm_sim_event_destroy(scene.event) == 0);
            CHECK(rmm_sim_event_create(&scene.event) == 0);
        }
    }
    return NULL;
}

static void work_in_threads(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();

    run_in_threads(work, pool);
    expect_nothing();
}

CASE(finds_nothing_while_threads_hand_blocks_on)
{
    child_run(work_in_threads, NULL);
}
