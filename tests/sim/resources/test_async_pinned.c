/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA memory pools of pinned memory of the host: where they are, who may use them, where they are
 * counted, and what is refused. Three devices of 1 GiB; the simulated host has two NUMA nodes.
 */
#include "sim/pool/pool_harness.h"

#include <pthread.h>
#include <stdio.h>

#include "base/resource_impl.h"
#include "core/host_memory.h"
#include "driver/sim/control.h"

#define GIB (1024 * MIB)

/* Those that cases provoke. */
static uint64_t violations_expected;

static int set_up(void **state)
{
    (void)state;
    assert_cuda(rmm__sim_device_set(0));
    return 0;
}

static uint64_t reserved_on_host(void)
{
    return rmm__figure_get(&rmm__locations[RMM_SEGMENT_HOST_LOCATION].reserved_bytes);
}

static uint64_t live_on_host(void)
{
    return rmm__location_live(RMM_SEGMENT_HOST_LOCATION).bytes;
}

static int nothing_left(void **state)
{
    (void)state;
    return rmm_sim_allocated_bytes(0) == 0 && rmm_sim_allocated_bytes(1) == 0 &&
                   reserved_on_host() == 0 && live_on_host() == 0 &&
                   rmm_sim_violations() == violations_expected
               ? 0
               : -1;
}

#define CASE(name) TEST_CASE_WITH(name, set_up, nothing_left)

static rmm_resource_t *make_with(const rmm_async_options_t *options)
{
    rmm_resource_t *mr = NULL;

    assert_ok(rmm_async_resource_create(options, &mr));
    assert_string_equal(rmm_resource_type(mr), "async_pinned");
    return mr;
}

static rmm_resource_t *make_at(uint32_t location, uint32_t node)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;

    options.location = location;
    options.numa_node = node;
    return make_with(&options);
}

static rmm_resource_t *make_from(const char *spec)
{
    rmm_resource_t *mr = NULL;

    assert_ok(rmm_resource_create_from_spec(spec, &mr));
    return mr;
}

/* --- where ---------------------------------------------------------------------------- */

static void expect_node(rmm_resource_t *mr, int node)
{
    void *ptr = take(mr, 1000, NULL);

    assert_int_equal(rmm__sim_node_of(ptr), node);
    give(mr, ptr, 1000, NULL);
    rmm_resource_release(mr);
}

CASE(the_memory_is_on_the_node_that_was_asked_for)
{
    expect_node(make_at(RMM_ASYNC_ON_HOST, 0), -1);
    expect_node(make_at(RMM_ASYNC_ON_NODE, 0), 0);
    expect_node(make_at(RMM_ASYNC_ON_NODE, 1), 1);
    expect_node(make_from("async_pinned"), -1);
    expect_node(make_from("async_pinned:numa=1"), 1);
    expect_node(make_from("async"), SIM_NOWHERE);
}

CASE(the_nearest_node_is_that_of_the_current_device)
{
    for (int device = 2; device >= 0; device--) {
        assert_cuda(rmm__sim_device_set(device));
        expect_node(make_at(RMM_ASYNC_ON_NEAREST_NODE, 0), device % 2);
        expect_node(make_from("async_pinned:numa"), device % 2);
    }
}

/* --- who ------------------------------------------------------------------------------ */

/* A fill, a copy and what the host reads. False: the device may not. */
static bool use_on(int device, char *block)
{
    static char local[4096];
    rmm_stream_t stream;
    int error;

    assert_cuda(rmm__sim_device_set(device));
    stream = make_stream(RMM_STREAM_NON_BLOCKING);
    error = rmm_sim_memcpy_async(block, local, sizeof(local), stream);
    if (error == RMM_DRIVER_OK) {
        assert_cuda(rmm_sim_memset_async(block, 'a' + device, 4096, stream));
        assert_cuda(rmm__sim_stream_synchronize(stream));
        assert_int_equal(block[0], 'a' + device);
        assert_int_equal(block[4095], 'a' + device);
    }
    assert_cuda(sim_driver()->stream_destroy(stream));
    assert_cuda(rmm__sim_device_set(0));
    return error == RMM_DRIVER_OK;
}

