/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the capture tests: makers of the resources that suballocate device memory, on the
 * current device.
 */
#ifndef RMM_TESTS_GPU_MAKERS_H
#define RMM_TESTS_GPU_MAKERS_H

#include "harness/harness.h"

#include <rmm/rmm.h>

/* maximum_bytes 0: none. */
static inline rmm_resource_t *make_pool(size_t initial_bytes, size_t maximum_bytes)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *cuda, *pool;

    options.initial_bytes = initial_bytes;
    options.maximum_bytes = maximum_bytes;
    assert_ok(rmm_cuda_resource_create(&cuda));
    assert_ok(rmm_pool_resource_create(cuda, &options, &pool));
    rmm_resource_release(cuda);
    return pool;
}

/* Other devices may use it, as they may use what cudaMalloc gives. */
static inline rmm_resource_t *
make_virtual_pool(size_t initial_bytes, size_t maximum_bytes)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *pool;

    options.initial_bytes = initial_bytes;
    options.maximum_bytes = maximum_bytes;
    options.flags = RMM_POOL_VIRTUAL | RMM_POOL_PEER_ACCESS;
    assert_ok(rmm_pool_resource_create(NULL, &options, &pool));
    return pool;
}

/* An arena never grows: maximum_bytes is ignored. */
static inline rmm_resource_t *make_arena(size_t initial_bytes, size_t maximum_bytes)
{
    rmm_arena_options_t options = RMM_ARENA_OPTIONS_INIT;
    rmm_resource_t *cuda, *arena;

    (void)maximum_bytes;
    options.arena_bytes = initial_bytes;
    assert_ok(rmm_cuda_resource_create(&cuda));
    assert_ok(rmm_arena_resource_create(cuda, &options, &arena));
    rmm_resource_release(cuda);
    return arena;
}

static rmm_resource_t *(*const makers[])(size_t initial_bytes, size_t maximum_bytes) = {
    make_pool, make_virtual_pool, make_arena};

#endif /* RMM_TESTS_GPU_MAKERS_H */
