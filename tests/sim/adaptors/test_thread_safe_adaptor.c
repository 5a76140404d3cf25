/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread-safe adaptor over functions of a program that bear one call at a time: plain
 * variables, which the thread sanitizer watches. It asks nothing of the simulator, so
 * tests/gpu/run runs it on a real GPU as well.
 */
#include "sim/adaptors/adaptor_harness.h"

#include <pthread.h>

#define THREADS 4

typedef struct program {
    rmm_resource_t *inner;
    int inside; /* calls under way */
    int overlaps;
    uint64_t calls;
} program_t;

static void enter(program_t *program)
{
    program->overlaps += program->inside != 0;
    program->inside++;
    program->calls++;
}

static rmm_status_t
program_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    program_t *program = payload;
    rmm_status_t status;

    enter(program);
    status = rmm_resource_alloc(program->inner, bytes, 0, stream, ptr_out);
    program->inside--;
    return status;
}

static void program_dealloc(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    program_t *program = payload;

    enter(program);
    rmm_resource_dealloc(program->inner, ptr, bytes, 0, stream);
    program->inside--;
}

static rmm_resource_t *make_thread_safe(program_t *program)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    rmm_resource_t *callback;
    rmm_resource_t *mr;

    program->inner = make_pool(0, 0);
    options.alloc = program_alloc;
    options.dealloc = program_dealloc;
    options.payload = program;
    assert_ok(rmm_callback_resource_create(&options, &callback));
    assert_ok(rmm_thread_safe_adaptor_create(callback, NULL, &mr));
    rmm_resource_release(callback);
    return mr;
}

static void *take_and_give(void *argument)
{
    rmm_resource_t *mr = argument;
    uintptr_t failures = 0;

    for (size_t i = 0; i < 500; i++) {
        void *ptr;

        if (rmm_resource_alloc(mr, 1 + i, 0, NULL, &ptr) == RMM_OK) {
            rmm_resource_dealloc(mr, ptr, 1 + i, 0, NULL);
        } else {
            failures++;
        }
    }
    return (void *)failures;
}

TEST_CASE(calls_its_upstream_once_at_a_time)
{
    program_t program = {0};
    rmm_resource_t *mr = make_thread_safe(&program);
    pthread_t threads[THREADS];

    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, mr), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *failures;

        assert_int_equal(pthread_join(threads[i], &failures), 0);
        assert_null(failures);
    }
    assert_int_equal(program.calls, 2 * 500 * THREADS);
    assert_int_equal(program.overlaps, 0);
    assert_int_equal(stats_of(mr).total_count, 500 * THREADS);
    assert_int_equal(stats_of(mr).current_count, 0);
    rmm_resource_release(mr);
    rmm_resource_release(program.inner);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

/* --- frees that free -------------------------------------------------------------------- */

typedef struct chain {
    rmm_resource_t *mr;
    void *blocks[3];
    int freed;
} chain_t;

/* Each free causes the next one. */
static void free_next(mock_t *mock, void *argument)
{
    chain_t *chain = argument;

    if (++chain->freed < 3) {
        mock->freed = free_next;
        give(chain->mr, chain->blocks[chain->freed], 100, NULL);
    }
}

TEST_CASE(passes_on_what_frees_free)
{
    mock_t *mock = make_mock();
    chain_t chain = {.freed = 0};

    assert_ok(rmm_thread_safe_adaptor_create(&mock->base, NULL, &chain.mr));
    rmm_resource_release(&mock->base);
    for (int i = 0; i < 3; i++) {
        chain.blocks[i] = take(chain.mr, 100, NULL);
    }
    mock->freed = free_next;
    mock->argument = &chain;
    give(chain.mr, chain.blocks[0], 100, NULL);
    assert_int_equal(mock->deallocs, 3);
    assert_int_equal(stats_of(chain.mr).current_count, 0);
    end_adaptor(chain.mr);
}

typedef struct late {
    rmm_resource_t *mr;
    void *block;
    bool refused;
} late_t;

/* The request of a caller that has returned before the free is made. */
static void free_late(mock_t *mock, void *argument)
{
    late_t *late = argument;
    rmm_request_t request = mock->given;

    request.refused = &late->refused;
    rmm__resource_dealloc(late->mr, late->block, &request);
    mock->refuses_frees = true;
}

TEST_CASE(a_refused_late_free_writes_nothing_to_its_caller)
{
    mock_t *mock = make_mock();
    late_t late = {.refused = false};
    void *first;

    assert_ok(rmm_thread_safe_adaptor_create(&mock->base, NULL, &late.mr));
    first = take(late.mr, 100, NULL);
    late.block = take(late.mr, 100, NULL);
    mock->freed = free_late;
    mock->argument = &late;
    give(late.mr, first, 100, NULL);
    assert_int_equal(mock->deallocs, 2);
    assert_false(late.refused);
    assert_int_equal(stats_of(late.mr).current_count, 1);
    assert_int_equal(stats_of(late.mr).invalid_free_count, 1);
    mock->refuses_frees = false;
    give(late.mr, late.block, 100, NULL);
    assert_int_equal(stats_of(late.mr).current_count, 0);
    rmm_resource_release(late.mr);
    rmm_resource_release(&mock->base);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

/* --- coming back -------------------------------------------------------------------- */

typedef struct returning {
    program_t program; /* first member */
    rmm_resource_t *mr;
    void *block; /* to be freed by the next allocation; NULL: none */
    rmm_status_t alloc_status, trim_status;
} returning_t;

/* Uses the adaptor that it is called by. */
static rmm_status_t
returning_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    returning_t *self = payload;
    rmm_stats_t stats = RMM_STATS_INIT;
    void *ptr;

    if (self->block != NULL) {
        self->alloc_status = rmm_resource_alloc(self->mr, bytes, 0, stream, &ptr);
        self->trim_status = rmm_resource_trim(self->mr, 0);
        rmm_resource_dealloc(self->mr, self->block, 100, 0, stream);
        self->block = NULL;
        if (rmm_resource_get_stats(self->mr, &stats) != RMM_OK) {
            return RMM_ERR_BAD_ALLOC;
        }
    }
    return program_alloc(bytes, stream, payload, ptr_out);
}

TEST_CASE(refuses_reentrant_allocations_and_defers_frees)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    returning_t returning = {.alloc_status = RMM_OK};
    rmm_resource_t *callback;
    void *first, *second;

    returning.program.inner = make_pool(0, 0);
    options.alloc = returning_alloc;
    options.dealloc = program_dealloc;
    options.payload = &returning;
    assert_ok(rmm_callback_resource_create(&options, &callback));
    assert_ok(rmm_thread_safe_adaptor_create(callback, NULL, &returning.mr));
    rmm_resource_release(callback);
    first = take(returning.mr, 100, NULL);
    returning.block = first;
    second = take(returning.mr, 200, NULL);
    assert_int_equal(returning.alloc_status, RMM_ERR_BAD_ALLOC);
    assert_int_equal(returning.trim_status, RMM_ERR_UNSUPPORTED);
    assert_ptr_not_equal(first, second); /* freed after the second was taken */
    assert_int_equal(returning.program.calls, 3);
    assert_int_equal(returning.program.overlaps, 0);
    assert_int_equal(stats_of(returning.mr).current_bytes, 200);
    give(returning.mr, second, 200, NULL);
    rmm_resource_release(returning.mr);
    rmm_resource_release(returning.program.inner);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(location_bytes(), 0);
}
