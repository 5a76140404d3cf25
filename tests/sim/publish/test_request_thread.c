/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that obeys operators while a program is idle: what it obeys, and its life beside
 * threads, forks, captures, callbacks and the end of the process. The daemon's side, over a mount:
 * fuse.obeys_while_the_program_is_idle.
 */
#include "sim/pool/pool_harness.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/request_thread.h>

#include "driver/sim/control.h"
#include "harness/in_child.h"
#include "harness/limit_requests.h"
#include "harness/no_leak_check.h"
#include "harness/runtime.h"

enum { NAME_BYTES = 32, STATUS_BYTES = 4096 };

/* The numbers of this process's threads of that name, and the last one's. */
static int request_threads(long *tid_out)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry;
    int count = 0;

    assert_non_null(tasks);
    while ((entry = readdir(tasks)) != NULL) {
        char path[NAME_BYTES + sizeof(entry->d_name)], name[NAME_BYTES] = "";
        FILE *file;

        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
        file = fopen(path, "r");
        if (file != NULL) {
            if (fgets(name, sizeof(name), file) != NULL &&
                strcmp(name, "rmm-requests\n") == 0) {
                *tid_out = strtol(entry->d_name, NULL, 10);
                count++;
            }
            fclose(file);
        }
    }
    closedir(tasks);
    return count;
}

static void expect_threads(int expected)
{
    long tid;

    while (request_threads(&tid) != expected) { /* it takes its name when it runs */
        sched_yield();
    }
}

/* The end of a join comes some moments before the entry in /proc goes. */
static int set_up(void **state)
{
    rmm_resource_release(make_cuda());
    want_nothing();
    expect_threads(0);
    assert_ok(rmm_request_thread_start());
    return 0;
}

static int tear_down(void **state)
{
    rmm_request_thread_stop();
    want_nothing();
    assert_int_equal(rmm_sim_violations(), 0);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, set_up, tear_down)

static void wait_for_trim(void)
{
    wake_request_thread();
    while (!trim_is_done()) {
        sched_yield();
    }
}

static rmm_resource_t *caching_pool(size_t bytes)
{
    rmm_resource_t *pool = make_pool(0, 0);

    give(pool, take(pool, bytes, NULL), bytes, NULL);
    return pool;
}

/* --- before a resource, and the environment --------------------------------------------- */

#define CHECK_THAT(condition)                                                          \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
            return 1;                                                                  \
        }                                                                              \
    } while (0)

static int starts_with_the_first_resource(void)
{
    rmm_resource_t *mr;
    long tid;

    CHECK_THAT(rmm_request_thread_start() == RMM_OK);
    CHECK_THAT(request_threads(&tid) == 0);
    CHECK_THAT(rmm_cuda_resource_create(&mr) == RMM_OK);
    expect_threads(1);
    rmm_resource_release(mr);
    return 0;
}

static int is_not_there(void)
{
    rmm_resource_t *mr;
    long tid;

    CHECK_THAT(rmm_cuda_resource_create(&mr) == RMM_OK);
    CHECK_THAT(request_threads(&tid) == 0);
    rmm_resource_release(mr);
    return 0;
}

static int is_started_by_the_environment(void)
{
    rmm_resource_t *mr;

    setenv("RMM_REQUEST_THREAD", "1", 1);
    CHECK_THAT(rmm_cuda_resource_create(&mr) == RMM_OK);
    expect_threads(1);
    rmm_request_thread_stop();
    rmm_resource_release(mr);
    CHECK_THAT(rmm_cuda_resource_create(&mr) == RMM_OK); /* not again */
    expect_threads(0);
    rmm_resource_release(mr);
    return 0;
}

static unsigned warnings;

static void count_warning(rmm_log_level_t level, const char *message, void *arg)
{
    warnings += strstr(message, "RMM_REQUEST_THREAD is 'yes'") != NULL;
}

static int warns_of_a_value(void)
{
    setenv("RMM_REQUEST_THREAD", "yes", 1);
    CHECK_THAT(rmm_log_to_callback(count_warning, NULL) == RMM_OK);
    CHECK_THAT(rmm_log_set_level(RMM_LEVEL_WARN) == RMM_OK);
    CHECK_THAT(is_not_there() == 0 && is_not_there() == 0);
    CHECK_THAT(warnings == 1);
    return 0;
}

