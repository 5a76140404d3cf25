/* SPDX-License-Identifier: Apache-2.0 */
/* The fallback adaptor: what goes where, and that a free finds the way back. */
#include "sim/adaptors/adaptor_harness.h"

#include <stdio.h>
#include <string.h>

#include "driver/sim/control.h"
#include "harness/random.h"

static rmm_resource_t *fall_back(rmm_resource_t *upstream, rmm_resource_t *alternate)
{
    rmm_fallback_options_t options = RMM_FALLBACK_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.alternate = alternate;
    assert_ok(rmm_fallback_adaptor_create(upstream, &options, &mr));
    rmm_resource_release(upstream);
    rmm_resource_release(alternate);
    return mr;
}

static rmm_resource_t *make_managed(void)
{
    rmm_resource_t *mr;

    assert_ok(rmm_managed_resource_create(&mr));
    return mr;
}

static uint64_t of_alternate(const rmm_resource_t *mr)
{
    uint64_t count;

    assert_ok(rmm_fallback_get_alternate_count(mr, &count));
    return count;
}

TEST_CASE(what_does_not_fit_comes_from_the_alternate_and_goes_back_to_it)
{
    rmm_resource_t *pool = make_pool(0, 4 * MIB);
    rmm_resource_t *mr = fall_back(rmm_resource_retain(pool), make_managed());
    rmm_resource_t *managed = rmm_fallback_get_alternate(mr);
    void *first = take(mr, 3 * MIB, NULL), *second = take(mr, 2 * MIB, NULL), *third;

    assert_int_equal(stats_of(pool).current_bytes, 3 * MIB);
    assert_int_equal(stats_of(managed).current_bytes, 2 * MIB);
    assert_int_equal(stats_of(mr).current_bytes, 5 * MIB);
    assert_int_equal(stats_of(mr).oom_count, 0);
    assert_int_equal(location_bytes(), 5 * MIB);
    assert_int_equal(of_alternate(mr), 1);
    give(mr, first, 3 * MIB, NULL);
    third = take(mr, 3 * MIB, NULL); /* the pool again */
    assert_int_equal(stats_of(pool).current_bytes, 3 * MIB);
    give(mr, second, 2 * MIB, NULL);
    assert_int_equal(stats_of(managed).current_bytes, 0);
    assert_int_equal(of_alternate(mr), 0);
    give(mr, third, 3 * MIB, NULL);
    assert_int_equal(stats_of(pool).current_bytes, 0);
    rmm_resource_release(pool);
    end_adaptor(mr);
}

