/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmm_diag_attach_v1() by itself: who may attach, and which blocks the hooks are told.
 */
#include "harness/runtime.h"

#include <rmm/arena_resource.h>
#include <rmm/async_resource.h>
#include <rmm/cuda_resource.h>
#include <rmm/managed_resource.h>
#include <rmm/memory.h>
#include <rmm/pinned_resource.h>
#include <rmm/pool_resource.h>
#include <rmm/pool_sleep.h>
#include <rmm/sys/diag.h>

#include "harness/diag_file.h"

static runtime_t runtime;

static int make_runtime(void **state)
{
    runtime_open(&runtime);
    return 0;
}

static int drop_runtime(void **state)
{
    runtime_close(&runtime);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, make_runtime, drop_runtime)

static rmm_diag_block_v1_t allocated[16], freed[16];
static unsigned allocated_count, freed_count;

static void on_alloc(void *context, const rmm_diag_block_v1_t *block)
{
    CHECK(context == &runtime && allocated_count < 16);
    allocated[allocated_count++] = *block;
}

static void on_free(void *context, const rmm_diag_block_v1_t *block)
{
    CHECK(context == &runtime && freed_count < 16);
    freed[freed_count++] = *block;
}

static rmm_diag_hooks_v1_t hooks(void)
{
    return (rmm_diag_hooks_v1_t){
        .struct_size = sizeof(rmm_diag_hooks_v1_t),
        .context = &runtime,
        .on_alloc = on_alloc,
        .on_free = on_free};
}

static void attach_wrongly(child_t *self, void *argument)
{
    rmm_diag_hooks_v1_t good = hooks(), bad = hooks();
    rmm_diag_services_v1_t services = {.struct_size = sizeof(services)};

    (void)self;
    (void)argument;
    CHECK(rmm_diag_attach_v1(NULL, &services) == RMM_ERR_INVALID_ARGUMENT);
    CHECK(rmm_diag_attach_v1(&good, NULL) == RMM_ERR_INVALID_ARGUMENT);
    bad.struct_size = sizeof(bad) - 1;
    CHECK(rmm_diag_attach_v1(&bad, &services) == RMM_ERR_INVALID_ARGUMENT);
    bad = hooks();
    bad.on_free = NULL;
    CHECK(rmm_diag_attach_v1(&bad, &services) == RMM_ERR_INVALID_ARGUMENT);
    services.struct_size = sizeof(services) - 1;
    CHECK(rmm_diag_attach_v1(&good, &services) == RMM_ERR_INVALID_ARGUMENT);
    services.struct_size = sizeof(services);
    CHECK(rmm_diag_attach_v1(&good, &services) == RMM_OK);
    CHECK(rmm_diag_attach_v1(&good, &services) == RMM_ERR_UNSUPPORTED);
}

CASE(takes_one_with_complete_hooks)
{
    child_run(attach_wrongly, NULL);
}

static rmm_status_t create_async(rmm_resource_t **out)
{
    return rmm_async_resource_create(NULL, out);
}

/* The driver's blocks end where their bytes do: what lies behind them is the driver's. */
static void look_at_ends(child_t *self, void *argument)
{
    static rmm_status_t (*const create[])(rmm_resource_t * *out) = {
        rmm_cuda_resource_create, rmm_managed_resource_create,
        rmm_pinned_resource_create, create_async};
    rmm_diag_hooks_v1_t own = hooks();
    rmm_diag_services_v1_t services = {.struct_size = sizeof(services)};

    (void)self;
    (void)argument;
    CHECK(rmm_diag_attach_v1(&own, &services) == RMM_OK);
    for (unsigned i = 0; i < 4; i++) {
        rmm_resource_t *mr;
        void *block;

        CHECK(create[i](&mr) == RMM_OK);
        CHECK(rmm_resource_alloc(mr, 1000, 0, NULL, &block) == RMM_OK);
        CHECK(allocated_count == i + 1);
        CHECK(allocated[i].end == allocated[i].address + 1000);
        CHECK((allocated[i].flags & RMM_DIAG_BLOCK_RETURNED) != 0);
        rmm_resource_dealloc(mr, block, 1000, 0, NULL);
        rmm_resource_release(mr);
    }
}

