/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread whose cancellation is pending comes to the end of every function that no suite of
 * tests/conformance calls: reports, dumps, logs, streams, containers, defaults. See
 * core/uncancelled.h.
 */
#include "sim/pool/pool_harness.h"

#include "harness/runtime.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rmm/rmm.h>

static const char *step = "nothing";
static char folder[64];
static int report; /* opened by the main thread: open() is a cancellation point */

static const char *path_of(const char *name)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void use_streams_and_containers(void)
{
    rmm_stream_t stream;
    rmm_device_buffer_t buffer;
    const size_t bytes = 1000;

    step = "a stream";
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    step = "a buffer";
    assert_ok(rmm_device_buffer_init(&buffer, bytes, stream, NULL));
    assert_ok(rmm_stream_synchronize(stream));
    step = "its end";
    rmm_device_buffer_fini(&buffer);
    step = "the end of a stream";
    assert_ok(rmm_stream_destroy(stream));
}

/* In a fresh process this also opens the driver and the segment. */
static void use_defaults(void)
{
    rmm_resource_t *mr;
    void *ptr;

    step = "the default";
    setenv("RMM_RESOURCE", "logging+pool", 1);
    setenv("RMM_LOG_FILE", path_of("rows"), 1);
    assert_ok(rmm_get_per_device_resource(0, &mr));
    step = "an allocation of PyTorch";
    ptr = rmm_torch_malloc(1000, 0, NULL);
    rmm_torch_free(ptr, 1000, 0, NULL);
    step = "the flush of a log";
    assert_ok(rmm_logging_flush(mr));
    rmm_resource_release(mr);
    unsetenv("RMM_RESOURCE");
    unsetenv("RMM_LOG_FILE");
    step = "the end of the default";
    assert_ok(rmm_reset_per_device_resource(0));
}

static void dump_and_report(void)
{
    rmm_arena_options_t options = RMM_ARENA_OPTIONS_INIT;
    rmm_resource_t *cuda, *arena, *tracking;
    void *ptr;

    step = "the dump of an arena";
    assert_ok(rmm_cuda_resource_create(&cuda));
    options.dump_on_failure = 1;
    options.dump_path = path_of("dump");
    assert_ok(rmm_arena_resource_create(cuda, &options, &arena));
    assert_int_not_equal(
        rmm_resource_alloc(arena, (size_t)1 << 40, 0, NULL, &ptr), RMM_OK);
    step = "a report of live blocks";
    assert_ok(rmm_tracking_adaptor_create(cuda, NULL, &tracking));
    assert_ok(rmm_resource_alloc(tracking, 1000, 0, NULL, &ptr));
    assert_ok(rmm_tracking_report(tracking, report));
    rmm_resource_dealloc(tracking, ptr, 1000, 0, NULL);
    step = "releases";
    rmm_resource_release(tracking);
    rmm_resource_release(arena);
    rmm_resource_release(cuda);
}

static void *use_all(void *argument)
{
    pthread_cancel(pthread_self());
    use_defaults();
    use_streams_and_containers();
    dump_and_report();
    step = NULL;
    pthread_testcancel();
    return argument;
}

TEST_CASE(reports_containers_and_defaults_are_no_cancellation_points)
{
    pthread_t thread;
    void *result;

    report = open(path_of("report"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(pthread_create(&thread, NULL, use_all, NULL), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    if (step != NULL) {
        fail_msg("cancelled in %s", step);
    }
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_int_equal(access(path_of("dump"), F_OK), 0);
    close(report);
}

int main(void)
{
    int failed;

    snprintf(folder, sizeof(folder), "/tmp/rmm-cancelled.XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    failed = harness_run_cases(runtime_setup, runtime_teardown);
    unlink(path_of("rows"));
    unlink(path_of("report"));
    unlink(path_of("dump"));
    return rmdir(folder) != 0 || failed;
}
