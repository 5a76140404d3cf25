/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of frameworks in /rmm, by figures that a program sets (rmm/observed_pool.h).
 */
#include "sim/publish/publish_case.h"

#include <pthread.h>

#include <rmm/cuda_resource.h>
#include <rmm/device.h>
#include <rmm/observed_pool.h>
#include <rmm/sys/diag.h>

#define BASE 0x700000000000ull
#define MiB (UINT64_C(1) << 20)
#define THREADS 4
#define ROUNDS 2000

static rmm_observed_pool_t *make(const char *name, int device)
{
    rmm_observed_pool_options_t options = RMM_OBSERVED_POOL_OPTIONS_INIT;
    rmm_observed_pool_t *pool = NULL;

    options.name = name;
    options.device = device;
    CHECK(rmm_observed_pool_create(&options, &pool) == RMM_OK);
    return pool;
}

static rmm_observed_pool_figures_t figures_of(uint64_t current, uint64_t reserved)
{
    rmm_observed_pool_figures_t figures = RMM_OBSERVED_POOL_FIGURES_INIT;

    figures.current_bytes = current;
    figures.current_count = current / MiB;
    figures.reserved_bytes = reserved;
    return figures;
}

static void show(rmm_observed_pool_t *pool, uint64_t current, uint64_t reserved)
{
    const rmm_observed_pool_figures_t figures = figures_of(current, reserved);

    CHECK(rmm_observed_pool_set(pool, &figures) == RMM_OK);
}

/* --- figures ------------------------------------------------------------------------------ */

static void show_and_end(child_t *self, void *argument)
{
    rmm_observed_pool_t *pool = make("torch", 0);
    rmm_observed_pool_figures_t figures = figures_of(3 * MiB, 8 * MiB);

    figures.total_count = 10;
    figures.total_bytes = 20 * MiB;
    figures.peak_bytes = 6 * MiB;
    figures.peak_count = 5;
    figures.oom_count = 1;
    figures.growth_count = 2;
    CHECK(rmm_observed_pool_set(pool, &figures) == RMM_OK);
    child_pause(self, 's');
    rmm_observed_pool_destroy(pool);
    child_pause(self, 'e');
}

CASE(what_is_set_is_shown_until_the_end)
{
    rmm_segment_t segment;
    rmm_record_t record;
    child_t child;

    start_and_read(&child, show_and_end, NULL, 's', &segment);
    assert_true(rmm__segment_read_slot(&segment, 0, &record, NULL));
    assert_string_equal(rmm__record_slot(&record)->type, "observed");
    assert_string_equal(rmm__record_slot(&record)->name, "torch");
    assert_slot(&segment, 0, current_bytes, 3 * MiB);
    assert_slot(&segment, 0, reserved_bytes, 8 * MiB);
    assert_slot(&segment, 0, peak_bytes, 6 * MiB);
    assert_slot(&segment, 0, peak_count, 5);
    assert_slot(&segment, 0, lifetime_peak_bytes, 6 * MiB);
    assert_slot(&segment, 0, total_bytes, 20 * MiB);
    assert_slot(&segment, 0, total_count, 10);
    assert_slot(&segment, 0, freed_count, 7);
    assert_slot(&segment, 0, oom_count, 1);
    assert_slot(&segment, 0, growth_count, 2);
    assert_location(&segment, current_bytes, 3 * MiB);
    assert_location(&segment, reserved_bytes, 8 * MiB);
    assert_location(&segment, peak_bytes, 6 * MiB);
    assert_location(&segment, peak_count, 5);
    assert_location(&segment, total_bytes, 20 * MiB);
    assert_location(&segment, freed_count, 7);
    assert_location(&segment, oom_count, 1);
    child_go_on_until(&child, 'e');
    assert_false(rmm__segment_read_slot(&segment, 0, &record, NULL));
    assert_location(&segment, current_bytes, 0);
    assert_location(&segment, reserved_bytes, 0);
    assert_location(&segment, peak_bytes, 6 * MiB);
    assert_location(&segment, total_bytes, 20 * MiB);
    assert_location(&segment, freed_count, 10);
    assert_location(&segment, leaked_bytes, 0);
    assert_string_equal(logged(), "");
    end_and_close(&child, &segment);
}

static void begin_anew(child_t *self, void *argument)
{
    rmm_observed_pool_t *pool = make("torch", 0);
    rmm_observed_pool_figures_t figures = figures_of(4 * MiB, 4 * MiB);

    figures.total_count = 9;
    figures.total_bytes = 9 * MiB;
    CHECK(rmm_observed_pool_set(pool, &figures) == RMM_OK);
    figures.total_count = 1; /* while two came in */
    figures.total_bytes = MiB;
    figures.current_count = 6;
    figures.current_bytes = 6 * MiB;
    figures.reserved_bytes = 5 * MiB; /* read before the last came in */
    CHECK(rmm_observed_pool_set(pool, &figures) == RMM_OK);
    child_pause(self, 'a');
    figures.total_count = 4;
    figures.current_count = 2;
    figures.current_bytes = 2 * MiB;
    CHECK(rmm_observed_pool_set(pool, &figures) == RMM_OK);
    child_pause(self, 'b');
    rmm_observed_pool_destroy(pool);
}

