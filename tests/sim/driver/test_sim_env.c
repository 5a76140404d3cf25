/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variables of the simulated GPU. They are read once per process, so each case runs
 * in a child; the parent never opens the driver.
 */
#include "harness/harness.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rmm/sim.h>
#include <rmm/stream.h>

#include "driver/driver.h"
#include "driver/sim/control.h"
#include "harness/in_child.h"

#define CHILD_FAILED 1

/* The child's answer by exit status: with `name` set to `value`, does check() hold? */
static bool holds(const char *name, const char *value, bool (*check)(const char *value))
{
    pid_t child = fork_child();

    if (child == 0) {
        setenv("RMM_DRIVER", "sim", 1);
        setenv(name, value, 1);
        _exit(check(value) ? 0 : CHILD_FAILED);
    }
    return exit_status_of(child) == 0;
}

static const char *variable_under_test;

/* Refused, with a message that names the variable and the value. */
static bool is_refused(const char *value)
{
    rmm_status_t status = RMM_OK;
    rmm_stream_t stream;

    if (rmm__driver(&status) != NULL || status != RMM_ERR_INVALID_ARGUMENT) {
        return false;
    }
    if (strstr(rmm_last_error_message(), variable_under_test) == NULL ||
        strstr(rmm_last_error_message(), value) == NULL ||
        strstr(rmm_last_error_message(), "expected") == NULL) {
        return false;
    }
    return !rmm_sim_active() && rmm_sim_device_synchronize() == 801 &&
           rmm_stream_create(0, &stream) == RMM_ERR_INVALID_ARGUMENT;
}

static void assert_all_refused(const char *name, const char *const *values)
{
    variable_under_test = name;
    for (; *values != NULL; values++) {
        if (!holds(name, *values, is_refused)) {
            fail_msg("%s=%s was not refused as it should be", name, *values);
        }
    }
}

TEST_CASE(refuses_malformed_variables_by_name)
{
    const char *const devices[] = {"0", "33", "-1", "two", "1 ", "0x2", "1.5", NULL};
    const char *const memory[] = {
        "0",    "80G", "1 GiB", "GiB",         "-1GiB",
        "1KiB", "1e9", "17TiB", "16777216TiB", "99999999999999999999999999",
        NULL};
    const char *const seeds[] = {"x", "-1", "18446744073709551616", "1.0", NULL};
    const char *const plans[] = {"mem_alloc", "nothing:1", "any:0", NULL};
    const char *const violations[] = {"1", "Abort", "exit,abort", "exit ", NULL};
    const char *const abilities[] = {"peers", "peers=2", "peer=0", "peers=0,", NULL};

    assert_all_refused("RMM_SIM_DEVICES", devices);
    assert_all_refused("RMM_SIM_MEMORY", memory);
    assert_all_refused("RMM_SIM_SEED", seeds);
    assert_all_refused("RMM_SIM_FAIL", plans);
    assert_all_refused("RMM_SIM_VIOLATION", violations);
    assert_all_refused("RMM_SIM_ATTRIBUTES", abilities);
}

static const char *word_expected;

static bool is_quoted_by_itself(const char *value)
{
    rmm_status_t status = RMM_OK;

    return is_refused(value) && rmm__driver(&status) == NULL &&
           strstr(rmm_last_error_message(), word_expected) != NULL;
}

TEST_CASE(quotes_only_the_wrong_word_of_a_list)
{
    variable_under_test = "RMM_SIM_ATTRIBUTES";
    word_expected = "\"peer=0\"";
    assert_true(holds(
        variable_under_test, "managed_pools=1,peer=0,peers=0", is_quoted_by_itself));
    word_expected = " peers"; /* among the names that are known */
    assert_true(holds(variable_under_test, "peer=0", is_quoted_by_itself));
    variable_under_test = "RMM_SIM_FAIL";
    word_expected = "\"nothing:1\"";
    assert_true(
        holds(variable_under_test, "mem_alloc:2,nothing:1,any:1", is_quoted_by_itself));
}

static bool is_active(const char *value)
{
    return rmm_sim_active();
}

static bool has_devices(const char *value)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    int count;
    void *ptr;

    return driver != NULL && driver->device_count(&count) == 0 &&
           count == atoi(value) && driver->device_set(count - 1) == 0 &&
           driver->mem_alloc(&ptr, 1) == 0;
}

static uint64_t expected_bytes;

static bool has_memory(const char *value)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    uint64_t free_bytes, total_bytes;
    void *ptr;

    return driver != NULL && driver->memory_info(&free_bytes, &total_bytes) == 0 &&
           total_bytes == expected_bytes && free_bytes == expected_bytes &&
           driver->mem_alloc(&ptr, expected_bytes + 1) ==
               RMM_DRIVER_MEMORY_ALLOCATION &&
           driver->mem_alloc(&ptr, expected_bytes) == 0 &&
           driver->mem_alloc(&ptr, 1) == RMM_DRIVER_MEMORY_ALLOCATION;
}

