/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtual pool that sleeps and wakes: every byte of its blocks is back where it was, its memory
 * is the device's in between, and a failure of any step loses nothing.
 */
#include "sim/pool/virtual_harness.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/host_memory.h"
#include "driver/sim/control.h"

#define CASE(name) TEST_CASE_WITH(name, NULL, nothing_is_left)

static rmm_pool_state_t state_of(const rmm_resource_t *pool)
{
    rmm_pool_state_t state;

    assert_ok(rmm_pool_get_state(pool, &state));
    return state;
}

static void sleep_with(rmm_resource_t *pool, uint64_t flags)
{
    rmm_pool_sleep_options_t options = RMM_POOL_SLEEP_OPTIONS_INIT;

    options.flags = flags;
    assert_ok(rmm_pool_sleep(pool, &options));
    assert_int_equal(state_of(pool), RMM_POOL_ASLEEP);
}

/* --- blocks with known contents ------------------------------------------------------- */

typedef struct content {
    void *ptr;
    size_t bytes;
    uint64_t number;
} content_t;

static content_t make_content(rmm_resource_t *mr, size_t bytes, uint64_t number)
{
    content_t made = {take(mr, bytes, NULL), bytes, number};

    launch_fill(made.ptr, bytes, number, NULL);
    return made;
}

static void assert_contents(const content_t *contents, size_t count)
{
    uint64_t mixups = 0;

    for (size_t i = 0; i < count; i++) {
        launch_check(
            contents[i].ptr, contents[i].bytes, contents[i].number, &mixups, NULL);
    }
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(mixups, 0);
}

static void give_contents(rmm_resource_t *mr, const content_t *contents, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        give(mr, contents[i].ptr, contents[i].bytes, NULL);
    }
}

/* --- what a program sees -------------------------------------------------------------- */

CASE(a_pool_wakes_with_all_that_its_blocks_held)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    content_t contents[] = {
        make_content(pool, 8, 1),
        make_content(pool, 5 * MIB, 2),
        make_content(pool, 256 * KIB, 3),
        make_content(pool, 3 * MIB + 8, 4),
    };
    uint64_t reserved = reserved_of(pool);

    assert_int_equal(state_of(pool), RMM_POOL_AWAKE);
    assert_ok(rmm_pool_sleep(pool, NULL));
    assert_int_equal(state_of(pool), RMM_POOL_ASLEEP);
    assert_int_equal(reserved_of(pool), 0);
    assert_accounting_agrees(pool);
    assert_ok(rmm_pool_wake(pool));
    assert_int_equal(state_of(pool), RMM_POOL_AWAKE);
    assert_int_equal(reserved_of(pool), reserved);
    assert_accounting_agrees(pool);
    assert_contents(contents, 4);
    give_contents(pool, contents, 4);
    rmm_resource_release(pool);
}

CASE(another_pool_uses_the_memory_meanwhile)
{
    uint64_t most = (uint64_t)700 * MIB; /* of 1 GiB */
    rmm_resource_t *pool = make_virtual_pool(most, 0);
    content_t mine = make_content(pool, MIB, 1);
    rmm_resource_t *other;

    sleep_with(pool, 0);
    other = make_virtual_pool(most, 0);
    assert_int_equal(rmm_pool_wake(pool), RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(state_of(pool), RMM_POOL_ASLEEP);
    assert_int_equal(reserved_of(pool), 0);
    sleep_with(other, 0);
    assert_ok(rmm_pool_wake(pool));
    assert_contents(&mine, 1);
    give_contents(pool, &mine, 1);
    rmm_resource_release(other);
    rmm_resource_release(pool);
}

CASE(work_that_was_queued_before_the_sleep_counts)
{
    rmm_stream_t stream;
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    content_t late;

    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    for (uint64_t seed = 1; seed <= 20; seed++) {
        rmm__sim_reseed(seed);
        late = (content_t){take(pool, MIB, stream), MIB, seed};
        launch_fill(late.ptr, MIB, seed, stream);
        sleep_with(pool, 0);
        assert_ok(rmm_pool_wake(pool));
        assert_contents(&late, 1);
        give(pool, late.ptr, MIB, stream);
    }
    rmm_resource_release(pool);
    assert_ok(rmm_stream_destroy(stream));
}

CASE(an_allocation_from_a_pool_that_sleeps_is_refused)
{
    rmm_resource_t *pool = make_virtual_pool(8 * MIB, 0);
    content_t kept = make_content(pool, MIB, 1);
    void *ptr = take(pool, MIB, NULL);

    sleep_with(pool, 0);
    give(pool, ptr, MIB, NULL); /* in the stream's own heap */
    assert_int_equal(rmm_resource_alloc(pool, MIB, 0, NULL, &ptr), RMM_ERR_ASLEEP);
    assert_non_null(strstr(rmm_last_error_message(), "asleep"));
    assert_int_equal(rmm_resource_alloc(pool, 64 * MIB, 0, NULL, &ptr), RMM_ERR_ASLEEP);
    assert_int_equal(rmm_pool_sleep(pool, NULL), RMM_ERR_ASLEEP);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_ok(rmm_pool_wake(pool));
    assert_ok(rmm_pool_wake(pool));
    ptr = take(pool, MIB, NULL);
    assert_contents(&kept, 1);
    give(pool, ptr, MIB, NULL);
    give_contents(pool, &kept, 1);
    rmm_resource_release(pool);
}

CASE(blocks_are_freed_while_the_pool_sleeps)
{
    rmm_resource_t *pool = make_virtual_pool(16 * MIB, 16 * MIB);
    content_t contents[16];
    void *all;

    for (uint64_t i = 0; i < 16; i++) {
        contents[i] = make_content(pool, MIB, i);
    }
    sleep_with(pool, 0);
    give_contents(pool, contents, 8);
    assert_int_equal(stats_of(pool).current_bytes, 8 * MIB);
    assert_int_equal(stats_of(pool).free_bytes, 0);
    assert_int_equal(stats_of(pool).largest_free_bytes, 0);
    assert_ok(rmm_pool_wake(pool));
    assert_int_equal(stats_of(pool).free_bytes, 8 * MIB);
    assert_contents(contents + 8, 8);
    give_contents(pool, contents + 8, 8);
    all = take(pool, 16 * MIB, NULL);
    give(pool, all, 16 * MIB, NULL);
    rmm_resource_release(pool);
}

CASE(a_pool_may_end_while_it_sleeps)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);

    make_content(pool, 5 * MIB, 1);
    sleep_with(pool, RMM_POOL_SLEEP_KEEP_HOST);
    rmm_resource_release(pool);
}
