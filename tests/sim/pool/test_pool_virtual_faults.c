/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtual pool whose driver refuses, or that has no host memory: what is left behind, and
 * what it can do afterwards. Every call in turn: test_faults.c.
 */
#include "sim/pool/virtual_harness.h"

#include <stdio.h>

#include "core/host_memory.h"
#include "driver/sim/control.h"

/* --- what the driver refuses --------------------------------------------------------- */

/* Later there is memory: for all that the maximum leaves, and for what is missing beside
 * that which is free. */
static void grow_after_failures(uint64_t initial, uint64_t bytes, uint64_t maximum)
{
    rmm_resource_t *pool = make_virtual_pool(initial, maximum);
    void *ptr = NULL;

    for (int i = 0; i < 8; i++) {
        assert_true(rmm_sim_fail("physical_create:1,physical_create:2,"
                                 "physical_create:3,physical_create:4"));
        assert_int_equal(
            rmm_resource_alloc(pool, bytes, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
        assert_true(rmm__sim_fault_has_struck());
        assert_true(rmm_sim_fail(NULL));
    }
    assert_accounting_agrees(pool);
    ptr = take(pool, maximum, NULL);
    give(pool, ptr, maximum, NULL);
    rmm_resource_release(pool);
}

#define CASE(name) TEST_CASE_WITH(name, NULL, nothing_is_left)

CASE(growth_that_failed_may_succeed_later)
{
    grow_after_failures(0, 3 * MIB, 8 * MIB);
    grow_after_failures(0, 2 * MIB, 2 * MIB);
    grow_after_failures(6 * MIB, 8 * MIB, 8 * MIB);
}

CASE(maps_nothing_where_the_device_has_less)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    void *ptr = NULL;

    assert_true(rmm_sim_fail("physical_create:1"));
    assert_int_equal(
        rmm_resource_alloc(pool, (size_t)2048 * MIB, 0, NULL, &ptr),
        RMM_ERR_OUT_OF_MEMORY);
    assert_false(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
    rmm_resource_release(pool);
}

/* It grows by a share of what it holds, by less where the device has less. */
CASE(grows_by_what_is_needed_where_the_device_has_no_more)
{
    rmm_resource_t *pool = make_virtual_pool(512 * MIB, 0);
    void *all = take(pool, 512 * MIB, NULL);
    void *ptr, *rest;
    uint64_t free_bytes, total;

    assert_cuda(sim_driver()->memory_info(&free_bytes, &total));
    assert_cuda(sim_driver()->mem_alloc(&rest, free_bytes - 3 * MIB));
    ptr = take(pool, MIB, NULL);
    assert_int_equal(reserved_of(pool), 514 * MIB);
    give(pool, ptr, MIB, NULL);
    give(pool, all, 512 * MIB, NULL);
    assert_cuda(sim_driver()->mem_free(rest));
    rmm_resource_release(pool);
}

/* A growth for which the pool asks the device first. */
CASE(a_large_growth_takes_all_that_the_device_has)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    void *ptr, *rest;
    uint64_t free_bytes, total;

    assert_cuda(sim_driver()->memory_info(&free_bytes, &total));
    assert_cuda(sim_driver()->mem_alloc(&rest, free_bytes - 128 * MIB));
    ptr = take(pool, 128 * MIB, NULL);
    assert_cuda(sim_driver()->memory_info(&free_bytes, &total));
    assert_int_equal(free_bytes, 0);
    give(pool, ptr, 128 * MIB, NULL);
    assert_cuda(sim_driver()->mem_free(rest));
    rmm_resource_release(pool);
}

/* 2.5 MiB are missing, for which the pool would need 4 MiB. */
CASE(nothing_is_moved_when_the_growth_is_impossible)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    void *block = take(pool, 8 * MIB, NULL);
    void *rest, *large;
    uint64_t free_bytes, total;

    assert_cuda(sim_driver()->memory_info(&free_bytes, &total));
    assert_cuda(sim_driver()->mem_alloc(&rest, free_bytes - 3 * MIB));
    give(pool, block, 8 * MIB, NULL);
    assert_int_equal(
        rmm_resource_alloc(pool, 10 * MIB + 512 * KIB, 0, NULL, &large),
        RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(pool_from_base(pool)->engine->range.compacted_bytes, 0);
    assert_cuda(sim_driver()->mem_free(rest));
    rmm_resource_release(pool);
}

CASE(growth_that_cannot_enter_its_device_leaves_nothing)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    char plan[32];
    void *ptr = NULL;

    assert_cuda(rmm__sim_device_set(1));
    for (int nth = 1; nth <= 8; nth++) {
        (void)snprintf(plan, sizeof(plan), "device_set:%d", nth);
        assert_true(rmm_sim_fail(plan));
        if (rmm_resource_alloc(pool, 3 * MIB, 0, NULL, &ptr) == RMM_OK) {
            give(pool, ptr, 3 * MIB, NULL);
        }
        assert_true(rmm_sim_fail(NULL));
        assert_accounting_agrees(pool);
        assert_ok(rmm_resource_trim(pool, 0));
    }
    assert_cuda(rmm__sim_device_set(0));
    rmm_resource_release(pool);
}

