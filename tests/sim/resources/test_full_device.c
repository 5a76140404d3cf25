/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources that have all memory of a device, and devices with little memory. What the library
 * needs for itself is taken first: so a refusal and a trim leave the captures of others whole, and
 * the memory that is left is in one piece.
 */
#include "sim/pool/pool_harness.h"

#include "driver/sim/control.h"

#define DEVICE (64 * MIB)

/* Each can have all of the device. */
static const char *const specs[] = {
    "pool",
    "pool:100%",
    "pool_virtual",
    "pool_virtual:100%",
    "arena:100%",
    "fixed_size",
    "fixed_size:3MiB",
    "binning",
    "binning:100%",
    "async",
    "async:100%",
    "async:wait",
    "async_managed",
    "pool_managed",
    "pool_managed:100%",
    "limiting:100%+pool:100%",
    "statistics+tracking+pool:100%"};

static rmm_resource_t *make(const char *spec)
{
    rmm_resource_t *mr;

    assert_ok(rmm_resource_create_from_spec(spec, &mr));
    return mr;
}

static void end(rmm_resource_t *mr, int device)
{
    rmm_resource_release(mr);
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(rmm_sim_allocated_bytes(device), 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

/* All blocks that it has, of 3 MiB. */
static uint32_t
take_until_refused(rmm_resource_t *mr, rmm_stream_t stream, void **blocks)
{
    uint32_t count = 0;

    while (count < DEVICE / MIB &&
           rmm_resource_alloc(mr, 3 * MIB, 0, stream, &blocks[count]) == RMM_OK) {
        count++;
    }
    assert_true(count < DEVICE / MIB);
    return count;
}

static void give_blocks(
    rmm_resource_t *mr, rmm_stream_t stream, void *const *blocks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        give(mr, blocks[i], 3 * MIB, stream);
    }
}

static rmm_sim_graph_t begin_and_end(rmm_resource_t *mr, rmm_stream_t other)
{
    void *blocks[DEVICE / MIB];
    rmm_stream_t capturing = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_sim_graph_t graph;
    uint32_t count;

    assert_cuda(rmm_sim_begin_capture(capturing, 0));
    for (int i = 0; i < 3; i++) {
        count = take_until_refused(mr, other, blocks);
        (void)!rmm_resource_trim(mr, 0); /* an arena cannot */
        give_blocks(mr, other, blocks, count);
        (void)!rmm_resource_trim(mr, 0);
    }
    assert_cuda(rmm_sim_end_capture(capturing, &graph));
    assert_cuda(sim_driver()->stream_destroy(capturing));
    return graph;
}

/* A stream that does not capture runs out of memory, and the resource is trimmed. */
static void expect_capture_whole(rmm_resource_t *mr)
{
    rmm_stream_t other = make_stream(RMM_STREAM_NON_BLOCKING);

    give(mr, take(mr, MIB, other), MIB, other);
    assert_cuda(rmm_sim_graph_destroy(begin_and_end(mr, other)));
    assert_cuda(sim_driver()->stream_destroy(other));
}

TEST_CASE(a_refusal_and_a_trim_leave_captures_whole)
{
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        rmm_resource_t *mr = make(specs[i]);

        expect_capture_whole(mr);
        end(mr, 0);
    }
}

TEST_CASE(the_same_on_a_second_device)
{
    assert_cuda(rmm__sim_device_set(1));
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        rmm_resource_t *mr = make(specs[i]);

        expect_capture_whole(mr);
        assert_int_equal(rmm_sim_allocated_bytes(0), 0);
        end(mr, 1);
    }
    assert_cuda(rmm__sim_device_set(0));
}

/* By the C functions: a hundred percent, and what cudaMemGetInfo says less the library's part. */
TEST_CASE(a_pool_of_a_hundred_percent_leaves_captures_whole)
{
    for (int is_virtual = 0; is_virtual < 2; is_virtual++) {
        rmm_resource_t *mr;
        size_t bytes;

        assert_ok(rmm_percent_of_free_device_memory(100, &bytes));
        assert_true(bytes >= DEVICE - 2 * MIB);
        mr = is_virtual ? make_virtual_pool(bytes, 0) : make_pool(bytes, 0);
        expect_capture_whole(mr);
        end(mr, 0);
    }
}

