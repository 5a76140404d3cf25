/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binning: which bin gets what, that blocks find their way back whatever was added since,
 * and that bins may be added while others allocate.
 */
#include "sim/pool/pool_harness.h"

#include <pthread.h>

#include "base/resource_impl.h"
#include "core/host_memory.h"

#define THREADS 3

static rmm_resource_t *make_binning(uint32_t min_exponent, uint32_t max_exponent)
{
    rmm_binning_options_t options = RMM_BINNING_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr;

    options.min_exponent = min_exponent;
    options.max_exponent = max_exponent;
    assert_ok(rmm_binning_resource_create(cuda, &options, &mr));
    rmm_resource_release(cuda);
    return mr;
}

static void end(rmm_resource_t *mr)
{
    rmm_resource_release(mr);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

static uint64_t location_bytes(void)
{
    return rmm__location_live(0).bytes;
}

static uint64_t place_live(void)
{
    rmm_accounting_sums_t sums;

    rmm__location_sums(0, &sums);
    return rmm_live_count(sums.total_count, sums.freed_count);
}

TEST_CASE(uses_the_smallest_bin_that_is_large_enough)
{
    rmm_resource_t *mr = make_binning(0, 0);
    rmm_resource_t *small = make_pool(0, 0);
    rmm_resource_t *large = make_pool(0, 0);
    uint64_t before = location_bytes();
    void *in_small;
    void *in_large;
    void *above;

    assert_ok(rmm_binning_resource_add_bin(mr, 4096, large));
    assert_ok(rmm_binning_resource_add_bin(mr, 1000, small)); /* 1024 */
    in_small = take(mr, 1024, NULL);
    in_large = take(mr, 1025, NULL);
    above = take(mr, 4097, NULL);
    assert_int_equal(stats_of(small).current_bytes, 1024);
    assert_int_equal(stats_of(large).current_bytes, 1025);
    assert_int_equal(stats_of(mr).current_bytes, 1024 + 1025 + 4097);
    assert_int_equal(location_bytes() - before, 1024 + 1025 + 4097);
    give(mr, in_small, 1024, NULL);
    give(mr, in_large, 1025, NULL);
    give(mr, above, 4097, NULL);
    assert_int_equal(stats_of(small).current_bytes, 0);
    assert_int_equal(stats_of(large).current_bytes, 0);
    assert_int_equal(location_bytes(), before);
    rmm_resource_release(small);
    rmm_resource_release(large);
    end(mr);
}

TEST_CASE(gives_a_block_back_to_where_it_came_from)
{
    rmm_resource_t *mr = make_binning(0, 0);
    rmm_resource_t *late = make_pool(0, 0);
    void *early = take(mr, 1000, NULL);

    assert_ok(rmm_binning_resource_add_bin(mr, 1024, late));
    give(mr, early, 1000, NULL);
    assert_int_equal(stats_of(late).invalid_free_count, 0);
    assert_int_equal(stats_of(mr).invalid_free_count, 0);
    assert_int_equal(stats_of(mr).current_bytes, 0);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    rmm_resource_release(late);
    end(mr);
}

TEST_CASE(asks_one_resource_for_all_requests_of_no_bytes)
{
    rmm_resource_t *mr = make_binning(0, 0);
    rmm_resource_t *first = make_pool(0, 0);
    rmm_resource_t *smaller = make_pool(0, 0);
    uint64_t before = place_live();
    void *ptr;

    assert_ok(rmm_binning_resource_add_bin(mr, 4096, first));
    assert_ok(rmm_resource_alloc(mr, 0, 0, NULL, &ptr));
    assert_ok(rmm_binning_resource_add_bin(mr, 1024, smaller));
    assert_ok(rmm_resource_alloc(mr, 0, 0, NULL, &ptr));
    assert_int_equal(stats_of(first).current_count, 2);
    rmm_resource_dealloc(mr, NULL, 0, 0, NULL);
    assert_int_equal(stats_of(first).current_count, 1);
    assert_int_equal(stats_of(smaller).total_count, 0);
    assert_int_equal(place_live() - before, 1);
    end(mr); /* with one out */
    assert_int_equal(stats_of(first).current_count, 0);
    assert_int_equal(place_live(), before);
    rmm_resource_release(first);
    rmm_resource_release(smaller);
}

TEST_CASE(makes_bins_of_a_range_of_powers)
{
    rmm_resource_t *mr = make_binning(18, 31);
    void *ptr;

    assert_int_equal(rmm_sim_allocated_bytes(0), 0); /* nothing before it is needed */
    for (int e = 18; e <= 31; e++) {
        size_t bytes = (size_t)1 << e;

        give(mr, take(mr, bytes, NULL), bytes, NULL);
    }
    assert_ok(rmm_resource_trim(mr, 0));
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_ok(rmm_resource_alloc(mr, 0, 0, NULL, &ptr));
    assert_null(ptr);
    rmm_resource_dealloc(mr, NULL, 0, 0, NULL);
    assert_int_equal(stats_of(mr).current_count, 0);
    end(mr);
}

TEST_CASE(refuses_exponents_out_of_range)
{
    const uint32_t wrong[][2] = {{7, 20}, {20, 19}, {18, 32}, {18, UINT32_MAX}, {9, 0}};
    rmm_resource_t *cuda = make_cuda();

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        rmm_binning_options_t options = RMM_BINNING_OPTIONS_INIT;
        rmm_resource_t *mr = NULL;

        options.min_exponent = wrong[i][0];
        options.max_exponent = wrong[i][1];
        assert_int_equal(
            rmm_binning_resource_create(cuda, &options, &mr), RMM_ERR_INVALID_ARGUMENT);
        assert_null(mr);
    }
    rmm_resource_release(cuda);
}

