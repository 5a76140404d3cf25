/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cases. Each keeps RMM's name and assertions: basic (B), allocation (A), threads (M).
 */
#include "conformance/cases.h"

#include "harness/harness.h"

#include <pthread.h>
#include <string.h>

static rmm_stream_t new_stream(void)
{
    rmm_stream_t stream;

    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    return stream;
}

/* --- work, on one thread or several ------------------------------------------------- */

static void take_two(worker_t *worker)
{
    block_t first;
    block_t second;

    if (worker_take(worker, KIB, &first)) {
        if (worker_take(worker, KIB, &second)) {
            EXPECT(worker, first.ptr != second.ptr);
            worker_give(worker, &second);
        }
        worker_give(worker, &first);
    }
}

static void refuse_size(worker_t *worker, size_t bytes)
{
    void *mark = &mark;
    void *ptr = mark;

    EXPECT(worker, worker_obtain(worker, bytes, &ptr) == RMM_ERR_OUT_OF_MEMORY);
    EXPECT(worker, ptr == mark && strlen(rmm_last_error_message()) > 0);
}

static void take_each_size(worker_t *worker)
{
    static const size_t sizes[] = {0, 4, KIB, MIB, GIB};
    block_t block;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (sizes[i] > worker->subject->largest) {
            refuse_size(worker, sizes[i]);
        } else if (worker_take(worker, sizes[i], &block)) {
            worker_give(worker, &block);
        }
    }
    refuse_size(worker, PIB);
}

static size_t draw_size(worker_t *worker)
{
    size_t most = 5 * MIB;

    most = most < worker->subject->largest ? most : worker->subject->largest;
    return 1 + (size_t)worker_draw(worker, most);
}

static void take_many_then_free(worker_t *worker)
{
    block_t held[BLOCKS];
    size_t count = 0;

    while (count < BLOCKS && worker_take(worker, draw_size(worker), &held[count])) {
        count++;
    }
    while (count > 0) {
        worker_give(worker, &held[--count]);
    }
}

/* As RMM: 100 allocations, 53 of 100 steps allocate while there is a choice. */
static void take_and_free_mixed(worker_t *worker)
{
    block_t held[BLOCKS];
    size_t count = 0;
    int left = BLOCKS;

    while (left > 0 || count > 0) {
        if (left > 0 && (count == 0 || worker_draw(worker, 100) < 53)) {
            left--;
            count += worker_take(worker, draw_size(worker), &held[count]);
        } else {
            size_t victim = (size_t)worker_draw(worker, count);

            worker_give(worker, &held[victim]);
            held[victim] = held[--count];
        }
    }
}

typedef struct start {
    worker_t worker;
    work_fn work;
    pthread_t thread;
} start_t;

static void *run_start(void *argument)
{
    start_t *start = argument;

    start->work(&start->worker);
    worker_compare(&start->worker);
    return NULL;
}

/* The same work on each thread; on a stream, all use the same one. */
static void run_work(const subject_t *subject, const conformance_case_t *self)
{
    rmm_resource_t *mr = subject_begin(subject);
    rmm_stream_t stream = self->order == ORDER_STREAM ? new_stream() : NULL;
    start_t *starts = test_calloc(THREADS, sizeof(*starts));

    for (int i = 0; i < self->threads; i++) {
        starts[i].worker = (worker_t){
            .subject = subject,
            .mr = mr,
            .order = self->order,
            .stream = stream,
            .random = (uint64_t)i + 1};
        starts[i].work = self->work;
    }
    for (int i = 1; i < self->threads; i++) {
        assert_int_equal(
            pthread_create(&starts[i].thread, NULL, run_start, &starts[i]), 0);
    }
    run_start(&starts[0]);
    for (int i = 1; i < self->threads; i++) {
        assert_int_equal(pthread_join(starts[i].thread, NULL), 0);
    }
    for (int i = 0; i < self->threads; i++) {
        worker_assert(&starts[i].worker);
    }
    assert_ok(rmm_stream_destroy(stream));
    test_free(starts);
    subject_end(mr);
}

static void equals_itself(const subject_t *subject, const conformance_case_t *self)
{
    rmm_resource_t *mr = subject_begin(subject);

    (void)self;
    assert_true(rmm_resource_is_equal(mr, mr));
    assert_string_equal(rmm_resource_type(mr), subject->type);
    subject_end(mr);
}

/* --- one thread allocates, another frees -------------------------------------------- */

typedef struct handover {
    worker_t producer, consumer;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    block_t queue[BLOCKS];
    size_t produced; /* protected by lock; of blocks that failed ptr is NULL */
} handover_t;

/* Another stream uses a block only behind an order that its user makes: a wait, here. */
static void *produce(void *argument)
{
    handover_t *handover = argument;
    worker_t *worker = &handover->producer;
    bool is_same = worker->stream == handover->consumer.stream &&
                   !rmm_stream_is_per_thread_default(worker->stream);

    for (int i = 0; i < BLOCKS; i++) {
        block_t block = {NULL, 0, 0};

        if (worker_take(worker, draw_size(worker), &block) && !is_same) {
            worker_wait(worker);
        }
        pthread_mutex_lock(&handover->lock);
        handover->queue[handover->produced++] = block;
        pthread_cond_signal(&handover->changed);
        pthread_mutex_unlock(&handover->lock);
    }
    return NULL;
}

static void consume(handover_t *handover)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        block_t block;

        pthread_mutex_lock(&handover->lock);
        while (handover->produced == i) {
            pthread_cond_wait(&handover->changed, &handover->lock);
        }
        block = handover->queue[i];
        pthread_mutex_unlock(&handover->lock);
        if (block.ptr != NULL) {
            worker_give(&handover->consumer, &block);
        }
    }
    worker_compare(&handover->consumer);
}

