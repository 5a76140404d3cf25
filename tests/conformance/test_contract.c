/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rmm/resource.h promises of every resource and RMM's did not keep everywhere: sizes
 * that overflow, alignments, wrong frees, exhaustion, streams that end, exact accounting.
 *
 *   test_contract SUBJECT
 */
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/callback_resource.h>
#include <rmm/sim.h>

#include "base/resource_impl.h"
#include "conformance/worker.h"
#include "driver/driver.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { HELD_MAX = 64, STREAM_ROUNDS = 100 };

static const subject_t *subject;

static rmm_stats_t stats_of(const rmm_resource_t *mr)
{
    rmm_stats_t stats = RMM_STATS_INIT;

    assert_ok(rmm_resource_get_stats(mr, &stats));
    return stats;
}

static size_t fitting(size_t bytes)
{
    return bytes < subject->largest ? bytes : subject->largest;
}

static void *take(rmm_resource_t *mr, size_t bytes)
{
    void *ptr = NULL;

    assert_ok(rmm_resource_alloc(mr, bytes, 0, NULL, &ptr));
    assert_non_null(ptr);
    return ptr;
}

static void give(rmm_resource_t *mr, void *ptr, size_t bytes)
{
    rmm_resource_dealloc(mr, ptr, bytes, 0, NULL);
}

static void refuses_sizes_near_the_end_of_the_address_space(void **state)
{
    static const size_t ends[] = {
        SIZE_MAX, PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX - 4095};
    static const size_t before[] = {0, 1, 2, 131, 254, 255, 256, 511, 512};
    uint64_t out_of_memory = 0;
    rmm_resource_t *mr = subject_begin(subject);

    for (size_t i = 0; i < COUNT(ends); i++) {
        for (size_t j = 0; j < COUNT(before); j++) {
            size_t bytes = ends[i] - before[j];
            void *mark = &mark;
            void *ptr = mark;
            rmm_status_t status = rmm_resource_alloc(mr, bytes, 0, NULL, &ptr);

            assert_true(
                status == RMM_ERR_OUT_OF_MEMORY ||
                (!rmm_sim_active() && status == RMM_ERR_BAD_ALLOC)); /* the driver's */
            assert_ptr_equal(ptr, mark);
            assert_true(rmm_last_error_message()[0] != '\0');
            out_of_memory += status == RMM_ERR_OUT_OF_MEMORY;
            status = rmm_resource_alloc_sync(mr, bytes, RMM_ALIGN_MAX, &ptr);
            assert_true(rmm_status_is_alloc_failure(status));
            assert_ptr_equal(ptr, mark);
            out_of_memory += status == RMM_ERR_OUT_OF_MEMORY;
        }
    }
    assert_int_equal(stats_of(mr).oom_count, out_of_memory);
    give(mr, take(mr, 1000), 1000); /* all is as before */
    assert_int_equal(stats_of(mr).total_count, 1);
    subject_end(mr);
}

static void gives_an_alignment_or_says_no(void **state)
{
    static const size_t wrong[] = {3, 255, 768, RMM_ALIGN_MAX * 2, SIZE_MAX};
    rmm_resource_t *mr = subject_begin(subject);
    void *mark = &mark;
    void *ptr = mark;

    for (size_t align = 1; align <= RMM_ALIGN_MAX; align *= 2) {
        rmm_status_t status = rmm_resource_alloc(mr, 1000, align, NULL, &ptr);

        if (status == RMM_OK) {
            assert_int_equal((uintptr_t)ptr % align, 0);
            assert_int_equal((uintptr_t)ptr % RMM_ALIGN_DEFAULT, 0);
            rmm_resource_dealloc(mr, ptr, 1000, align, NULL);
            ptr = mark;
        } else {
            assert_true(align > RMM_ALIGN_DEFAULT);
            assert_true(rmm_status_is_alloc_failure(status));
            assert_ptr_equal(ptr, mark);
        }
    }
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(
            rmm_resource_alloc(mr, 1000, wrong[i], NULL, &ptr),
            RMM_ERR_INVALID_ALIGNMENT);
        assert_ptr_equal(ptr, mark);
    }
    subject_end(mr);
}

/* As RMM's, a tracking adaptor frees what it knows to be there. */
static bool takes_any_size(void)
{
    return strcmp(subject->type, "tracking") == 0;
}

