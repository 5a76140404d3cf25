/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool over HIP keeps the order of streams that the program makes and ends by HIP itself,
 * also when a handle passes to another stream. With and without ids of HIP's.
 */
#include "hip/hip_harness.h"

#include <pthread.h>

#include "driver/sim/control.h"

#define BYTES ((size_t)100000)
#define THREADS 8

/* Under a sanitizer. */
static bool is_quick(void)
{
    return getenv("RMM_TEST_QUICK") != NULL;
}

/* ---- handles that pass to another stream ---- */

typedef enum maker { BY_HIP, BY_THE_LIBRARY } maker_t;

static rmm_stream_t begin(maker_t maker)
{
    return maker == BY_HIP ? foreign_stream() : make_stream(0);
}

static void end(maker_t maker, rmm_stream_t stream)
{
    if (maker == BY_HIP) {
        end_foreign(stream);
    } else {
        assert_ok(rmm_stream_destroy(stream));
    }
}

/* The last use of a block on one stream, which ends with its work still queued; then the
 * next stream, which has its handle, takes the block, fills it and reads it back. */
static void reuse_across(rmm_resource_t *pool, maker_t first, maker_t second)
{
    static unsigned char back[BYTES];
    rmm_stream_t before = begin(first);
    void *block = take(pool, BYTES, before);
    rmm_stream_t after;

    assert_cuda(rmm_sim_memset_async(block, 1, BYTES, before));
    give(pool, block, BYTES, before);
    end(first, before);
    after = begin(second);
    assert_ptr_equal(after, before);
    block = take(pool, BYTES, after);
    assert_cuda(rmm_sim_memset_async(block, 2, BYTES, after));
    assert_cuda(rmm_sim_memcpy_async(back, block, BYTES, after));
    assert_cuda(rmm__sim_stream_synchronize(after));
    for (size_t i = 0; i < BYTES; i += 1000) {
        assert_int_equal(back[i], 2);
    }
    give(pool, block, BYTES, after);
    end(second, after);
}

static void keeps_order(maker_t first, maker_t second)
{
    for (uint64_t seed = 1; seed <= (is_quick() ? SEEDS / 10 : SEEDS); seed++) {
        rmm_resource_t *pool = make_pool(MIB, MIB);

        rmm__sim_reseed(seed);
        (void)hip_driver();
        for (int i = 0; i < 3; i++) {
            reuse_across(pool, first, second);
        }
        rmm_resource_release(pool);
    }
    assert_no_violations();
}

static void a_foreign_stream_after_a_foreign_one_keeps_order(void **state)
{
    keeps_order(BY_HIP, BY_HIP);
}

static void an_own_stream_after_a_foreign_one_keeps_order(void **state)
{
    keeps_order(BY_HIP, BY_THE_LIBRARY);
}

static void a_foreign_stream_after_an_own_one_keeps_order(void **state)
{
    keeps_order(BY_THE_LIBRARY, BY_HIP);
}

/* ---- ids ---- */

static void a_stream_keeps_its_id_and_shares_it_with_no_live_one(void **state)
{
    rmm_stream_t one = foreign_stream();
    rmm_stream_t other = foreign_stream();
    uint64_t id = id_of(one);

    assert_int_not_equal(id, 0);
    assert_int_not_equal(id, id_of(other));
    assert_int_equal(id, id_of(one));
    assert_int_equal(id_of(NULL), 0);
    assert_int_equal(id_of(RMM_STREAM_LEGACY), 0);
    end_foreign(one);
    end_foreign(other);
    assert_no_violations();
}

static void *own_default_stream(void *argument)
{
    uint64_t *ids = argument;

    for (int device = 0; device < 2; device++) {
        assert_cuda(hip_driver()->device_set(device));
        ids[device] = id_of(RMM_STREAM_PER_THREAD);
        assert_int_equal(ids[device], id_of(RMM_STREAM_PER_THREAD));
    }
    return NULL;
}

static void default_streams_of_threads_and_devices_differ(void **state)
{
    uint64_t ids[4];
    pthread_t thread;

    (void)own_default_stream(&ids[0]);
    assert_int_equal(pthread_create(&thread, NULL, own_default_stream, &ids[2]), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < i; j++) {
            assert_int_not_equal(ids[i], ids[j]);
        }
    }
    assert_cuda(hip_driver()->device_set(0));
}

static void a_stream_of_another_device_keeps_its_id_and_the_device(void **state)
{
    rmm_stream_t stream;
    uint64_t id;
    int device;

    assert_cuda(hip_driver()->device_set(1));
    stream = foreign_stream();
    assert_cuda(hip_driver()->device_set(0));
    id = id_of(stream);
    assert_int_equal(id, id_of(stream));
    assert_cuda(hip_driver()->device_get(&device));
    assert_int_equal(device, 0);
    end_foreign(stream);
    assert_no_violations();
}

