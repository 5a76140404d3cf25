/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a tool knows of the blocks of pools, while one listens.
 */
#include "sim/nvtx/nvtx_harness.h"

#include <pthread.h>

#include "driver/sim/control.h"
#include "harness/overruns.h"

static int expect_clean(void **state)
{
    expect_clean_tool();
    return 0;
}

TEST_CASE_WITH(a_block_is_a_region_of_the_bytes_requested, NULL, expect_clean)
{
    rmm_resource_t *pool = make_pool(8 * MIB, 0);
    char *ptr = take(pool, 1000, NULL);

    assert_int_equal(tool_state().heaps, 1);
    assert_int_equal(tool_state().regions, 1);
    assert_true(tool_allows(ptr, 1000));
    assert_false(tool_allows(ptr, 1001));
    assert_false(tool_allows(ptr + 1000, 1));
    give(pool, ptr, 1000, NULL);
    assert_int_equal(tool_state().regions, 0);
    assert_false(tool_allows(ptr, 1));
    rmm_resource_release(pool);
}

TEST_CASE_WITH(a_gap_follows_a_block_that_fills_its_units, NULL, expect_clean)
{
    rmm_resource_t *pool = make_pool(8 * MIB, 0);
    char *first = take(pool, 1024, NULL);
    char *second = take(pool, 1024, NULL);

    assert_false(tool_allows(first + 1024, 1));
    assert_false(tool_allows(second - 1, 1));
    assert_false(tool_allows(second + 1024, 1));
    give(pool, first, 1024, NULL);
    give(pool, second, 1024, NULL);
    rmm_resource_release(pool);
}

TEST_CASE_WITH(a_block_without_room_for_its_gap_is_found, NULL, expect_clean)
{
    rmm_resource_t *pool = make_pool(8 * MIB, 8 * MIB);
    char *all = take(pool, 8 * MIB, NULL);

    assert_true(tool_allows(all, 8 * MIB));
    give(pool, all, 8 * MIB, NULL);
    rmm_resource_release(pool);
}

TEST_CASE_WITH(blocks_left_in_a_pool_end_with_it, NULL, expect_clean)
{
    rmm_resource_t *pool = make_pool(8 * MIB, 0);

    take(pool, 1000, NULL);
    take(pool, 2000, NULL);
    assert_int_equal(tool_state().regions, 2);
    rmm_resource_release(pool);
}

TEST_CASE_WITH(each_chunk_is_a_heap_until_it_is_given_back, NULL, expect_clean)
{
    rmm_resource_t *pool = make_pool(2 * MIB, 0);
    void *first = take(pool, MIB, NULL);
    void *large = take(pool, 32 * MIB, NULL);

    assert_int_equal(tool_state().heaps, 2);
    give(pool, large, 32 * MIB, NULL);
    give(pool, first, MIB, NULL);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(tool_state().heaps, 0);
    rmm_resource_release(pool);
}

/* --- frees that are refused --------------------------------------------------------------- */

TEST_CASE_WITH(a_refused_free_leaves_the_region, NULL, expect_clean)
{
    rmm_resource_t *pool = make_pool(8 * MIB, 0);
    rmm_resource_t *other = make_pool(8 * MIB, 0);
    char *ptr = take(pool, 1000, NULL);

    give(pool, ptr, 999, NULL);
    give(pool, ptr + 256, 100, NULL);
    give(other, ptr, 1000, NULL);
    assert_int_equal(tool_state().regions, 1);
    assert_true(tool_allows(ptr, 1000));
    assert_false(tool_allows(ptr, 1001));
    give(pool, ptr, 1000, NULL);
    give(pool, ptr, 1000, NULL);
    assert_int_equal(tool_state().regions, 0);
    rmm_resource_release(pool);
    rmm_resource_release(other);
}

/* --- work that still uses a block ---------------------------------------------------------- */

static void note_that_it_ran(const void *const *params)
{
    bool *ran;

    memcpy(&ran, params[0], sizeof(ran));
    *ran = true;
}

TEST_CASE_WITH(a_free_waits_for_the_work_that_uses_the_block, NULL, expect_clean)
{
    rmm_resource_t *pool = make_pool(8 * MIB, 0);
    rmm_stream_t stream;
    bool ran = false;
    bool *parameter = &ran;
    void *ptr;

    assert_ok(rmm_stream_create(0, &stream));
    ptr = take(pool, 1000, stream);
    assert_int_equal(
        rmm_sim_launch(
            "use", note_that_it_ran, stream, (const void *const[]){&parameter},
            (const size_t[]){sizeof(parameter)}, 1),
        0);
    give(pool, ptr, 1000, stream);
    assert_true(ran);
    assert_false(tool_allows(ptr, 1));
    assert_ok(rmm_stream_destroy(stream));
    rmm_resource_release(pool);
}

