/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --verify must find what it is there for: a resource that hands a block to another
 * stream without any order is planted, and patterns are damaged on purpose.
 */
#include "harness/harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rmm/cuda_resource.h>
#include <rmm/pool_resource.h>
#include <rmm/sim.h>

#include "base/resource_impl.h"
#include "driver/sim/control.h"
#include "harness/runtime.h"
#include "replay/replay.h"

#define SEEDS 20

static runtime_t runtime;

/* --- a resource that reuses its one block whatever the stream ------------------------ */

typedef struct reckless {
    rmm_resource_t base;
    void *block;
    size_t block_bytes;
} reckless_t;

static uint64_t reckless_delay_ns; /* of each allocation */

static rmm_status_t
reckless_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    reckless_t *self = RMM_CONTAINER_OF(mr, reckless_t, base);
    const struct timespec delay = {
        .tv_sec = (time_t)(reckless_delay_ns / 1000000000),
        .tv_nsec = (long)(reckless_delay_ns % 1000000000)};
    assert_true(request->bytes <= self->block_bytes);
    (void)nanosleep(&delay, NULL);
    *ptr_out = self->block;
    return RMM_OK;
}

static void
reckless_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
}

static rmm_status_t reckless_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    return RMM_ERR_UNSUPPORTED;
}

static void reckless_destroy(rmm_resource_t *mr)
{
    reckless_t *self = RMM_CONTAINER_OF(mr, reckless_t, base);
    rmm_resource_dealloc(mr->upstream, self->block, self->block_bytes, 0, NULL);
    rmm__resource_fini(mr);
    free(self);
}

static const rmm_resource_ops_t reckless_ops = {
    .type_name = "reckless",
    .alloc = reckless_alloc,
    .dealloc = reckless_dealloc,
    .trim = reckless_trim,
    .destroy = reckless_destroy,
};

static rmm_resource_t *reckless_create(size_t block_bytes)
{
    rmm_resource_t *upstream;
    reckless_t *self = calloc(1, sizeof *self);
    assert_non_null(self);
    assert_ok(rmm_cuda_resource_create(&upstream));
    const rmm_resource_desc_t desc = {
        .ops = &reckless_ops,
        .upstream = upstream,
        .properties = RMM_DEVICE_ACCESSIBLE,
    };
    assert_ok(rmm__resource_init(&self->base, &desc));
    self->block_bytes = block_bytes;
    assert_ok(rmm_resource_alloc(upstream, block_bytes, 0, NULL, &self->block));
    rmm_resource_release(upstream);
    return &self->base;
}

static rmm_resource_t *pool_create(void)
{
    rmm_resource_t *upstream;
    rmm_resource_t *pool;
    assert_ok(rmm_cuda_resource_create(&upstream));
    assert_ok(rmm_pool_resource_create(upstream, NULL, &pool));
    rmm_resource_release(upstream);
    return pool;
}

/* --- plans ------------------------------------------------------------------------- */

static void
add(plan_t *plan, log_action_t action, uint64_t pointer, uint64_t bytes,
    uint64_t stream)
{
    char problem[LOG_PROBLEM_MAX];
    log_row_t row = {
        .line = plan->op_count + 2,
        .thread = stream,
        .action = action,
        .pointer = pointer,
        .bytes = bytes,
        .stream = stream,
    };
    assert_int_equal(plan_add(plan, &row, problem), PLAN_ADDED);
}

/* Two streams that take and free the same size in turn. */
static void make_plan(plan_t *plan, uint64_t bytes)
{
    plan_init(plan);
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t stream = 0x1000 + i % 2;
        add(plan, LOG_ALLOCATE, 0x100, bytes, stream);
        add(plan, LOG_FREE, 0x100, bytes, stream);
    }
}

