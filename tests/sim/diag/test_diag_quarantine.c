/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quarantine: what was freed last is not used again, and no allocation fails because of it.
 * One attachment a process, so each case runs in a child.
 */
#include "sim/diag/diagnosed.h"

#include <rmm/memory.h>
#include <rmm/resource_spec.h>
#include <rmm/sim.h>

#include "driver/sim/control.h"

static runtime_t runtime;

static int open_with(const char *modes, const char *bytes)
{
    unsetenv("RMM_PUBLISH");
    setenv("RMM_DIAG", modes, 1);
    setenv("RMM_DIAG_QUARANTINE", bytes, 1);
    runtime_open(&runtime);
    return 0;
}

static int keep_little(void **state)
{
    return open_with("usage,bounds", "64KiB");
}

static int keep_all(void **state)
{
    return open_with("usage,bounds", "1TiB");
}

static int keep_without_bounds(void **state)
{
    return open_with("usage", "1TiB");
}

static int keep_nonsense(void **state)
{
    return open_with("usage,bounds", "much");
}

static int drop_runtime(void **state)
{
    unsetenv("RMM_DIAG_QUARANTINE");
    runtime_close(&runtime);
    return 0;
}

static rmm_resource_t *make(const char *spec)
{
    rmm_resource_t *mr = NULL;

    CHECK(rmm_resource_create_from_spec(spec, &mr) == RMM_OK);
    return mr;
}

static void drop(rmm_resource_t *mr, void *block, size_t bytes, rmm_stream_t stream)
{
    rmm_resource_dealloc(mr, block, bytes, 0, stream);
}

static rmm_stats_t stats_of(const rmm_resource_t *mr)
{
    rmm_stats_t stats = RMM_STATS_INIT;

    CHECK(rmm_resource_get_stats(mr, &stats) == RMM_OK);
    return stats;
}

static void fill(void *block, size_t bytes, rmm_stream_t stream)
{
    CHECK(rmm_memset_async(block, 1, bytes, stream) == RMM_OK);
}

/* --- what it does -------------------------------------------------------------------- */

static const char *const kinds[] = {
    "pool:64MiB", "pool_virtual:64MiB", "fixed_size:4KiB", "statistics+pool:64MiB",
    "arena:64MiB"};

static void use_late(child_t *self, void *argument)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        rmm_resource_t *mr = make(kinds[i]);
        void *early = take(mr, 4096, RMM_STREAM_DEFAULT), *next = NULL;

        fill(early, 4096, RMM_STREAM_DEFAULT);
        drop(mr, early, 4096, RMM_STREAM_DEFAULT);
        CHECK(stats_of(mr).current_bytes == 0);
        next = take(mr, 4096, RMM_STREAM_DEFAULT);
        CHECK(next != early);
        fill(early, 4096, RMM_STREAM_DEFAULT);
        expect_findings(&runtime, i + 1);
        drop(mr, next, 4096, RMM_STREAM_DEFAULT);
        rmm_resource_release(mr);
    }
}

static void a_late_use_is_found_although_others_have_allocated(void **state)
{
    child_run(use_late, NULL);
}

static void reuse_at_once(child_t *self, void *argument)
{
    rmm_resource_t *pool = make("pool:64MiB");
    void *early = take(pool, 4096, RMM_STREAM_DEFAULT);

    drop(pool, early, 4096, RMM_STREAM_DEFAULT);
    CHECK(take(pool, 4096, RMM_STREAM_DEFAULT) == early);
}

static void nothing_is_kept_where_bounds_are_not_looked_for(void **state)
{
    child_run(reuse_at_once, NULL);
}

/* --- what it must not do ------------------------------------------------------------- */

static void allocate_all(child_t *self, void *argument)
{
    static const struct {
        const char *spec;
        size_t bytes;
    } full[] = {
        {"pool:1MiB:1MiB", 1 << 20},
        {"pool_virtual:2MiB:2MiB", 1 << 20},
        {"arena:4MiB", 3 << 20},
        {"arena:4MiB", 100000}};

    for (size_t i = 0; i < sizeof(full) / sizeof(full[0]); i++) {
        rmm_resource_t *mr = make(full[i].spec);
        size_t bytes = full[i].bytes;

        for (int round = 0; round < 100; round++) {
            void *block = take(mr, bytes, RMM_STREAM_DEFAULT);

            fill(block, bytes, RMM_STREAM_DEFAULT);
            drop(mr, block, bytes, RMM_STREAM_DEFAULT);
        }
        rmm_resource_release(mr);
    }
    expect_findings(&runtime, 0);
    CHECK(rmm_sim_violations() == 0);
}