TEST_CASE_WITH(a_region_stays_where_the_wait_fails, NULL, expect_clean)
{
    rmm_resource_t *pool = make_pool(8 * MIB, 0);
    char *ptr = take(pool, 1000, NULL);
    char *again;

    assert_true(rmm_sim_fail("event_record:1"));
    give(pool, ptr, 1000, NULL);
    assert_true(rmm__sim_fault_has_struck());
    assert_true(tool_allows(ptr, 1000));
    again = take(pool, 2000, NULL);
    assert_ptr_equal(again, ptr);
    assert_true(tool_allows(again, 2000)); /* the region has grown, and stays */
    give(pool, again, 2000, NULL);
    assert_true(tool_allows(ptr, 2000));
    rmm_resource_release(pool);
}

TEST_CASE_WITH(memory_of_a_graph_stays_accessible, NULL, expect_clean)
{
    rmm_resource_t *pool = make_pool(8 * MIB, 0);
    rmm_stream_t stream;
    rmm_sim_graph_t graph;
    char *ptr;

    assert_ok(rmm_stream_create(0, &stream));
    assert_int_equal(rmm_sim_begin_capture(stream, 2), 0);
    ptr = take(pool, 1000, stream);
    give(pool, ptr, 1000, stream);
    assert_int_equal(rmm_sim_end_capture(stream, &graph), 0);
    assert_true(tool_allows(ptr, 1000)); /* every launch uses it */
    assert_int_equal(rmm_sim_graph_destroy(graph), 0);
    assert_ok(rmm_stream_destroy(stream));
    rmm_resource_release(pool);
}

/* --- resources over resources --------------------------------------------------------------- */

TEST_CASE_WITH(a_pool_over_an_arena_adds_no_heap, NULL, expect_clean)
{
    rmm_resource_t *arena = make_arena(64 * MIB);
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *pool;
    char *inner, *outer;

    options.initial_bytes = MIB;
    assert_ok(rmm_pool_resource_create(arena, &options, &pool));
    outer = take(pool, 1000, NULL);
    inner = take(arena, 1000, NULL);
    assert_int_equal(tool_state().heaps, 1);
    assert_int_equal(tool_state().regions, 2);
    assert_false(tool_allows(outer + 1000, 1));
    assert_false(tool_allows(inner + 1000, 1));
    give(arena, inner, 1000, NULL);
    assert_int_equal(tool_state().heaps, 1);
    take(pool, 5000, NULL);
    rmm_resource_release(pool); /* with two blocks out: they end with their chunk */
    assert_int_equal(tool_state().regions, 0);
    assert_int_equal(tool_state().heaps, 1);
    rmm_resource_release(arena);
}

TEST_CASE_WITH(memory_not_of_cuda_malloc_is_not_a_heap, NULL, expect_clean)
{
    rmm_resource_t *async, *pool;
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    void *ptr;

    assert_ok(rmm_async_resource_create(NULL, &async));
    assert_ok(rmm_pool_resource_create(async, &options, &pool));
    rmm_resource_release(async);
    ptr = take(pool, 1000, NULL);
    assert_int_equal(tool_state().heaps, 0);
    assert_int_equal(tool_state().regions, 0);
    give(pool, ptr, 1000, NULL);
    rmm_resource_release(pool);
}

TEST_CASE_WITH(a_virtual_pool_takes_chunks, NULL, expect_clean)
{
    rmm_resource_t *pool = make_virtual_pool(8 * MIB, 0);
    char *ptr = take(pool, 1000, NULL);

    assert_string_equal(rmm_resource_type(rmm_resource_upstream(pool)), "cuda");
    assert_string_equal(rmm_resource_type(pool), "pool");
    assert_int_equal(tool_state().heaps, 1);
    assert_false(tool_allows(ptr + 1000, 1));
    give(pool, ptr, 1000, NULL);
    rmm_resource_release(pool);
    assert_null(rmm__resource_next_used(NULL)); /* nor is the source of the chunks */
}

TEST_CASE_WITH(
    a_fixed_size_resource_shows_its_sizes_without_the_gap, NULL, expect_clean)
{
    rmm_resource_t *mr = make_fixed(1024, 16);
    rmm_status_t status;
    uint64_t value;
    void *ptr;

    assert_ok(rmm_fixed_size_get_block_bytes(mr, &value));
    assert_int_equal(value, 1024);
    assert_ok(rmm_fixed_size_get_blocks_per_chunk(mr, &value));
    assert_int_equal(value, 16);
    status = rmm_resource_alloc(mr, 1025, 0, NULL, &ptr);
    assert_int_equal(status, RMM_ERR_OUT_OF_MEMORY);
    assert_non_null(
        strstr(rmm_last_error_message(), "exceed its block size of 1024 bytes"));
    ptr = take(mr, 1024, NULL);
    give(mr, ptr, 1024, NULL);
    rmm_resource_release(mr);
}

