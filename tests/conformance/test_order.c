/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The traffic of order_traffic.h over everything that hands memory out again: each is
 * made so small that blocks change streams all the time. That the traffic catches a
 * resource that is wrong about it: sim.pool_order.
 *
 * A new one: a line in `subjects`.
 */
#include "sim/pool/order_traffic.h"

#include <stdio.h>
#include <stdlib.h>

#include "driver/sim/control.h"

enum { FEW_SEEDS = 40 };
#define SMALL_BYTES (256 * KIB)

typedef struct named {
    const char *name;
    order_subject_t subject; /* fixed sizes: up to 16 KiB, which is 64 units */
    bool is_small; /* so much that blocks must change streams, or allocations fail */
} named_t;

/* --- what hands out again ----------------------------------------------------------- */

static rmm_resource_t *pool(void)
{
    return make_pool(0, SMALL_BYTES);
}

static rmm_resource_t *build_pool_over(rmm_status_t (*create)(rmm_resource_t **))
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *upstream;
    rmm_resource_t *mr;

    options.maximum_bytes = SMALL_BYTES;
    assert_ok(create(&upstream));
    assert_ok(rmm_pool_resource_create(upstream, &options, &mr));
    rmm_resource_release(upstream);
    return mr;
}

static rmm_resource_t *pinned_pool(void)
{
    return build_pool_over(rmm_pinned_resource_create);
}

static rmm_resource_t *managed_pool(void)
{
    return build_pool_over(rmm_managed_resource_create);
}

/* Has 2 MiB at least, so its blocks are larger. */
static rmm_resource_t *pool_virtual(void)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.maximum_bytes = 2 * MIB;
    options.flags = RMM_POOL_VIRTUAL;
    assert_ok(rmm_pool_resource_create(NULL, &options, &mr));
    return mr;
}

static rmm_resource_t *pool_over_pool(void)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *lower = make_pool(0, 2 * SMALL_BYTES);
    rmm_resource_t *mr;

    options.maximum_bytes = SMALL_BYTES;
    assert_ok(rmm_pool_resource_create(lower, &options, &mr));
    rmm_resource_release(lower);
    return mr;
}

static rmm_resource_t *limited(uint64_t limit_bytes)
{
    rmm_limiting_options_t options = RMM_LIMITING_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr;

    options.limit_bytes = limit_bytes;
    assert_ok(rmm_limiting_adaptor_create(cuda, &options, &mr));
    rmm_resource_release(cuda);
    return mr;
}

/* One chunk and no more. */
static rmm_resource_t *blocks_of(uint64_t block_bytes, uint64_t count)
{
    rmm_fixed_size_options_t options = RMM_FIXED_SIZE_OPTIONS_INIT;
    rmm_resource_t *upstream = limited(block_bytes * count);
    rmm_resource_t *mr;

    options.block_bytes = block_bytes;
    options.blocks_per_chunk = count;
    assert_ok(rmm_fixed_size_resource_create(upstream, &options, &mr));
    rmm_resource_release(upstream);
    return mr;
}

static rmm_resource_t *fixed_size(void)
{
    return blocks_of(16 * KIB, 16);
}

static rmm_resource_t *binning(void)
{
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr;

    assert_ok(rmm_binning_resource_create(cuda, NULL, &mr));
    rmm_resource_release(cuda);
    for (size_t bytes = 4 * KIB; bytes <= 16 * KIB; bytes *= 2) {
        rmm_resource_t *bin = blocks_of(bytes, 6);

        assert_ok(rmm_binning_resource_add_bin(mr, bytes, bin));
        rmm_resource_release(bin);
    }
    return mr;
}

static rmm_resource_t *async(void)
{
    rmm_resource_t *mr;

    assert_ok(rmm_async_resource_create(NULL, &mr));
    return mr;
}

static rmm_resource_t *async_managed(void)
{
    rmm_resource_t *mr;

    assert_ok(rmm_async_managed_resource_create(&mr));
    return mr;
}

/* --- behind adaptors ---------------------------------------------------------------- */

/* Takes over the reference on upstream. */
static rmm_resource_t *aligned_over(rmm_resource_t *upstream)
{
    rmm_aligned_options_t options = RMM_ALIGNED_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.alignment_bytes = 4096;
    assert_ok(rmm_aligned_adaptor_create(upstream, &options, &mr));
    rmm_resource_release(upstream);
    return mr;
}

