/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default resource of each device: whose it is, who keeps it alive, and that threads
 * which get and set it at once never meet one that is gone.
 */
#include "sim/pool/pool_harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rmm/rmm.h>

#include "base/resource_impl.h"
#include "driver/sim/control.h"
#include "harness/in_child.h"

enum { DEVICES = 4, THREADS = 4 };

/* --- without a GPU: the first case, before the driver is open ------------------------- */

/* In a process of its own: which driver there is was decided in this one. */
static int ask_without_gpu(void)
{
    rmm_resource_t *mr = NULL;
    const char *message = rmm_last_error_message();

    setenv("RMM_DRIVER", "cuda", 1);
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    if (rmm_get_current_device_resource(&mr) != RMM_ERR_NO_DEVICE ||
        strstr(message, "RMM_DRIVER=sim") == NULL) {
        return 1;
    }
    if (rmm_get_per_device_resource(0, &mr) != RMM_ERR_NO_DEVICE ||
        rmm_set_per_device_resource(0, NULL, NULL) != RMM_ERR_NO_DEVICE ||
        rmm_reset_current_device_resource() != RMM_ERR_NO_DEVICE) {
        return 2;
    }
    return mr == NULL ? 0 : 3;
}

TEST_CASE(says_no_device_where_none_is)
{
    pid_t pid = fork_child(); /* nothing of the library was used yet */

    if (pid == 0) {
        _exit(ask_without_gpu());
    }
    assert_int_equal(exit_status_of(pid), 0);
}

/* --- one default for each device ------------------------------------------------------ */

static rmm_resource_t *get_default(int device)
{
    rmm_resource_t *mr = NULL;

    assert_ok(rmm_get_per_device_resource(device, &mr));
    assert_non_null(mr);
    return mr;
}

static rmm_resource_t *get_current(void)
{
    rmm_resource_t *mr = NULL;

    assert_ok(rmm_get_current_device_resource(&mr));
    return mr;
}

static uint32_t references_of(rmm_resource_t *mr)
{
    return atomic_load(&mr->references);
}

/* Every case begins and ends with no default set. */
static int reset_all(void **state)
{
    for (int device = 0; device < DEVICES; device++) {
        assert_ok(rmm_reset_per_device_resource(device));
    }
    assert_cuda(rmm__sim_device_set(0));
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, reset_all, reset_all)

static void expect_works(rmm_resource_t *mr, int device)
{
    void *small = take(mr, 100, NULL);
    void *large = take(mr, MIB, NULL);

    assert_true(rmm_sim_allocated_bytes(device) >= MIB);
    assert_int_equal((uintptr_t)small % 256, 0);
    assert_int_equal((uintptr_t)large % 256, 0);
    give(mr, small, 100, NULL);
    give(mr, large, MIB, NULL);
}

/* --- one device --------------------------------------------------------------------- */

/* UseCurrentDeviceResource, GetCurrentDeviceResource */
CASE(the_initial_one_is_the_cuda_resource)
{
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr = get_current();

    assert_string_equal(rmm_resource_type(mr), "cuda");
    assert_true(rmm_resource_is_equal(mr, cuda));
    expect_works(mr, 0);
    rmm_resource_release(mr);
    rmm_resource_release(cuda);
}

/* SetCurrentDeviceResourceRef */
CASE(set_answers_the_previous_one)
{
    rmm_resource_t *initial = get_current();
    rmm_resource_t *pool = make_pool(0, 0);
    rmm_resource_t *previous = NULL;
    rmm_resource_t *mr;

    assert_ok(rmm_set_current_device_resource(pool, &previous));
    assert_ptr_equal(previous, initial);
    expect_works(previous, 0);
    rmm_resource_release(previous);
    mr = get_current();
    assert_ptr_equal(mr, pool);
    expect_works(mr, 0);
    rmm_resource_release(mr);

    previous = NULL;
    assert_ok(rmm_set_current_device_resource(NULL, &previous));
    assert_ptr_equal(previous, pool);
    rmm_resource_release(previous);
    mr = get_current();
    assert_ptr_equal(mr, initial);
    expect_works(mr, 0);
    rmm_resource_release(mr);
    rmm_resource_release(initial);
    assert_int_equal(references_of(pool), 1);
    rmm_resource_release(pool);
}

