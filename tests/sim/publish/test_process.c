/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of resources when a process forks, executes another program or exits: no
 * crash, no hang, nothing done twice. Every case runs in a child, so that a crash is that
 * child's.
 */
#include "sim/pool/pool_harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "driver/sim/control.h"
#include "harness/in_child.h"
#include "harness/no_leak_check.h"
#include "harness/runtime.h"

static rmm_resource_t *the_pool;
static void *the_block;

static bool is_async; /* the pool is CUDA's */

static void open_pool(void)
{
    if (is_async) {
        assert_ok(rmm_async_resource_create(NULL, &the_pool));
    } else {
        the_pool = make_pool(MIB, 0);
    }
    the_block = take(the_pool, 1000, NULL);
}

/* --- fork --------------------------------------------------------------------------- */

static int use_after_fork(void)
{
    rmm_stats_t stats = RMM_STATS_INIT;
    void *ptr = NULL;

    if (rmm_resource_alloc(the_pool, 100, 0, NULL, &ptr) != RMM_ERR_UNSUPPORTED ||
        strstr(rmm_last_error_message(), "fork") == NULL) {
        return 1;
    }
    rmm_resource_dealloc(the_pool, the_block, 1000, 0, NULL);
    if (rmm_sim_active() && !rmm_sim_fail("stream_synchronize:1")) {
        return 3;
    }
    rmm_resource_dealloc_sync(the_pool, the_block, 1000, 0);
    if (rmm_sim_active() && rmm__sim_fault_has_struck()) {
        return 4; /* CUDA was called, which does not survive fork() */
    }
    if (rmm_resource_get_stats(the_pool, &stats) != RMM_OK) {
        return 2;
    }
    rmm_resource_release(the_pool);
    return 0;
}

static int fork_and_use(void)
{
    open_pool();
    if (in_child(use_after_fork) != 0) {
        return 1;
    }
    if (stats_of(the_pool).current_bytes != 1000) {
        return 2; /* the child's free was the child's */
    }
    give(the_pool, the_block, 1000, NULL);
    rmm_resource_release(the_pool);
    return rmm_sim_allocated_bytes(0) == 0 ? 0 : 3;
}

TEST_CASE(a_forked_child_is_refused_and_harms_nothing)
{
    assert_int_equal(in_child(fork_and_use), 0);
}

static atomic_bool stop;

/* Once the process exits an allocation may fail; that ends it, and nothing else. */
static void *hammer(void *argument)
{
    void *ptr;

    while (!atomic_load(&stop) &&
           rmm_resource_alloc(the_pool, 5000, 0, NULL, &ptr) == RMM_OK) {
        rmm_resource_dealloc(the_pool, ptr, 5000, 0, NULL);
    }
    return NULL;
}

#ifndef __SANITIZE_THREAD__ /* whose own locks do not survive such a fork */
/* The child must not wait for a lock that a thread of the parent held at the fork. */
static int fork_under_load(void)
{
    pthread_t thread;
    int failures = 0;

    open_pool();
    if (pthread_create(&thread, NULL, hammer, NULL) != 0) {
        return 100;
    }
    for (int i = 0; i < 50; i++) {
        failures += in_child(use_after_fork) != 0;
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    return failures;
}

TEST_CASE(a_child_forked_amid_allocations_does_not_hang)
{
    assert_int_equal(in_child(fork_under_load), 0);
}
#endif

#ifndef __SANITIZE_THREAD__
static int use_first_time(void);

static void *use_it_elsewhere(void *argument)
{
    pthread_barrier_wait(argument);
    (void)use_first_time();
    return NULL;
}

static void spin_ns(int64_t ns)
{
    struct timespec begin, now;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * INT64_C(1000000000) + now.tv_nsec -
                 begin.tv_nsec <
             ns);
}

static int64_t fork_delay_ns;

/* Whether the driver was open at the fork is left to the clock. */
static int use_or_be_refused(void)
{
    rmm_resource_t *cuda;
    rmm_status_t status = rmm_cuda_resource_create(&cuda);

    if (status != RMM_OK) {
        return status == RMM_ERR_UNSUPPORTED &&
                       strstr(rmm_last_error_message(), "fork()") != NULL
                   ? 0
                   : 1;
    }
    rmm_resource_release(cuda);
    return use_first_time();
}

