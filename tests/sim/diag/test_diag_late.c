/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses of freed blocks in whole programs on the simulated GPU, through librmm-inject: what the
 * library keeps and gives back, who else gets the memory, and the stacks. Single errors are
 * planted in tests/gpu/faults. One attachment a process, so each case runs in a child.
 */
#include "sim/diag/diagnosed.h"

#include <sys/wait.h>

#include <rmm/callback_resource.h>
#include <rmm/device.h>
#include <rmm/memory.h>
#include <rmm/resource_spec.h>
#include <rmm/sim.h>

#include "driver/sim/control.h"

static runtime_t runtime;

static int make_runtime(void **state)
{
    unsetenv("RMM_PUBLISH");
    setenv("RMM_DIAG", "usage,bounds", 1);
    setenv("RMM_SIM_DEVICES", "2", 1);
    runtime_open(&runtime);
    return 0;
}

static int drop_runtime(void **state)
{
    unsetenv("RMM_SIM_DEVICES");
    runtime_close(&runtime);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, make_runtime, drop_runtime)

static void do_nothing(const void *const *params)
{
    (void)params;
}

static void launch(const void *pointer, rmm_stream_t stream)
{
    const void *params[] = {&pointer};
    const size_t bytes[] = {sizeof(pointer)};

    CHECK(rmm_sim_launch("late", do_nothing, stream, params, bytes, 1) == 0);
}

static void drop(rmm_resource_t *mr, void *block, size_t bytes)
{
    rmm_resource_dealloc(mr, block, bytes, 0, RMM_STREAM_DEFAULT);
}

/* --- stacks -------------------------------------------------------------------------- */

static bool has_same_frames(const rmm_diag_stack_t *a, const rmm_diag_stack_t *b)
{
    for (uint32_t i = 0; i < a->frame_count && i < b->frame_count; i++) {
        if (a->offsets[i] != b->offsets[i]) {
            return false;
        }
    }
    return true;
}

/* The diagnosis itself is in it. */
static bool has_own_frames(const diag_file_t *file, const rmm_diag_stack_t *stack)
{
    const rmm_diag_module_t *modules =
        (void *)((char *)file->header + file->header->modules.offset);

    for (uint32_t i = 0; i < stack->frame_count; i++) {
        if (stack->modules[i] != RMM_DIAG_NO_MODULE &&
            strstr(modules[stack->modules[i]].path, "librmm-inject.so") != NULL) {
            return true;
        }
    }
    return false;
}

static void use_late(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();
    char *block = take(pool, 1000, RMM_STREAM_DEFAULT);
    const rmm_diag_stack_t *calls, *origins, *frees;
    diag_file_t file;

    drop(pool, block, 1000);
    launch(block + 8, RMM_STREAM_DEFAULT);
    open_own_file(&runtime, &file);
    CHECK(file.header->findings_total == 1);
    CHECK(file.findings[0].kind == RMM_DIAG_USE_AFTER_FREE);
    CHECK(file.findings[0].block_address == (uintptr_t)block);
    calls = (void *)((char *)file.header + file.header->stacks.offset);
    origins = (void *)((char *)file.header + file.header->origins.offset);
    frees = (void *)((char *)file.header + file.header->frees.offset);
    CHECK(calls->frame_count > 2 && origins->frame_count > 2 && frees->frame_count > 2);
    CHECK(!has_same_frames(calls, origins) && !has_same_frames(origins, frees));
    CHECK(!has_own_frames(&file, calls) && !has_own_frames(&file, origins));
    CHECK(!has_own_frames(&file, frees));
    diag_file_close(&file);
}

CASE(shows_the_stacks_of_use_allocation_and_free)
{
    child_run(use_late, NULL);
}

/* --- who gets the memory ------------------------------------------------------------- */

/* Without a word of its allocation, as memory that somebody else takes from the driver. */
static void use_unseen(const void *memory)
{
    launch(memory, RMM_STREAM_DEFAULT);
    CHECK(rmm_sim_device_synchronize() == 0);
}

static void give_back(child_t *self, void *argument)
{
    static const char *const specs[] = {"pool:16MiB",    "pool_virtual:16MiB",
                                        "arena:16MiB",   "fixed_size",
                                        "binning:16MiB", "statistics+pool:16MiB"};

    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        rmm_resource_t *mr = NULL;
        void *block = NULL;

        CHECK(rmm_resource_create_from_spec(specs[i], &mr) == RMM_OK);
        block = take(mr, 1000, RMM_STREAM_DEFAULT);
        drop(mr, block, 1000);
        rmm_resource_release(mr);
        use_unseen(block);
    }
    expect_findings(&runtime, 0);
}