CASE(the_first_set_answers_the_initial_one)
{
    rmm_resource_t *pool;
    rmm_resource_t *previous = NULL;

    assert_cuda(rmm__sim_device_set(3));
    pool = make_pool(0, 0);
    assert_cuda(rmm__sim_device_set(0));
    assert_ok(rmm_set_per_device_resource(3, pool, &previous));
    assert_non_null(previous);
    assert_string_equal(rmm_resource_type(previous), "cuda");
    assert_int_equal(previous->device, 3);
    rmm_resource_release(previous);
    rmm_resource_release(pool);
}

CASE(a_default_lives_while_it_is_set)
{
    rmm_resource_t *pool = make_pool(MIB, 0);
    rmm_resource_t *mr;

    assert_ok(rmm_set_current_device_resource(pool, NULL));
    rmm_resource_release(pool);
    assert_true(rmm_sim_allocated_bytes(0) >= MIB);
    mr = get_current();
    expect_works(mr, 0);
    rmm_resource_release(mr);
    assert_ok(rmm_reset_current_device_resource());
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

CASE(a_reference_outlives_a_reset_of_the_default)
{
    rmm_resource_t *pool = make_pool(MIB, 0);
    rmm_resource_t *mr;

    assert_ok(rmm_set_current_device_resource(pool, NULL));
    mr = get_current();
    rmm_resource_release(pool);
    assert_ok(rmm_reset_current_device_resource());
    assert_int_equal(references_of(mr), 1);
    expect_works(mr, 0);
    rmm_resource_release(mr);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

CASE(setting_what_is_set_changes_nothing)
{
    rmm_resource_t *pool = make_pool(0, 0);
    rmm_resource_t *previous = NULL;

    assert_ok(rmm_set_current_device_resource(pool, NULL));
    assert_ok(rmm_set_current_device_resource(pool, &previous));
    assert_ptr_equal(previous, pool);
    rmm_resource_release(previous);
    assert_ok(rmm_reset_current_device_resource());
    assert_int_equal(references_of(pool), 1);
    rmm_resource_release(pool);
}

CASE(every_reference_comes_back)
{
    enum { MANY = 200000 };
    rmm_resource_t *pool = make_pool(0, 0);

    assert_ok(rmm_set_current_device_resource(pool, NULL));
    for (int i = 0; i < MANY; i++) {
        assert_ptr_equal(get_default(0), pool);
    }
    assert_ok(rmm_reset_current_device_resource());
    assert_int_equal(references_of(pool), MANY + 1);
    for (int i = 0; i < MANY; i++) {
        rmm_resource_release(pool);
    }
    assert_int_equal(references_of(pool), 1);
    rmm_resource_release(pool);
}

/* --- several devices ---------------------------------------------------------------- */

CASE(each_device_has_its_own)
{
    rmm_resource_t *mr[DEVICES];

    for (int device = 0; device < DEVICES; device++) {
        mr[device] = get_default(device);
        assert_int_equal(mr[device]->device, device);
        expect_works(mr[device], device);
        for (int other = 0; other < device; other++) {
            assert_ptr_not_equal(mr[device], mr[other]);
        }
    }
    for (int device = 0; device < DEVICES; device++) {
        rmm_resource_release(mr[device]);
    }
}

static rmm_status_t
never_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    (void)bytes;
    (void)stream;
    (void)payload;
    (void)ptr_out;
    return RMM_ERR_OUT_OF_MEMORY;
}

static void never_dealloc(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    (void)ptr;
    (void)bytes;
    (void)stream;
    (void)payload;
}

static rmm_resource_t *make_callback(void)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.alloc = never_alloc;
    options.dealloc = never_dealloc;
    assert_ok(rmm_callback_resource_create(&options, &mr));
    return mr;
}