CASE(host_and_all_devices_use_the_memory)
{
    rmm_resource_t *mr = make_from("async_pinned:numa");
    char *block = take(mr, 4096, NULL);

    assert_int_equal(
        rmm_resource_properties(mr), RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE);
    assert_cuda(rmm_sim_device_synchronize());
    memset(block, 'h', 4096);
    for (int device = 0; device < 3; device++) {
        assert_true(use_on(device, block));
    }
    give(mr, block, 4096, NULL);
    rmm_resource_release(mr);
}

CASE(other_devices_may_be_kept_out)
{
    rmm_resource_t *mr = make_from("async_pinned:no_peer_access");
    char *block = take(mr, 4096, NULL);

    assert_cuda(rmm_sim_device_synchronize());
    assert_true(use_on(0, block));
    assert_false(use_on(1, block));
    violations_expected++;
    assert_int_equal(rmm_sim_violations(), violations_expected);
    give(mr, block, 4096, NULL);
    rmm_resource_release(mr);
}

/* --- figures -------------------------------------------------------------------------- */

CASE(it_counts_as_memory_of_the_host)
{
    rmm_resource_t *mr = make_at(RMM_ASYNC_ON_HOST, 0);
    void *ptr = take(mr, 100 * MIB, NULL);

    assert_int_equal(rmm_resource_device(mr), 0);
    assert_int_equal(live_on_host(), 100 * MIB);
    assert_true(reserved_on_host() >= 100 * MIB);
    assert_int_equal(stats_of(mr).reserved_bytes, reserved_on_host());
    assert_int_equal(rmm__location_live(0).bytes, 0);
    assert_int_equal(rmm__figure_get(&rmm__locations[0].reserved_bytes), 0);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0); /* nor a block for barriers */
    give(mr, ptr, 100 * MIB, NULL);
    assert_int_equal(live_on_host(), 0);
    assert_ok(rmm_resource_trim(mr, 0));
    assert_int_equal(reserved_on_host(), 0);
    rmm_resource_release(mr);
}

CASE(an_initial_size_is_reserved_on_the_host)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;
    rmm_resource_t *mr = NULL;

    options.location = RMM_ASYNC_ON_NEAREST_NODE;
    options.initial_pool_bytes = 500 * MIB;
    mr = make_with(&options);
    assert_true(stats_of(mr).reserved_bytes >= 500 * MIB);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    rmm_resource_release(mr);
    options.initial_pool_bytes = 2 * GIB;
    mr = NULL;
    assert_int_equal(rmm_async_resource_create(&options, &mr), RMM_ERR_OUT_OF_MEMORY);
    options.initial_pool_bytes = UINT64_MAX;
    assert_int_equal(rmm_async_resource_create(&options, &mr), RMM_ERR_OUT_OF_MEMORY);
    assert_null(mr);
}

/* The device is full, which does not matter here, and stays so. */
CASE(a_full_device_has_pools_of_the_host)
{
    rmm_resource_t *cuda = make_cuda();
    void *all = take(cuda, GIB - MIB, NULL);
    rmm_resource_t *mr = make_at(RMM_ASYNC_ON_HOST, 0);
    void *ptr = take(mr, 100 * MIB, NULL);

    give(mr, ptr, 100 * MIB, NULL);
    rmm_resource_release(mr);
    give(cuda, all, GIB - MIB, NULL);
    rmm_resource_release(cuda);
}

