/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More threads than there is memory for, over a wait adaptor: 16 threads that together want one and
 * a half times what the pool has, and hold some of it while they ask for more. No request times
 * out, none is refused as long as any other thread that holds memory works, and all get
 * through. RMM_TEST_OPERATIONS: how many requests and frees (default 10^6,
 * under a sanitizer a tenth).
 */
#include "sim/pool/pool_harness.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "harness/random.h"

#define THREADS 16
#define POOL_BYTES (64 * MIB)
#define SHARE_BYTES (POOL_BYTES * 3 / 2 / THREADS)
#define BLOCK_BYTES_MOST MIB
#define BLOCKS_MOST 64

typedef struct crowd {
    rmm_resource_t *mr;
    uint64_t operations; /* of each thread */
    pthread_barrier_t begin;
    int keep;                   /* 1: each thread has a block all the time */
    _Atomic(uint64_t) active;   /* threads that are not at their end */
    _Atomic(uint64_t) told;     /* refused so that others get through */
    _Atomic(uint64_t) too_soon; /* of these, while another holder worked */
    _Atomic(uint64_t) others;   /* other failures */
} crowd_t;

typedef struct worker {
    crowd_t *crowd;
    uint64_t random;
    rmm_stream_t stream;
    void *blocks[BLOCKS_MOST];
    size_t sizes[BLOCKS_MOST];
    int count;
    size_t bytes;
} worker_t;

static void give_back(worker_t *worker, int keep)
{
    while (worker->count > keep) {
        int last = --worker->count;

        rmm_resource_dealloc(
            worker->crowd->mr, worker->blocks[last], worker->sizes[last], 0,
            worker->stream);
        worker->bytes -= worker->sizes[last];
    }
}

static void note_refusal(crowd_t *crowd)
{
    uint64_t waiting;

    if (strstr(rmm_last_error_message(), "all threads that hold its memory") == NULL) {
        fprintf(stderr, "%s\n", rmm_last_error_message());
        atomic_fetch_add(&crowd->others, 1);
        return;
    }
    atomic_fetch_add(&crowd->told, 1);
    assert_ok(rmm_wait_get_waiting(crowd->mr, &waiting));
    /* with a block each, none of the others can do anything before this thread frees one */
    if (crowd->keep == 1 && waiting + 1 != atomic_load(&crowd->active)) {
        atomic_fetch_add(&crowd->too_soon, 1);
    }
}

/* One more block, or none, and all are given back. */
static void take_one(worker_t *worker)
{
    size_t bytes = 256 + draw(&worker->random, BLOCK_BYTES_MOST);

    if (worker->count == BLOCKS_MOST || worker->bytes + bytes > SHARE_BYTES) {
        give_back(
            worker,
            worker->crowd->keep + (int)draw(&worker->random, 2) * worker->count / 2);
        return;
    }
    if (rmm_resource_alloc(
            worker->crowd->mr, bytes, 0, worker->stream,
            &worker->blocks[worker->count]) == RMM_OK) {
        worker->sizes[worker->count++] = bytes;
        worker->bytes += bytes;
        return;
    }
    note_refusal(worker->crowd);
    give_back(worker, worker->crowd->keep);
}

static void *work(void *argument)
{
    worker_t *worker = argument;

    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &worker->stream));
    while (worker->count < worker->crowd->keep) {
        take_one(worker);
    }
    pthread_barrier_wait(&worker->crowd->begin);
    for (uint64_t i = 0; i < worker->crowd->operations; i++) {
        if (worker->count > worker->crowd->keep && draw(&worker->random, 8) < 3) {
            give_back(worker, worker->count - 1);
        } else {
            take_one(worker);
        }
    }
    atomic_fetch_sub(&worker->crowd->active, 1);
    give_back(worker, 0);
    assert_ok(rmm_stream_destroy(worker->stream));
    return NULL;
}

static uint64_t operations(void)
{
    const char *wanted = getenv("RMM_TEST_OPERATIONS");

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    const uint64_t usual = 100000;
#else
    const uint64_t usual = 1000000;
#endif

    return wanted != NULL ? strtoull(wanted, NULL, 10) : usual;
}

static rmm_resource_t *wait_over(rmm_resource_t *upstream)
{
    rmm_wait_options_t options = RMM_WAIT_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.timeout_ms = 60000;
    assert_ok(rmm_wait_adaptor_create(upstream, &options, &mr));
    rmm_resource_release(upstream);
    return mr;
}

static void run(rmm_resource_t *mr, int keep)
{
    crowd_t crowd = {
        .mr = mr,
        .operations = operations() / THREADS,
        .keep = keep,
        .active = THREADS};
    worker_t workers[THREADS];
    pthread_t threads[THREADS];
    uint64_t begin_ns = rmm__clock_ns(CLOCK_MONOTONIC);

    assert_int_equal(pthread_barrier_init(&crowd.begin, NULL, THREADS), 0);
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){.crowd = &crowd, .random = i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    pthread_barrier_destroy(&crowd.begin);
    printf(
        "%" PRIu64 " attempts failed, %" PRIu64
        " refused so that others get through, in %.1f s\n",
        stats_of(rmm_resource_upstream(mr)).oom_count, (uint64_t)crowd.told,
        (double)(rmm__clock_ns(CLOCK_MONOTONIC) - begin_ns) / 1e9);
    assert_int_equal(crowd.others, 0);
    assert_int_equal(crowd.too_soon, 0);
    assert_int_equal(stats_of(mr).current_bytes, 0);
    rmm_resource_release(mr);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

TEST_CASE(all_get_through_over_a_pool)
{
    run(wait_over(make_pool(0, POOL_BYTES)), 0);
}

TEST_CASE(all_get_through_over_a_virtual_pool)
{
    run(wait_over(make_virtual_pool(0, POOL_BYTES)), 0);
}

TEST_CASE(one_is_refused_only_when_all_wait)
{
    run(wait_over(make_pool(0, POOL_BYTES)), 1);
}
