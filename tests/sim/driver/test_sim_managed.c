/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory of the simulated GPU, copies and fills through the driver's table, and
 * who may access whose memory. Two devices.
 */
#include "sim/driver/sim_harness.h"

#include <stdlib.h>

#include "driver/sim/control.h"

#define KIB ((size_t)1024)

static char *managed(size_t bytes)
{
    void *ptr = NULL;

    assert_cuda(sim_driver()->managed_alloc(&ptr, bytes));
    return ptr;
}

static void release(void *ptr)
{
    assert_cuda(sim_driver()->mem_free(ptr));
}

TEST_CASE(remembers_where_memory_was_prefetched_to)
{
    const rmm_driver_t *driver = sim_driver();
    char *ptr = managed(64 * KIB);

    assert_int_equal(rmm__sim_prefetched_to(ptr, 64 * KIB), SIM_NOWHERE);
    assert_cuda(driver->mem_prefetch(ptr, 64 * KIB, 1, RMM_STREAM_LEGACY));
    assert_int_equal(rmm__sim_prefetched_to(ptr, 64 * KIB), 1);
    assert_int_equal(rmm__sim_prefetched_to(ptr + KIB, 1), 1);
    /* a piece out of the middle: three ranges */
    assert_cuda(driver->mem_prefetch(
        ptr + 16 * KIB, 16 * KIB, RMM_DRIVER_HOST, RMM_STREAM_LEGACY));
    assert_int_equal(rmm__sim_prefetched_to(ptr, 64 * KIB), SIM_NOWHERE);
    assert_int_equal(rmm__sim_prefetched_to(ptr, 16 * KIB), 1);
    assert_int_equal(rmm__sim_prefetched_to(ptr + 16 * KIB, 16 * KIB), RMM_DRIVER_HOST);
    assert_int_equal(rmm__sim_prefetched_to(ptr + 32 * KIB, 32 * KIB), 1);
    assert_int_equal(rmm__sim_prefetched_to(ptr + 16 * KIB, 17 * KIB), SIM_NOWHERE);
    /* and over all of them again */
    assert_cuda(driver->mem_prefetch(ptr + KIB, 62 * KIB, 0, RMM_STREAM_LEGACY));
    assert_int_equal(rmm__sim_prefetched_to(ptr + KIB, 62 * KIB), 0);
    assert_int_equal(rmm__sim_prefetched_to(ptr, KIB), 1);
    assert_int_equal(rmm__sim_prefetched_to(ptr + 63 * KIB, KIB), 1);
    release(ptr);
    assert_ptr_equal(managed(64 * KIB), ptr);
    assert_int_equal(rmm__sim_prefetched_to(ptr, 1), SIM_NOWHERE);
    release(ptr);
}

TEST_CASE(remembers_where_memory_should_lie)
{
    const rmm_driver_t *driver = sim_driver();
    char *ptr = managed(64 * KIB);
    char *system = malloc(64 * KIB);

    assert_non_null(system);
    assert_cuda(driver->mem_prefer(ptr, 64 * KIB, 1));
    assert_int_equal(rmm__sim_preferred_at(ptr, 64 * KIB), 1);
    assert_cuda(driver->mem_prefer(ptr, 64 * KIB, RMM_DRIVER_HOST));
    assert_int_equal(rmm__sim_preferred_at(ptr, 64 * KIB), RMM_DRIVER_HOST);
    assert_int_equal(rmm__sim_prefetched_to(ptr, 64 * KIB), SIM_NOWHERE);
    assert_cuda(driver->mem_prefer(system, 64 * KIB, 0)); /* a device can read it */
    assert_int_equal(rmm__sim_preferred_at(system, 64 * KIB), 0);
    free(system);
    release(ptr);
}

TEST_CASE(refuses_to_move_what_cannot_move)
{
    const rmm_driver_t *driver = sim_driver();
    char *ptr = managed(64 * KIB);
    void *device = NULL;

    assert_cuda(driver->mem_alloc(&device, 64 * KIB));
    assert_int_equal(
        driver->mem_prefetch(device, 64 * KIB, 0, NULL), RMM_DRIVER_INVALID_VALUE);
    assert_int_equal(driver->mem_prefer(device, 1, 0), RMM_DRIVER_INVALID_VALUE);
    assert_int_equal(
        driver->mem_prefetch(ptr, 64 * KIB + 1, 0, NULL), RMM_DRIVER_INVALID_VALUE);
    assert_int_equal(driver->mem_prefetch(ptr, 0, 0, NULL), RMM_DRIVER_INVALID_VALUE);
    assert_int_equal(driver->mem_prefetch(ptr, 1, 2, NULL), RMM_DRIVER_INVALID_DEVICE);
    assert_int_equal(driver->mem_prefer(ptr, 1, -2), RMM_DRIVER_INVALID_DEVICE);
    assert_int_equal(rmm__sim_prefetched_to(ptr, 1), SIM_NOWHERE);
    release(device);
    release(ptr);
}

