/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices, errors and what a version of HIP lacks: RMM_TEST_LACKS has the words of the
 * abilities that this one has not.
 */
#include "hip/hip_harness.h"

#include <stdio.h>

static bool lacks(const char *word)
{
    return strstr(getenv("RMM_TEST_LACKS"), word) != NULL;
}

static void tells_the_devices_apart(void **state)
{
    rmm_device_info_t info[2];
    int count = 0;

    assert_cuda(hip_driver()->device_count(&count));
    assert_int_equal(count, 2);
    for (int i = 0; i < 2; i++) {
        assert_cuda(hip_driver()->device_info(i, &info[i]));
        assert_string_equal(info[i].name, "AMD on a Simulated GPU");
        assert_int_equal(info[i].capacity_bytes, UINT64_C(80) << 30);
    }
    assert_string_equal(info[0].pci_bus_id, "0000:43:00.0");
    assert_string_equal(info[1].pci_bus_id, "0000:44:00.0");
    assert_string_equal(
        info[1].uuid, lacks("uuid") ? "PCI-0000-44-00.0" : "GPU-5eed000000000001");
    assert_int_not_equal(hip_driver()->device_info(2, &info[0]), RMM_DRIVER_OK);
}

static void assert_ability(
    rmm_device_ability_t ability, bool expected,
    rmm_status_t (*create)(rmm_resource_t **out), const char *reason)
{
    rmm_resource_t *mr = NULL;
    bool is_there = !expected;

    assert_ok(rmm_device_supports(0, ability, &is_there));
    assert_int_equal(is_there, expected);
    assert_int_equal(create(&mr), expected ? RMM_OK : RMM_ERR_UNSUPPORTED);
    if (expected) {
        rmm_resource_release(mr);
    } else {
        assert_null(mr);
        assert_non_null(strstr(rmm_last_error_message(), reason));
    }
}

static void refuses_what_this_version_lacks_and_makes_the_rest(void **state)
{
    assert_ability(RMM_ABILITY_MANAGED, true, rmm_managed_resource_create, "");
    assert_ability(RMM_ABILITY_SYSTEM, true, rmm_system_resource_create, "");
    assert_ability(
        RMM_ABILITY_ASYNC, !lacks("async"), create_async, "has no memory pools");
    assert_ability(
        RMM_ABILITY_ASYNC_MANAGED, false, rmm_async_managed_resource_create,
        lacks("async") ? "has no memory pools" : "HIP has none");
    assert_ability(
        RMM_ABILITY_POOL_VIRTUAL, !lacks("virtual"), create_virtual_pool,
        "cannot map virtual memory");
}

/* Each function of a missing group, called all the same. */
static void a_missing_function_is_an_error_and_no_crash(void **state)
{
    const rmm_driver_t *driver = hip_driver();
    rmm_driver_mempool_t pool = NULL;
    rmm_driver_mempool_figures_t figures;
    rmm_driver_physical_t physical = 1;
    uint64_t bytes;
    size_t granularity;
    char there[16];
    void *ptr = there;

    assert_int_equal(driver->mempool_managed(&pool), RMM_DRIVER_NOT_SUPPORTED);
    if (!rmm__hip.has[HIP_GROUP_POOLS]) {
        assert_int_equal(
            driver->mempool_create(0, RMM_DRIVER_ON_DEVICE, &pool),
            RMM_DRIVER_NOT_SUPPORTED);
        assert_int_equal(driver->mempool_destroy(pool), RMM_DRIVER_NOT_SUPPORTED);
        assert_int_equal(
            driver->mempool_get_threshold(pool, &bytes), RMM_DRIVER_NOT_SUPPORTED);
        assert_int_equal(
            driver->mempool_set_threshold(pool, 0), RMM_DRIVER_NOT_SUPPORTED);
        assert_int_equal(
            driver->mempool_figures(pool, &figures), RMM_DRIVER_NOT_SUPPORTED);
        assert_int_equal(driver->mempool_trim(pool, 0), RMM_DRIVER_NOT_SUPPORTED);
        assert_int_equal(
            driver->mempool_alloc(pool, &ptr, 1, NULL), RMM_DRIVER_NOT_SUPPORTED);
        assert_int_equal(driver->mempool_free(ptr, NULL), RMM_DRIVER_NOT_SUPPORTED);
    }
    if (!rmm__hip.has[HIP_GROUP_VIRTUAL]) {
        assert_int_equal(
            driver->virtual_granularity(&granularity), RMM_DRIVER_NOT_SUPPORTED);
        assert_int_equal(driver->address_reserve(&ptr, 1), RMM_DRIVER_NOT_SUPPORTED);
        assert_int_equal(driver->address_free(ptr, 1), RMM_DRIVER_NOT_SUPPORTED);
        assert_int_equal(
            driver->physical_create(1, 0, &physical), RMM_DRIVER_NOT_SUPPORTED);
        assert_int_equal(driver->physical_release(physical), RMM_DRIVER_NOT_SUPPORTED);
        assert_int_equal(driver->address_map(ptr, 1, 1), RMM_DRIVER_NOT_SUPPORTED);
        assert_int_equal(driver->address_unmap(ptr, 1), RMM_DRIVER_NOT_SUPPORTED);
        assert_int_equal(driver->address_access(ptr, 1, 0), RMM_DRIVER_NOT_SUPPORTED);
    }
    assert_ptr_equal(ptr, there); /* outputs are written on success only */
    assert_cuda(driver->mempool_free(NULL, NULL));
}