CASE(memory_of_a_pool_that_has_ended_is_not_looked_at)
{
    child_run(give_back, NULL);
}

static void trim(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();
    void *block = take(pool, 1000, RMM_STREAM_DEFAULT);

    drop(pool, block, 1000);
    CHECK(rmm_sim_device_synchronize() == 0);
    CHECK(rmm_resource_trim(pool, 0) == RMM_OK);
    use_unseen(block);
    expect_findings(&runtime, 0);
}

CASE(memory_that_a_pool_gives_back_is_not_looked_at)
{
    child_run(trim, NULL);
}

/* A program's own function takes what the program freed before, and uses it. */
static rmm_status_t
take_inside(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    rmm_status_t status = rmm_resource_alloc(payload, bytes, 0, stream, ptr_out);

    launch(*ptr_out, stream);
    return status;
}

static void drop_inside(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    rmm_resource_dealloc(payload, ptr, bytes, 0, stream);
}

static void take_in_callback(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool(), *own = NULL;
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    void *block = take(pool, 1000, RMM_STREAM_DEFAULT), *again = NULL;

    options.alloc = take_inside;
    options.dealloc = drop_inside;
    options.payload = pool;
    CHECK(rmm_callback_resource_create(&options, &own) == RMM_OK);
    drop(pool, block, 1000);
    again = take(own, 1000, RMM_STREAM_DEFAULT);
    CHECK(again == block);
    drop(own, again, 1000);
    expect_findings(&runtime, 0);
}

CASE(memory_that_a_programs_own_function_takes_is_its_own)
{
    child_run(take_in_callback, NULL);
}

/* A pool over a pool: blocks of the upper lie in what the lower one has handed out. */
static void stack_pools(child_t *self, void *argument)
{
    rmm_resource_t *lower = make_pool(), *upper = NULL;
    void *early = take(lower, 3 << 20, RMM_STREAM_DEFAULT), *block = NULL;

    drop(lower, early, 3 << 20);
    CHECK(rmm_pool_resource_create(lower, NULL, &upper) == RMM_OK);
    block = take(upper, 1000, RMM_STREAM_DEFAULT);
    launch(block, RMM_STREAM_DEFAULT);
    expect_findings(&runtime, 0);
    drop(upper, block, 1000);
    launch(block, RMM_STREAM_DEFAULT);
    expect_findings(&runtime, 1);
}

CASE(pools_over_pools_are_followed)
{
    child_run(stack_pools, NULL);
}

static void use_on_second(child_t *self, void *argument)
{
    rmm_resource_t *pools[2];
    void *blocks[2];

    for (int device = 0; device < 2; device++) {
        CHECK(rmm__sim_device_set(device) == 0);
        pools[device] = make_pool();
        blocks[device] = take(pools[device], 1000, RMM_STREAM_DEFAULT);
    }
    drop(pools[1], blocks[1], 1000);
    launch(blocks[0], RMM_STREAM_DEFAULT);
    expect_findings(&runtime, 0);
    launch(blocks[1], RMM_STREAM_DEFAULT);
    expect_findings(&runtime, 1);
}

CASE(distinguishes_blocks_of_another_gpu)
{
    child_run(use_on_second, NULL);
}

/* --- threads, processes -------------------------------------------------------------- */

enum { ROUNDS = 3000 };

static void *launch_and_free(void *argument)
{
    rmm_resource_t *pool = argument;
    rmm_stream_t stream = NULL;

    CHECK(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream) == RMM_OK);
    for (size_t i = 0; i < ROUNDS; i++) {
        size_t bytes = 1 + i * 37 % 5000;
        char *block = take(pool, bytes, stream);

        CHECK(rmm_memset_async(block, 1, bytes, stream) == RMM_OK);
        launch(block + bytes / 2, stream);
        rmm_resource_dealloc(pool, block, bytes, 0, stream);
    }
    CHECK(rmm_stream_synchronize(stream) == RMM_OK);
    CHECK(rmm_stream_destroy(stream) == RMM_OK);
    return NULL;
}

static void use_from_threads(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();

    run_in_threads(launch_and_free, pool);
    expect_findings(&runtime, 0);
}

CASE(finds_nothing_while_threads_launch_and_free)
{
    child_run(use_from_threads, NULL);
}

static void use_in_forked(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();
    void *block = take(pool, 1000, RMM_STREAM_DEFAULT);
    int status = 0;
    pid_t child;

    drop(pool, block, 1000);
    child = fork();
    if (child == 0) {
        drop(pool, block, 1000); /* refused */
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    expect_findings(&runtime, 0);
    launch(block, RMM_STREAM_DEFAULT);
    expect_findings(&runtime, 1);
}

CASE(a_forked_child_reports_nothing)
{
    child_run(use_in_forked, NULL);
}
