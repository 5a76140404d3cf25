/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fault sweep of harness/fault_sweep.h over every subject: its creator, traffic on two
 * streams and through the synchronous twins, trim, release.
 *
 *   test_faults SUBJECT
 */
#include "harness/fault_sweep.h"

#include <string.h>

#include "base/resource_impl.h"
#include "conformance/subjects.h"
#include "pool/engine_impl.h"
#include "resources/pool_resource.h"

enum { BLOCKS = 6 };

static const size_t sizes[BLOCKS] = {0, 1, 3000, 30 * KIB, 300 * KIB, MIB};

static size_t size_of(const subject_t *subject, int i)
{
    return sizes[i] < subject->largest ? sizes[i] : subject->largest;
}

static void
traffic(const subject_t *subject, rmm_resource_t *mr, const rmm_stream_t streams[2])
{
    void *blocks[BLOCKS];
    bool taken[BLOCKS];

    for (int i = 0; i < BLOCKS; i++) {
        void *mark = &blocks;
        rmm_status_t status;

        blocks[i] = mark;
        status =
            rmm_resource_alloc(mr, size_of(subject, i), 0, streams[i % 2], &blocks[i]);
        check_failure(status);
        taken[i] = status == RMM_OK;
        CHECK_THAT(taken[i] == (blocks[i] != mark));
        if (taken[i] && (rmm_resource_properties(mr) & RMM_DEVICE_ACCESSIBLE) != 0) {
            sweep_use(blocks[i], size_of(subject, i), streams[i % 2]);
        }
    }
    for (int i = 0; i < BLOCKS; i++) {
        if (taken[i]) {
            rmm_resource_dealloc(mr, blocks[i], size_of(subject, i), 0, streams[i % 2]);
        }
    }
}

static void synchronous_traffic(rmm_resource_t *mr)
{
    void *mark = &mark;
    void *block = mark;
    rmm_status_t status = rmm_resource_alloc_sync(mr, 5000, 0, &block);

    check_failure(status);
    CHECK_THAT((status == RMM_OK) == (block != mark));
    if (status == RMM_OK) {
        rmm_resource_dealloc_sync(mr, block, 5000, 0);
    }
}

static void check_accounting(rmm_resource_t *mr)
{
    rmm_stats_t stats = RMM_STATS_INIT;

    if (strcmp(rmm_resource_type(mr), "pool") == 0) {
        CHECK_THAT(rmm__blocks_check(pool_from_base(mr)->engine->blocks) == NULL);
    }
    CHECK_THAT(rmm_resource_get_stats(mr, &stats) == RMM_OK);
    CHECK_THAT(stats.current_bytes == 0 && stats.current_count == 0);
    CHECK_THAT(stats.invalid_free_count == 0);
}

static void use(const subject_t *subject, rmm_resource_t *mr)
{
    rmm_stream_t streams[2] = {NULL, NULL};
    rmm_status_t status = rmm_stream_create(RMM_STREAM_NON_BLOCKING, &streams[1]);

    check_failure(status);
    for (int round = 0; round < 2; round++) {
        traffic(subject, mr, streams);
    }
    check_failure(rmm_stream_destroy(streams[1]));
    synchronous_traffic(mr);
    status = rmm_resource_trim(mr, 0);
    if (status != RMM_ERR_UNSUPPORTED) {
        check_failure(status);
    }
    check_accounting(mr);
}

static void scenario(const void *context)
{
    const subject_t *subject = context;
    rmm_resource_t *mr = NULL;
    rmm_status_t status = subject_make(subject, &mr);

    check_failure(status);
    CHECK_THAT((status == RMM_OK) == (mr != NULL));
    if (status == RMM_OK) {
        use(subject, mr);
        rmm_resource_release(mr);
    }
}

static void every_request_for_host_memory_may_fail(void **state)
{
    const sweep_t sweep = {scenario, *state};

    assert_true(sweep_all(&sweep, NULL, 1) > 0);
}

static void every_driver_call_may_fail(void **state)
{
    const sweep_t sweep = {scenario, *state};

    assert_true(sweep_all(&sweep, "any", sweep_step()) > 0);
}

int main(int argc, char **argv)
{
    subject_t subject = *subject_of_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(every_request_for_host_memory_may_fail, &subject),
        cmocka_unit_test_prestate(every_driver_call_may_fail, &subject),
    };

    sweep_warm_up();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