TEST_CASE(refuses_bins_that_cannot_be)
{
    rmm_resource_t *mr = make_binning(10, 11);
    rmm_resource_t *host, *above;

    assert_ok(rmm_host_resource_create(&host));
    assert_int_equal(
        rmm_binning_resource_add_bin(mr, 0, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_binning_resource_add_bin(mr, (size_t)1 << 32, NULL),
        RMM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(rmm_last_error_message(), "use a pool"));
    assert_int_equal(
        rmm_binning_resource_add_bin(mr, SIZE_MAX, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_binning_resource_add_bin(mr, 4096, host), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_binning_resource_add_bin(mr, 4096, mr), RMM_ERR_INVALID_ARGUMENT);
    assert_ok(rmm_statistics_adaptor_create(mr, NULL, &above));
    assert_int_equal(
        rmm_binning_resource_add_bin(mr, 4096, above), RMM_ERR_INVALID_ARGUMENT);
    rmm_resource_release(above);
    above = make_binning(10, 11);
    assert_ok(rmm_binning_resource_add_bin(above, 4096, mr));
    assert_int_equal(
        rmm_binning_resource_add_bin(mr, 8192, above), RMM_ERR_INVALID_ARGUMENT);
    rmm_resource_release(above);
    assert_int_equal(
        rmm_binning_resource_add_bin(host, 4096, NULL), RMM_ERR_INVALID_ARGUMENT);
    rmm_resource_release(host);
    end(mr);
}

TEST_CASE(takes_a_pool_for_a_bin_of_any_size)
{
    const size_t sizes[] = {(size_t)1 << 31, (size_t)1 << 32, (size_t)1 << 40};
    rmm_resource_t *mr = make_binning(10, 11);
    rmm_resource_t *pool = make_pool(0, 0);

    for (size_t i = 0; i < 3; i++) {
        assert_ok(rmm_binning_resource_add_bin(mr, sizes[i], pool));
    }
    for (size_t i = 0; i < 2; i++) {
        void *ptr = take(mr, sizes[i], NULL);

        assert_int_equal(stats_of(pool).current_bytes, sizes[i]);
        give(mr, ptr, sizes[i], NULL);
    }
    rmm_resource_release(pool);
    end(mr);
}

TEST_CASE(leaves_an_existing_bin_as_it_is)
{
    rmm_resource_t *mr = make_binning(0, 0);
    rmm_resource_t *first = make_pool(0, 0);
    rmm_resource_t *second = make_pool(0, 0);
    void *ptr;

    assert_ok(rmm_binning_resource_add_bin(mr, 1024, first));
    ptr = take(mr, 1000, NULL);
    assert_ok(rmm_binning_resource_add_bin(mr, 1024, second));
    assert_ok(rmm_binning_resource_add_bin(mr, 1000, NULL)); /* rounded up: the same */
    assert_int_equal(stats_of(first).current_bytes, 1000);
    give(mr, ptr, 1000, NULL);
    give(mr, take(mr, 1000, NULL), 1000, NULL);
    assert_int_equal(stats_of(first).total_count, 2);
    assert_int_equal(stats_of(second).total_count, 0);
    rmm_resource_release(first);
    rmm_resource_release(second);
    end(mr);
}

TEST_CASE(forgets_a_block_that_was_freed_at_its_bin)
{
    rmm_resource_t *mr = make_binning(0, 0);
    rmm_resource_t *bin = make_pool(0, 0);
    void *ptr;

    assert_ok(rmm_binning_resource_add_bin(mr, 4096, bin));
    ptr = take(mr, 1000, NULL);
    give(bin, ptr, 1000, NULL); /* behind its back */
    assert_ptr_equal(take(mr, 1001, NULL), ptr);
    assert_int_equal(stats_of(mr).current_count, 1);
    assert_int_equal(stats_of(mr).current_bytes, 1001);
    give(mr, ptr, 1001, NULL);
    assert_int_equal(stats_of(mr).current_count, 0);
    assert_int_equal(stats_of(mr).invalid_free_count, 0);
    rmm_resource_release(bin);
    end(mr);
}

TEST_CASE(frees_what_is_out_at_its_end)
{
    uint64_t before = location_bytes();
    rmm_resource_t *mr = make_binning(10, 12);

    take(mr, 1000, NULL);
    take(mr, MIB, NULL);
    end(mr);
    assert_int_equal(location_bytes(), before);
}

/* An adaptor passes them on, so that it, not the binning resource, is asked for them. */
TEST_CASE(forgets_allocations_of_no_bytes_made_through_an_adaptor)
{
    rmm_resource_t *mr = make_binning(10, 12);
    rmm_resource_t *adaptor;
    uint64_t before = place_live();
    void *block = take(mr, 1000, NULL);
    void *nothing;

    assert_ok(rmm_statistics_adaptor_create(mr, NULL, &adaptor));
    assert_ok(rmm_resource_alloc(adaptor, 0, 0, NULL, &nothing));
    assert_ok(rmm_resource_alloc(mr, 0, 0, NULL, &nothing));
    assert_int_equal(place_live() - before, 3);
    assert_non_null(block); /* is out as well */
    rmm_resource_release(adaptor);
    end(mr);
    assert_int_equal(place_live(), before);
}

TEST_CASE(survives_every_failing_request)
{
    bool struck = true;

    for (uint64_t n = 1; struck; n++) {
        rmm_binning_options_t options = RMM_BINNING_OPTIONS_INIT;
        rmm_resource_t *cuda = make_cuda();
        rmm_resource_t *mr = NULL;
        rmm_status_t status;
        void *ptr;

        options.max_exponent = 10;
        rmm__host_memory_fail(n);
        status = rmm_binning_resource_create(cuda, &options, &mr);
        if (status == RMM_OK) {
            status = rmm_resource_alloc(mr, 1000, 0, NULL, &ptr);
        }
        if (status == RMM_OK) {
            give(mr, ptr, 1000, NULL);
        }
        struck = rmm__host_memory_fail_struck();
        rmm__host_memory_fail(0);
        /* some failures cost nothing: a stream without a slot of its own, for one */
        assert_true(
            status == RMM_OK || (struck && status == RMM_ERR_OUT_OF_HOST_MEMORY));
        rmm_resource_release(mr);
        rmm_resource_release(cuda);
        assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    }
}

static void *allocate_all_sizes(void *argument)
{
    rmm_resource_t *mr = argument;
    uintptr_t failures = 0;

    for (size_t i = 0; i < 400; i++) {
        size_t bytes = 1 + i * 977 % (64 * KIB);
        void *ptr;

        if (rmm_resource_alloc(mr, bytes, 0, NULL, &ptr) == RMM_OK) {
            rmm_resource_dealloc(mr, ptr, bytes, 0, NULL);
        } else {
            failures++;
        }
    }
    return (void *)failures;
}

static void *add_all_bins(void *argument)
{
    uintptr_t failures = 0;

    for (size_t k = 1; k <= 64; k++) {
        failures += rmm_binning_resource_add_bin(argument, KIB * k, NULL) != RMM_OK;
    }
    return (void *)failures;
}

TEST_CASE(takes_the_same_bins_from_threads_at_once)
{
    rmm_resource_t *mr = make_binning(0, 0);
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, add_all_bins, mr), 0);
    }
    assert_null(allocate_all_sizes(mr));
    for (int i = 0; i < THREADS; i++) {
        void *failures;

        assert_int_equal(pthread_join(threads[i], &failures), 0);
        assert_null(failures);
    }
    for (size_t k = 1; k <= 64; k++) {
        give(mr, take(mr, KIB * k, NULL), KIB * k, NULL);
    }
    assert_int_equal(stats_of(mr).invalid_free_count, 0);
    end(mr);
}

