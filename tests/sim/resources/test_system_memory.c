/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System memory: what is asked of the host and of the driver, what a free waits for, where
 * pages are told to lie.
 *
 * RMM's cases are named in brackets.
 */
#include "sim/pool/pool_harness.h"

#include <stdio.h>
#include <unistd.h>

#include "driver/sim/control.h"
#include "resources/system_memory.h"

#define GIB (1024 * MIB)

static rmm_resource_t *make_system(void)
{
    rmm_resource_t *mr;

    assert_ok(rmm_system_resource_create(&mr));
    return mr;
}

static rmm_resource_t *make_headroom(uint64_t headroom_bytes)
{
    rmm_sam_headroom_options_t options = RMM_SAM_HEADROOM_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.headroom_bytes = headroom_bytes;
    assert_ok(rmm_sam_headroom_resource_create(&options, &mr));
    return mr;
}

static uint64_t free_bytes(void)
{
    uint64_t bytes, total_bytes;

    assert_cuda(sim_driver()->memory_info(&bytes, &total_bytes));
    return bytes;
}

static void end(rmm_resource_t *mr)
{
    assert_int_equal(stats_of(mr).current_bytes, 0);
    rmm_resource_release(mr);
    assert_int_equal(rmm_sim_violations(), 0);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

/* --- both --------------------------------------------------------------------------- */

/* [FirstTouchOnCPU, FirstTouchOnGPU: as far as there are no pages that move] */
TEST_CASE(host_and_device_use_the_same_block)
{
    rmm_resource_t *resources[] = {make_system(), make_headroom(0)};
    const size_t sizes[] = {8, 4096, 10 * MIB};

    for (size_t i = 0; i < 6; i++) {
        rmm_resource_t *mr = resources[i % 2];
        size_t bytes = sizes[i / 2];
        uint64_t *block = take(mr, bytes, NULL);
        uint64_t mixups = 0;

        for (size_t word = 0; word < bytes / 8; word++) {
            block[word] = 5;
        }
        launch_check(block, bytes, 5, &mixups, NULL);
        launch_fill(block, bytes, 6, NULL);
        assert_cuda(rmm__sim_stream_synchronize(NULL));
        assert_int_equal(mixups, 0);
        assert_int_equal(block[bytes / 8 - 1], 6);
        assert_int_equal(rmm_sim_allocated_bytes(0), 0);
        give(mr, block, bytes, NULL);
    }
    end(resources[0]);
    end(resources[1]);
}

TEST_CASE(counts_as_memory_of_its_device)
{
    rmm_resource_t *mr = make_system();
    void *block = take(mr, 1000, NULL);

    assert_int_equal(
        rmm_resource_properties(mr), RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE);
    assert_int_equal(mr->accounting.location, 0);
    assert_int_equal(stats_of(mr).reserved_bytes, 1000);
    give(mr, block, 1000, NULL);
    assert_int_equal(stats_of(mr).reserved_bytes, 0);
    end(mr);
}

static void a_free_waits_for_its_stream(rmm_resource_t *mr, size_t bytes)
{
    const rmm_stream_t streams[] = {
        NULL, RMM_STREAM_PER_THREAD, make_stream(RMM_STREAM_NON_BLOCKING)};
    uint64_t mixups = 0;

    for (size_t i = 0; i < 3; i++) {
        journal_t journal = {.count = 0};
        void *block = take(mr, bytes, streams[i]);

        launch_fill(block, bytes, 3, streams[i]);
        launch_check(block, bytes, 3, &mixups, streams[i]);
        assert_cuda(launch_mark(&journal, 1, streams[i]));
        give(mr, block, bytes, streams[i]);
        assert_int_equal(journal.count, 1);
    }
    assert_int_equal(mixups, 0);
    assert_cuda(sim_driver()->stream_destroy(streams[2]));
    end(mr);
}

TEST_CASE(a_free_waits_for_the_work_of_its_stream)
{
    a_free_waits_for_its_stream(make_system(), MIB);
    a_free_waits_for_its_stream(make_headroom(0), 64);
    a_free_waits_for_its_stream(make_headroom(0), MIB);
}

/* A capture cannot be waited for, and must not be ruined. */
TEST_CASE(a_free_leaves_a_capture_whole)
{
    rmm_resource_t *mr = make_system();
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_stream_t other = make_stream(RMM_STREAM_NON_BLOCKING);
    void *blocks[] = {take(mr, MIB, stream), take(mr, MIB, other)};
    journal_t journal = {.count = 0};
    rmm_sim_graph_t graph;

    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_GLOBAL));
    assert_cuda(launch_mark(&journal, 1, stream));
    give(mr, blocks[0], MIB, stream);
    give(mr, blocks[1], MIB, other);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_cuda(rmm_sim_graph_launch(graph, stream));
    assert_cuda(rmm__sim_stream_synchronize(stream));
    assert_int_equal(journal.count, 1);
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(sim_driver()->stream_destroy(stream));
    assert_cuda(sim_driver()->stream_destroy(other));
    end(mr);
}

static int modes[8];
static int mode_count;

