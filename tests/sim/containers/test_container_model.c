/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random calls on a few arrays, drawn from a seed that a failure prints, against a model
 * in plain host memory: sizes, capacities and every byte agree after each, although the
 * work of the arrays runs late. And threads that do so at once, each with arrays of its
 * own, out of one pool while the default resource changes.
 */
#include "sim/containers/container_harness.h"

#include <pthread.h>
#include <stdlib.h>

#include "driver/sim/control.h"

enum { ARRAYS = 4, LIMIT = 600, STEPS = 300, THREADS = 4 };

/* What an array must hold. Elements that were never written are not compared. */
typedef struct model {
    uint32_t values[LIMIT];
    bool written[LIMIT];
    size_t size, capacity;
} model_t;

typedef struct run {
    unsigned seed;
    rmm_resource_t *mr;
    rmm_stream_t stream;
    rmm_device_array_t arrays[ARRAYS];
    model_t models[ARRAYS];
    uint32_t sources[STEPS]; /* host memory that queued copies read */
    const char *wrong;       /* NULL as long as all agree */
} run_t;

static size_t draw(run_t *run, size_t below)
{
    return (size_t)rand_r(&run->seed) % below;
}

static void expect(run_t *run, bool condition, const char *what)
{
    if (!condition && run->wrong == NULL) {
        run->wrong = what;
    }
}

static void expect_ok(run_t *run, rmm_status_t status, const char *what)
{
    expect(run, status == RMM_OK, what);
}

static void model_forget(model_t *model, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        model->written[i] = false;
    }
}

static void do_resize(run_t *run, size_t a)
{
    model_t *model = &run->models[a];
    size_t count = draw(run, LIMIT);

    expect_ok(
        run, rmm_device_array_resize(&run->arrays[a], count, run->stream), "resize");
    /* beyond the old size nothing is known, also where the capacity had it */
    if (count < model->size) {
        model_forget(model, count, model->size);
    }
    model->size = count;
    model->capacity = count > model->capacity ? count : model->capacity;
}

static void do_reserve(run_t *run, size_t a)
{
    model_t *model = &run->models[a];
    size_t count = draw(run, LIMIT);

    expect_ok(
        run, rmm_device_array_reserve(&run->arrays[a], count, run->stream), "reserve");
    model->capacity = count > model->capacity ? count : model->capacity;
}

static void do_shrink(run_t *run, size_t a)
{
    expect_ok(
        run, rmm_device_array_shrink_to_fit(&run->arrays[a], run->stream), "shrink");
    run->models[a].capacity = run->models[a].size;
}

static void do_set(run_t *run, size_t a, size_t step)
{
    model_t *model = &run->models[a];
    size_t index = draw(run, LIMIT);
    uint32_t *source = &run->sources[step];
    rmm_status_t status;

    *source = (uint32_t)draw(run, 1u << 30);
    status =
        step % 2 == 0
            ? rmm_device_array_set_element(&run->arrays[a], index, source, run->stream)
            : rmm_device_array_set_element_async(
                  &run->arrays[a], index, source, run->stream);
    if (index < model->size) {
        expect_ok(run, status, "set");
        model->values[index] = *source;
        model->written[index] = true;
    } else {
        expect(run, status == RMM_ERR_OUT_OF_RANGE, "set out of range");
    }
}

static void do_zero(run_t *run, size_t a)
{
    model_t *model = &run->models[a];

    if (model->size != 0) {
        size_t index = draw(run, model->size);

        expect_ok(
            run,
            rmm_device_array_set_element_to_zero_async(
                &run->arrays[a], index, run->stream),
            "zero");
        model->values[index] = 0;
        model->written[index] = true;
    }
}

static void do_copy(run_t *run, size_t a, size_t b)
{
    rmm_resource_t *mr = draw(run, 2) == 0 ? run->mr : NULL;

    expect_ok(
        run, rmm_device_array_copy(&run->arrays[a], &run->arrays[b], run->stream, mr),
        "copy");
    run->models[a] = run->models[b];
    run->models[a].capacity = run->models[a].size;
}

static void do_move(run_t *run, size_t a, size_t b)
{
    rmm_device_array_move(&run->arrays[a], &run->arrays[b]);
    if (a != b) {
        run->models[a] = run->models[b];
        memset(&run->models[b], 0, sizeof(run->models[b]));
    }
}

static void do_end(run_t *run, size_t a)
{
    rmm_device_array_fini(&run->arrays[a]);
    memset(&run->models[a], 0, sizeof(run->models[a]));
}

