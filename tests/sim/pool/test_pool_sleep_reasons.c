/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a pool cannot fall asleep or wake: the message says what is short and what the pool does now,
 * and the same call succeeds when the reason is gone.
 */
#include "sim/pool/virtual_harness.h"

#include <string.h>

#define CASE(name) TEST_CASE_WITH(name, NULL, nothing_is_left)

static void assert_state(const rmm_resource_t *pool, rmm_pool_state_t expected)
{
    rmm_pool_state_t state;

    assert_ok(rmm_pool_get_state(pool, &state));
    assert_int_equal(state, expected);
}

static void assert_message_has(const char *words)
{
    if (strstr(rmm_last_error_message(), words) == NULL) {
        fail_msg("'%s' is not in: %s", words, rmm_last_error_message());
    }
}

CASE(host_memory_that_is_short_leaves_the_pool_awake)
{
    rmm_pool_sleep_options_t options = RMM_POOL_SLEEP_OPTIONS_INIT;
    rmm_limiting_options_t limit = RMM_LIMITING_OPTIONS_INIT;
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    void *block = take(pool, 5 * MIB, NULL);
    rmm_resource_t *heap;

    limit.limit_bytes = MIB;
    assert_ok(rmm_host_resource_create(&heap));
    assert_ok(rmm_limiting_adaptor_create(heap, &limit, &options.host));
    assert_int_equal(rmm_pool_sleep(pool, &options), RMM_ERR_OUT_OF_MEMORY);
    assert_message_has("limit of 1048576"); /* the host resource's own reason */
    assert_message_has("needs 5242880 bytes of host memory");
    assert_message_has("it is still awake");
    assert_state(pool, RMM_POOL_AWAKE);
    assert_true(rmm_sim_fail("host_alloc:1:2"));
    assert_int_equal(rmm_pool_sleep(pool, NULL), RMM_ERR_OUT_OF_MEMORY);
    assert_message_has("cudaHostAlloc");
    assert_message_has("it is still awake");
    assert_int_equal(rmm_last_cuda_error(), 2);
    assert_state(pool, RMM_POOL_AWAKE);
    assert_ok(rmm_pool_sleep(pool, NULL));
    assert_ok(rmm_pool_wake(pool));
    give(pool, block, 5 * MIB, NULL);
    rmm_resource_release(options.host);
    rmm_resource_release(heap);
    rmm_resource_release(pool);
}

/* The driver says that there is memory, and has none: under WSL, or a limit of MPS. */
CASE(a_driver_that_refuses_memory_leaves_the_pool_asleep)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    void *block = take(pool, 5 * MIB, NULL);

    assert_ok(rmm_pool_sleep(pool, NULL));
    assert_true(rmm_sim_fail("physical_create:2:2"));
    assert_int_equal(rmm_pool_wake(pool), RMM_ERR_OUT_OF_MEMORY);
    assert_message_has("out of memory");
    assert_message_has("needs 6291456 bytes, and it is still asleep");
    assert_int_equal(rmm_last_cuda_error(), 2);
    assert_state(pool, RMM_POOL_ASLEEP);
    assert_int_equal(reserved_of(pool), 0);
    assert_ok(rmm_pool_wake(pool));
    give(pool, block, 5 * MIB, NULL);
    rmm_resource_release(pool);
}

/* Also a block beside the exported one keeps the memory that another process may have. */
CASE(memory_of_other_processes_stays)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;
    rmm_resource_t *pool;
    void *shared, *beside;

    options.flags = RMM_POOL_VIRTUAL | RMM_POOL_EXPORTABLE;
    assert_ok(rmm_pool_resource_create(NULL, &options, &pool));
    shared = take(pool, MIB, NULL);
    beside = take(pool, MIB / 2, NULL);
    assert_ok(rmm_pool_sleep(pool, NULL)); /* nothing is exported yet */
    assert_int_equal(rmm_pool_export(pool, shared, 0, 0, &exported), RMM_ERR_ASLEEP);
    assert_ok(rmm_pool_wake(pool));
    assert_ok(rmm_pool_export(pool, shared, 0, 0, &exported));
    rmm_pool_export_release(&exported);
    assert_int_equal(rmm_pool_sleep(pool, NULL), RMM_ERR_IN_USE);
    assert_message_has("2097152 bytes of the pool");
    assert_message_has("also those that were not exported, and trim");
    give(pool, shared, MIB, NULL);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(rmm_pool_sleep(pool, NULL), RMM_ERR_IN_USE);
    give(pool, beside, MIB / 2, NULL);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_ok(rmm_pool_sleep(pool, NULL));
    assert_ok(rmm_pool_wake(pool));
    rmm_resource_release(pool);
}