CASE(a_full_host_refuses_and_recovers)
{
    rmm_resource_t *mr = make_from("async_pinned:wait");
    void *ptr = take(mr, 800 * MIB, NULL);
    void *more = NULL;

    assert_int_equal(
        rmm_resource_alloc(mr, 800 * MIB, 0, NULL, &more), RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(stats_of(mr).oom_count, 1);
    give(mr, ptr, 800 * MIB, NULL);
    more = take(mr, 900 * MIB, NULL); /* it waits for the free */
    give(mr, more, 900 * MIB, NULL);
    rmm_resource_release(mr);
}

CASE(a_view_of_it_counts_as_memory_of_the_host_as_well)
{
    rmm_resource_t *mr = make_at(RMM_ASYNC_ON_HOST, 0), *view = NULL;
    void *ptr;

    assert_ok(
        rmm_async_view_resource_create(rmm_async_resource_pool_handle(mr), &view));
    rmm_resource_release(mr);
    assert_int_equal(
        rmm_resource_properties(view), RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE);
    ptr = take(view, 100 * MIB, NULL);
    assert_int_equal(live_on_host(), 100 * MIB);
    assert_true(reserved_on_host() >= 100 * MIB);
    assert_int_equal(rmm__figure_get(&rmm__locations[0].reserved_bytes), 0);
    give(view, ptr, 100 * MIB, NULL);
    rmm_resource_release(view);
}

/* --- a pool above --------------------------------------------------------------------- */

CASE(a_pool_of_ours_stands_on_it)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *base = make_at(RMM_ASYNC_ON_NODE, 1);
    rmm_resource_t *pool = NULL;
    char *ptr;

    options.initial_bytes = 8 * MIB;
    assert_ok(rmm_pool_resource_create(base, &options, &pool));
    rmm_resource_release(base);
    assert_int_equal(
        rmm_resource_properties(pool), RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE);
    ptr = take(pool, 4096, NULL);
    assert_int_equal(rmm__sim_node_of(ptr), 1);
    assert_cuda(rmm_sim_device_synchronize());
    assert_true(use_on(2, ptr));
    assert_int_equal(live_on_host(), 4096);
    give(pool, ptr, 4096, NULL);
    rmm_resource_release(pool);
}

/* --- what is refused ------------------------------------------------------------------ */

static void expect_refusal(const rmm_async_options_t *options, const char *named)
{
    rmm_resource_t *mr = NULL;

    assert_int_equal(rmm_async_resource_create(options, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_null(mr);
    if (strstr(rmm_last_error_message(), named) == NULL) {
        fail_msg("\"%s\" does not name \"%s\"", rmm_last_error_message(), named);
    }
}

CASE(refuses_locations_that_make_no_sense)
{
    const size_t whole = sizeof(rmm_async_options_t);
    const struct {
        rmm_async_options_t options;
        const char *named;
    } senseless[] = {
        {{whole, .location = 4}, "unknown location"},
        {{whole, .location = UINT32_MAX}, "unknown location"},
        {{whole, .numa_node = 1}, "RMM_ASYNC_ON_NODE"},
        {{whole, .location = RMM_ASYNC_ON_HOST, .numa_node = 1}, "RMM_ASYNC_ON_NODE"},
        {{whole, .location = RMM_ASYNC_ON_NODE, .numa_node = UINT32_MAX},
         "no such NUMA node"},
        {{whole, .location = RMM_ASYNC_ON_NODE, .numa_node = 2}, "NUMA node 2"},
        {{whole, .location = RMM_ASYNC_ON_HOST, .handle_types = 1}, "cannot be shared"},
    };

    for (size_t i = 0; i < sizeof(senseless) / sizeof(senseless[0]); i++) {
        expect_refusal(&senseless[i].options, senseless[i].named);
    }
}

CASE(memory_on_a_node_may_be_shared)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;

    options.location = RMM_ASYNC_ON_NODE;
    options.handle_types = RMM_ASYNC_HANDLE_POSIX_FD;
    expect_node(make_with(&options), 0);
}

/* What a program sets that was compiled before there were locations. */
CASE(options_of_an_older_program_are_of_the_device)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;
    rmm_resource_t *mr = NULL;

    options.struct_size = offsetof(rmm_async_options_t, location);
    options.location = 77; /* not its */
    assert_ok(rmm_async_resource_create(&options, &mr));
    assert_string_equal(rmm_resource_type(mr), "async");
    rmm_resource_release(mr);
    options.struct_size--;
    assert_int_equal(
        rmm_async_resource_create(&options, &mr), RMM_ERR_INVALID_ARGUMENT);
}