/* Of what is free and scattered one piece cannot be moved at first. */
static void gather_with_a_fault(const char *plan)
{
    rmm_resource_t *pool = make_virtual_pool(BLOCKS * PIECE, BLOCKS * PIECE);
    void *blocks[BLOCKS];
    void *large;

    fill_pool(pool, blocks);
    give_every_second(pool, blocks);
    assert_true(rmm_sim_fail(plan));
    large = take(pool, BLOCKS / 2 * PIECE, NULL);
    assert_true(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
    assert_accounting_agrees(pool);
    check_and_give_others(pool, blocks);
    give(pool, large, BLOCKS / 2 * PIECE, NULL);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(reserved_of(pool), 0);
    assert_accounting_agrees(pool);
    rmm_resource_release(pool);
}

CASE(a_piece_that_cannot_be_moved_is_still_usable)
{
    gather_with_a_fault("address_unmap:1"); /* stays, and is moved later */
    gather_with_a_fault("address_map:1");   /* ends, and another one comes */
}

/* A pool whose next growth is of pieces of 2 MiB, under a plan of faults: one piece of it
 * cannot be unmapped, and the next attempt takes other addresses. */
static void assert_one_piece_is_lost(const char *plan)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    char *first = take(pool, 4 * MIB, NULL);
    char *second;

    assert_true(rmm_sim_fail(plan));
    second = take(pool, 8 * MIB, NULL);
    assert_true(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
    assert_true(second >= first + 12 * MIB); /* not where it is */
    launch_fill(second, 8 * MIB, 5, NULL);
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(reserved_of(pool), 12 * MIB + PIECE); /* it is held */
    assert_int_equal(free_bytes_of(pool), 0);
    assert_accounting_agrees(pool);

    give(pool, second, 8 * MIB, NULL);
    give(pool, first, 4 * MIB, NULL);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(reserved_of(pool), PIECE);
    assert_int_equal(rmm__figure_get(&pool->accounting.slot->free_bytes), 0);
    assert_accounting_agrees(pool);
    rmm_resource_release(pool);
}

CASE(addresses_that_cannot_be_unmapped_are_never_used_again)
{
    assert_one_piece_is_lost(
        "address_access:1,address_access:2,address_unmap:1"); /* the piece */
    assert_one_piece_is_lost("address_access:3,address_access:4,address_unmap:1");
    assert_one_piece_is_lost("address_access:3,address_access:4,address_unmap:2");
    assert_one_piece_is_lost("address_map:4,address_unmap:3");
    assert_one_piece_is_lost("physical_create:4:999,address_unmap:1");
}

CASE(a_piece_that_cannot_be_let_in_anywhere_is_lost)
{
    rmm_resource_t *pool = make_virtual_pool(BLOCKS * PIECE, BLOCKS * PIECE);
    void *blocks[BLOCKS];
    void *large = NULL;

    fill_pool(pool, blocks);
    give_every_second(pool, blocks);
    assert_true(rmm_sim_fail("address_access:1,address_access:2,address_unmap:2"));
    assert_int_equal(
        rmm_resource_alloc(pool, BLOCKS / 2 * PIECE, 0, NULL, &large),
        RMM_ERR_OUT_OF_MEMORY);
    assert_true(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
    assert_int_equal(reserved_of(pool), BLOCKS * PIECE);
    assert_int_equal(free_bytes_of(pool), (BLOCKS / 2 - 1) * PIECE);
    assert_accounting_agrees(pool);
    large = take(pool, (BLOCKS / 2 - 1) * PIECE, NULL);
    check_and_give_others(pool, blocks);
    give(pool, large, (BLOCKS / 2 - 1) * PIECE, NULL);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(reserved_of(pool), PIECE);
    assert_int_equal(rmm__figure_get(&pool->accounting.slot->free_bytes), 0);
    rmm_resource_release(pool);
}

/* --- host memory --------------------------------------------------------------------- */

static uint32_t heaps_in_use(rmm_resource_t *pool)
{
    const rmm_blocks_t *blocks = pool_from_base(pool)->engine->blocks;
    uint32_t count = 0;

    for (uint32_t heap = 0; heap < blocks->heap_count; heap++) {
        count += blocks->heaps[heap].in_use != 0;
    }
    return count;
}

/* So many small blocks, that storage for one more has to grow at some time. */
static bool gather_without_host_memory(uint64_t small_blocks, uint64_t nth)
{
    const uint64_t rest_bytes = PIECE - small_blocks * 4 * KIB;
    rmm_resource_t *pool =
        make_virtual_pool((BLOCKS + 1) * PIECE, (BLOCKS + 1) * PIECE);
    char *first = take(pool, small_blocks * 4 * KIB, NULL);
    void *blocks[BLOCKS];
    void *rest;
    void *large = NULL;
    uint32_t heaps;
    bool struck;

    give(pool, first, small_blocks * 4 * KIB, NULL);
    for (uint64_t i = 0; i < small_blocks; i++) {
        assert_ptr_equal(take(pool, 4 * KIB, NULL), first + i * 4 * KIB);
    }
    rest = take(pool, rest_bytes, NULL);
    fill_pool(pool, blocks);
    give_every_second(pool, blocks);
    heaps = heaps_in_use(pool);
    rmm__host_memory_fail(nth);
    if (rmm_resource_alloc(pool, BLOCKS / 2 * PIECE, 0, NULL, &large) != RMM_OK) {
        large = NULL;
    }
    struck = rmm__host_memory_fail_struck();
    rmm__host_memory_fail(0);
    assert_accounting_agrees(pool);
    assert_int_equal(
        heaps_in_use(pool), heaps); /* of what moved, and of what could not */
    give(pool, large, large != NULL ? BLOCKS / 2 * PIECE : 0, NULL);
    check_and_give_others(pool, blocks);
    give(pool, rest, rest_bytes, NULL);
    for (uint64_t i = 0; i < small_blocks; i++) {
        give(pool, first + i * 4 * KIB, 4 * KIB, NULL);
    }
    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(reserved_of(pool), 0);
    assert_accounting_agrees(pool);
    rmm_resource_release(pool);
    return struck;
}

CASE(copes_without_host_memory_while_it_gathers)
{
    bool any = false;

    for (uint64_t small_blocks = 1; small_blocks < 128; small_blocks++) {
        for (uint64_t nth = 1; gather_without_host_memory(small_blocks, nth); nth++) {
            any = true;
            assert_true(nth < 100);
        }
    }
    assert_true(any);
}

static int told; /* errors in the log */

static void count_errors(rmm_log_level_t level, const char *message, void *arg)
{
    (void)message;
    (void)arg;
    told += level == RMM_LEVEL_ERROR;
}

/* --- what stays: after these cases the device has less memory ------------------------ */

/* The device's memory is lost, but not in silence. */
TEST_CASE(reports_what_cannot_be_released)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    size_t bytes = 4 * MIB;

    give(pool, take(pool, bytes, NULL), bytes, NULL);
    told = 0;
    assert_ok(rmm_log_to_callback(count_errors, NULL));
    assert_ok(rmm_log_set_level(RMM_LEVEL_ERROR));
    assert_true(rmm_sim_fail("physical_release:1"));
    assert_ok(rmm_resource_trim(pool, 0));
    assert_true(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
    assert_ok(rmm_log_set_level(RMM_LEVEL_OFF));
    rmm_log_to_stderr();
    assert_int_equal(told, 1);
    rmm_resource_release(pool);
}

TEST_CASE(keeps_the_addresses_of_a_piece_that_stays_mapped)
{
    const uint64_t violations = rmm_sim_violations();
    rmm_resource_t *pool = make_virtual_pool(4 * MIB, 0);

    assert_true(rmm_sim_fail("address_unmap:1"));
    rmm_resource_release(pool);
    assert_true(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
    assert_true(rmm__sim_address_bytes() != 0);
    assert_int_equal(rmm_sim_violations(), violations);
}

/* It cannot be waited for, so its queued work may still use the memory. */
TEST_CASE(unmaps_nothing_of_a_device_that_may_be_at_work)
{
    const uint64_t before = rmm_sim_allocated_bytes(0);
    rmm_resource_t *pool = make_virtual_pool(4 * MIB, 0);

    assert_cuda(rmm__sim_device_set(1));
    assert_true(rmm_sim_fail("device_set:1"));
    rmm_resource_release(pool);
    assert_true(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
    assert_cuda(rmm__sim_device_set(0));
    assert_int_equal(rmm_sim_allocated_bytes(0), before + 4 * MIB);
}