/* Refused, counted, and nothing else happens: RMM corrupts its lists. */
static void refuses_frees_that_cannot_be_right(void **state)
{
    rmm_resource_t *mr = subject_begin(subject);
    char *first = take(mr, 1000);
    char *second = take(mr, 1000);

    give(mr, first + 256, 744);
    if (!takes_any_size()) {
        give(mr, first, 999);
        give(mr, first, 5000);
    }
    give(mr, (char *)&mr, 1000);
    assert_int_equal(stats_of(mr).current_bytes, 2000);
    give(mr, first, 1000);
    give(mr, first, 1000);
    assert_int_equal(stats_of(mr).invalid_free_count, takes_any_size() ? 3 : 5);
    assert_int_equal(stats_of(mr).current_bytes, 1000);
    assert_int_equal(stats_of(mr).current_count, 1);
    give(mr, second, 1000);
    assert_int_equal(stats_of(mr).current_bytes, 0);
    assert_int_equal(stats_of(mr).total_count, 2);
    rmm_resource_release(mr);
    if (rmm_sim_active()) {
        assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    }
}

/* With a gigabyte of device memory (RMM_SIM_MEMORY); what has host memory has no end. */
static size_t take_all(rmm_resource_t *mr, size_t bytes, void **held)
{
    size_t count = 0;
    rmm_status_t status = RMM_OK;

    while (count < HELD_MAX && status == RMM_OK) {
        status = rmm_resource_alloc(mr, bytes, 0, NULL, &held[count]);
        count += status == RMM_OK;
    }
    assert_true(status == RMM_OK || status == RMM_ERR_OUT_OF_MEMORY);
    return count;
}

static void is_as_good_as_new_after_it_ran_out(void **state)
{
    size_t bytes = fitting(40 * MIB + 1);
    rmm_resource_t *mr;
    void *held[HELD_MAX];
    size_t first = 0;

    if (!rmm_sim_active()) {
        return; /* nobody fills a GPU that others use as well */
    }
    mr = subject_begin(subject);
    for (int round = 0; round < 3; round++) {
        size_t count = take_all(mr, bytes, held);

        first = round == 0 ? count : first;
        assert_true(count >= 4);
        assert_int_equal(count, first);
        for (size_t i = 0; i < count && !takes_any_size(); i++) {
            give(mr, held[i], 0); /* nothing of that size is out */
        }
        assert_int_equal(stats_of(mr).current_count, count);
        for (size_t i = count; i > 0; i--) {
            give(mr, held[i - 1], bytes);
        }
        assert_int_equal(stats_of(mr).current_bytes, 0);
        assert_int_equal(rmm_sim_device_synchronize(), 0);
    }
    rmm_resource_release(mr);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

/* A stream ends right after its free, and its handle comes back with the next one. */
static void survives_streams_that_end_and_handles_that_return(void **state)
{
    rmm_resource_t *mr = subject_begin(subject);
    worker_t *worker = test_calloc(1, sizeof(*worker));
    rmm_status_t status;

    *worker =
        (worker_t){.subject = subject, .mr = mr, .order = ORDER_STREAM, .random = 1};
    for (int i = 0; i < STREAM_ROUNDS; i++) {
        block_t block;

        assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &worker->stream));
        if (worker_take(worker, fitting(100 * KIB), &block)) {
            worker_give(worker, &block);
        }
        if (i % 2 == 0) {
            worker_wait(worker); /* the others end with their work still queued */
        }
        assert_ok(rmm_stream_destroy(worker->stream));
    }
    assert_int_equal(rmm__driver(&status)->device_synchronize(), RMM_DRIVER_OK);
    assert_ok(rmm_stream_create(0, &worker->stream));
    worker_compare(worker);
    worker_assert(worker);
    assert_ok(rmm_stream_destroy(worker->stream));
    test_free(worker);
    subject_end(mr);
}

