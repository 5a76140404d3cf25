/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of one device, used by the others: what each resource lets them do, how many calls of
 * the driver that costs, and what happens where it cannot be. Runs with 2 and with 8 devices.
 *
 * A call is counted by a fault that is planned for it and does not strike.
 */
#include "sim/pool/virtual_harness.h" /* PIECE, BLOCKS */

#include <stdio.h>

#include "driver/sim/control.h"

/* Those that cases provoke. */
static uint64_t violations_expected;

static int set_up(void **state)
{
    assert_cuda(rmm__sim_device_set(0));
    return 0;
}

static int nothing_else(void **state)
{
    return rmm_sim_allocated_bytes(0) == 0 && rmm__sim_address_bytes() == 0 &&
                   rmm_sim_violations() == violations_expected
               ? 0
               : -1;
}

#define CASE(name) TEST_CASE_WITH(name, set_up, nothing_else)

static int device_count(void)
{
    int count;

    assert_cuda(sim_driver()->device_count(&count));
    return count;
}

/* Copies to and from another block, and a kernel that writes and one that reads, on `other`. */
static void use_on(int other, void *block, size_t bytes)
{
    uint64_t mixups = 0;
    rmm_stream_t stream;
    void *there;

    assert_cuda(rmm__sim_device_set(other));
    stream = make_stream(RMM_STREAM_NON_BLOCKING);
    assert_cuda(sim_driver()->mem_alloc(&there, bytes));
    launch_fill(block, bytes, (uint64_t)other + 1, stream);
    assert_cuda(rmm_sim_memcpy_async(there, block, bytes, stream));
    assert_cuda(rmm_sim_memset_async(block, 0, bytes, stream));
    assert_cuda(rmm_sim_memcpy_async(block, there, bytes, stream));
    launch_check(block, bytes, (uint64_t)other + 1, &mixups, stream);
    assert_cuda(rmm__sim_stream_synchronize(stream));
    assert_int_equal(mixups, 0);
    assert_int_equal(rmm_sim_violations(), violations_expected);
    assert_cuda(sim_driver()->mem_free(there));
    assert_cuda(sim_driver()->stream_destroy(stream));
    assert_cuda(rmm__sim_device_set(0));
}

/* Its first and its last bytes. */
static void use_on_all(void *block, size_t bytes)
{
    assert_cuda(rmm_sim_device_synchronize()); /* the allocation has run */
    for (int other = 1; other < device_count(); other++) {
        use_on(other, block, 4 * KIB);
        use_on(other, (char *)block + bytes - 4 * KIB, 4 * KIB);
    }
}

/* As a long program: grow, give back what lies between blocks, map again. */
static void use_all_memory_of(rmm_resource_t *mr)
{
    void *blocks[BLOCKS];
    void *large;
    rmm_status_t status;

    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = take(mr, PIECE, NULL);
        use_on_all(blocks[i], PIECE);
    }
    for (int i = 0; i < BLOCKS; i += 2) {
        give(mr, blocks[i], PIECE, NULL);
    }
    large = take(mr, 3 * PIECE, NULL);
    use_on_all(large, 3 * PIECE);
    give(mr, large, 3 * PIECE, NULL);
    status = rmm_resource_trim(mr, 0);
    assert_true(status == RMM_OK || status == RMM_ERR_UNSUPPORTED);
    for (int i = 0; i < BLOCKS; i += 2) {
        blocks[i] = take(mr, PIECE, NULL);
        use_on_all(blocks[i], PIECE);
    }
    for (int i = 0; i < BLOCKS; i++) {
        give(mr, blocks[i], PIECE, NULL);
    }
    rmm_resource_release(mr);
}

CASE(every_device_uses_memory_of_every_resource)
{
    static const char *const specs[] = {
        "cuda",
        "pool",
        "pool_virtual",
        "pool_virtual:8MiB",
        "arena:1GiB",
        "async",
        "async:64MiB",
        "binning",
        "managed",
        "pool_managed",
        "async_managed",
        "pinned",
        "fixed_size:8MiB",
        "statistics+limiting:1GiB+pool_virtual"};

    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        rmm_resource_t *mr;

        assert_ok(rmm_resource_create_from_spec(specs[i], &mr));
        use_all_memory_of(mr);
    }
}

typedef rmm_status_t (*create_fn)(rmm_resource_t **out);

static const create_fn bases[] = {create_virtual_pool, create_async};

