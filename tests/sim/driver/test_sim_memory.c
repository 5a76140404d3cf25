/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the simulated GPU: addresses, limits, poison, and frees that cannot be right.
 * Runs with the default of 80 GiB for each of two devices.
 */
#include "sim/driver/sim_harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/sim/control.h"

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

static void *alloc(size_t bytes)
{
    void *ptr = NULL;

    assert_cuda(sim_driver()->mem_alloc(&ptr, bytes));
    return ptr;
}

static void release(void *ptr)
{
    assert_cuda(sim_driver()->mem_free(ptr));
}

/* Every byte of small blocks, a few thousand of large ones. */
static void assert_filled(const void *ptr, uint64_t bytes, int value)
{
    const unsigned char *at = ptr;
    uint64_t step = bytes > MIB ? bytes / 4099 : 1;

    for (uint64_t i = 0; i < bytes; i += step) {
        assert_int_equal(at[i], value);
    }
    assert_int_equal(at[bytes - 1], value);
}

TEST_CASE(aligns_as_the_real_driver)
{
    void *small[3], *large;

    for (int i = 0; i < 3; i++) {
        small[i] = alloc(1);
        assert_int_equal((uintptr_t)small[i] % 512, 0);
    }
    large = alloc(MIB);
    assert_int_equal((uintptr_t)large % (2 * MIB), 0);
    release(large);
    for (int i = 0; i < 3; i++) {
        release(small[i]);
    }
}

TEST_CASE(returns_null_for_no_bytes)
{
    void *ptr = &ptr;

    assert_cuda(sim_driver()->mem_alloc(&ptr, 0));
    assert_null(ptr);
    assert_cuda(sim_driver()->mem_free(NULL));
    assert_int_equal(rmm_sim_violations(), 0);
}

TEST_CASE(poisons_fresh_and_freed_memory_of_any_size)
{
    const uint64_t sizes[] = {
        1,           511,     4096,         65537,        256 * 1024,
        MIB + 12345, 5 * MIB, 16 * MIB + 1, 40 * MIB - 1, 5 * GIB};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *ptr = alloc(sizes[i]);

        assert_filled(ptr, sizes[i], RMM_SIM_POISON_ALLOC);
        ptr[0] = 1;
        ptr[sizes[i] / 2] = 2;
        ptr[sizes[i] - 1] = 3;
        release(ptr);
        assert_filled(ptr, sizes[i], RMM_SIM_POISON_FREE);
        assert_ptr_equal(alloc(sizes[i]), ptr); /* lowest first: the same again */
        assert_filled(ptr, sizes[i], RMM_SIM_POISON_ALLOC);
        release(ptr);
    }
}

TEST_CASE(leaves_the_neighbours_of_a_freed_block_alone)
{
    char *blocks[3];

    for (int i = 0; i < 3; i++) {
        blocks[i] = alloc(2 * MIB + 512 * (size_t)i);
        memset(blocks[i], i + 1, 2 * MIB + 512 * (size_t)i);
    }
    release(blocks[1]);
    assert_filled(blocks[0], 2 * MIB, 1);
    assert_filled(blocks[1], 2 * MIB + 512, RMM_SIM_POISON_FREE);
    assert_filled(blocks[2], 2 * MIB + 1024, 3);
    release(blocks[0]);
    release(blocks[2]);
}

static long resident_mib(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long total, resident;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &total, &resident), 2);
    assert_int_equal(fclose(file), 0);
    return resident / 256;
}

TEST_CASE(hands_out_all_of_80_gib_without_memory)
{
    long before = resident_mib();
    uint64_t free_bytes, total_bytes;
    void *all, *more = NULL;

    all = alloc(80 * GIB);
    assert_cuda(sim_driver()->memory_info(&free_bytes, &total_bytes));
    assert_int_equal(total_bytes, 80 * GIB);
    assert_int_equal(free_bytes, 0);
    assert_int_equal(sim_driver()->mem_alloc(&more, 1), RMM_DRIVER_MEMORY_ALLOCATION);
    assert_null(more);
    release(all);
    /* two patterns of 16 MiB, page tables; a sanitizer's shadow of what was touched */
    assert_true(resident_mib() - before < 512);
}

