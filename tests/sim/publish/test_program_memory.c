/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program takes from the driver itself, as an injected library reports it
 * (rmm/sys/diag.h): it is counted like the blocks of a resource, whatever limits there are.
 */
#include "sim/publish/publish_case.h"

#include <pthread.h>

#include <rmm/cuda_resource.h>
#include <rmm/custom_resource.h>
#include <rmm/sys/diag.h>

#define BASE 0x700000000000ull
#define MiB (UINT64_C(1) << 20)

static rmm_status_t take(uint64_t address, uint64_t bytes, int device)
{
    const rmm_diag_block_v1_t block = {
        .address = address, .bytes = bytes, .device = device};

    return rmm_diag_driver_alloc_v1(&block);
}

static uint64_t give(uint64_t address)
{
    const rmm_diag_block_v1_t block = {.address = address};

    return rmm_diag_driver_free_v1(&block);
}

static void take_three(child_t *self, void *argument)
{
    CHECK(take(BASE, 3 * MiB, 0) == RMM_OK);
    CHECK(take(BASE + 8 * MiB, 2 * MiB, 0) == RMM_OK);
    CHECK(take(BASE + 16 * MiB, MiB, -1) == RMM_OK);
    CHECK(give(BASE) == 3 * MiB);
    CHECK(give(BASE) == 0);
    CHECK(give(BASE + 1) == 0);
    child_pause(self, 'r');
    CHECK(give(BASE + 8 * MiB) == 2 * MiB);
    CHECK(give(BASE + 16 * MiB) == MiB);
    child_pause(self, 'f');
}

CASE(driver_memory_is_a_separate_resource)
{
    rmm_segment_t segment;
    rmm_record_t record;
    child_t child;

    start_and_read(&child, take_three, NULL, 'r', &segment);
    assert_location(&segment, current_bytes, 2 * MiB);
    assert_location(&segment, reserved_bytes, 2 * MiB);
    assert_location(&segment, peak_bytes, 5 * MiB);
    assert_location(&segment, total_count, 2);
    assert_int_equal(rmm__segment_slot_count(&segment), 2);
    assert_true(rmm__segment_read_slot(&segment, 0, &record, NULL));
    assert_string_equal(rmm__record_slot(&record)->type, "driver");
    assert_int_equal(rmm__record_slot(&record)->location, 0);
    assert_slot(&segment, 0, current_bytes, 2 * MiB);
    assert_true(rmm__segment_read_slot(&segment, 1, &record, NULL));
    assert_int_equal(rmm__record_slot(&record)->location, RMM_SEGMENT_HOST_LOCATION);
    assert_slot(&segment, 1, current_bytes, MiB);
    child_go_on_until(&child, 'f');
    assert_location(&segment, current_bytes, 0);
    assert_location(&segment, reserved_bytes, 0);
    assert_slot(&segment, 1, current_bytes, 0);
    end_and_close(&child, &segment);
}

static void refuse_what_is_none(child_t *self, void *argument)
{
    const rmm_diag_block_v1_t unknown = {.address = BASE, .bytes = 1, .flags = 8};

    CHECK(rmm_diag_driver_alloc_v1(NULL) == RMM_ERR_INVALID_ARGUMENT);
    CHECK(rmm_diag_driver_alloc_v1(&unknown) == RMM_ERR_INVALID_ARGUMENT);
    CHECK(rmm_diag_driver_free_v1(NULL) == 0);
    CHECK(take(0, 1, 0) == RMM_ERR_INVALID_ARGUMENT);
    CHECK(take(BASE, 0, 0) == RMM_ERR_INVALID_ARGUMENT);
    CHECK(take(BASE, 1, -1) == RMM_OK);
    CHECK(take(BASE, 1, (int)RMM_SEGMENT_DEVICES) == RMM_ERR_UNSUPPORTED);
    CHECK(take(BASE, 1, (int)RMM_SEGMENT_DEVICES + 1) == RMM_ERR_UNSUPPORTED);
    CHECK(take(BASE, 1, 7) != RMM_OK); /* there is one GPU */
    CHECK(give(0) == 0);
}

CASE(what_is_no_block_is_refused)
{
    child_run(refuse_what_is_none, NULL);
}

/* Its free was not seen: the driver would not give the address twice. */
static void take_twice(child_t *self, void *argument)
{
    CHECK(take(BASE, 3 * MiB, 0) == RMM_OK);
    CHECK(take(BASE, MiB, 0) == RMM_OK);
    child_pause(self, 'r');
    CHECK(give(BASE) == MiB);
}