static int stays_away_at_zero(void)
{
    setenv("RMM_REQUEST_THREAD", "0", 1);
    return is_not_there();
}

/* First: nothing of the library was used yet. */
TEST_CASE(begins_when_the_first_resource_is_there_if_it_is_wanted)
{
    assert_int_equal(in_child(starts_with_the_first_resource), 0);
    assert_int_equal(in_child(is_not_there), 0);
    assert_int_equal(in_child(is_started_by_the_environment), 0);
    assert_int_equal(in_child(stays_away_at_zero), 0);
    assert_int_equal(in_child(warns_of_a_value), 0);
}

static int ends_amid_requests(void)
{
    rmm_resource_t *pool = make_pool(0, 0);

    CHECK_THAT(rmm_request_thread_start() == RMM_OK);
    for (int i = 0; i < 10; i++) {
        give(pool, take(pool, 8 * MIB, NULL), 8 * MIB, NULL);
        ask_trim(pool->instance_id, 0);
        wake_request_thread();
    }
    return 0; /* exit(), with the pool there */
}

TEST_CASE(ends_with_the_process_amid_requests)
{
    for (int i = 0; i < 20; i++) {
        assert_int_equal(in_child(ends_amid_requests), 0);
    }
}

#ifndef __SANITIZE_THREAD__ /* which hangs in pthread_exit() of a forked child */
/* The process is over with its last thread but that of requests. */
static int leaves_main_by_pthread_exit(void)
{
    (void)make_pool(0, 0);
    CHECK_THAT(rmm_request_thread_start() == RMM_OK);
    pthread_exit(NULL);
}

TEST_CASE(ends_when_it_is_the_last_thread)
{
    assert_int_equal(in_child(leaves_main_by_pthread_exit), 0);
}
#endif

/* --- what it obeys ---------------------------------------------------------------------- */

CASE(obeys_trims_of_an_idle_program)
{
    rmm_resource_t *pool = caching_pool(8 * MIB);

    for (int i = 0; i < 50; i++) {
        give(pool, take(pool, 8 * MIB, NULL), 8 * MIB, NULL);
        ask_trim(
            i % 2 == 0 ? pool->instance_id
                       : RMM_TRIM_LOCATION | pool->accounting.location,
            0);
        wait_for_trim();
        assert_int_equal(stats_of(pool).reserved_bytes, 0);
    }
    rmm_resource_release(pool);
}

CASE(gives_back_what_is_above_a_limit)
{
    rmm_resource_t *pool = caching_pool(64 * MIB);
    void *ptr;

    limit_location(pool, 16 * MIB);
    wake_request_thread();
    while (location_reserved(pool) > 16 * MIB) {
        sched_yield();
    }
    want_nothing();
    ptr = take(pool, 64 * MIB, NULL);
    limit_location(pool, 16 * MIB);
    wake_request_thread();
    give(pool, ptr, 64 * MIB, NULL); /* later */
    while (location_reserved(pool) > 16 * MIB) {
        wake_request_thread();
        sched_yield();
    }
    rmm_resource_release(pool);
}

CASE(reports_the_blocks_of_an_idle_program)
{
    rmm_resource_t *pool = caching_pool(8 * MIB);

    ask_report(100);
    wake_request_thread();
    while (!report_is_done()) {
        sched_yield();
    }
    rmm_resource_release(pool);
}

CASE(obeys_without_a_wake)
{
    rmm_resource_t *pool = caching_pool(8 * MIB);

    ask_trim(pool->instance_id, 0); /* of an older daemon */
    while (!trim_is_done()) {
        sched_yield();
    }
    assert_int_equal(stats_of(pool).reserved_bytes, 0);
    rmm_resource_release(pool);
}

CASE(obeys_for_each_device)
{
    rmm_resource_t *pool;

    assert_cuda(rmm__sim_device_set(1));
    pool = caching_pool(8 * MIB);
    assert_cuda(rmm__sim_device_set(0));
    ask_trim(pool->instance_id, 0);
    wait_for_trim();
    assert_int_equal(stats_of(pool).reserved_bytes, 0);
    rmm_resource_release(pool);
}

