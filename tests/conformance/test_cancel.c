/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No function of the library is a cancellation point, whichever resource it is called for: a
 * thread whose cancellation is pending, so that the first point of all would end it, makes, uses,
 * trims and ends each resource to the end of the case. And a thread that is cancelled while it
 * waits, or inside a function of the program's, leaves nothing behind: other threads go on.
 */
#include "harness/runtime.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "conformance/subjects.h"

#define PATIENCE_S 100
#define THREADS 4
#define ROUNDS 12
/* Sanitizers report a refusal of host memory themselves, and are cancelled in that. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MOST MIB
#else
#define MOST PIB
#endif

static const subject_t *subject;

/* Where a thread was that did not come to its end. */
static _Thread_local const char **progress;

static void at(const char *step)
{
    *progress = step;
}

static void use(rmm_resource_t *mr)
{
    const size_t sizes[] = {1000, 300000, 40 * MIB, 0};
    size_t refused =
        (rmm_resource_properties(mr) & RMM_HOST_ACCESSIBLE) != 0 ? MOST : PIB;
    void *blocks[] = {NULL, NULL, NULL, NULL};

    for (size_t i = 0; i < 4; i++) {
        at("an allocation");
        (void)!rmm_resource_alloc(mr, sizes[i], 0, NULL, &blocks[i]);
    }
    at("a refusal");
    if (rmm_resource_alloc(mr, refused, 0, NULL, &blocks[3]) == RMM_OK) {
        rmm_resource_dealloc(mr, blocks[3], refused, 0, NULL);
    }
    for (size_t i = 0; i < 3; i++) {
        at("a free");
        rmm_resource_dealloc(mr, blocks[i], sizes[i], 0, NULL);
    }
    at("a refused free");
    rmm_resource_dealloc(mr, &blocks, 1000, 0, NULL);
    at("the synchronous functions");
    if (rmm_resource_alloc_sync(mr, 1000, 0, &blocks[0]) == RMM_OK) {
        rmm_resource_dealloc_sync(mr, blocks[0], 1000, 0);
    }
    at("a trim");
    (void)!rmm_resource_trim(mr, 0);
}

static void live(rmm_status_t (*make)(rmm_resource_t **out))
{
    rmm_resource_t *mr;

    at("its creation");
    if (make(&mr) == RMM_OK) {
        use(mr);
        at("its release");
        rmm_resource_release(mr);
    }
    at(NULL);
}

static rmm_status_t make_subject(rmm_resource_t **out)
{
    return subject_make(subject, out);
}

/* What is cancelled has no variables: the address sanitizer does not see that their memory is
 * free again. */
static void *live_while_cancelled(void *argument)
{
    progress = argument;
    pthread_cancel(pthread_self());
    live(make_subject);
    pthread_testcancel();
    return argument;
}

static void run_cancelled(void *(*body)(void *))
{
    const char *where = "nowhere";
    pthread_t thread;
    void *result;

    assert_int_equal(pthread_create(&thread, NULL, body, &where), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    if (where != NULL) {
        fail_msg("cancelled in %s", where);
    }
}

static void no_function_is_a_cancellation_point(void **state)
{
    run_cancelled(live_while_cancelled);
}

static void no_function_is_one_while_all_is_logged(void **state)
{
    char path[] = "/tmp/rmm-cancel.XXXXXX";

    close(mkstemp(path));
    assert_int_equal(rmm_log_to_file(path), RMM_OK);
    assert_int_equal(rmm_log_set_level(RMM_LEVEL_DEBUG), RMM_OK);
    run_cancelled(live_while_cancelled);
    assert_int_equal(rmm_log_set_level(RMM_LEVEL_OFF), RMM_OK);
    assert_int_equal(rmm_log_to_callback(NULL, NULL), RMM_OK);
    assert_int_equal(unlink(path), 0);
}

/* --- other threads -------------------------------------------------------------------- */

static rmm_resource_t *shared;
static atomic_bool stop;

static void *use_until_cancelled(void *argument)
{
    static _Thread_local const char *where;

    progress = &where;
    while (!atomic_load(&stop)) {
        use(shared);
        pthread_testcancel();
    }
    return NULL;
}

/* Cancelled at any moment, many times; one that goes on must not wait for ever. */
static void threads_that_are_cancelled_stop_no_other(void **state)
{
    const char *where;

    assert_int_equal(subject_make(subject, &shared), RMM_OK);
    atomic_store(&stop, false);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];

        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(
                pthread_create(&threads[i], NULL, use_until_cancelled, NULL), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 200000}, NULL);
            pthread_cancel(threads[i]);
        }
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        }
    }
    progress = &where;
    use(shared);
    rmm_resource_release(shared);
}