CASE(counters_never_fall_when_the_framework_begins_anew)
{
    rmm_segment_t segment;
    child_t child;

    start_and_read(&child, begin_anew, NULL, 'a', &segment);
    assert_slot(&segment, 0, total_count, 11);
    assert_slot(&segment, 0, freed_count, 5);
    assert_slot(&segment, 0, total_bytes, 11 * MiB);
    assert_slot(&segment, 0, reserved_bytes, 6 * MiB);
    assert_location(&segment, total_count, 11);
    assert_location(&segment, freed_count, 5);
    child_go_on_until(&child, 'b');
    assert_slot(&segment, 0, total_count, 14);
    assert_slot(&segment, 0, freed_count, 12);
    end_and_close(&child, &segment);
}

static void obey_after_a_reset(child_t *self, void *argument)
{
    rmm_observed_pool_t *pool = make("torch", 0);
    rmm_observed_pool_figures_t figures = figures_of(MiB, 8 * MiB);

    figures.peak_bytes = 6 * MiB;
    CHECK(rmm_observed_pool_set(pool, &figures) == RMM_OK);
    child_pause(self, 'p');
    figures.current_bytes = 2 * MiB;
    CHECK(rmm_observed_pool_set(pool, &figures) == RMM_OK);
    child_pause(self, 'q');
    figures.peak_bytes = 3 * MiB; /* the framework's was reset, too, and has risen */
    CHECK(rmm_observed_pool_set(pool, &figures) == RMM_OK);
    child_pause(self, 'r');
    rmm_observed_pool_destroy(pool);
}

CASE(a_mark_that_was_reset_does_not_come_back)
{
    rmm_segment_t segment;
    rmm_control_t control;
    child_t child;

    start_and_read(&child, obey_after_a_reset, NULL, 'p', &segment);
    assert_int_equal(rmm__control_open(&control, runtime.fd, &segment), 0);
    assert_location(&segment, peak_bytes, 6 * MiB);
    assert_int_equal(rmm__control_reset_location_peak(&control, 0), 0);
    child_go_on_until(&child, 'q');
    assert_location(&segment, peak_bytes, 2 * MiB);
    assert_location(&segment, lifetime_peak_bytes, 6 * MiB);
    assert_slot(&segment, 0, peak_bytes, 6 * MiB);
    child_go_on_until(&child, 'r');
    assert_location(&segment, peak_bytes, 3 * MiB);
    rmm__control_close(&control);
    end_and_close(&child, &segment);
}

/* --- sums ------------------------------------------------------------------------------------ */

static void show_beside_others(child_t *self, void *argument)
{
    rmm_observed_pool_t *torch = make("torch", 0), *jax = make("jax", 0);
    rmm_resource_t *cuda;
    void *block;

    CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    CHECK(rmm_resource_alloc(cuda, MiB, 0, NULL, &block) == RMM_OK);
    show(torch, 2 * MiB, 4 * MiB);
    show(jax, 8 * MiB, 16 * MiB);
    child_pause(self, 'b');
    rmm_resource_dealloc(cuda, block, MiB, 0, NULL);
    rmm_resource_release(cuda);
    rmm_observed_pool_destroy(torch);
    rmm_observed_pool_destroy(jax);
}

CASE(sums_contain_observed_pools_and_resources)
{
    rmm_segment_t segment;
    child_t child;

    start_and_read(&child, show_beside_others, NULL, 'b', &segment);
    assert_location(&segment, current_bytes, 11 * MiB);
    assert_location(&segment, reserved_bytes, 21 * MiB);
    assert_location(&segment, peak_bytes, 11 * MiB);
    end_and_close(&child, &segment);
}

static void show_under_a_diagnosis(child_t *self, void *argument)
{
    const rmm_diag_block_v1_t chunk = {.address = BASE, .bytes = 8 * MiB, .device = 0};
    rmm_observed_pool_t *pool = make("torch", 0);

    show(pool, MiB, 2 * MiB);
    CHECK(rmm_diag_driver_alloc_v1(&chunk) == RMM_OK);
    show(pool, 3 * MiB, 8 * MiB);
    child_pause(self, 'd');
    rmm_diag_driver_forget_v1();
    show(pool, 3 * MiB, 8 * MiB);
    child_pause(self, 'f');
    rmm_observed_pool_destroy(pool);
}

