/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the async resources leave behind at the driver, besides memory: no streams, and the
 * thread's capture mode as it was. By a changed table of the simulated driver.
 */
#include "sim/pool/pool_harness.h"

#include "resources/mempool.h"

static rmm_driver_t hooked;
static int created, destroyed; /* streams */

static int count_stream(uint32_t flags, rmm_stream_t *stream_out)
{
    created++;
    return sim_driver()->stream_create(flags, stream_out);
}

static int count_destroyed_stream(rmm_stream_t stream)
{
    destroyed++;
    return sim_driver()->stream_destroy(stream);
}

static rmm_resource_t *make_hooked(void)
{
    rmm_resource_t *mr;

    assert_ok(create_async(&mr));
    hooked = *sim_driver();
    hooked.stream_create = count_stream;
    hooked.stream_destroy = count_destroyed_stream;
    created = destroyed = 0;
    ((rmm_mempool_resource_t *)(void *)mr)->pool->driver = &hooked; /* first members */
    return mr;
}

TEST_CASE(a_trim_and_the_end_leave_no_stream_behind)
{
    rmm_resource_t *mr = make_hooked();

    give(mr, take(mr, MIB, NULL), MIB, NULL);
    assert_ok(rmm_resource_trim(mr, 0));
    assert_int_equal(created, 1);
    assert_int_equal(destroyed, 1);
    rmm_resource_release(mr);
    assert_int_equal(created, 2);
    assert_int_equal(destroyed, 2);
}

/* A query ruins the captures of other threads, unless this thread's mode is relaxed meanwhile. */
TEST_CASE(a_query_leaves_the_capture_mode_as_it_was)
{
    rmm_resource_t *mr;

    assert_ok(create_async(&mr));
    for (int mode = 0; mode <= RMM_CAPTURE_MODE_RELAXED; mode++) {
        int exchanged = mode;

        assert_cuda(sim_driver()->capture_mode_exchange(&exchanged));
        (void)stats_of(mr);
        assert_cuda(sim_driver()->capture_mode_exchange(&exchanged));
        assert_int_equal(exchanged, mode);
    }
    rmm_resource_release(mr);
}
