/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accesses that leave their block inside a pool, for compute-sanitizer to find, and correct
 * ones, of which it must report none. tests/gpu/overruns runs it and compares.
 *
 *   nvtx_overruns faulty [NUMBER]   each planted error, or one of them
 *   nvtx_overruns correct           their correct twins, and frees after work that is queued
 *
 * A line for each access on stdout: case NUMBER NAME ADDRESS WIDTH read|write. The access is made
 * by block NUMBER of its grid, so that a report names the case.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>
#include <rmm/rmm.h>

#include "harness/overruns.h"

__global__ void touch(char *address, unsigned width, bool write, unsigned number)
{
    if (blockIdx.x != number) {
        return;
    }
    if (width == 4 && write) {
        *(volatile unsigned *)address = number;
    } else if (width == 4) {
        (void)*(volatile unsigned *)address;
    } else if (write) {
        *(volatile char *)address = 1;
    } else {
        (void)*(volatile char *)address;
    }
}

__global__ void use_slowly(char *block, size_t bytes, long long cycles)
{
    const long long begin = clock64();

    while (clock64() - begin < cycles) {
    }
    for (size_t i = 0; i < bytes; i++) {
        block[i] = (char)i;
    }
}

static bool is_well(const char *what, cudaError_t error)
{
    if (error != cudaSuccess) {
        printf("%s: %s\n", what, cudaGetErrorString(error));
    }
    return error == cudaSuccess;
}

static void launch(void *context, const overrun_t *overrun, void *address)
{
    const unsigned number = *(const unsigned *)context;

    printf(
        "case %u %s %p %u %s\n", number, overrun->name, address, overrun->width,
        overrun->write ? "write" : "read");
    fflush(stdout);
    touch<<<number + 1, 1>>>((char *)address, overrun->width, overrun->write, number);
    (void)is_well(
        overrun->name, cudaDeviceSynchronize()); /* of a planted error: may fail */
    (void)cudaGetLastError();
}

static bool run_table(bool is_faulty, long only)
{
    bool is_good = true;

    for (unsigned i = 0; i < overruns_count; i++) {
        const overrun_t one = is_faulty ? overruns[i] : overruns_twin(&overruns[i]);

        if (only < 0 || only == (long)i) {
            is_good = overruns_run(&one, launch, &i) && is_good;
        }
    }
    return is_good;
}

/* A block is freed, and taken again, while its kernel runs. */
static bool free_behind_a_kernel(void)
{
    rmm_resource_t *pool;
    cudaStream_t stream;
    bool is_good = rmm_resource_create_from_spec("pool:64MiB", &pool) == RMM_OK &&
                   is_well("stream", cudaStreamCreate(&stream));

    for (int i = 0; is_good && i < 20; i++) {
        const size_t bytes = 1000 + 100 * (size_t)i;
        void *block;

        is_good = rmm_resource_alloc(pool, bytes, 0, stream, &block) == RMM_OK;
        if (is_good) {
            use_slowly<<<1, 1, 0, stream>>>((char *)block, bytes, 1000000);
            rmm_resource_dealloc(pool, block, bytes, 0, stream);
        }
    }
    is_good = is_good && is_well("free behind a kernel", cudaStreamSynchronize(stream));
    rmm_resource_release(pool);
    return is_good;
}

/* A graph uses a block that was freed in its capture, at every launch. */
static bool launch_a_graph(void)
{
    rmm_resource_t *pool;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    void *block;
    bool is_good = rmm_resource_create_from_spec("pool:64MiB", &pool) == RMM_OK &&
                   is_well("stream", cudaStreamCreate(&stream));

    is_good = is_good && is_well(
                             "capture", cudaStreamBeginCapture(
                                            stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; is_good && i < 2; i++) {
        const size_t bytes = 1000 * (size_t)(i + 1);

        is_good = rmm_resource_alloc(pool, bytes, 0, stream, &block) == RMM_OK;
        if (is_good) {
            use_slowly<<<1, 1, 0, stream>>>((char *)block, bytes, 1000);
            rmm_resource_dealloc(pool, block, bytes, 0, stream);
        }
    }
    is_good = is_good &&
              is_well("end of capture", cudaStreamEndCapture(stream, &graph)) &&
              is_well("instantiate", cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; is_good && i < 3; i++) {
        is_good = is_well("launch", cudaGraphLaunch(executable, stream)) &&
                  is_well("graph", cudaStreamSynchronize(stream));
    }
    if (is_good) {
        (void)cudaGraphExecDestroy(executable);
        (void)cudaGraphDestroy(graph);
    }
    rmm_resource_release(pool);
    return is_good;
}

int main(int argc, char **argv)
{
    const bool is_faulty = argc >= 2 && strcmp(argv[1], "faulty") == 0;
    bool is_good;

    if (argc < 2 || (!is_faulty && strcmp(argv[1], "correct") != 0)) {
        fprintf(stderr, "usage: nvtx_overruns faulty [NUMBER] | correct\n");
        return 2;
    }
    if (!is_well("cudaFree(0)", cudaFree(0))) {
        return 77;
    }
    is_good = run_table(is_faulty, argc > 2 ? atol(argv[2]) : -1);
    if (!is_faulty) {
        is_good = free_behind_a_kernel() && is_good;
        is_good = launch_a_graph() && is_good;
    }
    return is_good ? 0 : 1;
}
