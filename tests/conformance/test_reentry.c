/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function of the program's that the library calls may call the library, the resource that
 * it is called for included. Each such call works or returns an error: it never hangs,
 * because nothing is held across a call out of the library. A hang ends the test by SIGALRM,
 * a lock that is taken twice by an assertion.
 *
 * The functions are: the log's, all functions of a custom resource below, a failure
 * callback below, and the sink of an allocation log above. Each of them uses the subject in
 * every way there is.
 */
#include "harness/harness.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/subjects.h"
#include "driver/driver.h"

#define PATIENCE_S 100

static const subject_t *subject;
static rmm_resource_t *top; /* the one under test; NULL: it is being made, or gone */
static int calls;           /* of a function of the program's that used the subject */
static _Thread_local bool is_inside;

/* --- what a function of the program's does -------------------------------------------- */

static void take_and_give(rmm_resource_t *mr, size_t bytes)
{
    void *ptr;

    if (rmm_resource_alloc(mr, bytes, 0, NULL, &ptr) == RMM_OK) {
        rmm_resource_dealloc(mr, ptr, bytes, 0, NULL);
    }
}

static void use_existing(rmm_resource_t *mr)
{
    rmm_stats_t stats = RMM_STATS_INIT;

    take_and_give(mr, 1000);
    take_and_give(mr, 300000);
    take_and_give(mr, 40 * MIB);
    take_and_give(mr, 0);
    (void)!rmm_resource_trim(mr, 0);
    assert_ok(rmm_resource_get_stats(mr, &stats));
    rmm_resource_release(rmm_resource_retain(mr));
}

static void make_another(void)
{
    rmm_resource_t *other;

    if (subject_make(subject, &other) == RMM_OK) {
        take_and_give(other, 1000);
        rmm_resource_release(other);
    }
}

/* Functions of the library that belong to no resource. */
static void use_the_rest(void)
{
    rmm_resource_t *mr;
    void *ptr = rmm_torch_malloc(1000, 0, NULL);

    rmm_torch_free(ptr, 1000, 0, NULL);
    if (rmm_get_per_device_resource(0, &mr) == RMM_OK) {
        rmm_resource_release(mr);
    }
    (void)!rmm_reset_per_device_resource(0);
    (void)rmm_log_get_level();
}

static void use_everything(void)
{
    if (is_inside) {
        return;
    }
    is_inside = true;
    calls++;
    if (top != NULL) {
        use_existing(top);
    }
    make_another();
    use_the_rest();
    is_inside = false;
}

/* --- what makes it be called ---------------------------------------------------------- */

static void exercise(rmm_resource_t *mr)
{
    void *blocks[3] = {NULL, NULL, NULL};
    const size_t sizes[3] = {1000, 300000, 40 * MIB};

    for (int i = 0; i < 3; i++) {
        (void)!rmm_resource_alloc(mr, sizes[i], 0, NULL, &blocks[i]);
    }
    for (int i = 0; i < 3; i++) {
        rmm_resource_dealloc(mr, blocks[i], sizes[i], 0, NULL);
    }
    rmm_resource_dealloc(
        mr, &blocks, 1000, 0, NULL); /* refused, or said to be unknown */
    if (rmm_resource_alloc_sync(mr, 1000, 0, &blocks[0]) == RMM_OK) {
        rmm_resource_dealloc_sync(mr, blocks[0], 1000, 0);
    }
    (void)!rmm_resource_trim(mr, 0);
}

/* Made, used and ended, with a block still out, while functions use it. */
static void live(rmm_status_t (*make)(rmm_resource_t **out))
{
    rmm_resource_t *mr = NULL;
    void *ptr;

    assert_ok(make(&mr));
    top = mr;
    exercise(mr);
    (void)!rmm_resource_alloc(mr, 1000, 0, NULL, &ptr);
    top = NULL;
    rmm_resource_release(mr);
}

/* --- the log -------------------------------------------------------------------------- */

static void on_log(rmm_log_level_t level, const char *message, void *arg)
{
    use_everything();
}

static rmm_status_t make_subject(rmm_resource_t **out)
{
    return subject_make(subject, out);
}

static void a_log_callback_may_use_it(void **state)
{
    assert_ok(rmm_log_set_level(RMM_LEVEL_DEBUG));
    assert_ok(rmm_log_to_callback(on_log, NULL));
    calls = 0;
    live(make_subject);
    assert_ok(rmm_log_to_callback(NULL, NULL));
    assert_int_not_equal(calls, 0);
}

/* --- below ---------------------------------------------------------------------------- */

static bool refuses; /* the next request for memory below */

/* Managed, which every adaptor can be built on. */
static rmm_status_t
below_alloc_sync(size_t bytes, size_t align, void *payload, void **ptr_out)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    int error;

    use_everything();
    if (refuses && !is_inside) {
        refuses = false;
        return RMM_ERR_OUT_OF_MEMORY;
    }
    error = driver->managed_alloc(ptr_out, bytes);
    return error == RMM_DRIVER_OK ? RMM_OK : RMM_ERR_OUT_OF_MEMORY;
}

static rmm_status_t below_alloc(
    size_t bytes, size_t align, rmm_stream_t stream, void *payload, void **ptr_out)
{
    return below_alloc_sync(bytes, align, payload, ptr_out);
}