/* RMM's six figures, as requested, whatever is rounded up inside. */
static void keeps_exact_accounts(void **state)
{
    rmm_resource_t *mr = subject_begin(subject);
    void *first = take(mr, 1);
    void *second = take(mr, 3000);
    void *none = NULL;
    rmm_stats_t stats;

    give(mr, first, 1);
    assert_ok(rmm_resource_alloc(mr, 0, 0, NULL, &none));
    assert_null(none);
    first = take(mr, 999);
    stats = stats_of(mr);
    assert_int_equal(stats.current_bytes, 3999);
    assert_int_equal(stats.current_count, 3);
    assert_int_equal(stats.peak_bytes, 3999);
    assert_int_equal(stats.peak_count, 3);
    assert_int_equal(stats.total_bytes, 4000);
    assert_int_equal(stats.total_count, 4);
    give(mr, none, 0);
    give(mr, first, 999);
    give(mr, second, 3000);
    stats = stats_of(mr);
    assert_int_equal(stats.current_count, 0);
    assert_int_equal(stats.peak_bytes, 3999);
    assert_int_equal(stats.total_count, 4);
    subject_end(mr);
}

/* --- what a program's own functions allocate and free ------------------------------- */

typedef struct functions {
    rmm_resource_t *mr;
    void *block;
} functions_t;

static rmm_status_t
take_inside(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    functions_t *functions = payload;

    return rmm_resource_alloc(functions->mr, bytes, 0, stream, ptr_out);
}

/* Frees the block that the user allocated, and keeps the other for the user to free. */
static void free_other(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    functions_t *functions = payload;

    rmm_resource_dealloc(functions->mr, functions->block, bytes, 0, stream);
    functions->block = ptr;
}

/* The location counts what users hold: a block that a user allocated and a program's function
 * freed is no longer there, one the other way round never was. */
static void counts_at_the_location_who_allocated(void **state)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    functions_t functions = {.mr = subject_begin(subject)};
    uint32_t location = functions.mr->accounting.location;
    rmm_location_live_t before = rmm__location_live(location), after;
    rmm_resource_t *callback;

    options.alloc = take_inside;
    options.dealloc = free_other;
    options.payload = &functions;
    options.properties = rmm_resource_properties(functions.mr);
    assert_ok(rmm_callback_resource_create(&options, &callback));
    for (size_t i = 0; i < 2; i++) { /* the second time the blocks are used ones */
        void *block = take(callback, 1000);

        functions.block = take(functions.mr, 1000);
        give(callback, block, 1000);
        after = rmm__location_live(location);
        assert_int_equal(after.bytes, before.bytes);
        assert_int_equal(after.count, before.count);
        give(functions.mr, functions.block, 1000);
        after = rmm__location_live(location);
        assert_int_equal(after.bytes, before.bytes);
        assert_int_equal(after.count, before.count);
    }
    rmm_resource_release(callback);
    subject_end(functions.mr);
}

/* The diagnosis asks how far the memory behind a block is the block's alone; 0: unknown. */
static void knows_where_the_memory_of_a_block_ends(void **state)
{
    rmm_resource_t *mr = subject_begin(subject);
    rmm_block_facts_t facts = {0};
    rmm_request_t request = {
        .bytes = 1000, .align = RMM_ALIGN_DEFAULT, .user = true, .facts_out = &facts};
    uintptr_t end_of_bytes;
    void *ptr;

    assert_ok(rmm__resource_alloc(mr, &request, &ptr));
    end_of_bytes = (uintptr_t)ptr + request.bytes;
    if (facts.end != 0) {
        assert_in_range(facts.end, end_of_bytes, end_of_bytes + 16 * MIB);
    }
    request.facts_out = NULL;
    rmm__resource_dealloc(mr, ptr, &request);
    subject_end(mr);
}

/* --- all of it ---------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_sizes_near_the_end_of_the_address_space),
        cmocka_unit_test(gives_an_alignment_or_says_no),
        cmocka_unit_test(refuses_frees_that_cannot_be_right),
        cmocka_unit_test(is_as_good_as_new_after_it_ran_out),
        cmocka_unit_test(survives_streams_that_end_and_handles_that_return),
        cmocka_unit_test(keeps_exact_accounts),
        cmocka_unit_test(counts_at_the_location_who_allocated),
        cmocka_unit_test(knows_where_the_memory_of_a_block_ends),
    };
    int result;

    subject = subject_of_arguments(argc, argv);
    result = subject_look_at_machine(subject);
    return result != 0 ? result : cmocka_run_group_tests(tests, NULL, NULL);
}