static bool fails_the_second_allocation(const char *value)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    void *ptr;

    return driver != NULL && driver->mem_alloc(&ptr, 1) == 0 &&
           driver->mem_alloc(&ptr, 1) == 46 && driver->mem_alloc(&ptr, 1) == 0 &&
           rmm__sim_fault_has_struck();
}

TEST_CASE(takes_its_settings_from_the_environment)
{
    assert_true(holds("RMM_SIM_DEVICES", "1", has_devices));
    assert_true(holds("RMM_SIM_DEVICES", "32", has_devices));
    expected_bytes = UINT64_C(64) << 20;
    assert_true(holds("RMM_SIM_MEMORY", "64MiB", has_memory));
    assert_true(holds("RMM_SIM_MEMORY", "65536KiB", has_memory));
    assert_true(holds("RMM_SIM_MEMORY", "67108864", has_memory));
    expected_bytes = UINT64_C(3) << 30;
    assert_true(holds("RMM_SIM_MEMORY", "3GiB", has_memory));
    assert_true(holds("RMM_SIM_MEMORY", "2TiB", is_active));
    assert_true(holds("RMM_SIM_FAIL", "mem_alloc:2:46", fails_the_second_allocation));
    assert_true(holds("RMM_SIM_SEED", "18446744073709551615", is_active));
}

static int attribute_of(const rmm_driver_t *driver, rmm_driver_attribute_t attribute)
{
    int value = -1;

    return driver->device_attribute(attribute, 0, &value) == 0 ? value : -1;
}

/* What managed memory is said to do, and whether there is any. */
static bool manages(const rmm_driver_t *driver, int promised, bool there)
{
    void *ptr;
    int error = driver->managed_alloc(&ptr, 1);

    return attribute_of(driver, RMM_ATTRIBUTE_MANAGED_MEMORY) == promised &&
           error == (there ? RMM_DRIVER_OK : RMM_DRIVER_NOT_SUPPORTED);
}

static bool has_no_peers(const char *value)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    int can = -1, with_itself = -1;

    return driver != NULL && driver->peer_can_access(0, 1, &can) == 0 && can == 0 &&
           driver->peer_can_access(1, 1, &with_itself) == 0 && with_itself == 1 &&
           manages(driver, 1, true);
}

/* Memory that is mapped cannot be shared with a device that is no peer. */
static bool shares_nothing(const char *value)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    size_t granule = 2 << 20;
    rmm_driver_physical_t physical;
    void *ptr;

    return driver != NULL && driver->address_reserve(&ptr, granule) == 0 &&
           driver->physical_create(granule, 0, &physical) == 0 &&
           driver->address_map(ptr, granule, physical) == 0 &&
           driver->address_access(ptr, granule, RMM_DRIVER_DEVICE(0)) == 0 &&
           driver->address_access(ptr, granule, RMM_DRIVER_DEVICE(1)) ==
               RMM_DRIVER_INVALID_DEVICE;
}

static bool breaks_its_promise(const char *value)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);

    return driver != NULL && manages(driver, 1, false);
}

static bool manages_nothing(const char *value)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);

    return driver != NULL && manages(driver, 0, false);
}

/* Device memory apart: neither is prefetched, nor can the host's memory be. */
static bool prefetches_nothing(const char *value)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    char local[8];
    void *ptr;

    return driver != NULL && driver->managed_alloc(&ptr, 8) == 0 &&
           driver->mem_prefetch(ptr, 8, 0, NULL) == RMM_DRIVER_INVALID_DEVICE &&
           driver->mem_prefetch(ptr, 8, RMM_DRIVER_HOST, NULL) == 0 &&
           driver->mem_prefetch(local, 8, RMM_DRIVER_HOST, NULL) ==
               RMM_DRIVER_INVALID_VALUE;
}

/* Whether there are pools of device and of managed memory. */
static bool pools_are(const rmm_driver_t *driver, int ours, int managed)
{
    rmm_driver_mempool_t pool;

    return driver->mempool_create(0, RMM_DRIVER_ON_DEVICE, &pool) == ours &&
           driver->mempool_managed(&pool) == managed;
}

static bool has_no_pools(const char *value)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);

    return driver != NULL && attribute_of(driver, RMM_ATTRIBUTE_MEMORY_POOLS) == 0 &&
           pools_are(driver, RMM_DRIVER_NOT_SUPPORTED, RMM_DRIVER_NOT_SUPPORTED);
}

static bool has_no_managed_pools(const char *value)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);

    return driver != NULL && attribute_of(driver, RMM_ATTRIBUTE_MEMORY_POOLS) == 1 &&
           pools_are(driver, RMM_DRIVER_OK, RMM_DRIVER_NOT_SUPPORTED);
}

