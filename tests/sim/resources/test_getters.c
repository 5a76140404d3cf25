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
        rmm_device_supports(0, (rmm_device_ability_t)5, &is), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_supports(0, RMM_ABILITY_ASYNC, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_device_supports(99, RMM_ABILITY_ASYNC, &is), RMM_ERR_CUDA);
    assert_int_equal(
        rmm_device_supports(99, RMM_ABILITY_ASYNC_MANAGED, &is), RMM_ERR_CUDA);
    assert_true(is);
}
