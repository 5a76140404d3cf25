/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned and managed memory: what they pass to the driver, whose memory it counts as, what
 * they refuse. What they share with the cuda resource is tested there.
 */
#include "driver/sim/control.h"
#include "sim/pool/pool_harness.h"

#include "base/resource_impl.h"

typedef rmm_status_t (*create_fn)(rmm_resource_t **out);

static rmm_resource_t *make(create_fn create)
{
    rmm_resource_t *mr;

    assert_ok(create(&mr));
    return mr;
}

static void assert_needs_a_place(rmm_status_t status)
{
    assert_int_equal(status, RMM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(rmm_last_error_message(), "out is NULL"));
}

/* Those of the adaptors: sim.adaptors. */
TEST_CASE(a_creator_refuses_to_have_no_place_for_its_resource)
{
    static const create_fn creators[] = {
        rmm_cuda_resource_create,   rmm_managed_resource_create,
        rmm_pinned_resource_create, rmm_host_resource_create,
        rmm_system_resource_create, rmm_async_managed_resource_create};
    rmm_sam_headroom_options_t headroom = RMM_SAM_HEADROOM_OPTIONS_INIT;
    rmm_resource_t *cuda = make(rmm_cuda_resource_create);

    for (size_t i = 0; i < sizeof(creators) / sizeof(creators[0]); i++) {
        assert_needs_a_place(creators[i](NULL));
    }
    headroom.headroom_bytes = 1000;
    assert_needs_a_place(rmm_sam_headroom_resource_create(&headroom, NULL));
    assert_needs_a_place(rmm_async_resource_create(NULL, NULL));
    assert_needs_a_place(rmm_auto_resource_create(NULL, NULL));
    assert_int_equal(
        rmm_pool_resource_create(cuda, NULL, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_arena_resource_create(cuda, NULL, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_fixed_size_resource_create(cuda, NULL, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_binning_resource_create(cuda, NULL, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_resource_create_from_spec("cuda", NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(cuda->references, 1);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    rmm_resource_release(cuda);
}

TEST_CASE(pinned_memory_is_the_hosts_and_calls_its_device)
{
    rmm_resource_t *pinned = make(rmm_pinned_resource_create);
    void *ptr = take(pinned, 1000, NULL);

    assert_int_equal(
        rmm_resource_properties(pinned), RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE);
    assert_int_equal(pinned->accounting.location, RMM_SEGMENT_HOST_LOCATION);
    assert_int_equal(pinned->device, 0);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(stats_of(pinned).reserved_bytes, 1000);
    give(pinned, ptr, 1000, NULL);
    rmm_resource_release(pinned);
    assert_int_equal(rmm_sim_violations(), 0);
}

TEST_CASE(managed_memory_is_the_devices)
{
    rmm_resource_t *managed = make(rmm_managed_resource_create);
    void *ptr = take(managed, 1000, NULL);

    assert_int_equal(
        rmm_resource_properties(managed), RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE);
    assert_int_equal(managed->accounting.location, 0);
    assert_true(rmm_sim_allocated_bytes(0) >= 1000);
    give(managed, ptr, 1000, NULL);
    rmm_resource_release(managed);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

/* /rmm and the log name a resource by its number, which none has again. */
TEST_CASE(resources_are_numbered_as_they_are_made)
{
    rmm_resource_t *first, *second;
    uint32_t number;

    assert_ok(rmm_pool_resource_create(make(rmm_pinned_resource_create), NULL, &first));
    number = first->instance_id;
    assert_true(number > 0);
    rmm_resource_release(rmm_resource_upstream(first)); /* the pool has its own */
    rmm_resource_release(first);
    second = make(rmm_pinned_resource_create); /* one for all who create one */
    assert_int_equal(second->instance_id, number + 1);
    rmm_resource_release(second);
}

/* The first one asks the driver for memory, to see whether it gets any. */
TEST_CASE(managed_memory_can_be_made_while_a_capture_is_under_way)
{
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    journal_t journal = {.count = 0};
    rmm_sim_graph_t graph;

    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_GLOBAL));
    assert_cuda(launch_mark(&journal, 1, stream));
    rmm_resource_release(make(rmm_managed_resource_create));
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(sim_driver()->stream_destroy(stream));
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

TEST_CASE(are_shared_by_all_who_create_one)
{
    const create_fn creators[] = {
        rmm_pinned_resource_create, rmm_managed_resource_create,
        rmm_host_resource_create};

    for (size_t i = 0; i < sizeof(creators) / sizeof(creators[0]); i++) {
        rmm_resource_t *first = make(creators[i]);
        rmm_resource_t *second = make(creators[i]);

        assert_true(rmm_resource_is_equal(first, second));
        give(second, take(first, 100, NULL), 100, NULL);
        rmm_resource_release(first);
        rmm_resource_release(second);
    }
}

TEST_CASE(reports_which_call_failed_and_why)
{
    rmm_resource_t *pinned = make(rmm_pinned_resource_create);
    void *ptr = NULL;

    assert_true(rmm_sim_fail("host_alloc:1"));
    assert_int_equal(
        rmm_resource_alloc(pinned, 100, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(rmm_last_error_message(), "cudaHostAlloc of 100 bytes"));
    assert_true(rmm_sim_fail("host_alloc:1:46"));
    assert_int_equal(rmm_resource_alloc(pinned, 100, 0, NULL, &ptr), RMM_ERR_BAD_ALLOC);
    assert_true(rmm_sim_fail(NULL));
    assert_null(ptr);
    assert_int_equal(stats_of(pinned).oom_count, 1);
    assert_int_equal(
        rmm_resource_alloc(pinned, 100, 512, NULL, &ptr), RMM_ERR_BAD_ALLOC);
    rmm_resource_release(pinned);
}

/* An older program has a shorter struct. */
TEST_CASE(copies_no_more_figures_than_fit)
{
    rmm_resource_t *pinned = make(rmm_pinned_resource_create);
    void *ptr = take(pinned, 1000, NULL);
    rmm_stats_t stats = {
        .struct_size = offsetof(rmm_stats_t, current_count), .current_count = 77};

    assert_ok(rmm_resource_get_stats(pinned, &stats));
    assert_int_equal(stats.current_bytes, 1000);
    assert_int_equal(stats.current_count, 77);
    assert_int_equal(stats.struct_size, offsetof(rmm_stats_t, current_count));
    give(pinned, ptr, 1000, NULL);
    rmm_resource_release(pinned);
}

/* Freed on a stream of another device, by work of that device which has not run. */
TEST_CASE(a_free_waits_for_the_work_of_another_device)
{
    const create_fn kinds[] = {rmm_pinned_resource_create, rmm_managed_resource_create};
    enum { BYTES = 4096 };
    static char seen[BYTES];

    for (int i = 0; i < 2; i++) {
        rmm_resource_t *mr = make(kinds[i]);
        rmm_stream_t stream;
        char *block;

        for (uint64_t seed = 0; seed < 50; seed++) {
            rmm__sim_reseed(seed);
            assert_cuda(rmm__sim_device_set(1));
            stream = make_stream(RMM_STREAM_NON_BLOCKING);
            block = take(mr, BYTES, stream);
            assert_cuda(rmm_sim_memset_async(block, 'o', BYTES, stream));
            assert_cuda(rmm_sim_memcpy_async(seen, block, BYTES, stream));
            give(mr, block, BYTES, stream);
            assert_cuda(rmm_sim_device_synchronize());
            for (int at = 0; at < BYTES; at++) {
                assert_int_equal(seen[at], 'o');
            }
            memset(seen, 0, BYTES);
            assert_cuda(sim_driver()->stream_destroy(stream));
            assert_cuda(rmm__sim_device_set(0));
        }
        rmm_resource_release(mr);
    }
    assert_int_equal(rmm_sim_violations(), 0);
}

TEST_CASE(a_pool_on_pinned_memory_counts_as_the_hosts)
{
    rmm_resource_t *pinned = make(rmm_pinned_resource_create);
    rmm_resource_t *pool;

    assert_ok(rmm_pool_resource_create(pinned, NULL, &pool));
    rmm_resource_release(pinned);
    assert_int_equal(pool->accounting.location, RMM_SEGMENT_HOST_LOCATION);
    give(pool, take(pool, 5000, NULL), 5000, NULL);
    rmm_resource_release(pool);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

TEST_CASE(a_pool_on_managed_memory_works)
{
    rmm_resource_t *managed = make(rmm_managed_resource_create);
    rmm_resource_t *pool;

    assert_ok(rmm_pool_resource_create(managed, NULL, &pool));
    rmm_resource_release(managed);
    give(pool, take(pool, 5000, NULL), 5000, NULL);
    rmm_resource_release(pool);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

TEST_CASE(the_simulated_driver_notices_wrong_frees_of_pinned_memory)
{
    uint64_t before = rmm_sim_violations();
    void *ptr;

    assert_cuda(sim_driver()->host_alloc(&ptr, 100));
    assert_cuda(sim_driver()->host_free(ptr));
    assert_int_equal(sim_driver()->host_free(ptr), RMM_DRIVER_INVALID_VALUE);
    assert_int_equal(rmm_sim_violations(), before + 1);
}
