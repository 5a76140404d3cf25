/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of every subject when its process forks or exits while memory is held: no
 * crash, no hang, nothing done twice. Each case runs in a child, so that a crash is that
 * child's; this process asks for no GPU, because a child of one that did cannot.
 *
 *   test_exit SUBJECT
 */
#include "harness/harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rmm/sim.h>

#include "conformance/subjects.h"
#include "driver/driver.h"
#include "harness/in_child.h"
#include "harness/no_leak_check.h"

enum { BYTES = 5000, MOST_FORKS = 5, SKIPPED = 77 };

static const subject_t *subject;
static rmm_resource_t *mr;
static void *block;

/* A block that the device has written to, unless only the host can. */
static bool hold(void)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);

    if (subject_make(subject, &mr) != RMM_OK ||
        rmm_resource_alloc(mr, BYTES, 0, NULL, &block) != RMM_OK) {
        fprintf(stderr, "%s\n", rmm_last_error_message());
        return false;
    }
    return (rmm_resource_properties(mr) & RMM_DEVICE_ACCESSIBLE) == 0 ||
           driver->memset_async(block, 1, BYTES, NULL) == RMM_DRIVER_OK;
}

static void free_and_release(void)
{
    rmm_resource_dealloc(mr, block, BYTES, 0, NULL);
    rmm_resource_release(mr);
    mr = NULL;
}

/* --- exit --------------------------------------------------------------------------- */

static int hold_and_exit(void)
{
    return hold() ? 7 : 1;
}

static void exit_with_memory_held(void **state)
{
    assert_int_equal(in_child(hold_and_exit), 7);
}

/* Registered before the library's first use, so it runs after what that registers. */
static int free_in_an_early_handler(void)
{
    return atexit(free_and_release) == 0 && hold() ? 7 : 1;
}

static int free_in_a_late_handler(void)
{
    return hold() && atexit(free_and_release) == 0 ? 7 : 1;
}

static void an_exit_handler_may_free_and_release(void **state)
{
    assert_int_equal(in_child(free_in_an_early_handler), 7);
    assert_int_equal(in_child(free_in_a_late_handler), 7);
}

static bool destructor_frees;

__attribute__((destructor)) static void destroy_statics(void)
{
    if (destructor_frees) {
        free_and_release();
    }
}

static int free_in_a_destructor(void)
{
    destructor_frees = hold();
    return destructor_frees ? 7 : 1;
}

static void a_static_destructor_may_free_and_release(void **state)
{
    assert_int_equal(in_child(free_in_a_destructor), 7);
}

static void *allocate_for_ever(void *argument)
{
    void *ptr;

    while (rmm_resource_alloc(mr, BYTES, 0, NULL, &ptr) == RMM_OK) {
        rmm_resource_dealloc(mr, ptr, BYTES, 0, NULL);
    }
    return NULL; /* once the process exits an allocation may fail */
}

static int exit_amid_allocations(void)
{
    pthread_t thread;

    if (!hold() || pthread_create(&thread, NULL, allocate_for_ever, NULL) != 0) {
        return 1;
    }
    pthread_detach(thread);
    usleep(2000);
    return 7;
}

static void exit_while_a_thread_allocates(void **state)
{
    for (int i = 0; i < MOST_FORKS; i++) {
        assert_int_equal(in_child(exit_amid_allocations), 7);
    }
}

#ifndef __SANITIZE_THREAD__ /* which hangs in pthread_exit() of a forked child */
static void *work_and_end_the_process(void *argument)
{
    for (int i = 0; i < 200; i++) {
        void *ptr;

        if (rmm_resource_alloc(mr, BYTES, 0, NULL, &ptr) != RMM_OK) {
            exit(1);
        }
        rmm_resource_dealloc(mr, ptr, BYTES, 0, NULL);
    }
    free_and_release();
    exit(7);
}

static int leave_main_first(void)
{
    pthread_t thread;

    if (!hold() || pthread_create(&thread, NULL, work_and_end_the_process, NULL) != 0) {
        return 1;
    }
    pthread_exit(NULL);
}

static void a_thread_may_outlive_main(void **state)
{
    assert_int_equal(in_child(leave_main_first), 7);
}
#endif

/* --- fork --------------------------------------------------------------------------- */

static int use_after_fork(void)
{
    void *mark = &mark;
    void *ptr = mark;

    if (rmm_resource_alloc(mr, 100, 0, NULL, &ptr) != RMM_ERR_UNSUPPORTED ||
        ptr != mark || strstr(rmm_last_error_message(), "fork") == NULL) {
        return 2;
    }
    rmm_resource_dealloc(mr, block, BYTES, 0, NULL);
    rmm_resource_release(mr);
    return 7;
}

static int fork_and_use(void)
{
    rmm_stats_t stats = RMM_STATS_INIT;
    int status;

    if (!hold()) {
        return 1;
    }
    status = in_child(use_after_fork);
    if (status != 7) {
        return status;
    }
    if (rmm_resource_get_stats(mr, &stats) != RMM_OK || stats.current_bytes != BYTES) {
        return 3; /* the child's free was the child's */
    }
    free_and_release();
    return rmm_sim_active() && rmm_sim_allocated_bytes(0) != 0 ? 4 : 7;
}

static void a_forked_child_is_refused_and_harms_nothing(void **state)
{
    assert_int_equal(in_child(fork_and_use), 7);
}

/* --- all of it ---------------------------------------------------------------------- */

/* 0, or SKIPPED with the reason printed. */
static int is_supported(void)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);

    if (driver != NULL) {
        status = subject_make(subject, &mr);
    }
    if (status == RMM_ERR_NO_DEVICE ||
        (status == RMM_ERR_UNSUPPORTED && !rmm_sim_active())) {
        printf("skipped: %s\n", rmm_last_error_message());
        return SKIPPED;
    }
    return status == RMM_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_with_memory_held),
        cmocka_unit_test(an_exit_handler_may_free_and_release),
        cmocka_unit_test(a_static_destructor_may_free_and_release),
        cmocka_unit_test(exit_while_a_thread_allocates),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(a_thread_may_outlive_main),
#endif
        cmocka_unit_test(a_forked_child_is_refused_and_harms_nothing),
    };
    int supported;

    subject = subject_of_arguments(argc, argv);
    supported = in_child(is_supported);
    return supported != 0 ? supported : cmocka_run_group_tests(tests, NULL, NULL);
}