/* An initial size of all there is is served, too; only then is no block kept. */
TEST_CASE(a_pool_can_have_the_very_last_of_a_device)
{
    rmm_resource_t *mr = make_pool(DEVICE, DEVICE);

    give(mr, take(mr, DEVICE, NULL), DEVICE, NULL);
    assert_int_equal(rmm_sim_allocated_bytes(0), DEVICE);
    end(mr, 0);
    mr = make_pool(0, 0);
    give(mr, take(mr, DEVICE, NULL), DEVICE, NULL);
    end(mr, 0);
    mr = make_virtual_pool(DEVICE, 0);
    give(mr, take(mr, DEVICE, NULL), DEVICE, NULL);
    end(mr, 0);
    mr = make("async");
    give(mr, take(mr, DEVICE - 2 * MIB, NULL), DEVICE - 2 * MIB, NULL);
    end(mr, 0);
}

/* The first keeps the block, so that the second one finds it. */
TEST_CASE(two_pools_on_one_full_device_leave_captures_whole)
{
    rmm_resource_t *first = make("pool:50%");
    rmm_resource_t *second = make("pool:100%");

    expect_capture_whole(second);
    expect_capture_whole(first);
    rmm_resource_release(first);
    expect_capture_whole(second);
    end(second, 0);
}

/* Another program has the device, and leaves it to the pool later. */
TEST_CASE(a_block_that_could_not_be_kept_is_kept_later)
{
    rmm_resource_t *mr;
    void *others, *last;

    assert_cuda(sim_driver()->mem_alloc(&others, DEVICE - 4 * MIB));
    mr = make_pool(2 * MIB, 0);
    assert_cuda(sim_driver()->mem_alloc(&last, 2 * MIB - 512));
    expect_capture_whole(mr);
    assert_cuda(sim_driver()->mem_free(others));
    assert_cuda(sim_driver()->mem_free(last));
    expect_capture_whole(mr);
    end(mr, 0);
}

/* --- in one piece --------------------------------------------------------------------- */

/* What was held in smaller parts is served as one when all is free. */
static void expect_all_in_one_piece(rmm_resource_t *mr)
{
    void *blocks[30];

    give(mr, take(mr, 25 * MIB, NULL), 25 * MIB, NULL);
    give(mr, take(mr, 44 * MIB, NULL), 44 * MIB, NULL);
    for (int i = 0; i < 30; i++) {
        blocks[i] = take(mr, 2 * MIB, NULL);
    }
    for (int i = 0; i < 30; i++) {
        give(mr, blocks[i], 2 * MIB, NULL);
    }
    give(mr, take(mr, 60 * MIB, NULL), 60 * MIB, NULL);
}

TEST_CASE(the_block_for_barriers_never_splits_the_memory)
{
    static const char *const words[] = {"cuda",         "managed",      "pool",
                                        "pool:0:62MiB", "pool_managed", "pool_virtual",
                                        "async:wait"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        rmm_resource_t *mr = make(words[i]);

        expect_all_in_one_piece(mr);
        end(mr, 0);
    }
}