/* A thread makes the very first resource, while this one forks. */
static int fork_amid_first_use(void)
{
    pthread_barrier_t both;
    pthread_t thread;
    int failures;

    if (pthread_barrier_init(&both, NULL, 2) != 0 ||
        pthread_create(&thread, NULL, use_it_elsewhere, &both) != 0) {
        return 100;
    }
    pthread_barrier_wait(&both);
    spin_ns(fork_delay_ns);
    failures = in_child(use_or_be_refused);
    pthread_join(thread, NULL);
    return failures;
}

TEST_CASE(a_child_forked_amid_the_first_use_does_not_hang)
{
    const char *driver = getenv("RMM_DRIVER");

    if (driver == NULL || strcmp(driver, "sim") != 0) {
        skip(); /* CUDA itself does not survive this */
    }
    for (int i = 0; i < 200; i++) {
        fork_delay_ns = i * INT64_C(3000);
        assert_int_equal(in_child(fork_amid_first_use), 0);
    }
}
#endif

static int use_first_time(void)
{
    rmm_resource_t *pool = make_pool(MIB, 0);

    give(pool, take(pool, 100, NULL), 100, NULL);
    rmm_resource_release(pool);
    return 0;
}

TEST_CASE(a_child_that_starts_before_any_resource_works)
{
    assert_int_equal(in_child(use_first_time), 0);
}

/* --- descriptors -------------------------------------------------------------------- */

/* CUDA opens what it likes; this library keeps out of the way. */
static int work_without_standard_output(void)
{
    if (!rmm_sim_active()) {
        return 0;
    }
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    the_pool =
        make_pool(64 * MIB, 0); /* large enough to be poisoned by a pattern file */
    return fcntl(STDIN_FILENO, F_GETFD) == -1 && fcntl(STDOUT_FILENO, F_GETFD) == -1
               ? 0
               : 1;
}

TEST_CASE(closed_standard_descriptors_stay_closed)
{
    assert_int_equal(in_child(work_without_standard_output), 0);
}

/* --- exec --------------------------------------------------------------------------- */

static int exec_with_memory_held(void)
{
    open_pool();
    execl("/bin/true", "true", (char *)NULL);
    return 127;
}

TEST_CASE(exec_with_memory_held_works)
{
    assert_int_equal(in_child(exec_with_memory_held), 0);
}

/* --- exit --------------------------------------------------------------------------- */

static int exit_with_memory_held(void)
{
    open_pool();
    return 7;
}

TEST_CASE(exit_with_memory_held_works)
{
    assert_int_equal(in_child(exit_with_memory_held), 7);
}

static void free_and_release(void)
{
    give(the_pool, the_block, 1000, NULL);
    rmm_resource_release(the_pool);
}

static int free_in_exit_handler(void)
{
    if (atexit(free_and_release) != 0) {
        return 1;
    }
    open_pool();
    return 7;
}

TEST_CASE(an_exit_handler_may_free_and_release)
{
    assert_int_equal(in_child(free_in_exit_handler), 7);
}

static int exit_while_a_thread_allocates(void)
{
    pthread_t thread;

    open_pool();
    if (pthread_create(&thread, NULL, hammer, NULL) != 0) {
        return 100;
    }
    pthread_detach(thread);
    usleep(2000);
    return 7;
}

TEST_CASE(exit_while_a_thread_allocates_works)
{
    for (int i = 0; i < 10; i++) {
        assert_int_equal(in_child(exit_while_a_thread_allocates), 7);
    }
}

#ifndef __SANITIZE_THREAD__ /* which hangs in pthread_exit() of a forked child */
static void *work_and_end_the_process(void *argument)
{
    for (int i = 0; i < 1000; i++) {
        give(the_pool, take(the_pool, 5000, NULL), 5000, NULL);
    }
    exit(7);
}

/* CUDA's own threads would keep the process alive: the last of ours ends it. */
static int leave_main_first(void)
{
    pthread_t thread;

    open_pool();
    if (pthread_create(&thread, NULL, work_and_end_the_process, NULL) != 0) {
        return 100;
    }
    pthread_exit(NULL);
}

TEST_CASE(a_thread_may_outlive_main)
{
    assert_int_equal(in_child(leave_main_first), 7);
}
#endif

/* The same where the driver owns the blocks. */
TEST_CASE(async_memory_survives_all_of_that)
{
    is_async = true;
    assert_int_equal(in_child(fork_and_use), 0);
    assert_int_equal(in_child(exit_with_memory_held), 7);
    assert_int_equal(in_child(free_in_exit_handler), 7);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(in_child(exit_while_a_thread_allocates), 7);
    }
