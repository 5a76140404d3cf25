/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory of the simulated GPU: what is mapped can be used, what is not cannot,
 * and every wrong order of calls is refused. Two devices of 256 MiB.
 */
#include "sim/driver/sim_harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/sim/control.h"

#define MIB ((size_t)1 << 20)
#define GRANULE (2 * MIB)

static char *reserve(size_t bytes)
{
    void *ptr = NULL;

    assert_cuda(sim_driver()->address_reserve(&ptr, bytes));
    assert_int_equal((uintptr_t)ptr % GRANULE, 0);
    return ptr;
}

static rmm_driver_physical_t create(size_t bytes)
{
    rmm_driver_physical_t physical = 0;

    assert_cuda(sim_driver()->physical_create(bytes, 0, &physical));
    return physical;
}

/* Map memory whose handle is given up at once: it goes with its mapping. */
static void map_closed(char *ptr, size_t bytes)
{
    rmm_driver_physical_t physical = create(bytes);

    assert_cuda(sim_driver()->address_map(ptr, bytes, physical));
    assert_cuda(sim_driver()->physical_release(physical));
}

static void map_fresh(char *ptr, size_t bytes)
{
    map_closed(ptr, bytes);
    assert_cuda(sim_driver()->address_access(ptr, bytes, RMM_DRIVER_DEVICE(0)));
}

static void unmap(char *ptr, size_t bytes)
{
    assert_cuda(sim_driver()->address_unmap(ptr, bytes));
}

static void end(char *ptr, size_t bytes)
{
    assert_cuda(sim_driver()->address_free(ptr, bytes));
    assert_int_equal(rmm__sim_address_bytes(), 0);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(rmm_sim_allocated_bytes(1), 0);
}

static void write_kernel(const void *const *params)
{
    *(*(char *const *)params[0]) = 1;
}

