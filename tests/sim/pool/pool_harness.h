/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of resources share: a pool over the cuda resource of the simulated GPU,
 * and a traffic of kernels that shows whether two uses of one block ever mix.
 */
#ifndef RMM_TESTS_SIM_POOL_HARNESS_H
#define RMM_TESTS_SIM_POOL_HARNESS_H

#include "sim/driver/sim_harness.h"

#include <stdlib.h>

#include <rmm/rmm.h>

#include "driver/sim/control.h"
#include "pool/engine_impl.h"
#include "resources/pool_resource.h"

#define KIB ((size_t)1024)
#define MIB ((size_t)1024 * 1024)

static inline rmm_resource_t *make_cuda(void)
{
    rmm_resource_t *cuda;

    assert_ok(rmm_cuda_resource_create(&cuda));
    return cuda;
}

/* With RMM_TEST_SHARED every pool is as if several streams had used it, from its first
 * request on: never in single-stream mode (lib/pool/streams.c). */
static inline bool is_shared_run(void)
{
    return getenv("RMM_TEST_SHARED") != NULL;
}

static inline rmm_resource_t *share(rmm_resource_t *pool)
{
    engine_t *engine = pool_from_base(pool)->engine;

    if (is_shared_run()) {
        rmm__mutex_lock(rmm__engine_mutex(engine));
        rmm__engine_single_stream_end_locked(engine, true);
        rmm__mutex_unlock(rmm__engine_mutex(engine));
    }
    return pool;
}

/* maximum 0: none. The pool holds the only reference on its upstream. */
static inline rmm_resource_t *make_pool(uint64_t initial_bytes, uint64_t maximum_bytes)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *pool;

    options.initial_bytes = initial_bytes;
    options.maximum_bytes = maximum_bytes;
    assert_ok(rmm_pool_resource_create(cuda, &options, &pool));
    rmm_resource_release(cuda);
    return share(pool);
}

/* The arena holds the only reference on its upstream. */
static inline rmm_resource_t *make_arena(uint64_t arena_bytes)
{
    rmm_arena_options_t options = RMM_ARENA_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *arena;

    options.arena_bytes = arena_bytes;
    assert_ok(rmm_arena_resource_create(cuda, &options, &arena));
    rmm_resource_release(cuda);
    return arena;
}

/* Blocks of one size, over cuda. */
static inline rmm_resource_t *
make_fixed(uint64_t block_bytes, uint64_t blocks_per_chunk)
{
    rmm_fixed_size_options_t options = RMM_FIXED_SIZE_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr;

    options.block_bytes = block_bytes;
    options.blocks_per_chunk = blocks_per_chunk;
    assert_ok(rmm_fixed_size_resource_create(cuda, &options, &mr));
    rmm_resource_release(cuda);
    return mr;
}

/* Creators without arguments, for tests that want their status. */
static inline rmm_status_t create_virtual_pool(rmm_resource_t **out)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;

    options.flags = RMM_POOL_VIRTUAL;
    return rmm_pool_resource_create(NULL, &options, out);
}

static inline rmm_status_t create_async(rmm_resource_t **out)
{
    return rmm_async_resource_create(NULL, out);
}

/* A pool of virtual memory, without an upstream. */
static inline rmm_resource_t *
make_virtual_pool(uint64_t initial_bytes, uint64_t maximum_bytes)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *pool;

    options.initial_bytes = initial_bytes;
    options.maximum_bytes = maximum_bytes;
    options.flags = RMM_POOL_VIRTUAL;
    assert_ok(rmm_pool_resource_create(NULL, &options, &pool));
    return share(pool);
}

static inline void *take(rmm_resource_t *mr, size_t bytes, rmm_stream_t stream)
{
    void *ptr = NULL;

    assert_ok(rmm_resource_alloc(mr, bytes, 0, stream, &ptr));
    assert_non_null(ptr);
    return ptr;
}

static inline void
give(rmm_resource_t *mr, void *ptr, size_t bytes, rmm_stream_t stream)
{
    rmm_resource_dealloc(mr, ptr, bytes, 0, stream);
}

static inline rmm_stats_t stats_of(const rmm_resource_t *mr)
{
    rmm_stats_t stats = RMM_STATS_INIT;

    assert_ok(rmm_resource_get_stats(mr, &stats));
    return stats;
}

/* --- traffic: every use of a block writes its number at the start of its use and looks
 * for it at the end; another use in between is a mix-up. --------------------------- */

static inline void fill_kernel(const void *const *params)
{
    uint64_t *block = *(uint64_t *const *)params[0];
    uint64_t words = *(const uint64_t *)params[1];
    uint64_t number = *(const uint64_t *)params[2];

    for (uint64_t i = 0; i < words; i++) {
        block[i] = number;
    }
}

static inline void check_kernel(const void *const *params)
{
    const uint64_t *block = *(uint64_t *const *)params[0];
    uint64_t words = *(const uint64_t *)params[1];
    uint64_t number = *(const uint64_t *)params[2];
    uint64_t *mixups = *(uint64_t *const *)params[3];

    for (uint64_t i = 0; i < words; i++) {
        *mixups += block[i] != number;
    }
}

static inline void launch_use(
    const char *name, rmm_sim_kernel_fn kernel, void *block, size_t bytes,
    uint64_t number, uint64_t *mixups, rmm_stream_t stream)
{
    uint64_t words = bytes / sizeof(uint64_t);
    const void *params[] = {&block, &words, &number, &mixups};
    const size_t param_bytes[] = {8, 8, 8, 8};

    assert_cuda(rmm_sim_launch(name, kernel, stream, params, param_bytes, 4));
}

static inline void
launch_fill(void *block, size_t bytes, uint64_t number, rmm_stream_t stream)
{
    launch_use("fill", fill_kernel, block, bytes, number, NULL, stream);
}

static inline void launch_check(
    void *block, size_t bytes, uint64_t number, uint64_t *mixups, rmm_stream_t stream)
{
    launch_use("check", check_kernel, block, bytes, number, mixups, stream);
}

typedef rmm_resource_t *(*make_over_fn)(rmm_resource_t *upstream);

/*
 * A resource over a pool that lives on ends while work is queued on a block of it that is
 * still out. The pool's next user must not get at the block before that work is done: how
 * often it did, over some seeds. make_over takes over the reference.
 */
static inline uint64_t mixups_of_an_end_amid_work(make_over_fn make_over)
{
    rmm_stream_t stream;
    uint64_t mixups = 0;

    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    for (uint64_t seed = 1; seed <= 20; seed++) {
        rmm_resource_t *pool = make_pool(8 * MIB, 8 * MIB);
        rmm_resource_t *mr = make_over(rmm_resource_retain(pool));
        void *block = take(mr, MIB, stream);
        void *next;

        rmm__sim_reseed(seed);
        launch_fill(block, MIB, 1, stream);
        launch_check(block, MIB, 1, &mixups, stream);
        rmm_resource_release(mr);
        next = take(pool, 8 * MIB, NULL);
        launch_fill(next, 8 * MIB, 2, NULL);
        assert_cuda(rmm_sim_device_synchronize());
        give(pool, next, 8 * MIB, NULL);
        rmm_resource_release(pool);
    }
    assert_ok(rmm_stream_destroy(stream));
    return mixups;
}

/* The pool and its engine call this driver from now on. */
static inline void pool_use_driver(rmm_resource_t *mr, const rmm_driver_t *driver)
{
    pool_from_base(mr)->driver = driver;
    pool_from_base(mr)->engine->driver = driver;
}

#endif /* RMM_TESTS_SIM_POOL_HARNESS_H */
