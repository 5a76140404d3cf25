/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that can fail fails in turn: the N-th driver call, each function's N-th call,
 * the N-th request for host memory, for N = 1, 2, ... until the scenario gets through.
 * Each time every status is one of the contract, what the caller did not get stays
 * untouched, and nothing is left behind. Each N runs in a process of its own, because the
 * segment is made once per process; its leaks are the sanitizer's to see.
 */
#include "sim/pool_harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/host_memory.h"
#include "harness/runtime.h"
#include "resources/pool_impl.h"

enum { MAX_ROUNDS = 3000, BLOCKS = 80 };
enum { GOT_THROUGH = 0, STRUCK = 10, BROKEN = 20 };

static bool is_clean(rmm_status_t status)
{
    return status == RMM_OK || status == RMM_ERR_OUT_OF_MEMORY ||
           status == RMM_ERR_BAD_ALLOC || status == RMM_ERR_OUT_OF_HOST_MEMORY ||
           status == RMM_ERR_CUDA || status == RMM_ERR_NO_DEVICE;
}

#define CHECK_THAT(condition)                                                          \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
            exit(BROKEN);                                                              \
        }                                                                              \
    } while (0)

static void check_failure(rmm_status_t status)
{
    CHECK_THAT(is_clean(status));
    CHECK_THAT(status == RMM_OK || rmm_last_error_message()[0] != '\0');
}

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

static void scenario(void)
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

/* plan: "FUNCTION", or NULL for host memory. may_keep: a refused mem_free keeps memory. */
static void child(const char *plan, uint64_t nth)
{
    char text[64];
    bool struck;

    CHECK_THAT(rmm_sim_active());
    if (plan != NULL) {
        snprintf(text, sizeof(text), "%s:%lu", plan, (unsigned long)nth);
        CHECK_THAT(rmm_sim_fail(text));
    } else {
        rmm__host_memory_fail(nth);
    }
    scenario();
    struck = plan != NULL ? rmm_sim_fail_struck() : rmm__host_memory_fail_struck();
    if (plan == NULL) {
        CHECK_THAT(rmm_sim_allocated_bytes(0) == 0);
    }
    CHECK_THAT(rmm_sim_violations() == 0);
    exit(struck ? STRUCK : GOT_THROUGH);
}

static int run_child(const char *plan, uint64_t nth)
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        child(plan, nth);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > STRUCK) {
        fail_msg(
            "%s:%lu ended with wait status %d", plan != NULL ? plan : "host memory",
            (unsigned long)nth, status);
    }
    return WEXITSTATUS(status);
}

/* Fails every N-th until the scenario gets through; returns how many failed. */
static uint64_t sweep(const char *plan, uint64_t step)
{
    uint64_t struck = 0;

    for (uint64_t nth = 1; nth < MAX_ROUNDS * step; nth += step) {
        if (run_child(plan, nth) == GOT_THROUGH) {
            return struck;
        }
        struck++;
    }
    fail_msg("%s never got through", plan != NULL ? plan : "host memory");
    return 0;
}

static void every_request_for_host_memory_may_fail(void **state)
{
    uint64_t struck = sweep(NULL, 1);

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
            if (run_child(functions[i], nth) == GOT_THROUGH) {
                break;
            }
        }
    }
}

static void every_driver_call_may_fail(void **state)
{
    uint64_t struck = sweep("any", getenv("RMM_TEST_QUICK") != NULL ? 7 : 1);

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

    return cmocka_run_group_tests(tests, runtime_setup, runtime_teardown);
}
