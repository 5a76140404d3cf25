/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rmm-bench does around its trials: their order, and what it makes of their figures.
 * The workloads are the test's own and say what the test tells them.
 */
#include "harness/harness.h"

#include <string.h>

#include <rmm/cuda_resource.h>
#include <rmm/limiting_adaptor.h>

#include "bench/bench.h"

const char *const tool_name = "test_bench_trials";

enum { REPETITIONS = 3, OPERATIONS = 100 };

static unsigned order[32], order_count;

/* A workload's `amount` is its number. Its figure and its latencies are of the repetition:
 * 1, 10, 100 for the first workload, and more by the number of the repetition for another. */
static void say(const workload_t *workload, trial_t *trial)
{
    static const double figures[REPETITIONS] = {1, 10, 100};
    static unsigned repetitions[REPETITIONS];
    const unsigned repetition = repetitions[workload->amount]++ % REPETITIONS;

    order[order_count++] = (unsigned)workload->amount;
    trial->value = figures[repetition] + (double)(workload->amount * (repetition + 1));
    assert_true(latencies_reserve(trial->latencies, OPERATIONS));
    for (int i = 0; i < OPERATIONS; i++) {
        latencies_add(trial->latencies, 1000u >> repetition);
    }
}

static const workload_t three[] = {
    {.name = "a", .group = "g", .run = say, .amount = 0},
    {.name = "b", .group = "g", .run = say, .amount = 1, .against = "a"},
    {.name = "c", .group = "g", .run = say, .amount = 2, .against = "none"},
};

static void run_three(bench_t *bench)
{
    *bench = (bench_t){.repetitions = REPETITIONS};
    for (size_t i = 0; i < 3; i++) {
        assert_true(bench_add(bench, &three[i], "cuda"));
    }
    order_count = 0;
    assert_true(bench_run(bench));
}

TEST_CASE(each_of_a_group_is_once_the_first)
{
    static const unsigned wanted[] = {0, 1, 2, 1, 2, 0, 2, 0, 1};
    bench_t bench;

    run_three(&bench);
    assert_int_equal(order_count, 9);
    assert_memory_equal(order, wanted, sizeof(wanted));
    bench_fini(&bench);
}

TEST_CASE(the_tail_of_a_repetition_is_its_own)
{
    bench_t bench;

    run_three(&bench);
    for (unsigned i = 0; i < REPETITIONS; i++) {
        assert_int_equal(bench.results[0].p99_ns[i], 1000u >> i);
    }
    assert_int_equal(bench.results[0].latencies.count, REPETITIONS * OPERATIONS);
    bench_fini(&bench);
}

/* 2 against 1, 12 against 10, 103 against 100. */
TEST_CASE(a_difference_is_the_median_of_those_of_each_repetition)
{
    double difference = 0;
    bench_t bench;

    run_three(&bench);
    assert_true(bench_difference(&bench, &bench.results[1], &difference));
    assert_true(difference == 2);
    assert_false(bench_difference(&bench, &bench.results[0], &difference));
    assert_false(bench_difference(&bench, &bench.results[2], &difference));
    bench_fini(&bench);
}

TEST_CASE(says_why_a_thread_failed)
{
    static const workload_t threads = {.amount = 2, .stream = WORKLOAD_OWN};
    const trial_scale_t scale = {
        .warm_ns = 1000, .run_ns = 1000, .setup_ns = 1000000, .mix_allocations = 400};
    rmm_limiting_options_t options = RMM_LIMITING_OPTIONS_INIT;
    trial_t trial = {.scale = &scale, .seed = 1};
    rmm_resource_t *cuda;

    options.limit_bytes = 256;
    assert_ok(rmm_cuda_resource_create(&cuda));
    assert_ok(rmm_limiting_adaptor_create(cuda, &options, &trial.resource));
    run_threads(&threads, &trial);
    assert_non_null(strstr(trial.problem, "limit"));
    rmm_resource_release(trial.resource);
    rmm_resource_release(cuda);
}
