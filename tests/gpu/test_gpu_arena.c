/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena resource on a real GPU, against data: every use of a block fills it on its
 * stream and copies both its ends to the host just before the free; another use in between
 * shows. The arena is small, so that blocks change streams on every step of its slow path.
 *
 * Without a usable GPU the program says so and exits 77.
 */
#include "gpu/gpu_harness.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rmm/rmm.h>
#include <rmm/sim.h>

#include "driver/driver.h"
#include "harness/random.h"
#include "resources/arena_impl.h"

#define KIB ((size_t)1 << 10)

enum { STREAMS = 6, LIVE = 40, STEPS = 6000, EDGE = 64, THREADS = 4 };

static rmm_resource_t *make_arena(uint64_t bytes)
{
    rmm_arena_options_t options = RMM_ARENA_OPTIONS_INIT;
    rmm_resource_t *cuda;
    rmm_resource_t *arena;
    rmm_status_t status;

    assert_string_equal(rmm__driver(&status)->name, "cuda");
    assert_false(rmm_sim_active());
    options.arena_bytes = bytes;
    assert_ok(rmm_cuda_resource_create(&cuda));
    assert_ok(rmm_arena_resource_create(cuda, &options, &arena));
    rmm_resource_release(cuda);
    return arena;
}

static void end(rmm_resource_t *arena)
{
    rmm_stats_t stats = RMM_STATS_INIT;

    assert_ok(rmm_resource_get_stats(arena, &stats));
    assert_int_equal(stats.current_bytes, 0);
    assert_int_equal(stats.invalid_free_count, 0);
    assert_cuda(cudaDeviceSynchronize());
    rmm_resource_release(arena);
}

/* --- traffic ------------------------------------------------------------------------ */

typedef struct use {
    void *block;
    size_t bytes;
    int stream;
    int value;
} use_t;

typedef struct traffic {
    rmm_resource_t *arena;
    rmm_stream_t streams[STREAMS];
    use_t live[LIVE];
    int live_count;
    uint64_t random;
    unsigned char (*ends)[2 * EDGE]; /* pinned: what was at both ends before the free */
    int expected[STEPS];
    int use_count;
} traffic_t;

static void begin_use(traffic_t *traffic)
{
    use_t use = {
        .stream = (int)draw(&traffic->random, STREAMS),
        .value = 1 + (int)draw(&traffic->random, 255),
        .bytes = draw(&traffic->random, 4) == 0
                     ? MIB + draw(&traffic->random, 3 * MIB)
                     : EDGE + draw(&traffic->random, 60 * KIB),
    };
    rmm_stream_t stream = traffic->streams[use.stream];
    rmm_status_t status =
        rmm_resource_alloc(traffic->arena, use.bytes, 0, stream, &use.block);

    if (status == RMM_ERR_OUT_OF_MEMORY) {
        return; /* what is live leaves no room: the next step frees */
    }
    assert_ok(status);
    assert_cuda(cudaMemsetAsync(use.block, use.value, use.bytes, stream));
    traffic->live[traffic->live_count++] = use;
}

static void end_use(traffic_t *traffic, int index)
{
    use_t use = traffic->live[index];
    rmm_stream_t stream = traffic->streams[use.stream];
    unsigned char *ends = traffic->ends[traffic->use_count];

    assert_cuda(cudaMemcpyAsync(ends, use.block, EDGE, cudaMemcpyDeviceToHost, stream));
    assert_cuda(cudaMemcpyAsync(
        ends + EDGE, (char *)use.block + use.bytes - EDGE, EDGE, cudaMemcpyDeviceToHost,
        stream));
    traffic->expected[traffic->use_count++] = use.value;
    rmm_resource_dealloc(traffic->arena, use.block, use.bytes, 0, stream);
    traffic->live[index] = traffic->live[--traffic->live_count];
}

/* Its work is still queued; the next stream may have its handle. */
static void replace_a_stream(traffic_t *traffic)
{
    int stream = 2 + (int)draw(&traffic->random, STREAMS - 2);

    for (int i = traffic->live_count - 1; i >= 0; i--) {
        if (traffic->live[i].stream == stream) {
            end_use(traffic, i);
        }
    }
    assert_ok(rmm_stream_destroy(traffic->streams[stream]));
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &traffic->streams[stream]));
}