CASE(memory_that_is_counted_at_the_driver_is_not_counted_twice)
{
    rmm_segment_t segment;
    child_t child;

    start_and_read(&child, show_under_a_diagnosis, NULL, 'd', &segment);
    assert_location(&segment, current_bytes, 8 * MiB);
    assert_location(&segment, reserved_bytes, 8 * MiB);
    assert_slot(&segment, 0, current_bytes, 3 * MiB);
    assert_slot(&segment, 0, reserved_bytes, 8 * MiB);
    child_go_on_until(&child, 'f');
    assert_location(&segment, current_bytes, 3 * MiB);
    assert_location(&segment, reserved_bytes, 8 * MiB);
    end_and_close(&child, &segment);
}

/* --- threads, fork, wrong arguments ---------------------------------------------------------- */

static void *set_again_and_again(void *pool)
{
    for (uint64_t i = 0; i < ROUNDS; i++) {
        show(pool, i % 7 * MiB, 8 * MiB);
    }
    return NULL;
}

static void set_in_threads(child_t *self, void *argument)
{
    rmm_observed_pool_t *shared = make("shared", 0), *own = make("own", 0);
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        CHECK(
            pthread_create(
                &threads[i], NULL, set_again_and_again, i < 2 ? shared : own) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    show(shared, MiB, 2 * MiB);
    show(own, MiB, 2 * MiB);
    child_pause(self, 't');
    rmm_observed_pool_destroy(shared);
    rmm_observed_pool_destroy(own);
}

CASE(threads_leave_exact_sums)
{
    rmm_segment_t segment;
    child_t child;

    start_and_read(&child, set_in_threads, NULL, 't', &segment);
    assert_location(&segment, current_bytes, 2 * MiB);
    assert_location(&segment, reserved_bytes, 4 * MiB);
    assert_int_equal(
        location_figure(&segment, 0, RMM_LOCATION_STAT_total_count) -
            location_figure(&segment, 0, RMM_LOCATION_STAT_freed_count),
        2);
    end_and_close(&child, &segment);
}

static void fork_with_one(child_t *self, void *argument)
{
    rmm_observed_pool_t *pool = make("torch", 0);
    const rmm_observed_pool_figures_t more = figures_of(64 * MiB, 64 * MiB);
    pid_t pid;
    int status;

    show(pool, MiB, 2 * MiB);
    pid = fork();
    if (pid == 0) {
        status = rmm_observed_pool_set(pool, &more);
        rmm_observed_pool_destroy(pool);
        _exit(status != RMM_ERR_UNSUPPORTED);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    child_pause(self, 'k');
    rmm_observed_pool_destroy(pool);
}

CASE(a_forked_child_changes_nothing)
{
    rmm_segment_t segment;
    child_t child;

    start_and_read(&child, fork_with_one, NULL, 'k', &segment);
    assert_location(&segment, current_bytes, MiB);
    assert_slot(&segment, 0, current_bytes, MiB);
    end_and_close(&child, &segment);
}

static void refuse_what_is_wrong(child_t *self, void *argument)
{
    rmm_observed_pool_options_t options = RMM_OBSERVED_POOL_OPTIONS_INIT;
    rmm_observed_pool_figures_t figures = RMM_OBSERVED_POOL_FIGURES_INIT;
    rmm_observed_pool_t *pool = NULL, *host;

    (void)self;
    (void)argument;
    CHECK(rmm_observed_pool_create(NULL, NULL) == RMM_ERR_INVALID_ARGUMENT);
    options.device = -2;
    CHECK(rmm_observed_pool_create(&options, &pool) == RMM_ERR_INVALID_ARGUMENT);
    options.device = 7; /* there is one */
    CHECK(rmm_observed_pool_create(&options, &pool) == RMM_ERR_CUDA);
    options.device = 99;
    CHECK(rmm_observed_pool_create(&options, &pool) == RMM_ERR_UNSUPPORTED);
    options.struct_size = 0;
    CHECK(rmm_observed_pool_create(&options, &pool) == RMM_ERR_INVALID_ARGUMENT);
    CHECK(pool == NULL);
    CHECK(rmm_observed_pool_create(NULL, &pool) == RMM_OK);
    CHECK(rmm_observed_pool_set(NULL, &figures) == RMM_ERR_INVALID_ARGUMENT);
    CHECK(rmm_observed_pool_set(pool, NULL) == RMM_ERR_INVALID_ARGUMENT);
    figures.struct_size = 1;
    CHECK(rmm_observed_pool_set(pool, &figures) == RMM_ERR_INVALID_ARGUMENT);
    host = make("pinned", RMM_DEVICE_HOST);
    show(host, MiB, MiB);
    rmm_observed_pool_destroy(host);
    rmm_observed_pool_destroy(pool);
    rmm_observed_pool_destroy(NULL);
}

CASE(wrong_arguments_are_refused)
{
    child_run(refuse_what_is_wrong, NULL);
}
