/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool's contract on one stream: sizes, alignment, splitting and merging, growth and
 * its limits, refused frees, figures, trim, and the ends of its life.
 */
#include "sim/pool/pool_harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "driver/sim/control.h"

static int nothing_left_behind(void **state)
{
    if (rmm_sim_violations() != 0) {
        print_error("violation: %s\n", rmm__sim_violation_text());
        return -1;
    }
    if (rmm_sim_allocated_bytes(0) != 0) {
        print_error("%lu bytes left\n", (unsigned long)rmm_sim_allocated_bytes(0));
        return -1;
    }
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, NULL, nothing_left_behind)

CASE(gives_aligned_blocks_that_do_not_overlap)
{
    static const size_t sizes[] = {1, 255, 256, 257, 4 * KIB, MIB, 3 * MIB + 1};
    rmm_resource_t *pool = make_pool(0, 0);
    char *blocks[7];

    for (size_t i = 0; i < 7; i++) {
        blocks[i] = take(pool, sizes[i], NULL);
        assert_int_equal((uintptr_t)blocks[i] % 256, 0);
        for (size_t j = 0; j < i; j++) {
            assert_true(
                blocks[i] + sizes[i] <= blocks[j] || blocks[j] + sizes[j] <= blocks[i]);
        }
    }
    for (size_t i = 0; i < 7; i++) {
        give(pool, blocks[i], sizes[i], NULL);
    }
    rmm_resource_release(pool);
}

CASE(gives_larger_alignments_on_request)
{
    rmm_resource_t *pool = make_pool(64 * MIB, 0);

    for (size_t align = 1; align <= RMM_ALIGN_MAX; align *= 2) {
        void *small = take(pool, 300, NULL); /* moves the next free address about */
        void *ptr;

        assert_ok(rmm_resource_alloc(pool, 1000, align, NULL, &ptr));
        assert_int_equal((uintptr_t)ptr % align, 0);
        rmm_resource_dealloc(pool, ptr, 1000, align, NULL);
        give(pool, small, 300, NULL);
    }
    assert_int_equal(stats_of(pool).current_bytes, 0);
    rmm_resource_release(pool);
}

