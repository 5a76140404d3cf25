/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools of the host's memory, on the simulated GPU: where they are, who may use them, and
 * that a device which may not is caught. One device of 256 MiB, and as much of the host.
 */
#include "sim/driver/sim_harness.h"

#include <limits.h>

#include "driver/sim/control.h"
#include "driver/sim/internal.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)
#define BLOCK 4096
#define KEEP_ALL UINT64_MAX

static rmm_driver_mempool_t make_pool(int node)
{
    rmm_driver_mempool_t pool = NULL;

    assert_cuda(sim_driver()->mempool_create(0, node, &pool));
    assert_cuda(sim_driver()->mempool_set_threshold(pool, KEEP_ALL));
    return pool;
}

static void end_pool(rmm_driver_mempool_t pool)
{
    assert_cuda(sim_driver()->mempool_destroy(pool));
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

static char *alloc_from(rmm_driver_mempool_t pool, size_t bytes, rmm_stream_t stream)
{
    void *ptr = NULL;

    assert_cuda(sim_driver()->mempool_alloc(pool, &ptr, bytes, stream));
    assert_int_equal((uintptr_t)ptr % 512, 0);
    return ptr;
}

static void free_on(void *ptr, rmm_stream_t stream)
{
    assert_cuda(sim_driver()->mempool_free(ptr, stream));
}

static rmm_driver_mempool_figures_t figures_of(rmm_driver_mempool_t pool)
{
    rmm_driver_mempool_figures_t figures;

    assert_cuda(sim_driver()->mempool_figures(pool, &figures));
    return figures;
}

static bool is_all(const char *seen, int value)
{
    for (size_t i = 0; i < BLOCK; i++) {
        if (seen[i] != (char)value) {
            return false;
        }
    }
    return true;
}

TEST_CASE(a_pool_of_the_host_takes_no_memory_of_a_device)
{
    const int nodes[] = {RMM_DRIVER_HOST, 0, 1};

    for (int i = 0; i < 3; i++) {
        rmm_driver_mempool_t pool = make_pool(nodes[i]);
        char *block;

        assert_cuda(sim_driver()->mempool_access(pool, RMM_DRIVER_DEVICE(0)));
        block = alloc_from(pool, 64 * MIB, NULL);
        assert_int_equal(rmm_sim_allocated_bytes(0), 0);
        assert_int_equal(figures_of(pool).reserved_bytes, 64 * MIB);
        assert_int_equal(rmm__sim_node_of(block), nodes[i]);
        assert_int_equal(rmm__sim_node_of(block + MIB), nodes[i]);
        assert_cuda(rmm_sim_memset_async(block, 'h', BLOCK, NULL));
        assert_cuda(rmm_sim_device_synchronize());
        assert_true(is_all(block, 'h'));
        free_on(block, NULL);
        end_pool(pool);
        assert_int_equal(rmm__sim_node_of(block), SIM_NOWHERE);
    }
}

TEST_CASE(a_pool_of_a_device_is_on_no_node)
{
    rmm_driver_mempool_t pool = make_pool(RMM_DRIVER_ON_DEVICE);
    char *block = alloc_from(pool, BLOCK, NULL);
    char local;

    assert_int_equal(rmm__sim_node_of(block), SIM_NOWHERE);
    assert_int_equal(rmm__sim_node_of(&local), SIM_NOWHERE);
    assert_int_equal(rmm__sim_node_of(NULL), SIM_NOWHERE);
    free_on(block, NULL);
    end_pool(pool);
}

/* A GPU then refuses the first copy; its kernels end the context. */
TEST_CASE(a_device_without_access_to_a_pool_of_the_host_is_caught)
{
    uint64_t before = rmm_sim_violations();
    rmm_driver_mempool_t pool = make_pool(0);
    char *block = alloc_from(pool, BLOCK, NULL);
    static char local[BLOCK];

    assert_int_equal(
        rmm_sim_memcpy_async(block, local, BLOCK, NULL), RMM_DRIVER_INVALID_VALUE);
    assert_int_equal(rmm_sim_violations(), before + 1);
    assert_non_null(strstr(
        rmm__sim_violation_text(),
        "on device 0: no access to the memory pool of the host"));
    assert_cuda(sim_driver()->mempool_access(pool, RMM_DRIVER_DEVICE(0)));
    assert_cuda(rmm_sim_memcpy_async(block, local, BLOCK, NULL));
    assert_int_equal(
        sim_driver()->mempool_access(pool, RMM_DRIVER_DEVICE(9)),
        RMM_DRIVER_INVALID_DEVICE);
    free_on(block, NULL);
    end_pool(pool);
    assert_int_equal(rmm_sim_violations(), before + 1);
}

TEST_CASE(a_copy_beyond_a_block_of_the_host_is_caught)
{
    uint64_t before = rmm_sim_violations();
    rmm_driver_mempool_t pool = make_pool(RMM_DRIVER_HOST);
    char *block;

    assert_cuda(sim_driver()->mempool_access(pool, RMM_DRIVER_DEVICE(0)));
    block = alloc_from(pool, 32 * MIB, NULL);
    (void)rmm_sim_memset_async(block, 0, 33 * MIB, NULL);
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(rmm_sim_violations(), before + 1);
    assert_non_null(strstr(rmm__sim_violation_text(), "one allocation of the host"));
    free_on(block, NULL);
    end_pool(pool);
}

TEST_CASE(refuses_nodes_that_there_are_not)
{
    const int nodes[] = {-3, SIM_NODES, INT_MAX};
    rmm_driver_mempool_t pool = NULL;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            sim_driver()->mempool_create(0, nodes[i], &pool), RMM_DRIVER_INVALID_VALUE);
    }
    /* memory of any node has no handles */
    assert_int_equal(
        sim_driver()->mempool_create(1, RMM_DRIVER_HOST, &pool),
        RMM_DRIVER_INVALID_VALUE);
    assert_cuda(sim_driver()->mempool_create(1, 1, &pool));
    end_pool(pool);
}

TEST_CASE(a_full_host_refuses_and_recovers)
{
    rmm_driver_mempool_t pool = make_pool(0), other = make_pool(1);
    char *block = alloc_from(pool, 200 * MIB, NULL);
    void *more = NULL;

    assert_int_equal(
        sim_driver()->mempool_alloc(other, &more, 100 * MIB, NULL),
        RMM_DRIVER_MEMORY_ALLOCATION);
    free_on(block, NULL);
    assert_cuda(rmm_sim_device_synchronize());
    more = alloc_from(other, 100 * MIB, NULL); /* of what the first one does not use */
    assert_int_equal(figures_of(pool).reserved_bytes, 0);
    free_on(more, NULL);
    end_pool(pool);
    end_pool(other);
}

/* The memory of the graph is the host's, too. */
/* As CUDA: it answers 801, and the capture goes on. */
TEST_CASE(a_capture_gets_nothing_from_a_pool_of_the_host)
{
    rmm_driver_mempool_t pool = make_pool(0);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_sim_graph_t graph;
    void *block = NULL;

    assert_cuda(sim_driver()->mempool_access(pool, RMM_DRIVER_DEVICE(0)));
    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_RELAXED));
    assert_int_equal(
        sim_driver()->mempool_alloc(pool, &block, BLOCK, stream),
        RMM_DRIVER_NOT_SUPPORTED);
    assert_null(block);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(sim_driver()->stream_destroy(stream));
    end_pool(pool);
}
