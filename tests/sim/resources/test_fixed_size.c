/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of one size: sizes, chunks, refusals, and that blocks change streams as safely as
 * the pool's.
 */
#include "sim/pool/pool_harness.h"

#include "driver/sim/control.h"

static void end(rmm_resource_t *mr)
{
    rmm_resource_release(mr);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

TEST_CASE(takes_whole_chunks_when_first_needed)
{
    rmm_resource_t *mr = make_fixed(1000, 4); /* rounded up to 1024 */
    void *blocks[5];

    assert_int_equal(stats_of(mr).reserved_bytes, 0);
    for (int i = 0; i < 4; i++) {
        blocks[i] = take(mr, 1 + 300 * (size_t)i, NULL);
        assert_int_equal(stats_of(mr).reserved_bytes, 4096);
        assert_int_equal(((char *)blocks[i] - (char *)blocks[0]) % 1024, 0);
    }
    blocks[4] = take(mr, 1024, NULL);
    assert_int_equal(stats_of(mr).reserved_bytes, 8192);
    for (int i = 0; i < 4; i++) {
        give(mr, blocks[i], 1 + 300 * (size_t)i, NULL);
    }
    give(mr, blocks[4], 1024, NULL);
    assert_int_equal(stats_of(mr).current_bytes, 0);
    assert_int_equal(stats_of(mr).invalid_free_count, 0);
    end(mr);
}

TEST_CASE(a_block_size_or_chunk_of_zero_is_its_default)
{
    rmm_resource_t *no_size = make_fixed(0, 3);
    rmm_resource_t *no_count = make_fixed(4096, 0);

    give(no_size, take(no_size, MIB, NULL), MIB, NULL); /* never NULL */
    assert_int_equal(stats_of(no_size).reserved_bytes, 3 * MIB);
    give(no_count, take(no_count, 4096, NULL), 4096, NULL);
    assert_int_equal(stats_of(no_count).reserved_bytes, 128 * 4096);
    rmm_resource_release(no_count);
    end(no_size);
}

/* Also where a chunk is smaller than the alignment, and a block no multiple of it. */
TEST_CASE(gives_larger_alignments_on_request)
{
    static const uint64_t block_bytes[] = {256, 1000, 4096, 3 * MIB};

    for (size_t i = 0; i < 4; i++) {
        for (size_t align = 256; align <= RMM_ALIGN_MAX; align *= 2) {
            rmm_resource_t *mr = make_fixed(block_bytes[i], 2);
            void *blocks[5] = {NULL};

            for (int k = 0; k < 5; k++) {
                assert_ok(rmm_resource_alloc(mr, 200, align, NULL, &blocks[k]));
                assert_int_equal((uintptr_t)blocks[k] % align, 0);
            }
            give(mr, take(mr, 100, NULL), 100, NULL);
            for (int k = 0; k < 5; k++) {
                rmm_resource_dealloc(mr, blocks[k], 200, align, NULL);
            }
            assert_int_equal(stats_of(mr).invalid_free_count, 0);
            end(mr);
        }
    }
}

TEST_CASE(has_the_defaults_of_its_header)
{
    rmm_resource_t *mr = make_fixed(0, 0);

    give(mr, take(mr, 1, NULL), 1, NULL);
    assert_int_equal(stats_of(mr).reserved_bytes, 128 * MIB);
    end(mr);
}

TEST_CASE(refuses_more_than_a_block_and_names_both_sizes)
{
    rmm_resource_t *mr = make_fixed(4096, 2);
    void *ptr = NULL;

    assert_int_equal(
        rmm_resource_alloc(mr, 4097, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(rmm_last_error_message(), "4097"));
    assert_non_null(strstr(rmm_last_error_message(), "4096"));
    assert_null(ptr);
    assert_int_equal(stats_of(mr).oom_count, 1);
    end(mr);
}

TEST_CASE(refuses_sizes_that_overflow)
{
    const uint64_t wrong[][2] = {
        {UINT64_MAX, 1},
        {UINT64_MAX, UINT64_MAX},
        {(uint64_t)1 << 32, 1},
        {4096, UINT64_MAX},
        {4096, ENGINE_RUN_BYTES / 4096 + 1},
        {4096, (uint64_t)1 << 52}};
    rmm_resource_t *cuda = make_cuda();

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        rmm_fixed_size_options_t options = RMM_FIXED_SIZE_OPTIONS_INIT;
        rmm_resource_t *mr = NULL;

        options.block_bytes = wrong[i][0];
        options.blocks_per_chunk = wrong[i][1];
        assert_int_equal(
            rmm_fixed_size_resource_create(cuda, &options, &mr),
            RMM_ERR_INVALID_ARGUMENT);
        assert_null(mr);
    }
    rmm_resource_release(cuda);
}

TEST_CASE(takes_the_largest_block_and_the_largest_chunk)
{
    const uint64_t largest[][2] = {
        {ENGINE_BLOCK_BYTES, 1}, {4096, ENGINE_RUN_BYTES / 4096}};
    rmm_resource_t *cuda = make_cuda();

    for (size_t i = 0; i < sizeof(largest) / sizeof(largest[0]); i++) {
        rmm_fixed_size_options_t options = RMM_FIXED_SIZE_OPTIONS_INIT;
        rmm_resource_t *mr = NULL;

        options.block_bytes = largest[i][0];
        options.blocks_per_chunk = largest[i][1];
        assert_int_equal(rmm_fixed_size_resource_create(cuda, &options, &mr), RMM_OK);
        rmm_resource_release(mr);
    }
    rmm_resource_release(cuda);
}

static uint64_t device_free(void)
{
    uint64_t free_bytes, total_bytes;

    assert_cuda(sim_driver()->memory_info(&free_bytes, &total_bytes));
    return free_bytes;
}

TEST_CASE(takes_a_smaller_chunk_if_the_device_has_no_more)
{
    uint64_t blocks = device_free() / (KIB * MIB);
    rmm_resource_t *mr = make_fixed(KIB * MIB, 2 * blocks);

    give(mr, take(mr, 1, NULL), 1, NULL);
    /* all blocks do not fit, because of the barrier's block */
    assert_int_equal(stats_of(mr).reserved_bytes, blocks / 2 * KIB * MIB);
    end(mr);
}

TEST_CASE(takes_a_block_or_nothing)
{
    rmm_resource_t *cuda = make_cuda();
    uint64_t bytes = device_free() - 2 * MIB;
    void *most = take(cuda, bytes, NULL);
    rmm_resource_t *mr = make_fixed(4 * MIB, 0);
    void *ptr = NULL;

    assert_int_equal(rmm_resource_alloc(mr, 1, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(rmm_sim_allocated_bytes(0), bytes);
    give(cuda, most, bytes, NULL);
    rmm_resource_release(cuda);
    end(mr);
}

TEST_CASE(gives_free_chunks_back_when_trimmed)
{
    rmm_resource_t *mr = make_fixed(MIB, 4);

    give(mr, take(mr, MIB, NULL), MIB, NULL);
    assert_ok(rmm_resource_trim(mr, 0));
    assert_int_equal(stats_of(mr).reserved_bytes, 0);
    end(mr);
}

/* Two streams that pass few blocks to and fro: each seed another order of the work. */
TEST_CASE(never_mixes_up_streams)
{
    uint64_t mixups = 0;

    for (uint64_t seed = 1; seed <= SEEDS / 4; seed++) {
        rmm_resource_t *mr = make_fixed(4 * KIB, 2);
        rmm_stream_t streams[2] = {make_stream(1), make_stream(1)};

        rmm__sim_reseed(seed);
        for (uint64_t i = 0; i < 60; i++) {
            rmm_stream_t stream = streams[(i + seed * i / 3) % 2];
            size_t bytes = 8 * (size_t)(1 + i * 37 % 512);
            void *block = take(mr, bytes, stream);

            launch_fill(block, bytes, seed * 1000 + i, stream);
            launch_check(block, bytes, seed * 1000 + i, &mixups, stream);
            give(mr, block, bytes, stream);
        }
        assert_cuda(sim_driver()->stream_destroy(streams[0]));
        assert_cuda(sim_driver()->stream_destroy(streams[1]));
        end(mr);
        assert_int_equal(mixups, 0);
    }
}
