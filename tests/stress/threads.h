/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads on one resource: on streams of their own, all on one stream, and blocks that one
 * thread allocates and another frees. Data and figures hold.
 */
#ifndef RMM_TESTS_STRESS_THREADS_H
#define RMM_TESTS_STRESS_THREADS_H

#include "sim/pool/pool_harness.h"

#include <pthread.h>
#include <stdlib.h>

#include "harness/random.h"

enum { THREADS = 8, STEPS = 1500, LIVE = 24, QUEUE = 64 };

typedef struct worker {
    rmm_resource_t *mr;
    rmm_stream_t stream;
    uint64_t random;
    uint64_t number;
    uint64_t mixups; /* written by kernels on this stream only */
    uint64_t bytes;  /* allocated in all */
} worker_t;

static void *work(void *argument)
{
    worker_t *worker = argument;
    void *blocks[LIVE] = {NULL};
    size_t bytes[LIVE];

    for (int i = 0; i < STEPS; i++) {
        uint64_t k = draw(&worker->random, LIVE);

        if (blocks[k] != NULL) {
            launch_check(
                blocks[k], 256, worker->number + k, &worker->mixups, worker->stream);
            give(worker->mr, blocks[k], bytes[k], worker->stream);
            blocks[k] = NULL;
        } else {
            bytes[k] = 256 + draw(&worker->random, 20000);
            blocks[k] = take(worker->mr, bytes[k], worker->stream);
            launch_fill(blocks[k], 256, worker->number + k, worker->stream);
            worker->bytes += bytes[k];
        }
    }
    for (int k = 0; k < LIVE; k++) {
        if (blocks[k] != NULL) {
            give(worker->mr, blocks[k], bytes[k], worker->stream);
        }
    }
    return NULL;
}

/* shared: one stream for all instead of one each. Releases the resource. */
static void
run_workers(rmm_resource_t *mr, bool shared, void (*check)(rmm_resource_t *mr))
{
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    worker_t workers[THREADS];
    pthread_t threads[THREADS];
    uint64_t bytes = 0;
    uint64_t mixups = 0;

    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){
            .mr = mr,
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
    assert_int_equal(stats_of(mr).current_bytes, 0);
    assert_int_equal(stats_of(mr).current_count, 0);
    assert_int_equal(stats_of(mr).total_bytes, bytes);
    assert_int_equal(stats_of(mr).invalid_free_count, 0);
    check(mr);
    assert_cuda(sim_driver()->stream_destroy(stream));
    rmm_resource_release(mr);
    assert_int_equal(rmm_sim_violations(), 0);
}

/* The most that can be live at once, with a fifth for fragmentation. */
#define SHORT_OF_MEMORY ((uint64_t)THREADS * LIVE * 20480 * 6 / 5)

/* --- one thread allocates, another frees -------------------------------------------- */

typedef struct hand_over {
    rmm_resource_t *mr;
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
        give(queue->mr, block, 4096, RMM_STREAM_PER_THREAD);
    }
}

/* Releases the resource. */
static void hand_over(rmm_resource_t *mr)
{
    hand_over_t queue = {
        .mr = mr,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
    };
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, consume, &queue), 0);
    for (int i = 0; i < 5000; i++) {
        void *block = take(queue.mr, 4096, RMM_STREAM_PER_THREAD);

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
    assert_int_equal(stats_of(queue.mr).current_count, 0);
    assert_int_equal(stats_of(queue.mr).total_count, 5000);
    rmm_resource_release(queue.mr);
}

#endif /* RMM_TESTS_STRESS_THREADS_H */
