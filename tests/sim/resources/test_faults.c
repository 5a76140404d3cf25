/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fault sweep of harness/fault_sweep.h over a pool that is made to use every step of
 * its slow path, with publishing on. Every other resource: tests/conformance/test_faults.c.
 */
#include "sim/pool/pool_harness.h"

#include "harness/fault_sweep.h"
#include "harness/runtime.h"
#include "pool/engine_impl.h"
#include "resources/pool_resource.h"

enum { BLOCKS = 80 };

/* In the second round one stream needs what the other one freed. */
static rmm_stream_t stream_of(int round, int i, rmm_stream_t stream)
{
    return round == 1 || i % 2 == 0 ? stream : NULL;
}

/* Blocks of two streams, freed on both, so that every step of the slow path is used. */
static void traffic(rmm_resource_t *pool, rmm_stream_t stream)
{
    void *blocks[BLOCKS];

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            void *mark = &blocks;
            rmm_status_t status;

            blocks[i] = mark;
            status = rmm_resource_alloc(
                pool, 30 * KIB, 0, stream_of(round, i, stream), &blocks[i]);
            check_failure(status);
            CHECK_THAT((status == RMM_OK) == (blocks[i] != mark));
            if (status == RMM_OK) {
                sweep_use(blocks[i], 30 * KIB, stream_of(round, i, stream));
            } else {
                blocks[i] = NULL;
            }
        }
        for (int i = 0; i < BLOCKS; i++) {
            rmm_resource_dealloc(
                pool, blocks[i], 30 * KIB, 0, stream_of(round, i, stream));
        }
    }
}

static void use_beginning(void *block, rmm_stream_t stream)
{
    if (block != NULL) {
        sweep_use(block, 4 * KIB, stream);
    }
}

/* Blocks of a piece of a virtual pool, every second one freed, and one of all that. */
static void scatter(rmm_resource_t *pool, rmm_stream_t stream)
{
    void *blocks[8] = {NULL};
    void *large = NULL;

    for (int i = 0; i < 8; i++) {
        check_failure(rmm_resource_alloc(pool, 2 * MIB, 0, stream, &blocks[i]));
        use_beginning(blocks[i], stream);
    }
    for (int i = 0; i < 8; i += 2) {
        rmm_resource_dealloc(
            pool, blocks[i], blocks[i] != NULL ? 2 * MIB : 0, 0, stream);
    }
    check_failure(rmm_resource_alloc(pool, 8 * MIB, 0, stream, &large));
    use_beginning(large, stream);
    rmm_resource_dealloc(pool, large, large != NULL ? 8 * MIB : 0, 0, stream);
    for (int i = 1; i < 8; i += 2) {
        rmm_resource_dealloc(
            pool, blocks[i], blocks[i] != NULL ? 2 * MIB : 0, 0, stream);
    }
}

static void use_pool(rmm_resource_t *pool)
{
    rmm_stats_t stats = RMM_STATS_INIT;
    rmm_stream_t stream = NULL;
    rmm_status_t status = rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream);

    check_failure(status);
    if (status == RMM_OK) {
        if (rmm_resource_upstream(pool) == NULL) {
            scatter(pool, stream);
        } else {
            traffic(pool, stream);
        }
        check_failure(rmm_resource_trim(pool, 0));
        check_failure(rmm_stream_destroy(stream));
    }
    CHECK_THAT(rmm__blocks_check(pool_from_base(pool)->engine->blocks) == NULL);
    CHECK_THAT(rmm_resource_get_stats(pool, &stats) == RMM_OK);
    CHECK_THAT(stats.current_bytes == 0 && stats.current_count == 0);
    CHECK_THAT(stats.invalid_free_count == 0);
}