/* The GPU maps pages: what lies between two allocations is no reason to refuse one. */
TEST_CASE(small_allocations_of_others_do_not_split_it_either)
{
    void *large[4], *small[4];
    rmm_resource_t *mr;

    for (int i = 0; i < 4; i++) {
        assert_cuda(sim_driver()->mem_alloc(&large[i], 15 * MIB));
        assert_cuda(sim_driver()->mem_alloc(&small[i], 1));
    }
    for (int i = 0; i < 4; i++) {
        assert_cuda(sim_driver()->mem_free(large[i]));
    }
    mr = make("pool");
    give(mr, take(mr, 60 * MIB, NULL), 60 * MIB, NULL);
    rmm_resource_release(mr);
    for (int i = 0; i < 4; i++) {
        assert_cuda(sim_driver()->mem_free(small[i]));
    }
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

/* --- little memory -------------------------------------------------------------------- */

/* With default options. */
TEST_CASE(all_resources_serve_a_device_with_little_memory)
{
    static const char *const words[] = {
        "cuda",    "pool",  "pool_virtual", "arena",         "binning", "fixed_size",
        "managed", "async", "pool_managed", "async_managed", "pinned",  "pool_pinned"};
    static const size_t free_bytes[] = {64 * MIB, 16 * MIB, 5 * MIB};

    for (size_t i = 0; i < 3; i++) {
        void *others = NULL;

        if (free_bytes[i] < DEVICE) {
            assert_cuda(sim_driver()->mem_alloc(&others, DEVICE - free_bytes[i]));
        }
        for (size_t j = 0; j < sizeof(words) / sizeof(words[0]); j++) {
            rmm_resource_t *mr = make(words[j]);

            give(mr, take(mr, MIB, NULL), MIB, NULL);
            give(mr, take(mr, 1000, NULL), 1000, NULL);
            rmm_resource_release(mr);
        }
        assert_cuda(sim_driver()->mem_free(others));
    }
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

TEST_CASE(blocks_of_one_size_fill_a_small_device)
{
    rmm_resource_t *mr = make("fixed_size");
    void *blocks[64];
    uint32_t count = 0;

    while (count < 64 &&
           rmm_resource_alloc(mr, MIB, 0, NULL, &blocks[count]) == RMM_OK) {
        count++;
    }
    assert_int_equal(count, 63); /* the barrier's block is a part of the last one */
    assert_int_equal(stats_of(mr).reserved_bytes, 63 * MIB);
    while (count > 0) {
        give(mr, blocks[--count], MIB, NULL);
    }
    end(mr, 0);
}

/* --- a wait before a refusal ---------------------------------------------------------- */

static rmm_resource_t *make_async_kind(int kind, uint32_t flags)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;
    rmm_resource_t *mr, *view;

    if (kind == 2) {
        assert_ok(rmm_async_managed_resource_create_with_flags(flags, &mr));
        return mr;
    }
    options.flags = kind == 0 ? flags : 0;
    assert_ok(rmm_async_resource_create(&options, &mr));
    if (kind == 0) {
        return mr;
    }
    assert_ok(rmm_async_view_resource_create_with_flags(
        rmm_async_resource_pool_handle(mr), flags, &view));
    rmm_resource_release(mr);
    return view;
}

TEST_CASE(a_wait_before_a_refusal_serves_what_was_freed)
{
    for (int kind = 0; kind < 3; kind++) {
        for (int on_stream = 0; on_stream < 2; on_stream++) {
            rmm_resource_t *mr = make_async_kind(kind, RMM_ASYNC_WAIT_BEFORE_REFUSAL);
            rmm_stream_t stream =
                on_stream ? make_stream(RMM_STREAM_NON_BLOCKING) : NULL;
            rmm_stream_t capturing = make_stream(RMM_STREAM_NON_BLOCKING);
            rmm_sim_graph_t graph;
            void *ptr;

            assert_cuda(rmm_sim_begin_capture(capturing, 0));
            give(mr, take(mr, 33 * MIB, stream), 33 * MIB, stream);
            give(mr, take(mr, 60 * MIB, stream), 60 * MIB, stream);
            assert_int_equal(
                rmm_resource_alloc(mr, 2 * DEVICE, 0, stream, &ptr),
                RMM_ERR_OUT_OF_MEMORY);
            assert_cuda(rmm_sim_end_capture(capturing, &graph));
            assert_cuda(rmm_sim_graph_destroy(graph));
            assert_cuda(sim_driver()->stream_destroy(capturing));
            if (on_stream) {
                assert_cuda(sim_driver()->stream_destroy(stream));
            }
            end(mr, 0);
        }
    }
}

/* What was freed in stream order is of use only behind a synchronise. */
TEST_CASE(a_retry_and_a_wait_serve_what_was_freed)
{
    static const char *const again[] = {
        "retry+async", "retry:50ms+async", "wait+async",
        "wait+statistics+async_managed"};

    for (size_t i = 0; i < sizeof(again) / sizeof(again[0]); i++) {
        for (int on_stream = 0; on_stream < 2; on_stream++) {
            rmm_resource_t *mr = make(again[i]);
            rmm_stream_t stream =
                on_stream ? make_stream(RMM_STREAM_NON_BLOCKING) : NULL;
            rmm_stream_t capturing = make_stream(RMM_STREAM_NON_BLOCKING);
            rmm_sim_graph_t graph;

            assert_cuda(rmm_sim_begin_capture(capturing, 0));
            give(mr, take(mr, 33 * MIB, stream), 33 * MIB, stream);
            give(mr, take(mr, 60 * MIB, stream), 60 * MIB, stream);
            assert_cuda(rmm_sim_end_capture(capturing, &graph));
            assert_cuda(rmm_sim_graph_destroy(graph));
            assert_cuda(sim_driver()->stream_destroy(capturing));
            if (on_stream) {
                assert_cuda(sim_driver()->stream_destroy(stream));
            }
            end(mr, 0);
        }
    }
}

static void *take_a_little(void *mr)
{
    void *ptr = take(mr, 256, NULL);

    return ptr;
}

/* A block of a thread that has ended counts as one of a thread that may free it, so the wait itself
 * does not synchronise. Nothing is freed after the request has begun to wait. */
TEST_CASE(a_wait_over_a_retry_ends_by_a_synchronise)
{
    rmm_resource_t *mr = make("wait:60000ms+retry+async");
    void *large = take(mr, 48 * MIB, NULL), *little;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, take_a_little, mr), 0);
    assert_int_equal(pthread_join(thread, &little), 0);
    give(mr, large, 48 * MIB, NULL);
    give(mr, take(mr, 56 * MIB, NULL), 56 * MIB, NULL);
    give(mr, little, 256, NULL);
    end(mr, 0);
}

