/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits and trims of an operator where several resources, threads or processes meet. What
 * every resource does with them: sim.limits.NAME.
 */
#include "sim/pool/pool_harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver/sim/control.h"
#include "harness/in_child.h"
#include "harness/limit_requests.h"
#include "harness/runtime.h"

#define THREADS 4
#define ROUNDS 200

static int set_up(void **state)
{
    rmm_resource_release(make_cuda());
    want_nothing();
    return 0;
}

static int tear_down(void **state)
{
    want_nothing();
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, set_up, tear_down)

static rmm_status_t try_take(rmm_resource_t *mr, size_t bytes, void **ptr_out)
{
    return rmm_resource_alloc(mr, bytes, 0, NULL, ptr_out);
}

/* A pool that holds so much, all of it free. */
static rmm_resource_t *caching_pool(size_t bytes)
{
    rmm_resource_t *pool = make_pool(0, 0);

    give(pool, take(pool, bytes, NULL), bytes, NULL);
    assert_in_range(stats_of(pool).reserved_bytes, bytes, 2 * bytes);
    return pool;
}

/* --- growth -------------------------------------------------------------------------- */

CASE(trims_another_pool_before_it_refuses_growth)
{
    rmm_resource_t *idle = caching_pool(8 * MIB);
    rmm_resource_t *busy = make_pool(0, 0);
    uint64_t limit = location_reserved(idle);
    void *first = NULL, *second;

    limit_location(idle, limit);
    assert_ok(try_take(busy, 6 * MIB, &first));
    assert_int_equal(stats_of(idle).reserved_bytes, 0);
    assert_in_range(location_reserved(idle), 6 * MIB, limit);
    assert_int_equal(location_limit_count(idle), 0);
    assert_int_equal(try_take(busy, 6 * MIB, &second), RMM_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(rmm_last_error_message(), "/rmm/proc/"));
    assert_non_null(strstr(rmm_last_error_message(), "/gpu*/limit_bytes"));
    assert_int_not_equal(location_limit_count(idle), 0);
    give(busy, first, 6 * MIB, NULL);
    rmm_resource_release(busy);
    rmm_resource_release(idle);
}

CASE(a_range_gives_up_its_holes_for_one_large_block)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    void *blocks[8];

    for (size_t i = 0; i < 8; i++) {
        blocks[i] = take(pool, 4 * MIB, NULL);
    }
    limit_location(pool, location_reserved(pool));
    for (size_t i = 0; i < 8; i += 2) {
        give(pool, blocks[i], 4 * MIB, NULL);
    }
    blocks[0] = take(pool, 12 * MIB, NULL);
    assert_in_range(location_reserved(pool), 28 * MIB, 32 * MIB);
    give(pool, blocks[0], 12 * MIB, NULL);
    for (size_t i = 1; i < 8; i += 2) {
        give(pool, blocks[i], 4 * MIB, NULL);
    }
    rmm_resource_release(pool);
}

CASE(a_pool_stops_growing_at_the_limit_of_its_upstream)
{
    rmm_resource_t *pool = make_pool(0, 0);
    void *ptr = take(pool, MIB, NULL);
    void *more;

    limit_resource(pool->upstream, stats_of(pool->upstream).current_bytes);
    assert_int_equal(try_take(pool, 64 * MIB, &more), RMM_ERR_OUT_OF_MEMORY);
    limit_resource(pool->upstream, RMM_SEGMENT_NO_LIMIT);
    give(pool, take(pool, 64 * MIB, NULL), 64 * MIB, NULL);
    give(pool, ptr, MIB, NULL);
    rmm_resource_release(pool);
}

CASE(no_pool_begins_with_more_than_the_limit)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *pool;

    options.initial_bytes = 4 * MIB;
    limit_location(cuda, 2 * MIB);
    assert_int_equal(
        rmm_pool_resource_create(cuda, &options, &pool), RMM_ERR_OUT_OF_MEMORY);
    options.flags = RMM_POOL_VIRTUAL;
    assert_int_equal(
        rmm_pool_resource_create(NULL, &options, &pool), RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(location_reserved(cuda), 0);
    rmm_resource_release(cuda);
}

/* --- a pool of the driver's ------------------------------------------------------------ */

/* Two segments of 32 MiB, each with a block in it: together they have room for another, but the
 * driver takes a third segment for it. */
