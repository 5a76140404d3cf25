/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an allocation and its free cost in mode bounds, which takes a stack of each, when they come
 * from many places deep in a program of several shared objects, as in a training: nanoseconds of
 * the pair without the way to the place. Best of several rounds. The first round is the one in
 * which every stack is new.
 *
 *   build/release/tests/bench_diag_stacks
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "diag/engine.h"
#include "diag_stacks_frames.h"

#define BASE 0x7f4000000000ull
enum { ROUNDS = 20, LEVELS = 30, WAYS_MAX = 2000 };

typedef struct bench {
    rmm_diag_engine_t *engine;
    uint64_t spent_ns;
} bench_t;

/* At LEVELS * 2 frames. */
static void allocate_and_free(void *context)
{
    static uint32_t calls;
    bench_t *bench = context;
    rmm_diag_block_v1_t block = {
        .address = BASE + (uint64_t)(calls++ % 64) * 4096,
        .bytes = 4096,
        .flags = RMM_DIAG_BLOCK_KEPT};
    uint64_t begin = rmm__clock_ns(CLOCK_MONOTONIC);

    rmm__diag_engine_on_alloc(bench->engine, &block);
    rmm__diag_engine_on_free(bench->engine, &block);
    bench->spent_ns += rmm__clock_ns(CLOCK_MONOTONIC) - begin;
}

/* One after the other, as the steps of a training do it. */
static double round_ns(bench_t *bench, uint32_t ways)
{
    static void (*const descends[MODULES])(const way_t *, uint32_t) = {
        descend_0, descend_1, descend_2, descend_3};

    bench->spent_ns = 0;
    for (uint32_t i = 0; i < ways; i++) {
        const way_t way = {
            .descends = descends,
            .number = i,
            .first = 10, /* what calls the program's main loop is the same for all */
            .end = 26,   /* and so is the way from a framework to its allocator */
            .levels = LEVELS,
            .arrived = allocate_and_free,
            .context = bench};

        descend_0(&way, 0);
    }
    return (double)bench->spent_ns / ways;
}

static void run(uint32_t modes, const char *name, uint32_t ways)
{
    enum { ROWS = 1024, KERNELS = 16 };
    void *memory = calloc(1, rmm__diag_file_bytes(ROWS, KERNELS));
    rmm_diag_engine_desc_t desc = {
        .memory = memory, .row_count = ROWS, .kernel_count = KERNELS, .modes = modes};
    bench_t bench = {.engine = memory != NULL ? rmm__diag_engine_create(&desc) : NULL};
    double first, best;

    if (bench.engine == NULL) {
        fputs("bench_diag_stacks: no memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    first = round_ns(&bench, ways);
    best = first;
    for (int round = 1; round < ROUNDS; round++) {
        double ns = round_ns(&bench, ways);

        best = ns < best ? ns : best;
    }
    printf("%-8s %5u places, first %8.0f ns, then %8.0f ns\n", name, ways, first, best);
    rmm__diag_engine_destroy(bench.engine);
    free(memory);
}

int main(void)
{
    static const uint32_t ways[] = {8, 100, 400, 1000, WAYS_MAX};

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        run(RMM_DIAG_MODE_USAGE, "usage", ways[i]);
        run(RMM_DIAG_MODE_USAGE | RMM_DIAG_MODE_BOUNDS, "bounds", ways[i]);
    }
    return EXIT_SUCCESS;
}