static void
hand_over(const subject_t *subject, rmm_stream_t alloc_on, rmm_stream_t free_on)
{
    rmm_resource_t *mr = subject_begin(subject);
    handover_t *handover = test_calloc(1, sizeof(*handover));
    pthread_t thread;

    handover->producer = (worker_t){
        .subject = subject,
        .mr = mr,
        .order = ORDER_STREAM,
        .stream = alloc_on,
        .random = 1};
    handover->consumer = handover->producer;
    handover->consumer.stream = free_on;
    assert_int_equal(pthread_mutex_init(&handover->lock, NULL), 0);
    assert_int_equal(pthread_cond_init(&handover->changed, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, produce, handover), 0);
    consume(handover);
    assert_int_equal(pthread_join(thread, NULL), 0);
    worker_assert(&handover->producer);
    worker_assert(&handover->consumer);
    pthread_cond_destroy(&handover->changed);
    pthread_mutex_destroy(&handover->lock);
    test_free(handover);
    subject_end(mr);
}

static void
hand_over_on_default(const subject_t *subject, const conformance_case_t *self)
{
    (void)self;
    hand_over(subject, RMM_STREAM_LEGACY, RMM_STREAM_LEGACY);
}

static void
hand_over_on_per_thread(const subject_t *subject, const conformance_case_t *self)
{
    (void)self;
    hand_over(subject, RMM_STREAM_PER_THREAD, RMM_STREAM_PER_THREAD);
}

static void hand_over_on_same(const subject_t *subject, const conformance_case_t *self)
{
    rmm_stream_t stream = new_stream();

    (void)self;
    hand_over(subject, stream, stream);
    assert_ok(rmm_stream_destroy(stream));
}

static void
hand_over_on_different(const subject_t *subject, const conformance_case_t *self)
{
    rmm_stream_t first = new_stream();
    rmm_stream_t second = new_stream();

    (void)self;
    hand_over(subject, first, second);
    assert_ok(rmm_stream_destroy(first));
    assert_ok(rmm_stream_destroy(second));
}

/* --- the matrix --------------------------------------------------------------------- */

/* clang-format off */
const conformance_case_t conformance_cases[] = {
    {"B1 SetCurrentDeviceResourceRef", set_current_resource, NULL, 0, 0},
    {"B2 SelfEquality", equals_itself, NULL, 0, 0},
    {"B3 AllocationsAreDifferent", run_work, take_two, ORDER_SYNC, 1},
    {"B4 AsyncAllocationsAreDifferentDefaultStream", run_work, take_two, ORDER_DEFAULT_STREAM, 1},
    {"B5 AsyncAllocationsAreDifferent", run_work, take_two, ORDER_STREAM, 1},
    {"A1 AllocateDefault", run_work, take_each_size, ORDER_SYNC, 1},
    {"A2 AllocateDefaultStream", run_work, take_each_size, ORDER_DEFAULT_STREAM, 1},
    {"A3 AllocateOnStream", run_work, take_each_size, ORDER_STREAM, 1},
    {"A4 RandomAllocations", run_work, take_many_then_free, ORDER_SYNC, 1},
    {"A5 RandomAllocationsDefaultStream", run_work, take_many_then_free, ORDER_DEFAULT_STREAM, 1},
    {"A6 RandomAllocationsStream", run_work, take_many_then_free, ORDER_STREAM, 1},
    {"A7 MixedRandomAllocationFree", run_work, take_and_free_mixed, ORDER_SYNC, 1},
    {"A8 MixedRandomAllocationFreeDefaultStream", run_work, take_and_free_mixed, ORDER_DEFAULT_STREAM, 1},
    {"A9 MixedRandomAllocationFreeStream", run_work, take_and_free_mixed, ORDER_STREAM, 1},
    {"M1 SetCurrentDeviceResourceRef_mt", set_current_resource_on_threads, NULL, 0, THREADS},
    {"M2 SetCurrentDeviceResourceRefPerThread_mt", set_current_resource_per_thread, NULL, 0, 0},
    {"M3 Allocate", run_work, take_each_size, ORDER_SYNC, THREADS},
    {"M4 AllocateDefaultStream", run_work, take_each_size, ORDER_DEFAULT_STREAM, THREADS},
    {"M5 AllocateOnStream", run_work, take_each_size, ORDER_STREAM, THREADS},
    {"M6 RandomAllocations", run_work, take_many_then_free, ORDER_SYNC, THREADS},
    {"M7 RandomAllocationsDefaultStream", run_work, take_many_then_free, ORDER_DEFAULT_STREAM, THREADS},
    {"M8 RandomAllocationsStream", run_work, take_many_then_free, ORDER_STREAM, THREADS},
    {"M9 MixedRandomAllocationFree", run_work, take_and_free_mixed, ORDER_SYNC, THREADS},
    {"M10 MixedRandomAllocationFreeDefaultStream", run_work, take_and_free_mixed, ORDER_DEFAULT_STREAM, THREADS},
    {"M11 MixedRandomAllocationFreeStream", run_work, take_and_free_mixed, ORDER_STREAM, THREADS},
    {"M12 AllocFreeDifferentThreadsDefaultStream", hand_over_on_default, NULL, 0, 0},
    {"M13 AllocFreeDifferentThreadsPerThreadDefaultStream", hand_over_on_per_thread, NULL, 0, 0},
    {"M14 AllocFreeDifferentThreadsSameStream", hand_over_on_same, NULL, 0, 0},
    {"M15 AllocFreeDifferentThreadsDifferentStream", hand_over_on_different, NULL, 0, 0},
};
/* clang-format on */

const size_t conformance_case_count =
    sizeof(conformance_cases) / sizeof(conformance_cases[0]);