static void compare(run_t *run, size_t a)
{
    const model_t *model = &run->models[a];
    uint32_t value = 0;

    expect(run, rmm_device_array_size(&run->arrays[a]) == model->size, "size");
    expect(
        run, rmm_device_array_capacity(&run->arrays[a]) == model->capacity, "capacity");
    for (size_t i = 0; i < model->size && run->wrong == NULL; i++) {
        if (model->written[i]) {
            expect_ok(
                run,
                rmm_device_array_get_element(&run->arrays[a], i, &value, run->stream),
                "get");
            expect(run, value == model->values[i], "an element");
        }
    }
}

static void step_once(run_t *run, size_t step)
{
    size_t a = draw(run, ARRAYS);
    size_t b = draw(run, ARRAYS);

    switch (draw(run, 16)) {
    case 0:
    case 1:
        do_resize(run, a);
        break;
    case 2:
        do_reserve(run, a);
        break;
    case 3:
        do_shrink(run, a);
        break;
    case 4:
        do_zero(run, a);
        break;
    case 5:
        do_copy(run, a, b);
        break;
    case 6:
        do_move(run, a, b);
        break;
    case 7:
        do_end(run, a);
        break;
    case 8:
        compare(run, a);
        break;
    default:
        do_set(run, a, step);
        break;
    }
}

static void play(run_t *run)
{
    for (size_t a = 0; a < ARRAYS; a++) {
        run->arrays[a] = (rmm_device_array_t)RMM_DEVICE_ARRAY_INIT(4);
    }
    for (size_t step = 0; step < STEPS && run->wrong == NULL; step++) {
        step_once(run, step);
    }
    for (size_t a = 0; a < ARRAYS; a++) {
        compare(run, a);
        rmm_device_array_fini(&run->arrays[a]);
    }
    expect_ok(run, rmm_stream_synchronize(run->stream), "synchronize");
}

TEST_CASE(random_calls_agree_with_the_model)
{
    rmm_resource_t *pool = make_pool(0, 0);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);

    assert_ok(rmm_set_current_device_resource(pool, NULL));
    for (unsigned seed = 1; seed <= 100; seed++) {
        run_t *run = test_calloc(1, sizeof(*run));

        rmm__sim_reseed(seed);
        *run = (run_t){.seed = seed, .mr = pool, .stream = stream};
        play(run);
        if (run->wrong != NULL) {
            fail_msg("seed %u: %s is wrong", seed, run->wrong);
        }
        test_free(run);
    }
    assert_ok(rmm_reset_current_device_resource());
    assert_int_equal(stats_of(pool).current_count, 0);
    assert_int_equal(stats_of(pool).invalid_free_count, 0);
    assert_ok(rmm_stream_destroy(stream));
    rmm_resource_release(pool);
    assert_int_equal(rmm_sim_violations(), 0);
}

static void *play_in_thread(void *argument)
{
    run_t *run = argument;

    play(run);
    return NULL;
}

TEST_CASE(threads_share_the_resources_and_nothing_else)
{
    rmm_resource_t *pools[2] = {make_pool(0, 0), make_pool(0, 0)};
    run_t *runs = test_calloc(THREADS, sizeof(*runs));
    pthread_t threads[THREADS];

    for (unsigned i = 0; i < THREADS; i++) {
        runs[i] = (run_t){
            .seed = 1000 + i,
            .mr = pools[i % 2],
            .stream = make_stream(RMM_STREAM_NON_BLOCKING)};
        assert_int_equal(
            pthread_create(&threads[i], NULL, play_in_thread, &runs[i]), 0);
    }
    for (int i = 0; i < 200;
         i++) { /* containers without a resource meet each of them */
        assert_ok(
            rmm_set_current_device_resource(i % 3 < 2 ? pools[i % 3] : NULL, NULL));
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_ok(rmm_stream_destroy(runs[i].stream));
        if (runs[i].wrong != NULL) {
            fail_msg("thread %d: %s is wrong", i, runs[i].wrong);
        }
    }
    assert_ok(rmm_reset_current_device_resource());
    for (int i = 0; i < 2; i++) {
        assert_int_equal(stats_of(pools[i]).current_count, 0);
        assert_int_equal(stats_of(pools[i]).invalid_free_count, 0);
        rmm_resource_release(pools[i]);
    }
    test_free(runs);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(rmm_sim_violations(), 0);
}
