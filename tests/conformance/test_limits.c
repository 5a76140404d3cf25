/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator asks for through /rmm, obeyed by every resource and adaptor: a limit on
 * what it hands out, a limit on what its process holds, a trim.
 */
#include "conformance/worker.h"

#include "harness/limit_requests.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK ((size_t)1000)
#define FEW 3
#define LARGE (512 * KIB)
#define MANY 64
#define ROUNDS 300

static const subject_t *subject;

static rmm_resource_t *begin(void)
{
    rmm_resource_t *mr = subject_begin(subject);

    want_nothing();
    return mr;
}

static void end(rmm_resource_t *mr)
{
    want_nothing();
    subject_end(mr);
}

static void take(rmm_resource_t *mr, size_t bytes, void **ptr)
{
    assert_ok(rmm_resource_alloc(mr, bytes, 0, NULL, ptr));
}

static void give(rmm_resource_t *mr, size_t bytes, void *ptr)
{
    rmm_resource_dealloc(mr, ptr, bytes, 0, NULL);
}

static void assert_refused(rmm_resource_t *mr, size_t bytes, const char *file)
{
    void *untouched = &untouched;
    void *ptr = untouched;

    assert_int_equal(
        rmm_resource_alloc(mr, bytes, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_ptr_equal(ptr, untouched);
    if (strstr(rmm_last_error_message(), file) == NULL) {
        fail_msg("'%s' does not name %s", rmm_last_error_message(), file);
    }
}

static void refuses_above_its_limit_and_recovers(void **state)
{
    rmm_resource_t *mr = begin();
    uint64_t counted = location_limit_count(mr);
    void *ptrs[FEW + 1];

    limit_resource(mr, FEW * BLOCK);
    for (size_t i = 0; i < FEW; i++) {
        take(mr, BLOCK, &ptrs[i]);
    }
    assert_int_equal(limit_count_of(mr), 0);
    assert_refused(mr, BLOCK, "/limit_bytes 3000 ");
    assert_refused(mr, 1, "/mr/");
    assert_int_equal(limit_count_of(mr), 2);
    assert_int_equal(location_limit_count(mr), counted + 2);
    give(mr, BLOCK, ptrs[0]);
    take(mr, BLOCK, &ptrs[0]);
    limit_resource(mr, RMM_SEGMENT_NO_LIMIT);
    take(mr, BLOCK, &ptrs[FEW]);
    for (size_t i = 0; i <= FEW; i++) {
        give(mr, BLOCK, ptrs[i]);
    }
    end(mr);
}

static void takes_nothing_away_where_more_is_in_use(void **state)
{
    rmm_resource_t *mr = begin();
    void *ptrs[FEW];

    for (size_t i = 0; i < FEW; i++) {
        take(mr, BLOCK, &ptrs[i]);
    }
    limit_resource(mr, BLOCK);
    assert_int_equal(RMM_ACCOUNTING_GET(&mr->accounting, current_bytes), FEW * BLOCK);
    assert_refused(mr, 1, "3000 bytes are in use");
    for (size_t i = 0; i < FEW; i++) {
        give(mr, BLOCK, ptrs[i]);
        assert_ok(rmm_resource_alloc(mr, 0, 0, NULL, &ptrs[i]));
    }
    take(mr, BLOCK, &ptrs[0]);
    give(mr, BLOCK, ptrs[0]);
    for (size_t i = 0; i < FEW; i++) {
        rmm_resource_dealloc(mr, NULL, 0, 0, NULL);
    }
    end(mr);
}

static void is_not_bound_by_the_limit_of_another_resource(void **state)
{
    rmm_resource_t *mr = begin();
    rmm_control_page_t *page = control_page();
    void *ptr;

    limit_resource(mr, 0);
    atomic_store(
        &page->slots[mr->accounting.slot - rmm__publisher.segment->slots].limit_of,
        mr->instance_id + 1000);
    take(mr, BLOCK, &ptr);
    give(mr, BLOCK, ptr);
    end(mr);
}

/* --- threads ------------------------------------------------------------------------- */

typedef struct greedy {
    rmm_resource_t *mr;
    uint64_t taken, refused, wrong;
} greedy_t;

static void *take_and_give(void *arg)
{
    greedy_t *greedy = arg;

    for (int i = 0; i < ROUNDS; i++) {
        void *ptr;
        rmm_status_t status = rmm_resource_alloc(greedy->mr, BLOCK, 0, NULL, &ptr);

        greedy->taken += status == RMM_OK;
        greedy->refused += status == RMM_ERR_OUT_OF_MEMORY;
        greedy->wrong += status != RMM_OK && status != RMM_ERR_OUT_OF_MEMORY;
        if (status == RMM_OK) {
            rmm_resource_dealloc(greedy->mr, ptr, BLOCK, 0, NULL);
        }
    }
    return NULL;
}

static void holds_its_limit_with_many_threads(void **state)
{
    rmm_resource_t *mr = begin();
    pthread_t threads[THREADS];
    greedy_t all[THREADS];
    uint64_t taken = 0, refused = 0;

    limit_resource(mr, 2 * BLOCK);
    for (size_t i = 0; i < THREADS; i++) {
        all[i] = (greedy_t){.mr = mr};
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &all[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(all[i].wrong, 0);
        taken += all[i].taken;
        refused += all[i].refused;
    }
    assert_int_equal(taken + refused, (uint64_t)THREADS * ROUNDS);
    assert_int_equal(limit_count_of(mr), refused);
    assert_in_range(RMM_ACCOUNTING_GET(&mr->accounting, peak_bytes), BLOCK, 2 * BLOCK);
    assert_int_equal(atomic_load(&mr->promised_bytes), 0);
    end(mr);
}

/* --- the location -------------------------------------------------------------------- */

/* Whether it grows at all: an arena holds what it will ever hold. */
static size_t take_until_refused(rmm_resource_t *mr, uint64_t limit, void **ptrs)
{
    size_t count = 0;

    while (count < MANY &&
           rmm_resource_alloc(mr, LARGE, 0, NULL, &ptrs[count]) == RMM_OK) {
        assert_in_range(location_reserved(mr), 0, limit);
        count++;
    }
    return count;
}

static void grows_up_to_the_limit_of_its_location(void **state)
{
    rmm_resource_t *mr = begin();
    uint64_t limit, counted;
    void *ptrs[MANY];
    size_t count, more;

    take(mr, BLOCK, &ptrs[0]);
    give(mr, BLOCK, ptrs[0]);
    limit = location_reserved(mr) + MANY / 4 * LARGE;
    counted = location_limit_count(mr);
    limit_location(mr, limit);
    count = take_until_refused(mr, limit, ptrs);
    assert_int_not_equal(count, 0);
    if (count < MANY) {
        assert_true(location_limit_count(mr) > counted);
        assert_non_null(strstr(rmm_last_error_message(), "/limit_bytes"));
        limit_location(mr, RMM_SEGMENT_NO_LIMIT);
        more = count;
        take(mr, LARGE, &ptrs[more]);
        give(mr, LARGE, ptrs[more]);
    }
    for (size_t i = 0; i < count; i++) {
        give(mr, LARGE, ptrs[i]);
    }
    end(mr);
}

/* A block that needs more than the step in which a resource grows, and is no multiple of it. */
static void a_large_block_leaves_the_limit_of_its_location(void **state)
{
    rmm_resource_t *mr = begin();
    uint64_t limit;
    void *ptr;

    take(mr, BLOCK, &ptr);
    give(mr, BLOCK, ptr);
    limit = location_reserved(mr) + 48 * MIB;
    limit_location(mr, limit);
    for (size_t bytes = 10 * MIB; bytes < 160 * MIB; bytes += 7 * MIB) {
        rmm_status_t status = rmm_resource_alloc(mr, bytes, 0, NULL, &ptr);

        assert_in_range(location_reserved(mr), 0, limit);
        if (status == RMM_OK) {
            give(mr, bytes, ptr);
        } else {
            assert_int_equal(status, RMM_ERR_OUT_OF_MEMORY);
        }
    }
    end(mr);
}

/* --- trims --------------------------------------------------------------------------- */

static void trims_at_the_next_allocation(void **state)
{
    rmm_resource_t *mr = begin();
    uint64_t reserved;
    void *ptrs[FEW];
    void *kept;

    take(mr, BLOCK, &kept);
    for (size_t i = 0; i < FEW; i++) {
        take(mr, LARGE, &ptrs[i]);
    }
    for (size_t i = 0; i < FEW; i++) {
        give(mr, LARGE, ptrs[i]);
    }
    reserved = location_reserved(mr);
    for (uint32_t i = 0; i < 2; i++) {
        ask_trim(
            i == 0 ? mr->instance_id : RMM_TRIM_LOCATION | mr->accounting.location, 0);
        assert_false(trim_is_done());
        take(mr, BLOCK, &ptrs[0]);
        assert_true(trim_is_done());
        give(mr, BLOCK, ptrs[0]);
        assert_in_range(location_reserved(mr), 0, reserved);
    }
    give(mr, BLOCK, kept);
    end(mr);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_above_its_limit_and_recovers),
        cmocka_unit_test(takes_nothing_away_where_more_is_in_use),
        cmocka_unit_test(is_not_bound_by_the_limit_of_another_resource),
        cmocka_unit_test(holds_its_limit_with_many_threads),
        cmocka_unit_test(grows_up_to_the_limit_of_its_location),
        cmocka_unit_test(a_large_block_leaves_the_limit_of_its_location),
        cmocka_unit_test(trims_at_the_next_allocation),
    };

    subject = subject_of_arguments(count, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
