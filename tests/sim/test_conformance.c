/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every resource has to do: the shared cases of RMM's test suite, run for each line
 * of `subjects`. A new resource is one more line there.
 *
 * The cases note failures instead of asserting them, because most run on several threads,
 * where cmocka cannot.
 */
#include "sim/pool_harness.h"

#include <pthread.h>
#include <stdio.h>

#define THREADS 4
#define BLOCKS 100
#define GIB (KIB * MIB)
#define PIB (GIB * MIB)
#define UNLIMITED ((size_t)PTRDIFF_MAX)

typedef struct subject {
    const char *name;
    rmm_resource_t *(*make)(void);
    size_t largest; /* more is refused, whatever memory there is */
} subject_t;

typedef enum order {
    ORDER_SYNC, /* the synchronous twins */
    ORDER_DEFAULT_STREAM,
    ORDER_STREAM,
    ORDER_COUNT
} order_t;

/* One thread's part of a case. */
typedef struct worker {
    const subject_t *subject;
    rmm_resource_t *mr;
    order_t order;
    rmm_stream_t stream;
    uint64_t random;
    uint64_t failures;
    int first_failure; /* line */
} worker_t;

typedef void (*work_fn)(worker_t *worker);

#define EXPECT(worker, condition) note(worker, (condition), __LINE__)

static bool note(worker_t *worker, bool holds, int line)
{
    if (!holds && worker->failures++ == 0) {
        worker->first_failure = line;
    }
    return holds;
}

static uint64_t draw(worker_t *worker, uint64_t limit)
{
    worker->random =
        worker->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (worker->random >> 33) % limit;
}

static rmm_status_t obtain(worker_t *worker, size_t bytes, void **ptr)
{
    return worker->order == ORDER_SYNC
               ? rmm_resource_alloc_sync(worker->mr, bytes, 0, ptr)
               : rmm_resource_alloc(worker->mr, bytes, 0, worker->stream, ptr);
}

static void give_back(worker_t *worker, void *ptr, size_t bytes)
{
    if (worker->order == ORDER_SYNC) {
        rmm_resource_dealloc_sync(worker->mr, ptr, bytes, 0);
    } else {
        rmm_resource_dealloc(worker->mr, ptr, bytes, 0, worker->stream);
    }
}

/* A use on whom it is for: queued for a device, at once for the host. */
static void touch(worker_t *worker, void *ptr, size_t bytes)
{
    size_t some = bytes < 256 ? bytes : 256;

    if ((rmm_resource_properties(worker->mr) & RMM_DEVICE_ACCESSIBLE) == 0) {
        memset(ptr, 1, some);
        return;
    }
    EXPECT(worker, rmm_sim_memset_async(ptr, 1, some, worker->stream) == 0);
    if (worker->order == ORDER_SYNC) {
        EXPECT(worker, rmm_sim_stream_synchronize(worker->stream) == 0);
    }
}

/* --- the cases' work, on one thread or several -------------------------------------- */

static void take_one_size(worker_t *worker, size_t bytes)
{
    void *mark = &mark;
    void *ptr = mark;
    rmm_status_t status = obtain(worker, bytes, &ptr);

    if (bytes > worker->subject->largest) {
        EXPECT(worker, status == RMM_ERR_OUT_OF_MEMORY && ptr == mark);
        return;
    }
    if (!EXPECT(worker, status == RMM_OK)) {
        return;
    }
    EXPECT(worker, bytes == 0 ? ptr == NULL : ptr != NULL);
    EXPECT(worker, (uintptr_t)ptr % RMM_ALIGN_DEFAULT == 0);
    if (bytes != 0) {
        touch(worker, ptr, bytes);
    }
    give_back(worker, ptr, bytes);
}

static void take_each_size(worker_t *worker)
{
    static const size_t sizes[] = {0, 4, KIB, MIB, GIB};
    void *mark = &mark;
    void *ptr = mark;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        take_one_size(worker, sizes[i]);
    }
    EXPECT(worker, obtain(worker, PIB, &ptr) == RMM_ERR_OUT_OF_MEMORY);
    EXPECT(worker, ptr == mark && strlen(rmm_last_error_message()) > 0);
}

typedef struct holding {
    void *ptr;
    size_t bytes;
} holding_t;

static size_t draw_size(worker_t *worker)
{
    size_t most = 5 * MIB;

    most = most < worker->subject->largest ? most : worker->subject->largest;
    return 1 + (size_t)draw(worker, most);
}

static bool take_random(worker_t *worker, holding_t *holding)
{
    holding->bytes = draw_size(worker);
    if (!EXPECT(worker, obtain(worker, holding->bytes, &holding->ptr) == RMM_OK)) {
        return false;
    }
    EXPECT(worker, (uintptr_t)holding->ptr % RMM_ALIGN_DEFAULT == 0);
    touch(worker, holding->ptr, holding->bytes);
    return true;
}

static void take_many_then_free(worker_t *worker)
{
    holding_t held[BLOCKS];
    size_t count = 0;

    while (count < BLOCKS && take_random(worker, &held[count])) {
        count++;
    }
    while (count > 0) {
        count--;
        give_back(worker, held[count].ptr, held[count].bytes);
    }
}