static void failures_leave_outputs_and_no_last_error(void **state)
{
    char there;
    void *ptr = &there;
    rmm_resource_t *mr;

    assert_int_equal(
        hip_driver()->mem_alloc(&ptr, (size_t)1 << 60), RMM_DRIVER_MEMORY_ALLOCATION);
    assert_ptr_equal(ptr, &there);
    assert_int_equal(rmm__hip.hipPeekAtLastError(), RMM_DRIVER_OK);
    mr = make_cuda();
    assert_int_equal(
        rmm_resource_alloc(mr, (size_t)1 << 50, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(rmm_last_error_message(), "hipErrorOutOfMemory"));
    assert_int_equal(rmm_last_cuda_error(), RMM_DRIVER_MEMORY_ALLOCATION);
    rmm_resource_release(mr);
}

static void a_pending_event_leaves_no_last_error(void **state)
{
    const rmm_driver_t *driver = hip_driver();
    rmm_stream_t stream = foreign_stream();
    rmm_driver_event_t event;
    static char from[100], to[100];
    unsigned pending = 0;

    assert_cuda(driver->event_create(&event));
    for (int i = 0; i < 50; i++) {
        assert_cuda(rmm_sim_memcpy_async(to, from, sizeof(to), stream));
        assert_cuda(driver->event_record(event, stream));
        pending += driver->event_query(event) == RMM_DRIVER_NOT_READY;
        assert_int_equal(rmm__hip.hipPeekAtLastError(), RMM_DRIVER_OK);
    }
    assert_true(pending > 0);
    assert_cuda(driver->event_destroy(event));
    end_foreign(stream);
}

/* From 7.0 on a look at an event says nothing of an error that the program has not read. */
static void a_pending_event_keeps_the_programs_own_error(void **state)
{
    const rmm_driver_t *driver = hip_driver();
    rmm_stream_t stream = foreign_stream();
    rmm_driver_event_t event;
    static char from[100], to[100];
    int error = RMM_DRIVER_OK;

    assert_cuda(driver->event_create(&event));
    while (error == RMM_DRIVER_OK) {
        assert_cuda(rmm_sim_memcpy_async(to, from, sizeof(to), stream));
        assert_cuda(driver->event_record(event, stream));
        assert_int_not_equal(rmm__hip.hipSetDevice(99), RMM_DRIVER_OK);
        error = driver->event_query(event);
    }
    assert_int_equal(error, RMM_DRIVER_NOT_READY);
    assert_int_equal(
        rmm__hip.hipGetLastError(),
        rmm__hip.version >= 70000000 ? RMM_DRIVER_INVALID_DEVICE : RMM_DRIVER_OK);
    assert_cuda(driver->event_destroy(event));
    end_foreign(stream);
}

static void the_legacy_stream_is_null_for_hip(void **state)
{
    const rmm_driver_t *driver = hip_driver();
    const rmm_stream_t names[] = {NULL, RMM_STREAM_LEGACY, RMM_STREAM_PER_THREAD};
    uint32_t flags = 99;
    char from[] = "there";
    char to[sizeof(from)];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        memset(to, 0, sizeof(to));
        assert_cuda(driver->memcpy_async(to, from, sizeof(to), names[i]));
        assert_cuda(driver->stream_synchronize(names[i]));
        assert_string_equal(to, "there");
        assert_cuda(driver->stream_flags(names[i], &flags));
        assert_int_equal(flags, 0);
    }
    assert_no_violations();
}

/* What PyTorch's pluggable allocator calls, with a stream of HIP's. */
static void torch_gets_and_returns_blocks(void **state)
{
    rmm_stream_t stream = foreign_stream();
    void *block = rmm_torch_malloc(1000, 1, stream);

    assert_non_null(block);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_true(rmm_sim_allocated_bytes(1) >= 1000);
    rmm_torch_free(block, 1000, 1, stream);
    end_foreign(stream);
    assert_no_violations();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_the_devices_apart),
        cmocka_unit_test(refuses_what_this_version_lacks_and_makes_the_rest),
        cmocka_unit_test(a_missing_function_is_an_error_and_no_crash),
        cmocka_unit_test(failures_leave_outputs_and_no_last_error),
        cmocka_unit_test(a_pending_event_leaves_no_last_error),
        cmocka_unit_test(a_pending_event_keeps_the_programs_own_error),
        cmocka_unit_test(the_legacy_stream_is_null_for_hip),
        cmocka_unit_test(torch_gets_and_returns_blocks)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
