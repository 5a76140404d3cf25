/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every adaptor has to do, run for each line of `subjects`: RMM's cases of adaptors
 * (equality, upstream, allocate and free, shared ownership), that nothing is lost on the
 * way to upstream, and whose bytes are counted how often.
 */
#include "sim/adaptors/adaptor_harness.h"

#include <pthread.h>
#include <stdio.h>

#include "driver/sim/control.h"
#include "harness/adaptors.h"

#define THREADS 4

typedef struct subject {
    const char *name;
    rmm_status_t (*make)(rmm_resource_t *upstream, rmm_resource_t **out);
    rmm_status_t (*make_unsound)(rmm_resource_t *upstream, rmm_resource_t **out);
    bool corrects_sizes; /* knows what was allocated, and frees that */
} subject_t;

/* For each adaptor: one that passes all on, and one with options without _INIT. */
#define SUBJECT(type, set)                                                             \
    static rmm_status_t make_##type(rmm_resource_t *upstream, rmm_resource_t **out)    \
    {                                                                                  \
        rmm_##type##_options_t options = {.struct_size = sizeof(options)};             \
                                                                                       \
        set;                                                                           \
        return rmm_##type##_adaptor_create(upstream, &options, out);                   \
    }                                                                                  \
    static rmm_status_t unsound_##type(rmm_resource_t *upstream, rmm_resource_t **out) \
    {                                                                                  \
        rmm_##type##_options_t options = {.struct_size = 0};                           \
                                                                                       \
        set;                                                                           \
        return rmm_##type##_adaptor_create(upstream, &options, out);                   \
    }

static bool gives_up(size_t bytes, void *arg)
{
    return false;
}

SUBJECT(aligned, (void)options)
SUBJECT(failure_callback, options.callback = gives_up)
SUBJECT(limiting, options.limit_bytes = UINT64_MAX)
SUBJECT(logging, options.sink = drop_rows)
SUBJECT(prefetch, (void)options)
SUBJECT(retry, (void)options)
SUBJECT(statistics, (void)options)
SUBJECT(thread_safe, (void)options)
SUBJECT(tracking, (void)options)
SUBJECT(wait, options.timeout_ms = 20)

static subject_t subjects[] = {
    {"aligned", make_aligned, unsound_aligned, false},
    {"failure_callback", make_failure_callback, unsound_failure_callback, false},
    {"limiting", make_limiting, unsound_limiting, false},
    {"logging", make_logging, unsound_logging, false},
    {"prefetch", make_prefetch, unsound_prefetch, false},
    {"retry", make_retry, unsound_retry, false},
    {"statistics", make_statistics, unsound_statistics, false},
    {"thread_safe", make_thread_safe, unsound_thread_safe, false},
    {"tracking", make_tracking, unsound_tracking, true},
    {"wait", make_wait, unsound_wait, false},
};

static rmm_resource_t *make(const subject_t *subject, rmm_resource_t *upstream)
{
    rmm_resource_t *mr;

    assert_ok(subject->make(upstream, &mr));
    rmm_resource_release(upstream);
    return mr;
}

static void equals_itself_only(void **state)
{
    const subject_t *subject = *state;
    rmm_resource_t *one = make(subject, make_cuda());
    rmm_resource_t *two = make(subject, make_cuda());

    assert_true(rmm_resource_is_equal(one, one));
    assert_false(rmm_resource_is_equal(one, two));
    assert_false(rmm_resource_is_equal(one, rmm_resource_upstream(one)));
    assert_string_equal(rmm_resource_type(one), subject->name);
    assert_string_equal(rmm_resource_name(one), subject->name);
    end_adaptor(two);
    end_adaptor(one);
}

static void gets_its_upstream_resource(void **state)
{
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr = make(*state, rmm_resource_retain(cuda));

    assert_ptr_equal(rmm_resource_upstream(mr), cuda);
    assert_int_equal(rmm_resource_properties(mr), rmm_resource_properties(cuda));
    assert_int_equal(mr->device, cuda->device);
    rmm_resource_release(cuda);
    end_adaptor(mr);
}

