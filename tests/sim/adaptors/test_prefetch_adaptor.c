/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The prefetch adaptor: RMM's cases by name. Run twice: with RMM_SIM_ATTRIBUTES without
 * concurrent managed access nothing is prefetched, and all else is as before.
 */
#include "sim/adaptors/adaptor_harness.h"

#include <stdlib.h>

#include "driver/sim/control.h"

static rmm_resource_t *make_prefetch(rmm_resource_t *upstream)
{
    rmm_resource_t *mr;

    assert_ok(rmm_prefetch_adaptor_create(upstream, NULL, &mr));
    rmm_resource_release(upstream);
    return mr;
}

static rmm_resource_t *make_managed(void)
{
    rmm_resource_t *mr;

    assert_ok(rmm_managed_resource_create(&mr));
    return mr;
}

static bool device_can(void)
{
    return getenv("RMM_SIM_ATTRIBUTES") == NULL;
}

TEST_CASE(prefetches_pointer_and_size)
{
    static const size_t sizes[] = {1, 1000, 3 * MIB};
    rmm_resource_t *mr = make_prefetch(make_managed());
    rmm_stream_t stream = make_stream(0);

    for (size_t i = 0; i < 3; i++) {
        void *ptr = take(mr, sizes[i], stream);

        assert_cuda(rmm__sim_stream_synchronize(stream));
        assert_int_equal(
            rmm__sim_prefetched_to(ptr, sizes[i]), device_can() ? 0 : SIM_NOWHERE);
        give(mr, ptr, sizes[i], stream);
    }
    assert_cuda(sim_driver()->stream_destroy(stream));
    end_adaptor(mr);
}

TEST_CASE(is_not_prefetched_without_adaptor)
{
    rmm_resource_t *mr = make_managed();
    void *ptr = take(mr, 1000, NULL);

    assert_int_equal(rmm__sim_prefetched_to(ptr, 1000), SIM_NOWHERE);
    give(mr, ptr, 1000, NULL);
    end_adaptor(mr);
}

/* The resource's device, not the thread's. */
TEST_CASE(prefetches_to_the_device_of_the_resource)
{
    rmm_resource_t *mr = make_prefetch(make_managed());
    int current = -1;
    void *ptr;

    assert_cuda(rmm__sim_device_set(1));
    ptr = take(mr, 1000, NULL);
    assert_int_equal(rmm__sim_prefetched_to(ptr, 1000), device_can() ? 0 : SIM_NOWHERE);
    assert_cuda(rmm__sim_device_get(&current));
    assert_int_equal(current, 1);
    assert_cuda(rmm__sim_device_set(0));
    give(mr, ptr, 1000, NULL);
    end_adaptor(mr);
}

TEST_CASE(leaves_memory_that_is_not_managed_alone)
{
    rmm_resource_t *mr = make_prefetch(make_pool(0, 0));
    void *ptr = take(mr, 1000, NULL);

    assert_int_equal(rmm__sim_prefetched_to(ptr, 1000), SIM_NOWHERE);
    give(mr, ptr, 1000, NULL);
    end_adaptor(mr);
}

TEST_CASE(prefetches_nothing_of_no_bytes)
{
    rmm_resource_t *mr = make_prefetch(make_managed());
    void *ptr = &ptr;

    assert_true(rmm_sim_fail("mem_prefetch:1"));
    assert_ok(rmm_resource_alloc(mr, 0, 0, NULL, &ptr));
    assert_null(ptr);
    assert_false(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
    rmm_resource_dealloc(mr, NULL, 0, 0, NULL);
    end_adaptor(mr);
}

TEST_CASE(gives_the_block_back_when_its_prefetch_fails)
{
    rmm_resource_t *mr = make_prefetch(make_managed());
    void *mark = &mark;
    void *ptr = mark;
    rmm_status_t status;

    assert_true(rmm_sim_fail("mem_prefetch:1"));
    status = rmm_resource_alloc(mr, 1000, 0, NULL, &ptr);
    assert_true(rmm_sim_fail(NULL));
    if (device_can()) {
        assert_int_equal(status, RMM_ERR_BAD_ALLOC);
        assert_ptr_equal(ptr, mark);
        assert_non_null(strstr(rmm_last_error_message(), "prefetching 1000 bytes"));
        assert_int_not_equal(rmm_last_cuda_error(), 0);
    } else {
        assert_int_equal(status, RMM_OK);
        give(mr, ptr, 1000, NULL);
    }
    end_adaptor(mr);
}

/* A capture would take up the prefetch, or be ruined by it: it is left alone. */
TEST_CASE(leaves_captures_alone)
{
    rmm_resource_t *mr = make_prefetch(make_managed());
    rmm_stream_t stream = make_stream(0);
    rmm_sim_graph_t graph;
    void *ptr;

    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_GLOBAL));
    ptr = take(mr, 1000, stream);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_int_equal(rmm__sim_prefetched_to(ptr, 1000), SIM_NOWHERE);
    assert_cuda(rmm_sim_graph_destroy(graph));
    give(mr, ptr, 1000, stream);
    assert_cuda(sim_driver()->stream_destroy(stream));
    end_adaptor(mr);
}

/* That handle means another stream on each device: it is the one of the caller's device. */
TEST_CASE(prefetches_on_the_callers_per_thread_stream)
{
    rmm_resource_t *mr = make_prefetch(make_managed());
    rmm_sim_graph_t graph;
    void *ptr;

    assert_cuda(rmm__sim_device_set(1));
    assert_cuda(rmm_sim_begin_capture(RMM_STREAM_PER_THREAD, RMM_CAPTURE_MODE_GLOBAL));
    ptr = take(mr, 1000, RMM_STREAM_PER_THREAD);
    assert_int_equal(rmm__sim_prefetched_to(ptr, 1000), SIM_NOWHERE);
    assert_cuda(rmm_sim_end_capture(RMM_STREAM_PER_THREAD, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    give(mr, ptr, 1000, RMM_STREAM_PER_THREAD);
    ptr = take(mr, 1000, RMM_STREAM_PER_THREAD);
    assert_cuda(rmm__sim_stream_synchronize(RMM_STREAM_PER_THREAD));
    assert_int_equal(rmm__sim_prefetched_to(ptr, 1000), device_can() ? 0 : SIM_NOWHERE);
    give(mr, ptr, 1000, RMM_STREAM_PER_THREAD);
    assert_cuda(rmm__sim_device_set(0));
    end_adaptor(mr);
}

TEST_CASE(refuses_host_memory)
{
    rmm_resource_t *host;
    rmm_resource_t *mr = NULL;

    assert_ok(rmm_host_resource_create(&host));
    assert_int_equal(rmm_prefetch_adaptor_create(host, NULL, &mr), RMM_ERR_UNSUPPORTED);
    assert_null(mr);
    rmm_resource_release(host);
}