/* --- functions of the program ----------------------------------------------------------- */

static rmm_resource_t *memory;
static int calls;

/* A point of its own: the cancellation waits for the end of the call of the library. */
static rmm_status_t
take(size_t bytes, size_t align, rmm_stream_t stream, void *payload, void **ptr_out)
{
    calls++;
    pthread_testcancel();
    return rmm_resource_alloc(memory, bytes, align, stream, ptr_out);
}

static void
give(void *ptr, size_t bytes, size_t align, rmm_stream_t stream, void *payload)
{
    pthread_testcancel();
    rmm_resource_dealloc(memory, ptr, bytes, align, stream);
}

static bool give_up(size_t bytes, void *arg)
{
    calls++;
    pthread_testcancel();
    return false;
}

static void sink(const char *rows, size_t length, void *arg)
{
    calls++;
    pthread_testcancel();
}

static rmm_status_t make_over_functions(rmm_resource_t **out)
{
    rmm_custom_resource_ops_t ops = RMM_CUSTOM_RESOURCE_OPS_INIT;
    rmm_failure_callback_options_t failures = RMM_FAILURE_CALLBACK_OPTIONS_INIT;
    rmm_logging_options_t logging = RMM_LOGGING_OPTIONS_INIT;
    rmm_resource_t *custom = NULL, *built = NULL, *logged = NULL;
    rmm_status_t status;

    ops.alloc = take;
    ops.dealloc = give;
    ops.properties = rmm_resource_properties(memory);
    status = rmm_custom_resource_create(&ops, NULL, &custom);
    if (status == RMM_OK) {
        status = subject->build(custom, &built);
    }
    logging.sink = sink;
    logging.auto_flush = true;
    if (status == RMM_OK) {
        status = rmm_logging_adaptor_create(built, &logging, &logged);
    }
    failures.callback = give_up;
    if (status == RMM_OK) {
        status = rmm_failure_callback_adaptor_create(logged, &failures, out);
    }
    rmm_resource_release(logged);
    rmm_resource_release(built);
    rmm_resource_release(custom);
    return status;
}

static void *use_functions_while_cancelled(void *argument)
{
    progress = argument;
    pthread_cancel(pthread_self());
    live(make_over_functions);
    pthread_testcancel();
    return argument;
}

static void a_function_of_the_program_is_left_by_return_only(void **state)
{
    if (subject->build == NULL) { /* it has no upstream whose functions could run */
        return;
    }
    assert_int_equal(subject->base(&memory), RMM_OK);
    calls = 0;
    run_cancelled(use_functions_while_cancelled);
    assert_int_not_equal(calls, 0);
    rmm_resource_release(memory);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_function_is_a_cancellation_point),
        cmocka_unit_test(no_function_is_one_while_all_is_logged),
        cmocka_unit_test(threads_that_are_cancelled_stop_no_other),
        cmocka_unit_test(a_function_of_the_program_is_left_by_return_only),
    };
    runtime_t runtime;
    int status;

    subject = subject_of_arguments(argc, argv);
    runtime_open(&runtime); /* a look at the machine makes a segment already */
    status = subject_look_at_machine(subject);
    if (status == 0) {
        alarm(PATIENCE_S);
        status = cmocka_run_group_tests(tests, NULL, NULL);
    }
    runtime_close(&runtime);
    return status;
}
