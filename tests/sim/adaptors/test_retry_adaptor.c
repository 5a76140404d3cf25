/* SPDX-License-Identifier: Apache-2.0 */
/* The retry adaptor: how often it tries, for how long, and what it leaves alone. */
#include "sim/adaptors/adaptor_harness.h"

#include <string.h>

#include "core/clock.h"

static rmm_resource_t *retry_over(rmm_resource_t *upstream, uint32_t timeout_ms)
{
    rmm_retry_options_t options = RMM_RETRY_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.timeout_ms = timeout_ms;
    assert_ok(rmm_retry_adaptor_create(upstream, &options, &mr));
    rmm_resource_release(upstream);
    return mr;
}

TEST_CASE(a_refused_request_is_tried_once_more)
{
    mock_t *mock = make_mock();
    rmm_resource_t *mr = retry_over(&mock->base, 0);
    void *mark = &mark, *ptr = mark;

    mock->failures = 1;
    ptr = take(mr, 1000, NULL);
    assert_int_equal(mock->allocs, 2);
    assert_int_equal(stats_of(mr).oom_count, 0);
    give(mr, ptr, 1000, NULL);
    mock->failures = 5;
    ptr = mark;
    assert_int_equal(rmm_resource_alloc(mr, 8, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_ptr_equal(ptr, mark);
    assert_int_equal(mock->allocs, 4);
    assert_int_equal(stats_of(mr).oom_count, 1);
    assert_string_equal(rmm_last_error_message(), "mock: told to fail");
    end_adaptor(mr);
}

TEST_CASE(other_failures_are_not_tried_again)
{
    mock_t *mock = make_mock();
    rmm_resource_t *mr = retry_over(&mock->base, 1000);
    void *ptr;

    mock->failure = RMM_ERR_BAD_ALLOC;
    mock->failures = 1;
    assert_int_equal(rmm_resource_alloc(mr, 8, 0, NULL, &ptr), RMM_ERR_BAD_ALLOC);
    assert_int_equal(mock->allocs, 1);
    end_adaptor(mr);
}

TEST_CASE(a_request_is_tried_until_its_time_is_over)
{
    mock_t *mock = make_mock();
    rmm_resource_t *mr = retry_over(&mock->base, 100);
    uint64_t begin_ns = rmm__clock_ns(CLOCK_MONOTONIC);
    void *ptr;

    mock->failures = 1000;
    assert_int_equal(rmm_resource_alloc(mr, 8, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_true(rmm__clock_ns(CLOCK_MONOTONIC) - begin_ns >= 100000000u);
    assert_in_range(mock->allocs, 3, 12); /* after 0, 1, 3, 7, 15, 31, 63, 100 ms */
    mock->failures = 4;
    give(mr, take(mr, 8, NULL), 8, NULL);
    end_adaptor(mr);
}

/* A synchronise would ruin the capture. */
TEST_CASE(a_request_in_a_capture_is_tried_once)
{
    mock_t *mock = make_mock();
    rmm_resource_t *mr = retry_over(&mock->base, 1000);
    rmm_stream_t stream = make_stream(0);
    rmm_sim_graph_t graph;
    void *ptr;

    mock->failures = 5;
    assert_cuda(rmm_sim_begin_capture(stream, 0));
    assert_int_equal(rmm_resource_alloc(mr, 8, 0, stream, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_int_equal(mock->allocs, 1);
    assert_ok(rmm_stream_destroy(stream));
    end_adaptor(mr);
}

TEST_CASE(options_are_checked)
{
    rmm_retry_options_t options = RMM_RETRY_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda(), *mr = NULL;

    assert_int_equal(
        rmm_retry_adaptor_create(NULL, NULL, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_retry_adaptor_create(cuda, NULL, NULL), RMM_ERR_INVALID_ARGUMENT);
    options.struct_size = 0;
    assert_int_equal(
        rmm_retry_adaptor_create(cuda, &options, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_null(mr);
    rmm_resource_release(cuda);
}
