/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random stacks of resources and adaptors, each up to five levels high, under random requests on
 * two devices' streams with failing driver calls, against a plain model: blocks are
 * aligned and do not overlap, the figures are those of the model, a failed request leaves its
 * output alone, and the end of the stack gives all memory back.
 */
#include "sim/pool/pool_harness.h"

#include <inttypes.h>
#include <stdio.h>

#include "driver/sim/control.h"
#include "harness/random.h"

#define STACKS 300
#define STEPS 150
#define LIVE_MAX 64
#define STREAMS 4

typedef struct block {
    char *ptr;
    size_t bytes, align;
} block_t;

typedef struct model {
    uint64_t random;
    rmm_resource_t *mr;
    rmm_stream_t streams[STREAMS]; /* the last one is of device 1 */
    block_t blocks[LIVE_MAX];
    int count;
    uint64_t bytes;
    int adaptors; /* levels above the topmost engine or base */
} model_t;

static rmm_resource_t *make_base(model_t *model)
{
    static const char *const specs[] = {"cuda",   "managed",   "pinned",
                                        "system", "async",     "pool_virtual",
                                        "pool",   "arena:8MiB"};
    rmm_resource_t *mr;

    assert_ok(rmm_resource_create_from_spec(
        specs[draw(&model->random, sizeof(specs) / sizeof(specs[0]))], &mr));
    return mr;
}

static rmm_status_t
wrap_engine(model_t *model, rmm_resource_t *below, rmm_resource_t **out)
{
    rmm_arena_options_t arena = RMM_ARENA_OPTIONS_INIT;
    rmm_fixed_size_options_t fixed = RMM_FIXED_SIZE_OPTIONS_INIT;
    rmm_binning_options_t binning = RMM_BINNING_OPTIONS_INIT;

    switch (draw(&model->random, 4)) {
    case 0:
        arena.arena_bytes = MIB + draw(&model->random, 4 * MIB);
        return rmm_arena_resource_create(below, &arena, out);
    case 1:
        fixed.block_bytes = 1 + draw(&model->random, 64 * KIB);
        fixed.blocks_per_chunk = 1 + draw(&model->random, 16);
        return rmm_fixed_size_resource_create(below, &fixed, out);
    case 2:
        binning.min_exponent = 8;
        binning.max_exponent = 8 + (uint32_t)draw(&model->random, 8);
        return rmm_binning_resource_create(below, &binning, out);
    default:
        return rmm_pool_resource_create(below, NULL, out);
    }
}

static rmm_status_t fall_back_to_managed(rmm_resource_t *below, rmm_resource_t **out)
{
    rmm_fallback_options_t options = RMM_FALLBACK_OPTIONS_INIT;
    rmm_status_t status;

    assert_ok(rmm_managed_resource_create(&options.alternate));
    status = rmm_fallback_adaptor_create(below, &options, out);
    rmm_resource_release(options.alternate);
    return status;
}

static rmm_status_t
wrap_adaptor(model_t *model, rmm_resource_t *below, rmm_resource_t **out)
{
    rmm_limiting_options_t limiting = RMM_LIMITING_OPTIONS_INIT;
    rmm_aligned_options_t aligned = RMM_ALIGNED_OPTIONS_INIT;
    rmm_wait_options_t wait = RMM_WAIT_OPTIONS_INIT;

    switch (draw(&model->random, 9)) {
    case 0:
        limiting.limit_bytes = MIB + draw(&model->random, 8 * MIB);
        return rmm_limiting_adaptor_create(below, &limiting, out);
    case 1:
        aligned.alignment_bytes = UINT64_C(1) << draw(&model->random, 18);
        aligned.threshold_bytes = draw(&model->random, 8 * KIB);
        return rmm_aligned_adaptor_create(below, &aligned, out);
    case 2:
        return rmm_prefetch_adaptor_create(below, NULL, out);
    case 3:
        return rmm_statistics_adaptor_create(below, NULL, out);
    case 4:
        return rmm_thread_safe_adaptor_create(below, NULL, out);
    case 5:
        return rmm_retry_adaptor_create(below, NULL, out);
    case 6: /* one thread: all that hold memory wait at once */
        wait.timeout_ms = 60000;
        return rmm_wait_adaptor_create(below, &wait, out);
    case 7:
        return fall_back_to_managed(below, out);
    default:
        return rmm_tracking_adaptor_create(below, NULL, out);
    }
}

/* A level that finds too little memory below it (an arena over a small one) is left out. */
static void make_stack(model_t *model)
{
    int levels = 1 + (int)draw(&model->random, 5);

    model->mr = make_base(model);
    while (levels-- > 0) {
        bool is_engine = levels != 0 && draw(&model->random, 3) == 0;
        rmm_resource_t *above = NULL;
        rmm_status_t status = is_engine ? wrap_engine(model, model->mr, &above)
                                        : wrap_adaptor(model, model->mr, &above);

        if (status == RMM_OK) {
            rmm_resource_release(model->mr);
            model->mr = above;
            model->adaptors = is_engine ? 0 : model->adaptors + 1;
        } else {
            assert_true(rmm_status_is_alloc_failure(status));
        }
    }
}

