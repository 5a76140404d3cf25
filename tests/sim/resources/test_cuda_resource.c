/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cuda resource: what it passes to the driver, what it refuses, one instance per
 * device, and devices told apart.
 */
#include "sim/pool/pool_harness.h"

#include "driver/sim/control.h"

TEST_CASE(frees_through_any_instance_of_the_device)
{
    rmm_resource_t *first = make_cuda();
    rmm_resource_t *second = make_cuda();
    void *ptr = take(first, 1000, NULL);

    assert_true(rmm_resource_is_equal(first, second));
    assert_int_equal(stats_of(second).current_bytes, 1000);
    give(second, ptr, 1000, NULL);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    rmm_resource_release(first);
    rmm_resource_release(second);
}

/* The driver gives the address again; the program has not lost it to anybody. */
TEST_CASE(forgets_a_block_that_the_program_freed_itself)
{
    rmm_resource_t *mr = make_cuda();
    rmm_resource_t *pool;
    rmm_stats_t stats;
    void *small, *ptr;

    /* a pool has a small block for its barriers before its chunk, beside this one */
    assert_cuda(sim_driver()->mem_alloc(&small, 1));
    ptr = take(mr, 64 * MIB, NULL);

    assert_cuda(sim_driver()->mem_free(ptr));
    assert_ptr_equal(take(mr, 64 * MIB, NULL), ptr);
    stats = stats_of(mr);
    assert_int_equal(stats.current_count, 1);
    assert_int_equal(stats.current_bytes, 64 * MIB);
    assert_int_equal(stats.reserved_bytes, 64 * MIB);
    assert_int_equal(rmm__location_live(0).bytes, 64 * MIB);
    assert_cuda(sim_driver()->mem_free(ptr));
    pool = make_pool(64 * MIB, 64 * MIB);
    assert_int_equal(stats_of(mr).current_bytes, 64 * MIB);
    rmm_resource_release(pool);
    assert_int_equal(stats_of(mr).current_count, 0);
    assert_int_equal(stats_of(mr).reserved_bytes, 0);
    assert_int_equal(stats_of(mr).invalid_free_count, 0);
    rmm_resource_release(mr);
    assert_cuda(sim_driver()->mem_free(small));
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

TEST_CASE(belongs_to_the_device_of_its_creation)
{
    rmm_resource_t *zero = make_cuda();
    rmm_resource_t *one;
    void *ptr;
    int device;

    assert_cuda(rmm__sim_device_set(1));
    one = make_cuda();
    assert_false(rmm_resource_is_equal(zero, one));
    assert_cuda(rmm__sim_device_set(0));
    ptr = take(one, 4 * KIB, NULL);
    assert_cuda(rmm__sim_device_get(&device));
    assert_int_equal(device, 0);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_true(rmm_sim_allocated_bytes(1) >= 4 * KIB);
    give(one, ptr, 4 * KIB, NULL);
    assert_int_equal(rmm_sim_allocated_bytes(1), 0);
    rmm_resource_release(zero);
    rmm_resource_release(one);
}

static int capture_mode(void)
{
    int mode = RMM_CAPTURE_MODE_RELAXED;
    int own;

    assert_cuda(sim_driver()->capture_mode_exchange(&mode));
    own = mode;
    assert_cuda(sim_driver()->capture_mode_exchange(&mode));
    return own;
}

/* Nor after a call that fails on its way in. */
TEST_CASE(leaves_device_and_capture_mode_as_they_were)
{
    rmm_resource_t *one;
    void *ptr = NULL;
    int device;

    assert_cuda(rmm__sim_device_set(1));
    one = make_cuda();
    assert_cuda(rmm__sim_device_set(0));
    assert_true(rmm_sim_fail("capture_mode_exchange:1"));
    assert_int_equal(rmm_resource_alloc(one, 4 * KIB, 0, NULL, &ptr), RMM_ERR_CUDA);
    assert_true(rmm_sim_fail(NULL));
    assert_cuda(rmm__sim_device_get(&device));
    assert_int_equal(device, 0);
    assert_int_equal(capture_mode(), RMM_CAPTURE_MODE_GLOBAL);
    give(one, take(one, 4 * KIB, NULL), 4 * KIB, NULL);
    assert_int_equal(capture_mode(), RMM_CAPTURE_MODE_GLOBAL);
    assert_cuda(rmm__driver_wait_stream(sim_driver(), NULL));
    assert_int_equal(capture_mode(), RMM_CAPTURE_MODE_GLOBAL);
    rmm_resource_release(one);
}

TEST_CASE(refuses_alignment_that_cudamalloc_cannot_give)
{
    rmm_resource_t *cuda = make_cuda();
    void *ptr = NULL;

    assert_int_equal(rmm_resource_alloc(cuda, 100, 512, NULL, &ptr), RMM_ERR_BAD_ALLOC);
    assert_ok(rmm_resource_alloc(cuda, 100, 16, NULL, &ptr));
    rmm_resource_dealloc(cuda, ptr, 100, 16, NULL);
    rmm_resource_release(cuda);
}

TEST_CASE(distinguishes_lack_of_memory_from_other_failures)
{
    rmm_resource_t *cuda = make_cuda();
    uint64_t refused = rmm__figure_get(&rmm__locations[0].oom_count);
    void *mark = &mark;
    void *ptr = mark;

    assert_int_equal(
        rmm_resource_alloc(cuda, (size_t)1 << 50, 0, NULL, &ptr),
        RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(rmm_last_cuda_error(), 2);
    assert_true(rmm_sim_fail("mem_alloc:1:46"));
    assert_int_equal(rmm_resource_alloc(cuda, 100, 0, NULL, &ptr), RMM_ERR_BAD_ALLOC);
    assert_int_equal(rmm_last_cuda_error(), 46);
    assert_true(rmm_sim_fail(NULL));
    assert_ptr_equal(ptr, mark);
    assert_int_equal(stats_of(cuda).oom_count, 1);
    assert_int_equal(rmm__figure_get(&rmm__locations[0].oom_count) - refused, 1);
    rmm_resource_release(cuda);
}

TEST_CASE(frees_what_is_out_at_its_end_and_starts_anew)
{
    rmm_resource_t *cuda = make_cuda();

    for (int i = 0; i < 100; i++) {
        take(cuda, 1000, NULL);
    }
    rmm_resource_release(cuda);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    cuda = make_cuda();
    assert_int_equal(stats_of(cuda).current_bytes, 0);
    give(cuda, take(cuda, 10, NULL), 10, NULL);
    rmm_resource_release(cuda);
}

static void check_twins(rmm_resource_t *mr)
{
    journal_t journal = {.count = 0};
    void *ptr;

    assert_cuda(launch_mark(&journal, 1, NULL));
    assert_ok(rmm_resource_alloc_sync(mr, 100, 0, &ptr));
    assert_int_equal(journal.count, 1);
    assert_cuda(launch_mark(&journal, 2, NULL));
    rmm_resource_dealloc_sync(mr, ptr, 100, 0);
    assert_int_equal(journal.count, 2);
}

/* A free of the pool's waits for nothing itself. */
TEST_CASE(waits_in_its_synchronous_twins)
{
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *pool = make_pool(0, 0);

    check_twins(cuda);
    for (int i = 0; i < 20; i++) {
        check_twins(pool);
    }
    rmm_resource_release(pool);
    rmm_resource_release(cuda);
}

TEST_CASE(a_synchronous_twin_that_cannot_wait_keeps_no_block)
{
    rmm_resource_t *cuda = make_cuda();
    void *ptr = &cuda;

    assert_true(rmm_sim_fail("stream_synchronize:1"));
    assert_int_equal(rmm_resource_alloc_sync(cuda, 100, 0, &ptr), RMM_ERR_CUDA);
    assert_true(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
    assert_ptr_equal(ptr, &cuda);
    assert_int_equal(stats_of(cuda).current_count, 0);
    rmm_resource_release(cuda);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

TEST_CASE(cannot_be_trimmed)
{
    rmm_resource_t *cuda = make_cuda();

    assert_int_equal(rmm_resource_trim(cuda, 0), RMM_ERR_UNSUPPORTED);
    rmm_resource_release(cuda);
}

/* A call that fails once on the way to a free loses nothing. */
TEST_CASE(frees_though_its_device_cannot_be_entered)
{
    static const char *const plans[] = {
        "device_get:1", "device_set:1", "capture_mode_exchange:1"};

    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        rmm_resource_t *mr = make_cuda();
        void *ptr = take(mr, 4 * KIB, NULL);
        int device;

        assert_cuda(rmm__sim_device_set(1));
        assert_true(rmm_sim_fail(plans[i]));
        give(mr, ptr, 4 * KIB, NULL);
        assert_true(rmm__sim_fault_has_struck());
        assert_true(rmm_sim_fail(NULL));
        assert_cuda(rmm__sim_device_get(&device));
        assert_int_equal(device, 1);
        assert_cuda(rmm__sim_device_set(0));
        rmm_resource_release(mr);
        assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    }
}