/* Does a kernel that writes there live? In a child, because it may not. */
static bool can_be_written(char *ptr)
{
    int status = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        const void *params[] = {&ptr};
        const size_t param_bytes[] = {sizeof(ptr)};

        signal(SIGSEGV, SIG_DFL); /* cmocka's handler would run the other cases */
        signal(SIGBUS, SIG_DFL);
        if (freopen("/dev/null", "w", stderr) == NULL ||
            rmm_sim_launch("write", write_kernel, NULL, params, param_bytes, 1) != 0 ||
            rmm_sim_device_synchronize() != 0) {
            _exit(2);
        }
        _exit(*ptr == 1 ? 0 : 3);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_CASE(only_mapped_addresses_can_be_touched)
{
    size_t granularity = 0;
    char *ptr = reserve(4 * GRANULE);

    assert_cuda(sim_driver()->virtual_granularity(&granularity));
    assert_int_equal(granularity, GRANULE);
    assert_false(can_be_written(ptr));
    map_fresh(ptr + GRANULE, GRANULE);
    assert_false(can_be_written(ptr));
    assert_true(can_be_written(ptr + GRANULE));
    assert_true(can_be_written(ptr + 2 * GRANULE - 1));
    assert_false(can_be_written(ptr + 2 * GRANULE));
    unmap(ptr + GRANULE, GRANULE);
    assert_false(can_be_written(ptr + GRANULE));
    end(ptr, 4 * GRANULE);
}

TEST_CASE(mapped_memory_is_one_with_its_neighbours)
{
    enum { PIECES = 5 };
    char *ptr = reserve(PIECES * 2 * GRANULE);
    static char seen[PIECES * 2 * GRANULE];

    for (size_t i = 0; i < PIECES; i++) {
        map_fresh(ptr + 2 * i * GRANULE, 2 * GRANULE);
    }
    for (size_t i = 0; i < sizeof(seen); i += 4099) {
        assert_int_equal((unsigned char)ptr[i], RMM_SIM_POISON_ALLOC);
    }
    assert_cuda(rmm_sim_memset_async(ptr, 'v', sizeof(seen), NULL));
    assert_cuda(rmm_sim_memcpy_async(seen, ptr, sizeof(seen), NULL));
    assert_cuda(rmm_sim_device_synchronize());
    for (size_t i = 0; i < sizeof(seen); i++) {
        assert_int_equal(seen[i], 'v');
    }
    unmap(ptr + 2 * GRANULE, 2 * GRANULE);
    assert_int_equal(ptr[2 * GRANULE - 1], 'v');
    assert_int_equal(ptr[4 * GRANULE], 'v');
    map_fresh(ptr + 2 * GRANULE, 2 * GRANULE);
    assert_int_equal((unsigned char)ptr[2 * GRANULE], RMM_SIM_POISON_ALLOC);
    for (size_t i = 0; i < PIECES; i++) {
        unmap(ptr + 2 * i * GRANULE, 2 * GRANULE);
    }
    assert_int_equal(rmm_sim_violations(), 0);
    end(ptr, PIECES * 2 * GRANULE);
}

TEST_CASE(physical_memory_counts_against_its_device)
{
    uint64_t free_bytes, total_bytes;
    char *ptr = reserve(1024 * MIB); /* more than there is memory */
    rmm_driver_physical_t first = create(200 * MIB), second = 0;
    void *block = NULL;

    assert_int_equal(rmm__sim_address_bytes(), 1024 * MIB);
    assert_int_equal(rmm_sim_allocated_bytes(0), 200 * MIB);
    assert_cuda(sim_driver()->memory_info(&free_bytes, &total_bytes));
    assert_int_equal(free_bytes, 56 * MIB);
    assert_int_equal(
        sim_driver()->physical_create(58 * MIB, 0, &second),
        RMM_DRIVER_MEMORY_ALLOCATION);
    assert_int_equal(
        sim_driver()->mem_alloc(&block, 57 * MIB), RMM_DRIVER_MEMORY_ALLOCATION);
    assert_cuda(sim_driver()->mem_alloc(&block, 56 * MIB));
    assert_int_equal(
        sim_driver()->physical_create(GRANULE, 0, &second),
        RMM_DRIVER_MEMORY_ALLOCATION);
    assert_cuda(sim_driver()->mem_free(block));

    assert_cuda(sim_driver()->address_map(ptr, 200 * MIB, first));
    assert_cuda(sim_driver()->physical_release(first));
    assert_int_equal(rmm_sim_allocated_bytes(0), 200 * MIB); /* while it is mapped */
    unmap(ptr, 200 * MIB);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    second = create(GRANULE);
    assert_cuda(sim_driver()->address_map(ptr, GRANULE, second));
    unmap(ptr, GRANULE);
    assert_int_equal(rmm_sim_allocated_bytes(0), GRANULE); /* while its handle lives */
    assert_cuda(sim_driver()->physical_release(second));
    end(ptr, 1024 * MIB);
}

TEST_CASE(physical_memory_needs_no_contiguous_room)
{
    enum { COUNT = 16 };
    void *blocks[COUNT];
    rmm_driver_physical_t physical;

    for (int i = 0; i < COUNT; i++) {
        assert_cuda(sim_driver()->mem_alloc(&blocks[i], 16 * MIB));
    }
    for (int i = 0; i < COUNT; i += 2) {
        assert_cuda(sim_driver()->mem_free(blocks[i]));
    }
    physical = create(128 * MIB);
    assert_cuda(sim_driver()->physical_release(physical));
    for (int i = 1; i < COUNT; i += 2) {
        assert_cuda(sim_driver()->mem_free(blocks[i]));
    }
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

/* ---- wrong orders ---- */

static uint64_t violations;

/* Refused, and counted since the last time. */
static void assert_refused(int error, const char *reason)
{
    assert_int_equal(error, RMM_DRIVER_INVALID_VALUE);
    assert_int_equal(rmm_sim_violations(), violations + 1);
    assert_non_null(strstr(rmm__sim_violation_text(), reason));
    violations = rmm_sim_violations();
}

TEST_CASE(refuses_sizes_that_are_not_whole_granules)
{
    const rmm_driver_t *driver = sim_driver();
    rmm_driver_physical_t physical = 0;
    void *ptr = NULL;

    violations = rmm_sim_violations();
    assert_refused(driver->address_reserve(&ptr, GRANULE + 1), "whole granules");
    assert_refused(driver->address_reserve(&ptr, 0), "whole granules");
    assert_refused(driver->physical_create(MIB, 0, &physical), "whole granules");
    assert_null(ptr);
    assert_int_equal(physical, 0);
}

TEST_CASE(refuses_to_map_what_cannot_be_mapped)
{
    const rmm_driver_t *driver = sim_driver();
    char *ptr = reserve(4 * GRANULE);
    rmm_driver_physical_t one = create(GRANULE), two = create(2 * GRANULE);

    violations = rmm_sim_violations();
    assert_refused(driver->address_map(ptr, GRANULE, two), "size of the memory");
    assert_refused(driver->address_map(ptr + MIB, GRANULE, one), "whole granules");
    assert_refused(
        driver->address_map(ptr + 3 * GRANULE, 2 * GRANULE, two), "whole granules");
    assert_refused(driver->address_map(&one, GRANULE, one), "whole granules");
    assert_cuda(driver->address_map(ptr + GRANULE, GRANULE, one));
    assert_refused(driver->address_map(ptr, 2 * GRANULE, two), "mapped already");
    assert_refused(driver->address_map(ptr, GRANULE, one), "mapped already");
    unmap(ptr + GRANULE, GRANULE);
    assert_cuda(driver->physical_release(one));
    assert_cuda(driver->physical_release(two));
    assert_int_equal(driver->address_map(ptr, GRANULE, one), RMM_DRIVER_INVALID_HANDLE);
    assert_int_equal(driver->physical_release(two), RMM_DRIVER_INVALID_HANDLE);
    assert_int_equal(rmm_sim_violations(), violations + 2);
    end(ptr, 4 * GRANULE);
}

TEST_CASE(refuses_to_unmap_or_free_what_is_not_there)
{
    const rmm_driver_t *driver = sim_driver();
    char *ptr = reserve(4 * GRANULE);

    violations = rmm_sim_violations();
    assert_refused(driver->address_unmap(ptr, GRANULE), "not what was mapped");
    map_fresh(ptr, 2 * GRANULE);
    map_fresh(ptr + 2 * GRANULE, GRANULE);
    assert_refused(driver->address_unmap(ptr, GRANULE), "not what was mapped");
    assert_refused(
        driver->address_unmap(ptr + GRANULE, GRANULE), "not what was mapped");
    assert_refused(driver->address_unmap(ptr, 3 * GRANULE), "not what was mapped");
    assert_refused(driver->address_free(ptr, 4 * GRANULE), "memory is mapped");
    unmap(ptr, 2 * GRANULE);
    unmap(ptr + 2 * GRANULE, GRANULE);
    assert_refused(driver->address_unmap(ptr, 2 * GRANULE), "not what was mapped");
    assert_refused(driver->address_free(ptr, 2 * GRANULE), "no such reservation");
    assert_refused(
        driver->address_free(ptr + GRANULE, 3 * GRANULE), "no such reservation");
    end(ptr, 4 * GRANULE);
    assert_refused(driver->address_free(ptr, 4 * GRANULE), "freed twice");
    assert_refused(driver->address_unmap(ptr, GRANULE), "not what was mapped");
    assert_int_equal(driver->mem_free(ptr), RMM_DRIVER_INVALID_VALUE);
}

/* ---- work ---- */

TEST_CASE(catches_unmapping_under_queued_work)
{
    char *ptr = reserve(2 * GRANULE);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    char *const used[] = {ptr + GRANULE - 8, ptr + GRANULE, ptr + 2 * GRANULE - 16};
    int caught[3] = {0};

    for (uint64_t seed = 0; seed < 120; seed++) {
        rmm__sim_reseed(seed);
        map_fresh(ptr, GRANULE);
        map_fresh(ptr + GRANULE, GRANULE);
        violations = rmm_sim_violations();
        assert_cuda(rmm_sim_memset_async(used[seed % 3], 1, 16, stream));
        unmap(ptr + GRANULE, GRANULE);
        caught[seed % 3] += rmm_sim_violations() != violations;
        assert_cuda(rmm_sim_device_synchronize()); /* without a crash */
        unmap(ptr, GRANULE);
    }
    assert_true(caught[0] > 10 && caught[1] > 10 && caught[2] > 10);
    for (uint64_t seed = 0; seed < 40; seed++) {
        rmm__sim_reseed(seed);
        map_fresh(ptr, GRANULE);
        violations = rmm_sim_violations();
        assert_cuda(rmm_sim_memset_async(ptr, 1, 16, stream));
        assert_cuda(sim_driver()->stream_synchronize(stream));
        unmap(ptr, GRANULE);
        assert_int_equal(rmm_sim_violations(), violations);
    }
    assert_cuda(sim_driver()->stream_destroy(stream));
    end(ptr, 2 * GRANULE);
}

TEST_CASE(catches_a_copy_from_where_nothing_is_mapped)
{
    char *ptr = reserve(2 * GRANULE);
    char seen[8] = "before";

    map_fresh(ptr, GRANULE);
    violations = rmm_sim_violations();
    assert_cuda(rmm_sim_memcpy_async(seen, ptr + GRANULE - 4, 8, NULL));
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(rmm_sim_violations(), violations + 1);
    assert_non_null(strstr(rmm__sim_violation_text(), "nothing is mapped"));
    assert_string_equal(seen, "before");
    unmap(ptr, GRANULE);
    end(ptr, 2 * GRANULE);
}

TEST_CASE(mapped_memory_is_out_of_reach_until_a_device_is_let_in)
{
    char *ptr = reserve(4 * GRANULE);

    violations = rmm_sim_violations();
    map_closed(ptr, GRANULE);
    map_closed(ptr + GRANULE, 2 * GRANULE);
    assert_false(can_be_written(ptr));
    assert_cuda(rmm_sim_memset_async(ptr, 1, 1, NULL));
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(rmm_sim_violations(), violations + 1);
    assert_non_null(strstr(rmm__sim_violation_text(), "no access"));
    assert_cuda(sim_driver()->address_access(
        ptr, 3 * GRANULE, RMM_DRIVER_DEVICE(0))); /* both at once */
    assert_true(can_be_written(ptr));
    assert_true(can_be_written(ptr + 3 * GRANULE - 1));
    assert_int_equal((unsigned char)ptr[GRANULE], RMM_SIM_POISON_ALLOC);
    ptr[0] = 7;
    assert_cuda(sim_driver()->address_access(
        ptr, 3 * GRANULE, RMM_DRIVER_DEVICE(0))); /* once more */
    assert_int_equal(ptr[0], 7);
    assert_false(can_be_written(ptr + 3 * GRANULE));
    unmap(ptr, GRANULE);
    unmap(ptr + GRANULE, 2 * GRANULE);
    end(ptr, 4 * GRANULE);
}

TEST_CASE(another_device_needs_to_be_let_in)
{
    const rmm_driver_t *driver = sim_driver();
    char *ptr = reserve(4 * GRANULE);
    char seen[8] = {0};

    map_fresh(ptr, 2 * GRANULE);
    map_fresh(ptr + 2 * GRANULE, GRANULE);
    memset(ptr, 's', 8);
    violations = rmm_sim_violations();
    assert_cuda(driver->device_set(1));
    assert_int_equal(
        rmm_sim_memcpy_async(seen, ptr, 8, NULL), RMM_DRIVER_INVALID_VALUE);
    assert_int_equal(rmm_sim_violations(), violations + 1);
    assert_non_null(strstr(rmm__sim_violation_text(), "no access"));
    violations++;

    assert_refused(
        driver->address_access(ptr, GRANULE, RMM_DRIVER_DEVICE(1)),
        "not whole mappings");
    assert_refused(
        driver->address_access(ptr, 4 * GRANULE, RMM_DRIVER_DEVICE(1)),
        "not whole mappings");
    assert_int_equal(
        driver->address_access(ptr, 3 * GRANULE, RMM_DRIVER_DEVICE(2)),
        RMM_DRIVER_INVALID_DEVICE);
    assert_cuda(driver->address_access(ptr, 3 * GRANULE, RMM_DRIVER_DEVICE(1)));
    assert_cuda(rmm_sim_memcpy_async(seen, ptr, 8, NULL));
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(rmm_sim_violations(), violations);
    assert_memory_equal(seen, "ssssssss", 8);
    assert_cuda(driver->device_set(0));
    unmap(ptr, 2 * GRANULE);
    unmap(ptr + 2 * GRANULE, GRANULE);
    end(ptr, 4 * GRANULE);
}

/* All but the creation of physical memory, which no capture forbids. */
TEST_CASE(is_forbidden_where_a_capture_forbids_it)
{
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    int mode = RMM_CAPTURE_MODE_RELAXED;
    rmm_driver_physical_t physical;
    rmm_sim_graph_t graph;
    void *ptr = NULL;

    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_GLOBAL));
    assert_cuda(sim_driver()->physical_create(GRANULE, 0, &physical));
    assert_cuda(sim_driver()->capture_mode_exchange(&mode));
    assert_cuda(sim_driver()->physical_release(physical));
    assert_cuda(sim_driver()->capture_mode_exchange(&mode));
    assert_int_equal(
        sim_driver()->address_reserve(&ptr, GRANULE), RMM_DRIVER_CAPTURE_UNSUPPORTED);
    assert_int_equal(
        rmm_sim_end_capture(stream, &graph), RMM_DRIVER_CAPTURE_INVALIDATED);
    assert_cuda(sim_driver()->stream_destroy(stream));
}

