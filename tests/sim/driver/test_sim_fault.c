/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fault plan of the simulated GPU.
 */
#include "sim/driver/sim_harness.h"

#include <stdio.h>

#include <rmm/status.h>

#include "driver/sim/control.h"

static int clear(void **state)
{
    assert_true(rmm_sim_fail(NULL));
    return 0;
}

static int alloc_once(void)
{
    void *ptr;
    int error = sim_driver()->mem_alloc(&ptr, 512);

    return error != RMM_DRIVER_OK ? error : sim_driver()->mem_free(ptr);
}

TEST_CASE_WITH(fails_the_nth_call_once_with_the_functions_own_error, NULL, clear)
{
    rmm_stream_t stream = NULL;

    assert_true(rmm_sim_fail("mem_alloc:3,stream_create:1"));
    assert_cuda(alloc_once());
    assert_cuda(alloc_once());
    assert_false(rmm__sim_fault_has_struck());
    assert_int_equal(alloc_once(), RMM_DRIVER_MEMORY_ALLOCATION);
    assert_true(rmm__sim_fault_has_struck());
    assert_cuda(alloc_once());
    assert_int_equal(sim_driver()->stream_create(0, &stream), 999);
    assert_null(stream);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

TEST_CASE_WITH(fails_with_the_requested_error, NULL, clear)
{
    assert_true(rmm_sim_fail("device_get:1:46,mem_alloc:1:4"));
    assert_int_equal(sim_driver()->device_get(&(int){0}), 46);
    assert_int_equal(alloc_once(), RMM_DRIVER_UNLOADING);
}

TEST_CASE_WITH(a_status_says_what_kind_of_error_it_was, NULL, clear)
{
    static const struct {
        int error;
        rmm_status_t status;
    } kinds[] = {
        {RMM_DRIVER_MEMORY_ALLOCATION, RMM_ERR_OUT_OF_MEMORY},
        {RMM_DRIVER_NO_DEVICE, RMM_ERR_NO_DEVICE},
        {RMM_DRIVER_INSUFFICIENT_DRIVER, RMM_ERR_NO_DEVICE},
        {RMM_DRIVER_INVALID_VALUE, RMM_ERR_CUDA},
        {999, RMM_ERR_CUDA},
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        assert_int_equal(
            rmm__driver_error(sim_driver(), kinds[i].error, "a call"), kinds[i].status);
        assert_int_equal(rmm_last_cuda_error(), kinds[i].error);
    }
}

TEST_CASE_WITH(takes_a_plan_of_32_faults_and_no_more, NULL, clear)
{
    char plan[33 * sizeof("mem_alloc:9") + 1] = "";

    for (int i = 0; i < 32; i++) {
        strcat(plan, i == 0 ? "mem_alloc:9" : ",mem_alloc:9");
    }
    assert_true(rmm_sim_fail(plan));
    strcat(plan, ",mem_alloc:9");
    assert_false(rmm_sim_fail(plan));
}

TEST_CASE_WITH(counts_all_calls_together_for_any, NULL, clear)
{
    rmm_stream_key_t key;
    int value = 0;

    assert_true(rmm_sim_fail("any:4:77"));
    assert_cuda(sim_driver()->device_get(&value));
    assert_cuda(sim_driver()->stream_key(NULL, &key));
    assert_cuda(sim_driver()->capture_mode_exchange(&value));
    assert_int_equal(sim_driver()->device_count(&value), 77);
    assert_cuda(sim_driver()->device_count(&value));
}

TEST_CASE_WITH(does_nothing_else_in_a_call_that_fails, NULL, clear)
{
    rmm_stream_t stream = make_stream(0);

    assert_true(rmm_sim_fail("stream_destroy:1"));
    assert_int_equal(sim_driver()->stream_destroy(stream), 999);
    assert_cuda(sim_driver()->stream_synchronize(stream)); /* lives */
    assert_cuda(sim_driver()->stream_destroy(stream));
}

TEST_CASE_WITH(does_not_count_the_tests_own_calls, NULL, clear)
{
    rmm_sim_event_t event;

    assert_true(rmm_sim_fail("any:1"));
    assert_cuda(rmm_sim_event_create(&event));
    assert_cuda(rmm_sim_event_record(event, NULL));
    assert_cuda(rmm__sim_stream_synchronize(NULL));
    assert_cuda(rmm_sim_event_destroy(event));
    assert_false(rmm__sim_fault_has_struck());
}

TEST_CASE_WITH(replaces_a_plan_and_forgets_what_struck, NULL, clear)
{
    assert_true(rmm_sim_fail("mem_alloc:1"));
    assert_int_equal(alloc_once(), RMM_DRIVER_MEMORY_ALLOCATION);
    assert_true(rmm_sim_fail("mem_alloc:2"));
    assert_false(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(""));
    assert_cuda(alloc_once());
    assert_cuda(alloc_once());
    assert_false(rmm__sim_fault_has_struck());
}

TEST_CASE_WITH(refuses_plans_that_do_not_parse_and_keeps_the_old_one, NULL, clear)
{
    const char *const wrong[] = {
        "mem_alloc",      "mem_alloc:",   "mem_alloc:0",    "mem_alloc:x",
        "mem_alloc:1:",   ":1",           "malloc:1",       "mem_alloc:1:2:3",
        "mem_alloc:1:0",  "mem_alloc:-1", "mem_alloc: 1",   "mem_alloc:1,",
        ",mem_alloc:1",   "any:1;any:2",  "mem_alloc:1:xy", "error_name:1",
        "mem_alloc:1x:2",
    };

    assert_true(rmm_sim_fail("mem_alloc:1"));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_false(rmm_sim_fail(wrong[i]));
    }
    assert_int_equal(alloc_once(), RMM_DRIVER_MEMORY_ALLOCATION);
}

static const char *const function_names[] = {
    "host_free",
    "host_alloc",
    "managed_alloc",
    "device_attribute",
    "device_active",
    "device_count",
    "device_get",
    "device_set",
    "device_info",
    "device_synchronize",
    "memory_info",
    "mem_alloc",
    "mem_free",
    "memcpy_async",
    "memset_async",
    "mem_prefer",
    "mem_prefetch",
    "mempool_create",
    "mempool_destroy",
    "mempool_managed",
    "mempool_get_threshold",
    "mempool_set_threshold",
    "mempool_figures",
    "mempool_trim",
    "mempool_alloc",
    "mempool_free",
    "mempool_export",
    "mempool_export_pointer",
    "mempool_import",
    "mempool_import_pointer",
    "virtual_granularity",
    "address_reserve",
    "address_free",
    "physical_create",
    "physical_export",
    "physical_import",
    "physical_release",
    "address_map",
    "address_unmap",
    "address_access",
    "peer_can_access",
    "stream_flags",
    "stream_create",
    "stream_destroy",
    "stream_synchronize",
    "stream_wait_event",
    "stream_key",
    "legacy_is_open",
    "event_create",
    "event_destroy",
    "event_record",
    "event_query",
    "event_synchronize",
    "capture_mode_exchange"};

TEST_CASE_WITH(knows_every_function_of_the_table, NULL, clear)
{
    for (size_t i = 0; i < sizeof(function_names) / sizeof(function_names[0]); i++) {
        char plan[64];

        snprintf(plan, sizeof(plan), "%s:18446744073709551615:12", function_names[i]);
        assert_true(rmm_sim_fail(plan));
    }
}