static void grow_beyond_the_limit(const char *plan_or_NULL)
{
    const size_t bytes = 20 * MIB;
    rmm_resource_t *mr;
    void *blocks[2];
    void *ptr = NULL;
    uint64_t limit;

    assert_ok(create_async(&mr));
    for (size_t i = 0; i < 2; i++) {
        blocks[i] = take(mr, bytes, NULL);
    }
    limit = stats_of(mr).reserved_bytes;
    assert_true(limit >= 3 * bytes);
    limit_location(mr, limit);
    assert_true(rmm_sim_fail(plan_or_NULL));
    assert_int_equal(try_take(mr, bytes, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(rmm__sim_fault_has_struck(), plan_or_NULL != NULL);
    assert_non_null(strstr(rmm_last_error_message(), "/limit_bytes"));
    assert_true(rmm_sim_fail(NULL));
    assert_int_equal(stats_of(mr).oom_count, 1);
    assert_int_equal(stats_of(mr).current_bytes, 2 * bytes);
    if (plan_or_NULL != NULL) {
        assert_ok(rmm_resource_trim(mr, 0));
    }
    assert_int_equal(stats_of(mr).reserved_bytes, limit);
    for (size_t i = 0; i < 2; i++) {
        give(mr, blocks[i], bytes, NULL);
    }
    rmm_resource_release(mr);
}

CASE(a_block_that_made_a_driver_pool_exceed_the_limit_is_refused)
{
    grow_beyond_the_limit(NULL);
}

/* The reason is the limit, whatever becomes of the trim. */
CASE(a_trim_that_fails_does_not_hide_the_limit)
{
    grow_beyond_the_limit("mempool_trim:1");
}

/* --- a program's own functions ------------------------------------------------------- */

static rmm_status_t
nested_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    return rmm_resource_alloc(payload, bytes, 0, stream, ptr_out);
}

static void nested_dealloc(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    rmm_resource_dealloc(payload, ptr, bytes, 0, stream);
}

CASE(counts_memory_of_another_resource_once)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *custom;

    options.alloc = nested_alloc;
    options.dealloc = nested_dealloc;
    options.payload = cuda;
    assert_ok(rmm_callback_resource_create(&options, &custom));
    limit_location(cuda, MIB);
    give(custom, take(custom, MIB, NULL), MIB, NULL);
    rmm_resource_release(custom);
    rmm_resource_release(cuda);
}

/* --- threads ------------------------------------------------------------------------- */

typedef struct grower {
    rmm_resource_t *mr;
    uint64_t limit, taken, above, wrong;
} grower_t;

static void *grow_and_trim(void *arg)
{
    grower_t *grower = arg;

    for (int i = 0; i < ROUNDS; i++) {
        void *ptr;
        rmm_status_t status = try_take(grower->mr, 2 * MIB, &ptr);

        grower->above += location_reserved(grower->mr) > grower->limit;
        grower->wrong += status != RMM_OK && status != RMM_ERR_OUT_OF_MEMORY;
        if (status == RMM_OK) {
            grower->taken++;
            give(grower->mr, ptr, 2 * MIB, NULL);
        }
    }
    return NULL;
}

CASE(pools_of_many_threads_stay_below_the_limit)
{
    pthread_t threads[THREADS];
    grower_t growers[THREADS];

    for (size_t i = 0; i < THREADS; i++) {
        growers[i] = (grower_t){
            .mr = i % 2 == 0 ? make_pool(0, 0) : make_virtual_pool(0, 0),
            .limit = 5 * MIB};
    }
    limit_location(growers[0].mr, 5 * MIB);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, grow_and_trim, &growers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(growers[i].above, 0);
        assert_int_equal(growers[i].wrong, 0);
        assert_int_not_equal(growers[i].taken, 0);
        rmm_resource_release(growers[i].mr);
    }
}

static void *take_and_give(void *arg)
{
    void *ptr;

    for (int i = 0; i < 20 * ROUNDS; i++) {
        if (try_take(arg, 3 * MIB, &ptr) == RMM_OK) {
            give(arg, ptr, 3 * MIB, NULL);
        }
    }
    return NULL;
}

/* Two that find room at the same moment both promise growth, and one of them withdraws it. */
CASE(threads_that_reach_the_limit_together_leave_no_reservation)
{
    pthread_t threads[THREADS];
    rmm_resource_t *cuda = make_cuda();

    limit_location(cuda, 5 * MIB);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, cuda), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    give(cuda, take(cuda, 5 * MIB, NULL), 5 * MIB, NULL);
    rmm_resource_release(cuda);
}

