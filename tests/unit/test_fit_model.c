/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The models that tests/capacity compares pools with, on cases made by hand.
 */
#include "harness/harness.h"

#include "capacity/fit_model.h"
#include "capacity/page_model.h"

#define KIB UINT64_C(1024)

static fit_model_t model;

static uint64_t alloc(uint64_t bytes)
{
    uint64_t offset = UINT64_MAX;
    assert_true(fit_alloc(&model, bytes, &offset));
    return offset;
}

static void dealloc(uint64_t offset, uint64_t bytes)
{
    assert_true(fit_dealloc(&model, offset, bytes));
}

/* Free blocks of 4, 2, 3, 2 and 8 KiB, in this order, with 1 KiB between them. */
static const uint64_t gaps[] = {4, 2, 3, 2};
static uint64_t offsets[4];

static void make_gaps(fit_policy_t policy)
{
    assert_true(fit_init(&model, policy, 23 * KIB));
    for (size_t i = 0; i < 4; i++) {
        offsets[i] = alloc(gaps[i] * KIB);
        (void)alloc(1 * KIB);
    }
    for (size_t i = 0; i < 4; i++) {
        dealloc(offsets[i], gaps[i] * KIB);
    }
    assert_int_equal(model.count, 5);
}

TEST_CASE(best_fit_takes_the_smallest_that_is_large_enough)
{
    make_gaps(FIT_BEST);
    assert_int_equal(alloc(3 * KIB - 100), offsets[2]);
    assert_int_equal(alloc(3 * KIB), offsets[0]);
    assert_int_equal(alloc(5 * KIB), 15 * KIB); /* 8 KiB at the end */
    fit_fini(&model);
}

TEST_CASE(best_fit_takes_the_lowest_among_equal_ones)
{
    make_gaps(FIT_BEST);
    assert_int_equal(alloc(2 * KIB), offsets[1]);
    assert_int_equal(alloc(2 * KIB), offsets[3]);
    fit_fini(&model);
    make_gaps(FIT_BEST);
    assert_int_equal(alloc(1 * KIB), offsets[1]); /* no exact one */
    fit_fini(&model);
}

TEST_CASE(first_fit_takes_the_lowest_that_is_large_enough)
{
    make_gaps(FIT_FIRST);
    assert_int_equal(alloc(2 * KIB), offsets[0]);
    assert_int_equal(alloc(3 * KIB), offsets[2]);
    assert_int_equal(alloc(2 * KIB), offsets[0] + 2 * KIB);
    fit_fini(&model);
}

TEST_CASE(splits_at_the_front)
{
    assert_true(fit_init(&model, FIT_BEST, 4 * KIB));
    assert_int_equal(alloc(1), 0);
    assert_int_equal(alloc(257), 256);
    assert_int_equal(alloc(256), 768);
    assert_int_equal(model.count, 1);
    assert_int_equal(model.blocks[0].offset, 1024);
    assert_int_equal(model.blocks[0].bytes, 3 * KIB);
    fit_fini(&model);
}

TEST_CASE(merges_with_both_neighbours_at_once)
{
    assert_true(fit_init(&model, FIT_BEST, 4 * KIB));
    for (unsigned i = 0; i < 4; i++) {
        (void)alloc(1 * KIB);
    }
    assert_int_equal(model.count, 0);
    dealloc(0, 1 * KIB);
    dealloc(2 * KIB, 1 * KIB);
    assert_int_equal(model.count, 2);
    dealloc(1 * KIB, 1 * KIB); /* both */
    assert_int_equal(model.count, 1);
    assert_int_equal(model.blocks[0].bytes, 3 * KIB);
    dealloc(3 * KIB, 1 * KIB); /* the one before */
    assert_int_equal(model.count, 1);
    assert_int_equal(alloc(2 * KIB), 0);
    assert_int_equal(alloc(1 * KIB), 2 * KIB);
    dealloc(0, 2 * KIB);
    dealloc(2 * KIB, 1 * KIB);
    assert_int_equal(alloc(4 * KIB), 0);
    dealloc(0, 4 * KIB);
    assert_int_equal(alloc(2 * KIB), 0);
    assert_int_equal(alloc(1 * KIB), 2 * KIB);
    dealloc(2 * KIB, 1 * KIB); /* the one after */
    assert_int_equal(model.count, 1);
    assert_int_equal(model.blocks[0].offset, 2 * KIB);
    fit_fini(&model);
}

TEST_CASE(refuses_what_no_block_is_large_enough_for)
{
    uint64_t offset = 7;
    assert_true(fit_init(&model, FIT_BEST, 3 * KIB + 255));
    (void)alloc(1 * KIB);
    (void)alloc(1 * KIB);
    dealloc(0, 1 * KIB);
    assert_false(fit_alloc(&model, 1 * KIB + 1, &offset)); /* 2 KiB are free */
    assert_int_equal(offset, 7);
    assert_int_equal(alloc(1 * KIB), 0);
    assert_int_equal(alloc(1 * KIB), 2 * KIB);
    assert_false(fit_alloc(&model, 1, &offset)); /* 255 bytes are no unit */
    fit_fini(&model);
}

TEST_CASE(a_block_of_no_bytes_takes_nothing)
{
    assert_true(fit_init(&model, FIT_BEST, 256));
    uint64_t offset = alloc(0);
    (void)alloc(256);
    dealloc(offset, 0);
    assert_int_equal(model.count, 0);
    fit_fini(&model);
}

TEST_CASE(keeps_thousands_of_free_blocks)
{
    const uint64_t count = 5000;
    assert_true(fit_init(&model, FIT_BEST, count * 256));
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(alloc(256), i * 256);
    }
    for (uint64_t i = 0; i < count; i += 2) {
        dealloc(i * 256, 256);
    }
    assert_int_equal(model.count, count / 2);
    for (uint64_t i = 1; i < count; i += 2) {
        dealloc(i * 256, 256);
    }
    assert_int_equal(model.count, 1);
    assert_int_equal(alloc(count * 256), 0);
    fit_fini(&model);
}

TEST_CASE(a_page_counts_while_a_live_block_touches_it)
{
    page_model_t pages;
    uint64_t first, second, third;
    assert_true(page_model_init(&pages, 10 * KIB, 1 * KIB));
    assert_true(page_model_alloc(&pages, 512, &first));
    assert_int_equal(pages.used_pages, 1);
    assert_true(page_model_alloc(&pages, 1 * KIB, &second)); /* from the middle on */
    assert_int_equal(pages.used_pages, 2);
    assert_true(page_model_alloc(&pages, 2 * KIB + 512, &third));
    assert_int_equal(pages.used_pages, 4);
    assert_true(page_model_dealloc(&pages, second, 1 * KIB));
    assert_int_equal(pages.used_pages, 4); /* both neighbours are live */
    assert_true(page_model_dealloc(&pages, third, 2 * KIB + 512));
    assert_int_equal(pages.used_pages, 1);
    assert_true(page_model_dealloc(&pages, first, 512));
    assert_int_equal(pages.used_pages, 0);
    assert_int_equal(pages.most_pages, 4);
    page_model_fini(&pages);
}