static void assert_apart(const model_t *model, const char *ptr, size_t bytes)
{
    int i;

    for (i = 0; i < model->count; i++) {
        const block_t *other = &model->blocks[i];

        assert_true(ptr + bytes <= other->ptr || other->ptr + other->bytes <= ptr);
    }
}

/* One of the next driver calls fails, every fourth time. */
static void plan_fault(model_t *model)
{
    char plan[32];

    if (draw(&model->random, 4) == 0) {
        snprintf(plan, sizeof(plan), "any:%d", 1 + (int)draw(&model->random, 8));
        assert_true(rmm_sim_fail(plan));
    }
}

static void take_one(model_t *model, rmm_stream_t stream)
{
    size_t bytes =
        1 + draw(&model->random, UINT64_C(1) << (4 + draw(&model->random, 15)));
    size_t align = RMM_ALIGN_DEFAULT << draw(&model->random, 8);
    void *mark = &mark;
    void *ptr = mark;
    rmm_status_t status;
    bool struck;

    plan_fault(model);
    status = rmm_resource_alloc(model->mr, bytes, align, stream, &ptr);
    struck = rmm__sim_fault_has_struck();
    rmm_sim_fail(NULL);
    if (status != RMM_OK) {
        assert_ptr_equal(ptr, mark);
        assert_true(struck || rmm_status_is_alloc_failure(status));
        return;
    }
    assert_ok(rmm_stream_synchronize(stream)); /* may be freed on any stream */
    assert_int_equal((uintptr_t)ptr % align, 0);
    assert_apart(model, ptr, bytes);
    model->blocks[model->count++] = (block_t){ptr, bytes, align};
    model->bytes += bytes;
}

static void give_one(model_t *model, rmm_stream_t stream)
{
    block_t *block = &model->blocks[draw(&model->random, (uint64_t)model->count)];

    rmm_resource_dealloc(model->mr, block->ptr, block->bytes, block->align, stream);
    model->bytes -= block->bytes;
    *block = model->blocks[--model->count];
}

static void step(model_t *model)
{
    rmm_stream_t stream = model->streams[draw(&model->random, STREAMS)];
    uint64_t action = draw(&model->random, 100);
    rmm_stats_t stats;

    if (action < 3) {
        rmm_status_t status = rmm_resource_trim(model->mr, 0);

        assert_true(status == RMM_OK || status == RMM_ERR_UNSUPPORTED);
    } else if (action < 55 && model->count < LIVE_MAX) {
        take_one(model, stream);
    } else if (model->count > 0) {
        give_one(model, stream);
    }
    stats = stats_of(model->mr);
    assert_int_equal(stats.current_bytes, model->bytes);
    assert_int_equal(stats.current_count, model->count);
    assert_int_equal(stats.invalid_free_count, 0);
}

/* No level holds a block that a failed request left there; below an engine are its chunks. */
static void assert_empty(const model_t *model)
{
    const rmm_resource_t *mr = model->mr;
    int i;

    for (i = 0; i <= model->adaptors; i++) {
        assert_int_equal(stats_of(mr).current_count, 0);
        mr = rmm_resource_upstream(mr);
    }
}

static void make_streams(model_t *model)
{
    int i;

    for (i = 0; i < STREAMS; i++) {
        assert_ok(rmm_device_set(i == STREAMS - 1));
        assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &model->streams[i]));
    }
    assert_ok(rmm_device_set(0));
}

/* Returns the number of allocations that succeeded. */
static uint64_t run_stack(uint64_t seed)
{
    model_t model = {.random = seed};
    uint64_t before = rmm_sim_allocated_bytes(0);
    rmm_stats_t stats;
    int i;

    rmm__sim_reseed(seed);
    make_streams(&model);
    make_stack(&model);
    for (i = 0; i < STEPS; i++) {
        step(&model);
    }
    while (model.count > 0) {
        give_one(&model, model.streams[0]);
    }
    assert_empty(&model);
    stats = stats_of(model.mr);
    rmm_resource_release(model.mr);
    for (i = 0; i < STREAMS; i++) { /* a memory pool ends with its last queued free */
        assert_ok(rmm_stream_synchronize(model.streams[i]));
        assert_ok(rmm_stream_destroy(model.streams[i]));
    }
    assert_int_equal(rmm_sim_allocated_bytes(0), before);
    return stats.total_count;
}

TEST_CASE(keeps_to_the_model_whatever_is_stacked)
{
    uint64_t seed;
    uint64_t allocations = 0;

    for (seed = 1; seed <= STACKS; seed++) {
        print_message("stack of seed %" PRIu64 "\n", seed);
        allocations += run_stack(seed);
    }
    assert_true(allocations > STACKS * STEPS / 8); /* else most stacks refuse all */
    assert_int_equal(rmm_sim_violations(), 0);
}