TEST_CASE(refuses_an_allocation_of_no_bytes)
{
    void *ptr = &ptr;

    assert_int_equal(sim_driver()->managed_alloc(&ptr, 0), RMM_DRIVER_INVALID_VALUE);
    assert_ptr_equal(ptr, &ptr);
}

TEST_CASE(a_prefetch_ruins_the_capture_of_its_stream)
{
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    char *ptr = managed(64 * KIB);
    rmm_sim_graph_t graph;

    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_RELAXED));
    assert_int_equal(
        sim_driver()->mem_prefetch(ptr, 64 * KIB, 0, stream),
        RMM_DRIVER_CAPTURE_UNSUPPORTED);
    assert_int_equal(
        rmm_sim_end_capture(stream, &graph), RMM_DRIVER_CAPTURE_INVALIDATED);
    assert_cuda(sim_driver()->stream_destroy(stream));
    release(ptr);
}

TEST_CASE(copies_and_fills_in_the_streams_order)
{
    const rmm_driver_t *driver = sim_driver();

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
        void *block = NULL;
        char host[64] = {0};

        rmm__sim_reseed(seed);
        assert_cuda(driver->mem_alloc(&block, sizeof(host)));
        assert_cuda(driver->memset_async(block, 'x', sizeof(host), stream));
        assert_cuda(driver->memset_async(block, 'y', 8, stream));
        assert_cuda(driver->memcpy_async(host, block, sizeof(host), stream));
        assert_cuda(driver->memcpy_async(NULL, NULL, 0, stream)); /* nothing */
        assert_cuda(driver->stream_synchronize(stream));
        assert_memory_equal(host, "yyyyyyyyxx", 10);
        assert_int_equal(host[63], 'x');
        assert_int_equal(
            driver->memcpy_async(NULL, block, 8, stream), RMM_DRIVER_INVALID_VALUE);
        assert_int_equal(
            driver->memset_async(NULL, 0, 8, stream), RMM_DRIVER_INVALID_VALUE);
        assert_cuda(driver->stream_destroy(stream));
        release(block);
    }
}

TEST_CASE(returns_the_flags_of_a_stream)
{
    const rmm_driver_t *driver = sim_driver();
    uint64_t violations = rmm_sim_violations();
    rmm_stream_t blocking = make_stream(0);
    rmm_stream_t free_running = make_stream(RMM_STREAM_NON_BLOCKING);
    uint32_t flags = 77;

    assert_cuda(driver->stream_flags(blocking, &flags));
    assert_int_equal(flags, 0);
    assert_cuda(driver->stream_flags(free_running, &flags));
    assert_int_equal(flags, RMM_STREAM_NON_BLOCKING);
    assert_cuda(driver->stream_flags(RMM_STREAM_LEGACY, &flags));
    assert_int_equal(flags, 0);
    assert_cuda(driver->stream_destroy(blocking));
    assert_cuda(driver->stream_destroy(free_running));
    assert_int_equal(driver->stream_flags(blocking, &flags), RMM_DRIVER_INVALID_HANDLE);
    assert_int_equal(rmm_sim_violations(), violations + 1);
}

TEST_CASE(knows_which_side_may_access_which_memory)
{
    const rmm_driver_t *driver = sim_driver();
    int can = -1;

    assert_cuda(driver->peer_can_access(0, 1, &can));
    assert_int_equal(can, 1);
    assert_cuda(driver->peer_can_access(1, 1, &can));
    assert_int_equal(can, 1);
    assert_int_equal(driver->peer_can_access(0, 2, &can), RMM_DRIVER_INVALID_DEVICE);
    assert_int_equal(driver->peer_can_access(-1, 0, &can), RMM_DRIVER_INVALID_DEVICE);
}

TEST_CASE(fails_when_the_plan_says_so)
{
    const rmm_driver_t *driver = sim_driver();
    char block[8] = {0};

    assert_true(
        rmm_sim_fail("memcpy_async:1:719,memset_async:1,mem_prefer:1,mem_prefetch:1,"
                     "peer_can_access:1,stream_flags:1"));
    assert_int_equal(driver->memcpy_async(block, block, 8, NULL), 719);
    assert_int_equal(driver->memset_async(block, 1, 8, NULL), 999);
    assert_int_equal(driver->mem_prefer(block, 8, 0), 999);
    assert_int_equal(driver->mem_prefetch(block, 8, 0, NULL), 999);
    assert_int_equal(driver->peer_can_access(0, 0, &(int){0}), 999);
    assert_int_equal(driver->stream_flags(NULL, &(uint32_t){0}), 999);
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(block[0], 0);
    assert_true(rmm_sim_fail(NULL));
}