CASE(refuses_bad_arguments_and_touches_nothing)
{
    rmm_resource_t *pool = make_pool(MIB, 0);
    void *mark = &mark;
    void *ptr = mark;

    assert_int_equal(
        rmm_resource_alloc(pool, 1, 3, NULL, &ptr), RMM_ERR_INVALID_ALIGNMENT);
    assert_int_equal(
        rmm_resource_alloc(pool, 1, 2 * RMM_ALIGN_MAX, NULL, &ptr),
        RMM_ERR_INVALID_ALIGNMENT);
    assert_int_equal(
        rmm_resource_alloc(NULL, 1, 0, NULL, &ptr), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_resource_alloc(pool, 1, 0, NULL, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_ptr_equal(ptr, mark);
    rmm_resource_dealloc(NULL, NULL, 0, 0, NULL);
    rmm_resource_release(NULL);
    rmm_resource_release(pool);
}

CASE(counts_an_allocation_of_no_bytes)
{
    rmm_resource_t *pool = make_pool(MIB, 0);
    void *ptr = &ptr;

    assert_ok(rmm_resource_alloc(pool, 0, 0, NULL, &ptr));
    assert_null(ptr);
    assert_int_equal(stats_of(pool).current_count, 1);
    rmm_resource_dealloc(pool, NULL, 0, 0, NULL);
    rmm_resource_dealloc(pool, NULL, 0, 0, NULL); /* one too many: ignored */
    assert_int_equal(stats_of(pool).current_count, 0);
    assert_int_equal(stats_of(pool).total_count, 1);
    rmm_resource_release(pool);
}

CASE(merges_freed_blocks_back_into_one)
{
    enum { COUNT = 64 };
    rmm_resource_t *pool = make_pool(16 * MIB, 16 * MIB);
    void *blocks[COUNT];

    for (int i = 0; i < COUNT; i++) {
        blocks[i] = take(pool, 256 * KIB, NULL);
    }
    for (int i = 0; i < COUNT; i += 2) {
        give(pool, blocks[i], 256 * KIB, NULL);
    }
    for (int i = 1; i < COUNT; i += 2) {
        give(pool, blocks[i], 256 * KIB, NULL);
    }
    give(pool, take(pool, 16 * MIB, NULL), 16 * MIB, NULL);
    rmm_resource_release(pool);
}

CASE(reuses_at_once_on_the_same_stream)
{
    rmm_resource_t *pool = make_pool(MIB, MIB);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    void *first = take(pool, MIB, stream);

    give(pool, first, MIB, stream);
    assert_ptr_equal(take(pool, MIB, stream), first);
    give(pool, first, MIB, stream);
    assert_cuda(sim_driver()->stream_destroy(stream));
    rmm_resource_release(pool);
}

CASE(grows_up_to_its_maximum)
{
    rmm_resource_t *pool = make_pool(0, 8192);
    void *first = take(pool, 1000, NULL);
    void *second;

    assert_true(stats_of(pool).reserved_bytes <= 8192);
    assert_int_equal(
        rmm_resource_alloc(pool, 8192, 0, NULL, &second), RMM_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(rmm_last_error_message(), "8192"));
    second = take(pool, 500, NULL);
    give(pool, first, 1000, NULL);
    give(pool, second, 500, NULL);
    rmm_resource_release(pool);
}

/* RMM asks for half of what is left, which may be no multiple of 256. */
CASE(growth_to_an_odd_maximum_stays_aligned)
{
    rmm_resource_t *pool = make_pool(0, 1000031);
    void *blocks[40];
    int count = 0;
    void *ptr;

    while (rmm_resource_alloc(pool, 30001, 0, NULL, &ptr) == RMM_OK) {
        assert_int_equal((uintptr_t)ptr % 256, 0);
        assert_int_equal(stats_of(pool).reserved_bytes % 256, 0);
        blocks[count++] = ptr;
    }
    assert_int_equal(count, 1000192 / 30208);
    assert_true(stats_of(pool).reserved_bytes <= 1000192);
    while (count > 0) {
        give(pool, blocks[--count], 30001, NULL);
    }
    rmm_resource_release(pool);
}

CASE(takes_exactly_the_initial_bytes)
{
    rmm_resource_t *pool = make_pool(1000192, 1000192);

    assert_int_equal(stats_of(pool).reserved_bytes, 1000192 / 256 * 256);
    rmm_resource_release(pool);
    pool = make_pool(1000, 1000); /* both rounded up */
    assert_int_equal(stats_of(pool).reserved_bytes, 1024);
    rmm_resource_release(pool);
}

CASE(fails_to_start_beyond_its_maximum_or_its_device)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mark = cuda;
    rmm_resource_t *pool = mark;

    options.initial_bytes = 1024;
    options.maximum_bytes = 256;
    assert_int_equal(
        rmm_pool_resource_create(cuda, &options, &pool), RMM_ERR_INVALID_ARGUMENT);
    options.initial_bytes = (uint64_t)1 << 45;
    options.maximum_bytes = 0;
    assert_int_equal(
        rmm_pool_resource_create(cuda, &options, &pool), RMM_ERR_OUT_OF_MEMORY);
    options.initial_bytes = UINT64_MAX;
    assert_int_equal(
        rmm_pool_resource_create(cuda, &options, &pool), RMM_ERR_OUT_OF_MEMORY);
    options.struct_size = 0;
    assert_int_equal(
        rmm_pool_resource_create(cuda, &options, &pool), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_pool_resource_create(NULL, NULL, &pool), RMM_ERR_INVALID_ARGUMENT);
    assert_ptr_equal(pool, mark);
    rmm_resource_release(cuda);
}

typedef struct scarce {
    size_t left;
    int odd; /* requests for what is no multiple of 256 */
} scarce_t;

static rmm_status_t
scarce_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    scarce_t *scarce = payload;

    scarce->odd += bytes % 256 != 0;
    if (bytes > scarce->left) {
        return RMM_ERR_OUT_OF_MEMORY;
    }
    scarce->left -= bytes;
    assert_cuda(sim_driver()->mem_alloc(ptr_out, bytes));
    return RMM_OK;
}