static rmm_resource_t *make_stack(void)
{
    rmm_resource_t *pool = make_pool(0, 0);
    rmm_limiting_options_t limit = RMM_LIMITING_OPTIONS_INIT;
    rmm_resource_t *limiting;
    rmm_resource_t *statistics;

    limit.limit_bytes = MIB;
    assert_ok(rmm_limiting_adaptor_create(pool, &limit, &limiting));
    assert_ok(rmm_statistics_adaptor_create(limiting, NULL, &statistics));
    rmm_resource_release(pool);
    rmm_resource_release(limiting);
    return statistics;
}

static rmm_resource_t *make_by_spec(const char *spec)
{
    rmm_resource_t *mr;

    assert_ok(rmm_resource_create_from_spec(spec, &mr));
    return mr;
}

static void expect_refused(rmm_resource_t *mr, int device)
{
    rmm_resource_t *before = get_default(device);
    rmm_resource_t *previous = NULL;
    rmm_resource_t *after;

    assert_int_equal(
        rmm_set_per_device_resource(device, mr, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(
        rmm_last_error_message(), "allocates on device 0, which was current when"));
    assert_non_null(strstr(rmm_last_error_message(), "make device"));
    assert_int_equal(
        rmm_set_per_device_resource(device, mr, &previous), RMM_ERR_INVALID_ARGUMENT);
    assert_null(previous);
    assert_cuda(rmm__sim_device_set(device));
    assert_int_equal(
        rmm_set_current_device_resource(mr, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_cuda(rmm__sim_device_set(0));
    after = get_default(device);
    assert_ptr_equal(after, before);
    rmm_resource_release(before);
    rmm_resource_release(after);
}

/* Its memory, and its default stream, would be the other device's. */
CASE(refuses_a_resource_of_another_device)
{
    const char *const specs[] = {"cuda",   "pool",         "managed",     "pinned",
                                 "async",  "binning",      "arena:64MiB", "fixed_size",
                                 "system", "pool_virtual", "sam_headroom"};
    rmm_resource_t *callback = make_callback();
    rmm_resource_t *stack = make_stack();

    expect_refused(callback, 1);
    expect_refused(stack, 3);
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        rmm_resource_t *mr = make_by_spec(specs[i]);

        expect_refused(mr, 1);
        assert_ok(rmm_set_per_device_resource(0, mr, NULL));
        rmm_resource_release(mr);
    }
    assert_ok(rmm_reset_per_device_resource(0));
    rmm_resource_release(callback);
    rmm_resource_release(stack);
}

/* Host memory alone has no device. */
CASE(host_memory_is_the_default_of_any_device)
{
    rmm_resource_t *host;

    assert_ok(rmm_host_resource_create(&host));
    assert_ok(rmm_set_per_device_resource(1, host, NULL));
    assert_ok(rmm_set_per_device_resource(2, host, NULL));
    assert_ok(rmm_reset_per_device_resource(1));
    assert_ok(rmm_reset_per_device_resource(2));
    rmm_resource_release(host);
}

CASE(another_device_than_the_current_one_can_be_set)
{
    rmm_resource_t *pool;
    rmm_resource_t *mr;
    int device;

    assert_cuda(rmm__sim_device_set(1));
    pool = make_pool(MIB, 0);
    assert_cuda(rmm__sim_device_set(0));
    assert_ok(rmm_set_per_device_resource(1, pool, NULL));
    mr = get_current();
    assert_string_equal(rmm_resource_type(mr), "cuda");
    rmm_resource_release(mr);
    mr = get_default(1);
    assert_ptr_equal(mr, pool);
    expect_works(mr, 1);
    rmm_resource_release(mr);
    rmm_resource_release(pool);
    rmm_resource_release(get_default(2)); /* made there, while 0 is current */
    assert_cuda(rmm__sim_device_get(&device));
    assert_int_equal(device, 0);
}

CASE(refuses_devices_that_are_not_there)
{
    rmm_resource_t *mark = (void *)&mark;
    rmm_resource_t *mr = mark;
    const int beyond[] = {DEVICES, 31, 32, 1000};

    assert_int_equal(rmm_get_per_device_resource(-1, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_set_per_device_resource(-1, NULL, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_reset_per_device_resource(-1), RMM_ERR_INVALID_ARGUMENT);
    for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
        assert_int_equal(
            rmm_get_per_device_resource(beyond[i], &mr), RMM_ERR_OUT_OF_RANGE);
        assert_non_null(
            strstr(rmm_last_error_message(), "this process sees 4 devices"));
        assert_int_equal(
            rmm_set_per_device_resource(beyond[i], NULL, &mr), RMM_ERR_OUT_OF_RANGE);
        assert_int_equal(
            rmm_reset_per_device_resource(beyond[i]), RMM_ERR_OUT_OF_RANGE);
    }
    assert_ptr_equal(mr, mark);
    assert_int_equal(rmm_get_per_device_resource(0, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_get_current_device_resource(NULL), RMM_ERR_INVALID_ARGUMENT);
}

/* --- failures ------------------------------------------------------------------------ */

CASE(a_failed_driver_call_is_answered_and_changes_nothing)
{
    rmm_resource_t *mark = (void *)&mark;
    rmm_resource_t *mr = mark;
    rmm_resource_t *pool = make_pool(0, 0);

    assert_ok(rmm_set_per_device_resource(0, pool, NULL));
    assert_true(rmm_sim_fail("device_get:1"));
    assert_int_equal(rmm_get_current_device_resource(&mr), RMM_ERR_CUDA);
    assert_true(rmm_sim_fail("device_get:1"));
    assert_int_equal(rmm_set_current_device_resource(NULL, &mr), RMM_ERR_CUDA);
    assert_true(rmm_sim_fail("device_count:1"));
    assert_int_equal(rmm_set_per_device_resource(0, NULL, &mr), RMM_ERR_CUDA);
    assert_true(rmm_sim_fail(NULL));
    assert_ptr_equal(mr, mark);
    mr = get_current();
    assert_ptr_equal(mr, pool);
    rmm_resource_release(mr);
    rmm_resource_release(pool);
}

/* --- threads ------------------------------------------------------------------------- */

static void run_threads(void *(*body)(void *), size_t count)
{
    pthread_t threads[2 * THREADS];

    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, body, (void *)i), 0);
    }
    for (size_t i = 0; i < count; i++) {
        void *failure;

        assert_int_equal(pthread_join(threads[i], &failure), 0);
        assert_null(failure);
    }
}

static int broken; /* what a thread points at that failed */

#define THREAD_CHECK(condition)                                                        \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
            return &broken;                                                            \
        }                                                                              \
    } while (0)

