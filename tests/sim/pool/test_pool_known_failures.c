/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A full resource that has found out what it cannot serve, against itself without that
 * knowledge: random allocations and frees, on several streams, in captures and by another
 * thread, from a printed seed. What it refuses because it knows, it must refuse as well
 * when it tries everything again.
 */
#include "sim/resources/arena_harness.h"

#include <pthread.h>
#include <stdlib.h>

#include "driver/sim/control.h"
#include "resources/arena_impl.h"

enum { LIVE = 256, STEPS = 1000, SEEDS_HERE = 8, STREAMS = 5 };

typedef struct block {
    void *ptr;
    size_t bytes;
} block_t;

typedef struct model {
    rmm_resource_t *mr;
    bool is_arena;
    uint64_t random;
    size_t largest_bytes;
    rmm_stream_t streams[STREAMS];
    rmm_stream_t capturing; /* NULL: no capture under way */
    rmm_sim_graph_t graph;
    bool has_graph;
    block_t live[LIVE];
    size_t count;
    uint64_t known, refused; /* refusals */
} model_t;

static uint64_t below(model_t *model, uint64_t limit)
{
    model->random = model->random * 6364136223846793005u + 1442695040888963407u;
    return (model->random >> 33) % limit;
}

static rmm_stream_t any_stream(model_t *model)
{
    return model->streams[below(model, STREAMS)];
}

static engine_t *engine_of(const model_t *model)
{
    return pool_from_base(model->mr)->engine;
}

static bool is_known(const model_t *model, size_t bytes, rmm_stream_t stream)
{
    uint32_t units = (uint32_t)((bytes + 255) / 256);
    rmm_stream_key_t key;

    assert_cuda(sim_driver()->stream_key(stream, &key));
    return key.capture_id == 0 && engine_of(model)->known_failure.units != 0 &&
           engine_of(model)->known_failure.units <= units &&
           (model->is_arena ||
            engine_of(model)->known_failure.changes == engine_of(model)->changes);
}

static void forget(model_t *model)
{
    engine_of(model)->known_failure.units = 0;
}

static void allocate(model_t *model, rmm_stream_t stream)
{
    bool is_small = below(model, 4) != 0;
    size_t bytes =
        1 + below(model, is_small ? model->largest_bytes / 32 : model->largest_bytes);
    bool known = is_known(model, bytes, stream);
    void *ptr;
    rmm_status_t status;

    if (model->count == LIVE) {
        return;
    }
    status = rmm_resource_alloc(model->mr, bytes, 0, stream, &ptr);
    if (status != RMM_OK) {
        assert_int_equal(status, RMM_ERR_OUT_OF_MEMORY);
        model->refused++;
        model->known += known;
    }
    if (status != RMM_OK && known) {
        forget(model);
        status = rmm_resource_alloc(model->mr, bytes, 0, stream, &ptr);
        assert_int_equal(status, RMM_ERR_OUT_OF_MEMORY);
    }
    if (status == RMM_OK) {
        model->live[model->count++] = (block_t){ptr, bytes};
    }
}

static void free_one(model_t *model, rmm_stream_t stream)
{
    size_t i = model->count != 0 ? below(model, model->count) : 0;
    block_t block = model->live[i];

    if (model->count != 0) {
        model->live[i] = model->live[--model->count];
        give(model->mr, block.ptr, block.bytes, stream);
    }
}

static void *free_some(void *argument)
{
    model_t *model = argument;

    for (uint64_t n = below(model, 6); n > 0; n--) {
        free_one(model, RMM_STREAM_PER_THREAD);
    }
    return NULL;
}

static void by_another_thread(model_t *model)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, free_some, model), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Begins, ends, and destroys the graph, in turn. */
static void step_capture(model_t *model)
{
    if (model->capturing == NULL && model->has_graph) {
        assert_cuda(rmm_sim_graph_destroy(model->graph));
        model->has_graph = false;
    } else if (model->capturing == NULL) {
        model->capturing = model->streams[STREAMS - 1];
        assert_cuda(rmm_sim_begin_capture(model->capturing, 2));
    } else {
        assert_cuda(rmm_sim_end_capture(model->capturing, &model->graph));
        model->capturing = NULL;
        model->has_graph = true;
    }
}

static void step(model_t *model)
{
    switch (below(model, 64)) {
    case 0:
        by_another_thread(model);
        break;
    case 1:
        step_capture(model);
        break;
    case 2:
        if (model->capturing == NULL) { /* it would ruin the capture */
            assert_cuda(rmm_sim_device_synchronize());
        }
        break;
    default:
        if (below(model, 5) < 3) {
            allocate(model, any_stream(model));
        } else {
            free_one(model, any_stream(model));
        }
    }
}

static void play(model_t *model, uint64_t seed)
{
    model->random = seed;
    rmm__sim_reseed(seed);
    for (int i = 0; i < STREAMS; i++) {
        model->streams[i] = i > 0 ? make_stream(RMM_STREAM_NON_BLOCKING) : NULL;
    }
    for (int i = 0; i < STEPS; i++) {
        step(model);
    }
    if (model->capturing != NULL) {
        step_capture(model);
    }
    if (model->has_graph) {
        step_capture(model);
    }
    while (model->count != 0) {
        free_one(model, NULL);
    }
    for (int i = 1; i < STREAMS; i++) {
        assert_cuda(sim_driver()->stream_destroy(model->streams[i]));
    }
    rmm_resource_release(model->mr);
}

typedef rmm_resource_t *(*maker_fn)(void);

static void refuses_only_what_cannot_be(maker_fn make, bool is_arena, size_t largest)
{
    const char *given = getenv("RMM_TEST_SEED");
    uint64_t first = given != NULL ? strtoull(given, NULL, 0) : 1;
    uint64_t known = 0;
    uint64_t refused = 0;

    for (uint64_t seed = first; seed < first + SEEDS_HERE; seed++) {
        model_t model = {.mr = make(), .is_arena = is_arena, .largest_bytes = largest};

        print_message("seed %lu\n", (unsigned long)seed);
        play(&model, seed);
        known += model.known;
        refused += model.refused;
    }
    print_message(
        "%lu refused, %lu of them known\n", (unsigned long)refused,
        (unsigned long)known);
    assert_true(known > SEEDS_HERE);
}

static rmm_resource_t *full_pool(void)
{
    return make_pool(4 * MIB, 4 * MIB);
}

static rmm_resource_t *growing_pool(void)
{
    return make_pool(0, 12 * MIB);
}

static rmm_resource_t *virtual_pool(void)
{
    return make_virtual_pool(0, 12 * MIB);
}

static rmm_resource_t *arena(void)
{
    return make_arena(8 * MIB);
}

TEST_CASE(in_a_pool)
{
    refuses_only_what_cannot_be(full_pool, false, MIB);
}

TEST_CASE(in_a_pool_that_grows)
{
    refuses_only_what_cannot_be(growing_pool, false, 3 * MIB);
}

TEST_CASE(in_a_virtual_pool)
{
    refuses_only_what_cannot_be(virtual_pool, false, 3 * MIB);
}

TEST_CASE(in_an_arena)
{
    refuses_only_what_cannot_be(arena, true, 2 * MIB);
}
