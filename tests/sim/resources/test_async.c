/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resources over CUDA's memory pools: async, async_view, async_managed. What they make
 * of the driver's pools, what they count, what they refuse. Whether data stays apart is
 * in test_async_order.c.
 *
 * Two devices. RMM's cases are named in brackets.
 */
#include "sim/pool/pool_harness.h"

#include <stdio.h>

#include "base/resource_impl.h"
#include "core/host_memory.h"
#include "driver/sim/control.h"

#define GIB (1024 * MIB)

static rmm_resource_t *make_with(const rmm_async_options_t *options)
{
    rmm_resource_t *mr;

    assert_ok(rmm_async_resource_create(options, &mr));
    return mr;
}

static rmm_resource_t *make_async(void)
{
    return make_with(NULL);
}

static rmm_resource_t *make_view(void *pool)
{
    rmm_resource_t *mr;

    assert_ok(rmm_async_view_resource_create(pool, &mr));
    return mr;
}

static rmm_resource_t *make_managed(void)
{
    rmm_resource_t *mr;

    assert_ok(rmm_async_managed_resource_create(&mr));
    return mr;
}

static rmm_driver_mempool_t handle_of(const rmm_resource_t *mr)
{
    void *handle = rmm_async_resource_pool_handle(mr);

    assert_non_null(handle);
    return handle;
}

static uint64_t threshold_of(const rmm_resource_t *mr)
{
    uint64_t bytes;

    assert_cuda(sim_driver()->mempool_get_threshold(handle_of(mr), &bytes));
    return bytes;
}

static uint64_t location_reserved(int device)
{
    return rmm__figure_get(&rmm__locations[device].reserved_bytes);
}

/* What pools hold: all but the block for barriers. */
#define HELD_BYTES (rmm_sim_allocated_bytes(0) - 512)

static void end(rmm_resource_t *mr)
{
    rmm_resource_release(mr);
    assert_int_equal(rmm_sim_violations(), 0);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(location_reserved(0), 0);
}

/* --- async: what it is made of ------------------------------------------------------ */

/* [ExplicitInitialPoolSize] */
TEST_CASE(an_initial_size_is_taken_at_creation)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.initial_pool_bytes = 100 * MIB;
    mr = make_with(&options);
    assert_true(rmm_sim_allocated_bytes(0) >= 100 * MIB);
    assert_true(stats_of(mr).reserved_bytes >= 100 * MIB);
    assert_int_equal(stats_of(mr).current_bytes, 0);
    assert_int_equal(stats_of(mr).total_count, 0);
    end(mr);
}

TEST_CASE(takes_nothing_up_front_by_default)
{
    rmm_resource_t *mr = make_async();

    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(stats_of(mr).reserved_bytes, 0);
    end(mr);
}

/* [DefaultReleaseThresholdIsUint64Max] */
TEST_CASE(the_default_release_threshold_keeps_all)
{
    rmm_resource_t *mr = make_async();

    assert_true(threshold_of(mr) == UINT64_MAX);
    give(mr, take(mr, 100 * MIB, NULL), 100 * MIB, NULL);
    assert_cuda(rmm_sim_device_synchronize());
    assert_true(stats_of(mr).reserved_bytes >= 100 * MIB);
    end(mr);
}

/* [ExplicitReleaseThreshold, ExplicitReleaseThresholdIsApplied] */
TEST_CASE(an_explicit_release_threshold_is_applied)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.release_threshold_bytes = 1000;
    mr = make_with(&options);
    assert_int_equal(threshold_of(mr), 1000);
    give(mr, take(mr, 100 * MIB, NULL), 100 * MIB, NULL);
    assert_cuda(rmm_sim_device_synchronize());
    assert_true(stats_of(mr).reserved_bytes < 100 * MIB);
    end(mr);
}

TEST_CASE(a_threshold_of_0_has_a_constant_of_its_own)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.flags = RMM_ASYNC_RELEASE_UNUSED;
    mr = make_with(&options);
    assert_int_equal(threshold_of(mr), 0);
    end(mr);
}