TEST_CASE(what_both_refuse_fails_with_both_reasons)
{
    mock_t *first = make_mock(), *second = make_mock();
    rmm_resource_t *mr = fall_back(&first->base, &second->base);
    void *mark = &mark, *ptr = mark;

    first->failures = second->failures = 1;
    assert_int_equal(rmm_resource_alloc(mr, 8, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_ptr_equal(ptr, mark);
    assert_string_equal(
        rmm_last_error_message(),
        "fallback 'fallback': mock: told to fail; and before: mock: told to fail");
    assert_int_equal(stats_of(mr).oom_count, 1);
    first->failures = second->failures = 1;
    second->failure = RMM_ERR_BAD_ALLOC;
    assert_int_equal(rmm_resource_alloc(mr, 8, 0, NULL, &ptr), RMM_ERR_BAD_ALLOC);
    end_adaptor(mr);
}

TEST_CASE(other_failures_do_not_reach_the_alternate)
{
    mock_t *first = make_mock(), *second = make_mock();
    rmm_resource_t *mr = fall_back(&first->base, &second->base);
    void *ptr;

    first->failure = RMM_ERR_BAD_ALLOC;
    first->failures = 1;
    assert_int_equal(rmm_resource_alloc(mr, 8, 0, NULL, &ptr), RMM_ERR_BAD_ALLOC);
    assert_int_equal(second->allocs, 0);
    assert_ok(rmm_resource_alloc(mr, 0, 0, NULL, &ptr));
    rmm_resource_dealloc(mr, ptr, 0, 0, NULL);
    assert_int_equal(second->allocs + second->deallocs, 0);
    end_adaptor(mr);
}

TEST_CASE(an_invalid_free_changes_nothing)
{
    mock_t *first = make_mock();
    rmm_resource_t *mr = fall_back(&first->base, make_managed());
    void *ptr;

    first->failures = 1;
    ptr = take(mr, MIB, NULL);
    give(mr, ptr, 2 * MIB, NULL); /* another size */
    assert_int_equal(stats_of(mr).invalid_free_count, 1);
    assert_int_equal(stats_of(mr).current_bytes, MIB);
    assert_int_equal(of_alternate(mr), 1);
    give(mr, ptr, MIB, NULL);
    first->refuses_frees = true;
    give(mr, ptr, MIB, NULL); /* twice */
    assert_int_equal(stats_of(mr).invalid_free_count, 2);
    assert_int_equal(stats_of(mr).current_bytes, 0);
    rmm_resource_release(mr);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

/* The alternate got the block back by another way, and its address comes from upstream now. */
TEST_CASE(a_stale_entry_does_not_mislead_a_free)
{
    mock_t *first = make_mock(), *second = make_mock();
    rmm_resource_t *mr = fall_back(&first->base, &second->base);
    void *ptr;

    first->failures = 1;
    second->address = 0x10000;
    ptr = take(mr, 1000, NULL);
    give(&second->base, ptr, 1000, NULL);
    first->address = 0x10000;
    assert_ptr_equal(take(mr, 500, NULL), ptr);
    assert_int_equal(of_alternate(mr), 0);
    assert_int_equal(stats_of(mr).current_bytes, 500);
    give(mr, ptr, 500, NULL);
    assert_int_equal(first->deallocs, 1);
    assert_int_equal(second->deallocs, 1);
    end_adaptor(mr);
}

TEST_CASE(a_trim_reaches_both)
{
    mock_t *first = make_mock(), *second = make_mock();
    rmm_resource_t *mr = fall_back(&first->base, &second->base);

    assert_ok(rmm_resource_trim(mr, 5));
    assert_int_equal(first->trims, 6);
    assert_int_equal(second->trims, 1);
    end_adaptor(mr);
    mr = fall_back(make_cuda(), make_managed());
    assert_int_equal(rmm_resource_trim(mr, 0), RMM_ERR_UNSUPPORTED);
    end_adaptor(mr);
}

TEST_CASE(memory_is_what_both_kinds_are)
{
    rmm_resource_t *pinned, *host, *cuda = make_cuda(), *mr;
    rmm_fallback_options_t options = RMM_FALLBACK_OPTIONS_INIT;

    assert_ok(rmm_pinned_resource_create(&pinned));
    mr = fall_back(rmm_resource_retain(pinned), make_managed());
    assert_int_equal(
        rmm_resource_properties(mr), RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE);
    end_adaptor(mr);
    mr = fall_back(pinned, make_pool(0, 0)); /* in stream order, though pinned is not */
    assert_int_equal(rmm_resource_properties(mr), RMM_DEVICE_ACCESSIBLE);
    assert_false(
        atomic_load_explicit(&mr->ops, memory_order_relaxed)->ready_on_all_streams);
    end_adaptor(mr);

    assert_ok(rmm_host_resource_create(&host));
    options.alternate = host;
    assert_int_equal(
        rmm_fallback_adaptor_create(cuda, &options, &mr), RMM_ERR_INVALID_ARGUMENT);
    rmm_resource_release(host);
    rmm_resource_release(cuda);
}

TEST_CASE(options_are_checked)
{
    rmm_fallback_options_t options = RMM_FALLBACK_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda(), *elsewhere, *mr = NULL;
    uint64_t count;

    assert_int_equal(
        rmm_fallback_adaptor_create(cuda, NULL, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_fallback_adaptor_create(cuda, &options, &mr), RMM_ERR_INVALID_ARGUMENT);
    options.alternate = cuda;
    assert_int_equal(
        rmm_fallback_adaptor_create(NULL, &options, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_fallback_adaptor_create(cuda, &options, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_cuda(rmm__sim_device_set(1));
    elsewhere = make_cuda();
    assert_cuda(rmm__sim_device_set(0));
    options.alternate = elsewhere;
    assert_int_equal(
        rmm_fallback_adaptor_create(cuda, &options, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(rmm_last_error_message(), "belongs to device 1"));
    assert_null(mr);
    assert_null(rmm_fallback_get_alternate(cuda));
    assert_null(rmm_fallback_get_alternate(NULL));
    assert_int_equal(
        rmm_fallback_get_alternate_count(cuda, &count), RMM_ERR_INVALID_ARGUMENT);
    rmm_resource_release(elsewhere);
    rmm_resource_release(cuda);
}

/* --- many blocks and threads -------------------------------------------------------------- */

#define BLOCKS 3000 /* several for each mark */

typedef struct mover {
    rmm_resource_t *mr;
    uint64_t random;
    void *blocks[BLOCKS];
    size_t bytes[BLOCKS];
} mover_t;

static void *move_blocks(void *argument)
{
    mover_t *mover = argument;

    for (int i = 0; i < 4 * BLOCKS; i++) {
        uint64_t at = draw(&mover->random, BLOCKS);

        if (mover->blocks[at] != NULL) {
            give(mover->mr, mover->blocks[at], mover->bytes[at], NULL);
            mover->blocks[at] = NULL;
        } else {
            mover->bytes[at] = 1 + draw(&mover->random, 4000);
            mover->blocks[at] = take(mover->mr, mover->bytes[at], NULL);
        }
    }
    for (int i = 0; i < BLOCKS; i++) {
        if (mover->blocks[i] != NULL) {
            give(mover->mr, mover->blocks[i], mover->bytes[i], NULL);
        }
    }
    return NULL;
}

TEST_CASE(every_free_of_many_threads_finds_the_way_back)
{
    static mover_t movers[4];
    rmm_resource_t *pool = make_pool(0, MIB), *second = make_pool(0, 0);
    rmm_resource_t *mr =
        fall_back(rmm_resource_retain(pool), rmm_resource_retain(second));
    pthread_t threads[4];

    for (uint64_t i = 0; i < 4; i++) {
        movers[i] = (mover_t){.mr = mr, .random = i};
        assert_int_equal(pthread_create(&threads[i], NULL, move_blocks, &movers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_true(stats_of(second).total_count > BLOCKS);
    assert_int_equal(stats_of(pool).current_bytes, 0);
    assert_int_equal(stats_of(second).current_bytes, 0);
    assert_int_equal(
        stats_of(pool).total_count + stats_of(second).total_count,
        stats_of(mr).total_count);
    assert_int_equal(
        stats_of(pool).invalid_free_count + stats_of(second).invalid_free_count, 0);
    rmm_resource_release(pool);
    rmm_resource_release(second);
    end_adaptor(mr);
}
