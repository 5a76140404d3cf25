/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rmm-bench does around its trials: their order, and what it makes of their figures.
 * The workloads are the test's own and say what the test tells them.
 */
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/cuda_resource.h>
#include <rmm/device.h>
#include <rmm/limiting_adaptor.h>
#include <rmm/pool_resource.h>

#include "bench/bench.h"
#include "bench/report.h"

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

/* --- results -------------------------------------------------------------------------- */

static void say_one(const workload_t *workload, trial_t *trial)
{
    (void)workload;
    trial->value = 1;
}

TEST_CASE(keeps_every_one_of_many_results)
{
    static const workload_t one = {.name = "one", .group = "g", .run = say_one};
    bench_t bench = {.repetitions = 1};

    for (size_t i = 0; i < 200; i++) {
        assert_true(bench_add(&bench, &one, "cuda"));
        assert_int_equal(bench.result_count, i + 1);
        assert_true(bench.capacity >= bench.result_count);
    }
    bench_fini(&bench);
}

TEST_CASE(runs_on_a_device_that_has_exactly_the_memory_it_needs)
{
    size_t free_bytes, total_bytes;
    workload_t large = {.name = "large", .group = "g", .run = say_one};
    bench_t bench = {.repetitions = 1};

    assert_ok(rmm_available_device_memory(&free_bytes, &total_bytes));
    large.device_bytes = free_bytes;
    assert_true(bench_add(&bench, &large, "cuda"));
    assert_true(bench_run(&bench));
    assert_string_equal(bench.results[0].problem, "");
    assert_int_equal(bench.results[0].value_count, 1);
    bench_fini(&bench);

    bench.repetitions = 1;
    large.device_bytes = free_bytes + 1;
    assert_true(bench_add(&bench, &large, "cuda"));
    assert_true(bench_run(&bench)); /* what a device is too small for is no failure */
    assert_ptr_equal(
        strstr(bench.results[0].problem, "needs "), bench.results[0].problem);
    assert_int_equal(bench.results[0].value_count, 0);
    bench_fini(&bench);
}

static size_t cuts[REPETITIONS], cut_count;

static void say_cut(const workload_t *workload, trial_t *trial)
{
    (void)workload;
    cuts[cut_count++] = trial->cut_ops;
    trial->cut_to_ops = trial->cut_ops != 0 ? trial->cut_ops : 700;
}

TEST_CASE(every_repetition_is_cut_where_the_first_one_was)
{
    static const size_t wanted[] = {0, 700, 700};
    static const workload_t slow = {.name = "slow", .group = "g", .run = say_cut};
    bench_t bench = {.repetitions = REPETITIONS};

    assert_true(bench_add(&bench, &slow, "cuda"));
    cut_count = 0;
    assert_true(bench_run(&bench));
    assert_int_equal(cut_count, REPETITIONS);
    assert_memory_equal(cuts, wanted, sizeof(wanted));
    assert_int_equal(bench.results[0].cut_ops, 700);
    bench_fini(&bench);
}

/* --- trials about the memory of a resource -------------------------------------------- */

static rmm_resource_t *pool_of(uint64_t bytes)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *cuda, *pool;

    options.initial_bytes = bytes;
    options.maximum_bytes = bytes;
    assert_ok(rmm_cuda_resource_create(&cuda));
    assert_ok(rmm_pool_resource_create(cuda, &options, &pool));
    rmm_resource_release(cuda);
    return pool;
}

/* Of five blocks the first, third and fifth are freed, and no two of them are neighbours: a
 * third of the free memory serves the largest request, which is the third one tried. */
TEST_CASE(the_largest_request_is_a_share_of_all_blocks_that_are_free)
{
    static const workload_t holes = {.amount = 2};
    const trial_scale_t scale = {.growth_bytes = UINT64_C(64) << 20};
    trial_t trial = {.scale = &scale, .resource = pool_of(UINT64_C(5) << 20)};

    run_largest(&holes, &trial);
    assert_string_equal(trial.problem, "");
    assert_int_equal(trial.operations, 3);
    assert_true(trial.value == 100.0 / 3);
    rmm_resource_release(trial.resource);
}