static void allocates_and_frees(void **state)
{
    rmm_resource_t *mr = make(*state, make_pool(0, 0));
    void *ptr = take(mr, 1000, NULL);

    assert_cuda(rmm_sim_memset_async(ptr, 1, 1000, NULL));
    assert_int_equal(stats_of(mr).current_bytes, 1000);
    give(mr, ptr, 1000, NULL);
    assert_ok(rmm_resource_alloc_sync(mr, 10 * MIB, 0, &ptr));
    assert_int_equal(stats_of(mr).peak_bytes, 10 * MIB);
    rmm_resource_dealloc_sync(mr, ptr, 10 * MIB, 0);
    end_adaptor(mr);
}

static void shares_ownership(void **state)
{
    rmm_resource_t *mr = make(*state, make_cuda());
    rmm_resource_t *other = rmm_resource_retain(mr);
    void *ptr = take(mr, 1000, NULL);

    rmm_resource_release(mr);
    give(other, ptr, 1000, NULL);
    give(other, take(other, 2000, NULL), 2000, NULL);
    end_adaptor(other);
}

static void passes_the_request_on_unchanged(void **state)
{
    mock_t *mock = make_mock();
    rmm_resource_t *mr = make(*state, &mock->base);
    rmm_stream_t stream = make_stream(0);
    void *ptr;

    assert_ok(rmm_resource_alloc(mr, 1000, 0, stream, &ptr));
    assert_int_equal(mock->asked.bytes, 1000);
    assert_int_equal(mock->asked.align, RMM_ALIGN_DEFAULT);
    assert_ptr_equal(mock->asked.stream, stream);
    assert_true(mock->asked.user);
    rmm_resource_dealloc(mr, ptr, 1000, 0, RMM_STREAM_PER_THREAD);
    assert_ptr_equal(mock->given_ptr, ptr);
    assert_int_equal(mock->given.bytes, 1000);
    assert_ptr_equal(mock->given.stream, RMM_STREAM_PER_THREAD);
    assert_true(mock->given.user);
    assert_ok(rmm_resource_trim(mr, 4));
    assert_int_equal(mock->trims, 5);
    assert_cuda(sim_driver()->stream_destroy(stream));
    end_adaptor(mr);
}

static void passes_a_failure_on(void **state)
{
    static const rmm_status_t failures[] = {
        RMM_ERR_OUT_OF_MEMORY, RMM_ERR_BAD_ALLOC, RMM_ERR_OUT_OF_HOST_MEMORY};
    mock_t *mock = make_mock();
    rmm_resource_t *mr = make(*state, &mock->base);
    void *mark = &mark;
    void *ptr = mark;

    for (size_t i = 0; i < 3; i++) {
        mock->failure = failures[i];
        mock->failures = 100; /* some try again */
        assert_int_equal(rmm_resource_alloc(mr, 8, 0, NULL, &ptr), failures[i]);
        assert_ptr_equal(ptr, mark);
    }
    mock->failures = 0;
    assert_int_equal(stats_of(mr).oom_count, 1);
    assert_int_equal(stats_of(mr).total_count, 0);
    end_adaptor(mr);
}

static void changes_nothing_when_upstream_refuses_a_free(void **state)
{
    const subject_t *subject = *state;
    rmm_resource_t *mr = make(subject, make(subject, make_cuda())); /* two of them */
    uint64_t before = rmm__figure_get(&rmm__locations[0].invalid_free_count);
    char *ptr = take(mr, 1000, NULL);

    give(mr, ptr + 256, 1000, NULL);
    give(mr, ptr + (subject->corrects_sizes ? 512 : 0), 999, NULL);
    for (rmm_resource_t *each = mr; each != NULL; each = rmm_resource_upstream(each)) {
        assert_int_equal(stats_of(each).current_bytes, 1000);
        assert_int_equal(stats_of(each).current_count, 1);
        assert_int_equal(stats_of(each).invalid_free_count, 2);
    }
    assert_int_equal(location_bytes(), 1000);
    assert_int_equal(/* once, however many resources it came through */
                     rmm__figure_get(&rmm__locations[0].invalid_free_count) - before,
                     2);
    give(mr, ptr, 1000, NULL);
    assert_int_equal(stats_of(mr).current_bytes, 0);
    assert_int_equal(location_bytes(), 0);
    rmm_resource_release(mr);
}