CASE(what_stands_on_such_memory_is_open_as_well)
{
    rmm_arena_options_t arena = RMM_ARENA_OPTIONS_INIT;
    rmm_fixed_size_options_t fixed = RMM_FIXED_SIZE_OPTIONS_INIT;
    rmm_binning_options_t bins = RMM_BINNING_OPTIONS_INIT;

    arena.arena_bytes = 256 * MIB;
    fixed.block_bytes = 4 * PIECE;
    bins.min_exponent = 18;
    bins.max_exponent = 24;
    for (size_t i = 0; i < 2; i++) {
        rmm_resource_t *base;
        rmm_resource_t *mr[4];

        assert_ok(bases[i](&base));
        assert_ok(rmm_pool_resource_create(base, NULL, &mr[0]));
        assert_ok(rmm_arena_resource_create(base, &arena, &mr[1]));
        assert_ok(rmm_fixed_size_resource_create(base, &fixed, &mr[2]));
        assert_ok(rmm_binning_resource_create(base, &bins, &mr[3]));
        rmm_resource_release(base);
        for (int k = 0; k < 4; k++) {
            use_all_memory_of(mr[k]);
        }
    }
}

/* A pool with room for one piece is compacted: the memory comes back mapped elsewhere. */
CASE(memory_that_is_mapped_again_is_open_again)
{
    rmm_resource_t *pool = make_virtual_pool(BLOCKS * PIECE, BLOCKS * PIECE);
    void *blocks[BLOCKS];
    void *large;

    fill_pool(pool, blocks);
    give_every_second(pool, blocks);
    large = take(pool, BLOCKS / 2 * PIECE, NULL);
    use_on_all(large, BLOCKS / 2 * PIECE);
    check_and_give_others(pool, blocks);
    give(pool, large, BLOCKS / 2 * PIECE, NULL);
    rmm_resource_release(pool);
}

/* --- what it costs ------------------------------------------------------------------- */

/* No more than so many calls come until the end. */
static void expect_calls(const char *call, int most)
{
    char plan[64];

    (void)snprintf(plan, sizeof(plan), "%s:%d", call, most + 1);
    assert_true(rmm_sim_fail(plan));
}

static void assert_no_more_calls(void)
{
    assert_false(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
}

CASE(a_mapping_costs_one_call_for_all_devices)
{
    rmm_resource_t *pool;
    void *block;

    expect_calls("peer_can_access", device_count() - 1);
    pool = make_virtual_pool(0, 0);
    assert_no_more_calls();
    expect_calls("address_access", 1);
    block = take(pool, PIECE, NULL);
    assert_no_more_calls();
    expect_calls("address_access", 1);
    give(pool, block, PIECE, NULL);
    assert_ok(rmm_resource_trim(pool, 0));
    block = take(pool, PIECE, NULL);
    give(pool, block, PIECE, NULL);
    assert_no_more_calls();
    rmm_resource_release(pool);
}

CASE(a_memory_pool_costs_one_call_at_its_creation)
{
    rmm_resource_t *mr;
    void *blocks[2];

    expect_calls("mempool_access", 1);
    assert_ok(rmm_async_resource_create(NULL, &mr));
    blocks[0] = take(mr, 64 * MIB, NULL);
    blocks[1] = take(mr, 64 * MIB, NULL);
    assert_no_more_calls();
    give(mr, blocks[0], 64 * MIB, NULL);
    give(mr, blocks[1], 64 * MIB, NULL);
    rmm_resource_release(mr);
}

/* --- refused by an option ---------------------------------------------------------------- */

/* A program's cudaMemcpyAsync() is refused at the call; the library's copy goes another way. */
static void assert_copies_only_through_the_host(const void *block)
{
    rmm_device_buffer_t copy;
    rmm_stream_t stream;
    uint64_t found[2] = {0};
    void *there;

    assert_cuda(rmm__sim_device_set(1));
    stream = make_stream(RMM_STREAM_NON_BLOCKING);
    assert_cuda(sim_driver()->mem_alloc(&there, 4 * KIB));
    assert_int_equal(
        rmm_sim_memcpy_async(there, block, 4 * KIB, stream), RMM_DRIVER_INVALID_VALUE);
    assert_int_equal(rmm_sim_violations(), ++violations_expected);
    assert_non_null(strstr(rmm__sim_violation_text(), "a copy on device 1: no access"));
    assert_ok(rmm_device_buffer_init_copy_from(&copy, block, 4 * KIB, stream, NULL));
    assert_ok(rmm_memcpy(found, rmm_device_buffer_data(&copy), sizeof(found), stream));
    assert_cuda(rmm__sim_stream_synchronize(stream));
    assert_int_equal(found[1], 1);
    rmm_device_buffer_fini(&copy);
    assert_cuda(sim_driver()->mem_free(there));
    assert_cuda(sim_driver()->stream_destroy(stream));
    assert_cuda(rmm__sim_device_set(0));
}

static void assert_out_of_reach(rmm_resource_t *mr, const char *why)
{
    void *block = take(mr, PIECE, NULL);
    rmm_stream_t stream;

    launch_fill(block, PIECE, 1, NULL);
    assert_cuda(rmm_sim_device_synchronize());
    assert_cuda(rmm__sim_device_set(1));
    stream = make_stream(RMM_STREAM_NON_BLOCKING);
    assert_cuda(rmm_sim_memset_async(block, 0, PIECE, stream));
    assert_cuda(rmm__sim_stream_synchronize(stream));
    assert_int_equal(rmm_sim_violations(), violations_expected + 1);
    assert_non_null(strstr(rmm__sim_violation_text(), why));
    launch_fill(block, PIECE, 2, stream);
    assert_cuda(rmm__sim_stream_synchronize(stream));
    assert_int_equal(rmm_sim_violations(), violations_expected + 2);
    assert_non_null(
        strstr(rmm__sim_violation_text(), "a kernel on device 1: no access"));
    assert_cuda(sim_driver()->stream_destroy(stream));
    assert_cuda(rmm__sim_device_set(0));
    violations_expected += 2;
    assert_copies_only_through_the_host(block);
    assert_int_equal(*(uint64_t *)block, 1);
    give(mr, block, PIECE, NULL);
    rmm_resource_release(mr);
}

CASE(an_option_keeps_memory_to_its_own_device)
{
    static const char *const specs[] = {
        "pool_virtual:no_peer_access", "pool_virtual:8MiB:no_peer_access:1GiB",
        "async:no_peer_access", "async:64MiB:no_peer_access"};

    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        rmm_resource_t *mr;

        expect_calls("peer_can_access", 0);
        assert_ok(rmm_resource_create_from_spec(specs[i], &mr));
        assert_no_more_calls();
        assert_out_of_reach(mr, "no access");
    }
}

