/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The aligned adaptor: RMM's cases by name, which of its rules are kept, and what it adds:
 * the alignment that a request itself asks for.
 */
#include "sim/adaptors/adaptor_harness.h"

#include <pthread.h>
#include <stdlib.h>

static rmm_resource_t *
make_aligned(rmm_resource_t *upstream, uint64_t alignment, uint64_t threshold)
{
    rmm_aligned_options_t options = RMM_ALIGNED_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.alignment_bytes = alignment;
    options.threshold_bytes = threshold;
    assert_ok(rmm_aligned_adaptor_create(upstream, &options, &mr));
    rmm_resource_release(upstream);
    return mr;
}

static bool is_accepted(uint64_t alignment)
{
    rmm_aligned_options_t options = RMM_ALIGNED_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr = NULL;
    rmm_status_t status;

    options.alignment_bytes = alignment;
    status = rmm_aligned_adaptor_create(cuda, &options, &mr);
    assert_true(status == RMM_OK || status == RMM_ERR_INVALID_ALIGNMENT);
    assert_true((status == RMM_OK) == (mr != NULL));
    rmm_resource_release(mr);
    rmm_resource_release(cuda);
    return status == RMM_OK;
}

TEST_CASE(throws_on_invalid_allocation_alignment)
{
    assert_false(is_accepted(255));
    assert_false(is_accepted(768));
    assert_false(is_accepted(UINT64_C(1) << 63));
    assert_true(is_accepted(256));
}

TEST_CASE(bumps_small_alignments_to_256_bytes)
{
    for (uint64_t alignment = 1; alignment <= 256; alignment *= 2) {
        mock_t *mock = make_mock();
        rmm_resource_t *mr = make_aligned(&mock->base, alignment, 0);
        uint64_t in_force = 0;
        void *ptr = take(mr, 8, NULL);

        assert_ok(rmm_aligned_get_alignment(mr, &in_force));
        assert_int_equal(in_force, 256);
        assert_int_equal((uintptr_t)ptr % 256, 0);
        assert_int_equal(mock->asked.bytes, 8);
        give(mr, ptr, 8, NULL);
        end_adaptor(mr);
    }
}

