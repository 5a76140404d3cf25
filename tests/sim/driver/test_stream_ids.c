/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library knows the ids of its own streams: as the driver tells them, never of a
 * stream that is gone, and of no more than there is room for.
 */
#include "sim/pool/pool_harness.h"

#include <pthread.h>
#include <sched.h>

#include "core/host_memory.h"
#include "driver/sim/control.h"
#include "driver/stream_ids.h"

static uint64_t id_of(rmm_stream_t stream)
{
    rmm_stream_key_t key;

    assert_cuda(sim_driver()->stream_key(stream, &key));
    assert_int_equal(key.capture_id, 0);
    return key.stream_id;
}

static bool is_known(rmm_stream_t stream)
{
    return rmm__stream_id_find(stream) != 0;
}

static void assert_known_as(rmm_stream_t stream, uint64_t expected)
{
    assert_int_equal(rmm__stream_id_find(stream), expected);
}

static size_t entry_count(void)
{
    size_t count = 0;

    for (int set = 0; set < RMM_STREAM_ID_SETS; set++) {
        for (int way = 0; way < RMM_STREAM_ID_WAYS; way++) {
            count += rmm__stream_ids[set][way].stream != NULL;
        }
    }
    return count;
}

TEST_CASE(knows_its_own_streams_and_no_others)
{
    rmm_stream_t own = make_stream(0);
    rmm_stream_t others;
    rmm_stream_pool_t *pool;

    assert_cuda(sim_driver()->stream_create(0, &others));
    assert_known_as(own, id_of(own));
    assert_false(is_known(others));
    assert_false(is_known(RMM_STREAM_PER_THREAD));
    assert_ok(rmm_stream_pool_create(40, 0, &pool));
    for (size_t i = 0; i < 40; i++) {
        assert_known_as(
            rmm_stream_pool_get_at(pool, i), id_of(rmm_stream_pool_get_at(pool, i)));
    }
    assert_int_equal(entry_count(), 41);
    rmm_stream_pool_destroy(pool);
    assert_ok(rmm_stream_destroy(own));
    assert_ok(rmm_stream_destroy(others));
    assert_int_equal(entry_count(), 0);
}

TEST_CASE(a_reused_handle_is_another_stream)
{
    rmm_stream_t stream = make_stream(0);
    rmm_stream_t again;
    uint64_t id = id_of(stream);

    for (int i = 0; i < 100; i++) {
        assert_ok(rmm_stream_destroy(stream));
        assert_false(is_known(stream));
        if (i % 2 ==
            0) { /* one that the library does not know has the handle between */
            assert_cuda(sim_driver()->stream_create(0, &again));
            assert_ptr_equal(again, stream);
            assert_true(id_of(again) > id);
            assert_cuda(sim_driver()->stream_destroy(again));
        }
        assert_ptr_equal(make_stream(0), stream);
        assert_true(id_of(stream) > id);
        id = id_of(stream);
        assert_known_as(stream, id);
    }
    assert_ok(rmm_stream_destroy(stream));
    assert_int_equal(entry_count(), 0);
}

/* More than the table of ids has room for. */
TEST_CASE(knows_which_of_its_streams_have_ended)
{
    enum { MANY = 3000 };
    static rmm_stream_t streams[MANY];
    rmm_stream_t others;

    assert_cuda(sim_driver()->stream_create(0, &others));
    assert_int_not_equal(
        rmm__stream_origin(others), RMM_STREAM_LIVE); /* its handle may be old */
    assert_int_equal(rmm__stream_origin(NULL), RMM_STREAM_LIVE);
    assert_int_equal(rmm__stream_origin(RMM_STREAM_LEGACY), RMM_STREAM_LIVE);
    assert_int_equal(rmm__stream_origin(RMM_STREAM_PER_THREAD), RMM_STREAM_LIVE);
    for (int i = 0; i < MANY; i++) {
        streams[i] = make_stream(0);
    }
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(rmm__stream_origin(streams[i]), RMM_STREAM_LIVE);
    }
    for (int i = 0; i < MANY; i++) {
        assert_ok(rmm_stream_destroy(streams[i]));
        assert_int_equal(rmm__stream_origin(streams[i]), RMM_STREAM_ENDED);
    }
    streams[0] = make_stream(0); /* of a handle that was there before */
    assert_int_equal(rmm__stream_origin(streams[0]), RMM_STREAM_LIVE);
    assert_ok(rmm_stream_destroy(streams[0]));
    assert_cuda(sim_driver()->stream_destroy(others));
}