TEST_CASE(the_figure_of_a_full_resource_is_the_mean_of_its_failures)
{
    static const workload_t full = {.name = "full"};
    const trial_scale_t scale = {.full_blocks = 256};
    latencies_t latencies = {0};
    trial_t trial = {
        .scale = &scale,
        .resource = pool_of(UINT64_C(1) << 20),
        .latencies = &latencies};
    uint64_t sum_ns = 0;

    run_full(&full, &trial);
    assert_string_equal(trial.problem, "");
    assert_true(trial.operations > 0);
    assert_int_equal(latencies.count, trial.operations);
    for (size_t i = 0; i < latencies.count; i++) {
        sum_ns += latencies.ns[i];
    }
    assert_true(trial.value == (double)sum_ns / (double)trial.operations);
    latencies_fini(&latencies);
    rmm_resource_release(trial.resource);
}

/* --- the report ----------------------------------------------------------------------- */

static void say_figures(trial_t *trial, double value)
{
    assert_true(latencies_reserve(trial->latencies, 1));
    latencies_add(trial->latencies, 1000);
    trial->value = value;
    trial->operations = 12345;
}

static void say_ten(const workload_t *workload, trial_t *trial)
{
    (void)workload;
    say_figures(trial, 10);
    trial->cut_to_ops = 700;
}

static void say_less(const workload_t *workload, trial_t *trial)
{
    (void)workload;
    say_figures(trial, 9.999);
}

static void break_in_the_second(const workload_t *workload, trial_t *trial)
{
    (void)workload;
    say_figures(trial, 10);
    if (trial->latencies->count == 2) {
        trial_refuse(trial, "it broke");
    }
}

static const workload_t reported[] = {
    {.name = "ten", .group = "g", .unit = "ns", .run = say_ten},
    {.name = "less", .group = "g", .unit = "ns", .run = say_less},
    {.name = "broken", .group = "g", .unit = "ns", .run = break_in_the_second},
};

/* What is printed of these three, for free(). */
static char *print_reported(bool as_json)
{
    static const machine_t machine = {.driver = "sim", .is_simulated = true};
    bench_t bench = {.repetitions = 2};
    const bench_report_t report = {
        .version = "1", .machine = &machine, .bench = &bench};
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    assert_non_null(out);
    for (size_t i = 0; i < sizeof reported / sizeof *reported; i++) {
        assert_true(bench_add(&bench, &reported[i], "cuda"));
    }
    assert_false(bench_run(&bench)); /* one breaks */
    if (as_json) {
        assert_true(bench_print_json(&report, out));
    } else {
        bench_print_table(&report, out);
    }
    assert_int_equal(fclose(out), 0);
    bench_fini(&bench);
    return text;
}

/* The line of `text` that has this in it; it ends the text. */
static const char *line_with(char *text, const char *what)
{
    char *at = strstr(text, what), *begin, *end;

    assert_non_null(at);
    end = strchr(at, '\n');
    assert_non_null(end);
    *end = '\0';
    begin = strrchr(text, '\n');
    return begin != NULL ? begin + 1 : text;
}

static void assert_row(const char *name, const char *row)
{
    char *text = print_reported(false);

    assert_string_equal(line_with(text, name), row);
    free(text);
}

TEST_CASE(the_table_says_what_was_cut_and_what_broke)
{
    assert_row(
        "ten", "ten                      cuda                    10.0        10.0"
               "        10.0      1000      1000      1000  ns, cut");
    assert_row(
        "less", "less                     cuda                   9.999       9.999"
                "       9.999      1000      1000      1000  ns");
    assert_row(
        "broken", "broken                   cuda                       -  it broke");
}

static void assert_in_json(const char *name, const char *what)
{
    char key[64], *text = print_reported(true);
    const char *line;

    snprintf(key, sizeof key, "\"workload\": \"%s\"", name);
    line = line_with(text, key);
    if (strstr(line, what) == NULL) {
        fail_msg("no %s in %s", what, line);
    }
    free(text);
}

TEST_CASE(json_has_null_for_every_figure_of_what_broke)
{
    assert_in_json("less", "\"operations\": 12345, \"cut\": false");
    assert_in_json("ten", "\"operations\": 12345, \"cut\": true");
    assert_in_json("less", "\"p50_ns\": 1000, \"p99_ns\": 1000, \"p999_ns\": 1000");
    assert_in_json("broken", "\"median\": null, \"min\": null, \"max\": null");
    assert_in_json("broken", "\"p50_ns\": null, \"p99_ns\": null, \"p999_ns\": null");
}
