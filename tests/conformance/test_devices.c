/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every subject of one device, used by threads whose current device is another: it stays
 * on the device that it was created on, and nobody's current device changes. On the
 * simulated GPU with four devices; on real ones, of which it takes two.
 *
 *   test_devices SUBJECT
 */
#include "harness/harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/sim.h>

#include "base/resource_impl.h"
#include "conformance/worker.h"
#include "driver/driver.h"

enum { DEVICES_MAX = 4, ROUNDS = 20, SKIPPED = 77 };

static const subject_t *subject;
static int device_count;

static const rmm_driver_t *gpu(void)
{
    rmm_status_t status;

    return rmm__driver(&status);
}

static void set_device(int device)
{
    assert_int_equal(gpu()->device_set(device), RMM_DRIVER_OK);
}

static int current_device(void)
{
    int device;

    assert_int_equal(gpu()->device_get(&device), RMM_DRIVER_OK);
    return device;
}

static rmm_resource_t *make_on(int device)
{
    rmm_resource_t *mr;

    set_device(device);
    mr = subject_begin(subject);
    if (mr->device >= 0) { /* host memory has none */
        assert_int_equal(mr->device, device);
    }
    return mr;
}

static rmm_stream_t stream_on(int device)
{
    rmm_stream_t stream;

    set_device(device);
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    return stream;
}

/* Device memory is held on `device` only. */
static void assert_held_on(int device)
{
    for (int i = 0; rmm_sim_active() && i < device_count; i++) {
        if (i != device) {
            assert_int_equal(rmm_sim_allocated_bytes(i), 0);
        }
    }
}

static void stays_on_its_device_whatever_is_current(void **state)
{
    for (int own = 0; own < device_count; own++) {
        rmm_resource_t *mr = make_on(own);
        rmm_stream_t stream = stream_on(own);

        for (int other = 0; other < device_count; other++) {
            worker_t worker = {
                .subject = subject,
                .mr = mr,
                .order = ORDER_STREAM,
                .stream = other % 2 == 0 ? stream : NULL,
                .has_device = true,
                .device = own,
                .random = 1};
            block_t block;
            rmm_status_t status;

            set_device(other);
            if (worker_take(&worker, 5000, &block)) {
                assert_int_equal(current_device(), other);
                assert_held_on(own);
                worker_give(&worker, &block);
                assert_int_equal(current_device(), other);
            }
            worker_compare(&worker);
            worker_assert(&worker);
            status = rmm_resource_trim(mr, 0);
            assert_true(status == RMM_OK || status == RMM_ERR_UNSUPPORTED);
            assert_int_equal(current_device(), other);
        }
        assert_ok(rmm_stream_destroy(stream));
        subject_end(mr);
        assert_int_equal(current_device(), device_count - 1);
    }
}

static void takes_streams_of_other_devices(void **state)
{
    rmm_resource_t *mr = make_on(0);
    rmm_stream_t own = stream_on(0);
    rmm_stream_t foreign = stream_on(1);
    worker_t worker = {
        .subject = subject,
        .mr = mr,
        .order = ORDER_STREAM,
        .stream = own,
        .has_device = true,
        .random = 1};

    for (int i = 0; i < ROUNDS; i++) {
        block_t block;
        void *ptr;

        set_device(i % 2);
        assert_ok(rmm_resource_alloc(mr, 5000, 0, foreign, &ptr));
        rmm_resource_dealloc(mr, ptr, 5000, 0, foreign);
        if (worker_take(&worker, 5000, &block)) {
            worker_give(&worker, &block);
        }
    }
    worker_compare(&worker);
    worker_assert(&worker);
    assert_ok(rmm_stream_synchronize(foreign)); /* behind which its frees come */
    assert_ok(rmm_stream_destroy(own));
    assert_ok(rmm_stream_destroy(foreign));
    subject_end(mr);
}

typedef struct visitor {
    worker_t worker;
    int current;
    pthread_t thread;
} visitor_t;