CASE(an_option_that_a_resource_does_not_have_is_refused)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_async_options_t async = RMM_ASYNC_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr = NULL;

    options.flags = RMM_POOL_NO_PEER_ACCESS;
    assert_int_equal(
        rmm_pool_resource_create(cuda, &options, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(
        rmm_last_error_message(), "RMM_POOL_NO_PEER_ACCESS needs RMM_POOL_VIRTUAL"));
    options.flags = RMM_POOL_VIRTUAL | RMM_POOL_NO_PEER_ACCESS | RMM_POOL_PEER_ACCESS;
    assert_int_equal(
        rmm_pool_resource_create(NULL, &options, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(rmm_last_error_message(), "exclude each other"));
    assert_int_equal(
        rmm_resource_check_spec("pool:1GiB:no_peer_access"), RMM_ERR_INVALID_ARGUMENT);
    assert_non_null(
        strstr(rmm_last_error_message(), "'pool' has no option 'no_peer_access'"));
    async.flags = RMM_ASYNC_NO_PEER_ACCESS;
    async.release_threshold_bytes = MIB; /* together with a threshold */
    assert_ok(rmm_async_resource_create(&async, &mr));
    rmm_resource_release(mr);
    rmm_resource_release(cuda);
}

/* --- what cannot be ---------------------------------------------------------------------- */

static char warnings[8][RMM_ERROR_BYTES];
static int warning_count;

static void keep_warning(rmm_log_level_t level, const char *message, void *arg)
{
    (void)arg;
    if (level == RMM_LEVEL_WARN && warning_count < 8) {
        (void)snprintf(warnings[warning_count++], sizeof(warnings[0]), "%s", message);
    }
}

static void begin_log(void)
{
    warning_count = 0;
    assert_ok(rmm_log_set_level(RMM_LEVEL_WARN));
    assert_ok(rmm_log_to_callback(keep_warning, NULL));
}

static void end_log(void)
{
    rmm_log_to_stderr();
    assert_ok(rmm_log_set_level(RMM_LEVEL_OFF));
}

/* Of all devices the driver refuses one, when it is alone as well. */
CASE(a_device_that_is_refused_access_fails_no_allocation)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    void *blocks[3];

    begin_log();
    for (int i = 0; i < 3; i++) {
        assert_true(rmm_sim_fail("address_access:1,address_access:3:201"));
        blocks[i] = take(pool, 64 * MIB, NULL);
        assert_true(rmm_sim_fail(NULL));
    }
    end_log();
    assert_int_equal(warning_count, 1); /* once for each pool */
    assert_non_null(strstr(warnings[0], "on device 0: device 1 gets no access"));
    launch_fill(blocks[2], 64 * MIB, 1, NULL);
    assert_cuda(rmm_sim_device_synchronize());
    for (int other = 2; other < device_count(); other++) {
        use_on(other, blocks[0], PIECE);
    }
    for (int i = 0; i < 3; i++) {
        give(pool, blocks[i], 64 * MIB, NULL);
    }
    rmm_resource_release(pool);
}

