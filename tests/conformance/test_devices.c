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
#include "driver/sim/control.h"

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

/* --- memory that work of another device uses -------------------------------------------- */

enum { USED_BYTES = 5000, KINDS = 3 };

/* Not the legacy default stream: for a resource that is its own device's. */
static rmm_stream_t stream_of_kind(int kind)
{
    rmm_stream_t stream;

    if (kind == 0) {
        return RMM_STREAM_PER_THREAD;
    }
    assert_ok(rmm_stream_create(kind == 1 ? 0 : RMM_STREAM_NON_BLOCKING, &stream));
    return stream;
}

/* Host memory is not freed in stream order; mapped memory is its own device's. */
static bool can_be_used_elsewhere(const rmm_resource_t *mr)
{
    return rmm_sim_active() && mr->device >= 0 &&
           strstr(subject->name, "virtual") == NULL;
}

/* The program's function gets the stream, and has to order its free itself. */
static bool frees_by_program(void)
{
    return strcmp(subject->name, "callback") == 0 ||
           strcmp(subject->name, "custom") == 0;
}

/* Queues a fill of the block and a copy to `seen`, with device 1 current. */
static void *use_on_1(rmm_resource_t *mr, rmm_stream_t stream, char *seen)
{
    void *block;

    assert_ok(rmm_resource_alloc(mr, USED_BYTES, 0, stream, &block));
    assert_ok(rmm_memset_async(block, 'o', USED_BYTES, stream));
    assert_ok(rmm_memcpy_async(seen, block, USED_BYTES, stream));
    return block;
}

static void assert_all_seen(const char *seen)
{
    for (int i = 0; i < USED_BYTES; i++) {
        assert_int_equal(seen[i], 'o');
    }
}

/* The next owner's writes, on the resource's own device. */
static void overwrite_on_0(rmm_resource_t *mr)
{
    void *block;

    set_device(0);
    assert_ok(rmm_resource_alloc(mr, USED_BYTES, 0, RMM_STREAM_LEGACY, &block));
    assert_ok(rmm_memset_async(block, 'n', USED_BYTES, RMM_STREAM_LEGACY));
    assert_ok(rmm_stream_synchronize(RMM_STREAM_LEGACY));
    rmm_resource_dealloc(mr, block, USED_BYTES, 0, RMM_STREAM_LEGACY);
    set_device(1);
}

static void a_free_waits_for_the_stream_of_another_device(void **state)
{
    rmm_resource_t *mr = make_on(0);
    static char seen[USED_BYTES];
    uint64_t rounds = can_be_used_elsewhere(mr) && !frees_by_program() ? 20 * KINDS : 0;

    for (uint64_t round = 0; round < rounds; round++) {
        rmm_stream_t stream;

        rmm__sim_reseed(1 + round / KINDS);
        set_device(1);
        stream = stream_of_kind((int)(round % KINDS));
        rmm_resource_dealloc(mr, use_on_1(mr, stream, seen), USED_BYTES, 0, stream);
        overwrite_on_0(mr);
        assert_ok(rmm_stream_synchronize(stream));
        assert_all_seen(seen);
        memset(seen, 0, sizeof(seen));
        assert_ok(rmm_stream_destroy(stream));
    }
    subject_end(mr);
}

/* It logs an error, and frees what is live: not under the work that uses it. */
static void its_end_waits_for_the_work_of_another_device(void **state)
{
    static char seen[USED_BYTES];

    for (uint64_t round = 0; round < 10 * KINDS; round++) {
        rmm_resource_t *mr = make_on(0);
        rmm_stream_t stream;

        if (!can_be_used_elsewhere(mr)) {
            subject_end(mr);
            return;
        }
        rmm__sim_reseed(1 + round / KINDS);
        set_device(1);
        stream = stream_of_kind((int)(round % KINDS));
        (void)use_on_1(mr, stream, seen);
        rmm_resource_release(mr);
        assert_ok(rmm_stream_synchronize(stream));
        assert_all_seen(seen);
        memset(seen, 0, sizeof(seen));
        assert_ok(rmm_stream_destroy(stream));
        assert_held_on(-1);
    }
    assert_int_equal(rmm_sim_violations(), 0);
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
        assert_string_equal(rmm__sim_violation_text(), "");
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
        cmocka_unit_test(a_free_waits_for_the_stream_of_another_device),
        cmocka_unit_test(its_end_waits_for_the_work_of_another_device),
        cmocka_unit_test(serves_threads_of_all_devices),
        cmocka_unit_test(lives_on_every_device_at_once),
    };
    int result;

    subject = subject_of_arguments(argc, argv);
    result = look_at_machine();
    return result != 0 ? result : cmocka_run_group_tests(tests, NULL, NULL);
}
