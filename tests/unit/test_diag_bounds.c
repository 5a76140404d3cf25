/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of copies, fills and prefetches against live blocks, and the findings that the engine
 * writes: case by case, and against a list of blocks that is searched from end to end.
 */
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>

#include "diag/bounds.h"
#include "diag/findings.h"
#include "harness/random.h"
#include "unit/diag_fixture.h"

#define BASE 0x7f4000000000ull
#define OUTSIDE 0x5000ull /* of every block, as host memory is */

static void give(
    diag_fixture_t *diag, uint32_t kind, const uint64_t *words, size_t count,
    uint64_t bytes, bool before)
{
    rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = kind,
        .name = "call",
        .words = words,
        .word_count = count,
        .bytes = bytes,
        .before = before};

    rmm__diag_engine_on_event(diag->engine, &event);
}

static void copy(diag_fixture_t *diag, uint64_t to, uint64_t from, uint64_t bytes)
{
    give(diag, RMM_DIAG_COPY, (const uint64_t[]){to, from}, 2, bytes, true);
}

static void fill(diag_fixture_t *diag, uint64_t to, uint64_t bytes)
{
    give(diag, RMM_DIAG_SET, &to, 1, bytes, true);
}

static uint64_t total(const diag_fixture_t *diag)
{
    return diag->header->findings_total;
}

TEST_CASE(finds_what_leaves_its_block_and_nothing_else)
{
    static const struct {
        uint64_t address, bytes;
        int64_t offset; /* in the block at BASE + 4096 of 100 bytes */
        bool is_wrong;
    } cases[] = {{BASE + 4096, 100, 0, false},       {BASE + 4096, 101, 0, true},
                 {BASE + 4195, 1, 99, false},        {BASE + 4195, 2, 99, true},
                 {BASE + 4095, 1, -1, false},        {BASE + 4095, 2, -1, true},
                 {BASE + 4196, 50, 100, false},      {BASE, 5000, -4096, true},
                 {BASE + 4096, UINT64_MAX, 0, true}, {BASE + 4096, 0, 0, false},
                 {OUTSIDE, 4096, 0, false},          {0, 0, 0, false}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        diag_fixture_t diag = diag_open(16, 16, NULL);

        diag_alloc(&diag, BASE + 4096, 100);
        fill(&diag, cases[i].address, cases[i].bytes);
        assert_int_equal(total(&diag), cases[i].is_wrong);
        if (cases[i].is_wrong) {
            const rmm_diag_finding_t *finding = &diag.findings[0];

            assert_int_equal(finding->kind, RMM_DIAG_OUT_OF_BOUNDS);
            assert_int_equal(finding->call, RMM_DIAG_SET);
            assert_int_equal(finding->access, RMM_DIAG_WRITES);
            assert_int_equal(finding->count, 1);
            assert_int_equal(finding->block_address, BASE + 4096);
            assert_int_equal(finding->block_bytes, 100);
            assert_int_equal(finding->block_stream_id, 7);
            assert_int_equal(finding->resource_id, 3);
            assert_int_equal(finding->address, BASE + 4096 + (uint64_t)cases[i].offset);
            assert_int_equal(finding->bytes, cases[i].bytes);
            assert_string_equal((const char *)(uintptr_t)finding->function, "call");
            assert_true(finding->first_ns > 0 && finding->last_ns >= finding->first_ns);
            assert_int_equal(finding->sequence % 2, 0);
        }
        diag_close(&diag);
    }
}

TEST_CASE(checks_the_source_of_a_copy_and_what_a_pitch_spans)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    diag_alloc(&diag, BASE, 256);
    copy(&diag, OUTSIDE, BASE, 256);
    copy(&diag, BASE, OUTSIDE, 256);
    assert_int_equal(total(&diag), 0);
    copy(&diag, OUTSIDE, BASE + 1, 256);
    assert_int_equal(total(&diag), 1);
    assert_int_equal(diag.findings[0].access, RMM_DIAG_READS);
    /* few bytes, far apart: the spans count, not the sum */
    give(&diag, RMM_DIAG_COPY, (const uint64_t[]){OUTSIDE, BASE, 16, 256}, 4, 16, true);
    assert_int_equal(total(&diag), 1);
    give(&diag, RMM_DIAG_COPY, (const uint64_t[]){OUTSIDE, BASE, 16, 257}, 4, 16, true);
    assert_int_equal(total(&diag), 2);
    assert_int_equal(diag.findings[1].bytes, 257);
    diag_close(&diag);
}

