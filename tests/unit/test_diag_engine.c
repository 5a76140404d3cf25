/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine writes of blocks and launches, case by case.
 */
#include "harness/harness.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "unit/diag_fixture.h"

#define BASE 0x7f4000000000ull
#define UNRELATED 0x0000000500000003ull /* two ints */

TEST_CASE(names_first_and_last_kernel_and_counts_launches)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);
    const rmm_diag_row_t *row = NULL;

    diag_alloc(&diag, BASE, 4096);
    row = diag_row(&diag, BASE);
    assert_non_null(row);
    assert_int_equal(row->launches, 0);
    assert_int_equal(row->first_user, RMM_DIAG_NO_USER);
    assert_int_equal(row->last_user, RMM_DIAG_NO_USER);
    assert_int_equal(row->first_use_ns, 0);
    assert_int_equal(row->stream_id, 7);
    assert_int_equal(row->resource_id, 3);
    diag_launch(&diag, "fill", UNRELATED, BASE);
    diag_launch(&diag, "scale", BASE + 8, UNRELATED);
    diag_launch(&diag, "sum", BASE + 4095);
    assert_int_equal(row->launches, 3);
    assert_string_equal(diag_user_name(&diag, row->first_user), "fill");
    assert_string_equal(diag_user_name(&diag, row->last_user), "sum");
    assert_true(row->allocated_ns > 0);
    assert_true(row->first_use_ns >= row->allocated_ns);
    assert_true(row->last_use_ns >= row->first_use_ns);
    assert_int_equal(diag.header->launches, 3);
    assert_int_equal(diag.header->kernels.used, 3);
    diag_close(&diag);
}

TEST_CASE(the_address_behind_a_block_is_not_in_it)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    diag_alloc(&diag, BASE, 100);
    diag_alloc(&diag, BASE + 256, 1);
    diag_launch(&diag, "k", BASE - 1, BASE + 100, BASE + 255, BASE + 257);
    assert_int_equal(diag_row(&diag, BASE)->launches, 0);
    assert_int_equal(diag_row(&diag, BASE + 256)->launches, 0);
    diag_launch(&diag, "k", BASE + 256);
    assert_int_equal(diag_row(&diag, BASE + 256)->launches, 1);
    diag_close(&diag);
}

TEST_CASE(a_block_named_twice_in_one_launch_counts_one_launch)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    diag_alloc(&diag, BASE, 4096);
    diag_alloc(&diag, BASE + 4096, 4096);
    diag_launch(&diag, "k", BASE, BASE + 4096, BASE + 16, BASE);
    assert_int_equal(diag_row(&diag, BASE)->launches, 1);
    assert_int_equal(diag_row(&diag, BASE + 4096)->launches, 1);
    diag_launch(&diag, "k", BASE);
    assert_int_equal(diag_row(&diag, BASE)->launches, 2);
    assert_int_equal(diag_row(&diag, BASE + 4096)->launches, 1);
    diag_close(&diag);
}

TEST_CASE(a_block_at_a_used_address_begins_anew)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    diag_alloc(&diag, BASE, 4096);
    diag_launch(&diag, "old", BASE);
    diag_free(&diag, BASE, 4096);
    assert_null(diag_row(&diag, BASE));
    diag_launch(&diag, "late", BASE);
    diag_alloc(&diag, BASE, 512);
    assert_int_equal(diag_row(&diag, BASE)->launches, 0);
    assert_int_equal(diag_row(&diag, BASE)->bytes, 512);
    diag_launch(&diag, "new", BASE);
    assert_string_equal(
        diag_user_name(&diag, diag_row(&diag, BASE)->first_user), "new");
    assert_int_equal(diag_row(&diag, BASE)->launches, 1);
    diag_close(&diag);
}

TEST_CASE(ignores_frees_that_cannot_be_right)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    diag_alloc(&diag, BASE, 4096);
    diag_free(&diag, BASE, 4095);
    diag_free(&diag, BASE + 256, 3840);
    diag_free(&diag, BASE - 256, 4096);
    diag_free(&diag, 0, 4096);
    assert_non_null(diag_row(&diag, BASE));
    diag_launch(&diag, "k", BASE);
    assert_int_equal(diag_row(&diag, BASE)->launches, 1);
    diag_free(&diag, BASE, 4096);
    assert_null(diag_row(&diag, BASE));
    diag_free(&diag, BASE, 4096);
    diag_close(&diag);
}

