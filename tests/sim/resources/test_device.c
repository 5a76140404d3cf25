/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions about devices, the scoped device, shares of free memory, and prefetching:
 * RMM's cases of prefetch. Two devices, and a program started again without managed
 * access.
 */
#include "sim/pool/pool_harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/sim/control.h"

static int device_now(void)
{
    int device = -1;

    assert_ok(rmm_device_current(&device));
    return device;
}

static int on_device_zero(void **state)
{
    assert_non_null(sim_driver()); /* HIP's opens the simulated GPU below it */
    assert_true(rmm_sim_fail(NULL));
    assert_ok(rmm_device_set(0));
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, on_device_zero, NULL)

CASE(counts_the_devices)
{
    int count = 0;

    assert_ok(rmm_device_count(&count));
    assert_int_equal(count, 2);
    assert_int_equal(rmm_device_count(NULL), RMM_ERR_INVALID_ARGUMENT);
}

CASE(sets_the_current_device)
{
    assert_ok(rmm_device_set(1));
    assert_int_equal(device_now(), 1);
    assert_int_equal(rmm_device_set(2), RMM_ERR_CUDA);
    assert_int_equal(rmm_device_set(-1), RMM_ERR_CUDA);
    assert_int_equal(device_now(), 1);
    assert_int_equal(rmm_device_current(NULL), RMM_ERR_INVALID_ARGUMENT);
}

CASE(a_scope_brings_the_previous_device_back)
{
    rmm_device_scope_t scope;
    rmm_device_scope_t inner;

    assert_ok(rmm_device_scope_enter(1, &scope));
    assert_int_equal(device_now(), 1);
    assert_ok(rmm_device_scope_enter(0, &inner));
    assert_int_equal(device_now(), 0);
    rmm_device_scope_leave(&inner);
    assert_int_equal(device_now(), 1);
    rmm_device_scope_leave(&scope);
    assert_int_equal(device_now(), 0);
    assert_ok(rmm_device_set(1));
    rmm_device_scope_leave(&scope); /* nothing left to bring back */
    rmm_device_scope_leave(NULL);
    assert_int_equal(device_now(), 1);
}

CASE(a_scope_of_a_negative_or_the_current_device_sets_nothing)
{
    const int devices[] = {-1, 0};

    assert_true(rmm_sim_fail("device_set:1"));
    for (int i = 0; i < 2; i++) {
        rmm_device_scope_t scope;

        assert_ok(rmm_device_scope_enter(devices[i], &scope));
        assert_int_equal(device_now(), 0);
        rmm_device_scope_leave(&scope);
    }
    assert_false(rmm__sim_fault_has_struck());
}