TEST_CASE(fails_above_the_capacity_and_recovers)
{
    void *ptr = NULL;
    void *half;

    assert_int_equal(
        sim_driver()->mem_alloc(&ptr, 80 * GIB + 1), RMM_DRIVER_MEMORY_ALLOCATION);
    assert_int_equal(
        sim_driver()->mem_alloc(&ptr, SIZE_MAX), RMM_DRIVER_MEMORY_ALLOCATION);
    half = alloc(40 * GIB);
    assert_int_equal(
        sim_driver()->mem_alloc(&ptr, 41 * GIB), RMM_DRIVER_MEMORY_ALLOCATION);
    assert_null(ptr);
    ptr = alloc(40 * GIB);
    assert_int_equal(rmm_sim_allocated_bytes(0), 80 * GIB);
    release(ptr);
    release(half);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

TEST_CASE(keeps_devices_apart)
{
    void *on_0 = alloc(4096);
    void *on_1;
    int device = -1;

    assert_cuda(sim_driver()->device_set(1));
    assert_cuda(sim_driver()->device_get(&device));
    assert_int_equal(device, 1);
    on_1 = alloc(8192);
    assert_int_equal(rmm_sim_allocated_bytes(0), 4096);
    assert_int_equal(rmm_sim_allocated_bytes(1), 8192);
    release(on_0); /* from the other device, as cudaFree */
    assert_cuda(sim_driver()->device_set(0));
    release(on_1);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(rmm_sim_allocated_bytes(1), 0);
    assert_int_equal(sim_driver()->device_set(2), RMM_DRIVER_INVALID_DEVICE);
    assert_int_equal(sim_driver()->device_set(-1), RMM_DRIVER_INVALID_DEVICE);
}

TEST_CASE(frees_only_behind_all_work_of_the_device)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
        char *ptr = alloc(4096);
        char seen[2][4096];
        void *pinned;

        rmm__sim_reseed(seed);
        assert_cuda(sim_driver()->host_alloc(&pinned, 4096));
        assert_cuda(rmm_sim_memset_async(ptr, 7, 4096, stream));
        assert_cuda(rmm_sim_memcpy_async(seen[0], ptr, 4096, stream));
        release(ptr);
        assert_filled(seen[0], 4096, 7);
        assert_filled(ptr, 4096, RMM_SIM_POISON_FREE);
        assert_cuda(rmm_sim_memset_async(pinned, 8, 4096, stream));
        assert_cuda(rmm_sim_memcpy_async(seen[1], pinned, 4096, stream));
        assert_cuda(sim_driver()->host_free(pinned));
        assert_filled(seen[1], 4096, 8);
        assert_cuda(sim_driver()->stream_destroy(stream));
    }
}

/* A real GPU refuses such a copy at the call, or ends the context when a graph runs it. */
TEST_CASE(catches_a_copy_or_fill_beyond_what_is_allocated)
{
    uint64_t before = rmm_sim_violations();
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    char *ptr = alloc(4096);
    char seen[513] = "before";
    rmm_sim_graph_t graph;

    assert_cuda(rmm_sim_memset_async(ptr, 1, 4096, stream));
    assert_cuda(rmm_sim_memcpy_async(seen, ptr + 4096 - 512, 512, stream));
    assert_cuda(rmm__sim_stream_synchronize(stream));
    assert_int_equal(rmm_sim_violations(), before);
    assert_int_equal(seen[511], 1);
    assert_cuda(rmm_sim_memcpy_async(seen, ptr + 4096 - 512, 513, stream));
    assert_cuda(rmm__sim_stream_synchronize(stream));
    assert_int_equal(rmm_sim_violations(), before + 1);
    assert_non_null(strstr(rmm__sim_violation_text(), "not within one allocation"));
    assert_cuda(rmm_sim_begin_capture(stream, 0));
    assert_cuda(rmm_sim_memset_async(ptr, 2, 1, stream));
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    release(ptr);
    assert_cuda(rmm_sim_graph_launch(graph, stream));
    assert_cuda(rmm_sim_memset_async(ptr, 2, 1, stream));
    assert_cuda(rmm__sim_stream_synchronize(stream));
    assert_int_equal(rmm_sim_violations(), before + 3);
    assert_filled(ptr, 4096, RMM_SIM_POISON_FREE);
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(sim_driver()->stream_destroy(stream));
}

