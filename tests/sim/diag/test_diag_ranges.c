/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies, fills and prefetches of whole programs on the simulated GPU, through librmm-inject:
 * correct programs have no finding. Errors are planted in tests/gpu/faults. One attachment a
 * process, so each case runs in a child.
 */
#include "sim/diag/diagnosed.h"

#include <rmm/device_buffer.h>
#include <rmm/memory.h>
#include <rmm/resource_spec.h>
#include <rmm/sys/diag.h>

static runtime_t runtime;

static int make_runtime(void **state)
{
    unsetenv("RMM_PUBLISH");
    setenv("RMM_DIAG", "usage,bounds", 1);
    runtime_open(&runtime);
    return 0;
}

static int drop_runtime(void **state)
{
    runtime_close(&runtime);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, make_runtime, drop_runtime)

/* --- an error ------------------------------------------------------------------------ */

/* The simulated GPU refuses the call, and the finding is there all the same. */
static void overrun_the_gpu(child_t *self, void *argument)
{
    rmm_resource_t *cuda = NULL;
    char *block = NULL;

    CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    block = take(cuda, 4096, RMM_STREAM_DEFAULT);
    (void)!rmm_memset_async(block, 1, (size_t)1 << 40, RMM_STREAM_DEFAULT);
    expect_findings(&runtime, 1);
}

CASE(finds_an_error_before_the_call_is_made)
{
    child_run(overrun_the_gpu, NULL);
}

/* --- correct programs ---------------------------------------------------------------- */

static void use_buffers(rmm_resource_t *mr)
{
    rmm_device_buffer_t buffer;
    char host[3000] = "";

    CHECK(
        rmm_device_buffer_init_copy_from(&buffer, host, 1, RMM_STREAM_DEFAULT, mr) ==
        RMM_OK);
    for (size_t size = 1; size < sizeof(host); size = size * 2 + 1) {
        rmm_device_buffer_t copy = RMM_DEVICE_BUFFER_INIT;

        CHECK(rmm_device_buffer_resize(&buffer, size, RMM_STREAM_DEFAULT) == RMM_OK);
        CHECK(
            rmm_device_buffer_copy_from_host(
                &buffer, 0, host, size, RMM_STREAM_DEFAULT) == RMM_OK);
        CHECK(
            rmm_device_buffer_copy_to_host(
                &buffer, 0, host, size, RMM_STREAM_DEFAULT) == RMM_OK);
        CHECK(rmm_device_buffer_prefetch(&buffer, 0, RMM_STREAM_DEFAULT) == RMM_OK);
        CHECK(rmm_device_buffer_copy(&copy, &buffer, RMM_STREAM_DEFAULT, mr) == RMM_OK);
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
        "prefetch+pool_managed",
        "aligned:4096+pool",
        "tracking+statistics+pool",
        "pinned"};

    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        rmm_resource_t *mr = NULL;

        if (rmm_resource_create_from_spec(specs[i], &mr) != RMM_OK) {
            fprintf(stderr, "%s: %s\n", specs[i], rmm_last_error_message());
            CHECK(false);
        }
        use_buffers(mr);
        rmm_resource_release(mr);
    }
    expect_findings(&runtime, 0);
}

CASE(finds_nothing_in_what_the_library_does_itself)
{
    child_run(use_every_resource, NULL);
}

enum { ROUNDS = 2000 };

static void *allocate_and_fill(void *argument)
{
    rmm_resource_t *pool = argument;

    for (size_t i = 0; i < ROUNDS; i++) {
        size_t bytes = 1 + i * 37 % 5000;
        void *block = take(pool, bytes, RMM_STREAM_DEFAULT);

        CHECK(rmm_memset_async(block, 1, bytes, RMM_STREAM_DEFAULT) == RMM_OK);
        rmm_resource_dealloc(pool, block, bytes, 0, RMM_STREAM_DEFAULT);
    }
    return NULL;
}

static void use_from_threads(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();

    run_in_threads(allocate_and_fill, pool);
    expect_findings(&runtime, 0);
}

CASE(finds_nothing_while_blocks_change_hands)
{
    child_run(use_from_threads, NULL);
}