/* Replays under a seed; the number of words that differed. */
static unsigned long long
mismatches(const plan_t *plan, rmm_resource_t *resource, uint64_t seed)
{
    static replay_t replay;
    verify_report_t report;
    rmm__sim_reseed(seed);
    if (!replay_open(&replay, plan, resource, 0, verify_backend_select())) {
        fail_msg("%s", replay.error);
    }
    assert_true(replay_run(&replay));
    assert_true(replay_run(&replay));
    assert_true(replay_verify_finish(&replay, &report));
    if (report.count > 0) {
        const plan_op_t *op = replay_op(&replay, report.shown[0].op);
        assert_false(op->is_free);
        assert_true(report.shown[0].offset < op->bytes);
        assert_true(report.shown[0].expected != report.shown[0].found);
    }
    replay_close(&replay);
    return report.count;
}

TEST_CASE(catches_a_block_given_to_another_stream_too_early)
{
    const uint64_t sizes[] = {5, 4096, 65537, 10000000};
    for (size_t i = 0; i < 4; i++) {
        plan_t plan;
        int caught = 0;
        rmm_resource_t *resource = reckless_create(sizes[i]);
        make_plan(&plan, sizes[i]);
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            caught += mismatches(&plan, resource, seed) > 0;
        }
        rmm_resource_release(resource);
        plan_fini(&plan);
        assert_true(caught > SEEDS / 2);
    }
}

TEST_CASE(finds_nothing_where_the_order_is_kept)
{
    const uint64_t sizes[] = {5, 4096, 65537, 10000000};
    for (size_t i = 0; i < 4; i++) {
        plan_t plan;
        rmm_resource_t *resource = pool_create();
        make_plan(&plan, sizes[i]);
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            assert_int_equal(mismatches(&plan, resource, seed), 0);
        }
        rmm_resource_release(resource);
        plan_fini(&plan);
    }
}

/* A free on another stream is ordered after the pattern: no false finding. */
TEST_CASE(orders_a_free_on_another_stream)
{
    plan_t plan;
    rmm_resource_t *resource = pool_create();
    plan_init(&plan);
    for (uint64_t i = 0; i < 40; i++) {
        add(&plan, LOG_ALLOCATE, 0x100, 3000, 0x1000 + i % 3);
        add(&plan, LOG_FREE, 0x100, 3000, i % 4); /* 2 and 3: streams of their own */
    }
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        assert_int_equal(mismatches(&plan, resource, seed), 0);
    }
    rmm_resource_release(resource);
    plan_fini(&plan);
}

/* --- several runs ------------------------------------------------------------------- */

static void open_replay(
    replay_t *replay, const plan_t *plan, rmm_resource_t *resource,
    const verify_backend_t *verify)
{
    if (!replay_open(replay, plan, resource, 0, verify)) {
        fail_msg("%s", replay->error);
    }
}

TEST_CASE(a_run_begins_without_what_the_last_one_left)
{
    static replay_t replay;
    rmm_stats_t stats = RMM_STATS_INIT;
    plan_t plan;
    rmm_resource_t *resource = pool_create();
    plan_init(&plan);
    add(&plan, LOG_ALLOCATE, 0x100, 3000, 0);
    open_replay(&replay, &plan, resource, NULL);
    for (int run = 0; run < 3; run++) {
        assert_true(replay_run(&replay));
        assert_ok(rmm_resource_get_stats(resource, &stats));
        assert_int_equal(stats.current_count, 1);
    }
    replay_close(&replay);
    rmm_resource_release(resource);
    plan_fini(&plan);
}

