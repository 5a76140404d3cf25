/* SPDX-License-Identifier: Apache-2.0 */
/* A first block, copied to and fro, by way of HIP's functions. */
#include "harness/harness.h"

#include <string.h>

#include <rmm/rmm.h>
#include <rmm/sim.h>

#include "driver/driver.h"

static void allocates_copies_and_frees(void **state)
{
    rmm_status_t status;
    rmm_resource_t *cuda, *pool;
    void *block;
    char there[1000], back[1000] = "";

    memset(there, 42, sizeof(there));
    assert_non_null(rmm__driver(&status));
    assert_string_equal(rmm__driver(&status)->name, "hip");
    assert_ok(rmm_cuda_resource_create(&cuda));
    assert_ok(rmm_pool_resource_create(cuda, NULL, &pool));
    assert_ok(rmm_resource_alloc(pool, sizeof(there), 0, RMM_STREAM_LEGACY, &block));
    assert_ok(rmm_memcpy_async(block, there, sizeof(there), RMM_STREAM_LEGACY));
    assert_ok(rmm_memcpy_async(back, block, sizeof(there), RMM_STREAM_LEGACY));
    assert_ok(rmm_stream_synchronize(RMM_STREAM_LEGACY));
    assert_memory_equal(there, back, sizeof(there));
    rmm_resource_dealloc(pool, block, sizeof(there), 0, RMM_STREAM_LEGACY);
    rmm_resource_release(pool);
    rmm_resource_release(cuda);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(allocates_copies_and_frees)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