static void scarce_dealloc(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    ((scarce_t *)payload)->left += bytes;
    assert_cuda(sim_driver()->mem_free(ptr));
}

static rmm_resource_t *make_pool_of_scarce(scarce_t *scarce, uint64_t maximum_bytes)
{
    rmm_callback_options_t callback = RMM_CALLBACK_OPTIONS_INIT;
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *upstream;
    rmm_resource_t *pool;

    callback.alloc = scarce_alloc;
    callback.dealloc = scarce_dealloc;
    callback.payload = scarce;
    options.maximum_bytes = maximum_bytes;
    assert_ok(rmm_callback_resource_create(&callback, &upstream));
    assert_ok(rmm_pool_resource_create(upstream, &options, &pool));
    rmm_resource_release(upstream);
    return share(pool);
}

/* RMM asks for half of what an odd maximum leaves, and lays odd blocks out in it. */
CASE(grows_by_multiples_of_256_only)
{
    static const uint64_t odd_maxima[] = {8193, 100001, 3 * MIB + 77, 0};

    for (size_t i = 0; i < 4; i++) {
        scarce_t scarce = {.left = 3 * MIB + 1};
        rmm_resource_t *pool = make_pool_of_scarce(&scarce, odd_maxima[i]);
        void *ptr = NULL;

        for (int k = 0;
             k < 200 && rmm_resource_alloc(pool, 777, 0, NULL, &ptr) == RMM_OK; k++) {
            assert_int_equal((uintptr_t)ptr % 256, 0); /* left to the end of the pool */
        }
        assert_non_null(ptr);
        assert_int_equal(scarce.odd, 0);
        assert_int_equal(stats_of(pool).reserved_bytes % 256, 0);
        rmm_resource_release(pool);
    }
}