static void run_traffic(traffic_t *traffic)
{
    for (int i = 0; i < STEPS; i++) {
        uint64_t dice = draw(&traffic->random, 100);

        if (dice == 0) {
            replace_a_stream(traffic);
        } else if (
            traffic->live_count > 0 && (traffic->live_count == LIVE || dice < 48)) {
            end_use(
                traffic, (int)draw(&traffic->random, (uint64_t)traffic->live_count));
        } else if (traffic->use_count + traffic->live_count < STEPS) {
            begin_use(traffic);
        }
    }
    while (traffic->live_count > 0) {
        end_use(traffic, 0);
    }
    assert_cuda(cudaDeviceSynchronize());
}

static uint64_t count_mixups(const traffic_t *traffic)
{
    uint64_t mixups = 0;

    for (int i = 0; i < traffic->use_count; i++) {
        for (int k = 0; k < 2 * EDGE; k++) {
            mixups += traffic->ends[i][k] != traffic->expected[i];
        }
    }
    return mixups;
}

static void data_stay_whole_over_streams_that_come_and_go(void **state)
{
    traffic_t *traffic = test_calloc(1, sizeof(*traffic));

    assert_cuda(
        cudaMallocHost((void **)&traffic->ends, STEPS * sizeof(*traffic->ends)));
    for (uint64_t seed = 1; seed <= 5; seed++) {
        rmm_segment_slot_t *slot;

        traffic->arena = make_arena(24 * MIB);
        slot = traffic->arena->accounting.slot;
        traffic->random = seed;
        traffic->use_count = 0;
        traffic->streams[0] = RMM_STREAM_LEGACY;
        traffic->streams[1] = RMM_STREAM_PER_THREAD;
        for (int i = 2; i < STREAMS; i++) {
            assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &traffic->streams[i]));
        }
        run_traffic(traffic);
        print_message(
            "seed %lu: %d uses, %lu times another stream's, %lu waits\n",
            (unsigned long)seed, traffic->use_count,
            (unsigned long)atomic_load(&slot->cross_stream_count),
            (unsigned long)atomic_load(&slot->sync_count));
        assert_int_equal(count_mixups(traffic), 0);
        for (int i = 2; i < STREAMS; i++) {
            assert_ok(rmm_stream_destroy(traffic->streams[i]));
        }
        end(traffic->arena);
    }
    assert_cuda(cudaFreeHost(traffic->ends));
    test_free(traffic);
}

/* --- threads ------------------------------------------------------------------------ */

static void *use_per_thread_stream(void *argument)
{
    rmm_resource_t *arena = argument;

    for (size_t i = 0; i < 500; i++) {
        size_t bytes = 256 + i * 997 % (200 * KIB);
        void *block;

        if (rmm_resource_alloc(arena, bytes, 0, RMM_STREAM_PER_THREAD, &block) !=
                RMM_OK ||
            cudaMemsetAsync(block, (int)i, bytes, cudaStreamPerThread) != cudaSuccess) {
            return argument;
        }
        rmm_resource_dealloc(arena, block, bytes, 0, RMM_STREAM_PER_THREAD);
    }
    return NULL;
}

static void threads_that_end_leave_all_memory_to_others(void **state)
{
    rmm_resource_t *arenas[2] = {make_arena(16 * MIB), make_arena(16 * MIB)};

    for (int i = 0; i < 2; i++) {
        pthread_t threads[THREADS];
        void *all;

        for (int k = 0; k < THREADS; k++) {
            assert_int_equal(
                pthread_create(&threads[k], NULL, use_per_thread_stream, arenas[i]), 0);
        }
        for (int k = 0; k < THREADS; k++) {
            void *failed;

            assert_int_equal(pthread_join(threads[k], &failed), 0);
            assert_null(failed);
        }
        assert_ok(rmm_resource_alloc(arenas[i], 16 * MIB, 0, RMM_STREAM_LEGACY, &all));
        rmm_resource_dealloc(arenas[i], all, 16 * MIB, 0, RMM_STREAM_LEGACY);
        end(arenas[i]);
    }
}

