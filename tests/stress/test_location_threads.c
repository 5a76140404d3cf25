/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads on resources of one location, while others come and go there and marks are reset:
 * who has a cell of the location changes all the time, and no count is lost.
 */
#include "sim/pool/pool_harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/resource_impl.h"
#include "sim/publish/location_requests.h"

enum { WORKERS = 3, PAIRS = 4000, ROUNDS = 120, HELD = 8 };
#define BYTES ((size_t)1000)

typedef struct worker {
    rmm_resource_t *mr;
    rmm_stream_t stream;
    uint64_t allocations;
} worker_t;

typedef struct looker {
    atomic_bool end;
    uint64_t wrong; /* figures that cannot be */
} looker_t;

#define FIGURE(field) rmm__figure_get(&rmm__locations[0].field)

static rmm_accounting_sums_t location_sums(void)
{
    rmm_accounting_sums_t sums;

    rmm__location_sums(0, &sums);
    return sums;
}

static void *work(void *argument)
{
    worker_t *worker = argument;
    void *held[HELD];

    for (int i = 0; i < PAIRS; i += HELD) {
        for (int k = 0; k < HELD; k++) {
            held[k] = take(worker->mr, BYTES, worker->stream);
        }
        for (int k = 0; k < HELD; k++) {
            give(worker->mr, held[k], BYTES, worker->stream);
        }
        worker->allocations += HELD;
    }
    return NULL;
}

/* A pool, or an arena every third time, joins the location and leaves it. */
static void *come_and_go(void *argument)
{
    worker_t *worker = argument;

    for (int i = 0; i < ROUNDS; i++) {
        rmm_resource_t *mr = i % 3 == 0 ? make_arena(2 * MIB) : make_pool(0, 0);

        for (int k = 0; k < 10; k++) {
            give(mr, take(mr, BYTES, worker->stream), BYTES, worker->stream);
        }
        worker->allocations += 11;
        (void)take(mr, BYTES, worker->stream); /* leaves with its resource */
        rmm_resource_release(mr);
    }
    return NULL;
}

/* What holds at any moment; every now and then a mark is reset. */
static void *look(void *argument)
{
    looker_t *looker = argument;

    for (uint32_t i = 0; !atomic_load_explicit(&looker->end, memory_order_relaxed);
         i++) {
        uint64_t current = rmm__location_live(0).bytes;

        looker->wrong += current % BYTES != 0;
        looker->wrong += current > (WORKERS * HELD + 1) * BYTES;
        looker->wrong += FIGURE(peak_bytes) > (WORKERS * HELD + 1) * BYTES;
        if (i % 64 == 0) {
            atomic_fetch_add_explicit(&requests[0].peak_reset, 1, memory_order_relaxed);
        }
        usleep(20);
    }
    return NULL;
}

/* resources: how many pools the workers spread over. */
static void run(int resources)
{
    uint64_t total_count = location_sums().total_count;
    uint64_t total_bytes = location_sums().total_bytes;
    worker_t workers[WORKERS + 1] = {{0}};
    rmm_resource_t *pools[WORKERS];
    pthread_t threads[WORKERS + 2];
    looker_t looker = {.wrong = 0};
    uint64_t allocations = 0;

    for (int i = 0; i < resources; i++) {
        pools[i] = make_pool(0, 0);
    }
    for (int i = 0; i <= WORKERS; i++) {
        workers[i].mr = pools[i % resources];
        workers[i].stream = make_stream(RMM_STREAM_NON_BLOCKING);
        assert_int_equal(
            pthread_create(
                &threads[i], NULL, i < WORKERS ? work : come_and_go, &workers[i]),
            0);
    }
    assert_int_equal(pthread_create(&threads[WORKERS + 1], NULL, look, &looker), 0);
    for (int i = 0; i <= WORKERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        allocations += workers[i].allocations;
    }
    atomic_store_explicit(&looker.end, true, memory_order_relaxed);
    assert_int_equal(pthread_join(threads[WORKERS + 1], NULL), 0);
    assert_int_equal(looker.wrong, 0);

    assert_int_equal(rmm__location_live(0).bytes, 0);
    assert_int_equal(location_sums().padding_bytes, 0);
    assert_int_equal(location_sums().total_count, total_count + allocations);
    assert_int_equal(location_sums().freed_count, location_sums().total_count);
    assert_int_equal(location_sums().total_bytes, total_bytes + allocations * BYTES);
    assert_in_range(
        FIGURE(lifetime_peak_bytes), HELD * BYTES, (WORKERS * HELD + 1) * BYTES);
    for (int i = 0; i < resources; i++) {
        rmm_resource_release(pools[i]);
    }
    for (int i = 0; i <= WORKERS; i++) {
        assert_cuda(sim_driver()->stream_destroy(workers[i].stream));
    }
    assert_int_equal(rmm_sim_violations(), 0);
}

TEST_CASE(counts_everything_of_one_pool_used_by_many_threads)
{
    run(1);
}

TEST_CASE(counts_everything_of_several_pools)
{
    run(WORKERS);
}

int main(void)
{
    return harness_run_cases(request_from_here, NULL);
}