TEST_CASE(refuses_frees_that_cannot_be_right)
{
    uint64_t before = rmm_sim_violations();
    char *ptr = alloc(4096);
    int local;

    assert_int_equal(sim_driver()->mem_free(ptr + 512), RMM_DRIVER_INVALID_VALUE);
    release(ptr);
    assert_int_equal(sim_driver()->mem_free(ptr), RMM_DRIVER_INVALID_VALUE);
    assert_non_null(strstr(rmm__sim_violation_text(), "freed twice"));
    assert_int_equal(sim_driver()->mem_free(&local), RMM_DRIVER_INVALID_VALUE);
    assert_non_null(strstr(rmm__sim_violation_text(), "not an address of any device"));
    assert_int_equal(rmm_sim_violations(), before + 3);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

/* Against a shadow: no two blocks overlap, each keeps its bytes, all comes back. */
TEST_CASE(survives_random_sizes_and_orders)
{
    enum { LIVE = 300, STEPS = 6000 };
    static struct {
        uint32_t *ptr;
        size_t words;
        uint32_t value;
    } live[LIVE];
    uint32_t random = 12345;

    for (uint32_t step = 0; step < STEPS; step++) {
        size_t i;

        random = random * 1664525u + 1013904223u;
        i = (random >> 8) % LIVE;
        if (live[i].ptr != NULL) {
            assert_int_equal(live[i].ptr[0], live[i].value);
            assert_int_equal(live[i].ptr[live[i].words - 1], live[i].value);
            release(live[i].ptr);
            live[i].ptr = NULL;
            continue;
        }
        live[i].words = 1 + ((random >> 4) % (1u << (random % 17)));
        live[i].value = step;
        live[i].ptr = alloc(live[i].words * sizeof(uint32_t));
        live[i].ptr[0] = step;
        live[i].ptr[live[i].words - 1] = step;
    }
    for (size_t i = 0; i < LIVE; i++) {
        release(live[i].ptr);
    }
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    release(alloc(80 * GIB)); /* one extent again */
}

TEST_CASE(describes_its_devices)
{
    rmm_device_info_t info;
    int count = 0;

    assert_cuda(sim_driver()->device_count(&count));
    assert_int_equal(count, 2);
    assert_cuda(sim_driver()->device_info(1, &info));
    assert_string_equal(info.uuid, "SIM-1");
    assert_string_equal(info.name, "Simulated GPU");
    assert_string_equal(info.pci_bus_id, "");
    assert_int_equal(info.capacity_bytes, 80 * GIB);
    assert_int_equal(sim_driver()->device_info(2, &info), RMM_DRIVER_INVALID_DEVICE);
}

TEST_CASE(names_errors)
{
    const rmm_driver_t *driver = sim_driver();

    assert_string_equal(driver->error_name(2), "cudaErrorMemoryAllocation");
    assert_string_equal(driver->error_text(2), "out of memory");
    assert_string_equal(driver->error_name(900), "cudaErrorStreamCaptureUnsupported");
    assert_string_equal(driver->error_name(123456), "cudaErrorUnknown");
    assert_string_equal(driver->error_text(-1), "unknown error");
}

/* The file that a descriptor names; "": none. */
static const char *name_of(int fd)
{
    static char name[256];
    char link[64];
    ssize_t length;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    length = readlink(link, name, sizeof(name) - 1);
    name[length > 0 ? length : 0] = '\0';
    return name;
}

/* As a program does that becomes a daemon and closes all descriptors: its next files get the
 * numbers of the simulator's. */
TEST_CASE(never_poisons_a_file_of_the_program)
{
    void *ptr = alloc(4 * MIB);
    FILE *other = tmpfile();
    int taken = 0;

    release(ptr); /* both files of poison are open now */
    assert_non_null(other);
    for (int fd = 3; fd < 64; fd++) {
        if (strncmp(name_of(fd), "/memfd:rmm", 10) == 0) {
            assert_int_equal(dup3(fileno(other), fd, O_CLOEXEC), fd);
            taken++;
        }
    }
    assert_true(taken > 0);
    ptr = alloc(64 * MIB);
    assert_filled(ptr, 64 * MIB, RMM_SIM_POISON_ALLOC);
    release(ptr);
    fseek(other, 0, SEEK_END);
    assert_int_equal(ftell(other), 0);
    fclose(other);
}