/* As RMM: 100 allocations, 53 of 100 steps allocate while there is a choice. */
static void take_and_free_mixed(worker_t *worker)
{
    holding_t held[BLOCKS];
    size_t count = 0;
    int left = BLOCKS;

    while (left > 0 || count > 0) {
        if (left > 0 && (count == 0 || draw(worker, 100) < 53)) {
            left--;
            count += take_random(worker, &held[count]);
        } else {
            size_t victim = (size_t)draw(worker, count);

            give_back(worker, held[victim].ptr, held[victim].bytes);
            held[victim] = held[--count];
        }
    }
}

static void take_two(worker_t *worker)
{
    void *first;
    void *second;

    if (EXPECT(worker, obtain(worker, KIB, &first) == RMM_OK)) {
        if (EXPECT(worker, obtain(worker, KIB, &second) == RMM_OK)) {
            EXPECT(worker, first != second);
            give_back(worker, second, KIB);
        }
        give_back(worker, first, KIB);
    }
}

/* --- running it --------------------------------------------------------------------- */

typedef struct start {
    worker_t worker;
    work_fn work;
    pthread_t thread;
} start_t;

static void *run_start(void *argument)
{
    start_t *start = argument;

    start->work(&start->worker);
    return NULL;
}

static void assert_worked(const worker_t *worker)
{
    if (worker->failures != 0) {
        fail_msg(
            "%s, order %d: %llu failures, the first at line %d", worker->subject->name,
            (int)worker->order, (unsigned long long)worker->failures,
            worker->first_failure);
    }
}

/* Nothing is out, nothing was refused, and the simulated GPU found no bug. */
static void end_subject(rmm_resource_t *mr)
{
    assert_int_equal(stats_of(mr).current_bytes, 0);
    assert_int_equal(stats_of(mr).current_count, 0);
    assert_int_equal(stats_of(mr).invalid_free_count, 0);
    rmm_resource_release(mr);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

static void run(const subject_t *subject, work_fn work, int thread_count)
{
    for (order_t order = ORDER_SYNC; order < ORDER_COUNT; order++) {
        rmm_resource_t *mr = subject->make();
        rmm_stream_t stream = order == ORDER_STREAM ? make_stream(0) : NULL;
        start_t starts[THREADS];

        for (int i = 0; i < thread_count; i++) {
            starts[i] = (start_t){
                .worker = {subject, mr, order, stream, (uint64_t)i + 1, 0, 0},
                .work = work};
        }
        for (int i = 1; i < thread_count; i++) {
            assert_int_equal(
                pthread_create(&starts[i].thread, NULL, run_start, &starts[i]), 0);
        }
        run_start(&starts[0]);
        for (int i = 1; i < thread_count; i++) {
            assert_int_equal(pthread_join(starts[i].thread, NULL), 0);
        }
        for (int i = 0; i < thread_count; i++) {
            assert_worked(&starts[i].worker);
        }
        if (stream != NULL) {
            assert_cuda(sim_driver()->stream_destroy(stream));
        }
        end_subject(mr);
    }
}

static void equals_itself_and_tells_its_type(void **state)
{
    const subject_t *subject = *state;
    rmm_resource_t *mr = subject->make();

    assert_true(rmm_resource_is_equal(mr, mr));
    assert_string_equal(rmm_resource_type(mr), subject->name);
    end_subject(mr);
}

static void hands_out_different_addresses(void **state)
{
    run(*state, take_two, 1);
}

static void allocates_each_size(void **state)
{
    run(*state, take_each_size, 1);
}

static void allocates_at_random(void **state)
{
    run(*state, take_many_then_free, 1);
}

static void allocates_and_frees_at_random(void **state)
{
    run(*state, take_and_free_mixed, 1);
}

static void allocates_each_size_on_threads(void **state)
{
    run(*state, take_each_size, THREADS);
}

static void allocates_at_random_on_threads(void **state)
{
    run(*state, take_many_then_free, THREADS);
}

static void allocates_and_frees_at_random_on_threads(void **state)
{
    run(*state, take_and_free_mixed, THREADS);
}

/* --- one thread allocates, another frees -------------------------------------------- */

typedef struct handover {
    worker_t producer, consumer;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    holding_t queue[BLOCKS];
    size_t produced; /* protected by lock */
} handover_t;

static void *produce(void *argument)
{
    handover_t *handover = argument;

    for (int i = 0; i < BLOCKS; i++) {
        holding_t holding = {NULL, draw_size(&handover->producer)};

        EXPECT(
            &handover->producer,
            obtain(&handover->producer, holding.bytes, &holding.ptr) == RMM_OK);
        pthread_mutex_lock(&handover->lock);
        handover->queue[handover->produced++] = holding;
        pthread_cond_signal(&handover->changed);
        pthread_mutex_unlock(&handover->lock);
    }
    return NULL;
}

static void consume(handover_t *handover)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        holding_t holding;

        pthread_mutex_lock(&handover->lock);
        while (handover->produced == i) {
            pthread_cond_wait(&handover->changed, &handover->lock);
        }
        holding = handover->queue[i];
        pthread_mutex_unlock(&handover->lock);
        if (holding.ptr != NULL) {
            give_back(&handover->consumer, holding.ptr, holding.bytes);
        }
    }
}