/* The room may be there from before: at most it is unknown, and never named wrongly. */
TEST_CASE(a_stream_without_host_memory_may_be_unknown)
{
    enum { MANY = 2000 };
    static rmm_stream_t streams[MANY];

    for (int i = 0; i < MANY; i++) {
        rmm__host_memory_fail(1);
        streams[i] = make_stream(0);
        rmm__host_memory_fail(0);
        assert_int_not_equal(rmm__stream_origin(streams[i]), RMM_STREAM_ENDED);
    }
    for (int i = 0; i < MANY; i++) {
        assert_ok(rmm_stream_destroy(streams[i]));
        assert_int_not_equal(rmm__stream_origin(streams[i]), RMM_STREAM_LIVE);
    }
}

TEST_CASE(still_knows_that_a_stream_captures)
{
    rmm_stream_t stream = make_stream(0);
    uint64_t id = id_of(stream);
    rmm_stream_key_t key;
    rmm_sim_graph_t graph;

    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_GLOBAL));
    assert_cuda(sim_driver()->stream_key(stream, &key));
    assert_true(key.capture_id != 0);
    assert_int_equal(key.stream_id, (uint64_t)(uintptr_t)stream);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_int_equal(id_of(stream), id);
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_ok(rmm_stream_destroy(stream));
}

TEST_CASE(stores_a_limited_number_of_ids_and_queries_the_others)
{
    enum { MANY = 3000 };
    static rmm_stream_t streams[MANY];
    size_t known = 0;

    for (int i = 0; i < MANY; i++) {
        streams[i] = make_stream(0);
        known += is_known(streams[i]);
    }
    assert_int_equal(entry_count(), known);
    assert_true(known > 256 && known <= RMM_STREAM_ID_SETS * RMM_STREAM_ID_WAYS);
    for (int i = 1; i < MANY; i++) {
        assert_true(id_of(streams[i]) > id_of(streams[i - 1]));
    }
    for (int i = 0; i < MANY; i++) {
        assert_ok(rmm_stream_destroy(streams[i]));
    }
    assert_int_equal(entry_count(), 0);
}

/* A real GPU is not asked for such a stream; the simulated one tells that the promise was
 * broken. */
TEST_CASE(reports_a_capture_on_a_stream_that_promised_not_to_capture)
{
    uint64_t violations = rmm_sim_violations();
    rmm_stream_t stream = make_stream(RMM_STREAM_NEVER_CAPTURES);
    rmm_stream_key_t key;
    rmm_sim_graph_t graph;

    assert_known_as(stream, id_of(stream) | RMM_STREAM_ID_NEVER_CAPTURES);
    assert_int_equal(rmm_sim_violations(), violations);
    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_GLOBAL));
    assert_cuda(sim_driver()->stream_key(stream, &key));
    assert_int_equal(rmm_sim_violations(), violations + 1);
    assert_non_null(strstr(rmm__sim_violation_text(), "RMM_STREAM_NEVER_CAPTURES"));
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_ok(rmm_stream_destroy(stream));
}

TEST_CASE(a_full_set_takes_no_more_and_forgets_what_it_has)
{
    rmm_stream_t same_set[RMM_STREAM_ID_WAYS + 1];
    uintptr_t handle = 0x1000;

    for (int i = 0; i <= RMM_STREAM_ID_WAYS; i++) {
        do {
            handle += 16;
            same_set[i] = (rmm_stream_t)handle;
        } while (i > 0 &&
                 rmm__stream_id_set(same_set[i]) != rmm__stream_id_set(same_set[0]));
        assert_int_equal(
            rmm__stream_id_keep(same_set[i], 1 + (uint64_t)i), i < RMM_STREAM_ID_WAYS);
    }
    assert_false(is_known(same_set[RMM_STREAM_ID_WAYS]));
    rmm__stream_id_forget(same_set[RMM_STREAM_ID_WAYS]);
    for (int i = 0; i < RMM_STREAM_ID_WAYS; i++) {
        assert_known_as(same_set[i], 1 + (uint64_t)i);
        rmm__stream_id_forget(same_set[i]);
        assert_false(is_known(same_set[i]));
    }
    assert_int_equal(entry_count(), 0);
}

/* Where a search begins: a hot pair makes two. */
TEST_CASE(a_stream_takes_the_first_free_entry)
{
    rmm_stream_t stream = (rmm_stream_t)(uintptr_t)0x1000;
    rmm_stream_t beside = stream;
    rmm_stream_id_t *set = rmm__stream_id_set(stream);

    do {
        beside = (rmm_stream_t)((uintptr_t)beside + 16);
    } while (rmm__stream_id_set(beside) != set);
    assert_true(rmm__stream_id_keep(stream, 1));
    assert_true(rmm__stream_id_keep(beside, 2));
    assert_ptr_equal(set[0].stream, stream);
    assert_ptr_equal(set[1].stream, beside);
    rmm__stream_id_forget(stream);
    assert_true(rmm__stream_id_keep(beside, 3)); /* it has a place */
    assert_ptr_equal(set[0].stream, NULL);
    assert_known_as(beside, 3);
    assert_true(rmm__stream_id_keep(stream, 4));
    assert_ptr_equal(set[0].stream, stream);
    rmm__stream_id_forget(stream);
    rmm__stream_id_forget(beside);
    assert_int_equal(entry_count(), 0);
}