/* --- between processes ---------------------------------------------------------------- */

static rmm_driver_handle_t export_of(rmm_driver_physical_t physical, uint32_t type)
{
    rmm_driver_handle_t handle;

    assert_cuda(sim_driver()->physical_export(physical, type, &handle));
    return handle;
}

/* As another process would: the handle is all that it has. */
static char *map_import(const rmm_driver_handle_t *handle, size_t bytes)
{
    char *ptr = reserve(bytes);
    rmm_driver_physical_t physical;

    assert_cuda(sim_driver()->physical_import(handle, &physical));
    assert_cuda(sim_driver()->address_map(ptr, bytes, physical));
    assert_cuda(sim_driver()->physical_release(physical));
    assert_cuda(sim_driver()->address_access(ptr, bytes, RMM_DRIVER_DEVICE(0)));
    return ptr;
}

TEST_CASE(an_import_has_the_bytes_of_the_export_and_keeps_them_behind_its_end)
{
    rmm_driver_physical_t physical;
    rmm_driver_handle_t handle;
    char *own = reserve(GRANULE);
    char *other;

    assert_cuda(sim_driver()->physical_create(
        GRANULE, RMM_DRIVER_HANDLE_POSIX | RMM_DRIVER_RDMA, &physical));
    assert_cuda(sim_driver()->address_map(own, GRANULE, physical));
    assert_cuda(sim_driver()->address_access(own, GRANULE, RMM_DRIVER_DEVICE(0)));
    assert_int_equal(
        rmm__sim_physical_flags(own), RMM_DRIVER_HANDLE_POSIX | RMM_DRIVER_RDMA);
    own[0] = 1;
    handle = export_of(physical, RMM_DRIVER_HANDLE_POSIX);
    assert_true(handle.fd > 2);
    assert_int_equal(fcntl(handle.fd, F_GETFD), FD_CLOEXEC);
    other = map_import(&handle, GRANULE);
    close(handle.fd);
    assert_int_equal(other[0], 1);
    assert_int_equal((unsigned char)other[GRANULE - 1], RMM_SIM_POISON_ALLOC);
    other[1] = 2;
    assert_int_equal(own[1], 2);
    assert_int_equal(rmm_sim_allocated_bytes(0), GRANULE);
    unmap(own, GRANULE);
    assert_cuda(sim_driver()->physical_release(physical));
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(other[1], 2);
    unmap(other, GRANULE);
    assert_cuda(sim_driver()->address_free(own, GRANULE));
    end(other, GRANULE);
}