CASE(the_later_of_two_at_one_address_counts)
{
    rmm_segment_t segment;
    child_t child;

    start_and_read(&child, take_twice, NULL, 'r', &segment);
    assert_location(&segment, current_bytes, MiB);
    assert_location(&segment, freed_count, 1);
    end_and_close(&child, &segment);
}

static void take_and_forget(child_t *self, void *argument)
{
    CHECK(take(BASE, 3 * MiB, 0) == RMM_OK);
    CHECK(take(BASE + 8 * MiB, MiB, -1) == RMM_OK);
    rmm_diag_driver_forget_v1();
    CHECK(take(BASE + 16 * MiB, MiB, 0) == RMM_ERR_UNSUPPORTED);
    CHECK(give(BASE) == 0);
    child_pause(self, 'r');
}

CASE(what_is_forgotten_is_counted_no_more)
{
    rmm_segment_t segment;
    child_t child;

    start_and_read(&child, take_and_forget, NULL, 'r', &segment);
    assert_location(&segment, current_bytes, 0);
    assert_location(&segment, peak_bytes, 3 * MiB);
    assert_slot(&segment, 1, current_bytes, 0);
    end_and_close(&child, &segment);
}

static bool was_inside;

static rmm_status_t
note_inside(size_t bytes, size_t align, rmm_stream_t stream, void *payload, void **out)
{
    was_inside = rmm_diag_in_library_v1();
    *out = (void *)(uintptr_t)BASE;
    return RMM_OK;
}

static void
note_nothing(void *ptr, size_t bytes, size_t align, rmm_stream_t stream, void *payload)
{
}

static void call_a_custom_resource(child_t *self, void *argument)
{
    rmm_custom_resource_ops_t ops = RMM_CUSTOM_RESOURCE_OPS_INIT;
    rmm_resource_t *mr = NULL;
    void *block = NULL;

    ops.alloc = note_inside;
    ops.dealloc = note_nothing;
    CHECK(rmm_custom_resource_create(&ops, NULL, &mr) == RMM_OK);
    CHECK(!rmm_diag_in_library_v1());
    CHECK(rmm_resource_alloc(mr, 100, 0, NULL, &block) == RMM_OK);
    CHECK(was_inside && !rmm_diag_in_library_v1());
    rmm_resource_dealloc(mr, block, 100, 0, NULL);
    rmm_resource_release(mr);
}

CASE(what_a_custom_resource_takes_is_its_own)
{
    child_run(call_a_custom_resource, NULL);
}

/* --- threads, fork ------------------------------------------------------------------------ */

enum { THREADS = 8, ROUNDS = 2000 };

static void *take_and_free(void *argument)
{
    uint64_t begin = BASE + (uint64_t)(uintptr_t)argument * 64 * MiB;

    for (uint64_t i = 0; i < ROUNDS; i++) {
        CHECK(take(begin + i % 7 * MiB, MiB, (int)(i % 2) - 1) == RMM_OK);
        CHECK(give(begin + i % 7 * MiB) == MiB);
    }
    CHECK(take(begin, MiB, 0) == RMM_OK);
    return NULL;
}

static void take_in_threads(child_t *self, void *argument)
{
    pthread_t threads[THREADS];

    for (uintptr_t i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, take_and_free, (void *)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    child_pause(self, 'r');
}

static uint32_t live_slots(const rmm_segment_t *segment)
{
    rmm_record_t record;
    uint32_t live = 0;

    for (uint32_t i = 0; i < rmm__segment_slot_count(segment); i++) {
        live += rmm__segment_read_slot(segment, i, &record, NULL) ? 1 : 0;
    }
    return live;
}

/* Also where several of them make the resource at once. */
CASE(threads_lose_no_block)
{
    rmm_segment_t segment;
    child_t child;

    start_and_read(&child, take_in_threads, NULL, 'r', &segment);
    assert_int_equal(live_slots(&segment), 2);
    assert_location(&segment, current_bytes, THREADS * MiB);
    assert_location(&segment, total_count, THREADS * (ROUNDS / 2 + 1));
    end_and_close(&child, &segment);
}

static void fork_and_take(child_t *self, void *argument)
{
    int status = 0;
    pid_t pid = 0;

    CHECK(take(BASE, MiB, 0) == RMM_OK);
    pid = fork();
    if (pid == 0) {
        CHECK(take(BASE + MiB, MiB, 0) == RMM_ERR_UNSUPPORTED);
        CHECK(give(BASE) == 0);
        _exit(0);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(give(BASE) == MiB);
}

CASE(a_forked_child_counts_nothing)
{
    child_run(fork_and_take, NULL);
}
