/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rmm-bench decides before the clock starts, and what it makes of measurements.
 */
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>

#include "bench/sample.h"
#include "bench/script.h"

/* Plays a script on numbers: each allocation finds its handle free, each free finds it used. */
typedef struct model {
    const script_t *script;
    uint32_t *bytes; /* of each handle; 0: free */
    size_t live_count, most_live;
    uint64_t live_bytes, most_bytes;
    size_t allocations;
    uint32_t smallest, largest;
} model_t;

static void model_init(model_t *model, const script_t *script)
{
    *model = (model_t){.script = script, .smallest = UINT32_MAX};
    model->bytes = calloc(script->handle_count, sizeof *model->bytes);
    assert_non_null(model->bytes);
}

static void model_allocate(model_t *model, const script_op_t *op)
{
    assert_int_equal(model->bytes[op->handle], 0);
    model->bytes[op->handle] = op->bytes;
    model->allocations++;
    model->live_count++;
    model->live_bytes += op->bytes;
    if (model->live_count > model->most_live) {
        model->most_live = model->live_count;
    }
    if (model->live_bytes > model->most_bytes) {
        model->most_bytes = model->live_bytes;
    }
    model->smallest = op->bytes < model->smallest ? op->bytes : model->smallest;
    model->largest = op->bytes > model->largest ? op->bytes : model->largest;
}

static void model_play(model_t *model, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        const script_op_t *op = &model->script->ops[i];
        assert_true(op->handle < model->script->handle_count);
        if (op->bytes != 0) {
            model_allocate(model, op);
            continue;
        }
        assert_int_not_equal(model->bytes[op->handle], 0);
        model->live_count--;
        model->live_bytes -= model->bytes[op->handle];
        model->bytes[op->handle] = 0;
    }
}

/* The setup once, the rest as often as it likes. */
static void model_play_rounds(model_t *model, int rounds)
{
    const script_t *script = model->script;
    model_play(model, 0, script->setup_count);
    size_t live_count = model->live_count;
    for (int i = 0; i < rounds; i++) {
        model_play(model, script->setup_count, script->op_count);
        assert_int_equal(model->live_count, live_count);
    }
}

TEST_CASE(a_pair_allocates_and_frees_one_block)
{
    script_t script;
    model_t model;
    assert_true(script_pair(1024, 10, &script));
    model_init(&model, &script);
    model_play_rounds(&model, 3);
    assert_int_equal(model.allocations, 30);
    assert_int_equal(model.most_live, 1);
    assert_int_equal(model.smallest, 1024);
    assert_int_equal(model.largest, 1024);
    free(model.bytes);
    script_fini(&script);
}

TEST_CASE(churn_keeps_as_many_blocks_as_it_says)
{
    script_t script;
    model_t model;
    assert_true(script_churn(500, 4000, 7, &script));
    assert_int_equal(script.setup_count, 500);
    model_init(&model, &script);
    model_play_rounds(&model, 2);
    assert_int_equal(model.allocations, 500 + 2 * 4000);
    assert_int_equal(model.most_live, 500);
    assert_in_range(model.smallest, 256, 400);
    assert_in_range(model.largest, 3 << 20, 4 << 20);
    free(model.bytes);
    script_fini(&script);
}

TEST_CASE(a_mix_is_what_rmm_makes)
{
    const script_mix_t mix = {
        .allocations = 20000,
        .max_bytes = 1 << 20,
        .live_bytes = UINT64_C(1) << 40,
        .seed = 3};
    script_t script;
    model_t model;
    assert_true(script_mix(&mix, &script));
    model_init(&model, &script);
    model_play_rounds(&model, 2);
    assert_int_equal(script.op_count, 40000);
    assert_int_equal(model.live_count, 0);
    /* of 20000 / 0.73 operations 27 % freed: what is left at most */
    assert_in_range(model.most_live, 11500, 13800);
    assert_in_range(model.smallest, 1, 2000);
    assert_in_range(model.largest, (1 << 20) - 2000, 1 << 20);
    free(model.bytes);
    script_fini(&script);
}

TEST_CASE(a_mix_stays_below_its_live_bytes)
{
    const script_mix_t mix = {
        .allocations = 5000, .max_bytes = 1 << 20, .live_bytes = 64 << 20, .seed = 3};
    script_t script;
    model_t model;
    assert_true(script_mix(&mix, &script));
    model_init(&model, &script);
    model_play_rounds(&model, 1);
    assert_in_range(model.most_bytes, 62 << 20, 64 << 20);
    free(model.bytes);
    script_fini(&script);
}

TEST_CASE(the_same_seed_gives_the_same_script)
{
    script_t scripts[3];
    for (size_t i = 0; i < 3; i++) {
        assert_true(script_churn(10, 100, i < 2 ? 1 : 2, &scripts[i]));
    }
    size_t bytes = scripts[0].op_count * sizeof *scripts[0].ops;
    assert_memory_equal(scripts[0].ops, scripts[1].ops, bytes);
    assert_int_not_equal(memcmp(scripts[0].ops, scripts[2].ops, bytes), 0);
    for (size_t i = 0; i < 3; i++) {
        script_fini(&scripts[i]);
    }
}

TEST_CASE(finds_the_middle_and_the_ends)
{
    const double odd[] = {5, 1, 3, 3, 9}, even[] = {8, 2, 4, 6}, one[] = {7};
    assert_true(sample_median(odd, 5) == 3);
    assert_true(sample_min(odd, 5) == 1);
    assert_true(sample_max(odd, 5) == 9);
    assert_true(sample_median(even, 4) == 5);
    assert_true(sample_median(one, 1) == 7);
    assert_true(sample_min(one, 1) == 7 && sample_max(one, 1) == 7);
}

TEST_CASE(finds_percentiles_of_single_operations)
{
    latencies_t latencies = {0};
    assert_true(latencies_reserve(&latencies, 1000));
    for (uint64_t i = 1000; i > 0; i--) {
        latencies_add(&latencies, i);
    }
    latencies_sort(&latencies);
    assert_int_equal(latencies_percentile(&latencies, 0.5), 500);
    assert_int_equal(latencies_percentile(&latencies, 0.99), 990);
    assert_int_equal(latencies_percentile(&latencies, 0.999), 999);
    assert_int_equal(latencies_percentile(&latencies, 0), 1);
    assert_int_equal(latencies_percentile(&latencies, 1), 1000);
    assert_true(latencies_reserve(&latencies, 1));
    latencies_add(&latencies, UINT64_MAX);
    assert_int_equal(latencies_percentile(&latencies, 1), UINT32_MAX);
    assert_int_equal(latencies_percentile(&latencies, 0.5), 501); /* of 1001 */
    latencies_fini(&latencies);
}