TEST_CASE(only_memory_made_for_it_is_exported)
{
    rmm_driver_physical_t physical = create(GRANULE);
    rmm_driver_handle_t handle;

    violations = rmm_sim_violations();
    assert_refused(
        sim_driver()->physical_export(physical, RMM_DRIVER_HANDLE_POSIX, &handle),
        "not made for such a handle");
    assert_cuda(sim_driver()->physical_release(physical));
    assert_int_equal(
        sim_driver()->physical_create(GRANULE, RMM_DRIVER_HANDLE_FABRIC, &physical),
        RMM_DRIVER_NOT_SUPPORTED);
    assert_int_equal(
        sim_driver()->physical_create(GRANULE, 0x2u, &physical),
        RMM_DRIVER_INVALID_VALUE);
}

TEST_CASE(a_descriptor_that_is_no_memory_is_not_imported)
{
    int pipes[2];
    rmm_driver_handle_t handle = {.type = RMM_DRIVER_HANDLE_POSIX};
    rmm_driver_physical_t physical = 7;

    assert_int_equal(pipe(pipes), 0);
    for (int i = 0; i < 2; i++) {
        handle.fd = pipes[i];
        assert_int_equal(
            sim_driver()->physical_import(&handle, &physical),
            RMM_DRIVER_INVALID_VALUE);
        close(pipes[i]);
        assert_int_equal(
            sim_driver()->physical_import(&handle, &physical),
            RMM_DRIVER_INVALID_VALUE);
    }
    assert_int_equal(physical, 7);
}
