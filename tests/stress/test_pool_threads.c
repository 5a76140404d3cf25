/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads on one pool: on streams of their own, all on one stream, and blocks that one
 * thread allocates and another frees. Data, figures and structure hold.
 */
#include "sim/pool_harness.h"

#include <pthread.h>
#include <stdlib.h>

#include "resources/pool_impl.h"

enum { THREADS = 8, STEPS = 1500, LIVE = 24, QUEUE = 64 };

typedef struct worker {
    rmm_resource_t *pool;
    rmm_stream_t stream;
    uint64_t random;
    uint64_t number;
    uint64_t mixups; /* written by kernels on this stream only */
    uint64_t bytes;  /* allocated in all */
} worker_t;

static uint64_t draw(worker_t *worker, uint64_t bound)
{
    worker->random = worker->random * 6364136223846793005ull + 1442695040888963407ull;
    return (worker->random >> 33) % bound;
}

static void *work(void *argument)
{
    worker_t *worker = argument;
    void *blocks[LIVE] = {NULL};
    size_t bytes[LIVE];

    for (int i = 0; i < STEPS; i++) {
        uint64_t k = draw(worker, LIVE);

        if (blocks[k] != NULL) {
            launch_check(
                blocks[k], 256, worker->number + k, &worker->mixups, worker->stream);
            give(worker->pool, blocks[k], bytes[k], worker->stream);
            blocks[k] = NULL;
        } else {
            bytes[k] = 256 + draw(worker, 20000);
            blocks[k] = take(worker->pool, bytes[k], worker->stream);
            launch_fill(blocks[k], 256, worker->number + k, worker->stream);
            worker->bytes += bytes[k];
        }
    }
    for (int k = 0; k < LIVE; k++) {
        if (blocks[k] != NULL) {
            give(worker->pool, blocks[k], bytes[k], worker->stream);
        }
    }
    return NULL;
}

/* shared: one stream for all instead of one each. */
static void run_workers(bool shared, uint64_t maximum_bytes)
{
    rmm_resource_t *pool = make_pool(0, maximum_bytes);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    worker_t workers[THREADS];
    pthread_t threads[THREADS];
    uint64_t bytes = 0;
    uint64_t mixups = 0;

    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){
            .pool = pool,
            .stream = shared ? stream : make_stream(RMM_STREAM_NON_BLOCKING),
            .random = i + 1,
            .number = i * 1000,
        };
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_cuda(rmm_sim_device_synchronize());
    for (int i = 0; i < THREADS; i++) {
        bytes += workers[i].bytes;
        mixups += workers[i].mixups;
        if (!shared) {
            assert_cuda(sim_driver()->stream_destroy(workers[i].stream));
        }
    }
    assert_int_equal(mixups, 0);
    assert_int_equal(stats_of(pool).current_bytes, 0);
    assert_int_equal(stats_of(pool).current_count, 0);
    assert_int_equal(stats_of(pool).total_bytes, bytes);
    assert_int_equal(stats_of(pool).invalid_free_count, 0);
    assert_null(rmm__suballoc_check(pool_from_base(pool)->blocks));
    assert_cuda(sim_driver()->stream_destroy(stream));
    rmm_resource_release(pool);
    assert_int_equal(rmm_sim_violations(), 0);
}

static void threads_on_streams_of_their_own(void **state)
{
    (void)state;
    run_workers(false, 0);
}

static void threads_on_one_stream(void **state)
{
    (void)state;
    run_workers(true, 0);
}

static void threads_short_of_memory(void **state)
{
    (void)state;
    /* the most that can be live at once, with a fifth for fragmentation */
    run_workers(false, (uint64_t)THREADS * LIVE * 20480 * 6 / 5);
}

/* --- one thread allocates, another frees -------------------------------------------- */

typedef struct hand_over {
    rmm_resource_t *pool;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void *blocks[QUEUE];
    int count;
    bool done;
} hand_over_t;

static void *consume(void *argument)
{
    hand_over_t *queue = argument;

    for (;;) {
        void *block = NULL;

        pthread_mutex_lock(&queue->lock);
        while (queue->count == 0 && !queue->done) {
            pthread_cond_wait(&queue->changed, &queue->lock);
        }
        if (queue->count > 0) {
            block = queue->blocks[--queue->count];
            pthread_cond_broadcast(&queue->changed);
        }
        pthread_mutex_unlock(&queue->lock);
        if (block == NULL) {
            return NULL;
        }
        give(queue->pool, block, 4096, RMM_STREAM_PER_THREAD);
    }
}

static void another_thread_frees_what_this_one_allocates(void **state)
{
    hand_over_t queue = {
        .pool = make_pool(0, 0),
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
    };
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, consume, &queue), 0);
    for (int i = 0; i < 5000; i++) {
        void *block = take(queue.pool, 4096, RMM_STREAM_PER_THREAD);

        pthread_mutex_lock(&queue.lock);
        while (queue.count == QUEUE) {
            pthread_cond_wait(&queue.changed, &queue.lock);
        }
        queue.blocks[queue.count++] = block;
        pthread_cond_broadcast(&queue.changed);
        pthread_mutex_unlock(&queue.lock);
    }
    pthread_mutex_lock(&queue.lock);
    queue.done = true;
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(stats_of(queue.pool).current_count, 0);
    assert_int_equal(stats_of(queue.pool).total_count, 5000);
    rmm_resource_release(queue.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_on_streams_of_their_own),
        cmocka_unit_test(threads_on_one_stream),
        cmocka_unit_test(threads_short_of_memory),
        cmocka_unit_test(another_thread_frees_what_this_one_allocates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