/* --- trims --------------------------------------------------------------------------- */

CASE(trims_an_idle_pool_when_another_allocates)
{
    rmm_resource_t *idle = caching_pool(8 * MIB);
    rmm_resource_t *busy = make_pool(0, 0);
    void *ptr = take(busy, 1000, NULL);

    ask_trim(idle->instance_id, 0);
    give(busy, ptr, 1000, NULL);
    assert_false(trim_is_done());
    ptr = take(busy, 1000, NULL);
    assert_true(trim_is_done());
    assert_int_equal(stats_of(idle).reserved_bytes, 0);
    give(busy, ptr, 1000, NULL);
    rmm_resource_release(busy);
    rmm_resource_release(idle);
}

CASE(keeps_what_a_trim_leaves)
{
    rmm_resource_t *first = caching_pool(8 * MIB);
    rmm_resource_t *second = caching_pool(8 * MIB);
    uint64_t half = stats_of(first).reserved_bytes;

    ask_trim(RMM_TRIM_LOCATION | first->accounting.location, half);
    give(second, take(second, 1000, NULL), 1000, NULL);
    assert_true(trim_is_done());
    assert_int_equal(location_reserved(first), half);
    rmm_resource_release(second);
    rmm_resource_release(first);
}

CASE(a_trim_takes_no_more_of_a_pool_than_is_over)
{
    rmm_resource_t *pool = make_pool(0, 0);
    void *blocks[8];
    uint64_t before, most;

    for (int i = 0; i < 8; i++) {
        blocks[i] = take(pool, 8 * MIB, NULL);
    }
    for (int i = 0; i < 8; i++) {
        give(pool, blocks[i], 8 * MIB, NULL);
    }
    before = location_reserved(pool);
    most = before / 4 * 3;
    ask_trim(RMM_TRIM_LOCATION | pool->accounting.location, most);
    give(pool, take(pool, 1000, NULL), 1000, NULL);
    assert_true(trim_is_done());
    assert_in_range(location_reserved(pool), most, before - 1);
    rmm_resource_release(pool);
}

CASE(does_nothing_for_a_trim_that_was_withdrawn)
{
    rmm_resource_t *pool = caching_pool(8 * MIB);
    uint64_t reserved = stats_of(pool).reserved_bytes;

    ask_trim(pool->instance_id, 0);
    atomic_store(&control_page()->trim_keep_bytes, RMM_TRIM_WITHDRAWN);
    give(pool, take(pool, 1000, NULL), 1000, NULL);
    assert_true(trim_is_done());
    assert_int_equal(stats_of(pool).reserved_bytes, reserved);
    rmm_resource_release(pool);
}

CASE(survives_requests_about_what_is_not_there)
{
    rmm_resource_t *pool = caching_pool(MIB);
    const uint32_t of[] = {
        0, 12345678, RMM_TRIM_LOCATION | RMM_SEGMENT_LOCATIONS, UINT32_MAX};

    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        ask_trim(of[i], 0);
        give(pool, take(pool, 1000, NULL), 1000, NULL);
        assert_true(trim_is_done());
        assert_int_not_equal(stats_of(pool).reserved_bytes, 0);
    }
    rmm_resource_release(pool);
}

/* What a limit trims before it refuses: the resources in use, though one of them ends. */
CASE(finds_each_resource_in_use_once)
{
    enum { POOLS = 4, UNUSED = 1, ENDS = 2 };
    rmm_resource_t *pools[POOLS];
    rmm_resource_t *mr = NULL;
    size_t found[POOLS];
    size_t count = 0;

    for (size_t i = 0; i < POOLS; i++) {
        pools[i] = make_pool(0, 0);
        if (i != UNUSED) {
            give(pools[i], take(pools[i], KIB, NULL), KIB, NULL);
        }
    }
    while ((mr = rmm__resource_next_used(mr)) != NULL) {
        for (size_t i = 0; i < POOLS; i++) {
            if (mr == pools[i]) {
                found[count++] = i;
            }
        }
        if (mr == pools[0]) {
            rmm_resource_release(pools[ENDS]);
            pools[ENDS] = NULL;
        }
    }
    assert_int_equal(count, 2);
    assert_int_equal(found[0], 0);
    assert_int_equal(found[1], 3);
    for (size_t i = 0; i < POOLS; i++) {
        rmm_resource_release(pools[i]);
    }
}

