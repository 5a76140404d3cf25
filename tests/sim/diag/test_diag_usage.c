/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a launch on the simulated GPU to the side file, through librmm-inject: exact
 * counts for every block. One attachment a process, so each case runs in a child.
 */
#include "harness/runtime.h"

#include <pthread.h>

#include <rmm/device.h>
#include <rmm/resource_spec.h>
#include <rmm/sim.h>

#include "driver/sim/control.h"
#include "sim/diag/diagnosed.h"

static runtime_t runtime;

static int make_runtime(void **state)
{
    unsetenv("RMM_PUBLISH");
    setenv("RMM_DIAG", "usage", 1);
    runtime_open(&runtime);
    return 0;
}

static int drop_runtime(void **state)
{
    runtime_close(&runtime);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, make_runtime, drop_runtime)

/* --- in the child ------------------------------------------------------------------ */

static void kernel(const void *const *params)
{
}

static void
launch(const char *name, rmm_stream_t stream, const void *value, size_t value_bytes)
{
    const void *params[] = {value};
    const size_t bytes[] = {value_bytes};

    CHECK(rmm_sim_launch(name, kernel, stream, params, bytes, 1) == 0);
}

static void launch_on(const char *name, rmm_stream_t stream, const void *pointer)
{
    launch(name, stream, &pointer, sizeof(pointer));
}

static void check_block(
    const diag_file_t *file, const void *block, const char *first, const char *last,
    uint64_t launches)
{
    const rmm_diag_row_t *row = diag_file_row(file, (uint64_t)(uintptr_t)block);

    CHECK(row != NULL);
    if (row->launches != launches) {
        fprintf(stderr, "launches: %lu\n", (unsigned long)row->launches);
    }
    CHECK(row->launches == launches);
    CHECK(strcmp(diag_file_user(file, row->first_user), first) == 0);
    CHECK(strcmp(diag_file_user(file, row->last_user), last) == 0);
}

/* --- cases ------------------------------------------------------------------------- */

static void use_blocks(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();
    rmm_stream_t stream = NULL;
    struct {
        int count;
        const void *blocks[2];
        short tail;
    } by_value = {2, {NULL, NULL}, 0};
    void *a = NULL, *b = NULL, *never = NULL;
    diag_file_t file;

    CHECK(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream) == RMM_OK);
    a = take(pool, 4096, RMM_STREAM_DEFAULT);
    b = take(pool, 1000000, stream);
    never = take(pool, 256, stream);
    launch_on("fill", RMM_STREAM_DEFAULT, a);
    for (int i = 0; i < 7; i++) {
        by_value.blocks[0] = b;
        by_value.blocks[1] = (char *)a + 4095;
        launch("mix", stream, &by_value, sizeof(by_value));
    }
    launch_on("end of b", stream, (char *)b + 999999);
    launch_on("behind b", stream, (char *)b + 1000000);
    open_own_file(&runtime, &file);
    CHECK(strcmp(file.header->mode, "usage") == 0);
    CHECK(strcmp(file.header->source, "active") == 0);
    CHECK(file.header->launches == 10);
    CHECK(file.header->launches_unnamed == 0);
    CHECK(file.header->parameter_failures == 0);
    CHECK(file.header->blocks_dropped == 0);
    CHECK(diag_file_live(&file) == 3);
    check_block(&file, a, "fill", "mix", 8);
    check_block(&file, b, "mix", "end of b", 8);
    check_block(&file, never, "none", "none", 0);
    CHECK(diag_file_row(&file, (uint64_t)(uintptr_t)a)->bytes == 4096);
    CHECK(diag_file_row(&file, (uint64_t)(uintptr_t)a)->stream_id == 0);
    CHECK(diag_file_row(&file, (uint64_t)(uintptr_t)b)->stream_id != 0);
    CHECK(diag_file_row(&file, (uint64_t)(uintptr_t)b)->device == 0);
    diag_file_close(&file);
}

CASE(tells_which_kernels_used_which_block)
{
    child_run(use_blocks, NULL);
    assert_int_equal(runtime_count(&runtime, RMM_FILE_SEGMENT, NULL), 1);
}