static int synchronize_and_look(rmm_stream_t stream)
{
    int mode = RMM_CAPTURE_MODE_GLOBAL;

    assert_cuda(sim_driver()->capture_mode_exchange(&mode));
    modes[mode_count++ % 8] = mode;
    assert_cuda(sim_driver()->capture_mode_exchange(&mode));
    return sim_driver()->stream_synchronize(stream);
}

/* CUDA takes a wait for any stream amiss while another thread captures in global mode. */
TEST_CASE(a_free_waits_in_relaxed_mode)
{
    rmm_driver_t watched = *sim_driver();
    rmm_resource_t *mr = make_system();
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    int mode = RMM_CAPTURE_MODE_RELAXED;

    watched.stream_synchronize = synchronize_and_look;
    rmm__system_from_tracked(rmm__tracked_from_base(mr))->driver = &watched;
    mode_count = 0;
    give(mr, take(mr, MIB, stream), MIB, stream);
    give(mr, take(mr, MIB, RMM_STREAM_PER_THREAD), MIB, RMM_STREAM_PER_THREAD);
    assert_int_equal(mode_count, 2);
    assert_int_equal(modes[0], RMM_CAPTURE_MODE_RELAXED);
    assert_int_equal(modes[1], RMM_CAPTURE_MODE_RELAXED);
    assert_cuda(sim_driver()->capture_mode_exchange(&mode));
    assert_int_equal(mode, RMM_CAPTURE_MODE_GLOBAL); /* as it was */
    assert_cuda(sim_driver()->capture_mode_exchange(&mode));
    assert_cuda(sim_driver()->stream_destroy(stream));
    end(mr);
}

/* The wait fails once: then the whole device is waited for. */
TEST_CASE(a_free_never_outruns_its_work)
{
    static const char *const plans[] = {
        "stream_key:1", "stream_synchronize:1", "stream_synchronize:1:700",
        "capture_mode_exchange:1"};
    rmm_resource_t *mr = make_system();
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);

    for (size_t i = 0; i < 4; i++) {
        void *block = take(mr, MIB, stream);
        journal_t journal = {.count = 0};

        assert_cuda(launch_mark(&journal, 1, stream));
        assert_true(rmm_sim_fail(plans[i]));
        give(mr, block, MIB, stream);
        assert_true(rmm__sim_fault_has_struck());
        assert_true(rmm_sim_fail(NULL));
        assert_int_equal(journal.count, 1);
    }
    assert_cuda(sim_driver()->stream_destroy(stream));
    end(mr);
}

TEST_CASE(the_end_waits_for_all_work)
{
    rmm_resource_t *mr = make_system();
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    journal_t journal = {.count = 0};
    uint64_t mixups = 0;
    void *block = take(mr, MIB, stream);

    launch_fill(block, MIB, 3, stream);
    launch_check(block, MIB, 3, &mixups, stream);
    assert_cuda(launch_mark(&journal, 1, stream));
    rmm_resource_release(mr);
    assert_int_equal(journal.count, 1);
    assert_int_equal(mixups, 0);
    assert_cuda(sim_driver()->stream_destroy(stream));
}

TEST_CASE(refuses_what_no_machine_has)
{
    rmm_resource_t *resources[] = {make_system(), make_headroom(GIB)};
    const size_t sizes[] = {SIZE_MAX,    SIZE_MAX - 4095,    (size_t)PTRDIFF_MAX + 1,
                            PTRDIFF_MAX, PTRDIFF_MAX - 4095, (size_t)1 << 50};
    void *ptr = NULL;

    for (size_t i = 0; i < 12; i++) {
        assert_int_equal(
            rmm_resource_alloc(resources[i % 2], sizes[i / 2], 0, NULL, &ptr),
            RMM_ERR_OUT_OF_MEMORY);
        assert_null(ptr);
    }
    assert_int_equal(stats_of(resources[0]).oom_count, 6);
    end(resources[0]);
    end(resources[1]);
}

TEST_CASE(aligns_as_requested)
{
    rmm_resource_t *resources[] = {make_system(), make_headroom(0)};

    for (size_t align = 256; align <= RMM_ALIGN_MAX; align *= 2) {
        for (size_t i = 0; i < 4; i++) {
            size_t bytes = i < 2 ? 100 : 3 * MIB + 1;
            void *ptr = NULL;

            assert_ok(rmm_resource_alloc(resources[i % 2], bytes, align, NULL, &ptr));
            assert_int_equal((uintptr_t)ptr % align, 0);
            memset(ptr, 1, bytes);
            rmm_resource_dealloc(resources[i % 2], ptr, bytes, align, NULL);
        }
    }
    end(resources[0]);
    end(resources[1]);
}

static uint64_t mapped_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* What is mapped to align a block goes at once: it is too much for a program that runs long. */
TEST_CASE(an_alignment_leaves_nothing_mapped)
{
    enum { ROUNDS = 128 };
    rmm_resource_t *mr = make_headroom(0);
    uint64_t before = 0;

    for (int i = 0; i < ROUNDS; i++) {
        void *ptr = NULL;

        assert_ok(rmm_resource_alloc(mr, 3 * MIB + 1, RMM_ALIGN_MAX, NULL, &ptr));
        rmm_resource_dealloc(mr, ptr, 3 * MIB + 1, RMM_ALIGN_MAX, NULL);
        before = i == 0 ? mapped_bytes() : before;
    }
    assert_true(mapped_bytes() < before + 8 * MIB);
    end(mr);
}