static void *visit(void *argument)
{
    visitor_t *visitor = argument;
    worker_t *worker = &visitor->worker;
    int device = -1;

    EXPECT(worker, gpu()->device_set(visitor->current) == RMM_DRIVER_OK);
    for (int i = 0; i < ROUNDS; i++) {
        block_t blocks[2];

        for (int k = 0; k < 2; k++) {
            if (!worker_take(worker, 1 + worker_draw(worker, 100 * KIB), &blocks[k])) {
                return NULL;
            }
        }
        worker_give(worker, &blocks[0]);
        worker_give(worker, &blocks[1]);
    }
    worker_compare(worker);
    EXPECT(worker, gpu()->device_get(&device) == RMM_DRIVER_OK);
    EXPECT(worker, device == visitor->current);
    return NULL;
}

/* A thread for each device, all of them at each resource. */
static void serves_threads_of_all_devices(void **state)
{
    for (int own = 0; own < device_count; own++) {
        rmm_resource_t *mr = make_on(own);
        visitor_t *visitors = test_calloc(DEVICES_MAX, sizeof(*visitors));

        for (int i = 0; i < device_count; i++) {
            visitors[i].current = i;
            visitors[i].worker = (worker_t){
                .subject = subject,
                .mr = mr,
                .order = ORDER_STREAM,
                .stream = stream_on(own),
                .has_device = true,
                .device = own,
                .random = (uint64_t)i + 1};
        }
        for (int i = 0; i < device_count; i++) {
            assert_int_equal(
                pthread_create(&visitors[i].thread, NULL, visit, &visitors[i]), 0);
        }
        for (int i = 0; i < device_count; i++) {
            assert_int_equal(pthread_join(visitors[i].thread, NULL), 0);
        }
        for (int i = 0; i < device_count; i++) {
            worker_assert(&visitors[i].worker);
            assert_ok(rmm_stream_destroy(visitors[i].worker.stream));
        }
        test_free(visitors);
        subject_end(mr);
    }
}

/* All at once, released in another order than made, with yet another device current. */
static void lives_on_every_device_at_once(void **state)
{
    rmm_resource_t *resources[DEVICES_MAX];
    void *blocks[DEVICES_MAX];

    for (int i = 0; i < device_count; i++) {
        resources[i] = make_on(i);
        set_device((i + 1) % device_count);
        assert_ok(rmm_resource_alloc(resources[i], 5000, 0, NULL, &blocks[i]));
    }
    set_device(0);
    for (int i = device_count - 1; i >= 0; i--) {
        rmm_resource_dealloc(resources[i], blocks[i], 5000, 0, NULL);
    }
    for (int i = 0; i < device_count; i++) {
        rmm_stats_t stats = RMM_STATS_INIT;

        assert_ok(rmm_resource_get_stats(resources[i], &stats));
        assert_int_equal(stats.current_bytes, 0);
        assert_int_equal(stats.invalid_free_count, 0);
        rmm_resource_release(resources[i]);
        assert_int_equal(current_device(), 0);
    }
    assert_held_on(-1);
    if (rmm_sim_active()) {
        assert_string_equal(rmm_sim_last_violation(), "");
    }
}

/* 0, or what main() returns, with the reason printed. */
static int look_at_machine(void)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);

    if (driver == NULL) {
        printf("skipped: %s\n", rmm_last_error_message());
        return status == RMM_ERR_NO_DEVICE ? SKIPPED : 1;
    }
    if (driver->device_count(&device_count) != RMM_DRIVER_OK) {
        return 1;
    }
    if (device_count < 2) {
        printf("skipped: %d device here, two are needed\n", device_count);
        return SKIPPED;
    }
    device_count = device_count < DEVICES_MAX ? device_count : DEVICES_MAX;
    return subject_look_at_machine(subject);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stays_on_its_device_whatever_is_current),
        cmocka_unit_test(takes_streams_of_other_devices),
        cmocka_unit_test(serves_threads_of_all_devices),
        cmocka_unit_test(lives_on_every_device_at_once),
    };
    int result;

    subject = subject_of_arguments(argc, argv);
    result = look_at_machine();
    return result != 0 ? result : cmocka_run_group_tests(tests, NULL, NULL);
}