static void reuse_block(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();
    void *a = take(pool, 4096, RMM_STREAM_DEFAULT);
    void *b = NULL;
    diag_file_t file;

    launch_on("old", RMM_STREAM_DEFAULT, a);
    rmm_resource_dealloc(pool, a, 4095, 0, RMM_STREAM_DEFAULT); /* refused */
    launch_on("old", RMM_STREAM_DEFAULT, a);
    open_own_file(&runtime, &file);
    check_block(&file, a, "old", "old", 2);
    diag_file_close(&file);
    rmm_resource_dealloc(pool, a, 4096, 0, RMM_STREAM_DEFAULT);
    launch_on("late", RMM_STREAM_DEFAULT, a);
    open_own_file(&runtime, &file);
    CHECK(diag_file_live(&file) == 0);
    diag_file_close(&file);
    b = take(pool, 4096, RMM_STREAM_DEFAULT);
    CHECK(a == b); /* same stream: the pool takes the same one */
    launch_on("new", RMM_STREAM_DEFAULT, b);
    open_own_file(&runtime, &file);
    check_block(&file, b, "new", "new", 1);
    CHECK(file.header->launches == 4);
    diag_file_close(&file);
}

CASE(a_reused_address_begins_anew)
{
    child_run(reuse_block, NULL);
}

static void copy_and_fill(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();
    char *a = take(pool, 4096, RMM_STREAM_DEFAULT);
    char *b = take(pool, 4096, RMM_STREAM_DEFAULT);
    rmm_stream_t stream = NULL;
    char host[16] = "";
    const rmm_diag_row_t *row = NULL;
    diag_file_t file;

    CHECK(rmm_stream_create(0, &stream) == RMM_OK);
    CHECK(rmm_sim_memcpy_async(a, host, sizeof(host), stream) == 0);
    CHECK(rmm_sim_memcpy_async(host, a + 4080, 16, stream) == 0);
    CHECK(rmm_sim_memcpy_async(b, a, 4096, stream) == 0);
    CHECK(rmm_sim_memcpy_async(a + 2048, a, 2048, stream) == 0); /* counts once */
    CHECK(rmm_sim_memset_async(b + 100, 0, 100, stream) == 0);
    CHECK(rmm_sim_memcpy_async(NULL, a, 16, stream) != 0); /* refused */
    CHECK(rmm_sim_memcpy_async(a, host, 0, stream) == 0);  /* of nothing */
    CHECK(rmm__sim_stream_synchronize(stream) == 0);
    open_own_file(&runtime, &file);
    check_block(&file, a, "memcpy_async", "memcpy_async", 0);
    check_block(&file, b, "memcpy_async", "memset_async", 0);
    row = diag_file_row(&file, (uint64_t)(uintptr_t)a);
    CHECK(row->copies == 4 && row->fills == 0);
    CHECK(row->first_use_ns != 0 && row->last_use_ns >= row->first_use_ns);
    row = diag_file_row(&file, (uint64_t)(uintptr_t)b);
    CHECK(row->copies == 1 && row->fills == 1);
    CHECK(file.header->copies == 4 && file.header->fills == 1);
    CHECK(file.header->launches == 0 && file.header->kernels.used == 0);
    diag_file_close(&file);
}

CASE(copies_and_fills_that_succeeded_count)
{
    child_run(copy_and_fill, NULL);
}

static void prefetch(child_t *self, void *argument)
{
    rmm_resource_t *managed = NULL;
    void *a = NULL;
    diag_file_t file;

    CHECK(rmm_resource_create_from_spec("pool_managed:1MiB", &managed) == RMM_OK);
    a = take(managed, 4096, RMM_STREAM_DEFAULT);
    CHECK(rmm_prefetch(a, 4096, 0, RMM_STREAM_DEFAULT) == RMM_OK);
    CHECK(rmm_prefetch(a, 4096, 4711, RMM_STREAM_DEFAULT) != RMM_OK);
    open_own_file(&runtime, &file);
    check_block(&file, a, "mem_prefetch", "mem_prefetch", 0);
    CHECK(diag_file_row(&file, (uint64_t)(uintptr_t)a)->prefetches == 1);
    CHECK(file.header->prefetches == 1);
    diag_file_close(&file);
}

CASE(a_prefetch_that_succeeded_counts)
{
    child_run(prefetch, NULL);
}