CASE(a_scope_that_cannot_be_entered_is_untouched)
{
    rmm_device_scope_t scope = {.previous = 77};

    assert_int_equal(rmm_device_scope_enter(2, &scope), RMM_ERR_CUDA);
    assert_int_equal(scope.previous, 77);
    assert_int_equal(rmm_device_scope_enter(0, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(device_now(), 0);
}

static void *enter_and_leave(void *argument)
{
    int device = *(int *)argument;
    const char *wrong = NULL;

    for (int i = 0; i < 200 && wrong == NULL; i++) {
        rmm_device_scope_t scope;
        int now = -1;

        if (rmm_device_scope_enter(device, &scope) != RMM_OK ||
            rmm_device_current(&now) != RMM_OK || now != device) {
            wrong = "in the scope";
            break;
        }
        rmm_device_scope_leave(&scope);
        if (rmm_device_current(&now) != RMM_OK || now != 0) {
            wrong = "behind the scope";
        }
    }
    return (void *)(uintptr_t)wrong;
}

CASE(each_thread_has_a_device_of_its_own)
{
    int devices[] = {0, 1, 1};
    pthread_t threads[3];

    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, enter_and_leave, &devices[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        void *wrong = NULL;

        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
}

CASE(available_memory_is_that_of_the_current_device)
{
    rmm_resource_t *cuda = make_cuda();
    void *ptr = take(cuda, 256 * MIB, NULL);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    size_t other = 0;

    assert_ok(rmm_available_device_memory(&free_bytes, &total_bytes));
    assert_int_equal(total_bytes, 1000 * MIB);
    assert_int_equal(free_bytes, 744 * MIB);
    assert_ok(rmm_device_set(1));
    assert_ok(rmm_available_device_memory(&other, &total_bytes));
    assert_int_equal(other, 1000 * MIB);
    assert_int_equal(
        rmm_available_device_memory(NULL, &other), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_available_device_memory(&other, NULL), RMM_ERR_INVALID_ARGUMENT);
    give(cuda, ptr, 256 * MIB, NULL);
    rmm_resource_release(cuda);
}

CASE(a_share_of_free_memory_is_rounded_down)
{
    const int wrong[] = {-1, 101, 1000};
    const uint64_t is_free = (uint64_t)1000 * MIB - 512; /* no round number */
    const uint64_t most = is_free - 2 * MIB; /* the rest is the library's own */
    rmm_resource_t *cuda = make_cuda();
    void *block = take(cuda, 512, NULL);
    size_t bytes = 7;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            rmm_percent_of_free_device_memory(wrong[i], &bytes),
            RMM_ERR_INVALID_ARGUMENT);
    }
    assert_int_equal(bytes, 7);
    assert_int_equal(
        rmm_percent_of_free_device_memory(50, NULL), RMM_ERR_INVALID_ARGUMENT);
    for (int percent = 0; percent <= 100; percent++) {
        uint64_t exact = is_free * (uint64_t)percent / 100;

        exact = exact < most ? exact : most;
        assert_ok(rmm_percent_of_free_device_memory(percent, &bytes));
        assert_int_equal(bytes, exact / 256 * 256);
    }
    assert_int_equal(bytes, most);
    give(cuda, block, 512, NULL);
    rmm_resource_release(cuda);
}

/* --- prefetch --------------------------------------------------------------------- */

static rmm_resource_t *make_managed(void)
{
    rmm_resource_t *managed;

    assert_ok(rmm_managed_resource_create(&managed));
    return managed;
}

CASE(prefetches_a_pointer_and_size)
{
    rmm_resource_t *managed = make_managed();
    rmm_stream_t stream = make_stream(0);
    char *ptr = take(managed, MIB, stream);

    assert_int_equal(rmm__sim_prefetched_to(ptr, MIB), SIM_NOWHERE);
    assert_ok(rmm_prefetch(ptr, MIB, 1, stream));
    assert_int_equal(rmm__sim_prefetched_to(ptr, MIB), 1);
    assert_ok(rmm_prefetch(ptr, 64 * KIB, RMM_DEVICE_HOST, stream));
    assert_int_equal(rmm__sim_prefetched_to(ptr, 64 * KIB), RMM_DEVICE_HOST);
    assert_int_equal(rmm__sim_prefetched_to(ptr + 64 * KIB, 64 * KIB), 1);
    give(managed, ptr, MIB, stream);
    rmm_resource_release(managed);
    assert_ok(rmm_stream_destroy(stream));
}

CASE(prefetches_an_array_whole_and_in_part)
{
    rmm_resource_t *managed = make_managed();
    rmm_device_array_t array;
    char *data;

    assert_ok(rmm_device_array_init(&array, 8, 128 * KIB, NULL, managed));
    data = rmm_device_array_data(&array);
    assert_ok(rmm_device_array_prefetch(&array, 64 * KIB, 64 * KIB, 1, NULL));
    assert_int_equal(rmm__sim_prefetched_to(data, 512 * KIB), SIM_NOWHERE);
    assert_int_equal(rmm__sim_prefetched_to(data + 512 * KIB, 512 * KIB), 1);
    assert_ok(rmm_device_array_prefetch(&array, 0, 128 * KIB, 0, NULL));
    assert_int_equal(rmm__sim_prefetched_to(data, MIB), 0);
    assert_ok(rmm_device_array_prefetch(&array, 128 * KIB, 0, 1, NULL));
    assert_int_equal(
        rmm_device_array_prefetch(&array, 1, 128 * KIB, 0, NULL), RMM_ERR_OUT_OF_RANGE);
    assert_int_equal(
        rmm_device_array_prefetch(&array, SIZE_MAX, 2, 0, NULL), RMM_ERR_OUT_OF_RANGE);
    assert_int_equal(rmm__sim_prefetched_to(data, MIB), 0);
    rmm_device_array_fini(&array);
    rmm_resource_release(managed);
}

CASE(prefetches_a_scalar_and_a_buffer)
{
    rmm_resource_t *managed = make_managed();
    rmm_device_scalar_t scalar;
    rmm_device_buffer_t buffer;
    rmm_device_buffer_t empty = RMM_DEVICE_BUFFER_INIT;

    assert_ok(rmm_device_scalar_init(&scalar, 8, NULL, managed));
    assert_ok(rmm_device_buffer_prefetch(&scalar.array.buffer, 1, NULL));
    assert_int_equal(rmm__sim_prefetched_to(rmm_device_scalar_data(&scalar), 8), 1);
    assert_ok(rmm_device_buffer_init(&buffer, MIB, NULL, managed));
    assert_ok(rmm_device_buffer_prefetch(&buffer, 1, NULL));
    assert_int_equal(rmm__sim_prefetched_to(rmm_device_buffer_data(&buffer), MIB), 1);
    assert_ok(rmm_device_buffer_prefetch(&empty, 1, NULL));
    rmm_device_buffer_fini(&buffer);
    rmm_device_scalar_fini(&scalar);
    rmm_resource_release(managed);
}

CASE(prefetching_memory_that_cannot_move_is_ignored)
{
    rmm_resource_t *cuda = make_cuda();
    void *ptr = take(cuda, MIB, NULL);

    assert_ok(rmm_prefetch(ptr, MIB, 0, NULL));
    assert_ok(rmm_prefetch(NULL, 0, 0, NULL));
    assert_int_equal(rmm_prefetch(NULL, 1, 0, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_prefetch(ptr, 1, -2, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_prefetch(ptr, 1, 9, NULL), RMM_ERR_CUDA);
    give(cuda, ptr, MIB, NULL);
    rmm_resource_release(cuda);
}

CASE(reports_other_failures_of_a_prefetch)
{
    rmm_resource_t *managed = make_managed();
    void *ptr = take(managed, MIB, NULL);

    assert_true(rmm_sim_fail("mem_prefetch:1:999"));
    assert_int_equal(rmm_prefetch(ptr, MIB, 0, NULL), RMM_ERR_CUDA);
    assert_int_equal(rmm_last_cuda_error(), 999);
    assert_true(rmm_sim_fail("device_attribute:1:999"));
    assert_int_equal(rmm_prefetch(ptr, MIB, 0, NULL), RMM_ERR_CUDA);
    give(managed, ptr, MIB, NULL);
    rmm_resource_release(managed);
}

/* --- where there is less ---------------------------------------------------------- */

/* In a process of its own, where RMM_SIM_ATTRIBUTES or RMM_DRIVER is another. */
static int run_again(const char *role, const char *name, const char *value)
{
    int status = -1;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setenv(name, value, 1);
        setenv("CUDA_VISIBLE_DEVICES", "", 1); /* for RMM_DRIVER=cuda: no device */
        execl("/proc/self/exe", "test_device", "--play", role, (char *)NULL);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static int play_no_access(void)
{
    rmm_resource_t *managed;
    void *ptr;
    bool ok;

    if (rmm_managed_resource_create(&managed) != RMM_OK ||
        rmm_resource_alloc(managed, MIB, 0, NULL, &ptr) != RMM_OK) {
        return 1;
    }
    ok = rmm_sim_fail("mem_prefetch:1:999") &&
         rmm_prefetch(ptr, MIB, 0, NULL) == RMM_OK &&
         rmm_prefetch(ptr, MIB, RMM_DEVICE_HOST, NULL) == RMM_OK &&
         !rmm__sim_fault_has_struck();
    rmm_resource_dealloc(managed, ptr, MIB, 0, NULL);
    rmm_resource_release(managed);
    return ok ? 0 : 2;
}

CASE(a_prefetch_does_nothing_without_concurrent_access)
{
    assert_int_equal(
        run_again("no_access", "RMM_SIM_ATTRIBUTES", "concurrent_managed_access=0"), 0);
}

/* No driver at all: each answers why. */
static int play_no_driver(void)
{
    rmm_device_scope_t scope;
    size_t bytes = 0;
    int device = -5;

    return rmm_device_count(&device) == RMM_ERR_INVALID_ARGUMENT &&
                   rmm_device_current(&device) == RMM_ERR_INVALID_ARGUMENT &&
                   rmm_device_set(0) == RMM_ERR_INVALID_ARGUMENT &&
                   rmm_device_scope_enter(0, &scope) == RMM_ERR_INVALID_ARGUMENT &&
                   rmm_device_scope_enter(-1, &scope) == RMM_OK &&
                   rmm_available_device_memory(&bytes, &bytes) ==
                       RMM_ERR_INVALID_ARGUMENT &&
                   rmm_percent_of_free_device_memory(1, &bytes) ==
                       RMM_ERR_INVALID_ARGUMENT &&
                   rmm_prefetch(&bytes, 1, 0, NULL) == RMM_ERR_INVALID_ARGUMENT &&
                   strstr(rmm_last_error_message(), "RMM_DRIVER") != NULL &&
                   device == -5 && bytes == 0
               ? 0
               : 1;
}

CASE(every_call_says_why_there_is_no_driver)
{
    assert_int_equal(run_again("no_driver", "RMM_DRIVER", "none"), 0);
}

/* Containers of plain host memory, where only those can be. */
static bool use_host_array(rmm_resource_t *host)
{
    rmm_device_array_t array;
    int value = 5;
    int found = 0;
    bool ok;

    if (rmm_device_array_init(&array, sizeof(int), 4, NULL, host) != RMM_OK) {
        return false;
    }
    ok = rmm_device_array_set_element(&array, 3, &value, NULL) == RMM_OK &&
         rmm_device_array_set_element_to_zero_async(&array, 2, NULL) == RMM_OK &&
         rmm_device_array_resize(&array, 1000, NULL) == RMM_OK &&
         rmm_device_array_get_element(&array, 3, &found, NULL) == RMM_OK &&
         found == 5 && ((int *)rmm_device_array_data(&array))[2] == 0 &&
         rmm_device_buffer_device(&array.buffer) == -1;
    rmm_device_array_fini(&array);
    return ok;
}

static int play_no_gpu(void)
{
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    rmm_resource_t *host;
    rmm_stats_t stats = RMM_STATS_INIT;
    int device = -5;
    bool ok = rmm_device_count(&device) == RMM_ERR_NO_DEVICE &&
              strstr(rmm_last_error_message(), "RMM_DRIVER") != NULL &&
              rmm_device_buffer_init(&buffer, 8, NULL, NULL) == RMM_ERR_NO_DEVICE &&
              rmm_device_buffer_resize(&buffer, 8, NULL) == RMM_ERR_NO_DEVICE &&
              rmm_prefetch(&device, 1, 0, NULL) == RMM_ERR_NO_DEVICE &&
              rmm_prefetch(&device, 0, 0, NULL) == RMM_OK;

    if (!ok || rmm_host_resource_create(&host) != RMM_OK) {
        return 1;
    }
    ok = use_host_array(host) && rmm_resource_get_stats(host, &stats) == RMM_OK &&
         stats.current_count == 0 && stats.total_count == 2;
    rmm_resource_release(host);
    return ok ? 0 : 2;
}

CASE(host_memory_works_without_a_gpu)
{
    assert_int_equal(run_again("no_gpu", "RMM_DRIVER", "cuda"), 0);
}

static int play(const char *role)
{
    if (strcmp(role, "no_access") == 0) {
        return play_no_access();
    }
    return strcmp(role, "no_driver") == 0 ? play_no_driver() : play_no_gpu();
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--play") == 0) {
        return play(argv[2]);
    }
    return harness_run_cases(NULL, NULL);
}