#ifndef __SANITIZE_THREAD__
    assert_int_equal(in_child(leave_main_first), 7);
#endif
    is_async = false;
}

/* --- default resources ---------------------------------------------------------------- */

static rmm_resource_t *get_default(void)
{
    rmm_resource_t *mr = NULL;

    assert_ok(rmm_get_per_device_resource(0, &mr));
    return mr;
}

static void open_default(void)
{
    open_pool();
    assert_ok(rmm_set_per_device_resource(0, the_pool, NULL));
}

static int use_default_after_fork(void)
{
    rmm_resource_t *mr = get_default();
    void *ptr;

    if (mr != the_pool ||
        rmm_resource_alloc(mr, 100, 0, NULL, &ptr) != RMM_ERR_UNSUPPORTED) {
        return 1;
    }
    rmm_resource_release(mr);
    return 0;
}

static int fork_and_use_default(void)
{
    open_default();
    if (in_child(use_default_after_fork) != 0) {
        return 1;
    }
    rmm_resource_release(get_default());
    give(the_pool, the_block, 1000, NULL);
    if (rmm_reset_per_device_resource(0) != RMM_OK) {
        return 2;
    }
    rmm_resource_release(the_pool);
    return rmm_sim_allocated_bytes(0) == 0 ? 0 : 3;
}

TEST_CASE(a_forked_child_gets_a_default_that_refuses)
{
    assert_int_equal(in_child(fork_and_use_default), 0);
}

static int exit_with_a_default(void)
{
    open_default();
    rmm_resource_release(the_pool); /* the table keeps it */
    return 7;
}

TEST_CASE(exit_with_a_default_set_works)
{
    assert_int_equal(in_child(exit_with_a_default), 7);
}

/* Late in the exit an allocation may fail; that is all. */
static void use_default(void)
{
    rmm_resource_t *mr;
    void *ptr;

    if (rmm_get_per_device_resource(0, &mr) != RMM_OK) {
        return;
    }
    if (rmm_resource_alloc(mr, 1000, 0, NULL, &ptr) == RMM_OK) {
        rmm_resource_dealloc(mr, ptr, 1000, 0, NULL);
    }
    rmm_resource_dealloc(the_pool, the_block, 1000, 0, NULL);
    rmm_resource_release(mr);
}

static bool use_default_at_the_end;

__attribute__((destructor)) static void static_destructor(void)
{
    if (use_default_at_the_end) {
        use_default();
    }
}

static int use_default_in_exit_handler(void)
{
    if (atexit(use_default) != 0) { /* runs after those that the driver registers */
        return 1;
    }
    open_default();
    return 7;
}

static int use_default_in_static_destructor(void)
{
    use_default_at_the_end = true;
    open_default();
    return 7;
}

TEST_CASE(exit_handlers_and_destructors_may_use_the_default)
{
    assert_int_equal(in_child(use_default_in_exit_handler), 7);
    assert_int_equal(in_child(use_default_in_static_destructor), 7);
}

static void *hammer_default(void *argument)
{
    rmm_resource_t *mr;
    void *ptr;

    while (rmm_get_per_device_resource(0, &mr) == RMM_OK) {
        if (rmm_resource_alloc(mr, 5000, 0, NULL, &ptr) == RMM_OK) {
            rmm_resource_dealloc(mr, ptr, 5000, 0, NULL);
        }
        rmm_resource_release(mr);
    }
    return NULL;
}

static int exit_while_a_thread_uses_the_default(void)
{
    pthread_t thread;

    open_default();
    if (pthread_create(&thread, NULL, hammer_default, NULL) != 0) {
        return 100;
    }
    pthread_detach(thread);
    usleep(2000);
    return 7;
}

TEST_CASE(exit_while_a_thread_uses_the_default_works)
{
    for (int i = 0; i < 10; i++) {
        assert_int_equal(in_child(exit_while_a_thread_uses_the_default), 7);
    }
}

/* A GPU cannot be asked for in this process: a child of a process that uses one cannot. */
static int has_driver(void)
{
    rmm_status_t status;

    if (rmm__driver(&status) == NULL && status == RMM_ERR_NO_DEVICE) {
        printf("skipped: %s\n", rmm_last_error_message());
        return 77;
    }
    return 0;
}

int main(void)
{
    if (in_child(has_driver) == 77) {
        return 77;
    }
    return harness_run_cases(runtime_setup, runtime_teardown);
}