static bool shares_no_pools(const char *value)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    rmm_driver_mempool_t pool;

    return driver != NULL && pools_are(driver, RMM_DRIVER_OK, RMM_DRIVER_OK) &&
           attribute_of(driver, RMM_ATTRIBUTE_MEMORY_POOL_HANDLE_TYPES) == 0 &&
           driver->mempool_create(1, RMM_DRIVER_ON_DEVICE, &pool) ==
               RMM_DRIVER_NOT_SUPPORTED;
}

static bool has_no_pools_of_the_host(const char *value)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    rmm_driver_mempool_t pool;

    return driver != NULL && pools_are(driver, RMM_DRIVER_OK, RMM_DRIVER_OK) &&
           attribute_of(driver, RMM_ATTRIBUTE_HOST_MEMORY_POOLS) == 0 &&
           attribute_of(driver, RMM_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS) == 0 &&
           attribute_of(driver, RMM_ATTRIBUTE_HOST_NUMA_ID) == -1 &&
           driver->mempool_create(0, RMM_DRIVER_HOST, &pool) ==
               RMM_DRIVER_INVALID_VALUE &&
           driver->mempool_create(0, 0, &pool) == RMM_DRIVER_INVALID_VALUE;
}

static bool has_no_virtual_memory(const char *value)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    rmm_driver_physical_t physical;
    size_t bytes;
    void *ptr;

    return driver != NULL && attribute_of(driver, RMM_ATTRIBUTE_VIRTUAL_MEMORY) == 0 &&
           driver->virtual_granularity(&bytes) == RMM_DRIVER_NOT_SUPPORTED &&
           driver->address_reserve(&ptr, 2 << 20) == RMM_DRIVER_NOT_SUPPORTED &&
           driver->physical_create(2 << 20, 0, &physical) == RMM_DRIVER_NOT_SUPPORTED;
}

TEST_CASE(switches_abilities_off)
{
    setenv("RMM_SIM_DEVICES", "2", 1);
    assert_true(holds("RMM_SIM_ATTRIBUTES", "peers=0", has_no_peers));
    assert_true(holds("RMM_SIM_ATTRIBUTES", "peers=0", shares_nothing));
    assert_true(holds("RMM_SIM_ATTRIBUTES", "managed_alloc=0", breaks_its_promise));
    assert_true(holds("RMM_SIM_ATTRIBUTES", "managed_memory=0", manages_nothing));
    assert_true(holds(
        "RMM_SIM_ATTRIBUTES", "concurrent_managed_access=0,pageable_memory_access=0",
        prefetches_nothing));
    unsetenv("RMM_SIM_DEVICES");
    assert_true(holds("RMM_SIM_ATTRIBUTES", "memory_pools=0", has_no_pools));
    assert_true(holds("RMM_SIM_ATTRIBUTES", "virtual_memory=0", has_no_virtual_memory));
    assert_true(holds("RMM_SIM_ATTRIBUTES", "managed_pools=0", has_no_managed_pools));
    assert_true(holds(
        "RMM_SIM_ATTRIBUTES", "concurrent_managed_access=0", has_no_managed_pools));
    assert_true(
        holds("RMM_SIM_ATTRIBUTES", "memory_pool_handle_types=0", shares_no_pools));
    assert_true(holds(
        "RMM_SIM_ATTRIBUTES",
        "host_memory_pools=0,host_numa_memory_pools=0,host_numa_id=0",
        has_no_pools_of_the_host));
}

TEST_CASE(takes_an_empty_variable_for_an_unset_one)
{
    assert_true(holds("RMM_SIM_DEVICES", "", is_active));
    assert_true(holds("RMM_SIM_MEMORY", "", is_active));
    assert_true(holds("RMM_SIM_SEED", "", is_active));
    assert_true(holds("RMM_SIM_FAIL", "", is_active));
}

static bool says_unsupported(const char *value)
{
    rmm_sim_event_t event;

    return !rmm_sim_active() && rmm_sim_event_create(&event) == 801 &&
           rmm_sim_memset_async(&event, 0, 1, NULL) == 801 && !rmm_sim_fail("any:1") &&
           rmm_sim_allocated_bytes(0) == 0;
}

TEST_CASE(is_used_on_request_only)
{
    assert_true(holds("RMM_DRIVER", "neither", says_unsupported));
}

static bool runs_on_without_it(const char *value)
{
    return rmm_sim_active(); /* one line on stderr says why there is no diagnosis */
}

TEST_CASE(runs_on_when_the_injected_library_cannot_be_loaded)
{
    assert_true(holds(
        "CUDA_INJECTION64_PATH", "/proc/nowhere/libinject.so", runs_on_without_it));
}
