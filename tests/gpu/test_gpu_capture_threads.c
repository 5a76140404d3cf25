/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One capture on the per-thread default streams of two threads, on a real GPU. Both streams
 * have one handle, and CUDA tells no id of a stream that captures: the library has to tell
 * them apart, or both branches of the graph get one block and write it at once.
 *
 * Without a usable GPU the program says so and exits 77.
 */
#include "gpu/gpu_harness.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rmm/rmm.h>

#include "driver/driver.h"
#include "gpu/makers.h"

static const rmm_driver_t *driver;

#define BLOCK (4 * MIB)
#define HELD (4 * BLOCK) /* room for both branches' blocks */

/* --- the capture ------------------------------------------------------------------------ */

/* What a call on stream 0 is in a file compiled with CUDA_API_PER_THREAD_DEFAULT_STREAM. */
cudaError_t
cudaStreamBeginCapture_ptsz(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t *graph);

enum { BRANCHES = 2, BRANCH_NODES = 50, BRANCH_LAUNCHES = 20 };

/* One thread's part of the capture. What fails is kept: a thread of its own cannot end the
 * test, and the other must not wait for it in vain. */
typedef struct branch {
    rmm_resource_t *mr;
    rmm_driver_event_t fork, join;
    pthread_barrier_t steps; /* the branch is captured; the capture has ended */
    unsigned char *seen;     /* pinned: what the block holds at the end */
    void *block;
    rmm_stream_key_t key;
    rmm_status_t status;
    int error;
} branch_t;

/* Writes a block over and over, and copies it out: long enough for the other branch to be
 * under way as well. */
static void use_in_own_stream(branch_t *branch, int value)
{
    rmm_stream_t stream = RMM_STREAM_PER_THREAD;

    branch->error |= driver->stream_key(stream, &branch->key);
    branch->status = rmm_resource_alloc(branch->mr, BLOCK, 0, stream, &branch->block);
    if (branch->status != RMM_OK) {
        return;
    }
    for (int i = 0; i < BRANCH_NODES; i++) {
        branch->error |= driver->memset_async(branch->block, value, BLOCK, stream);
    }
    branch->error |= driver->memcpy_async(branch->seen, branch->block, BLOCK, stream);
    rmm_resource_dealloc(branch->mr, branch->block, BLOCK, 0, stream);
}

static void *capture_a_branch(void *argument)
{
    branch_t *branch = argument;

    branch->error |= (int)cudaSetDevice(0);
    branch->error |= driver->stream_wait_event(RMM_STREAM_PER_THREAD, branch->fork);
    use_in_own_stream(branch, 2);
    branch->error |= driver->event_record(branch->join, RMM_STREAM_PER_THREAD);
    pthread_barrier_wait(&branch->steps);
    pthread_barrier_wait(&branch->steps);
    return NULL;
}

/* Captures through stream 0 as a file compiled for per-thread default streams does, while
 * the library is told of RMM_STREAM_PER_THREAD: both are one stream. */
static cudaGraph_t capture_two_branches(branch_t branches[BRANCHES])
{
    branch_t *other = &branches[1];
    cudaGraph_t graph = NULL;
    pthread_t thread;

    assert_int_equal(pthread_barrier_init(&other->steps, NULL, 2), 0);
    assert_cuda(cudaStreamBeginCapture_ptsz(NULL, cudaStreamCaptureModeRelaxed));
    assert_cuda(driver->event_record(other->fork, RMM_STREAM_PER_THREAD));
    use_in_own_stream(&branches[0], 1);
    assert_int_equal(pthread_create(&thread, NULL, capture_a_branch, other), 0);
    pthread_barrier_wait(&other->steps);
    branches[0].error |= driver->stream_wait_event(RMM_STREAM_PER_THREAD, other->join);
    branches[0].error |= (int)cudaStreamEndCapture_ptsz(NULL, &graph);
    pthread_barrier_wait(&other->steps);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_barrier_destroy(&other->steps), 0);
    for (int i = 0; i < BRANCHES; i++) {
        assert_ok(branches[i].status);
        assert_cuda(branches[i].error);
    }
    return graph;
}

/* How many bytes one of the branches found to be the other's. */
static size_t launch_two_branches(cudaGraphExec_t executable, branch_t *branches)
{
    rmm_stream_t stream = NULL;
    size_t wrong = 0;

    assert_cuda(driver->stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    for (int launch = 0; launch < BRANCH_LAUNCHES; launch++) {
        assert_cuda(cudaGraphLaunch(executable, stream));
        assert_cuda(driver->stream_synchronize(stream));
        for (size_t i = 0; i < BLOCK; i++) {
            wrong += branches[0].seen[i] != 1;
            wrong += branches[1].seen[i] != 2;
        }
    }
    assert_cuda(driver->stream_destroy(stream));
    return wrong;
}

static void threads_own_streams_of_one_capture_share_no_memory(void **state)
{
    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        rmm_resource_t *mr = makers[i](HELD, 0);
        branch_t branches[BRANCHES] = {{.mr = mr}, {.mr = mr}};
        cudaGraphExec_t executable;
        cudaGraph_t graph;

        assert_cuda(driver->event_create(&branches[1].fork));
        assert_cuda(driver->event_create(&branches[1].join));
        for (int b = 0; b < BRANCHES; b++) {
            assert_cuda(driver->host_alloc((void **)&branches[b].seen, BLOCK));
        }
        graph = capture_two_branches(branches);
        assert_int_not_equal(branches[0].key.capture_id, 0);
        assert_int_equal(branches[0].key.capture_id, branches[1].key.capture_id);
        assert_int_not_equal(branches[0].key.stream_id, branches[1].key.stream_id);
        assert_ptr_not_equal(branches[0].block, branches[1].block);
        assert_cuda(cudaGraphInstantiate(&executable, graph, 0));
        assert_int_equal(launch_two_branches(executable, branches), 0);
        assert_cuda(cudaGraphExecDestroy(executable));
        assert_cuda(cudaGraphDestroy(graph));
        for (int b = 0; b < BRANCHES; b++) {
            assert_cuda(driver->host_free(branches[b].seen));
        }
        assert_cuda(driver->event_destroy(branches[1].fork));
        assert_cuda(driver->event_destroy(branches[1].join));
        rmm_resource_release(mr);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_own_streams_of_one_capture_share_no_memory),
    };
    rmm_status_t status;

    driver = rmm__driver(&status);
    if (driver == NULL) {
        printf("skipped: %s\n", rmm_last_error_message());
        return status == RMM_ERR_NO_DEVICE ? SKIPPED : 1;
    }
    if (strcmp(driver->name, "cuda") != 0) {
        printf("the driver is %s, not cuda\n", driver->name);
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