static void counts_nothing_of_no_bytes_as_one(void **state)
{
    rmm_resource_t *mr = make(*state, make_cuda());
    void *ptr = &ptr;

    assert_ok(rmm_resource_alloc(mr, 0, 0, NULL, &ptr));
    assert_null(ptr);
    assert_int_equal(stats_of(mr).current_count, 1);
    assert_int_equal(location_count(), 1);
    rmm_resource_dealloc(mr, NULL, 0, 0, NULL);
    rmm_resource_dealloc(mr, NULL, 0, 0, NULL); /* once too often: ignored */
    assert_int_equal(stats_of(mr).total_count, 1);
    end_adaptor(mr);
}

static void is_ready_on_all_streams_where_its_upstream_is(void **state)
{
    for (int ready = 0; ready < 2; ready++) {
        rmm_resource_t *mr = make(*state, &make_mock_of(ready != 0)->base);

        assert_int_equal(
            atomic_load_explicit(&mr->ops, memory_order_relaxed)->ready_on_all_streams,
            ready);
        assert_false(atomic_load_explicit(&mr->ops, memory_order_relaxed)->owns_blocks);
        end_adaptor(mr);
    }
}

static void leaves_to_upstream_what_is_out_at_its_end(void **state)
{
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr = make(*state, rmm_resource_retain(cuda));
    void *ptr = take(mr, 1000, NULL);

    rmm_resource_release(mr);
    assert_int_equal(location_bytes(), 1000);
    give(cuda, ptr, 1000, NULL);
    end_adaptor(cuda);
}