static void *tell_id(void *id_out)
{
    *(uint64_t *)id_out = rmm__stream_id_of_thread(0);
    return NULL;
}

TEST_CASE(a_default_stream_is_of_one_thread_and_one_device)
{
    uint64_t id = rmm__stream_id_of_thread(0);
    uint64_t others;
    pthread_t other;

    assert_int_equal(rmm__stream_id_of_thread(0), id);
    assert_int_not_equal(rmm__stream_id_of_thread(1), id);
    assert_int_equal(pthread_create(&other, NULL, tell_id, &others), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_not_equal(others, id);
}

/* --- threads ------------------------------------------------------------------------ */

enum { MAKERS = 3, TURNS = 1500 };

typedef struct traffic {
    rmm_stream_t steady[8]; /* looked up all the time */
    uint64_t ids[8];
    _Atomic(int) makers; /* still at work */
    _Atomic(int) wrong;
} traffic_t;

static void *make_and_destroy(void *argument)
{
    traffic_t *traffic = argument;

    for (int i = 0; i < TURNS; i++) {
        rmm_stream_key_t key;
        rmm_stream_t stream;

        if (rmm_stream_create(0, &stream) != RMM_OK ||
            sim_driver()->stream_key(stream, &key) != RMM_DRIVER_OK ||
            (is_known(stream) && rmm__stream_id_find(stream) != key.stream_id) ||
            rmm_stream_destroy(stream) != RMM_OK) {
            atomic_fetch_add_explicit(&traffic->wrong, 1, memory_order_relaxed);
        }
    }
    atomic_fetch_sub_explicit(&traffic->makers, 1, memory_order_relaxed);
    return NULL;
}

static void *look_up(void *argument)
{
    traffic_t *traffic = argument;

    while (atomic_load_explicit(&traffic->makers, memory_order_relaxed) != 0) {
        for (int i = 0; i < 8; i++) {
            if (rmm__stream_id_find(traffic->steady[i]) != traffic->ids[i]) {
                atomic_fetch_add_explicit(&traffic->wrong, 1, memory_order_relaxed);
            }
        }
        sched_yield();
    }
    return NULL;
}

TEST_CASE(finds_streams_while_others_come_and_go)
{
    const uint64_t violations = rmm_sim_violations();
    traffic_t traffic = {.makers = MAKERS};
    pthread_t threads[MAKERS + 1];

    for (int i = 0; i < 8; i++) {
        traffic.steady[i] = make_stream(0);
        traffic.ids[i] = id_of(traffic.steady[i]);
    }
    for (int i = 0; i <= MAKERS; i++) {
        assert_int_equal(
            pthread_create(
                &threads[i], NULL, i < MAKERS ? make_and_destroy : look_up, &traffic),
            0);
    }
    for (int i = 0; i <= MAKERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(traffic.wrong, 0);
    for (int i = 0; i < 8; i++) {
        assert_ok(rmm_stream_destroy(traffic.steady[i]));
    }
    assert_int_equal(entry_count(), 0);
    assert_int_equal(rmm_sim_violations(), violations);
}

/* Not allowed (rmm/stream.h); what can be noticed is. The last case, because its entry stays. */
TEST_CASE(notices_a_stream_that_was_destroyed_by_others)
{
    uint64_t violations = rmm_sim_violations();
    rmm_stream_t stream = make_stream(0);
    rmm_stream_t others;

    assert_cuda(sim_driver()->stream_destroy(stream));
    assert_ptr_equal(make_stream(0), stream); /* its own again: it knows better */
    assert_known_as(stream, id_of(stream));
    assert_int_equal(rmm_sim_violations(), violations);

    assert_cuda(sim_driver()->stream_destroy(stream));
    assert_cuda(sim_driver()->stream_create(0, &others));
    assert_ptr_equal(others, stream);
    (void)id_of(others);
    assert_int_equal(rmm_sim_violations(), violations + 1);
    assert_non_null(strstr(rmm__sim_violation_text(), "without rmm_stream_destroy()"));
    assert_ok(rmm_stream_destroy(others));
    assert_int_equal(entry_count(), 0);
}