TEST_CASE(checks_before_a_call_and_only_once)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);
    const uint64_t word = BASE;

    diag_alloc(&diag, BASE, 256);
    give(&diag, RMM_DIAG_SET, &word, 1, 257, false);
    assert_int_equal(total(&diag), 0);
    give(&diag, RMM_DIAG_EVENT_RECORD, &word, 1, 257, true);
    give(&diag, RMM_DIAG_SET, NULL, 0, 257, true);
    assert_int_equal(total(&diag), 0);
    give(&diag, RMM_DIAG_PREFETCH, &word, 1, 257, true);
    assert_int_equal(total(&diag), 1);
    assert_int_equal(diag.findings[0].access, RMM_DIAG_READS);
    diag_close(&diag);
}

TEST_CASE(the_same_error_with_other_blocks_is_one_finding)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    for (uint64_t i = 0; i < 1000; i++) {
        diag_alloc(&diag, BASE + i * 512, 100);
        fill(&diag, BASE + i * 512, 104);
        diag_free(&diag, BASE + i * 512, 100);
    }
    assert_int_equal(diag.header->findings.used, 1);
    assert_int_equal(diag.findings[0].count, 1000);
    assert_int_equal(diag.findings[0].block_address, BASE + 999 * 512);
    assert_int_equal(diag.findings[0].address, BASE + 999 * 512);
    diag_close(&diag);
}

TEST_CASE(counts_the_findings_without_room)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    diag_alloc(&diag, BASE, 100);
    for (uint64_t i = 1; i <= RMM_DIAG_FINDINGS_COUNT + 10; i++) {
        fill(&diag, BASE, 100 + i);
    }
    fill(&diag, BASE, 101); /* one that is there */
    assert_int_equal(diag.header->findings.used, RMM_DIAG_FINDINGS_COUNT);
    assert_int_equal(diag.header->findings_dropped, 10);
    assert_int_equal(total(&diag), RMM_DIAG_FINDINGS_COUNT + 11);
    assert_int_equal(diag.findings[0].count, 2);
    diag_close(&diag);
}

TEST_CASE(a_block_that_its_owner_divides_may_be_copied_whole)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    diag_alloc(&diag, BASE, 4096);
    diag_alloc(&diag, BASE, 256); /* parts of it, handed out as blocks */
    diag_alloc(&diag, BASE + 1024, 256);
    fill(&diag, BASE, 4096);
    fill(&diag, BASE + 512, 1024);
    assert_int_equal(total(&diag), 0);
    diag_free(&diag, BASE, 256); /* one part, and not the whole */
    fill(&diag, BASE + 1024, 512);
    assert_int_equal(total(&diag), 0);
    diag_free(&diag, BASE + 1024, 256);
    diag_free(&diag, BASE, 4096);
    diag_alloc(&diag, BASE, 256); /* the memory has another owner now */
    fill(&diag, BASE, 512);
    assert_int_equal(total(&diag), 1);
    diag_close(&diag);
}

TEST_CASE(checks_the_neighbours_of_a_block_that_is_divided)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    diag_alloc(&diag, BASE, 4096);
    diag_alloc(&diag, BASE, 256);
    diag_alloc(&diag, BASE - 256, 256);
    diag_alloc(&diag, BASE + 4096, 256);
    fill(&diag, BASE - 256, 257);
    assert_int_equal(total(&diag), 1);
    assert_int_equal(diag.findings[0].block_address, BASE - 256);
    fill(&diag, BASE + 4096, 257);
    assert_int_equal(total(&diag), 2);
    fill(&diag, BASE + 4095, 1); /* its last byte */
    fill(&diag, BASE, 257);
    assert_int_equal(total(&diag), 2);
    diag_close(&diag);
}