TEST_CASE(without_it_the_message_says_that_a_synchronise_helps)
{
    for (int kind = 0; kind < 3; kind++) {
        rmm_resource_t *mr = make_async_kind(kind, 0);
        void *ptr;

        give(mr, take(mr, 33 * MIB, NULL), 33 * MIB, NULL);
        assert_int_equal(
            rmm_resource_alloc(mr, 60 * MIB, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
        assert_non_null(strstr(rmm_last_error_message(), "synchronise, and try again"));
        assert_ok(rmm_stream_synchronize(NULL));
        give(mr, take(mr, 60 * MIB, NULL), 60 * MIB, NULL);
        end(mr, 0);
    }
}

/* Nothing is unused, so a synchronise would not help. */
TEST_CASE(a_refusal_with_nothing_freed_gives_no_advice)
{
    rmm_resource_t *mr = make("async");
    void *ptr;

    assert_int_equal(
        rmm_resource_alloc(mr, 2 * DEVICE, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_null(strstr(rmm_last_error_message(), "synchronise"));
    end(mr, 0);
}

TEST_CASE(flags_make_views_and_managed_ones_differ)
{
    rmm_resource_t *plain = make("async_managed");
    rmm_resource_t *waits = make("async_managed:wait");
    rmm_resource_t *mr = NULL;

    assert_false(rmm_resource_is_equal(plain, waits));
    rmm_resource_release(plain);
    rmm_resource_release(waits);
    assert_int_equal(
        rmm_async_managed_resource_create_with_flags(1, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_async_view_resource_create_with_flags(&mr, 4, &mr),
        RMM_ERR_INVALID_ARGUMENT);
    assert_null(mr);
}

/* --- a buffer that grows -------------------------------------------------------------- */

/* The new buffer is taken while the old one is live. */
static void expect_little_beyond_the_peak(double factor, uint64_t growths_most)
{
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr;
    size_t old_bytes = 0;
    void *old = NULL;

    assert_ok(rmm_pool_resource_create(cuda, NULL, &mr));
    for (double bytes = 64 * 1024; bytes < 24e6; bytes *= factor) {
        void *fresh = take(mr, (size_t)bytes, NULL);

        give(mr, old, old_bytes, NULL);
        old = fresh;
        old_bytes = (size_t)bytes;
    }
    assert_true(stats_of(cuda).peak_bytes <= 2 * stats_of(mr).peak_bytes);
    assert_true(stats_of(cuda).total_count <= growths_most);
    give(mr, old, old_bytes, NULL);
    rmm_resource_release(cuda);
    end(mr, 0);
}

TEST_CASE(a_buffer_that_grows_leaves_no_trail_of_chunks)
{
    expect_little_beyond_the_peak(1.01, 60);
    expect_little_beyond_the_peak(1.1, 40);
    expect_little_beyond_the_peak(1.5, 20);
}