CASE(a_trim_leaves_a_capture_whole)
{
    rmm_resource_t *pool = caching_pool(8 * MIB);
    rmm_stream_t stream = make_stream(0);
    rmm_sim_graph_t graph;
    void *ptr;

    assert_cuda(rmm_sim_begin_capture(stream, 0));
    ask_trim(pool->instance_id, 0);
    ptr = take(pool, 1000, stream);
    assert_true(trim_is_done());
    give(pool, ptr, 1000, stream);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(sim_driver()->stream_destroy(stream));
    rmm_resource_release(pool);
}

/* --- the log, and a fork ------------------------------------------------------------- */

static int lines_told;

static void on_line(rmm_log_level_t level, const char *message, void *arg)
{
    lines_told += strstr(message, " is reached: ") != NULL;
}

CASE(tells_once_in_an_episode)
{
    rmm_resource_t *pool = make_pool(0, 0);
    void *ptrs[8], *more;

    lines_told = 0;
    assert_ok(rmm_log_set_level(RMM_LEVEL_WARN));
    assert_ok(rmm_log_to_callback(on_line, NULL));
    limit_resource(pool, 8000);
    for (int i = 0; i < 8; i++) {
        ptrs[i] = take(pool, 1000, NULL);
    }
    for (int i = 0; i < 3; i++) { /* at its limit, up and down */
        assert_int_equal(try_take(pool, 1000, &more), RMM_ERR_OUT_OF_MEMORY);
        give(pool, ptrs[0], 1000, NULL);
        ptrs[0] = take(pool, 1000, NULL);
    }
    assert_int_equal(lines_told, 1);
    give(pool, ptrs[0], 1000, NULL);
    give(pool, ptrs[1], 1000, NULL);
    ptrs[0] = take(pool, 1000, NULL); /* much was free */
    ptrs[1] = take(pool, 1000, NULL);
    assert_int_equal(try_take(pool, 1000, &more), RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(lines_told, 2);
    limit_resource(pool, 7000);
    assert_int_equal(try_take(pool, 1000, &more), RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(lines_told, 3);
    assert_ok(rmm_log_to_callback(NULL, NULL));
    assert_ok(rmm_log_set_level(RMM_LEVEL_OFF));
    for (int i = 0; i < 8; i++) {
        give(pool, ptrs[i], 1000, NULL);
    }
    rmm_resource_release(pool);
}

CASE(an_episode_of_a_gpu_ends_when_much_is_free)
{
    rmm_resource_t *cuda = make_cuda();
    void *held = take(cuda, 12 * MIB, NULL), *more;

    lines_told = 0;
    assert_ok(rmm_log_set_level(RMM_LEVEL_WARN));
    assert_ok(rmm_log_to_callback(on_line, NULL));
    limit_location(cuda, location_reserved(cuda) + 4 * MIB);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(try_take(cuda, 8 * MIB, &more), RMM_ERR_OUT_OF_MEMORY);
    }
    assert_int_equal(lines_told, 1);
    give(cuda, held, 12 * MIB, NULL);
    held = take(cuda, 8 * MIB, NULL);
    assert_int_equal(try_take(cuda, 12 * MIB, &more), RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(lines_told, 2);
    assert_ok(rmm_log_to_callback(NULL, NULL));
    assert_ok(rmm_log_set_level(RMM_LEVEL_OFF));
    give(cuda, held, 8 * MIB, NULL);
    rmm_resource_release(cuda);
}

static int use_host_memory(void)
{
    rmm_resource_t *host;
    void *ptr;

    if (rmm_host_resource_create(&host) != RMM_OK ||
        rmm_resource_alloc(host, 1000, 0, NULL, &ptr) != RMM_OK) {
        return 1;
    }
    rmm_resource_dealloc(host, ptr, 1000, 0, NULL);
    rmm_resource_release(host);
    return 0;
}

/* The page is its parent's: the child has none. */
CASE(a_forked_child_has_no_limit)
{
    rmm_resource_t *host;
    void *ptr;

    assert_ok(rmm_host_resource_create(&host));
    assert_int_equal(rmm__publisher.state, RMM_PUBLISH_SHARED);
    limit_location(host, 0);
    assert_int_equal(try_take(host, 1000, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(in_child(use_host_memory), 0);
    rmm_resource_release(host);
}

int main(void)
{
    return harness_run_cases(runtime_setup, runtime_teardown);
}