/* More than there are witnesses: who lost his gets another id, never another's. */
static void thousands_of_live_streams_have_ids_of_their_own(void **state)
{
    enum { COUNT = 5000 };
    static rmm_stream_t streams[COUNT];
    rmm_resource_t *pool = make_pool(MIB, 0);

    for (int i = 0; i < COUNT; i++) {
        streams[i] = foreign_stream();
        give(pool, take(pool, 1000, streams[i]), 1000, streams[i]);
    }
    for (int i = 1; i < COUNT; i++) {
        assert_int_not_equal(id_of(streams[i]), id_of(streams[i - 1]));
    }
    for (int i = 0; i < COUNT; i++) {
        end_foreign(streams[i]);
    }
    rmm_resource_release(pool);
    assert_no_violations();
}

static void a_hundred_thousand_streams_one_after_another_need_one_chunk(void **state)
{
    rmm_resource_t *pool = make_pool(MIB, MIB);

    rmm_sim_run_promptly();
    for (int i = 0; i < (is_quick() ? 2000 : 100000); i++) {
        rmm_stream_t stream = foreign_stream();

        give(pool, take(pool, 1000, stream), 1000, stream);
        end_foreign(stream);
    }
    rmm__sim_reseed(1);
    rmm_resource_release(pool);
    assert_no_violations();
}

/* ---- failures ---- */

static void without_an_event_every_query_gives_a_new_id(void **state)
{
    static const char *const plans[] = {
        "event_create:1", "event_record:1", "device_get:1"};

    if (rmm__hip.has[HIP_GROUP_STREAM_IDS]) {
        return;
    }
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        rmm_stream_t stream = foreign_stream();
        uint64_t id;

        rmm__hip_stream_forget((hip_stream_t)(void *)stream); /* of one before it */
        assert_true(rmm_sim_fail(plans[i]));
        id = id_of(stream);
        assert_true(rmm__sim_fault_has_struck());
        assert_true(rmm_sim_fail(NULL));
        assert_int_not_equal(id, id_of(stream));
        end_foreign(stream);
    }
}

static void a_witness_that_fails_is_replaced(void **state)
{
    static const char *const plans[] = {"stream_wait_event:1", "event_record:1"};

    if (rmm__hip.has[HIP_GROUP_STREAM_IDS]) {
        return;
    }
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        rmm_stream_t stream = foreign_stream();
        uint64_t id = id_of(stream);
        uint64_t next;

        assert_int_equal(id, id_of(stream));
        assert_true(rmm_sim_fail(plans[i]));
        next = id_of(stream);
        assert_true(rmm__sim_fault_has_struck());
        assert_true(rmm_sim_fail(NULL));
        assert_int_not_equal(next, id);
        assert_int_equal(id_of(stream), next);
        end_foreign(stream);
    }
}

/* ---- threads ---- */

typedef struct user {
    pthread_t thread;
    rmm_resource_t *pool;
    rmm_stream_t shared;
} user_t;

static void *use_streams(void *argument)
{
    user_t *user = argument;

    for (int i = 0; i < 300; i++) {
        rmm_stream_t own = foreign_stream();
        void *block = take(user->pool, 5000, own);
        void *other = take(user->pool, 5000, user->shared);

        assert_cuda(rmm_sim_memset_async(block, i, 5000, own));
        assert_cuda(rmm_sim_memset_async(other, i, 5000, user->shared));
        give(user->pool, block, 5000, own);
        give(user->pool, other, 5000, user->shared);
        end_foreign(own);
    }
    return NULL;
}

static void threads_share_streams_and_use_their_own(void **state)
{
    user_t users[THREADS];
    rmm_resource_t *pool = make_pool(MIB, 0);
    rmm_stream_t shared = foreign_stream();

    for (int i = 0; i < THREADS; i++) {
        users[i] = (user_t){.pool = pool, .shared = shared};
        assert_int_equal(
            pthread_create(&users[i].thread, NULL, use_streams, &users[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(users[i].thread, NULL), 0);
    }
    end_foreign(shared);
    rmm_resource_release(pool);
    assert_no_violations();
}

/* ---- captures ---- */

static void a_look_at_other_streams_leaves_a_capture_whole(void **state)
{
    rmm_stream_t capturing = foreign_stream();
    rmm_stream_t other = foreign_stream();
    rmm_sim_graph_t graph;
    rmm_stream_key_t key;
    uint64_t id = id_of(capturing);
    uint64_t others = id_of(other);

    assert_cuda(rmm_sim_begin_capture(capturing, RMM_CAPTURE_MODE_GLOBAL));
    assert_cuda(hip_driver()->stream_key(capturing, &key));
    assert_int_not_equal(key.capture_id, 0);
    assert_int_not_equal(key.capture_id, RMM_CAPTURE_RUINED);
    assert_int_equal(id_of(other), others);
    assert_cuda(rmm_sim_end_capture(capturing, &graph));
    assert_int_equal(id_of(capturing), id);
    assert_cuda(rmm_sim_graph_destroy(graph));
    end_foreign(capturing);
    end_foreign(other);
    assert_no_violations();
}

static void note_gone(void *context)
{
    ++*(unsigned *)context;
}

static void tells_when_a_graph_is_gone_or_at_once_that_it_cannot(void **state)
{
    rmm_stream_t stream = foreign_stream();
    bool can = rmm__hip.has[HIP_GROUP_USER_OBJECTS];
    rmm_sim_graph_t graph;
    unsigned gone = 0;

    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_RELAXED));
    assert_int_equal(
        hip_driver()->capture_watch(stream, note_gone, &gone),
        can ? RMM_DRIVER_OK : RMM_DRIVER_NOT_SUPPORTED);
    assert_int_equal(gone, can ? 0 : 1);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_int_equal(gone, can ? 0 : 1);
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_int_equal(gone, 1);
    end_foreign(stream);
}

