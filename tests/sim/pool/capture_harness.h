/* SPDX-License-Identifier: Apache-2.0 */
/* Resources with room for two blocks, with two streams, for tests of graph captures. */
#ifndef RMM_TESTS_SIM_CAPTURE_HARNESS_H
#define RMM_TESTS_SIM_CAPTURE_HARNESS_H

#include "sim/pool/pool_harness.h"

enum { GLOBAL = 0, THREAD_LOCAL = 1, RELAXED = 2 };

#define BLOCK MIB

static inline rmm_resource_t *a_pool(void)
{
    return make_pool(2 * BLOCK, 2 * BLOCK);
}

static inline rmm_resource_t *a_virtual_pool(void)
{
    return make_virtual_pool(2 * BLOCK, 2 * BLOCK);
}

static inline rmm_resource_t *an_arena(void)
{
    return make_arena(2 * BLOCK);
}

static inline rmm_resource_t *blocks_of_one_size(void)
{
    rmm_limiting_options_t limit = RMM_LIMITING_OPTIONS_INIT;
    rmm_fixed_size_options_t options = RMM_FIXED_SIZE_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *limited, *mr;

    limit.limit_bytes = 2 * BLOCK;
    options.block_bytes = BLOCK;
    options.blocks_per_chunk = 1;
    assert_ok(rmm_limiting_adaptor_create(cuda, &limit, &limited));
    assert_ok(rmm_fixed_size_resource_create(limited, &options, &mr));
    rmm_resource_release(cuda);
    rmm_resource_release(limited);
    return mr;
}

static rmm_resource_t *(*const makers[])(void) = {
    a_pool, a_virtual_pool, an_arena, blocks_of_one_size};

typedef struct setting {
    rmm_resource_t *mr;
    rmm_stream_t stream, other;
} setting_t;

static inline setting_t setting_begin(rmm_resource_t *(*make)(void))
{
    return (setting_t){
        make(), make_stream(RMM_STREAM_NON_BLOCKING),
        make_stream(RMM_STREAM_NON_BLOCKING)};
}

static inline void setting_end(const setting_t *here)
{
    assert_cuda(rmm_sim_device_synchronize());
    assert_cuda(sim_driver()->stream_destroy(here->stream));
    assert_cuda(sim_driver()->stream_destroy(here->other));
    rmm_resource_release(here->mr);
    assert_int_equal(rmm_sim_violations(), 0);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

#endif /* RMM_TESTS_SIM_CAPTURE_HARNESS_H */