/* Not for good: all that the maximum leaves, to the last byte. */
CASE(asks_upstream_again_after_it_had_nothing)
{
    scarce_t scarce = {.left = 0};
    rmm_resource_t *pool = make_pool_of_scarce(&scarce, 8 * MIB);
    void *ptr = NULL;

    for (int i = 0; i < 8; i++) {
        assert_int_equal(
            rmm_resource_alloc(pool, 64 * KIB, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    }
    assert_int_equal(
        rmm_resource_alloc(pool, 8 * MIB, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    scarce.left = 8 * MIB;
    ptr = take(pool, 8 * MIB, NULL);
    give(pool, ptr, 8 * MIB, NULL);
    rmm_resource_release(pool);
}

CASE(may_have_later_what_upstream_had_less_of)
{
    scarce_t scarce = {.left = 64 * KIB};
    rmm_resource_t *pool = make_pool_of_scarce(&scarce, 8 * MIB);
    void *small = take(pool, 64 * KIB, NULL); /* instead of the usual chunk */
    void *rest;

    assert_int_equal(stats_of(pool).reserved_bytes, 64 * KIB);
    scarce.left = 8 * MIB;
    rest = take(pool, 8 * MIB - 64 * KIB, NULL);
    give(pool, small, 64 * KIB, NULL);
    give(pool, rest, 8 * MIB - 64 * KIB, NULL);
    rmm_resource_release(pool);
}

/* A free chunk goes back for a larger one only where that can be had then. */
CASE(keeps_free_chunks_that_would_not_make_the_room)
{
    rmm_resource_t *pool = make_pool(2 * MIB, 6 * MIB);
    void *first = take(pool, 2 * MIB, NULL);
    void *second = take(pool, 2 * MIB, NULL);
    void *ptr = NULL;

    give(pool, first, 2 * MIB, NULL);
    first = take(pool, 256, NULL);
    give(pool, second, 2 * MIB, NULL);
    assert_int_equal(stats_of(pool).reserved_bytes, 4 * MIB);
    assert_int_equal(
        rmm_resource_alloc(pool, 5 * MIB, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(stats_of(pool).reserved_bytes, 4 * MIB);
    give(pool, first, 256, NULL);
    first = take(pool, 2 * MIB - 256, NULL); /* then only its front is free */
    second = take(pool, 256, NULL);
    give(pool, first, 2 * MIB - 256, NULL);
    assert_int_equal(
        rmm_resource_alloc(pool, 5 * MIB, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(stats_of(pool).reserved_bytes, 4 * MIB);
    give(pool, second, 256, NULL);
    rmm_resource_release(pool);
}

CASE(asks_upstream_for_less_when_it_has_less)
{
    uint64_t free_bytes;
    uint64_t total;
    rmm_resource_t *pool = make_pool(0, 0);
    void *first;
    void *second;

    assert_cuda(sim_driver()->memory_info(&free_bytes, &total));
    first = take(pool, free_bytes - 3 * MIB, NULL); /* leaves less than a usual chunk */
    second = take(pool, MIB, NULL);
    give(pool, first, free_bytes - 3 * MIB, NULL);
    give(pool, second, MIB, NULL);
    rmm_resource_release(pool);
}

CASE(says_what_is_missing_when_it_is_out_of_memory)
{
    rmm_resource_t *pool = make_pool(MIB, MIB);
    void *half = take(pool, MIB / 2, NULL);
    void *ptr;

    assert_int_equal(
        rmm_resource_alloc(pool, MIB, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(rmm_last_error_message(), "1048576 bytes"));
    assert_non_null(strstr(rmm_last_error_message(), "largest free 524288"));
    assert_non_null(strstr(rmm_last_error_message(), "reserved 1048576"));
    assert_non_null(strstr(rmm_last_error_message(), "fragmentation 0.000"));
    assert_int_equal(stats_of(pool).oom_count, 1);
    give(pool, half, MIB / 2, NULL);
    rmm_resource_release(pool);
}

/* A tenth of a second later the device is asked again. */
CASE(says_what_the_device_has_free_now)
{
    const struct timespec until_asked_again = {0, 150 * 1000 * 1000};
    rmm_resource_t *pool = make_pool(MIB, MIB);
    uint64_t free_bytes, total_bytes;
    char text[64];
    void *ptr, *other;

    assert_int_equal(
        rmm_resource_alloc(pool, 2 * MIB, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_cuda(sim_driver()->mem_alloc(&other, 64 * MIB));
    assert_int_equal(nanosleep(&until_asked_again, NULL), 0);
    assert_int_equal(
        rmm_resource_alloc(pool, 2 * MIB, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_cuda(sim_driver()->memory_info(&free_bytes, &total_bytes));
    snprintf(text, sizeof(text), "device free %" PRIu64 ",", free_bytes);
    assert_non_null(strstr(rmm_last_error_message(), text));
    assert_cuda(sim_driver()->mem_free(other));
    rmm_resource_release(pool);
}

CASE(refuses_frees_that_cannot_be_right)
{
    rmm_resource_t *pool = make_pool(MIB, MIB);
    char *block = take(pool, 1000, NULL);
    int elsewhere;

    give(pool, block + 256, 1000, NULL);
    give(pool, block + 1, 1000, NULL);
    give(pool, block, 999, NULL);
    give(pool, block, 1024, NULL);
    give(pool, block, 0, NULL);
    give(pool, &elsewhere, 1000, NULL);
    assert_int_equal(stats_of(pool).invalid_free_count, 6);
    assert_int_equal(stats_of(pool).current_bytes, 1000);
    give(pool, block, 1000, NULL);
    give(pool, block, 1000, NULL); /* twice */
    assert_int_equal(stats_of(pool).invalid_free_count, 7);
    assert_int_equal(stats_of(pool).current_bytes, 0);
    assert_int_equal(stats_of(pool).current_count, 0);
    rmm_resource_release(pool);
}

CASE(keeps_exact_figures)
{
    rmm_resource_t *pool = make_pool(MIB, MIB);
    void *first = take(pool, 1000, NULL);
    void *second = take(pool, 500, NULL);
    rmm_stats_t stats;

    give(pool, first, 1000, NULL);
    first = take(pool, 100, NULL);
    stats = stats_of(pool);
    assert_int_equal(stats.current_bytes, 600);
    assert_int_equal(stats.current_count, 2);
    assert_int_equal(stats.peak_bytes, 1500);
    assert_int_equal(stats.peak_count, 2);
    assert_int_equal(stats.total_bytes, 1600);
    assert_int_equal(stats.total_count, 3);
    assert_int_equal(stats.reserved_bytes, MIB);
    give(pool, first, 100, NULL);
    give(pool, second, 500, NULL);
    rmm_resource_release(pool);
}

CASE(gives_whole_free_chunks_back_when_trimmed)
{
    rmm_resource_t *pool = make_pool(0, 0);
    void *small = take(pool, MIB, NULL);
    void *large = take(pool, 64 * MIB, NULL);
    uint64_t before = stats_of(pool).reserved_bytes;

    give(pool, large, 64 * MIB, NULL);
    assert_ok(rmm_resource_trim(pool, before)); /* keeps all */
    assert_int_equal(stats_of(pool).reserved_bytes, before);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(stats_of(pool).reserved_bytes, before - 64 * MIB);
    /* and the block that is kept for a barrier */
    assert_in_range(rmm_sim_allocated_bytes(0) - stats_of(pool).reserved_bytes, 1, 512);
    give(pool, small, MIB, NULL);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(stats_of(pool).reserved_bytes, 0);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    give(pool, take(pool, MIB, NULL), MIB, NULL); /* still of use */
    rmm_resource_release(pool);
}

CASE(frees_everything_with_blocks_still_out)
{
    rmm_resource_t *pool = make_pool(MIB, MIB);
    void *lost = take(pool, 1000, NULL);

    assert_non_null(lost);
    rmm_resource_release(pool); /* the teardown sees whether memory is left */
}

CASE(lives_on_while_a_pool_above_needs_it)
{
    rmm_resource_t *lower = make_pool(MIB, 4 * MIB);
    rmm_resource_t *upper;
    void *ptr;

    assert_ok(rmm_pool_resource_create(lower, NULL, &upper));
    assert_ptr_equal(rmm_resource_upstream(upper), lower);
    rmm_resource_release(lower);
    ptr = take(upper, 1000, NULL);
    assert_int_equal(stats_of(rmm_resource_upstream(upper)).current_count, 1);
    give(upper, ptr, 1000, NULL);
    rmm_resource_release(upper);
}

CASE(names_itself)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *pool;
    char name[] = "weights";

    options.name = name;
    assert_ok(rmm_pool_resource_create(cuda, &options, &pool));
    memset(name, 'x', sizeof(name) - 1); /* it was copied */
    assert_string_equal(rmm_resource_name(pool), "weights");
    assert_string_equal(rmm_resource_type(pool), "pool");
    assert_string_equal(rmm_resource_type(cuda), "cuda");
    assert_int_equal(rmm_resource_properties(pool), RMM_DEVICE_ACCESSIBLE);
    assert_true(rmm_resource_is_equal(pool, pool));
    assert_false(rmm_resource_is_equal(pool, cuda));
    rmm_resource_release(pool);
    rmm_resource_release(cuda);
}