static void an_allocation_gets_what_is_kept_rather_than_to_fail(void **state)
{
    child_run(allocate_all, NULL);
}

static void free_many(child_t *self, void *argument)
{
    rmm_resource_t *pool = make("pool:1MiB:8MiB");

    for (int round = 0; round < 100000; round++) {
        void *block = take(pool, 1000, RMM_STREAM_DEFAULT);

        drop(pool, block, 1000, RMM_STREAM_DEFAULT);
    }
    CHECK(stats_of(pool).reserved_bytes <= 1 << 20);
    CHECK(stats_of(pool).current_bytes == 0);
    expect_findings(&runtime, 0);
}

static void more_than_is_to_be_kept_is_free_again(void **state)
{
    child_run(free_many, NULL);
}

/* A block of each size is in another engine of an arena; both count. */
static void free_small_and_large(child_t *self, void *argument)
{
    rmm_resource_t *arena = make("arena:64MiB");
    void *small = take(arena, 1000, RMM_STREAM_DEFAULT);
    void *large = take(arena, 16 << 20, RMM_STREAM_DEFAULT);

    drop(arena, small, 1000, RMM_STREAM_DEFAULT);
    CHECK(take(arena, 1000, RMM_STREAM_DEFAULT) != small);
    drop(arena, large, 16 << 20, RMM_STREAM_DEFAULT); /* more than 64 KiB together */
    CHECK(take(arena, 1000, RMM_STREAM_DEFAULT) == small);
    CHECK(take(arena, 16 << 20, RMM_STREAM_DEFAULT) == large);
}

static void an_arena_keeps_so_much_in_all(void **state)
{
    child_run(free_small_and_large, NULL);
}

static void do_nothing(const void *const *params)
{
    (void)params;
}

/* The block before it ends, with its padding, where this one began. */
static void use_first_byte(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();
    void *first = take(pool, 1024, RMM_STREAM_DEFAULT);
    void *second = take(pool, 1024, RMM_STREAM_DEFAULT);
    void *end = (char *)first + 1024;
    const void *params[] = {&first, &end};
    const size_t sizes[] = {sizeof(first), sizeof(end)};

    CHECK(rmm_sim_launch("sum", do_nothing, RMM_STREAM_DEFAULT, params, sizes, 2) == 0);
    drop(pool, second, 1024, RMM_STREAM_DEFAULT);
    CHECK(rmm_sim_launch("sum", do_nothing, RMM_STREAM_DEFAULT, params, sizes, 2) == 0);
    expect_findings(&runtime, 0);
    params[1] = &second;
    CHECK(rmm_sim_launch("sum", do_nothing, RMM_STREAM_DEFAULT, params, sizes, 2) == 0);
    expect_findings(&runtime, 1);
}

static void a_freed_block_does_not_begin_where_one_ends(void **state)
{
    child_run(use_first_byte, NULL);
}

static void trim(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();

    drop(pool, take(pool, 3 << 20, RMM_STREAM_DEFAULT), 3 << 20, RMM_STREAM_DEFAULT);
    CHECK(rmm_resource_trim(pool, 0) == RMM_OK);
    CHECK(stats_of(pool).reserved_bytes == 0);
}

static void a_trim_gives_back_what_is_kept(void **state)
{
    child_run(trim, NULL);
}

/* The stream has ended, work of another waits for nothing, and the pool ends with blocks kept. */
static void end_stream(child_t *self, void *argument)
{
    rmm_resource_t *pool = make(argument);

    for (int round = 0; round < 50; round++) {
        rmm_stream_t stream = NULL;
        void *block = NULL;

        CHECK(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream) == RMM_OK);
        block = take(pool, 600000, stream);
        fill(block, 600000, stream);
        drop(pool, block, 600000, stream);
        CHECK(rmm_stream_destroy(stream) == RMM_OK);
    }
    rmm_resource_release(pool);
    CHECK(rmm_sim_device_synchronize() == 0);
    CHECK(rmm_sim_violations() == 0);
    expect_findings(&runtime, 0);
}

