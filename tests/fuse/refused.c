/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that holds blocks of two sites, is refused memory, and is gone at once:
 *
 *   rmmfs_refused KEEPS WAY [TIMES]
 *
 * KEEPS: "tracked" by a tracking adaptor with stacks, or "plain". WAY: "killed" right after the
 * refusal, "stays" until it is killed, or "flood": TIMES refusals in a row, then "stays". It prints
 * "pid PID" before, and "refused NS" with the time that the refusals took.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rmm/rmm.h>
#include <rmm/sim.h>

#define TOO_MUCH ((size_t)1 << 45)
#define LARGE_BYTES ((size_t)1 << 20)
#define SMALL_BYTES 4000u

static void kernel(const void *const *params)
{
    (void)params;
}

static void use_by(const char *name, void *block)
{
    const void *params[] = {&block};
    const size_t bytes[] = {sizeof(block)};

    (void)!rmm_sim_launch(name, kernel, RMM_STREAM_LEGACY, params, bytes, 1);
}

/* Both have a frame in optimised builds, too: the call is not their end. */
__attribute__((noinline)) static void *take_weights(rmm_resource_t *mr)
{
    void *block = NULL;

    (void)!rmm_resource_alloc(mr, LARGE_BYTES, 0, RMM_STREAM_DEFAULT, &block);
    use_by("matmul", block);
    return block;
}

__attribute__((noinline)) static void *take_batch(rmm_resource_t *mr)
{
    void *block = NULL;

    (void)!rmm_resource_alloc(mr, SMALL_BYTES, 0, RMM_STREAM_DEFAULT, &block);
    use_by("normalize", block);
    return block;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static rmm_resource_t *make_resource(bool is_tracked)
{
    rmm_tracking_options_t options = RMM_TRACKING_OPTIONS_INIT;
    rmm_resource_t *cuda = NULL, *pool = NULL, *tracking = NULL;

    options.capture_stacks = true;
    if (rmm_cuda_resource_create(&cuda) != RMM_OK ||
        rmm_pool_resource_create(cuda, NULL, &pool) != RMM_OK ||
        (is_tracked &&
         rmm_tracking_adaptor_create(pool, &options, &tracking) != RMM_OK)) {
        return NULL;
    }
    return is_tracked ? tracking : pool;
}

int main(int argc, char **argv)
{
    rmm_resource_t *mr =
        argc > 2 ? make_resource(strcmp(argv[1], "tracked") == 0) : NULL;
    long times = argc > 3 ? atol(argv[3]) : 1;
    bool is_good = mr != NULL;
    void *block = NULL;

    /* The first allocation takes another way through the library: its stack would be another. */
    if (is_good && rmm_resource_alloc(mr, 1, 0, RMM_STREAM_DEFAULT, &block) == RMM_OK) {
        rmm_resource_dealloc(mr, block, 1, 0, RMM_STREAM_DEFAULT);
    }
    /* volatile: one call in the program, not several. */
    for (volatile int i = 0; is_good && i < 3; i++) {
        is_good = take_weights(mr) != NULL;
    }
    for (volatile int i = 0; is_good && i < 5; i++) {
        is_good = take_batch(mr) != NULL;
    }
    if (!is_good) {
        (void)fprintf(stderr, "rmmfs_refused: %s\n", rmm_last_error_message());
        return 1;
    }
    (void)printf("pid %ld\n", (long)getpid());
    (void)fflush(stdout);

    uint64_t begin = now_ns();
    for (long i = 0; i < times; i++) {
        is_good =
            rmm_resource_alloc(mr, TOO_MUCH, 0, RMM_STREAM_DEFAULT, &block) != RMM_OK &&
            is_good;
    }
    if (strcmp(argv[2], "killed") == 0) {
        (void)raise(SIGKILL);
    }
    (void)printf("refused %llu\n", (unsigned long long)(now_ns() - begin));
    (void)fflush(stdout);
    while (is_good) {
        (void)pause();
    }
    return 1;
}
