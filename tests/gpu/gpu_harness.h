/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests on a real GPU share: that it is one, CUDA's errors, and what is in device
 * memory. A program whose gpu_is_missing() ends with SKIPPED.
 */
#ifndef RMM_TESTS_GPU_GPU_HARNESS_H
#define RMM_TESTS_GPU_GPU_HARNESS_H

#include "harness/harness.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <rmm/rmm.h>
#include <rmm/sim.h>

#include "driver/driver.h"

#define MIB ((size_t)1 << 20)
#define SKIPPED 77

/* True: says why. */
static inline bool gpu_is_missing(void)
{
    rmm_status_t status;

    if (rmm__driver(&status) == NULL && status == RMM_ERR_NO_DEVICE) {
        printf("skipped: %s\n", rmm_last_error_message());
        return true;
    }
    return false;
}

/* The path that a case proves is CUDA's. */
static inline void assert_real_gpu(void)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);

    assert_non_null(driver);
    assert_string_equal(driver->name, "cuda");
    assert_false(rmm_sim_active());
}

static inline void assert_cuda(int error)
{
    if (error != cudaSuccess) {
        fail_msg("%s", cudaGetErrorString((cudaError_t)error));
    }
}

/* Every byte of a device block, copied back after the device is idle. */
static inline void assert_filled(const void *block, int value, size_t bytes)
{
    unsigned char *copy = malloc(bytes);

    assert_non_null(copy);
    assert_cuda(cudaDeviceSynchronize());
    assert_cuda(cudaMemcpy(copy, block, bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < bytes; i++) {
        if (copy[i] != value) {
            fail_msg("byte %zu is %d, not %d", i, copy[i], value);
        }
    }
    free(copy);
}

/* A capture of a fill of MIB bytes stays whole while another thread runs `use`, which returns
 * NULL or what failed. */
static inline void assert_capture_survives(
    cudaStream_t stream, void *target, void *(*use)(void *argument), void *argument)
{
    cudaGraph_t graph = NULL;
    pthread_t thread;
    void *failure;

    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    assert_cuda(cudaMemsetAsync(target, 7, MIB, stream));
    assert_int_equal(pthread_create(&thread, NULL, use, argument), 0);
    assert_int_equal(pthread_join(thread, &failure), 0);
    assert_cuda(cudaStreamEndCapture(stream, &graph));
    if (failure != NULL) {
        fail_msg("%s", (const char *)failure);
    }
    assert_cuda(cudaGraphDestroy(graph));
}

#endif /* RMM_TESTS_GPU_GPU_HARNESS_H */