TEST_CASE(a_block_over_forgotten_ones_replaces_them)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    diag_alloc(&diag, BASE, 256);
    diag_alloc(&diag, BASE + 256, 256);
    diag_alloc(&diag, BASE + 1024, 256);
    diag_alloc(&diag, BASE + 128, 640); /* both of the first must be gone */
    assert_null(diag_row(&diag, BASE));
    assert_null(diag_row(&diag, BASE + 256));
    assert_non_null(diag_row(&diag, BASE + 128));
    assert_non_null(diag_row(&diag, BASE + 1024));
    diag_close(&diag);
}

TEST_CASE(refuses_blocks_that_wrap_around)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    diag_alloc(&diag, UINT64_MAX - 10, 100);
    diag_alloc(&diag, BASE, 0);
    assert_int_equal(diag.header->rows.used, 0);
    diag_close(&diag);
}

TEST_CASE(counts_blocks_that_find_no_row_and_recovers)
{
    diag_fixture_t diag = diag_open(4, 16, NULL);

    for (uint64_t i = 0; i < 6; i++) {
        diag_alloc(&diag, BASE + i * 4096, 4096);
    }
    assert_int_equal(diag.header->blocks_dropped, 2);
    assert_int_equal(diag.header->rows.used, 4);
    diag_launch(&diag, "k", BASE, BASE + 5 * 4096); /* the last has no row */
    assert_int_equal(diag_row(&diag, BASE)->launches, 1);
    assert_null(diag_row(&diag, BASE + 5 * 4096));
    diag_free(&diag, BASE + 5 * 4096, 4096);
    diag_free(&diag, BASE + 4096, 4096);
    diag_alloc(&diag, BASE + 9 * 4096, 4096);
    assert_non_null(diag_row(&diag, BASE + 9 * 4096));
    assert_int_equal(diag.header->blocks_dropped, 2);
    assert_int_equal(diag.header->rows.used, 4);
    diag_close(&diag);
}

TEST_CASE(counts_launches_of_kernels_that_find_no_entry)
{
    diag_fixture_t diag = diag_open(16, 2, NULL);
    const rmm_diag_row_t *row = NULL;

    diag_alloc(&diag, BASE, 4096);
    diag_launch(&diag, "a", UNRELATED);
    diag_launch(&diag, "b", UNRELATED);
    diag_launch(&diag, "c", BASE);
    diag_launch(&diag, "a", BASE);
    diag_launch(&diag, "d", BASE);
    row = diag_row(&diag, BASE);
    assert_int_equal(diag.header->launches, 5);
    assert_int_equal(diag.header->launches_unnamed, 2);
    assert_int_equal(diag.header->kernels.used, 2);
    assert_int_equal(row->launches, 3);
    assert_int_equal(row->first_user, RMM_DIAG_NO_USER);
    assert_int_equal(row->last_user, RMM_DIAG_NO_USER);
    assert_int_equal(diag.kernels[0].launches, 2);
    diag_close(&diag);
}

TEST_CASE(only_launches_count_as_kernels)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);
    const uint64_t words[] = {BASE, BASE};

    diag_alloc(&diag, BASE, 4096);
    for (uint32_t kind = 0; kind < 16; kind++) {
        if (kind != RMM_DIAG_LAUNCH) {
            diag_event(&diag, kind, NULL, NULL, words, 2);
        }
    }
    assert_int_equal(diag_row(&diag, BASE)->launches, 0);
    assert_int_equal(diag.header->launches, 0);
    diag_close(&diag);
}

static void
range(diag_fixture_t *diag, uint32_t kind, const char *name, rmm_diag_event_v1_t event)
{
    event.struct_size = sizeof(event);
    event.kind = kind;
    event.name = name;
    rmm__diag_engine_on_event(diag->engine, &event);
}