/* [DifferentPoolsUnequal] */
TEST_CASE(different_pools_are_unequal)
{
    rmm_resource_t *first = make_async();
    rmm_resource_t *second = make_async();

    assert_true(rmm_resource_is_equal(first, first));
    assert_false(rmm_resource_is_equal(first, second));
    assert_true(handle_of(first) != handle_of(second));
    rmm_resource_release(first);
    end(second);
}

/* [FabricHandlesSupport] */
TEST_CASE(handle_types_are_those_of_the_device)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;
    rmm_resource_t *mr = NULL;

    options.handle_types = RMM_ASYNC_HANDLE_FABRIC | RMM_ASYNC_HANDLE_POSIX_FD;
    assert_int_equal(rmm_async_resource_create(&options, &mr), RMM_ERR_UNSUPPORTED);
    options.handle_types = RMM_ASYNC_HANDLE_FABRIC;
    assert_int_equal(rmm_async_resource_create(&options, &mr), RMM_ERR_UNSUPPORTED);
    assert_non_null(
        strstr(rmm_last_error_message(), "cudaDevAttrMemoryPoolSupportedHandleTypes"));
    assert_null(mr);
    options.handle_types = RMM_ASYNC_HANDLE_POSIX_FD;
    mr = make_with(&options);
    give(mr, take(mr, 100, NULL), 100, NULL);
    end(mr);
}