CASE(are_told_where_a_block_of_the_driver_ends)
{
    child_run(look_at_ends, NULL);
}

static void allocate_attached(child_t *self, void *argument)
{
    rmm_diag_hooks_v1_t own = hooks();
    rmm_diag_services_v1_t services = {.struct_size = sizeof(services)};
    rmm_resource_t *cuda = NULL, *pool = NULL;
    void *early = NULL, *block = NULL, *nothing = NULL, *side = NULL;

    (void)self;
    (void)argument;
    CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    CHECK(rmm_pool_resource_create(cuda, NULL, &pool) == RMM_OK);
    /* a first block with nobody there must not settle the matter for ever */
    CHECK(rmm_resource_alloc(pool, 100, 0, NULL, &early) == RMM_OK);
    CHECK(rmm_diag_attach_v1(&own, &services) == RMM_OK);
    CHECK(strcmp(services.driver_name, "sim") == 0);
    CHECK(services.observe != NULL);
    CHECK(services.side_file("diag", 4096, &side) == RMM_OK);
    CHECK(side != NULL && *(char *)side == 0);

    CHECK(rmm_resource_alloc(pool, 1000, 0, NULL, &block) == RMM_OK);
    CHECK(rmm_resource_alloc(pool, 0, 0, NULL, &nothing) == RMM_OK);
    CHECK(allocated_count == 1); /* no chunk of the pool, no block of no bytes */
    CHECK(allocated[0].address == (uint64_t)(uintptr_t)block);
    CHECK(allocated[0].bytes == 1000);
    CHECK(allocated[0].stream_id == 0);
    CHECK(allocated[0].device == 0);
    rmm_resource_dealloc(pool, nothing, 0, 0, NULL);
    rmm_resource_dealloc(pool, block, 1000, 0, NULL);
    CHECK(freed_count == 1);
    CHECK(freed[0].address == allocated[0].address);
    CHECK(freed[0].bytes == 1000);
    CHECK(freed[0].resource_id == allocated[0].resource_id);
    rmm_resource_dealloc(pool, early, 100, 0, NULL);
    rmm_resource_release(pool);
    rmm_resource_release(cuda);
    CHECK(allocated_count == 1 && freed_count == 2);
}

CASE(tells_the_hooks_what_users_hold)
{
    char path[512];

    child_run(allocate_attached, NULL);
    assert_true(diag_file_find(runtime.path, path));
}

static void release_with_blocks_out(child_t *self, void *argument)
{
    rmm_diag_hooks_v1_t own = hooks();
    rmm_diag_services_v1_t services = {.struct_size = sizeof(services)};
    rmm_arena_options_t arena_options = RMM_ARENA_OPTIONS_INIT;
    rmm_resource_t *mrs[3]; /* cuda last */
    void *lost[3];

    (void)self;
    (void)argument;
    arena_options.arena_bytes = 4 << 20;
    CHECK(rmm_cuda_resource_create(&mrs[2]) == RMM_OK);
    CHECK(rmm_pool_resource_create(mrs[2], NULL, &mrs[0]) == RMM_OK);
    CHECK(rmm_arena_resource_create(mrs[2], &arena_options, &mrs[1]) == RMM_OK);
    CHECK(rmm_diag_attach_v1(&own, &services) == RMM_OK);
    for (unsigned i = 0; i < 3; i++) {
        CHECK(rmm_resource_alloc(mrs[i], 1000 + i, 0, NULL, &lost[i]) == RMM_OK);
    }
    for (unsigned i = 0; i < 3; i++) {
        rmm_resource_release(mrs[i]);
        CHECK(freed_count == i + 1);
        CHECK(freed[i].address == (uint64_t)(uintptr_t)lost[i]);
        CHECK(freed[i].bytes == 1000 + i);
    }
}

CASE(tells_of_blocks_that_end_with_their_resource)
{
    setenv("RMM_LOG_LEVEL", "off", 1);
    child_run(release_with_blocks_out, NULL);
}

