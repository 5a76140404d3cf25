/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fault sweep of harness/fault_sweep.h over a pool that is made to use every rung of
 * its ladder, with publishing on. Every other resource: tests/conformance/test_faults.c.
 */
#include "sim/pool_harness.h"

#include "harness/fault_sweep.h"
#include "harness/runtime.h"
#include "resources/pool_impl.h"

enum { BLOCKS = 80 };

/* Blocks of two streams, freed on both, so that every rung of the ladder is used. */
static void traffic(rmm_resource_t *pool, rmm_stream_t stream)
{
    void *blocks[BLOCKS];

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            void *mark = &blocks;
            rmm_status_t status;

            blocks[i] = mark;
            status = rmm_resource_alloc(
                pool, 30 * KIB, 0, i % 2 == 0 ? stream : NULL, &blocks[i]);
            check_failure(status);
            CHECK_THAT((status == RMM_OK) == (blocks[i] != mark));
            if (status != RMM_OK) {
                blocks[i] = NULL;
            }
        }
        for (int i = 0; i < BLOCKS; i++) {
            rmm_resource_dealloc(
                pool, blocks[i], 30 * KIB, 0, i % 2 == 0 ? stream : NULL);
        }
    }
    check_failure(rmm_resource_trim(pool, 0));
}

static void use_pool(rmm_resource_t *pool)
{
    rmm_stats_t stats = RMM_STATS_INIT;
    rmm_stream_t stream = NULL;
    rmm_status_t status = rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream);

    check_failure(status);
    if (status == RMM_OK) {
        traffic(pool, stream);
        check_failure(rmm_stream_destroy(stream));
    }
    CHECK_THAT(rmm__suballoc_check(pool_from_base(pool)->blocks) == NULL);
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

    (void)context;
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

static const sweep_t the_sweep = {scenario, NULL};

static void every_request_for_host_memory_may_fail(void **state)
{
    uint64_t struck = sweep_all(&the_sweep, NULL, 1);

    (void)state;
    print_message("%lu requests failed in turn\n", (unsigned long)struck);
    assert_true(struck >= 10);
}

static void the_first_calls_of_every_function_may_fail(void **state)
{
    static const char *const functions[] = {
        "device_get",        "device_set",  "device_info",           "memory_info",
        "mem_alloc",         "mem_free",    "stream_create",         "stream_destroy",
        "stream_wait_event", "stream_key",  "event_create",          "event_destroy",
        "event_record",      "event_query", "capture_mode_exchange",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        for (uint64_t nth = 1; nth <= 6; nth++) {
            if (sweep_gets_through(&the_sweep, functions[i], nth)) {
                break;
            }
        }
    }
}

static void every_driver_call_may_fail(void **state)
{
    uint64_t struck = sweep_all(&the_sweep, "any", sweep_step());

    (void)state;
    print_message("%lu calls failed in turn\n", (unsigned long)struck);
    assert_true(struck >= 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_for_host_memory_may_fail),
        cmocka_unit_test(the_first_calls_of_every_function_may_fail),
        cmocka_unit_test(every_driver_call_may_fail),
    };

    sweep_warm_up();
    return cmocka_run_group_tests(tests, runtime_setup, runtime_teardown);
}