static void below_dealloc_sync(void *ptr, size_t bytes, size_t align, void *payload)
{
    rmm_status_t status;

    use_everything();
    (void)rmm__driver(&status)->mem_free(ptr);
}

static void
below_dealloc(void *ptr, size_t bytes, size_t align, rmm_stream_t stream, void *payload)
{
    below_dealloc_sync(ptr, bytes, align, payload);
}

static bool below_is_equal(const void *payload, const void *other_payload)
{
    use_everything();
    return payload == other_payload;
}

static void below_destroy(void *payload)
{
    use_everything();
}

static rmm_status_t make_below(rmm_resource_t **out)
{
    rmm_custom_resource_ops_t ops = RMM_CUSTOM_RESOURCE_OPS_INIT;

    ops.alloc = below_alloc;
    ops.dealloc = below_dealloc;
    ops.alloc_sync = below_alloc_sync;
    ops.dealloc_sync = below_dealloc_sync;
    ops.is_equal = below_is_equal;
    ops.destroy = below_destroy;
    return rmm_custom_resource_create(&ops, NULL, out);
}

static rmm_status_t make_over_functions(rmm_resource_t **out)
{
    rmm_resource_t *below;
    rmm_status_t status = make_below(&below);

    if (status == RMM_OK && subject->build == NULL) {
        *out = below;
    } else if (status == RMM_OK) {
        status = subject->build(below, out);
        rmm_resource_release(below);
    }
    return status;
}

static void functions_of_a_custom_resource_may_use_it(void **state)
{
    rmm_resource_t *one, *other;

    calls = 0;
    assert_ok(make_below(&one));
    assert_ok(make_below(&other));
    assert_true(rmm_resource_is_equal(one, other));
    assert_int_not_equal(calls, 0);
    rmm_resource_release(one);
    rmm_resource_release(other);
    calls = 0;
    live(make_over_functions);
    assert_int_not_equal(calls, 0);
}

static bool on_failure(size_t bytes, void *arg)
{
    use_everything();
    return !is_inside; /* what fails in here shall end */
}

static rmm_status_t make_over_failing(rmm_resource_t **out)
{
    rmm_failure_callback_options_t options = RMM_FAILURE_CALLBACK_OPTIONS_INIT;
    rmm_resource_t *below, *asking;
    rmm_status_t status = make_below(&below);

    options.callback = on_failure;
    if (status == RMM_OK) {
        status = rmm_failure_callback_adaptor_create(below, &options, &asking);
        rmm_resource_release(below);
    }
    if (status == RMM_OK && subject->build == NULL) {
        *out = asking;
    } else if (status == RMM_OK) {
        status = subject->build(asking, out);
        rmm_resource_release(asking);
    }
    return status;
}

static void a_failure_callback_may_use_it(void **state)
{
    rmm_resource_t *mr;
    void *ptr;

    calls = 0;
    refuses = strcmp(subject->name, "arena") == 0; /* it takes all when it is made */
    assert_ok(make_over_failing(&mr));
    top = mr;
    refuses = strcmp(subject->name, "arena") != 0;
    assert_ok(rmm_resource_alloc(mr, MIB, 0, NULL, &ptr));
    assert_false(refuses);
    rmm_resource_dealloc(mr, ptr, MIB, 0, NULL);
    assert_int_not_equal(calls, 0);
    top = NULL;
    rmm_resource_release(mr);
}

/* --- above ---------------------------------------------------------------------------- */

static void on_rows(const char *rows, size_t length, void *arg)
{
    use_everything();
}

static rmm_status_t make_logged(rmm_resource_t **out)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    rmm_resource_t *mr;
    rmm_status_t status = subject_make(subject, &mr);

    options.sink = on_rows;
    options.auto_flush = true;
    if (status == RMM_OK) {
        status = rmm_logging_adaptor_create(mr, &options, out);
        rmm_resource_release(mr);
    }
    return status;
}

static void the_sink_of_an_allocation_log_may_use_it(void **state)
{
    calls = 0;
    live(make_logged);
    assert_int_not_equal(calls, 0);
}

static void what_prints_a_tracking_report_may_use_it(void **state)
{
    rmm_resource_t *mr, *tracking;
    void *ptr;

    assert_ok(subject_make(subject, &mr));
    assert_ok(rmm_tracking_adaptor_create(mr, NULL, &tracking));
    rmm_resource_release(mr);
    assert_ok(rmm_resource_alloc(tracking, 1000, 0, NULL, &ptr));
    assert_ok(rmm_log_set_level(RMM_LEVEL_DEBUG));
    assert_ok(rmm_log_to_callback(on_log, NULL));
    top = tracking;
    calls = 0;
    assert_ok(rmm_tracking_report(tracking, RMM_TRACKING_TO_LOG));
    assert_int_not_equal(calls, 0);
    rmm_resource_dealloc(tracking, ptr, 1000, 0, NULL);
    top = NULL;
    rmm_resource_release(tracking);
    assert_ok(rmm_log_to_callback(NULL, NULL));
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_callback_may_use_it),
        cmocka_unit_test(functions_of_a_custom_resource_may_use_it),
        cmocka_unit_test(a_failure_callback_may_use_it),
        cmocka_unit_test(the_sink_of_an_allocation_log_may_use_it),
        cmocka_unit_test(what_prints_a_tracking_report_may_use_it),
    };

    subject = subject_of_arguments(count, arguments);
    alarm(PATIENCE_S);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
