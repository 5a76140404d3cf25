/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The barrier of a device (lib/driver/barrier.c): it waits where the device is full, and
 * leaves every capture valid and no block behind. Other devices are waited for on request.
 */
#include "sim/driver/sim_harness.h"

#include "driver/sim/control.h"

static rmm_driver_t counting; /* the simulated driver, but for its synchronise */
static unsigned synchronises;

static int count_and_synchronize(void)
{
    synchronises++;
    return sim_driver()->device_synchronize();
}

static int begin(void **state)
{
    counting = *sim_driver();
    counting.device_synchronize = count_and_synchronize;
    synchronises = 0;
    return 0;
}

static int nothing_left_behind(void **state)
{
    return rmm_sim_fail(NULL) && rmm_sim_allocated_bytes(0) == 0 &&
                   rmm_sim_violations() == 0
               ? 0
               : -1;
}

static void assert_waits(void)
{
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    journal_t journal = {.count = 0};

    assert_cuda(launch_mark(&journal, 1, stream));
    assert_cuda(rmm__driver_barrier(&counting));
    assert_int_equal(journal.count, 1);
    assert_ok(rmm_stream_destroy(stream));
}

static void waits_for_all_work(void **state)
{
    assert_waits();
    assert_int_equal(synchronises, 0); /* which would ruin all captures */
}

#define MIB ((size_t)1024 * 1024)

static void *taken[16 * MIB / 512];
static size_t taken_count;

/* All memory of the device, of which there are 16 MiB. */
static void fill(void)
{
    static const size_t sizes[] = {MIB, 512};

    taken_count = 0;
    for (size_t i = 0; i < 2; i++) {
        while (sim_driver()->mem_alloc(&taken[taken_count], sizes[i]) == 0) {
            taken_count++;
        }
    }
}

static void empty(void)
{
    while (taken_count != 0) {
        assert_cuda(sim_driver()->mem_free(taken[--taken_count]));
    }
}

static void a_kept_block_serves_a_full_device_again_and_again(void **state)
{
    void *more;

    rmm__driver_barrier_keep(&counting, 0);
    fill();
    for (int i = 0; i < 3; i++) {
        assert_waits();
        assert_int_equal(synchronises, 0);
        assert_int_equal(
            sim_driver()->mem_alloc(&more, 1), RMM_DRIVER_MEMORY_ALLOCATION);
    }
    rmm__driver_barrier_drop(&counting, 0);
    assert_waits();
    assert_int_equal(synchronises, 0); /* there is room for a block again */
    empty();
}

static void synchronises_a_full_device_without_a_kept_block(void **state)
{
    fill();
    assert_waits();
    assert_int_equal(synchronises, 1);
    empty();
}