TEST_CASE(refuses_options_that_make_no_sense)
{
    const size_t whole = sizeof(rmm_async_options_t);
    const rmm_async_options_t senseless[] = {
        {whole, .flags = RMM_ASYNC_RELEASE_UNUSED, .release_threshold_bytes = 1},
        {whole, .flags = 8},
        {whole, .handle_types = 0x10},
        {.struct_size = 0},
    };
    rmm_resource_t *mr = NULL;

    for (size_t i = 0; i < sizeof(senseless) / sizeof(senseless[0]); i++) {
        assert_int_equal(
            rmm_async_resource_create(&senseless[i], &mr), RMM_ERR_INVALID_ARGUMENT);
    }
    assert_int_equal(rmm_async_resource_create(NULL, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_null(mr);
}

TEST_CASE(an_initial_size_beyond_the_device_leaves_nothing_behind)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;
    const uint64_t sizes[] = {1024 * GIB, PTRDIFF_MAX, UINT64_MAX};
    rmm_resource_t *mr = NULL;

    for (size_t i = 0; i < 3; i++) {
        options.initial_pool_bytes = sizes[i];
        assert_int_equal(
            rmm_async_resource_create(&options, &mr), RMM_ERR_OUT_OF_MEMORY);
        assert_null(mr);
    }
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

/* Create and release one; true if it could be created. */
static bool create_and_release(void)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;
    rmm_resource_t *mr = NULL;
    rmm_status_t status;

    options.initial_pool_bytes = MIB;
    options.release_threshold_bytes = MIB;
    options.handle_types = RMM_ASYNC_HANDLE_POSIX_FD;
    status = rmm_async_resource_create(&options, &mr);
    assert_true((status == RMM_OK) == (mr != NULL));
    rmm_resource_release(mr);
    return status == RMM_OK;
}

static void assert_nothing_is_left(void)
{
    assert_true(rmm_sim_fail(NULL));
    rmm__host_memory_fail(0);
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(location_reserved(0), 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

/* Each call but those that give back fails in turn, and each request for host memory. */
TEST_CASE(a_creation_that_fails_leaves_nothing_behind)
{
    static const char *const calls[] = {
        "device_get",     "device_attribute",      "capture_mode_exchange",
        "mempool_create", "mempool_set_threshold", "mempool_alloc",
        "device_info",    "mempool_figures"};
    bool created = false;

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        char plan[40];

        snprintf(plan, sizeof(plan), "%s:1", calls[i]);
        assert_true(rmm_sim_fail(plan));
        assert_false(create_and_release());
        assert_true(rmm__sim_fault_has_struck());
        assert_nothing_is_left();
    }
    for (uint64_t nth = 1; !created; nth++) {
        rmm__host_memory_fail(nth);
        created = create_and_release();
        assert_true(created || nth < 100);
        assert_nothing_is_left();
    }
}

/* Whether a failed creation has destroyed its pool: then the end of the next resource is the
 * second call of mempool_destroy, which fails, and its pool is still there. */
TEST_CASE(a_creation_that_fails_destroys_its_pool)
{
    static const char *const calls[] = {
        "mempool_set_threshold", "mempool_alloc", "device_info", "mempool_figures"};

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        rmm_driver_mempool_t pool;
        rmm_resource_t *mr;
        char plan[60];

        snprintf(plan, sizeof(plan), "%s:1,mempool_destroy:2", calls[i]);
        assert_true(rmm_sim_fail(plan));
        assert_false(create_and_release());
        mr = make_async();
        pool = handle_of(mr);
        rmm_resource_release(mr);
        assert_cuda(sim_driver()->mempool_destroy(pool));
        assert_nothing_is_left();
    }
}

/* --- async: blocks ------------------------------------------------------------------ */

TEST_CASE(distinguishes_out_of_memory_from_other_failures)
{
    rmm_resource_t *mr = make_async();
    void *ptr = NULL;

    assert_true(rmm_sim_fail("mempool_alloc:1"));
    assert_int_equal(rmm_resource_alloc(mr, 100, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_non_null(
        strstr(rmm_last_error_message(), "cudaMallocFromPoolAsync of 100 bytes"));
    assert_true(rmm_sim_fail("mempool_alloc:1:46"));
    assert_int_equal(rmm_resource_alloc(mr, 100, 0, NULL, &ptr), RMM_ERR_BAD_ALLOC);
    assert_true(rmm_sim_fail(NULL));
    assert_int_equal(rmm_resource_alloc(mr, 100, 512, NULL, &ptr), RMM_ERR_BAD_ALLOC);
    assert_non_null(strstr(rmm_last_error_message(), "aligns to 256, not 512"));
    assert_null(ptr);
    assert_int_equal(stats_of(mr).oom_count, 1);
    end(mr);
}

TEST_CASE(refuses_frees_that_cannot_be_right)
{
    rmm_resource_t *mr = make_async();
    rmm_resource_t *other = make_async();
    char *ptr = take(mr, 1000, NULL);

    give(mr, ptr + 256, 1000, NULL);
    give(mr, ptr, 999, NULL);
    give(other, ptr, 1000, NULL);
    give(mr, ptr, 1000, NULL);
    give(mr, ptr, 1000, NULL);
    assert_int_equal(stats_of(mr).invalid_free_count, 3);
    assert_int_equal(stats_of(other).invalid_free_count, 1);
    rmm_resource_release(other);
    end(mr);
}

TEST_CASE(a_block_of_no_bytes_costs_nothing)
{
    rmm_resource_t *mr = make_async();
    void *ptr = &ptr;

    assert_true(rmm_sim_fail("any:1"));
    assert_ok(rmm_resource_alloc(mr, 0, 0, NULL, &ptr));
    assert_null(ptr);
    rmm_resource_dealloc(mr, NULL, 0, 0, NULL);
    assert_false(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
    assert_int_equal(stats_of(mr).total_count, 1);
    end(mr);
}

/* On a stream of the program's own: one call to take, one to give back, and around each
 * the thread's capture mode. */
TEST_CASE(asks_the_driver_for_no_more_than_it_must)
{
    static const char *const others =
        "device_get:1,device_set:1,stream_key:1,"
        "mempool_figures:1,event_record:1,stream_synchronize:1";
    rmm_resource_t *mr = make_async();
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);

    give(mr, take(mr, 1000, stream), 1000, stream); /* the pool grows */
    assert_true(rmm_sim_fail(others));
    for (int i = 0; i < 50; i++) {
        give(mr, take(mr, 1000, stream), 1000, stream);
    }
    assert_false(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
    assert_cuda(sim_driver()->stream_destroy(stream));
    end(mr);
}

/* NULL names the default stream of the resource's device, whatever device is current. */
TEST_CASE(the_default_stream_is_that_of_its_device)
{
    rmm_resource_t *mr = make_async();
    uint64_t mixups = 0;
    void *block;

    assert_cuda(rmm__sim_device_set(1));
    block = take(mr, MIB, NULL);
    assert_true(rmm_sim_allocated_bytes(0) >= MIB);
    assert_int_equal(rmm_sim_allocated_bytes(1), 0);

    assert_cuda(rmm__sim_device_set(0)); /* in the order of that stream: no wait */
    launch_fill(block, MIB, 7, NULL);
    launch_check(block, MIB, 7, &mixups, NULL);
    assert_cuda(rmm__sim_device_set(1));
    give(mr, block, MIB, NULL);
    assert_cuda(rmm__sim_device_set(0));
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(mixups, 0);
    end(mr);
}

TEST_CASE(a_stream_of_another_device_may_be_used)
{
    rmm_resource_t *mr = make_async();
    rmm_stream_t foreign;
    uint64_t mixups = 0;
    void *block;

    assert_cuda(rmm__sim_device_set(1));
    foreign = make_stream(RMM_STREAM_NON_BLOCKING);
    block = take(mr, MIB, foreign);
    launch_fill(block, MIB, 7, foreign);
    launch_check(block, MIB, 7, &mixups, foreign);
    give(mr, block, MIB, foreign);
    assert_true(rmm_sim_allocated_bytes(0) >= MIB);
    assert_int_equal(rmm_sim_allocated_bytes(1), 0);
    assert_cuda(rmm__sim_stream_synchronize(foreign));
    assert_int_equal(mixups, 0);
    assert_cuda(sim_driver()->stream_destroy(foreign));
    assert_cuda(rmm__sim_device_set(0));
    end(mr);
}

TEST_CASE(the_synchronous_twins_synchronise)
{
    rmm_resource_t *mr = make_async();
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    uint64_t mixups = 0;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        void *block = NULL;

        rmm__sim_reseed(seed);
        assert_ok(rmm_resource_alloc_sync(mr, MIB, 0, &block));
        launch_fill(block, MIB, seed, stream); /* a stream that waits for nothing */
        launch_check(block, MIB, seed, &mixups, stream);
        assert_cuda(rmm__sim_stream_synchronize(stream));
        rmm_resource_dealloc_sync(mr, block, MIB, 0);
    }
    assert_int_equal(mixups, 0);
    assert_cuda(sim_driver()->stream_destroy(stream));
    end(mr);
}

/* --- async: its end ----------------------------------------------------------------- */

/* A resource ends with work queued on a block. Seeds: most orders show no early free. */
static void end_amid_work(bool is_freed)
{
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    uint64_t mixups = 0;

    for (uint64_t seed = 1; seed <= 40; seed++) {
        rmm_resource_t *mr = make_async();
        void *block = take(mr, MIB, stream);

        rmm__sim_reseed(seed);
        launch_fill(block, MIB, seed, stream);
        launch_check(block, MIB, seed, &mixups, stream);
        if (is_freed) {
            give(mr, block, MIB, stream);
        } else {
            take(mr, 5 * MIB, NULL);
        }
        end(mr);
    }
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(mixups, 0);
    assert_cuda(sim_driver()->stream_destroy(stream));
}

TEST_CASE(the_last_release_frees_live_blocks)
{
    end_amid_work(false);
}

TEST_CASE(work_that_is_queued_outlives_the_resource)
{
    end_amid_work(true);
}

/* --- figures ------------------------------------------------------------------------ */

/* A block is freed while its device cannot be made current. */
static void *free_in_vain(rmm_resource_t *mr)
{
    void *block = take(mr, 100 * MIB, NULL);

    assert_cuda(rmm__sim_device_set(1));
    assert_true(rmm_sim_fail("device_set:1"));
    give(mr, block, 100 * MIB, NULL);
    assert_true(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
    assert_int_equal(stats_of(mr).invalid_free_count, 0);
    return block;
}

static uint64_t used_bytes(const rmm_resource_t *mr)
{
    rmm_driver_mempool_figures_t figures;

    assert_cuda(sim_driver()->mempool_figures(handle_of(mr), &figures));
    return figures.used_bytes;
}

TEST_CASE(the_next_call_on_the_stream_frees_what_could_not_be_freed)
{
    rmm_resource_t *mr = make_async();
    void *other = take(mr, MIB, NULL);
    void *block;

    free_in_vain(mr);
    give(mr, other, MIB, NULL);
    assert_cuda(rmm__sim_device_set(0));
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(used_bytes(mr), 0);
    block = free_in_vain(mr);
    assert_ptr_equal(take(mr, 100 * MIB, NULL), block);
    give(mr, block, 100 * MIB, NULL);
    assert_cuda(rmm__sim_device_set(0));
    end(mr);
}

TEST_CASE(a_trim_frees_what_could_not_be_freed)
{
    rmm_resource_t *mr = make_async();

    free_in_vain(mr);
    assert_ok(rmm_resource_trim(mr, 0));
    assert_int_equal(stats_of(mr).reserved_bytes, 0);
    assert_cuda(rmm__sim_device_set(0));
    end(mr);
}

/* Also into a pool that is the program's own, which lasts. */
TEST_CASE(the_end_frees_what_could_not_be_freed)
{
    rmm_driver_mempool_t pool;
    rmm_resource_t *mr = make_async();

    free_in_vain(mr);
    assert_cuda(rmm__sim_device_set(0));
    end(mr);
    assert_cuda(sim_driver()->mempool_create(0, RMM_DRIVER_ON_DEVICE, &pool));
    mr = make_view(pool);
    free_in_vain(mr);
    assert_cuda(rmm__sim_device_set(0));
    rmm_resource_release(mr);
    assert_cuda(sim_driver()->mempool_trim(pool, 0));
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_cuda(sim_driver()->mempool_destroy(pool));
    assert_int_equal(rmm_sim_violations(), 0);
}

TEST_CASE(trim_gives_back_what_is_not_in_use)
{
    rmm_resource_t *mr = make_async();
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    void *small = take(mr, MIB, stream);
    void *large = take(mr, GIB, stream);

    assert_true(location_reserved(0) >= GIB + MIB);
    give(mr, large, GIB, stream); /* its work has not run yet */
    assert_ok(rmm_resource_trim(mr, 0));
    assert_true(rmm_sim_allocated_bytes(0) < GIB);
    assert_int_equal(location_reserved(0), HELD_BYTES);
    assert_int_equal(stats_of(mr).reserved_bytes, location_reserved(0));
    give(mr, small, MIB, stream);
    assert_ok(rmm_resource_trim(mr, 0));
    assert_int_equal(location_reserved(0), 0);
    assert_cuda(sim_driver()->stream_destroy(stream));
    end(mr);
}

TEST_CASE(the_accounting_knows_what_the_pool_holds)
{
    rmm_resource_t *mr = make_async();
    void *blocks[100];

    for (int i = 0; i < 100; i++) {
        blocks[i] = take(mr, 3 * MIB, NULL);
        assert_true(location_reserved(0) >= stats_of(mr).current_bytes);
    }
    assert_int_equal(stats_of(mr).current_bytes, 300 * MIB);
    assert_int_equal(location_reserved(0), HELD_BYTES);
    for (int i = 0; i < 100; i++) {
        give(mr, blocks[i], 3 * MIB, NULL);
    }
    assert_int_equal(stats_of(mr).current_bytes, 0);
    assert_int_equal(stats_of(mr).peak_bytes, 300 * MIB);
    end(mr);
}

TEST_CASE(two_resources_over_one_pool_count_it_once)
{
    rmm_resource_t *async = make_async();
    rmm_resource_t *view = make_view(handle_of(async));
    void *first = take(async, 10 * MIB, NULL);
    void *second = take(view, 20 * MIB, NULL);

    assert_int_equal(stats_of(async).reserved_bytes, stats_of(view).reserved_bytes);
    assert_int_equal(stats_of(async).reserved_bytes, HELD_BYTES);
    assert_int_equal(location_reserved(0), HELD_BYTES);
    assert_int_equal(stats_of(async).current_bytes, 10 * MIB);
    assert_int_equal(stats_of(view).current_bytes, 20 * MIB);
    give(async, first, 10 * MIB, NULL);
    give(view, second, 20 * MIB, NULL);
    rmm_resource_release(view);
    assert_true(location_reserved(0) >= 30 * MIB);
    end(async);
}

TEST_CASE(a_pool_on_an_async_resource_works)
{
    rmm_resource_t *async = make_async();
    rmm_resource_t *pool;

    assert_ok(rmm_pool_resource_create(async, NULL, &pool));
    rmm_resource_release(async);
    give(pool, take(pool, 5000, NULL), 5000, NULL);
    end(pool);
}

/* --- async_view --------------------------------------------------------------------- */

static rmm_driver_mempool_t native_pool(void)
{
    rmm_driver_mempool_t pool;

    assert_cuda(sim_driver()->mempool_create(0, RMM_DRIVER_ON_DEVICE, &pool));
    return pool;
}

static uint64_t used_of(rmm_driver_mempool_t pool)
{
    rmm_driver_mempool_figures_t figures;

    assert_cuda(sim_driver()->mempool_figures(pool, &figures));
    return figures.used_bytes;
}

/* [UsePool] */
TEST_CASE(a_view_uses_the_pool_that_it_is_given)
{
    rmm_driver_mempool_t pool = native_pool();
    rmm_resource_t *view = make_view(pool);
    void *block = take(view, 1000, NULL);

    assert_ptr_equal(rmm_async_resource_pool_handle(view), pool);
    assert_true(used_of(pool) >= 1000);
    give(view, block, 1000, NULL);
    assert_int_equal(used_of(pool), 0);
    assert_int_equal(threshold_of(view), 0); /* left as it was */
    rmm_resource_release(view);
    assert_cuda(sim_driver()->mempool_destroy(pool));
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(rmm_sim_violations(), 0);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

/* [NotTakingOwnershipOfPool] */
TEST_CASE(a_view_does_not_own_its_pool)
{
    rmm_driver_mempool_t pool = native_pool();
    rmm_resource_t *view = make_view(pool);
    void *block;

    give(view, take(view, 1000, NULL), 1000, NULL);
    rmm_resource_release(view);
    assert_true(rmm_sim_allocated_bytes(0) > 0); /* nor does it trim it */
    assert_int_equal(location_reserved(0), 0);
    assert_cuda(sim_driver()->mempool_alloc(pool, &block, 100, NULL));
    assert_cuda(sim_driver()->mempool_free(block, NULL));
    assert_cuda(sim_driver()->mempool_destroy(pool));
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(rmm_sim_violations(), 0);
}

/* [ThrowIfNullptrPool] */
TEST_CASE(a_view_of_no_pool_is_refused)
{
    uint64_t violations = rmm_sim_violations();
    rmm_resource_t *view = NULL;

    assert_int_equal(
        rmm_async_view_resource_create(NULL, &view), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_sim_violations(), violations);
    assert_null(view);
}

TEST_CASE(views_of_one_pool_are_equal)
{
    rmm_driver_mempool_t pools[] = {native_pool(), native_pool()};
    rmm_resource_t *first = make_view(pools[0]);
    rmm_resource_t *second = make_view(pools[0]);
    rmm_resource_t *other = make_view(pools[1]);

    assert_true(rmm_resource_is_equal(first, second));
    assert_false(rmm_resource_is_equal(first, other));
    give(second, take(first, 100, NULL), 100, NULL);
    rmm_resource_release(first);
    give(second, take(second, 100, NULL), 100, NULL);
    rmm_resource_release(other);
    rmm_resource_release(second);
    assert_cuda(sim_driver()->mempool_destroy(pools[0]));
    assert_cuda(sim_driver()->mempool_destroy(pools[1]));
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

TEST_CASE(a_view_keeps_the_pool_of_an_async_resource)
{
    rmm_resource_t *async = make_async();
    rmm_resource_t *view = make_view(handle_of(async));

    assert_false(rmm_resource_is_equal(async, view));
    rmm_resource_release(async);
    give(view, take(view, MIB, NULL), MIB, NULL);
    end(view);
}

TEST_CASE(a_view_belongs_to_the_device_of_its_pool)
{
    rmm_resource_t *async = make_async();
    rmm_resource_t *view;

    assert_cuda(rmm__sim_device_set(1));
    view = make_view(handle_of(async));
    assert_int_equal(view->device, 0);
    assert_int_equal(view->accounting.location, 0);
    give(view, take(view, MIB, NULL), MIB, NULL);
    assert_cuda(rmm__sim_device_set(0));
    rmm_resource_release(async);
    end(view);
}

TEST_CASE(only_these_have_a_pool_handle)
{
    rmm_resource_t *cuda = make_cuda();

    assert_null(rmm_async_resource_pool_handle(cuda));
    assert_null(rmm_async_resource_pool_handle(NULL));
    rmm_resource_release(cuda);
}

/* --- async_managed ------------------------------------------------------------------ */

/* [BasicAllocateDeallocate, AllocatedPointerIsManaged, ...AccessibleFromHost,
 * MultipleAllocationsAreManaged] */
TEST_CASE(managed_blocks_are_the_hosts_too)
{
    rmm_resource_t *mr = make_managed();
    unsigned char *blocks[5];

    assert_int_equal(
        rmm_resource_properties(mr), RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE);
    assert_int_equal(mr->accounting.location, 0);
    for (int i = 0; i < 5; i++) {
        blocks[i] = take(mr, 1000, NULL);
        assert_cuda(rmm_sim_memset_async(blocks[i], i + 1, 1000, NULL));
    }
    assert_cuda(rmm__sim_stream_synchronize(NULL));
    for (int i = 0; i < 5; i++) {
        assert_int_equal(blocks[i][999], i + 1);
        assert_cuda(sim_driver()->mem_prefetch(blocks[i], 1000, RMM_DRIVER_HOST, NULL));
        give(mr, blocks[i], 1000, NULL);
    }
    end(mr);
}

/* [EqualityWithSamePool] */
TEST_CASE(two_managed_ones_of_a_device_are_equal)
{
    rmm_resource_t *first = make_managed();
    rmm_resource_t *second = make_managed();
    rmm_resource_t *other;

    assert_true(rmm_resource_is_equal(first, second));
    give(second, take(first, 100, NULL), 100, NULL);
    assert_cuda(rmm__sim_device_set(1));
    other = make_managed();
    assert_cuda(rmm__sim_device_set(0));
    assert_false(rmm_resource_is_equal(first, other));
    rmm_resource_release(other);
    rmm_resource_release(first);
    end(second);
}

TEST_CASE(the_managed_pool_keeps_what_is_freed)
{
    rmm_resource_t *mr = make_managed();
    rmm_driver_mempool_t pool = handle_of(mr);

    assert_true(threshold_of(mr) == UINT64_MAX);
    give(mr, take(mr, 100 * MIB, NULL), 100 * MIB, NULL);
    assert_cuda(rmm_sim_device_synchronize());
    assert_true(stats_of(mr).reserved_bytes >= 100 * MIB);
    end(mr);

    assert_cuda(sim_driver()->mempool_set_threshold(pool, 12345)); /* the program's */
    mr = make_managed();
    assert_int_equal(threshold_of(mr), 12345);
    assert_cuda(sim_driver()->mempool_set_threshold(pool, 0));
    end(mr);
}

/* The last case, because it is a violation. */
TEST_CASE(an_unknown_pool_is_refused)
{
    rmm_driver_mempool_t pool = native_pool();
    rmm_resource_t *view = NULL;

    assert_cuda(sim_driver()->mempool_destroy(pool));
    assert_int_equal(
        rmm_async_view_resource_create(pool, &view), RMM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(rmm_last_error_message(), "not a memory pool"));
    assert_null(view);
}