/* --- captures ----------------------------------------------------------------------- */

static void *fill_the_arena(void *argument)
{
    rmm_resource_t *arena = argument;
    void *block;

    for (int i = 0; i < 4; i++) {
        if (rmm_resource_alloc(arena, 500 * KIB, 0, RMM_STREAM_PER_THREAD, &block) !=
            RMM_OK) {
            return argument;
        }
        rmm_resource_dealloc(arena, block, 500 * KIB, 0, RMM_STREAM_PER_THREAD);
        if (rmm_resource_alloc(arena, 4 * MIB, 0, RMM_STREAM_PER_THREAD, &block) !=
            RMM_OK) {
            return argument;
        }
        rmm_resource_dealloc(arena, block, 4 * MIB, 0, RMM_STREAM_PER_THREAD);
    }
    return rmm_resource_alloc(arena, 9 * MIB, 0, RMM_STREAM_PER_THREAD, &block) ==
                   RMM_ERR_OUT_OF_MEMORY
               ? NULL
               : argument;
}

static void a_capture_of_another_thread_stays_whole(void **state)
{
    rmm_resource_t *arena = make_arena(8 * MIB);
    rmm_stream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t run;
    pthread_t thread;
    void *block;
    void *failed;

    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    assert_ok(rmm_resource_alloc(arena, 64 * KIB, 0, stream, &block));
    assert_cuda(cudaMemsetAsync(block, 7, 64 * KIB, stream));
    rmm_resource_dealloc(arena, block, 64 * KIB, 0, stream);
    assert_int_equal(pthread_create(&thread, NULL, fill_the_arena, arena), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    assert_cuda(cudaStreamEndCapture(stream, &graph));
    assert_cuda(cudaGraphInstantiate(&run, graph, 0));
    assert_cuda(cudaGraphLaunch(run, stream));
    assert_cuda(cudaDeviceSynchronize());
    assert_cuda(cudaGraphExecDestroy(run));
    assert_cuda(cudaGraphDestroy(graph));
    assert_ok(rmm_stream_destroy(stream));
    end(arena);
}

/* --- figures, for whoever reads the log ---------------------------------------------- */

static double pair_ns(rmm_resource_t *mr, rmm_stream_t stream)
{
    enum { PAIRS = 200000 };
    struct timespec from;
    struct timespec to;
    void *block;

    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < PAIRS; i++) {
        assert_ok(rmm_resource_alloc(mr, KIB, 0, stream, &block));
        rmm_resource_dealloc(mr, block, KIB, 0, stream);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    return ((double)(to.tv_sec - from.tv_sec) * 1e9 +
            (double)(to.tv_nsec - from.tv_nsec)) /
           PAIRS;
}

static void prints_the_cost_of_a_pair(void **state)
{
    static const char *const names[] = {"legacy", "per-thread", "created"};
    rmm_resource_t *arena = make_arena(256 * MIB);
    rmm_stream_t streams[3] = {RMM_STREAM_LEGACY, RMM_STREAM_PER_THREAD, NULL};

    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &streams[2]));
    for (int i = 0; i < 3; i++) {
        double best = pair_ns(arena, streams[i]);

        for (int k = 0; k < 4; k++) {
            double next = pair_ns(arena, streams[i]);

            best = next < best ? next : best;
        }
        print_message("arena, 1 KiB, %s stream: %.1f ns a pair\n", names[i], best);
    }
    assert_ok(rmm_stream_destroy(streams[2]));
    end(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_stay_whole_over_streams_that_come_and_go),
        cmocka_unit_test(threads_that_end_leave_all_memory_to_others),
        cmocka_unit_test(a_capture_of_another_thread_stays_whole),
        cmocka_unit_test(prints_the_cost_of_a_pair),
    };
    int count = 0;

    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        puts("skipped: no usable GPU");
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