/* --- faults --------------------------------------------------------------------------- */

/* Create, use and end one; how far that came. */
static rmm_status_t use_one(void)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;
    rmm_resource_t *mr = NULL;
    void *ptr = NULL;
    rmm_status_t status;

    options.location = RMM_ASYNC_ON_NEAREST_NODE;
    options.initial_pool_bytes = MIB;
    status = rmm_async_resource_create(&options, &mr);
    assert_true((status == RMM_OK) == (mr != NULL));
    if (status == RMM_OK) {
        status = rmm_resource_alloc(mr, 1000, 0, NULL, &ptr);
    }
    if (status == RMM_OK) {
        rmm_resource_dealloc(mr, ptr, 1000, 0, NULL);
    }
    rmm_resource_release(mr);
    return status;
}

static void assert_all_is_given_back(void)
{
    assert_true(rmm_sim_fail(NULL));
    rmm__host_memory_fail(0);
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(nothing_left(NULL), 0);
}

CASE(a_creation_that_fails_leaves_nothing_behind)
{
    static const char *const calls[] = {
        "device_get:1",
        "device_attribute:1",
        "device_attribute:2",
        "device_attribute:3",
        "mempool_create:1",
        "mempool_access:1",
        "mempool_set_threshold:1",
        "mempool_alloc:1",
        "mempool_figures:1"};

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        assert_true(rmm_sim_fail(calls[i]));
        assert_true(use_one() != RMM_OK);
        assert_true(rmm__sim_fault_has_struck());
        assert_true(rmm_last_error_message()[0] != '\0');
        assert_all_is_given_back();
    }
    for (uint64_t nth = 1;; nth++) {
        rmm_status_t status;

        assert_true(nth < 200);
        rmm__host_memory_fail(nth);
        status = use_one();
        assert_all_is_given_back();
        if (status == RMM_OK) {
            break;
        }
        assert_int_equal(status, RMM_ERR_OUT_OF_HOST_MEMORY);
    }
}

/* The others are let in by another call, whose failure is a warning: the pool serves its own. */
CASE(a_device_that_cannot_be_let_in_costs_the_others_nothing)
{
    rmm_resource_t *mr;
    char *block;

    assert_true(rmm_sim_fail("mempool_access:2,mempool_access:3"));
    mr = make_at(RMM_ASYNC_ON_HOST, 0);
    assert_true(rmm_sim_fail(NULL));
    block = take(mr, 4096, NULL);
    assert_cuda(rmm_sim_device_synchronize());
    assert_true(use_on(0, block));
    assert_true(use_on(2, block));
    assert_false(use_on(1, block));
    violations_expected++;
    give(mr, block, 4096, NULL);
    rmm_resource_release(mr);
}

/* --- threads -------------------------------------------------------------------------- */

enum { THREADS = 8, ROUNDS = 2000 };

static void *alloc_and_free(void *argument)
{
    rmm_resource_t *mr = argument;
    rmm_stream_t stream;

    if (rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream) != RMM_OK) {
        return argument;
    }
    for (size_t i = 0; i < ROUNDS; i++) {
        void *ptr = NULL;

        if (rmm_resource_alloc(mr, 1 + i, 0, stream, &ptr) != RMM_OK) {
            return argument;
        }
        rmm_resource_dealloc(mr, ptr, 1 + i, 0, stream);
    }
    return rmm_stream_destroy(stream) == RMM_OK ? NULL : argument;
}

CASE(threads_share_it)
{
    rmm_resource_t *mr = make_from("async_pinned");
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, alloc_and_free, mr), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed = mr;

        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(stats_of(mr).total_count, THREADS * ROUNDS);
    assert_int_equal(stats_of(mr).current_count, 0);
    rmm_resource_release(mr);
}