static void a_kept_block_stays_for_its_last_user(void **state)
{
    rmm__driver_barrier_keep(&counting, 0);
    rmm__driver_barrier_keep(&counting, 0);
    rmm__driver_barrier_drop(&counting, 0);
    assert_true(rmm_sim_allocated_bytes(0) != 0);
    rmm__driver_barrier_drop(&counting, 0);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

/* As after a cudaDeviceReset(). */
static int free_what_is_not_known(void *ptr)
{
    (void)sim_driver()->mem_free(ptr);
    return RMM_DRIVER_INVALID_VALUE;
}

/* Its address may be another's by then. */
static void a_kept_block_that_the_driver_does_not_know_is_not_freed_again(void **state)
{
    rmm__driver_barrier_keep(&counting, 0);
    counting.mem_free = free_what_is_not_known;
    rmm__driver_barrier_drop(&counting, 0);
    counting.mem_free = sim_driver()->mem_free;
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    rmm__driver_barrier_keep(&counting, 0);
    fill();
    counting.mem_free = free_what_is_not_known;
    assert_waits();
    assert_int_equal(synchronises, 1);
    counting.mem_free = sim_driver()->mem_free;
    assert_waits(); /* with another block */
    assert_int_equal(synchronises, 1);
    empty();
    rmm__driver_barrier_drop(&counting, 0);
}

/* As when one thread lets an engine grow, which keeps, while another one trims it, which drops. */
static void a_drop_that_comes_before_its_keep_leaves_no_block(void **state)
{
    rmm__driver_barrier_drop(&counting, 0);
    rmm__driver_barrier_keep(&counting, 0);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    rmm__driver_barrier_keep(&counting, 0);
    assert_true(rmm_sim_allocated_bytes(0) != 0);
    rmm__driver_barrier_drop(&counting, 0);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

/* The block that could not be freed is freed at once, or kept where none is. */
static void a_failed_barrier_loses_no_block(void **state)
{
    assert_true(rmm_sim_fail("mem_free:1"));
    assert_int_equal(rmm__driver_barrier(&counting), 999);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    fill();
    rmm__driver_barrier_keep(&counting, 0); /* finds none */
    empty();
    assert_true(rmm_sim_fail("mem_free:1"));
    assert_int_equal(rmm__driver_barrier(&counting), 999);
    assert_true(rmm_sim_allocated_bytes(0) != 0);
    rmm__driver_barrier_drop(&counting, 0);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

/* Neither by the barrier that spends it, nor by its end. */
static void a_kept_block_that_cannot_be_freed_stays(void **state)
{
    rmm__driver_barrier_keep(&counting, 0);
    fill();
    assert_true(rmm_sim_fail("mem_free:1"));
    assert_int_equal(rmm__driver_barrier(&counting), 999);
    assert_waits();
    assert_int_equal(synchronises, 0);
    empty();
    assert_true(rmm_sim_fail("mem_free:1,mem_free:2"));
    rmm__driver_barrier_drop(&counting, 0);
    assert_true(rmm_sim_allocated_bytes(0) != 0);
    rmm__driver_barrier_keep(&counting, 0);
    assert_true(rmm_sim_fail("mem_free:1"));
    rmm__driver_barrier_drop(&counting, 0);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

static void a_kept_block_goes_though_its_device_cannot_be_entered(void **state)
{
    static const char *const plans[] = {"device_get:1", "capture_mode_exchange:1"};

    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        rmm__driver_barrier_keep(&counting, 0);
        assert_true(rmm_sim_fail(plans[i]));
        rmm__driver_barrier_drop(&counting, 0);
        assert_true(rmm__sim_fault_has_struck());
        assert_int_equal(rmm_sim_allocated_bytes(0), 0);
        assert_true(rmm_sim_fail(plans[i])); /* none is kept, but its user counts */
        rmm__driver_barrier_keep(&counting, 0);
        assert_int_equal(rmm_sim_allocated_bytes(0), 0);
        rmm__driver_barrier_drop(&counting, 0);
    }
}

/* --- other devices ------------------------------------------------------------------- */

static bool others_idle(bool waits)
{
    int device;
    bool are_idle = rmm__driver_others_idle(&counting, 0, waits);

    assert_cuda(rmm__sim_device_get(&device));
    assert_int_equal(device, 0);
    return are_idle;
}

/* A device is not waited for before the process has a context there, nor without waits. */
static void waits_for_the_devices_that_have_a_context(void **state)
{
    journal_t journal = {.count = 0};
    rmm_stream_t stream;

    assert_true(others_idle(false));
    assert_cuda(rmm__sim_device_set(1));
    stream = make_stream(RMM_STREAM_NON_BLOCKING);
    assert_cuda(launch_mark(&journal, 1, stream));
    assert_cuda(rmm__sim_device_set(0));
    assert_false(others_idle(false));
    assert_true(others_idle(true));
    assert_int_equal(journal.count, 1);
    assert_int_equal(rmm_sim_allocated_bytes(1), 0);
    assert_ok(rmm_stream_destroy(stream));
}

static void does_not_take_a_failure_for_idleness(void **state)
{
    static const char *const plans[] = {
        "device_count:1", "device_active:1", "device_set:1", "mem_free:1",
        "capture_mode_exchange:1"};

    assert_cuda(rmm__sim_device_set(1));
    assert_cuda(rmm__sim_device_set(0));
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        assert_true(rmm_sim_fail(plans[i]));
        assert_false(others_idle(true));
        assert_true(rmm__sim_fault_has_struck());
    }
    assert_true(rmm_sim_fail(NULL));
    assert_true(others_idle(true));
}

/* Where no block is kept on it, the wait would be a call that ruins captures. */
static void ruins_no_capture_for_another_full_device(void **state)
{
    assert_cuda(rmm__sim_device_set(1));
    fill();
    assert_cuda(rmm__sim_device_set(0));
    assert_false(others_idle(true));
    assert_cuda(rmm__sim_device_set(1));
    empty();
    rmm__driver_barrier_keep(&counting, 1);
    fill();
    assert_cuda(rmm__sim_device_set(0));
    assert_true(others_idle(true));
    assert_int_equal(synchronises, 0);
    assert_cuda(rmm__sim_device_set(1));
    rmm__driver_barrier_drop(&counting, 1);
    empty();
    assert_cuda(rmm__sim_device_set(0));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, nothing_left_behind)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(waits_for_all_work),
        CASE(a_kept_block_serves_a_full_device_again_and_again),
        CASE(synchronises_a_full_device_without_a_kept_block),
        CASE(a_kept_block_stays_for_its_last_user),
        CASE(a_kept_block_that_the_driver_does_not_know_is_not_freed_again),
        CASE(a_drop_that_comes_before_its_keep_leaves_no_block),
        CASE(a_failed_barrier_loses_no_block),
        CASE(a_kept_block_that_cannot_be_freed_stays),
        CASE(a_kept_block_goes_though_its_device_cannot_be_entered),
        CASE(waits_for_the_devices_that_have_a_context),
        CASE(does_not_take_a_failure_for_idleness),
        CASE(ruins_no_capture_for_another_full_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