TEST_CASE(takes_bins_while_others_allocate)
{
    rmm_resource_t *mr = make_binning(0, 0);
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_all_sizes, mr), 0);
    }
    for (size_t k = 1; k <= 16; k++) {
        assert_ok(rmm_binning_resource_add_bin(mr, 4 * KIB * k, NULL));
    }
    for (int i = 0; i < THREADS; i++) {
        void *failures;

        assert_int_equal(pthread_join(threads[i], &failures), 0);
        assert_null(failures);
    }
    assert_int_equal(stats_of(mr).current_bytes, 0);
    assert_int_equal(stats_of(mr).invalid_free_count, 0);
    end(mr);
}

static rmm_resource_t *make_bin(rmm_resource_t *mr, uint64_t bytes, uint64_t count)
{
    rmm_fixed_size_options_t options = RMM_FIXED_SIZE_OPTIONS_INIT;
    rmm_resource_t *bin;

    options.block_bytes = bytes;
    options.blocks_per_chunk = count;
    assert_ok(rmm_fixed_size_resource_create(mr->upstream, &options, &bin));
    return bin;
}

/* The bin is the adaptor's alone afterwards, or gone. */
static void add_bin(rmm_resource_t *mr, uint64_t bytes, rmm_resource_t *bin)
{
    assert_ok(rmm_binning_resource_add_bin(mr, bytes, bin));
    rmm_resource_release(bin);
}