TEST_CASE(system_memory_is_shared_by_all_who_create_it)
{
    rmm_resource_t *first = make_system();
    rmm_resource_t *second = make_system();

    assert_true(rmm_resource_is_equal(first, second));
    give(second, take(first, 100, NULL), 100, NULL);
    rmm_resource_release(first);
    end(second);
}

/* --- headroom ----------------------------------------------------------------------- */

TEST_CASE(a_block_prefers_the_device_where_there_is_room)
{
    const size_t sizes[] = {(size_t)sysconf(_SC_PAGESIZE), 10 * MIB + 1};
    rmm_resource_t *mr = make_headroom(GIB);

    for (size_t i = 0; i < 2; i++) {
        char *block = take(mr, sizes[i], NULL);

        assert_int_equal(rmm__sim_preferred_at(block, sizes[i]), 0);
        give(mr, block, sizes[i], NULL);
    }
    end(mr);
}

/* [HeadroomMRReserveAllFreeMemory] */
TEST_CASE(a_headroom_of_all_free_memory_leaves_the_host)
{
    const uint64_t headrooms[] = {free_bytes(), UINT64_MAX};

    for (size_t i = 0; i < 2; i++) {
        rmm_resource_t *mr = make_headroom(headrooms[i]);
        char *block = take(mr, 10 * MIB, NULL);

        assert_int_equal(rmm__sim_preferred_at(block, 10 * MIB), RMM_DRIVER_HOST);
        give(mr, block, 10 * MIB, NULL);
        end(mr);
    }
}

/* The device has room for part of it, which does not end on a page. */
TEST_CASE(a_block_is_parted_at_a_page)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = 4 * MIB + page - 1;
    rmm_resource_t *mr = make_headroom(free_bytes() - room);
    size_t bytes = 10 * MIB + 100;
    char *block = take(mr, bytes, NULL);

    assert_int_equal((uintptr_t)block % page, 0);
    assert_int_equal(rmm__sim_preferred_at(block, 4 * MIB), 0);
    assert_int_equal(
        rmm__sim_preferred_at(block + 4 * MIB, bytes - 4 * MIB), RMM_DRIVER_HOST);
    give(mr, block, bytes, NULL);
    end(mr);
}

TEST_CASE(less_than_a_page_has_no_preference)
{
    rmm_resource_t *mr = make_headroom(0);
    void *block;

    assert_true(rmm_sim_fail("mem_prefer:1,memory_info:1"));
    block = take(mr, 4095, NULL);
    assert_false(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
    give(mr, block, 4095, NULL);
    end(mr);
}

/* What this process has mapped, in pages. */
static long mapped_pages(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &pages), 1);
    fclose(file);
    return pages;
}

TEST_CASE(a_preference_that_fails_fails_the_allocation)
{
    static const char *const plans[] = {"mem_prefer:1:1", "memory_info:1:1"};
    rmm_resource_t *mr = make_headroom(0);
    long before = mapped_pages();
    void *ptr = NULL;

    for (size_t i = 0; i < 2; i++) {
        assert_true(rmm_sim_fail(plans[i]));
        assert_int_equal(rmm_resource_alloc(mr, GIB, 0, NULL, &ptr), RMM_ERR_BAD_ALLOC);
        assert_non_null(strstr(rmm_last_error_message(), "the preferred location"));
        assert_null(ptr);
    }
    assert_true((mapped_pages() - before) * sysconf(_SC_PAGESIZE) < (long)GIB);
    assert_int_equal(rmm__tracked_from_base(mr)->blocks.promised, 0);
    assert_true(rmm_sim_fail(NULL));
    end(mr);
}

/* [HeadroomMRDifferentParametersUnequal] */
TEST_CASE(different_headrooms_are_unequal)
{
    rmm_resource_t *first = make_headroom(MIB);
    rmm_resource_t *same = make_headroom(MIB);
    rmm_resource_t *other = make_headroom(2 * MIB);
    rmm_resource_t *system = make_system();

    assert_true(rmm_resource_is_equal(first, same));
    assert_false(rmm_resource_is_equal(first, other));
    assert_false(rmm_resource_is_equal(first, system));
    give(same, take(first, MIB, NULL), MIB, NULL);
    rmm_resource_release(first);
    rmm_resource_release(other);
    rmm_resource_release(system);
    end(same);
}

TEST_CASE(refuses_wrong_arguments)
{
    rmm_sam_headroom_options_t options = RMM_SAM_HEADROOM_OPTIONS_INIT;
    rmm_resource_t *mr = NULL;

    options.struct_size = 0;
    assert_int_equal(
        rmm_sam_headroom_resource_create(&options, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_sam_headroom_resource_create(NULL, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_system_resource_create(NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_null(mr);
}