/* Its handle had a block before, whose address it still has. */
TEST_CASE(a_failed_allocation_has_no_free)
{
    const uint64_t sizes[] = {3000, UINT64_C(1) << 50};
    static replay_t replay;
    rmm_stats_t stats = RMM_STATS_INIT;
    plan_t plan;
    rmm_resource_t *resource = pool_create();
    plan_init(&plan);
    for (int i = 0; i < 2; i++) {
        add(&plan, LOG_ALLOCATE, 0x100, sizes[i], 0);
        add(&plan, LOG_FREE, 0x100, sizes[i], 0);
    }
    open_replay(&replay, &plan, resource, NULL);
    assert_true(replay_run(&replay));
    assert_int_equal(replay.failure_count, 1);
    assert_ok(rmm_resource_get_stats(resource, &stats));
    assert_int_equal(stats.invalid_free_count, 0);
    replay_close(&replay);
    rmm_resource_release(resource);
    plan_fini(&plan);
}

TEST_CASE(the_best_run_is_the_shortest)
{
    static replay_t replay;
    plan_t plan;
    rmm_resource_t *resource = reckless_create(4096);
    make_plan(&plan, 4096);
    open_replay(&replay, &plan, resource, NULL);
    reckless_delay_ns = 0;
    assert_true(replay_run(&replay));
    uint64_t first = replay.best_elapsed_ns;
    reckless_delay_ns = first + 1000000;
    assert_true(replay_run(&replay));
    reckless_delay_ns = 0;
    assert_int_equal(replay.best_elapsed_ns, first);
    assert_true(replay.elapsed_ns > 2 * first);
    replay_close(&replay);
    rmm_resource_release(resource);
    plan_fini(&plan);
}

static uint64_t filled[8];
static size_t filled_count;

static int note_fill(void *backend_state, const verify_block_t *block, rmm_stream_t on)
{
    assert_ptr_equal(backend_state, filled);
    filled[filled_count++] = block->op;
    return 0;
}

static int open_nothing(void **backend_state)
{
    *backend_state = filled;
    return 0;
}

static int
check_nothing(void *backend_state, const verify_block_t *block, rmm_stream_t on)
{
    return 0;
}

static void close_nothing(void *backend_state)
{
}

/* Else the bytes of the last run would look right in the next. */
TEST_CASE(each_run_has_patterns_of_its_own)
{
    static const verify_backend_t backend = {
        .open = open_nothing,
        .fill = note_fill,
        .check = check_nothing,
        .close = close_nothing};
    static const uint64_t wanted[] = {0, 1, 3, 4, 6, 7};
    static replay_t replay;
    plan_t plan;
    rmm_resource_t *resource = pool_create();
    plan_init(&plan);
    add(&plan, LOG_ALLOCATE, 0x100, 3000, 0);
    add(&plan, LOG_ALLOCATE, 0x200, 3000, 0);
    add(&plan, LOG_FREE, 0x100, 3000, 0);
    open_replay(&replay, &plan, resource, &backend);
    for (int run = 0; run < 3; run++) {
        assert_true(replay_run(&replay));
    }
    assert_int_equal(filled_count, 6);
    assert_memory_equal(filled, wanted, sizeof wanted);
    replay_close(&replay);
    rmm_resource_release(resource);
    plan_fini(&plan);
}

/* --- the backend by itself ---------------------------------------------------------- */

typedef struct bench {
    const verify_backend_t *backend;
    void *backend_state;
    rmm_resource_t *resource;
    verify_block_t block;
} bench_t;

static void bench_open(bench_t *bench, size_t bytes)
{
    bench->backend = verify_backend_select();
    assert_ptr_equal(bench->backend, &verify_sim_backend);
    assert_int_equal(bench->backend->open(&bench->backend_state), 0);
    assert_ok(rmm_cuda_resource_create(&bench->resource));
    bench->block = (verify_block_t){.bytes = bytes, .op = 42};
    assert_ok(
        rmm_resource_alloc(bench->resource, bytes, 0, NULL, &bench->block.address));
    assert_int_equal(
        bench->backend->fill(bench->backend_state, &bench->block, NULL), 0);
}