static void streams_and_pools_may_end_while_blocks_are_kept(void **state)
{
    child_run(end_stream, (void *)(uintptr_t) "pool:1MiB:1MiB");
}

static void streams_and_arenas_may_end_while_blocks_are_kept(void **state)
{
    child_run(end_stream, (void *)(uintptr_t) "arena:2MiB");
}

static void capture(child_t *self, void *argument)
{
    rmm_resource_t *pool = make(argument);
    rmm_stream_t stream = NULL;
    rmm_sim_graph_t graph = NULL;
    void *block = NULL;

    CHECK(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream) == RMM_OK);
    drop(pool, take(pool, 1 << 20, stream), 1 << 20, stream);
    CHECK(rmm_sim_begin_capture(stream, 0) == 0);
    block = take(pool, 1 << 20, stream);
    fill(block, 1 << 20, stream);
    drop(pool, block, 1 << 20, stream);
    CHECK(rmm_sim_end_capture(stream, &graph) == 0);
    CHECK(rmm_sim_graph_launch(graph, stream) == 0);
    CHECK(rmm__sim_stream_synchronize(stream) == 0);
    CHECK(rmm_sim_graph_destroy(graph) == 0);
    CHECK(rmm_sim_violations() == 0);
    expect_findings(&runtime, 0);
}

static void a_capture_keeps_its_own_blocks(void **state)
{
    child_run(capture, (void *)(uintptr_t) "pool:4MiB:4MiB");
}

static void a_capture_keeps_its_own_blocks_of_an_arena(void **state)
{
    child_run(capture, (void *)(uintptr_t) "arena:8MiB");
}

enum { ROUNDS = 1000 };

static void *churn(void *argument)
{
    rmm_resource_t *pool = argument;
    rmm_stream_t stream = NULL;

    CHECK(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream) == RMM_OK);
    for (size_t i = 0; i < ROUNDS; i++) {
        size_t bytes = 1 + i * 37 % 50000;
        void *block = take(pool, bytes, stream);

        fill(block, bytes, stream);
        drop(pool, block, bytes, stream);
    }
    CHECK(rmm_stream_synchronize(stream) == RMM_OK);
    CHECK(rmm_stream_destroy(stream) == RMM_OK);
    return NULL;
}

static void churn_in_threads(child_t *self, void *argument)
{
    rmm_resource_t *pool = make(argument);

    run_in_threads(churn, pool);
    expect_findings(&runtime, 0);
    CHECK(rmm_sim_violations() == 0);
}

static void threads_share_a_pool_that_keeps(void **state)
{
    child_run(churn_in_threads, (void *)(uintptr_t) "pool:1MiB:2MiB");
}

static void threads_share_an_arena_that_keeps(void **state)
{
    child_run(churn_in_threads, (void *)(uintptr_t) "arena:8MiB");
}

#define CASE(name, open) cmocka_unit_test_setup_teardown(name, open, drop_runtime)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_late_use_is_found_although_others_have_allocated, keep_all),
        CASE(nothing_is_kept_where_bounds_are_not_looked_for, keep_without_bounds),
        CASE(nothing_is_kept_where_bounds_are_not_looked_for, keep_nonsense),
        CASE(an_allocation_gets_what_is_kept_rather_than_to_fail, keep_all),
        CASE(more_than_is_to_be_kept_is_free_again, keep_little),
        CASE(an_arena_keeps_so_much_in_all, keep_little),
        CASE(a_freed_block_does_not_begin_where_one_ends, keep_little),
        CASE(a_trim_gives_back_what_is_kept, keep_all),
        CASE(streams_and_pools_may_end_while_blocks_are_kept, keep_all),
        CASE(streams_and_arenas_may_end_while_blocks_are_kept, keep_all),
        CASE(streams_and_pools_may_end_while_blocks_are_kept, keep_little),
        CASE(streams_and_arenas_may_end_while_blocks_are_kept, keep_little),
        CASE(a_capture_keeps_its_own_blocks, keep_all),
        CASE(a_capture_keeps_its_own_blocks_of_an_arena, keep_all),
        CASE(threads_share_a_pool_that_keeps, keep_little),
        CASE(threads_share_an_arena_that_keeps, keep_little),
        CASE(threads_share_a_pool_that_keeps, keep_all),
        CASE(threads_share_an_arena_that_keeps, keep_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