/* The thread must not make the context of a device that the program has not used. */
CASE(leaves_unused_devices_alone)
{
    int active = 1;
    rmm_resource_t *pool = caching_pool(8 * MIB);

    ask_trim(RMM_TRIM_LOCATION | 2, 0);
    wait_for_trim();
    ask_trim(RMM_TRIM_LOCATION | pool->accounting.location, 0);
    wait_for_trim();
    assert_cuda(sim_driver()->device_active(2, &active));
    assert_int_equal(active, 0);
    rmm_resource_release(pool);
}

/* --- captures, threads, callbacks ------------------------------------------------------- */

CASE(ruins_no_capture)
{
    rmm_resource_t *pool = caching_pool(8 * MIB);
    rmm_stream_t stream;
    rmm_sim_graph_t graph;
    void *ptr;

    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    assert_cuda(rmm_sim_begin_capture(stream, 0));
    ptr = take(pool, 1000, stream);
    ask_trim(pool->instance_id, 0);
    wait_for_trim();
    give(pool, ptr, 1000, stream);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_cuda(rmm_sim_graph_launch(graph, stream));
    assert_cuda(rmm_sim_device_synchronize());
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_ok(rmm_stream_destroy(stream));
    rmm_resource_release(pool);
}

static void *allocate_and_free(void *arg)
{
    for (int i = 0; i < 2000; i++) {
        give(arg, take(arg, MIB, NULL), MIB, NULL);
    }
    return NULL;
}

CASE(obeys_beside_threads_that_allocate)
{
    rmm_resource_t *pool = caching_pool(8 * MIB);
    pthread_t threads[3];

    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_free, pool), 0);
    }
    for (int i = 0; i < 20; i++) {
        ask_trim(RMM_TRIM_LOCATION | pool->accounting.location, 0);
        wait_for_trim();
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    rmm_resource_release(pool);
}

static void *start_and_stop(void *arg)
{
    for (int i = 0; i < 100; i++) {
        assert_ok(rmm_request_thread_start());
        if (i % 3 == 0) {
            rmm_request_thread_stop();
        }
    }
    return NULL;
}

CASE(starts_and_stops_from_any_thread)
{
    pthread_t threads[3];

    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, start_and_stop, NULL), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    rmm_request_thread_stop();
    rmm_request_thread_stop();
    expect_threads(0);
    assert_ok(rmm_request_thread_start());
    assert_ok(rmm_request_thread_start());
    expect_threads(1);
}

CASE(blocks_signals)
{
    char path[NAME_BYTES * 2], line[STATUS_BYTES];
    unsigned long long blocked = 0;
    long tid = 0;
    FILE *file;

    expect_threads(1);
    assert_int_equal(request_threads(&tid), 1);
    snprintf(path, sizeof(path), "/proc/self/task/%ld/status", tid);
    file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        (void)sscanf(line, "SigBlk: %llx", &blocked);
    }
    fclose(file);
    for (int signal = 1; signal < 32; signal++) {
        bool may_be_blocked = signal != SIGKILL && signal != SIGSTOP;
        bool is_fault = signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE ||
                        signal == SIGILL || signal == SIGTRAP || signal == SIGSYS;

        assert_int_equal((blocked >> (signal - 1)) & 1, may_be_blocked && !is_fault);
    }
}

/* --- forks ------------------------------------------------------------------------------ */

static int has_no_thread(void)
{
    long tid;

    CHECK_THAT(request_threads(&tid) == 0);
#ifndef __SANITIZE_THREAD__ /* which knows no threads in a child */
    CHECK_THAT(rmm_request_thread_start() == RMM_OK); /* for nothing, but it may */
    rmm_request_thread_stop();
#endif
    return 0;
}

CASE(is_not_in_a_forked_child)
{
    rmm_resource_t *pool = caching_pool(8 * MIB);

    for (int i = 0; i < 20; i++) {
        ask_trim(pool->instance_id, 0);
        wake_request_thread();
        assert_int_equal(in_child(has_no_thread), 0);
    }
    ask_trim(pool->instance_id, 0);
    wait_for_trim();
    rmm_resource_release(pool);
}

int main(void)
{
    return harness_run_cases(runtime_setup, runtime_teardown);
}