TEST_CASE(copies_fills_and_prefetches_count_each_by_itself)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);
    const uint64_t words[] = {BASE, BASE + 4096, 100, 100};
    const rmm_diag_row_t *to = NULL, *from = NULL;

    diag_alloc(&diag, BASE, 4096);
    diag_alloc(&diag, BASE + 4096, 4096);
    to = diag_row(&diag, BASE);
    from = diag_row(&diag, BASE + 4096);
    range(
        &diag, RMM_DIAG_COPY, "copy",
        (rmm_diag_event_v1_t){.words = words, .word_count = 2, .bytes = 100});
    range(
        &diag, RMM_DIAG_COPY, "copy 2D",
        (rmm_diag_event_v1_t){.words = words, .word_count = 4, .bytes = 100});
    range(
        &diag, RMM_DIAG_COPY, "copy",
        (rmm_diag_event_v1_t){.words = words, .word_count = 2, .bytes = 0});
    range(
        &diag, RMM_DIAG_COPY, "copy",
        (rmm_diag_event_v1_t){
            .words = words, .word_count = 2, .bytes = 100, .before = 1});
    range(
        &diag, RMM_DIAG_SET, "fill",
        (rmm_diag_event_v1_t){.words = words, .word_count = 1, .bytes = 100});
    range(
        &diag, RMM_DIAG_PREFETCH, "prefetch",
        (rmm_diag_event_v1_t){.words = words + 1, .word_count = 1, .bytes = 100});
    range(&diag, RMM_DIAG_SET, "nothing", (rmm_diag_event_v1_t){.bytes = 100});
    assert_int_equal(to->copies, 2);
    assert_int_equal(to->fills, 1);
    assert_int_equal(to->prefetches, 0);
    assert_int_equal(from->copies, 2);
    assert_int_equal(from->fills, 0);
    assert_int_equal(from->prefetches, 1);
    assert_int_equal(to->launches, 0);
    assert_string_equal(diag_user_name(&diag, to->first_user), "copy");
    assert_string_equal(diag_user_name(&diag, to->last_user), "fill");
    assert_string_equal(diag_user_name(&diag, from->last_user), "prefetch");
    assert_int_equal(diag.header->copies, 3);
    assert_int_equal(diag.functions[0].calls, 2);
    assert_int_equal(diag.header->fills, 2);
    assert_int_equal(diag.header->prefetches, 1);
    diag_close(&diag);
}

TEST_CASE(notes_how_many_launches_were_before_each_use)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);
    const rmm_diag_row_t *row = NULL;
    const uint64_t word = BASE;

    diag_launch(&diag, "other", UNRELATED);
    diag_alloc(&diag, BASE, 4096);
    row = diag_row(&diag, BASE);
    assert_int_equal(row->allocated_at, 1);
    diag_launch(&diag, "other", UNRELATED);
    diag_launch(&diag, "user", BASE);
    assert_int_equal(row->first_use_at, 2);
    assert_int_equal(row->last_use_at, 3);
    diag_launch(&diag, "other", UNRELATED);
    range(
        &diag, RMM_DIAG_SET, "fill",
        (rmm_diag_event_v1_t){.words = &word, .word_count = 1, .bytes = 1});
    assert_int_equal(row->first_use_at, 2);
    assert_int_equal(row->last_use_at, 4);
    diag_close(&diag);
}

TEST_CASE(a_function_too_many_has_no_name_and_counts)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);
    const uint64_t word = BASE;
    char name[96];

    diag_alloc(&diag, BASE, 4096);
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "%d%70d", i, 0); /* longer than an entry */
        range(
            &diag, RMM_DIAG_SET, name,
            (rmm_diag_event_v1_t){.words = &word, .word_count = 1, .bytes = 1});
    }
    range(
        &diag, RMM_DIAG_SET, NULL,
        (rmm_diag_event_v1_t){.words = &word, .word_count = 1, .bytes = 1});
    assert_int_equal(diag_row(&diag, BASE)->fills, 1001);
    assert_int_equal(diag_row(&diag, BASE)->last_user, RMM_DIAG_NO_USER);
    assert_int_equal(diag_row(&diag, BASE)->first_user, RMM_DIAG_FUNCTION);
    assert_int_equal(diag.header->functions.used, diag.header->functions.count);
    assert_int_equal(
        strlen(diag.functions[0].name), sizeof(diag.functions[0].name) - 1);
    diag_close(&diag);
}

TEST_CASE(a_launch_without_readable_parameters_still_counts)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    diag_event(&diag, RMM_DIAG_LAUNCH, "k", "k", NULL, 0);
    rmm__diag_engine_parameters_unknown(diag.engine);
    assert_int_equal(diag.header->launches, 1);
    assert_int_equal(diag.header->parameter_failures, 1);
    assert_int_equal(diag.kernels[0].launches, 1);
    diag_close(&diag);
}