static void refuses_arguments_that_cannot_be(void **state)
{
    const subject_t *subject = *state;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr = NULL;

    assert_int_equal(subject->make(NULL, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(subject->make(cuda, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(subject->make_unsound(cuda, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_null(mr);
    rmm_resource_release(cuda);
}

static void survives_every_failing_request_for_host_memory(void **state)
{
    const subject_t *subject = *state;
    bool struck = true;
    uint64_t nth = 0;

    while (struck) {
        rmm_resource_t *cuda = make_cuda();
        rmm_resource_t *mr = NULL;
        void *ptr = NULL;
        rmm_status_t status;

        rmm__host_memory_fail(++nth);
        status = subject->make(cuda, &mr);
        if (status == RMM_OK) {
            status = rmm_resource_alloc(mr, 1000, 0, NULL, &ptr);
        }
        struck = rmm__host_memory_fail_struck();
        rmm__host_memory_fail(0);
        assert_int_equal(status, struck ? RMM_ERR_OUT_OF_HOST_MEMORY : RMM_OK);
        if (ptr != NULL) {
            give(mr, ptr, 1000, NULL);
        }
        rmm_resource_release(mr);
        assert_int_equal(stats_of(cuda).current_bytes, 0);
        end_adaptor(cuda);
    }
    assert_true(nth > 3);
}

static void survives_every_failing_driver_call(void **state)
{
    bool struck = true;
    uint64_t nth = 0;

    while (struck) {
        rmm_resource_t *cuda = make_cuda();
        rmm_resource_t *mr = NULL;
        void *ptr = NULL;
        char plan[32];
        rmm_status_t status;

        snprintf(plan, sizeof(plan), "any:%d", (int)++nth);
        assert_true(rmm_sim_fail(plan));
        status = ((const subject_t *)*state)->make(cuda, &mr);
        if (status == RMM_OK) {
            status = rmm_resource_alloc(mr, 1000, 0, NULL, &ptr);
        }
        struck = rmm__sim_fault_has_struck();
        assert_true(rmm_sim_fail(NULL));
        assert_true(status == RMM_OK || struck);
        assert_true((status == RMM_OK) == (ptr != NULL));
        if (ptr != NULL) {
            give(mr, ptr, 1000, NULL);
        }
        rmm_resource_release(mr);
        end_adaptor(cuda);
    }
    assert_true(nth > 1);
}

/* --- threads ------------------------------------------------------------------------ */

static void *take_and_give(void *argument)
{
    rmm_resource_t *mr = argument;
    uintptr_t failures = 0;

    for (size_t i = 0; i < 500; i++) {
        void *ptr;
        void *more;

        failures += rmm_resource_alloc(mr, 1 + i, 0, NULL, &ptr) != RMM_OK;
        failures += rmm_resource_alloc(mr, 3000, 0, NULL, &more) != RMM_OK;
        rmm_resource_dealloc(mr, ptr, 1 + i, 0, NULL);
        rmm_resource_dealloc(mr, more, 3000, 0, NULL);
    }
    return (void *)failures;
}

static void counts_exactly_on_threads(void **state)
{
    rmm_resource_t *mr = make(*state, make_pool(0, 0));
    pthread_t threads[THREADS];
    rmm_stats_t stats;

    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, mr), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *failures;

        assert_int_equal(pthread_join(threads[i], &failures), 0);
        assert_null(failures);
    }
    stats = stats_of(mr);
    assert_int_equal(stats.total_count, THREADS * 1000);
    assert_int_equal(stats.total_bytes, THREADS * (500 * 501 / 2 + 500 * 3000));
    assert_in_range(stats.peak_bytes, 3500, THREADS * 3500);
    assert_in_range(stats.peak_count, 2, THREADS * 2);
    end_adaptor(mr);
}

/* --- resources that RMM tests with the adaptors --------------------------------------- */

static rmm_status_t
program_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    return rmm_resource_alloc(payload, bytes, 0, stream, ptr_out);
}

static void program_dealloc(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    rmm_resource_dealloc(payload, ptr, bytes, 0, stream);
}

static void assert_shared(rmm_resource_t *mr)
{
    rmm_resource_t *other = rmm_resource_retain(mr);
    void *ptr = take(mr, 1000, NULL);

    assert_true(rmm_resource_is_equal(mr, other));
    rmm_resource_release(mr);
    give(other, ptr, 1000, NULL);
    give(other, take(other, 2000, NULL), 2000, NULL);
    rmm_resource_release(other);
}

static void arena_and_callback_share_ownership(void **state)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr;

    options.alloc = program_alloc;
    options.dealloc = program_dealloc;
    options.payload = cuda;
    assert_ok(rmm_callback_resource_create(&options, &mr));
    assert_shared(mr);
    assert_ok(rmm_arena_resource_create(cuda, NULL, &mr));
    assert_shared(mr);
    end_adaptor(cuda);
}

/* --- whose bytes -------------------------------------------------------------------- */

/* Binning over pool over cuda behind two adaptors. */
static rmm_resource_t *make_stack(void)
{
    rmm_binning_options_t options = RMM_BINNING_OPTIONS_INIT;
    rmm_resource_t *pool = make_pool(0, 0);
    rmm_resource_t *mr;

    options.min_exponent = 12;
    options.max_exponent = 16;
    assert_ok(rmm_binning_resource_create(pool, &options, &mr));
    rmm_resource_release(pool);
    return make(&subjects[4], make(&subjects[2], mr));
}

static void counts_bytes_once_however_resources_are_stacked(void **state)
{
    static const size_t sizes[] = {100, 5000, 60000, 3 * MIB, 0};
    const rmm_segment_location_t *location = &rmm__locations[0];
    rmm_resource_t *mr = make_stack();
    rmm_accounting_sums_t before, after;
    void *blocks[5];
    size_t sum = 0;

    rmm__location_sums(0, &before);
    for (size_t i = 0; i < 5; i++) {
        assert_ok(rmm_resource_alloc(mr, sizes[i], 0, NULL, &blocks[i]));
        sum += sizes[i];
        assert_int_equal(location_bytes(), sum);
        assert_int_equal(location_count(), i + 1);
    }
    rmm__location_sums(0, &after);
    assert_int_equal(after.total_bytes - before.total_bytes, sum);
    /* the driver's memory, once too, but for a block that a pool keeps for a barrier */
    assert_in_range(
        rmm_sim_allocated_bytes(0) - rmm__figure_get(&location->reserved_bytes), 0,
        512);
    assert_int_equal(stats_of(mr).current_bytes, sum);
    assert_int_equal(stats_of(rmm_resource_upstream(mr)).current_bytes, sum);
    for (size_t i = 0; i < 5; i++) {
        rmm_resource_dealloc(mr, blocks[i], sizes[i], 0, NULL);
        sum -= sizes[i];
        assert_int_equal(location_bytes(), sum);
    }
    end_adaptor(mr);
}

static void counts_a_pool_over_adaptors_once(void **state)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *below = make(&subjects[4], make(&subjects[0], make_cuda()));
    rmm_resource_t *pool;
    void *ptr;

    options.initial_bytes = 4 * MIB;
    assert_ok(rmm_pool_resource_create(below, &options, &pool));
    ptr = take(pool, 1000, NULL);
    assert_int_equal(location_bytes(), 1000);
    assert_in_range(stats_of(below).current_bytes, 4 * MIB, 64 * MIB); /* its chunk */
    give(pool, ptr, 1000, NULL);
    rmm_resource_release(pool);
    end_adaptor(below);
}

#define CASE(function)                                                                 \
    {                                                                                  \
#function, function                                                            \
    }

/* Here, as its own program also runs on a GPU, where no simulated kernel does. */
static rmm_resource_t *make_aligned_over(rmm_resource_t *upstream)
{
    rmm_aligned_options_t options = RMM_ALIGNED_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.alignment_bytes = 4096;
    assert_ok(rmm_aligned_adaptor_create(upstream, &options, &mr));
    rmm_resource_release(upstream);
    return mr;
}

static void
aligned_blocks_that_are_live_at_the_end_are_freed_after_their_use(void **state)
{
    assert_int_equal(mixups_of_an_end_amid_work(make_aligned_over), 0);
}

static const struct {
    const char *name;
    CMUnitTestFunction function;
} cases[] = {
    CASE(equals_itself_only),
    CASE(gets_its_upstream_resource),
    CASE(allocates_and_frees),
    CASE(shares_ownership),
    CASE(passes_the_request_on_unchanged),
    CASE(passes_a_failure_on),
    CASE(changes_nothing_when_upstream_refuses_a_free),
    CASE(counts_nothing_of_no_bytes_as_one),
    CASE(is_ready_on_all_streams_where_its_upstream_is),
    CASE(leaves_to_upstream_what_is_out_at_its_end),
    CASE(refuses_arguments_that_cannot_be),
    CASE(survives_every_failing_request_for_host_memory),
    CASE(survives_every_failing_driver_call),
    CASE(counts_exactly_on_threads),
};

#define SUBJECT_COUNT (sizeof(subjects) / sizeof(subjects[0]))
#define CASE_COUNT (sizeof(cases) / sizeof(cases[0]))
#define PAIR_COUNT (SUBJECT_COUNT * CASE_COUNT)

int main(void)
{
    static struct CMUnitTest tests[PAIR_COUNT + 4] = {
        [PAIR_COUNT] =
            cmocka_unit_test(counts_bytes_once_however_resources_are_stacked),
        [PAIR_COUNT + 1] = cmocka_unit_test(counts_a_pool_over_adaptors_once),
        [PAIR_COUNT + 2] = cmocka_unit_test(arena_and_callback_share_ownership),
        [PAIR_COUNT + 3] = cmocka_unit_test(
            aligned_blocks_that_are_live_at_the_end_are_freed_after_their_use),
    };
    static char names[PAIR_COUNT][80];

    for (size_t i = 0; i < PAIR_COUNT; i++) {
        size_t which = i % CASE_COUNT;
        subject_t *state = &subjects[i / CASE_COUNT];

        snprintf(names[i], sizeof(names[i]), "%s %s", state->name, cases[which].name);
        tests[i] =
            (struct CMUnitTest){names[i], cases[which].function, NULL, NULL, state};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