static atomic_int ready;

/* Many meet at the first use of a device: one resource comes of it. */
static void *get_first(void *argument)
{
    static _Atomic(rmm_resource_t *) seen;
    rmm_resource_t *expected = NULL;
    rmm_resource_t *mr;

    atomic_fetch_add(&ready, 1);
    while (atomic_load(&ready) < THREADS) {
    }
    THREAD_CHECK(rmm_get_per_device_resource(2, &mr) == RMM_OK);
    THREAD_CHECK(
        atomic_compare_exchange_strong(&seen, &expected, mr) || expected == mr);
    rmm_resource_release(mr);
    return NULL;
}

CASE(threads_that_begin_at_once_share_one)
{
    atomic_store(&ready, 0);
    run_threads(get_first, THREADS);
}

static atomic_uint replaced;

static void *get_and_use(void)
{
    rmm_resource_t *mr;
    void *ptr;

    THREAD_CHECK(rmm_get_per_device_resource(0, &mr) == RMM_OK);
    THREAD_CHECK(rmm_resource_alloc(mr, 1000, 0, NULL, &ptr) == RMM_OK);
    rmm_resource_dealloc(mr, ptr, 1000, 0, NULL);
    rmm_resource_release(mr);
    return NULL;
}

static void *replace_once(bool ask_previous)
{
    rmm_resource_t *cuda;
    rmm_resource_t *pool;
    rmm_resource_t *previous = NULL;

    THREAD_CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    THREAD_CHECK(rmm_pool_resource_create(cuda, NULL, &pool) == RMM_OK);
    rmm_resource_release(cuda);
    THREAD_CHECK(
        rmm_set_per_device_resource(0, pool, ask_previous ? &previous : NULL) ==
        RMM_OK);
    rmm_resource_release(pool); /* the table's reference is the last, but for users' */
    THREAD_CHECK(!ask_previous || previous != NULL);
    rmm_resource_release(previous);
    return NULL;
}