static void a_watch_that_fails_is_told_of_its_end_once(void **state)
{
    rmm_stream_t stream = foreign_stream();
    rmm_sim_graph_t graph;
    unsigned gone = 0;

    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_RELAXED));
    assert_true(rmm_sim_fail("capture_watch:1"));
    assert_int_not_equal(
        hip_driver()->capture_watch(stream, note_gone, &gone), RMM_DRIVER_OK);
    assert_true(rmm_sim_fail(NULL));
    assert_int_equal(gone, 1);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_int_equal(gone, 1);
    end_foreign(stream);
}

static void a_ruined_capture_is_known(void **state)
{
    rmm_stream_t stream = foreign_stream();
    rmm_sim_graph_t graph;
    rmm_stream_key_t key;
    unsigned gone = 0;

    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_RELAXED));
    assert_int_not_equal(rmm_sim_device_synchronize(), RMM_DRIVER_OK);
    assert_cuda(hip_driver()->stream_key(stream, &key));
    assert_true(key.capture_id == RMM_CAPTURE_RUINED);
    assert_int_equal(
        hip_driver()->capture_watch(stream, note_gone, &gone),
        RMM_DRIVER_CAPTURE_INVALIDATED);
    assert_int_equal(gone, 1);
    assert_int_not_equal(rmm_sim_end_capture(stream, &graph), RMM_DRIVER_OK);
    end_foreign(stream);
    assert_no_violations();
}

/* Which HIP without user objects cannot tell of: the memory stays apart. */
static void
memory_of_a_graph_returns_only_when_the_graph_is_known_to_be_gone(void **state)
{
    rmm_resource_t *pool = make_pool(MIB, MIB);
    rmm_stream_t stream = foreign_stream();
    bool can = rmm__hip.has[HIP_GROUP_USER_OBJECTS];
    rmm_sim_graph_t graph;
    void *block;

    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_RELAXED));
    block = take(pool, MIB / 2, stream);
    give(pool, block, MIB / 2, stream);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_int_equal(
        rmm_resource_alloc(pool, MIB, 0, stream, &block), RMM_ERR_OUT_OF_MEMORY);
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_int_equal(
        rmm_resource_alloc(pool, MIB, 0, stream, &block),
        can ? RMM_OK : RMM_ERR_OUT_OF_MEMORY);
    if (can) {
        give(pool, block, MIB, stream);
    }
    end_foreign(stream);
    rmm_resource_release(pool);
    assert_no_violations();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_foreign_stream_after_a_foreign_one_keeps_order),
        cmocka_unit_test(an_own_stream_after_a_foreign_one_keeps_order),
        cmocka_unit_test(a_foreign_stream_after_an_own_one_keeps_order),
        cmocka_unit_test(a_stream_keeps_its_id_and_shares_it_with_no_live_one),
        cmocka_unit_test(default_streams_of_threads_and_devices_differ),
        cmocka_unit_test(a_stream_of_another_device_keeps_its_id_and_the_device),
        cmocka_unit_test(thousands_of_live_streams_have_ids_of_their_own),
        cmocka_unit_test(a_hundred_thousand_streams_one_after_another_need_one_chunk),
        cmocka_unit_test(without_an_event_every_query_gives_a_new_id),
        cmocka_unit_test(a_witness_that_fails_is_replaced),
        cmocka_unit_test(threads_share_streams_and_use_their_own),
        cmocka_unit_test(a_look_at_other_streams_leaves_a_capture_whole),
        cmocka_unit_test(a_watch_that_fails_is_told_of_its_end_once),
        cmocka_unit_test(a_ruined_capture_is_known),
        cmocka_unit_test(tells_when_a_graph_is_gone_or_at_once_that_it_cannot),
        cmocka_unit_test(
            memory_of_a_graph_returns_only_when_the_graph_is_known_to_be_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