static void fork_attached(child_t *self, void *argument)
{
    rmm_diag_hooks_v1_t own = hooks();
    rmm_diag_services_v1_t services = {.struct_size = sizeof(services)};
    rmm_resource_t *cuda = NULL;
    void *block = NULL;
    pid_t child = 0;
    int status = 0;

    (void)self;
    (void)argument;
    CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    CHECK(rmm_diag_attach_v1(&own, &services) == RMM_OK);
    CHECK(rmm_resource_alloc(cuda, 100, 0, NULL, &block) == RMM_OK);
    child = fork();
    if (child == 0) {
        rmm_resource_dealloc(cuda, block, 100, 0, NULL);
        _exit(freed_count == 0 ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    rmm_resource_dealloc(cuda, block, 100, 0, NULL);
    CHECK(freed_count == 1);
}

CASE(tells_nothing_in_a_forked_child)
{
    child_run(fork_attached, NULL);
}

/* --- an injected library ------------------------------------------------------------- */

static rmm_resource_t *injected_upstream; /* NULL: nothing is injected */

/* Found by its name. Memory that it takes while it attaches is its own business. */
RMM_API void rmm_diag_injected_v1(rmm_diag_attach_fn attach);

void rmm_diag_injected_v1(rmm_diag_attach_fn attach)
{
    rmm_diag_hooks_v1_t own = hooks();
    rmm_diag_services_v1_t services = {.struct_size = sizeof(services)};
    void *block = NULL;

    if (injected_upstream != NULL) {
        CHECK(rmm_resource_alloc(injected_upstream, 50, 0, NULL, &block) == RMM_OK);
        CHECK(attach(&own, &services) == RMM_OK);
        rmm_resource_dealloc(injected_upstream, block, 50, 0, NULL);
    }
}

static void allocate_while_it_is_looked_for(child_t *self, void *argument)
{
    void *block = NULL;

    (void)self;
    (void)argument;
    alarm(100); /* it must not wait for itself */
    CHECK(rmm_cuda_resource_create(&injected_upstream) == RMM_OK);
    CHECK(rmm_resource_alloc(injected_upstream, 1000, 0, NULL, &block) == RMM_OK);
    CHECK(allocated_count == 1 && allocated[0].bytes == 1000);
    rmm_resource_dealloc(injected_upstream, block, 1000, 0, NULL);
    CHECK(freed_count == 1 && freed[0].bytes == 1000);
    rmm_resource_release(injected_upstream);
}

CASE(tells_an_injected_library_nothing_of_its_own)
{
    child_run(allocate_while_it_is_looked_for, NULL);
}

static unsigned copy_count;

static void count_copies(void *context, const rmm_diag_event_v1_t *event)
{
    CHECK(context == &runtime);
    copy_count += event->kind == RMM_DIAG_COPY && !event->before;
}

static void sleep_while_observed(child_t *self, void *argument)
{
    rmm_diag_hooks_v1_t own = hooks();
    rmm_diag_services_v1_t services = {.struct_size = sizeof(services)};
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *pool;
    void *blocks[2];

    (void)self;
    (void)argument;
    options.flags = RMM_POOL_VIRTUAL;
    CHECK(rmm_diag_attach_v1(&own, &services) == RMM_OK);
    services.observe(count_copies, &runtime);
    CHECK(rmm_pool_resource_create(NULL, &options, &pool) == RMM_OK);
    for (int i = 0; i < 2; i++) {
        CHECK(rmm_resource_alloc(pool, 1000, 0, NULL, &blocks[i]) == RMM_OK);
    }
    CHECK(rmm_pool_sleep(pool, NULL) == RMM_OK && rmm_pool_wake(pool) == RMM_OK);
    CHECK(copy_count == 0); /* they go across the end of a block */
    CHECK(!rmm_diag_copies_v1());
    CHECK(rmm_memcpy_async(blocks[0], blocks[1], 1000, NULL) == RMM_OK);
    CHECK(copy_count == 1);
    services.observe(NULL, NULL);
    for (int i = 0; i < 2; i++) {
        rmm_resource_dealloc(pool, blocks[i], 1000, 0, NULL);
    }
    rmm_resource_release(pool);
}

CASE(what_a_pool_copies_to_sleep_is_no_use_of_its_blocks)
{
    child_run(sleep_while_observed, NULL);
}