static void bench_close(bench_t *bench, verify_report_t *report)
{
    void *state = bench->backend_state;
    assert_int_equal(bench->backend->check(state, &bench->block, NULL), 0);
    assert_int_equal(bench->backend->finish(state, report), 0);
    rmm_resource_dealloc(
        bench->resource, bench->block.address, bench->block.bytes, 0, NULL);
    rmm_resource_release(bench->resource);
    bench->backend->close(state);
}

TEST_CASE(accepts_its_own_pattern_for_every_size)
{
    const size_t sizes[] = {1,     7,     8,     9,     4095,   4096,    4097,   65535,
                            65536, 65537, 65544, 69633, 100000, 1048576, 1048577};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bench_t bench;
        verify_report_t report;
        bench_open(&bench, sizes[i]);
        bench_close(&bench, &report);
        assert_int_equal(report.count, 0);
    }
}

/* At both ends, in the last word that is not whole, and between. */
TEST_CASE(notices_one_damaged_byte)
{
    const struct {
        size_t bytes, offset;
    } cases[] = {{1, 0},           {9, 8},
                 {4097, 0},        {4097, 4096},
                 {65536, 33333},   {65537, 0},
                 {65537, 65536},   {10000001, 0},
                 {10000001, 4095}, {10000001, 10000000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench_t bench;
        verify_report_t report;
        bench_open(&bench, cases[i].bytes);
        unsigned char *byte = (unsigned char *)bench.block.address + cases[i].offset;
        assert_int_equal(rmm_sim_device_synchronize(), 0);
        *byte = (unsigned char)~*byte;
        bench_close(&bench, &report);
        assert_int_equal(report.count, 1);
        assert_int_equal(report.shown[0].op, 42);
        assert_int_equal(report.shown[0].address, (uintptr_t)bench.block.address);
        assert_int_equal(report.shown[0].offset, cases[i].offset / 8 * 8);
    }
}

TEST_CASE(pieces_cover_both_ends_and_stay_inside)
{
    for (uint64_t bytes = 1; bytes < UINT64_C(1) << 40; bytes += bytes / 3 + 1) {
        uint64_t pieces = verify_piece_count(bytes);
        uint64_t last_end = 0;
        assert_true(pieces > 0 && pieces <= 16);
        assert_int_equal(verify_piece_begin(bytes, 0), 0);
        assert_int_equal(verify_piece_end(bytes, pieces - 1), bytes);
        for (uint64_t piece = 0; piece < pieces; piece++) {
            uint64_t begin = verify_piece_begin(bytes, piece);
            uint64_t end = verify_piece_end(bytes, piece);
            assert_int_equal(begin % 8, 0);
            assert_true(begin >= last_end && end > begin && end <= bytes);
            assert_true(bytes > VERIFY_WHOLE_BYTES || begin == last_end);
            last_end = end;
        }
    }
}

static void note_thread(void *context)
{
    *(pthread_t *)context = pthread_self();
}

TEST_CASE(every_thread_of_a_log_is_a_thread)
{
    pthread_t seen[6];
    crew_t *crew = crew_create(3);
    assert_non_null(crew);
    for (size_t i = 0; i < 6; i++) {
        crew_call(crew, i % 3, note_thread, &seen[i]);
    }
    crew_destroy(crew);
    for (size_t i = 0; i < 3; i++) {
        assert_true(pthread_equal(seen[i], seen[i + 3]));
        assert_false(pthread_equal(seen[i], seen[(i + 1) % 3]));
    }
    crew = crew_create(1); /* one thread: the caller's */
    crew_call(crew, 0, note_thread, &seen[0]);
    assert_true(pthread_equal(seen[0], pthread_self()));
    crew_destroy(crew);
}

static int make_location(void **state)
{
    setenv("RMM_DRIVER", "sim", 1);
    runtime_open(&runtime);
    return 0;
}

static int leave_location(void **state)
{
    assert_int_equal(rmm_sim_violations(), 0);
    runtime_close(&runtime);
    return 0;
}

int main(void)
{
    return harness_run_cases(make_location, leave_location);
}