TEST_CASE(returns_its_alignment_and_threshold)
{
    rmm_resource_t *mr = make_aligned(make_cuda(), 4096, 65536);
    rmm_resource_t *cuda = make_cuda();
    uint64_t bytes = 7;

    assert_ok(rmm_aligned_get_alignment(mr, &bytes));
    assert_int_equal(bytes, 4096);
    assert_ok(rmm_aligned_get_threshold(mr, &bytes));
    assert_int_equal(bytes, 65536);
    assert_int_equal(rmm_aligned_get_threshold(mr, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_aligned_get_threshold(cuda, &bytes), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_aligned_get_alignment(NULL, &bytes), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(bytes, 65536);
    rmm_resource_release(cuda);
    end_adaptor(mr);
}

TEST_CASE(passes_the_default_alignment_through)
{
    mock_t *mock = make_mock();
    rmm_resource_t *mr = make_aligned(&mock->base, 0, 0);
    void *ptr;

    mock->address = 256;
    ptr = take(mr, 5, NULL);
    assert_int_equal((uintptr_t)ptr, 256);
    assert_int_equal(mock->asked.bytes, 5);
    give(mr, ptr, 5, NULL);
    assert_ptr_equal(mock->given_ptr, ptr);
    assert_int_equal(mock->given.bytes, 5);
    end_adaptor(mr);
}

TEST_CASE(passes_what_is_below_the_threshold_through)
{
    static const size_t sizes[] = {3, 65528};
    mock_t *mock = make_mock();
    rmm_resource_t *mr = make_aligned(&mock->base, 4096, 65536);

    for (size_t i = 0; i < 2; i++) {
        void *ptr;

        mock->address = 256 * (i + 1);
        ptr = take(mr, sizes[i], NULL);
        assert_int_equal((uintptr_t)ptr, mock->address);
        assert_int_equal(mock->asked.bytes, sizes[i]);
        give(mr, ptr, sizes[i], NULL);
        assert_int_equal(mock->given.bytes, sizes[i]);
    }
    end_adaptor(mr);
}

TEST_CASE(requests_the_padded_size_even_if_the_address_is_aligned)
{
    mock_t *mock = make_mock();
    rmm_resource_t *mr = make_aligned(&mock->base, 4096, 65536);
    void *ptr;

    mock->address = 4096;
    ptr = take(mr, 65536, NULL);
    assert_int_equal((uintptr_t)ptr, 4096);
    assert_int_equal(mock->asked.bytes, 69376);
    give(mr, ptr, 65536, NULL);
    assert_int_equal((uintptr_t)mock->given_ptr, 4096);
    assert_int_equal(mock->given.bytes, 69376);
    end_adaptor(mr);
}

TEST_CASE(aligns_the_upstream_address)
{
    mock_t *mock = make_mock();
    rmm_resource_t *mr = make_aligned(&mock->base, 4096, 65536);
    rmm_stream_t stream = make_stream(0);
    void *ptr;

    mock->address = 256;
    ptr = take(mr, 65536, stream);
    assert_int_equal((uintptr_t)ptr, 4096);
    assert_ptr_equal(mock->asked.stream, stream);
    assert_int_equal(mock->asked.bytes, 69376);
    give(mr, ptr, 65536, RMM_STREAM_PER_THREAD);
    assert_int_equal((uintptr_t)mock->given_ptr, 256);
    assert_int_equal(mock->given.bytes, 69376);
    assert_ptr_equal(mock->given.stream, RMM_STREAM_PER_THREAD);
    assert_ok(rmm_stream_destroy(stream));
    end_adaptor(mr);
}

TEST_CASE(aligns_multiple)
{
    static const struct {
        uintptr_t address, aligned;
        size_t bytes, asked;
    } rows[] = {
        {256, 4096, 65536, 69376},
        {69632 + 256, 73728, 73728, 77568},
        {147456 + 512, 151552, 77800, 81664},
    };
    mock_t *mock = make_mock();
    rmm_resource_t *mr = make_aligned(&mock->base, 4096, 65536);

    for (size_t i = 0; i < 3; i++) {
        mock->address = rows[i].address;
        assert_int_equal((uintptr_t)take(mr, rows[i].bytes, NULL), rows[i].aligned);
        assert_int_equal(mock->asked.bytes, rows[i].asked);
    }
    for (size_t i = 0; i < 3; i++) {
        give(mr, (void *)rows[i].aligned, rows[i].bytes, NULL);
        assert_int_equal((uintptr_t)mock->given_ptr, rows[i].address);
        assert_int_equal(mock->given.bytes, rows[i].asked);
    }
    end_adaptor(mr);
}

TEST_CASE(aligns_a_real_pointer)
{
    rmm_resource_t *mr = make_aligned(make_pool(0, 0), 4096, 65536);
    void *blocks[8];
    rmm_status_t status;

    for (size_t i = 0; i < 8; i++) {
        (void)take(mr, 256, NULL); /* moves what the pool hands out next */
        blocks[i] = take(mr, 65536 + 256 * i, NULL);
        assert_int_equal((uintptr_t)blocks[i] % 4096, 0);
        assert_cuda(
            rmm__driver(&status)->memset_async(blocks[i], 1, 65536 + 256 * i, NULL));
    }
    for (size_t i = 0; i < 8; i++) {
        give(mr, blocks[i], 65536 + 256 * i, NULL);
    }
    assert_int_equal(stats_of(mr).current_bytes, 8 * 256);
    assert_int_equal(stats_of(mr).invalid_free_count, 0);
    rmm_resource_release(mr);
    assert_int_equal(location_bytes(), 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

TEST_CASE(gives_the_alignment_that_a_request_asks_for)
{
    mock_t *mock = make_mock();
    rmm_resource_t *mr = make_aligned(&mock->base, 1024, 65536);
    void *ptr;

    mock->address = 256;
    assert_ok(rmm_resource_alloc(mr, 100, 512, NULL, &ptr)); /* below the threshold */
    assert_int_equal((uintptr_t)ptr, 512);
    assert_int_equal(mock->asked.bytes, 512 + 256);
    assert_int_equal(mock->asked.align, 256);
    rmm_resource_dealloc(mr, ptr, 100, 512, NULL);
    assert_int_equal(mock->given.bytes, 512 + 256);
    assert_ok(rmm_resource_alloc(mr, 65536, 4096, NULL, &ptr));
    assert_int_equal((uintptr_t)ptr, 4096);
    rmm_resource_dealloc(mr, ptr, 65536, 0, NULL); /* the alignment is remembered */
    assert_int_equal(mock->given.bytes, 69376);
    end_adaptor(mr);
}

TEST_CASE(counts_requested_bytes_not_those_of_upstream)
{
    rmm_resource_t *mr = make_aligned(make_cuda(), 4096, 0);
    void *ptr = take(mr, 1000, NULL);

    assert_int_equal(stats_of(mr).current_bytes, 1000);
    assert_int_equal(location_bytes(), 1000);
    assert_int_equal(location_count(), 1);
    assert_int_equal(
        stats_of(rmm_resource_upstream(mr)).current_bytes, 4096 + 4096 - 256);
    give(mr, ptr, 1000, NULL);
    end_adaptor(mr);
}

TEST_CASE(refuses_sizes_that_no_address_space_holds)
{
    rmm_resource_t *mr = make_aligned(make_cuda(), 4096, 0);
    void *mark = &mark;
    void *ptr = mark;

    for (size_t bytes = (size_t)PTRDIFF_MAX - 5000; bytes <= (size_t)PTRDIFF_MAX;
         bytes += 1000) {
        assert_int_equal(
            rmm_resource_alloc(mr, bytes, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
        assert_ptr_equal(ptr, mark);
    }
    assert_int_equal(
        rmm_resource_alloc(mr, (size_t)PTRDIFF_MAX, RMM_ALIGN_MAX, NULL, &ptr),
        RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(stats_of(mr).oom_count, 7);
    end_adaptor(mr);
}

TEST_CASE(gives_aligned_blocks_back_at_its_end)
{
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr = make_aligned(rmm_resource_retain(cuda), 4096, 0);

    (void)take(mr, 1000, NULL);
    (void)take(mr, 2000, NULL);
    rmm_resource_release(mr);
    assert_int_equal(stats_of(cuda).current_bytes, 0);
    assert_int_equal(location_bytes(), 0);
    assert_int_equal(location_count(), 0);
    rmm_resource_release(cuda);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

/* The second growth of the table would be host memory. */
TEST_CASE(what_upstream_refused_takes_no_room)
{
    mock_t *mock = make_mock();
    rmm_resource_t *mr = make_aligned(&mock->base, 4096, 0);
    void *block = take(mr, 1000, NULL);
    void *none;

    rmm__host_memory_fail(1);
    for (int i = 0; i < 1000; i++) {
        mock->failure = RMM_ERR_OUT_OF_MEMORY;
        mock->failures = 1;
        assert_int_equal(
            rmm_resource_alloc(mr, 1000, 0, NULL, &none), RMM_ERR_OUT_OF_MEMORY);
    }
    assert_false(rmm__host_memory_fail_struck());
    rmm__host_memory_fail(0);
    give(mr, block, 1000, NULL);
    end_adaptor(mr);
}

/* --- a block that is handed out again while it is being freed ------------------------ */

TEST_CASE(forgets_a_block_that_was_freed_elsewhere)
{
    mock_t *mock = make_mock();
    rmm_resource_t *mr = make_aligned(&mock->base, 4096, 0);
    void *ptr;

    mock->address = 256;
    ptr = take(mr, 1000, NULL);
    rmm__resource_dealloc(&mock->base, (void *)256, &mock->asked); /* behind its back */
    assert_ptr_equal(take(mr, 3000, NULL), ptr);
    assert_int_equal(stats_of(mr).current_count, 1);
    assert_int_equal(stats_of(mr).current_bytes, 3000);
    give(mr, ptr, 3000, NULL);
    assert_int_equal(stats_of(mr).current_count, 0);
    assert_int_equal(stats_of(mr).invalid_free_count, 0);
    end_adaptor(mr);
}

TEST_CASE(lets_a_block_be_reused_while_it_is_freed)
{
    static const size_t alignments[] = {256, 4096};

    for (size_t i = 0; i < 2; i++) {
        mock_t *mock = make_mock();
        rmm_resource_t *mr = make_aligned(&mock->base, alignments[i], 0);
        reuse_t reuse = {mr, 1000, NULL};
        void *ptr;

        mock->address = 256;
        mock->freed = reuse_on_another_thread;
        mock->argument = &reuse;
        ptr = take(mr, 1000, NULL);
        give(mr, ptr, 1000, NULL);
        assert_ptr_equal(reuse.ptr, ptr);
        assert_int_equal(stats_of(mr).current_bytes, 1000);
        give(mr, ptr, 1000, NULL);
        assert_int_equal(mock->deallocs, 2);
        end_adaptor(mr);
    }
}

TEST_CASE(survives_failing_requests_for_host_memory)
{
    bool struck = true;

    for (uint64_t nth = 1; struck; nth++) {
        rmm_aligned_options_t options = RMM_ALIGNED_OPTIONS_INIT;
        rmm_resource_t *cuda = make_cuda();
        rmm_resource_t *mr = NULL;
        void *ptr = NULL;
        rmm_status_t status;

        options.alignment_bytes = 512;
        rmm__host_memory_fail(nth);
        status = rmm_aligned_adaptor_create(cuda, &options, &mr);
        if (status == RMM_OK) {
            status = rmm_resource_alloc(mr, 1000, 0, NULL, &ptr);
        }
        struck = rmm__host_memory_fail_struck();
        rmm__host_memory_fail(0);
        assert_int_equal(status, struck ? RMM_ERR_OUT_OF_HOST_MEMORY : RMM_OK);
        assert_true(nth > 3 || struck);
        if (ptr != NULL) {
            give(mr, ptr, 1000, NULL);
        }
        rmm_resource_release(mr);
        rmm_resource_release(cuda);
        assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    }
}
