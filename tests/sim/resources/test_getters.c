/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a resource tells of how it was made, and the pointer that a program attaches.
 */
#include "sim/pool/pool_harness.h"

typedef rmm_status_t (*getter_fn)(const rmm_resource_t *mr, uint64_t *out);

static void assert_gets(getter_fn get, rmm_resource_t *mr, uint64_t expected)
{
    rmm_resource_t *cuda = make_cuda();
    uint64_t value = ~expected;

    assert_ok(get(mr, &value));
    assert_int_equal(value, expected);
    assert_int_equal(get(cuda, &value), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(get(NULL, &value), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(get(mr, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(value, expected);
    rmm_resource_release(cuda);
}

TEST_CASE(fixed_size_returns_its_block_and_chunk_size)
{
    rmm_resource_t *mr = make_fixed(1000, 3);
    rmm_resource_t *defaults = make_fixed(0, 0);

    assert_gets(rmm_fixed_size_get_block_bytes, mr, 1024);
    assert_gets(rmm_fixed_size_get_blocks_per_chunk, mr, 3);
    assert_gets(rmm_fixed_size_get_block_bytes, defaults, MIB);
    assert_gets(rmm_fixed_size_get_blocks_per_chunk, defaults, 128);
    rmm_resource_release(mr);
    rmm_resource_release(defaults);
}

TEST_CASE(a_pool_reports_its_maximum)
{
    rmm_resource_t *mr = make_pool(0, 1000);
    rmm_resource_t *unlimited = make_pool(0, 0);
    rmm_resource_t *mapped = make_virtual_pool(0, 64 * MIB);

    assert_gets(rmm_pool_get_maximum, mr, 1024);
    assert_gets(rmm_pool_get_maximum, unlimited, 0);
    assert_gets(rmm_pool_get_maximum, mapped, 64 * MIB);
    rmm_resource_release(mr);
    rmm_resource_release(unlimited);
    rmm_resource_release(mapped);
}

/* --- room left: rmm_stats_t, and the slot that /rmm shows ---------------------------------- */

static void
assert_room(const rmm_resource_t *mr, uint64_t free_bytes, uint64_t largest_bytes)
{
    rmm_stats_t stats = stats_of(mr);
    const rmm_segment_slot_t *slot = mr->accounting.slot;

    assert_int_equal(stats.free_bytes, free_bytes);
    assert_int_equal(stats.largest_free_bytes, largest_bytes);
    assert_int_equal(stats.free_bytes, rmm__accounting_free_bytes(&mr->accounting));
    assert_int_equal(
        stats.largest_free_bytes, rmm__figure_get(&slot->largest_free_bytes));
    assert_int_equal(stats.maximum_bytes, rmm__figure_get(&slot->maximum_bytes));
}

static void follow_the_room(rmm_resource_t *mr, uint64_t maximum_bytes)
{
    void *first, *second;

    assert_int_equal(stats_of(mr).maximum_bytes, maximum_bytes);
    assert_int_equal(stats_of(mr).reserved_bytes, 8 * MIB);
    assert_room(mr, 8 * MIB, 8 * MIB);
    first = take(mr, 2 * MIB, NULL);
    second = take(mr, 3 * MIB - 100, NULL); /* 100 are padding */
    assert_room(mr, 3 * MIB, 3 * MIB);
    give(mr, first, 2 * MIB, NULL);
    assert_room(mr, 5 * MIB, 3 * MIB);
    give(mr, second, 3 * MIB - 100, NULL);
    assert_room(mr, 8 * MIB, 8 * MIB);
    rmm_resource_release(mr);
}

TEST_CASE(statistics_tell_the_room_left)
{
    follow_the_room(make_pool(8 * MIB, 0), 0);
    follow_the_room(make_pool(8 * MIB, 16 * MIB), 16 * MIB);
    follow_the_room(make_virtual_pool(8 * MIB, 0), 0);
    follow_the_room(make_virtual_pool(8 * MIB, 64 * MIB), 64 * MIB);
}

/* A request of this size is served without growth, and one byte more is not. */
TEST_CASE(the_largest_free_block_is_what_fits)
{
    rmm_resource_t *pool = make_pool(8 * MIB, 8 * MIB);
    void *first = take(pool, 1 * MIB, NULL), *rest = take(pool, 3 * MIB, NULL), *ptr;
    uint64_t largest;

    give(pool, first, 1 * MIB, NULL);
    largest = stats_of(pool).largest_free_bytes;
    assert_int_equal(largest, 4 * MIB);
    assert_int_equal(
        rmm_resource_alloc(pool, largest + 1, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    give(pool, take(pool, largest, NULL), largest, NULL);
    give(pool, rest, 3 * MIB, NULL);
    rmm_resource_release(pool);
}

TEST_CASE(other_resources_tell_what_they_have)
{
    rmm_resource_t *arena = make_arena(8 * MIB), *cuda = make_cuda(), *limited;
    rmm_resource_t *blocks = make_fixed(MIB, 4);
    void *ptr = take(arena, MIB, NULL);

    assert_int_equal(stats_of(arena).maximum_bytes, 8 * MIB);
    assert_int_equal(stats_of(arena).free_bytes, 7 * MIB);
    give(arena, ptr, MIB, NULL);
    ptr = take(blocks, MIB, NULL);
    assert_room(blocks, 3 * MIB, 3 * MIB); /* contiguous: a block is 1 MiB */
    assert_int_equal(stats_of(blocks).maximum_bytes, 0);
    give(blocks, ptr, MIB, NULL);
    assert_room(cuda, 0, 0);
    assert_ok(rmm_statistics_adaptor_create(arena, NULL, &limited));
    assert_room(limited, 0, 0); /* the arena's, which is its upstream */
    rmm_resource_release(limited);
    rmm_resource_release(arena);
    rmm_resource_release(blocks);
    rmm_resource_release(cuda);
}

/* A program that was compiled with the shorter struct. */
TEST_CASE(a_shorter_struct_is_filled_as_far_as_it_goes)
{
    rmm_resource_t *pool = make_pool(MIB, 0);
    rmm_stats_t stats = RMM_STATS_INIT;

    stats.struct_size = offsetof(rmm_stats_t, free_bytes);
    stats.free_bytes = stats.largest_free_bytes = stats.maximum_bytes = 77;
    assert_ok(rmm_resource_get_stats(pool, &stats));
    assert_int_equal(stats.struct_size, offsetof(rmm_stats_t, free_bytes));
    assert_int_equal(stats.reserved_bytes, MIB);
    assert_int_equal(stats.free_bytes, 77);
    assert_int_equal(stats.maximum_bytes, 77);
    rmm_resource_release(pool);
}

TEST_CASE(async_returns_the_threshold_in_force)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;
    rmm_resource_t *mr, *view;

    assert_ok(rmm_async_resource_create(&options, &mr));
    assert_gets(rmm_async_get_release_threshold, mr, UINT64_MAX);
    rmm_resource_release(mr);
    options.flags = RMM_ASYNC_RELEASE_UNUSED;
    assert_ok(rmm_async_resource_create(&options, &mr));
    assert_gets(rmm_async_get_release_threshold, mr, 0);
    rmm_resource_release(mr);
    options.flags = 0;
    options.release_threshold_bytes = 5 * MIB;
    assert_ok(rmm_async_resource_create(&options, &mr));
    assert_ok(
        rmm_async_view_resource_create(rmm_async_resource_pool_handle(mr), &view));
    assert_gets(rmm_async_get_release_threshold, view, 5 * MIB);
    rmm_resource_release(view);
    rmm_resource_release(mr);
}

TEST_CASE(sam_headroom_returns_its_headroom)
{
    rmm_sam_headroom_options_t options = RMM_SAM_HEADROOM_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.headroom_bytes = 3 * MIB;
    assert_ok(rmm_sam_headroom_resource_create(&options, &mr));
    assert_gets(rmm_sam_headroom_get_headroom, mr, 3 * MIB);
    rmm_resource_release(mr);
}

TEST_CASE(a_resource_reports_its_device)
{
    rmm_resource_t *cuda, *pool, *host;

    assert_ok(rmm_device_set(1));
    cuda = make_cuda();
    assert_ok(rmm_device_set(0));
    assert_ok(rmm_pool_resource_create(cuda, NULL, &pool));
    assert_ok(rmm_host_resource_create(&host));
    assert_int_equal(rmm_resource_device(cuda), 1);
    assert_int_equal(rmm_resource_device(pool), 1);
    assert_int_equal(rmm_resource_device(host), -1);
    rmm_resource_release(cuda);
    rmm_resource_release(pool);
    rmm_resource_release(host);
}

TEST_CASE(keeps_a_pointer_of_the_program)
{
    rmm_resource_t *mr = make_pool(0, 0);
    rmm_resource_t *other = make_pool(0, 0);
    int mine, yours;

    assert_null(rmm_resource_get_user_data(mr));
    rmm_resource_set_user_data(mr, &mine);
    rmm_resource_set_user_data(other, &yours);
    assert_ptr_equal(rmm_resource_get_user_data(mr), &mine);
    assert_ptr_equal(rmm_resource_get_user_data(other), &yours);
    rmm_resource_set_user_data(mr, NULL);
    assert_null(rmm_resource_get_user_data(mr));
    rmm_resource_release(mr);
    rmm_resource_release(other);
}

TEST_CASE(what_a_device_supports_is_queried_on_that_device)
{
    bool is = true;

    assert_int_equal(
        rmm_device_supports(-1, RMM_ABILITY_ASYNC, &is), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_supports(0, (rmm_device_ability_t)7, &is), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_supports(0, RMM_ABILITY_ASYNC, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_device_supports(99, RMM_ABILITY_ASYNC, &is), RMM_ERR_CUDA);
    assert_int_equal(
        rmm_device_supports(99, RMM_ABILITY_ASYNC_MANAGED, &is), RMM_ERR_CUDA);
    assert_true(is);
}