static void capture_and_replay(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();
    void *a = take(pool, 4096, RMM_STREAM_DEFAULT);
    rmm_stream_t stream = NULL;
    rmm_sim_graph_t graph = NULL;
    diag_file_t file;

    CHECK(rmm_stream_create(0, &stream) == RMM_OK);
    CHECK(rmm_sim_begin_capture(stream, 0) == 0);
    launch_on("captured", stream, a);
    CHECK(rmm_sim_end_capture(stream, &graph) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK(rmm_sim_graph_launch(graph, stream) == 0);
    }
    CHECK(rmm__sim_stream_synchronize(stream) == 0);
    open_own_file(&runtime, &file);
    check_block(&file, a, "captured", "captured", 3);
    CHECK(file.header->graph_launches == 3);
    CHECK(file.header->graphs_unseen == 0);
    CHECK(file.header->launches == 3);
    diag_file_close(&file);
    CHECK(rmm_sim_graph_destroy(graph) == 0);
}

CASE(a_captured_launch_counts_at_each_launch_of_its_graph)
{
    child_run(capture_and_replay, NULL);
}

/* --- threads ----------------------------------------------------------------------- */

#define THREADS 4u
#define ROUNDS 300u

static rmm_resource_t *shared_pool;
static void *shared_block;
static void *kept_blocks[THREADS];

static void *launch_and_free(void *argument)
{
    uintptr_t number = (uintptr_t)argument;
    rmm_stream_t stream = NULL;
    void *pair[2] = {NULL, shared_block};

    CHECK(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream) == RMM_OK);
    for (unsigned i = 0; i < ROUNDS; i++) {
        pair[0] = take(shared_pool, 512 + i % 7 * 256, stream);
        launch("pair", stream, pair, sizeof(pair));
        if (i + 1 < ROUNDS) {
            rmm_resource_dealloc(shared_pool, pair[0], 512 + i % 7 * 256, 0, stream);
        }
    }
    kept_blocks[number] = pair[0];
    return NULL;
}

static void use_threads(child_t *self, void *argument)
{
    pthread_t threads[THREADS];
    diag_file_t file;

    shared_pool = make_pool();
    shared_block = take(shared_pool, 4096, RMM_STREAM_DEFAULT);
    for (uintptr_t i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, launch_and_free, (void *)i) == 0);
    }
    for (uintptr_t i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    open_own_file(&runtime, &file);
    CHECK(file.header->launches == THREADS * ROUNDS);
    CHECK(file.header->kernels.used == 1);
    CHECK(diag_file_live(&file) == THREADS + 1);
    check_block(&file, shared_block, "pair", "pair", THREADS * ROUNDS);
    for (uintptr_t i = 0; i < THREADS; i++) {
        check_block(&file, kept_blocks[i], "pair", "pair", 1);
    }
    diag_file_close(&file);
}

CASE(threads_lose_no_launch)
{
    child_run(use_threads, NULL);
}

static void *first_allocation(void *argument)
{
    kept_blocks[(uintptr_t)argument] = take(shared_pool, 512, RMM_STREAM_DEFAULT);
    return NULL;
}

static void attach_from_threads(child_t *self, void *argument)
{
    pthread_t threads[THREADS];
    diag_file_t file;

    shared_pool = make_pool();
    for (uintptr_t i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, first_allocation, (void *)i) == 0);
    }
    for (uintptr_t i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    open_own_file(&runtime, &file);
    CHECK(diag_file_live(&file) == THREADS);
    for (uintptr_t i = 0; i < THREADS; i++) {
        check_block(&file, kept_blocks[i], "none", "none", 0);
    }
    diag_file_close(&file);
}

CASE(no_block_is_missed_while_it_attaches)
{
    child_run(attach_from_threads, NULL);
}

/* --- switched off, forked ---------------------------------------------------------- */

static void allocate_and_launch(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();
    void *a = take(pool, 4096, RMM_STREAM_DEFAULT);

    launch_on("k", RMM_STREAM_DEFAULT, a);
    rmm_resource_dealloc(pool, a, 4096, 0, RMM_STREAM_DEFAULT);
}