TEST_CASE(checks_nothing_when_too_many_blocks_are_divided)
{
    diag_fixture_t diag = diag_open(256, 16, NULL);

    for (uint64_t i = 0; i < RMM_BOUNDS_DIVIDED_MAX + 1; i++) {
        diag_alloc(&diag, BASE + i * 8192, 4096);
        diag_alloc(&diag, BASE + i * 8192, 256);
        fill(&diag, BASE + i * 8192, 4096);
    }
    assert_int_equal(total(&diag), 0);
    diag_close(&diag);
}

/* A context that the program destroyed took its blocks with it, and no free of them was seen. */
TEST_CASE(memory_of_the_driver_is_not_part_of_a_stale_block)
{
    diag_fixture_t diag = diag_open(256, 16, NULL);
    rmm_diag_block_v1_t block = diag_block(BASE, 4096);

    block.flags = RMM_DIAG_BLOCK_RETURNED;
    for (uint64_t i = 0; i < RMM_BOUNDS_DIVIDED_MAX + 1; i++) {
        block.address = BASE + i * 8192;
        block.bytes = 4096;
        rmm__diag_engine_on_alloc(diag.engine, &block);
        block.bytes = 256;
        rmm__diag_engine_on_alloc(diag.engine, &block);
        fill(&diag, block.address, 512);
    }
    assert_int_equal(total(&diag), RMM_BOUNDS_DIVIDED_MAX + 1);
    diag_close(&diag);
}

/* A block of 1000 bytes at `at`, alone in 1280 bytes of a pool. */
static void alloc_kept(diag_fixture_t *diag, uint64_t at)
{
    rmm_diag_block_v1_t block = diag_block(at, 1000);

    block.flags = RMM_DIAG_BLOCK_KEPT;
    block.end = at + 1280;
    rmm__diag_engine_on_alloc(diag->engine, &block);
}

static void free_kept(diag_fixture_t *diag, uint64_t at)
{
    rmm_diag_block_v1_t block = diag_block(at, 1000);

    block.flags = RMM_DIAG_BLOCK_KEPT;
    block.end = at + 1280;
    rmm__diag_engine_on_free(diag->engine, &block);
}

TEST_CASE(what_lies_behind_a_block_in_its_padding_is_its_error)
{
    static const struct {
        uint64_t at, bytes, block; /* block 0: none */
    } cases[] = {{1000, 1, BASE},        {1000, 8, BASE},
                 {1279, 1, BASE},        {1008, 2000, BASE + 1280},
                 {1000, 2000, BASE},     {1280, 8, 0},
                 {1000, 0, 0},           {2280, 64, BASE + 1280},
                 {1279, 2, BASE + 1280}, {2560, 8, 0},
                 {2559, 8, BASE + 1280}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        diag_fixture_t diag = diag_open(16, 16, NULL);

        alloc_kept(&diag, BASE);
        alloc_kept(&diag, BASE + 1280);
        fill(&diag, BASE + cases[i].at, cases[i].bytes);
        assert_int_equal(total(&diag), cases[i].block != 0);
        if (cases[i].block != 0) {
            assert_int_equal(diag.findings[0].kind, RMM_DIAG_OUT_OF_BOUNDS);
            assert_int_equal(diag.findings[0].block_address, cases[i].block);
            assert_int_equal(diag.findings[0].address, BASE + cases[i].at);
        }
        diag_close(&diag);
    }
}

/* The driver's blocks begin at multiples of 256 bytes; of the host's nothing is known. */
TEST_CASE(memory_of_the_driver_has_padding_on_a_gpu_only)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);
    rmm_diag_block_v1_t block = diag_block(BASE, 1000);

    block.flags = RMM_DIAG_BLOCK_RETURNED;
    rmm__diag_engine_on_alloc(diag.engine, &block);
    block.address = BASE + 4096;
    block.device = -1;
    rmm__diag_engine_on_alloc(diag.engine, &block);
    fill(&diag, BASE + 1024, 8);
    fill(&diag, BASE + 4096 + 1000, 8);
    assert_int_equal(total(&diag), 0);
    fill(&diag, BASE + 1023, 1);
    assert_int_equal(total(&diag), 1);
    diag_close(&diag);
}