TEST_CASE_WITH(a_chunk_that_gaps_would_make_too_large_has_none, NULL, expect_clean)
{
    const uint64_t most = ENGINE_RUN_BYTES / 4096;
    rmm_resource_t *mr = make_fixed(4096, most);
    uint64_t value;

    assert_ok(rmm_fixed_size_get_block_bytes(mr, &value));
    assert_int_equal(value, 4096);
    assert_ok(rmm_fixed_size_get_blocks_per_chunk(mr, &value));
    assert_int_equal(value, most);
    assert_true(pool_from_base(mr)->chunk_bytes <= ENGINE_RUN_BYTES);
    rmm_resource_release(mr);
}

/* --- a program's own functions ---------------------------------------------------------------- */

/* Hands out what is behind a header of 512 bytes. */
static rmm_status_t
with_header(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    char *block;
    rmm_status_t status =
        rmm_resource_alloc(payload, bytes + 512, 0, stream, (void **)&block);

    if (status == RMM_OK) {
        assert_true(tool_allows(block, bytes + 512));
        *ptr_out = block + 512;
    }
    return status;
}

static void
free_with_header(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    char *block = (char *)ptr - 512;

    assert_true(tool_allows(block, bytes + 512)); /* it may still write the header */
    rmm_resource_dealloc(payload, block, bytes + 512, 0, stream);
}

TEST_CASE_WITH(what_a_callback_allocates_is_its_own, NULL, expect_clean)
{
    rmm_resource_t *pool = make_pool(8 * MIB, 0);
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    rmm_resource_t *mr;
    char *ptr;

    options.alloc = with_header;
    options.dealloc = free_with_header;
    options.payload = pool;
    assert_ok(rmm_callback_resource_create(&options, &mr));
    ptr = take(mr, 1000, NULL);
    assert_int_equal(tool_state().regions, 1);
    assert_true(tool_allows(ptr - 512, 1512));
    assert_false(tool_allows(ptr + 1000, 1));
    give(mr, ptr, 1000, NULL);
    assert_int_equal(tool_state().regions, 0);
    rmm_resource_release(mr);
    rmm_resource_release(pool);
}

/* --- the planted overruns ------------------------------------------------------------------ */

static void ask_tool(void *context, const overrun_t *overrun, void *address)
{
    *(bool *)context = tool_allows(address, overrun->width);
}

TEST_CASE_WITH(the_tool_knows_every_planted_overrun, NULL, expect_clean)
{
    for (size_t i = 0; i < overruns_count; i++) {
        overrun_t twin = overruns_twin(&overruns[i]);
        bool is_allowed = true;

        assert_true(overruns_run(&overruns[i], ask_tool, &is_allowed));
        if (is_allowed) {
            fail_msg("%s is not known", overruns[i].name);
        }
        assert_true(overruns_run(&twin, ask_tool, &is_allowed));
        if (!is_allowed) {
            fail_msg("the twin of %s is taken for an error", overruns[i].name);
        }
        expect_clean_tool();
    }
}

/* --- many at once ---------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 300 };

static void *allocate_and_free(void *argument)
{
    rmm_resource_t *mr = argument;
    char *blocks[8] = {NULL};
    rmm_stream_t stream;

    assert_ok(rmm_stream_create(0, &stream));
    for (int i = 0; i < ROUNDS; i++) {
        size_t bytes = 1 + (size_t)(i * 37 % 5000);
        char **block = &blocks[i % 8];

        if (*block != NULL) {
            size_t then = 1 + (size_t)((i - 8) * 37 % 5000);

            assert_true(tool_allows(*block, then));
            give(mr, *block, then, stream);
        }
        *block = take(mr, bytes, stream);
        assert_true(tool_allows(*block, bytes));
        assert_false(tool_allows(*block + bytes, 1));
    }
    for (int i = ROUNDS - 8; i < ROUNDS; i++) {
        give(mr, blocks[i % 8], 1 + (size_t)(i * 37 % 5000), stream);
    }
    assert_ok(rmm_stream_destroy(stream));
    return NULL;
}

TEST_CASE_WITH(threads_annotate_in_order, NULL, expect_clean)
{
    rmm_resource_t *mr = make_pool(0, 0);
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_free, mr), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(tool_state().regions, 0);
    rmm_resource_release(mr);
}