CASE(a_memory_pool_that_is_refused_peers_serves_its_device)
{
    rmm_resource_t *mr;
    void *block;

    begin_log();
    assert_true(rmm_sim_fail("mempool_access:1,mempool_access:2:201"));
    assert_ok(rmm_async_resource_create(NULL, &mr));
    assert_true(rmm_sim_fail(NULL));
    end_log();
    assert_int_equal(warning_count, 1);
    assert_non_null(strstr(warnings[0], "device 1 gets no access"));
    block = take(mr, MIB, NULL);
    launch_fill(block, MIB, 1, NULL);
    assert_cuda(rmm_sim_device_synchronize());
    for (int other = 2; other < device_count(); other++) {
        use_on(other, block, MIB);
    }
    give(mr, block, MIB, NULL);
    rmm_resource_release(mr);
}

CASE(a_driver_that_does_not_know_peers_fails_no_creation)
{
    static const char *const plans[] = {"device_count:1", "peer_can_access:1"};

    for (size_t i = 0; i < 4; i++) {
        rmm_resource_t *mr;
        void *block;

        begin_log();
        assert_true(rmm_sim_fail(plans[i % 2]));
        assert_ok(bases[i / 2](&mr));
        assert_true(rmm__sim_fault_has_struck());
        assert_true(rmm_sim_fail(NULL));
        end_log();
        if (i != 0) { /* a virtual pool counts the devices elsewhere, too */
            assert_int_equal(warning_count, 1);
            assert_non_null(strstr(warnings[0], "none gets access"));
        }
        block = take(mr, MIB, NULL);
        give(mr, block, MIB, NULL);
        rmm_resource_release(mr);
    }
}

/* Memory of a graph has the access that its pool had when it was captured. */
CASE(memory_of_a_graph_is_as_open_as_its_pool)
{
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_sim_graph_t graph;
    rmm_resource_t *mr;
    void *block;

    assert_ok(rmm_async_resource_create(NULL, &mr));
    assert_cuda(rmm_sim_begin_capture(stream, 0));
    block = take(mr, MIB, stream);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_cuda(rmm_sim_graph_launch(graph, stream));
    assert_cuda(rmm__sim_stream_synchronize(stream));
    use_on_all(block, MIB);
    give(mr, block, MIB, stream);
    assert_cuda(rmm__sim_stream_synchronize(stream));
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(sim_driver()->stream_destroy(stream));
    rmm_resource_release(mr);
}

/* Only in sim.no_peers, which sets RMM_SIM_ATTRIBUTES=peers=0. */
CASE(a_device_in_use_that_is_no_peer_is_named_once)
{
    const char *attributes = getenv("RMM_SIM_ATTRIBUTES");
    rmm_resource_t *mr[4];

    if (attributes == NULL || strcmp(attributes, "peers=0") != 0) {
        return;
    }
    begin_log();
    for (int i = 0; i < 2; i++) { /* nobody uses another device */
        assert_ok(bases[i](&mr[i]));
    }
    assert_int_equal(warning_count, 0);
    assert_cuda(rmm__sim_device_set(1));
    for (int i = 0; i < 2; i++) {
        assert_ok(bases[i](&mr[2 + i]));
    }
    end_log();
    assert_int_equal(warning_count, 1);
    assert_non_null(strstr(
        warnings[0], "device 0 cannot access the memory of device 1 "
                     "(cudaDeviceCanAccessPeer)"));
    assert_non_null(strstr(warnings[0], "cudaMemcpyPeerAsync() works"));
    for (int i = 0; i < 4; i++) {
        rmm_resource_release(mr[i]);
    }
}