TEST_CASE(memory_of_a_pool_that_no_block_has_is_the_nearest_blocks)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    rmm__diag_engine_on_pool(diag.engine, BASE, 65536);
    fill(&diag, BASE + 4096, 8); /* it has no block */
    assert_int_equal(total(&diag), 0);
    alloc_kept(&diag, BASE + 8192);
    alloc_kept(&diag, BASE + 16384);
    fill(&diag, BASE + 8192 + 1280, 8);
    fill(&diag, BASE + 16384 - 8, 8);
    fill(&diag, BASE, 8);
    fill(&diag, BASE + 65528, 16);
    assert_int_equal(total(&diag), 4);
    assert_int_equal(diag.findings[0].block_address, BASE + 8192);
    assert_int_equal(diag.findings[1].block_address, BASE + 16384);
    assert_int_equal(diag.findings[2].block_address, BASE + 8192);
    assert_int_equal(diag.findings[3].block_address, BASE + 16384);
    fill(&diag, BASE - 8, 8); /* before it, and behind it */
    fill(&diag, BASE + 65536, 8);
    rmm__diag_engine_on_gone(diag.engine, BASE, 65536);
    fill(&diag, BASE + 8192 + 1280, 8);
    assert_int_equal(total(&diag), 4);
    diag_close(&diag);
}

/* A function of the program has it, or a graph, or a part of it was handed out. */
TEST_CASE(memory_of_a_pool_with_another_owner_is_no_error)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);
    rmm_diag_block_v1_t block = diag_block(BASE + 16384, 1000);

    rmm__diag_engine_on_pool(diag.engine, BASE, 1 << 20);
    alloc_kept(&diag, BASE);
    rmm__diag_engine_on_gone(diag.engine, BASE + 8192, 4096);
    fill(&diag, BASE + 8192, 8);
    fill(&diag, BASE + 8192 - 8, 16);
    diag_alloc(&diag, BASE + 8192, 256); /* a block of its own that it made there */
    diag_free(&diag, BASE + 8192, 256);
    fill(&diag, BASE + 8192, 4096);
    rmm__diag_engine_on_alloc(diag.engine, &block);
    block.flags = RMM_DIAG_BLOCK_CAPTURED;
    rmm__diag_engine_on_free(diag.engine, &block);
    fill(&diag, BASE + 16384, 1000);
    diag_alloc(&diag, BASE + 32768, 4096);
    diag_alloc(&diag, BASE + 32768, 256);
    fill(&diag, BASE + 32768 + 1024, 8);
    assert_int_equal(total(&diag), 0);
    alloc_kept(&diag, BASE + 8192); /* the pool has it again */
    fill(&diag, BASE + 8192 + 1000, 8);
    assert_int_equal(total(&diag), 1);
    diag_close(&diag);
}

/* What was divided belongs to an owner that is not known, until the pool hands it out. */
TEST_CASE(memory_of_a_pool_stays_anothers_until_the_pool_has_it_again)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    rmm__diag_engine_on_pool(diag.engine, BASE, 65536);
    alloc_kept(&diag, BASE);
    diag_alloc(&diag, BASE + 8192, 4096);
    diag_alloc(&diag, BASE + 8192, 256);
    diag_free(&diag, BASE + 8192, 256);
    diag_free(&diag, BASE + 8192, 4096);
    fill(&diag, BASE + 8192, 8);
    assert_int_equal(total(&diag), 0);
    alloc_kept(&diag, BASE + 8192);
    free_kept(&diag, BASE + 8192);
    fill(&diag, BASE + 8192, 8);
    assert_int_equal(total(&diag), 1);
    fill(&diag, BASE + 8192 + 1280, 8);
    assert_int_equal(total(&diag), 1);
    rmm__diag_engine_on_pool(diag.engine, BASE, 65536);
    fill(&diag, BASE + 8192 + 1280, 8);
    assert_int_equal(total(&diag), 2);
    diag_close(&diag);
}