static rmm_resource_t *aligned(void)
{
    return aligned_over(pool());
}

static bool give_up(size_t bytes, void *argument)
{
    (void)bytes;
    (void)argument;
    return false;
}

/* Every adaptor that takes a request on unchanged, one above the other. */
static rmm_resource_t *adaptors(void)
{
    rmm_failure_callback_options_t failing = RMM_FAILURE_CALLBACK_OPTIONS_INIT;
    rmm_limiting_options_t limiting = RMM_LIMITING_OPTIONS_INIT;
    rmm_resource_t *stack[5] = {pool()};

    limiting.limit_bytes = SMALL_BYTES;
    failing.callback = give_up;
    assert_ok(rmm_limiting_adaptor_create(stack[0], &limiting, &stack[1]));
    assert_ok(rmm_statistics_adaptor_create(stack[1], NULL, &stack[2]));
    assert_ok(rmm_thread_safe_adaptor_create(stack[2], NULL, &stack[3]));
    assert_ok(rmm_failure_callback_adaptor_create(stack[3], &failing, &stack[4]));
    for (int i = 0; i < 4; i++) {
        rmm_resource_release(stack[i]);
    }
    return stack[4];
}

static rmm_resource_t *prefetch(void)
{
    rmm_resource_t *upstream = managed_pool();
    rmm_resource_t *mr;

    assert_ok(rmm_prefetch_adaptor_create(upstream, NULL, &mr));
    rmm_resource_release(upstream);
    return mr;
}

/* --- the traffic -------------------------------------------------------------------- */

static void never_mixes_streams(void **state)
{
    const named_t *named = *state;
    uint64_t seeds = getenv("RMM_TEST_QUICK") != NULL ? FEW_SEEDS / 5 : FEW_SEEDS;
    uint64_t served = 0;
    uint64_t most = 0;

    for (uint64_t seed = 1; seed <= seeds; seed++) {
        traffic_t traffic = {
            .subject = &named->subject, .random = seed, .mr = named->subject.make()};

        rmm__sim_reseed(seed);
        run(&traffic);
        if (traffic.mixups != 0) {
            fail_msg(
                "%s: seed %lu: %lu words of other uses", named->name,
                (unsigned long)seed, (unsigned long)traffic.mixups);
        }
        served += traffic.served;
        most += traffic.tried;
        assert_int_equal(stats_of(traffic.mr).current_bytes, 0);
        assert_int_equal(stats_of(traffic.mr).invalid_free_count, 0);
        rmm_resource_release(traffic.mr);
        assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    }
    assert_string_equal(rmm__sim_violation_text(), "");
    assert_true(served > seeds * 100);
    /* a small one was full at times, or it was never short of blocks */
    assert_true(named->is_small == (served < most));
}

/* clang-format off */
static named_t subjects[] = {
    {"adaptors", {adaptors, NULL, 64, 0}, true},
    {"aligned", {aligned, NULL, 64, 0}, true},
    {"async", {async, NULL, 64, 0}, false},
    {"async_managed", {async_managed, NULL, 64, 0}, false},
    {"binning", {binning, NULL, 64, 0}, true},
    {"fixed_size", {fixed_size, NULL, 64, 0}, true},
    {"managed_pool", {managed_pool, NULL, 64, 0}, true},
    {"pinned_pool", {pinned_pool, NULL, 64, 0}, true},
    {"pool", {pool, NULL, 64, 0}, true},
    {"pool_over_pool", {pool_over_pool, NULL, 64, 0}, true},
    {"pool_virtual", {pool_virtual, NULL, 640, 0}, true},
    {"prefetch", {prefetch, NULL, 64, 0}, true},
};
/* clang-format on */

#define SUBJECT_COUNT (sizeof(subjects) / sizeof(subjects[0]))

int main(void)
{
    struct CMUnitTest tests[SUBJECT_COUNT];
    char names[SUBJECT_COUNT][60];

    for (size_t i = 0; i < SUBJECT_COUNT; i++) {
        snprintf(
            names[i], sizeof(names[i]), "%s_never_mixes_streams", subjects[i].name);
        tests[i] = (struct CMUnitTest){
            names[i], never_mixes_streams, NULL, NULL, &subjects[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
