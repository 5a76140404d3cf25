/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cases in which the subject is the default resource of a device.
 */
#include "conformance/cases.h"

#include "harness/harness.h"

#include <pthread.h>

#include "driver/driver.h"

#define ROUNDS 20
#define DEVICES_MAX 8

/* What is current now gives memory that can be used. */
static void use_current(worker_t *worker)
{
    static const size_t sizes[] = {100, MIB};
    rmm_resource_t *current = NULL;

    if (!EXPECT(worker, rmm_get_current_device_resource(&current) == RMM_OK)) {
        return;
    }
    worker->mr = current;
    for (size_t i = 0; i < 2; i++) {
        block_t block;

        if (worker_take(worker, sizes[i], &block)) {
            worker_give(worker, &block);
        }
    }
    worker_compare(worker);
    rmm_resource_release(current);
}

/* Sets mr, uses it, and takes back what was there before, which must still work. */
static void set_use_restore(worker_t *worker, rmm_resource_t *mr)
{
    rmm_resource_t *previous = NULL;

    if (!EXPECT(worker, rmm_set_current_device_resource(mr, &previous) == RMM_OK)) {
        return;
    }
    use_current(worker);
    EXPECT(worker, rmm_set_current_device_resource(previous, NULL) == RMM_OK);
    rmm_resource_release(previous);
    use_current(worker);
}

static worker_t worker_of(const subject_t *subject)
{
    return (worker_t){
        .subject = subject, .order = ORDER_DEFAULT_STREAM, .stream = NULL, .random = 1};
}

void set_current_resource(const subject_t *subject, const conformance_case_t *self)
{
    rmm_resource_t *mr = subject_begin(subject);
    rmm_resource_t *current = NULL;
    worker_t worker = worker_of(subject);

    (void)self;
    set_use_restore(&worker, mr);
    assert_ok(rmm_set_current_device_resource(mr, NULL));
    assert_ok(rmm_get_current_device_resource(&current));
    assert_ptr_equal(current, mr);
    rmm_resource_release(current);
    assert_ok(rmm_reset_current_device_resource());
    use_current(&worker);
    worker_assert(&worker);
    subject_end(mr);
}

typedef struct setter {
    worker_t worker;
    rmm_resource_t *mr;
    int device;
    pthread_t thread;
} setter_t;

/* Other threads set as well: whatever is current works. */
static void *set_in_turn(void *argument)
{
    setter_t *setter = argument;

    for (int i = 0; i < ROUNDS; i++) {
        set_use_restore(&setter->worker, setter->mr);
    }
    return NULL;
}

static void run_setters(setter_t *setters, int count, void *(*body)(void *))
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(
            pthread_create(&setters[i].thread, NULL, body, &setters[i]), 0);
    }
    for (int i = 0; i < count; i++) {
        assert_int_equal(pthread_join(setters[i].thread, NULL), 0);
    }
    for (int i = 0; i < count; i++) {
        worker_assert(&setters[i].worker);
    }
}

void set_current_resource_on_threads(
    const subject_t *subject, const conformance_case_t *self)
{
    rmm_resource_t *mr = subject_begin(subject);
    setter_t *setters = test_calloc(THREADS, sizeof(*setters));

    for (int i = 0; i < self->threads; i++) {
        setters[i] = (setter_t){.worker = worker_of(subject), .mr = mr};
    }
    run_setters(setters, self->threads, set_in_turn);
    assert_ok(rmm_reset_current_device_resource());
    test_free(setters);
    subject_end(mr);
}

/* The subject of its own device is this device's default, whatever other threads do. */
static void *set_on_own_device(void *argument)
{
    setter_t *setter = argument;
    worker_t *worker = &setter->worker;
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    rmm_resource_t *mr = NULL;
    rmm_resource_t *previous = NULL;
    rmm_resource_t *current = NULL;

    if (!EXPECT(worker, driver->device_set(setter->device) == RMM_DRIVER_OK) ||
        !EXPECT(worker, subject_make(worker->subject, &mr) == RMM_OK)) {
        return NULL;
    }
    for (int i = 0; i < ROUNDS; i++) {
        EXPECT(worker, rmm_set_current_device_resource(mr, &previous) == RMM_OK);
        EXPECT(worker, rmm_get_current_device_resource(&current) == RMM_OK);
        EXPECT(worker, current == mr);
        use_current(worker);
        EXPECT(worker, rmm_set_current_device_resource(previous, NULL) == RMM_OK);
        rmm_resource_release(current);
        rmm_resource_release(previous);
    }
    rmm_resource_release(mr);
    return NULL;
}

void set_current_resource_per_thread(
    const subject_t *subject, const conformance_case_t *self)
{
    setter_t *setters = test_calloc(DEVICES_MAX, sizeof(*setters));
    rmm_status_t status;
    int count;

    (void)self;
    assert_int_equal(rmm__driver(&status)->device_count(&count), RMM_DRIVER_OK);
    count = count < DEVICES_MAX ? count : DEVICES_MAX;
    for (int i = 0; i < count; i++) {
        setters[i] = (setter_t){.worker = worker_of(subject), .device = i};
    }
    run_setters(setters, count, set_on_own_device);
    for (int i = 0; i < count; i++) {
        assert_ok(rmm_reset_per_device_resource(i));
    }
    test_free(setters);
    subject_end(subject_begin(subject));
}