TEST_CASE(readers_are_let_in_by_publish_only)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    assert_int_equal(diag.header->ready, 0);
    rmm__diag_engine_publish(diag.engine, "conflict:Nsight\nSystems");
    assert_int_equal(diag.header->ready, 1);
    assert_int_equal(diag.header->magic, RMM_DIAG_MAGIC);
    assert_int_equal(diag.header->file_bytes, rmm__diag_file_bytes(16, 16));
    assert_string_equal(diag.header->mode, "usage,bounds");
    assert_string_equal(diag.header->source, "conflict:Nsight Systems");
    diag_close(&diag);
}

TEST_CASE(cuts_long_texts)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);
    char name[1000];

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    rmm__diag_engine_publish(diag.engine, name);
    assert_int_equal(strlen(diag.header->source), sizeof(diag.header->source) - 1);
    diag_launch(&diag, name, UNRELATED);
    assert_int_equal(strlen(diag.kernels[0].name), sizeof(diag.kernels[0].name) - 1);
    name[500] = 'y'; /* another kernel, though it looks the same when cut */
    diag_launch(&diag, name, UNRELATED);
    assert_int_equal(diag.header->kernels.used, 2);
    diag_close(&diag);
}

/* --- threads ----------------------------------------------------------------------- */

#define THREADS 4u
#define ROUNDS 2000u

typedef struct worker {
    diag_fixture_t *diag;
    uint64_t base;
} worker_t;

/* Each thread has its own address range; `shared` belongs to nobody in particular. */
static void *work(void *argument)
{
    const worker_t *worker = argument;

    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t address = worker->base + i % 8 * 4096;

        diag_alloc(worker->diag, address, 4096);
        diag_launch(worker->diag, i % 2 == 0 ? "even" : "odd", address, BASE);
        if (i % 8 != 7) {
            diag_free(worker->diag, address, 4096);
        }
    }
    return NULL;
}

/* As another process does: a row whose sequence is even and did not change. */
static void *watch_rows(void *argument)
{
    const diag_fixture_t *diag = argument;
    uint64_t torn = 0;

    for (uint32_t i = 0; i < 20000; i++) {
        rmm_diag_row_t *row = &diag->rows[i % 32];
        uint32_t before = atomic_load_explicit(&row->sequence, memory_order_acquire);
        uint64_t launches = atomic_load_explicit(&row->launches, memory_order_acquire);
        uint64_t used = atomic_load_explicit(&row->last_use_ns, memory_order_acquire);
        uint32_t live = atomic_load_explicit(&row->live, memory_order_acquire);
        uint32_t after = atomic_load_explicit(&row->sequence, memory_order_relaxed);

        if (before == after && before % 2 == 0 && live != 0 &&
            (launches == 0) != (used == 0)) {
            torn++;
        }
    }
    return (void *)(uintptr_t)torn;
}

TEST_CASE(threads_and_a_reader_do_not_disturb_each_other)
{
    diag_fixture_t diag = diag_open(256, 16, NULL);
    pthread_t threads[THREADS], reader;
    worker_t workers[THREADS];
    void *torn = NULL;

    diag_alloc(&diag, BASE, 4096);
    assert_int_equal(pthread_create(&reader, NULL, watch_rows, &diag), 0);
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){&diag, BASE + (i + 1) * 0x100000};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (uint64_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(pthread_join(reader, &torn), 0);
    assert_null(torn);
    assert_int_equal(diag.header->launches, THREADS * ROUNDS);
    assert_int_equal(diag_row(&diag, BASE)->launches, THREADS * ROUNDS);
    assert_int_equal(diag.header->kernels.used, 2);
    assert_int_equal(diag.kernels[0].launches, THREADS * ROUNDS / 2);
    assert_int_equal(diag.kernels[1].launches, THREADS * ROUNDS / 2);
    for (uint64_t i = 0; i < THREADS; i++) {
        assert_int_equal(diag_row(&diag, workers[i].base + 7 * 4096)->launches, 1);
        assert_null(diag_row(&diag, workers[i].base));
    }
    diag_close(&diag);
}