static void scenario(const void *context)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *cuda = NULL;
    rmm_resource_t *pool = NULL;
    rmm_status_t status = rmm_cuda_resource_create(&cuda);

    check_failure(status);
    CHECK_THAT((status == RMM_OK) == (cuda != NULL));
    if (status != RMM_OK) {
        return;
    }
    options.initial_bytes = 256 * KIB;
    options.maximum_bytes = 2 * MIB;
    status = rmm_pool_resource_create(cuda, &options, &pool);
    check_failure(status);
    CHECK_THAT((status == RMM_OK) == (pool != NULL));
    if (status == RMM_OK) {
        use_pool(pool);
        rmm_resource_release(pool);
    }
    rmm_resource_release(cuda);
}

static void virtual_scenario(const void *context)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *pool = NULL;
    rmm_status_t status;

    options.initial_bytes = 2 * MIB;
    options.maximum_bytes = 16 * MIB;
    options.flags = RMM_POOL_VIRTUAL | RMM_POOL_PEER_ACCESS;
    status = rmm_pool_resource_create(NULL, &options, &pool);
    check_failure(status);
    CHECK_THAT((status == RMM_OK) == (pool != NULL));
    if (status == RMM_OK) {
        use_pool(pool);
        rmm_resource_release(pool);
    }
}

static const sweep_t the_sweep = {scenario, NULL};
static const sweep_t virtual_sweep = {virtual_scenario, NULL};

static void sweep_host_memory(const sweep_t *scenarios)
{
    uint64_t struck = sweep_all(scenarios, NULL, 1);

    print_message("%lu requests failed in turn\n", (unsigned long)struck);
    assert_true(struck >= 10);
}

TEST_CASE(every_request_for_host_memory_may_fail)
{
    sweep_host_memory(&the_sweep);
}

TEST_CASE(every_request_of_a_virtual_pool_may_fail)
{
    sweep_host_memory(&virtual_sweep);
}

static void
sweep_first_calls(const sweep_t *scenarios, const char *const *functions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (uint64_t nth = 1; nth <= 6; nth++) {
            if (sweep_gets_through(scenarios, functions[i], nth)) {
                break;
            }
        }
    }
}

TEST_CASE(the_first_calls_of_every_function_may_fail)
{
    static const char *const functions[] = {
        "device_get",        "device_set",  "device_info",           "memory_info",
        "mem_alloc",         "mem_free",    "stream_create",         "stream_destroy",
        "stream_wait_event", "stream_key",  "event_create",          "event_destroy",
        "event_record",      "event_query", "capture_mode_exchange",
    };

    sweep_first_calls(&the_sweep, functions, sizeof(functions) / sizeof(functions[0]));
}

TEST_CASE(the_first_calls_that_map_memory_may_fail)
{
    static const char *const functions[] = {
        "device_attribute", "virtual_granularity", "address_reserve", "address_free",
        "physical_create",  "physical_release",    "address_map",     "address_unmap",
        "address_access",   "device_count",        "peer_can_access",
    };

    sweep_first_calls(
        &virtual_sweep, functions, sizeof(functions) / sizeof(functions[0]));
}

static void sweep_driver_calls(const sweep_t *scenarios)
{
    uint64_t struck = sweep_all(scenarios, "any", sweep_step());

    print_message("%lu calls failed in turn\n", (unsigned long)struck);
    assert_true(struck * sweep_step() >= 50);
}

TEST_CASE(every_driver_call_may_fail)
{
    sweep_driver_calls(&the_sweep);
}

TEST_CASE(every_driver_call_of_a_virtual_pool_may_fail)
{
    sweep_driver_calls(&virtual_sweep);
}

static const runtime_t *the_runtime;

/* What hundreds of children leave, each next one would look through. */
static void sweep_segments_away(void)
{
    runtime_empty(the_runtime);
}

static int open_runtime(void **state)
{
    int result = runtime_setup(state);

    the_runtime = *state;
    sweep_after_each = sweep_segments_away;
    return result;
}

int main(void)
{
    sweep_warm_up();
    return harness_run_cases(open_runtime, runtime_teardown);
}
