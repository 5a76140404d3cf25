/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel launch costs the program, in ns: an empty kernel with three pointers and
 * a number, launched back to back, with few and many live blocks in a pool.
 *
 *   bench_launch                 plain
 *   rmm-run -- bench_launch      diagnosed
 *
 * tests/gpu/run diagnosis runs it in each mode, and with a CUPTI subscriber that does nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cuda_runtime.h>

#include <rmm/rmm.h>

#define LAUNCHES 100000
#define ROUND 1000 /* less than the queue of the driver, which makes launches wait */
#define BYTES 512
#define EXIT_SKIP 77

static __global__ void empty_kernel(float *, const float *, const float *, int)
{
}

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The launching side only: the device catches up between the rounds. */
static double measure(void *const *blocks, int count)
{
    double spent = 0;

    for (int done = 0; done < LAUNCHES; done += ROUND) {
        double start = now_ns();

        for (int i = 0; i < ROUND; i++) {
            int at = (done + i) % (count - 2);

            empty_kernel<<<1, 1>>>(
                (float *)blocks[at], (float *)blocks[at + 1], (float *)blocks[at + 2],
                i);
        }
        spent += now_ns() - start;
        if (cudaDeviceSynchronize() != cudaSuccess) {
            fputs("bench_launch: a kernel failed\n", stderr);
            exit(EXIT_FAILURE);
        }
    }
    return spent / LAUNCHES;
}

static void fail(void)
{
    fprintf(stderr, "bench_launch: %s\n", rmm_last_error_message());
    exit(EXIT_FAILURE);
}

static void measure_with(rmm_resource_t *pool, int count)
{
    void **blocks = (void **)calloc((size_t)count, sizeof(*blocks));

    if (blocks == NULL) {
        exit(EXIT_FAILURE);
    }
    for (int i = 0; i < count; i++) {
        if (rmm_resource_alloc(pool, BYTES, 0, NULL, &blocks[i]) != RMM_OK) {
            fail();
        }
    }
    (void)measure(blocks, count); /* warm */
    printf("live_blocks %d ns_per_launch %.0f\n", count, measure(blocks, count));
    for (int i = 0; i < count; i++) {
        rmm_resource_dealloc(pool, blocks[i], BYTES, 0, NULL);
    }
    free(blocks);
}

static int measure_all(void)
{
    rmm_resource_t *cuda = NULL, *pool = NULL;

    if (rmm_cuda_resource_create(&cuda) != RMM_OK ||
        rmm_pool_resource_create(cuda, NULL, &pool) != RMM_OK) {
        fail();
    }
    measure_with(pool, 10);
    measure_with(pool, 1000);
    measure_with(pool, 20000);
    rmm_resource_release(pool);
    rmm_resource_release(cuda);
    return EXIT_SUCCESS;
}

int main(void)
{
    int count = 0;

    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        puts("SKIP no GPU here");
        return EXIT_SKIP;
    }
    return measure_all();
}
