/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the diagnosis costs on the host, without a GPU: nanoseconds of a launch, a copy, and an
 * allocation with its free, block by block and scattered, with few live blocks and with many;
 * and of a free while graphs were captured with 60,000 uses of blocks.
 * Best of several rounds, because the machine has other work.
 *
 *   build/dev/tests/bench_diag_engine
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "diag/engine.h"

#define BASE 0x7f4000000000ull
#define BLOCK_BYTES 4096u
enum { ROUNDS = 20, CALLS = 100000, KERNELS = 1024 };

typedef struct bench {
    rmm_diag_engine_t *engine;
    uint32_t blocks; /* live; between two of them there is room for another */
} bench_t;

static void tell(const bench_t *bench, rmm_diag_event_v1_t event)
{
    event.struct_size = sizeof(event);
    rmm__diag_engine_on_event(bench->engine, &event);
}

static uint64_t address(const bench_t *bench, uint32_t i)
{
    return BASE + (uint64_t)(i % bench->blocks) * 2 * BLOCK_BYTES;
}

static rmm_diag_block_v1_t block_at(uint64_t where)
{
    return (rmm_diag_block_v1_t){
        .address = where, .bytes = BLOCK_BYTES, .flags = RMM_DIAG_BLOCK_KEPT};
}

/* Three blocks and five other words, as a kernel of PyTorch has. */
static void launch(const bench_t *bench, uint32_t i)
{
    const uint64_t words[] = {
        address(bench, i), 1, address(bench, i + 1), 2, address(bench, i + 2), 3, 4, 5};

    tell(
        bench, (rmm_diag_event_v1_t){
                   .kind = RMM_DIAG_LAUNCH,
                   .function = "kernel",
                   .name = "kernel",
                   .words = words,
                   .word_count = 8});
}

/* As both modes see it: before the call and behind it. */
static void copy(const bench_t *bench, uint32_t i)
{
    const uint64_t words[] = {address(bench, i), address(bench, i + 1)};
    rmm_diag_event_v1_t event = {
        .kind = RMM_DIAG_COPY,
        .name = "cuMemcpyDtoDAsync_v2",
        .words = words,
        .word_count = 2,
        .bytes = BLOCK_BYTES,
        .before = 1};

    tell(bench, event);
    event.before = 0;
    tell(bench, event);
}

static void allocate_and_free(const bench_t *bench, uint32_t i)
{
    rmm_diag_block_v1_t block = block_at(address(bench, i));

    rmm__diag_engine_on_free(bench->engine, &block);
    rmm__diag_engine_on_alloc(bench->engine, &block);
}

/* In no order that the processor could learn, as in a program. */
static void allocate_and_free_scattered(const bench_t *bench, uint32_t i)
{
    allocate_and_free(bench, (i * 2654435761u) >> 7);
}

static void
measure(const bench_t *bench, const char *what, void (*call)(const bench_t *, uint32_t))
{
    uint64_t best = UINT64_MAX;

    for (int round = 0; round < ROUNDS; round++) {
        uint64_t begin = rmm__clock_ns(CLOCK_MONOTONIC);

        for (uint32_t i = 0; i < CALLS; i++) {
            call(bench, i);
        }
        uint64_t spent = rmm__clock_ns(CLOCK_MONOTONIC) - begin;
        best = spent < best ? spent : best;
    }
    printf(
        "%-20s %6u blocks %8.1f ns\n", what, bench->blocks,
        (double)best / (double)CALLS);
}

/* Every block has one behind it that was freed. */
static void free_between(const bench_t *bench)
{
    for (uint32_t i = 0; i < bench->blocks; i++) {
        rmm_diag_block_v1_t block = block_at(address(bench, i) + BLOCK_BYTES);

        rmm__diag_engine_on_alloc(bench->engine, &block);
        rmm__diag_engine_on_free(bench->engine, &block);
    }
}