CASE(makes_no_file_by_default)
{
    char path[512];

    unsetenv("RMM_DIAG");
    child_run(allocate_and_launch, NULL);
    assert_int_equal(runtime_count(&runtime, RMM_FILE_SEGMENT, NULL), 1);
    assert_false(diag_file_find(runtime.path, path));
}

CASE(a_process_that_does_not_publish_runs_all_the_same)
{
    char path[512];

    setenv("RMM_PUBLISH", "0", 1);
    child_run(allocate_and_launch, NULL);
    assert_false(diag_file_find(runtime.path, path));
}

static void fork_and_launch(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();
    void *a = take(pool, 4096, RMM_STREAM_DEFAULT);
    diag_file_t file;
    pid_t child = 0;
    int status = 0;

    launch_on("k", RMM_STREAM_DEFAULT, a);
    child = fork();
    if (child == 0) {
        const void *params[] = {&a};
        const size_t bytes[] = {sizeof(a)};
        void *block = NULL;

        (void)rmm_sim_launch("k", kernel, RMM_STREAM_DEFAULT, params, bytes, 1);
        (void)!rmm_resource_alloc(pool, 4096, 0, RMM_STREAM_DEFAULT, &block);
        rmm_resource_dealloc(pool, a, 4096, 0, RMM_STREAM_DEFAULT);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    open_own_file(&runtime, &file);
    check_block(&file, a, "k", "k", 1);
    diag_file_close(&file);
}

CASE(a_forked_child_leaves_the_file_alone)
{
    child_run(fork_and_launch, NULL);
}

/* --- whole programs ---------------------------------------------------------------- */

static int run_injected(const char *program, const char *output)
{
    char command[2048];

    snprintf(
        command, sizeof(command), "'%s' -- '%s' >'%s'", getenv("RMM_TEST_RMM_RUN"),
        program, output);
    return system(command);
}

static void check_line(const diag_file_t *file, const char *line)
{
    unsigned long long address = 0, bytes = 0, launches = 0, fills = 0;
    char first[32], last[32];
    const rmm_diag_row_t *row = NULL;

    assert_int_equal(
        sscanf(
            line, "%llu %llu %31s %31s %llu %llu", &address, &bytes, first, last,
            &launches, &fills),
        6);
    row = diag_file_row(file, address);
    assert_non_null(row);
    assert_int_equal(row->bytes, bytes);
    assert_int_equal(row->launches, launches);
    assert_int_equal(row->fills, fills);
    assert_string_equal(diag_file_user(file, row->first_user), first);
    assert_string_equal(diag_file_user(file, row->last_user), last);
}

CASE(follows_a_program_that_links_the_shared_library)
{
    char path[512], output[256], line[256];
    diag_file_t file;
    FILE *lines = NULL;
    int checked = 0;

    unsetenv("RMM_DIAG");
    unsetenv("CUDA_INJECTION64_PATH");
    snprintf(output, sizeof(output), "%s/expected.txt", runtime.path);
    assert_int_equal(run_injected(getenv("RMM_TEST_PROGRAM"), output), 0);
    assert_true(diag_file_find(runtime.path, path));
    assert_true(diag_file_read(&file, path));
    assert_string_equal(file.header->source, "active");
    lines = fopen(output, "r");
    assert_non_null(lines);
    while (fgets(line, sizeof(line), lines) != NULL) {
        check_line(&file, line);
        checked++;
    }
    fclose(lines);
    assert_int_equal(checked, 3);
    assert_int_equal(diag_file_live(&file), 3);
    assert_int_equal(file.header->launches, 11);
    diag_file_close(&file);
    assert_int_equal(setenv("CUDA_INJECTION64_PATH", getenv("RMM_TEST_INJECT"), 1), 0);
}

CASE(a_program_without_the_library_is_not_touched)
{
    char path[512];

    unsetenv("CUDA_INJECTION64_PATH");
    assert_int_equal(run_injected("/bin/true", "/dev/null"), 0);
    assert_int_equal(runtime_count(&runtime, RMM_FILE_SEGMENT, NULL), 0);
    assert_false(diag_file_find(runtime.path, path));
    assert_int_equal(setenv("CUDA_INJECTION64_PATH", getenv("RMM_TEST_INJECT"), 1), 0);
}