TEST_CASE(blocks_at_the_ends_of_a_pool_are_in_it)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    rmm__diag_engine_on_pool(diag.engine, BASE, 65536);
    diag_alloc(&diag, BASE + 65536 - 256, 256);
    fill(&diag, BASE + 4096, 8);
    assert_int_equal(total(&diag), 1);
    assert_int_equal(diag.findings[0].block_address, BASE + 65536 - 256);
    diag_alloc(&diag, BASE, 256);
    fill(&diag, BASE + 256, 8);
    assert_int_equal(total(&diag), 2);
    assert_int_equal(diag.findings[1].block_address, BASE);
    diag_close(&diag);
}

/* Pools come and go: their holes go with them. */
TEST_CASE(holes_of_pools_that_are_gone_take_no_room)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    for (uint64_t i = 0; i <= RMM_RANGES_MAX + 1; i++) {
        uint64_t pool = BASE + i * 65536;

        rmm__diag_engine_on_pool(diag.engine, pool, 65536);
        rmm__diag_engine_on_gone(diag.engine, pool + 8192, 4096);
        rmm__diag_engine_on_gone(diag.engine, pool, 65536);
    }
    rmm__diag_engine_on_pool(diag.engine, BASE, 65536);
    alloc_kept(&diag, BASE);
    fill(&diag, BASE + 4096, 8);
    assert_int_equal(total(&diag), 1);
    diag_close(&diag);
}

TEST_CASE(a_pool_with_too_many_holes_is_not_checked)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    rmm__diag_engine_on_pool(diag.engine, BASE, 1 << 30);
    alloc_kept(&diag, BASE);
    fill(&diag, BASE + 4096, 8);
    assert_int_equal(total(&diag), 1);
    for (uint64_t i = 1; i <= RMM_RANGES_MAX + 1; i++) {
        rmm__diag_engine_on_gone(diag.engine, BASE + i * 8192, 8);
    }
    fill(&diag, BASE + 4096, 8);
    assert_int_equal(total(&diag), 1);
    diag_close(&diag);
}

/* --- against a list that is searched from end to end --------------------------------------- */

enum { BLOCKS = 64, STEPS = 20000, SPACE = 4096 };

typedef struct model {
    uint64_t start[BLOCKS], end[BLOCKS]; /* start 0: none */
} model_t;

static bool is_free(const model_t *model, uint64_t start, uint64_t end)
{
    for (int i = 0; i < BLOCKS; i++) {
        if (model->start[i] != 0 && model->start[i] < end && start < model->end[i]) {
            return false;
        }
    }
    return true;
}

/* It lies in one block, or touches none. */
static bool is_right(const model_t *model, uint64_t start, uint64_t end)
{
    for (int i = 0; i < BLOCKS && start < end; i++) {
        if (model->start[i] != 0 && model->start[i] <= start && end <= model->end[i]) {
            return true;
        }
    }
    return start == end || is_free(model, start, end);
}

static void change(diag_fixture_t *diag, model_t *model, uint64_t *random)
{
    uint32_t i = (uint32_t)draw(random, BLOCKS);
    uint64_t start = BASE + draw(random, SPACE);
    uint64_t end = start + 1 + draw(random, 100);

    if (model->start[i] != 0) {
        diag_free(diag, model->start[i], model->end[i] - model->start[i]);
        model->start[i] = 0;
    } else if (is_free(model, start, end)) {
        diag_alloc(diag, start, end - start);
        model->start[i] = start;
        model->end[i] = end;
    }
}

TEST_CASE(agrees_with_a_list_that_is_searched)
{
    diag_fixture_t diag = diag_open(BLOCKS, 16, NULL);
    const char *seed = getenv("RMM_TEST_SEED");
    uint64_t random = seed != NULL ? strtoull(seed, NULL, 0) : 20261122u;
    model_t model = {0};

    print_message("RMM_TEST_SEED=%llu\n", (unsigned long long)random);

    for (int i = 0; i < STEPS; i++) {
        uint64_t start = BASE + draw(&random, SPACE);
        uint64_t bytes = draw(&random, 150);
        uint64_t before = total(&diag);

        change(&diag, &model, &random);
        fill(&diag, start, bytes);
        assert_int_equal(
            total(&diag) - before, is_right(&model, start, start + bytes) ? 0 : 1);
    }
    assert_true(total(&diag) > STEPS / 100);
    diag_close(&diag);
}