TEST_CASE(a_bin_that_is_there_already_is_given_back)
{
    rmm_resource_t *mr = make_binning(0, 0);
    rmm_resource_t *second;

    add_bin(mr, 1024, make_bin(mr, 1024, 4));
    second = make_bin(mr, 1024, 4);
    give(second, take(second, 1024, NULL), 1024, NULL); /* it holds a chunk */
    assert_true(rmm_sim_allocated_bytes(0) > 0);
    add_bin(mr, 1024, second);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    end(mr);
}

static uint64_t held_by(const rmm_resource_t *bin)
{
    return stats_of(bin).reserved_bytes;
}

/* Bins of one chunk each, and one that has nothing to trim. */
TEST_CASE(trim_keeps_so_much_of_all_bins_together)
{
    rmm_resource_t *mr = make_binning(0, 0);
    rmm_resource_t *bins[2];

    for (int i = 0; i < 2; i++) {
        bins[i] = make_bin(mr, (uint64_t)MIB << i, 4);
        add_bin(mr, (uint64_t)MIB << i, bins[i]);
        give(mr, take(mr, (size_t)MIB << i, NULL), (size_t)MIB << i, NULL);
    }
    assert_int_equal(held_by(bins[0]) + held_by(bins[1]), 4 * MIB + 8 * MIB);
    assert_ok(rmm_resource_trim(mr, 8 * MIB));
    assert_int_equal(held_by(bins[0]) + held_by(bins[1]), 8 * MIB);
    add_bin(mr, 256, rmm_resource_retain(mr->upstream));
    assert_ok(rmm_resource_trim(mr, 0));
    assert_int_equal(held_by(bins[0]) + held_by(bins[1]), 0);
    end(mr);
}

/* The bins' chunks count once, although the upstream holds them too. */
TEST_CASE(trim_keeps_as_much_where_a_bin_is_the_upstream)
{
    rmm_resource_t *mr = make_binning(0, 0);
    rmm_resource_t *bin = make_bin(mr, MIB, 4);

    add_bin(mr, 256, rmm_resource_retain(mr->upstream));
    add_bin(mr, MIB, bin);
    give(mr, take(mr, MIB, NULL), MIB, NULL);
    assert_int_equal(held_by(mr->upstream), 4 * MIB);
    assert_ok(rmm_resource_trim(mr, 4 * MIB));
    assert_int_equal(held_by(bin), 4 * MIB);
    assert_ok(rmm_resource_trim(mr, 0));
    assert_int_equal(held_by(bin), 0);
    end(mr);
}

/* The cuda resource refuses the alignment: no memory is missing. */
TEST_CASE(only_a_lack_of_memory_counts_as_one)
{
    rmm_resource_t *mr = make_binning(0, 0);
    void *block = NULL;

    assert_int_equal(
        rmm_resource_alloc(mr, 1000, 2 * RMM_ALIGN_DEFAULT, NULL, &block),
        RMM_ERR_BAD_ALLOC);
    assert_int_equal(stats_of(mr).oom_count, 0);
    assert_int_equal(
        rmm_resource_alloc(mr, PTRDIFF_MAX / 2, 0, NULL, &block),
        RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(stats_of(mr).oom_count, 1);
    end(mr);
}

TEST_CASE(a_block_that_cannot_be_remembered_goes_back)
{
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr = make_binning(0, 0);
    void *block = NULL;

    give(cuda, take(cuda, 1000, NULL), 1000, NULL); /* its own table is there */
    rmm__host_memory_fail(1);
    assert_int_equal(
        rmm_resource_alloc(mr, 1000, 0, NULL, &block), RMM_ERR_OUT_OF_HOST_MEMORY);
    assert_true(rmm__host_memory_fail_struck());
    assert_null(block);
    assert_int_equal(stats_of(cuda).current_bytes, 0);
    rmm_resource_release(cuda);
    end(mr);
}

static rmm_resource_t *make_without_bins(rmm_resource_t *upstream)
{
    rmm_resource_t *mr;

    assert_ok(rmm_binning_resource_create(upstream, NULL, &mr));
    rmm_resource_release(upstream);
    return mr;
}

TEST_CASE(what_is_out_at_its_end_is_freed_behind_its_use)
{
    assert_int_equal(mixups_of_an_end_amid_work(make_without_bins), 0);
}