static void *get_or_set(void *argument)
{
    void *failure = NULL;

    if ((size_t)argument < 2) {
        for (unsigned i = 0; failure == NULL && i < 300; i++) {
            failure = replace_once(i % 2 == 0);
            if (failure == NULL && i % 7 == 0 &&
                rmm_reset_per_device_resource(0) != RMM_OK) {
                failure = &broken;
            }
            atomic_fetch_add(&replaced, 1);
        }
        return failure;
    }
    while (failure == NULL && atomic_load(&replaced) < 600) {
        failure = get_and_use();
    }
    return failure;
}

CASE(a_get_during_a_set_never_meets_a_freed_one)
{
    atomic_store(&replaced, 0);
    run_threads(get_or_set, 2 + THREADS);
    assert_ok(rmm_reset_per_device_resource(0));
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

static void *get_many(void *argument)
{
    for (int i = 0; i < 100000; i++) {
        rmm_resource_t *mr;

        THREAD_CHECK(rmm_get_per_device_resource(0, &mr) == RMM_OK);
        rmm_resource_release(mr);
    }
    return NULL;
}

CASE(threads_getting_the_default_lose_no_reference)
{
    rmm_resource_t *pool = make_pool(0, 0);

    assert_ok(rmm_set_per_device_resource(0, pool, NULL));
    run_threads(get_many, THREADS);
    assert_ok(rmm_reset_per_device_resource(0));
    assert_int_equal(references_of(pool), 1);
    rmm_resource_release(pool);
}

/* SetCurrentDeviceResourceRef_mt: one resource for all */
static rmm_resource_t *shared_pool;

static void *set_same(void *argument)
{
    rmm_resource_t *previous;
    rmm_resource_t *mr;

    for (int i = 0; i < 1000; i++) {
        THREAD_CHECK(rmm_set_current_device_resource(shared_pool, &previous) == RMM_OK);
        THREAD_CHECK(previous == shared_pool);
        rmm_resource_release(previous);
        THREAD_CHECK(rmm_get_current_device_resource(&mr) == RMM_OK);
        THREAD_CHECK(mr == shared_pool);
        rmm_resource_release(mr);
    }
    return NULL;
}

CASE(threads_may_set_the_same_one)
{
    shared_pool = make_pool(0, 0);
    assert_ok(rmm_set_current_device_resource(shared_pool, NULL));
    run_threads(set_same, THREADS);
    assert_ok(rmm_reset_current_device_resource());
    assert_int_equal(references_of(shared_pool), 1);
    rmm_resource_release(shared_pool);
}

/* SetCurrentDeviceResourceRefPerThread_mt: a device for each thread */
static void *set_own(void *argument)
{
    int device = (int)(size_t)argument;
    rmm_resource_t *cuda;
    rmm_resource_t *pool;
    rmm_resource_t *mr;

    THREAD_CHECK(rmm__sim_device_set(device) == RMM_DRIVER_OK);
    THREAD_CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    THREAD_CHECK(rmm_pool_resource_create(cuda, NULL, &pool) == RMM_OK);
    rmm_resource_release(cuda);
    for (int i = 0; i < 1000; i++) {
        THREAD_CHECK(rmm_set_current_device_resource(pool, NULL) == RMM_OK);
        THREAD_CHECK(rmm_get_current_device_resource(&mr) == RMM_OK);
        THREAD_CHECK(mr == pool);
        rmm_resource_release(mr);
        THREAD_CHECK(rmm_reset_current_device_resource() == RMM_OK);
        THREAD_CHECK(rmm_get_current_device_resource(&mr) == RMM_OK);
        THREAD_CHECK(mr != pool && mr->device == device);
        rmm_resource_release(mr);
    }
    rmm_resource_release(pool);
    return NULL;
}

CASE(threads_may_set_one_of_a_device_each)
{
    run_threads(set_own, DEVICES);
}