/* events: of a timeline that is kept beside; 0: none */
static void run(uint32_t blocks, uint32_t events)
{
    bench_t bench = {.blocks = blocks};
    void *memory = calloc(1, rmm__diag_file_bytes(blocks + 1, KERNELS));
    void *timeline = events > 0 ? calloc(1, rmm__timeline_file_bytes(events)) : NULL;
    rmm_diag_engine_desc_t desc = {
        .memory = memory,
        .row_count = blocks + 1,
        .kernel_count = KERNELS,
        .modes = RMM_DIAG_MODE_USAGE | RMM_DIAG_MODE_BOUNDS,
        .timeline = timeline,
        .timeline_events = events};

    bench.engine = memory != NULL ? rmm__diag_engine_create(&desc) : NULL;
    if (bench.engine == NULL) {
        fputs("bench_diag_engine: no memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    for (uint32_t i = 0; i < blocks; i++) {
        rmm_diag_block_v1_t block = block_at(address(&bench, i));

        rmm__diag_engine_on_alloc(bench.engine, &block);
    }
    free_between(&bench);
    printf("%s timeline\n", timeline != NULL ? "with a" : "without");
    measure(&bench, "launch", launch);
    measure(&bench, "copy", copy);
    measure(&bench, "free, allocate", allocate_and_free);
    measure(&bench, "scattered", allocate_and_free_scattered);
    rmm__diag_engine_destroy(bench.engine);
    free(memory);
    free(timeline);
}

/* --- captured graphs ------------------------------------------------------------------ */

enum { CAPTURED = 60000, FREED = 4096, GRAPH = 1, OTHER_GRAPH = 2 };

static void capture_kernel(const bench_t *bench, uint64_t graph, uint64_t word)
{
    tell(
        bench, (rmm_diag_event_v1_t){
                   .kind = RMM_DIAG_LAUNCH,
                   .function = "kernel",
                   .name = "kernel",
                   .words = &word,
                   .word_count = 1,
                   .graph = graph,
                   .capturing = 1});
}

static void tell_of_graph(const bench_t *bench, uint32_t kind, uint64_t graph)
{
    const uint64_t words[] = {graph, 0};

    tell(
        bench, (rmm_diag_event_v1_t){
                   .kind = kind,
                   .words = words,
                   .word_count = kind == RMM_DIAG_GRAPH_LAUNCH ? 1 : 2});
}

/* Each of them is used by the other graph once, and by no other. */
static uint64_t free_captured(const bench_t *bench)
{
    uint64_t begin = 0;

    tell_of_graph(bench, RMM_DIAG_GRAPH_MADE, OTHER_GRAPH);
    for (uint32_t i = 1; i <= FREED; i++) {
        rmm_diag_block_v1_t block = block_at(BASE + i * UINT64_C(2) * BLOCK_BYTES);

        rmm__diag_engine_on_alloc(bench->engine, &block);
        capture_kernel(bench, OTHER_GRAPH, block.address);
    }
    begin = rmm__clock_ns(CLOCK_MONOTONIC);
    for (uint32_t i = 1; i <= FREED; i++) {
        rmm_diag_block_v1_t block = block_at(BASE + i * UINT64_C(2) * BLOCK_BYTES);

        rmm__diag_engine_on_free(bench->engine, &block);
    }
    begin = rmm__clock_ns(CLOCK_MONOTONIC) - begin;
    tell_of_graph(bench, RMM_DIAG_GRAPH_ENDS, OTHER_GRAPH);
    return begin;
}

/* A free, beside a graph that uses another block very often. */
static void run_graphs(uint32_t modes, const char *shown)
{
    bench_t bench = {.blocks = 1};
    void *memory = calloc(1, rmm__diag_file_bytes(2 * FREED, KERNELS));
    rmm_diag_engine_desc_t desc = {
        .memory = memory,
        .row_count = 2 * FREED,
        .kernel_count = KERNELS,
        .modes = modes};
    rmm_diag_block_v1_t block = block_at(BASE);
    uint64_t freed = UINT64_MAX, launched = UINT64_MAX;

    bench.engine = memory != NULL ? rmm__diag_engine_create(&desc) : NULL;
    if (bench.engine == NULL) {
        fputs("bench_diag_engine: no memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    rmm__diag_engine_on_alloc(bench.engine, &block);
    tell_of_graph(&bench, RMM_DIAG_GRAPH_MADE, GRAPH);
    for (uint32_t i = 0; i < CAPTURED; i++) {
        capture_kernel(&bench, GRAPH, BASE);
    }
    for (int round = 0; round < ROUNDS / 4; round++) {
        uint64_t begin = rmm__clock_ns(CLOCK_MONOTONIC), spent = 0;

        tell_of_graph(&bench, RMM_DIAG_GRAPH_LAUNCH, GRAPH);
        spent = rmm__clock_ns(CLOCK_MONOTONIC) - begin;
        launched = spent < launched ? spent : launched;
        spent = free_captured(&bench);
        freed = spent < freed ? spent : freed;
    }
    printf(
        "free of a captured block, modes %-13s %8.1f ns; a node launched %5.1f ns\n",
        shown, (double)freed / FREED, (double)launched / CAPTURED);
    rmm__diag_engine_destroy(bench.engine);
    free(memory);
}

int main(void)
{
    run_graphs(RMM_DIAG_MODE_USAGE | RMM_DIAG_MODE_BOUNDS, "usage,bounds");
    run_graphs(RMM_DIAG_MODE_USAGE | RMM_DIAG_MODE_ORDER, "usage,order");
    run(16, 0);
    run(2000, 0);
    run(10000, 0);
    run(16, 262144);
    run(10000, 262144);
    return EXIT_SUCCESS;
}