static void
hand_over(const subject_t *subject, rmm_stream_t alloc_on, rmm_stream_t free_on)
{
    rmm_resource_t *mr = subject->make();
    handover_t handover = {
        .producer = {subject, mr, ORDER_STREAM, alloc_on, 1, 0, 0},
        .consumer = {subject, mr, ORDER_STREAM, free_on, 2, 0, 0},
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, produce, &handover), 0);
    consume(&handover);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_worked(&handover.producer);
    assert_worked(&handover.consumer);
    end_subject(mr);
}

static void frees_what_another_thread_took(void **state)
{
    rmm_stream_t first = make_stream(0);
    rmm_stream_t second = make_stream(0);

    hand_over(*state, RMM_STREAM_LEGACY, RMM_STREAM_LEGACY);
    hand_over(*state, RMM_STREAM_PER_THREAD, RMM_STREAM_PER_THREAD);
    hand_over(*state, first, first);
    hand_over(*state, first, second);
    assert_cuda(sim_driver()->stream_destroy(first));
    assert_cuda(sim_driver()->stream_destroy(second));
}

/* --- who is tested ------------------------------------------------------------------ */

static rmm_resource_t *make_subject_pool(void)
{
    return make_pool(0, 0);
}

static rmm_resource_t *make_host(void)
{
    rmm_resource_t *mr;

    assert_ok(rmm_host_resource_create(&mr));
    return mr;
}

static rmm_resource_t *make_pinned(void)
{
    rmm_resource_t *mr;

    assert_ok(rmm_pinned_resource_create(&mr));
    return mr;
}

static rmm_resource_t *make_managed(void)
{
    rmm_resource_t *mr;

    assert_ok(rmm_managed_resource_create(&mr));
    return mr;
}

static rmm_status_t
program_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    return rmm_resource_alloc(payload, bytes, 0, stream, ptr_out);
}

static void program_dealloc(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    rmm_resource_dealloc(payload, ptr, bytes, 0, stream);
}

/* Over a cuda resource that lives as long as the test. */
static rmm_resource_t *make_callback(void)
{
    static rmm_resource_t *inner;
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    rmm_resource_t *mr;

    if (inner == NULL) {
        inner = make_cuda();
    }
    options.alloc = program_alloc;
    options.dealloc = program_dealloc;
    options.payload = inner;
    assert_ok(rmm_callback_resource_create(&options, &mr));
    return mr;
}

static rmm_resource_t *make_fixed_size(void)
{
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr;

    assert_ok(rmm_fixed_size_resource_create(cuda, NULL, &mr));
    rmm_resource_release(cuda);
    return mr;
}

static rmm_resource_t *make_binning(void)
{
    rmm_binning_options_t options = RMM_BINNING_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr;

    options.min_exponent = 12;
    options.max_exponent = 20;
    assert_ok(rmm_binning_resource_create(cuda, &options, &mr));
    rmm_resource_release(cuda);
    return mr;
}

static subject_t subjects[] = {
    {"cuda", make_cuda, UNLIMITED},       {"pool", make_subject_pool, UNLIMITED},
    {"host", make_host, UNLIMITED},       {"pinned", make_pinned, UNLIMITED},
    {"managed", make_managed, UNLIMITED}, {"callback", make_callback, UNLIMITED},
    {"fixed_size", make_fixed_size, MIB}, {"binning", make_binning, UNLIMITED},
};

#define CASE(function)                                                                 \
    {                                                                                  \
#function, function                                                            \
    }

static const struct {
    const char *name;
    CMUnitTestFunction function;
} cases[] = {
    CASE(equals_itself_and_tells_its_type),
    CASE(hands_out_different_addresses),
    CASE(allocates_each_size),
    CASE(allocates_at_random),
    CASE(allocates_and_frees_at_random),
    CASE(allocates_each_size_on_threads),
    CASE(allocates_at_random_on_threads),
    CASE(allocates_and_frees_at_random_on_threads),
    CASE(frees_what_another_thread_took),
};

#define SUBJECT_COUNT (sizeof(subjects) / sizeof(subjects[0]))
#define CASE_COUNT (sizeof(cases) / sizeof(cases[0]))

int main(void)
{
    static struct CMUnitTest tests[SUBJECT_COUNT * CASE_COUNT];
    static char names[SUBJECT_COUNT * CASE_COUNT][80];

    for (size_t i = 0; i < SUBJECT_COUNT * CASE_COUNT; i++) {
        size_t subject = i / CASE_COUNT;
        size_t which = i % CASE_COUNT;
        subject_t *state = &subjects[subject];

        snprintf(names[i], sizeof(names[i]), "%s %s", state->name, cases[which].name);
        tests[i] =
            (struct CMUnitTest){names[i], cases[which].function, NULL, NULL, state};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
