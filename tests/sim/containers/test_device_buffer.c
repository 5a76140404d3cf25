/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device buffers: RMM's cases of its device_buffer, each over device and over managed
 * memory, and what a buffer does in the order of streams.
 */
#include "sim/containers/container_harness.h"

#include <unistd.h>

#include "driver/sim/control.h"
#include "harness/in_child.h"

enum { BYTES = 1000 };

static unsigned char pattern[BYTES];

static int set_up_cuda(void **state)
{
    pattern_fill(pattern, BYTES, 7);
    return container_set_up(state);
}

static int set_up_managed(void **state)
{
    pattern_fill(pattern, BYTES, 7);
    return container_set_up_on(rmm_managed_resource_create);
}

static rmm_device_buffer_t make(size_t bytes)
{
    rmm_device_buffer_t buffer;

    assert_ok(rmm_device_buffer_init(&buffer, bytes, fixture.stream, fixture.mr));
    return buffer;
}

/* BYTES of the pattern, on fixture.stream. */
static rmm_device_buffer_t make_filled(void)
{
    rmm_device_buffer_t buffer;

    assert_ok(rmm_device_buffer_init_copy_from(
        &buffer, pattern, BYTES, fixture.stream, fixture.mr));
    return buffer;
}

static void assert_filled(const rmm_device_buffer_t *buffer, size_t bytes)
{
    assert_holds(rmm_device_buffer_data(buffer), pattern, bytes, fixture.stream);
}

static void assert_is(
    const rmm_device_buffer_t *buffer, size_t bytes, size_t capacity, size_t align)
{
    assert_int_equal(rmm_device_buffer_size(buffer), bytes);
    assert_int_equal(rmm_device_buffer_capacity(buffer), capacity);
    assert_int_equal(rmm_device_buffer_alignment(buffer), align);
    assert_int_equal(rmm_device_buffer_is_empty(buffer), bytes == 0);
    assert_int_equal(rmm_device_buffer_data(buffer) == NULL, capacity == 0);
}

/* --- begin ------------------------------------------------------------------------ */

static void empty_buffer_has_no_memory(void **state)
{
    rmm_device_buffer_t buffer = make(0);

    assert_is(&buffer, 0, 0, 256);
    assert_int_equal(stats_of(fixture.mr).total_count, 0);
    rmm_device_buffer_fini(&buffer);
}

static void default_memory_resource_is_that_of_the_device(void **state)
{
    rmm_device_buffer_t buffer;

    assert_ok(rmm_set_current_device_resource(fixture.mr, NULL));
    assert_ok(rmm_device_buffer_init(&buffer, BYTES, fixture.stream, NULL));
    assert_ok(rmm_reset_current_device_resource());
    assert_is(&buffer, BYTES, BYTES, 256);
    assert_ptr_equal(rmm_device_buffer_resource(&buffer), fixture.mr);
    assert_ptr_equal(rmm_device_buffer_stream(&buffer), fixture.stream);
    assert_int_equal(rmm_device_buffer_device(&buffer), 0);
    assert_int_equal(stats_of(fixture.mr).current_bytes, BYTES);
    rmm_device_buffer_fini(&buffer);
}

static void explicit_memory_resource_is_retained(void **state)
{
    recorder_t recorder;
    rmm_resource_t *mr;
    rmm_device_buffer_t buffer;

    recorder_open(&recorder);
    mr = recorder.mr;
    assert_ok(rmm_device_buffer_init(&buffer, BYTES, fixture.stream, mr));
    rmm_resource_release(mr);
    assert_ptr_equal(rmm_device_buffer_resource(&buffer), mr);
    assert_int_equal(recorder.last_bytes, BYTES);
    assert_ptr_equal(recorder.alloc_stream, fixture.stream);
    rmm_device_buffer_fini(&buffer);
    assert_int_equal(recorder.frees, 1);
    assert_null(rmm_device_buffer_resource(&buffer));
    rmm_resource_release(recorder.upstream);
}

static void copies_from_raw_host_pointer(void **state)
{
    rmm_device_buffer_t buffer = make_filled();

    assert_is(&buffer, BYTES, BYTES, 256);
    assert_filled(&buffer, BYTES);
    rmm_device_buffer_fini(&buffer);
}

static void copies_from_raw_device_pointer(void **state)
{
    rmm_device_buffer_t source = make_filled();
    rmm_device_buffer_t buffer;

    assert_ok(rmm_device_buffer_init_copy_from(
        &buffer, rmm_device_buffer_data(&source), BYTES, fixture.stream, fixture.mr));
    rmm_device_buffer_fini(&source); /* behind the copy */
    assert_filled(&buffer, BYTES);
    rmm_device_buffer_fini(&buffer);
}

static void copy_from_nullptr_of_no_bytes_is_empty(void **state)
{
    rmm_device_buffer_t buffer;

    assert_ok(
        rmm_device_buffer_init_copy_from(&buffer, NULL, 0, fixture.stream, fixture.mr));
    assert_is(&buffer, 0, 0, 256);
    rmm_device_buffer_fini(&buffer);
}

static void copy_from_nullptr_non_zero_is_refused_and_leaks_nothing(void **state)
{
    rmm_device_buffer_t buffer;
    rmm_device_buffer_t before;

    memset(&buffer, 0x5a, sizeof(buffer));
    before = buffer;
    assert_int_equal(
        rmm_device_buffer_init_copy_from(
            &buffer, NULL, BYTES, fixture.stream, fixture.mr),
        RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_buffer_init_copy_from_aligned(
            &buffer, NULL, BYTES, 64, fixture.stream, fixture.mr),
        RMM_ERR_INVALID_ARGUMENT);
    assert_memory_equal(&buffer, &before, sizeof(buffer));
    assert_int_equal(stats_of(fixture.mr).current_bytes, 0);
}

static void refuses_more_than_there_is_and_is_untouched(void **state)
{
    rmm_device_buffer_t buffer = make_filled();
    rmm_device_buffer_t before = buffer;
    const size_t sizes[] = {(size_t)1 << 50, SIZE_MAX};

    for (size_t i = 0; i < 2; i++) {
        rmm_device_buffer_t none = RMM_DEVICE_BUFFER_INIT;

        assert_int_equal(
            rmm_device_buffer_init(&none, sizes[i], fixture.stream, fixture.mr),
            RMM_ERR_OUT_OF_MEMORY);
        assert_int_equal(
            rmm_device_buffer_resize(&buffer, sizes[i], fixture.other),
            RMM_ERR_OUT_OF_MEMORY);
        assert_int_equal(
            rmm_device_buffer_reserve(&buffer, sizes[i], fixture.other),
            RMM_ERR_OUT_OF_MEMORY);
        assert_int_equal(
            rmm_device_buffer_resize(&none, sizes[i], fixture.other),
            RMM_ERR_OUT_OF_MEMORY);
        assert_null(rmm_device_buffer_resource(&none));
    }
    assert_memory_equal(&buffer, &before, sizeof(buffer));
    assert_filled(&buffer, BYTES);
    rmm_device_buffer_fini(&buffer);
}

/* --- copy and move ---------------------------------------------------------------- */

static void copy_is_deep_and_takes_the_default_resource(void **state)
{
    rmm_device_buffer_t source = make_filled();
    rmm_device_buffer_t copy = RMM_DEVICE_BUFFER_INIT;
    rmm_resource_t *current;

    assert_ok(rmm_get_current_device_resource(&current));
    assert_ok(rmm_device_buffer_copy(&copy, &source, fixture.stream, NULL));
    assert_is(&copy, BYTES, BYTES, 256);
    assert_ptr_not_equal(
        rmm_device_buffer_data(&copy), rmm_device_buffer_data(&source));
    assert_ptr_equal(rmm_device_buffer_resource(&copy), current);
    rmm_device_buffer_fini(&source);
    assert_filled(&copy, BYTES);
    rmm_device_buffer_fini(&copy);
    rmm_resource_release(current);
}

static void copy_with_explicit_resource_has_the_capacity_of_the_size(void **state)
{
    rmm_device_buffer_t source = make_filled();
    rmm_device_buffer_t copy = RMM_DEVICE_BUFFER_INIT;

    assert_ok(rmm_device_buffer_resize(&source, BYTES / 2, fixture.stream));
    assert_is(&source, BYTES / 2, BYTES, 256);
    assert_ok(rmm_device_buffer_copy(&copy, &source, fixture.stream, fixture.mr));
    assert_is(&copy, BYTES / 2, BYTES / 2, 256);
    assert_ptr_equal(rmm_device_buffer_resource(&copy), fixture.mr);
    assert_filled(&copy, BYTES / 2);
    rmm_device_buffer_fini(&source);
    rmm_device_buffer_fini(&copy);
}

static void copy_frees_what_the_target_held(void **state)
{
    rmm_device_buffer_t source = make_filled();
    rmm_device_buffer_t target = make(3 * BYTES);

    assert_ok(rmm_device_buffer_copy(&target, &source, fixture.stream, fixture.mr));
    assert_int_equal(stats_of(fixture.mr).current_bytes, 2 * BYTES);
    assert_ok(rmm_device_buffer_copy(&target, &target, fixture.other, fixture.mr));
    assert_int_equal(stats_of(fixture.mr).current_bytes, 2 * BYTES);
    assert_ok(rmm_stream_synchronize(fixture.other));
    assert_filled(&target, BYTES);
    rmm_device_buffer_fini(&source);
    rmm_device_buffer_fini(&target);
}

static void move_constructor_leaves_the_source_empty(void **state)
{
    rmm_device_buffer_t source = make_filled();
    void *data = rmm_device_buffer_data(&source);
    rmm_device_buffer_t moved = RMM_DEVICE_BUFFER_INIT;

    rmm_device_buffer_move(&moved, &source);
    assert_is(&moved, BYTES, BYTES, 256);
    assert_ptr_equal(rmm_device_buffer_data(&moved), data);
    assert_ptr_equal(rmm_device_buffer_resource(&moved), fixture.mr);
    assert_ptr_equal(rmm_device_buffer_stream(&moved), fixture.stream);
    assert_is(&source, 0, 0, 1);
    assert_null(rmm_device_buffer_resource(&source));
    assert_null(rmm_device_buffer_stream(&source));
    assert_int_equal(rmm_device_buffer_device(&source), -1);
    assert_filled(&moved, BYTES);
    rmm_device_buffer_fini(&source);
    rmm_device_buffer_fini(&moved);
}

static void move_assignment_frees_the_old_memory_on_its_old_stream(void **state)
{
    rmm_device_buffer_t source = make_filled();
    rmm_device_buffer_t target;
    recorder_t recorder;

    recorder_open(&recorder);
    assert_ok(rmm_device_buffer_init(&target, 64, fixture.other, recorder.mr));
    rmm_device_buffer_move(&target, &source);
    assert_int_equal(recorder.frees, 1);
    assert_ptr_equal(recorder.free_stream, fixture.other);
    assert_ptr_equal(rmm_device_buffer_stream(&target), fixture.stream);
    assert_filled(&target, BYTES);
    rmm_device_buffer_fini(&target);
    recorder_close(&recorder);
}

static void self_move_assignment_changes_nothing(void **state)
{
    rmm_device_buffer_t buffer = make_filled();
    rmm_device_buffer_t before = buffer;
    rmm_device_buffer_t *same = &buffer;

    rmm_device_buffer_move(&buffer, same);
    assert_memory_equal(&buffer, &before, sizeof(buffer));
    assert_filled(&buffer, BYTES);
    rmm_device_buffer_fini(&buffer);
}

static void a_moved_from_buffer_can_be_used_again(void **state)
{
    rmm_device_buffer_t source = make_filled();
    rmm_device_buffer_t moved = RMM_DEVICE_BUFFER_INIT;

    rmm_device_buffer_move(&moved, &source);
    assert_ok(rmm_device_buffer_resize(&source, 10, fixture.stream));
    assert_is(&source, 10, 10, 1);
    rmm_device_buffer_move(&moved, &source);
    assert_is(&moved, 10, 10, 1);
    rmm_device_buffer_fini(&moved);
}

/* --- resize ----------------------------------------------------------------------- */

static void resize_smaller_keeps_memory_and_shrink_to_fit_gives_it_back(void **state)
{
    rmm_device_buffer_t buffer = make_filled();
    void *data = rmm_device_buffer_data(&buffer);

    assert_ok(rmm_device_buffer_resize(&buffer, BYTES / 2, fixture.stream));
    assert_is(&buffer, BYTES / 2, BYTES, 256);
    assert_ptr_equal(rmm_device_buffer_data(&buffer), data);
    assert_ok(rmm_device_buffer_shrink_to_fit(&buffer, fixture.stream));
    assert_is(&buffer, BYTES / 2, BYTES / 2, 256);
    assert_ptr_not_equal(rmm_device_buffer_data(&buffer), data);
    assert_filled(&buffer, BYTES / 2);
    assert_int_equal(stats_of(fixture.mr).current_bytes, BYTES / 2);
    data = rmm_device_buffer_data(&buffer);
    assert_ok(rmm_device_buffer_shrink_to_fit(&buffer, fixture.stream));
    assert_ptr_equal(rmm_device_buffer_data(&buffer), data);
    rmm_device_buffer_fini(&buffer);
}

static void resize_to_nothing_and_shrink_to_fit_leaves_no_memory(void **state)
{
    rmm_device_buffer_t buffer = make_filled();

    assert_ok(rmm_device_buffer_resize(&buffer, 0, fixture.stream));
    assert_is(&buffer, 0, BYTES, 256);
    assert_ok(rmm_device_buffer_shrink_to_fit(&buffer, fixture.stream));
    assert_is(&buffer, 0, 0, 256);
    assert_int_equal(stats_of(fixture.mr).current_count, 0);
    assert_ptr_equal(rmm_device_buffer_resource(&buffer), fixture.mr);
    rmm_device_buffer_fini(&buffer);
}

static void resize_bigger_has_exactly_that_capacity(void **state)
{
    rmm_device_buffer_t buffer = make_filled();

    assert_ok(rmm_device_buffer_resize(&buffer, BYTES + 1, fixture.stream));
    assert_is(&buffer, BYTES + 1, BYTES + 1, 256);
    assert_filled(&buffer, BYTES);
    assert_int_equal(stats_of(fixture.mr).current_bytes, BYTES + 1);
    rmm_device_buffer_fini(&buffer);
}

static void reserve_smaller_does_nothing(void **state)
{
    rmm_device_buffer_t buffer = make_filled();
    void *data = rmm_device_buffer_data(&buffer);

    assert_ok(rmm_device_buffer_reserve(&buffer, BYTES / 2, fixture.stream));
    assert_is(&buffer, BYTES, BYTES, 256);
    assert_ptr_equal(rmm_device_buffer_data(&buffer), data);
    rmm_device_buffer_fini(&buffer);
}

static void reserve_bigger_keeps_the_size_and_the_contents(void **state)
{
    rmm_device_buffer_t buffer = make_filled();

    assert_ok(rmm_device_buffer_reserve(&buffer, 2 * BYTES, fixture.stream));
    assert_is(&buffer, BYTES, 2 * BYTES, 256);
    assert_filled(&buffer, BYTES);
    rmm_device_buffer_fini(&buffer);
}

static void set_and_get_stream(void **state)
{
    recorder_t recorder;
    rmm_device_buffer_t buffer;

    recorder_open(&recorder);
    assert_ok(rmm_device_buffer_init(&buffer, BYTES, fixture.stream, recorder.mr));
    assert_ptr_equal(rmm_device_buffer_stream(&buffer), fixture.stream);
    rmm_device_buffer_set_stream(&buffer, fixture.other);
    assert_ptr_equal(rmm_device_buffer_stream(&buffer), fixture.other);
    assert_ok(rmm_device_buffer_reserve(&buffer, 1, fixture.stream));
    assert_ptr_equal(rmm_device_buffer_stream(&buffer), fixture.stream);
    assert_ok(rmm_device_buffer_shrink_to_fit(&buffer, fixture.other));
    assert_ptr_equal(rmm_device_buffer_stream(&buffer), fixture.other);
    assert_ok(rmm_device_buffer_resize(&buffer, 2 * BYTES, fixture.stream));
    assert_ptr_equal(recorder.free_stream, fixture.stream);
    rmm_device_buffer_set_stream(&buffer, fixture.other);
    rmm_device_buffer_fini(&buffer);
    assert_ptr_equal(recorder.free_stream, fixture.other);
    recorder_close(&recorder);
}

/* --- alignment -------------------------------------------------------------------- */

static void default_and_explicit_alignments_are_kept(void **state)
{
    const size_t aligns[] = {1, 64, 128, 256};

    for (size_t i = 0; i < 4; i++) {
        rmm_device_buffer_t buffer;
        rmm_device_buffer_t copy = RMM_DEVICE_BUFFER_INIT;

        assert_ok(rmm_device_buffer_init_copy_from_aligned(
            &buffer, pattern, BYTES, aligns[i], fixture.stream, fixture.mr));
        assert_is(&buffer, BYTES, BYTES, aligns[i]);
        assert_ok(rmm_device_buffer_copy(&copy, &buffer, fixture.stream, fixture.mr));
        assert_is(&copy, BYTES, BYTES, aligns[i]);
        assert_filled(&copy, BYTES);
        assert_ok(rmm_device_buffer_resize(&buffer, 2 * BYTES, fixture.stream));
        assert_is(&buffer, 2 * BYTES, 2 * BYTES, aligns[i]);
        rmm_device_buffer_move(&copy, &buffer);
        assert_is(&copy, 2 * BYTES, 2 * BYTES, aligns[i]);
        assert_int_equal(rmm_device_buffer_alignment(&buffer), 1);
        rmm_device_buffer_fini(&copy);
        rmm_device_buffer_fini(&buffer);
    }
}

static void too_large_an_alignment_is_bad_alloc_unless_empty(void **state)
{
    rmm_device_buffer_t buffer;

    assert_int_equal(
        rmm_device_buffer_init_aligned(&buffer, BYTES, 512, fixture.stream, fixture.mr),
        RMM_ERR_BAD_ALLOC);
    assert_ok(
        rmm_device_buffer_init_aligned(&buffer, 0, 512, fixture.stream, fixture.mr));
    assert_is(&buffer, 0, 0, 512);
    assert_int_equal(
        rmm_device_buffer_resize(&buffer, 1, fixture.stream), RMM_ERR_BAD_ALLOC);
    assert_is(&buffer, 0, 0, 512);
    rmm_device_buffer_fini(&buffer);
}

static void a_pool_gives_a_larger_alignment(void **state)
{
    rmm_resource_t *pool = make_pool(0, 0);
    rmm_device_buffer_t first;
    rmm_device_buffer_t buffer;

    assert_ok(rmm_device_buffer_init(&first, 1, fixture.stream, pool));
    assert_ok(rmm_device_buffer_init_copy_from_aligned(
        &buffer, pattern, BYTES, 4096, fixture.stream, pool));
    assert_int_equal((uintptr_t)rmm_device_buffer_data(&buffer) % 4096, 0);
    assert_filled(&buffer, BYTES);
    rmm_device_buffer_fini(&buffer);
    rmm_device_buffer_fini(&first);
    rmm_resource_release(pool);
}

static void invalid_alignment_is_refused(void **state)
{
    const size_t wrong[] = {0, 3, 768};
    rmm_device_buffer_t buffer;

    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(
            rmm_device_buffer_init_aligned(
                &buffer, BYTES, wrong[i], fixture.stream, fixture.mr),
            RMM_ERR_INVALID_ALIGNMENT);
        assert_int_equal(
            rmm_device_buffer_init_copy_from_aligned(
                &buffer, pattern, BYTES, wrong[i], fixture.stream, fixture.mr),
            RMM_ERR_INVALID_ALIGNMENT);
    }
}

/* --- a buffer that was only initialised statically -------------------------------- */

static void default_constructed_grows_from_the_current_resource(void **state)
{
    rmm_device_buffer_t resized = RMM_DEVICE_BUFFER_INIT;
    rmm_device_buffer_t reserved = RMM_DEVICE_BUFFER_INIT;
    rmm_device_buffer_t shrunk = RMM_DEVICE_BUFFER_INIT;

    assert_is(&resized, 0, 0, 256);
    assert_ok(rmm_set_current_device_resource(fixture.mr, NULL));
    assert_ok(rmm_device_buffer_resize(&resized, BYTES, fixture.stream));
    assert_ok(rmm_device_buffer_reserve(&reserved, BYTES, fixture.stream));
    assert_ok(rmm_device_buffer_shrink_to_fit(&shrunk, fixture.stream));
    assert_ok(rmm_reset_current_device_resource());
    assert_is(&resized, BYTES, BYTES, 256);
    assert_is(&reserved, 0, BYTES, 256);
    assert_is(&shrunk, 0, 0, 256);
    assert_ptr_equal(rmm_device_buffer_resource(&resized), fixture.mr);
    rmm_device_buffer_fini(&resized);
    rmm_device_buffer_fini(&reserved);
    rmm_device_buffer_fini(&shrunk);
    rmm_device_buffer_fini(&shrunk); /* is what it was before it began */
    rmm_device_buffer_fini(NULL);
}

static void an_empty_buffer_grows_from_its_own_resource(void **state)
{
    rmm_device_buffer_t buffer = make(0);

    assert_ok(rmm_device_buffer_resize(&buffer, BYTES, fixture.stream));
    assert_is(&buffer, BYTES, BYTES, 256);
    assert_int_equal(stats_of(fixture.mr).current_bytes, BYTES);
    rmm_device_buffer_fini(&buffer);
}

/* --- order ------------------------------------------------------------------------ */

static void a_reallocation_copies_behind_the_work_of_its_stream(void **state)
{
    rmm_resource_t *pool = make_pool(0, 0);

    for (unsigned seed = 1; seed <= 50; seed++) {
        rmm_device_buffer_t buffer;
        rmm_device_buffer_t next;
        uint64_t mixups = 0;
        rmm_stream_t stream = fixture.stream;

        rmm__sim_reseed(seed);
        assert_ok(rmm_device_buffer_init(&buffer, 4096, stream, pool));
        launch_fill(rmm_device_buffer_data(&buffer), 4096, seed, stream);
        assert_ok(rmm_device_buffer_resize(&buffer, 8192, stream));
        /* what was freed is handed out at once, and written by its new user */
        assert_ok(rmm_device_buffer_init(&next, 4096, stream, pool));
        launch_fill(rmm_device_buffer_data(&next), 4096, 0, stream);
        launch_check(rmm_device_buffer_data(&buffer), 4096, seed, &mixups, stream);
        rmm_device_buffer_fini(&next);
        rmm_device_buffer_fini(&buffer);
        assert_ok(rmm_stream_synchronize(stream));
        assert_int_equal(mixups, 0);
    }
    rmm_resource_release(pool);
}

static void nothing_waits_for_the_stream(void **state)
{
    rmm_resource_t *pool = make_pool(MIB, 0);
    rmm_device_buffer_t buffer;
    rmm_device_buffer_t copy = RMM_DEVICE_BUFFER_INIT;
    rmm_sim_graph_t graph;

    /* what waits cannot be captured */
    assert_cuda(rmm_sim_begin_capture(fixture.stream, 0));
    assert_ok(rmm_device_buffer_init_copy_from(
        &buffer, pattern, BYTES, fixture.stream, pool));
    assert_ok(rmm_device_buffer_resize(&buffer, 2 * BYTES, fixture.stream));
    assert_ok(rmm_device_buffer_copy(&copy, &buffer, fixture.stream, pool));
    assert_cuda(rmm_sim_end_capture(fixture.stream, &graph));
    assert_cuda(rmm_sim_graph_launch(graph, fixture.stream));
    assert_filled(&copy, BYTES);
    assert_cuda(rmm_sim_graph_destroy(graph));
    rmm_device_buffer_fini(&copy);
    rmm_device_buffer_fini(&buffer);
    rmm_resource_release(pool);
}

/* Freed while queued work still reads it, unless the buffer waits: ask the sanitizer. */
static void host_memory_outlives_the_copies_that_use_it(void **state)
{
    rmm_resource_t *host;
    rmm_device_buffer_t source;
    rmm_device_buffer_t copy = RMM_DEVICE_BUFFER_INIT;

    assert_ok(rmm_host_resource_create(&host));
    assert_ok(rmm_device_buffer_init(&source, BYTES, fixture.stream, host));
    memcpy(rmm_device_buffer_data(&source), pattern, BYTES);
    assert_ok(rmm_device_buffer_copy(&copy, &source, fixture.stream, fixture.mr));
    assert_ok(rmm_device_buffer_resize(&source, 2 * BYTES, fixture.stream));
    rmm_device_buffer_fini(&source);
    assert_filled(&copy, BYTES);
    rmm_device_buffer_fini(&copy);
    rmm_resource_release(host);
}

static void refuses_null_buffers(void **state)
{
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    rmm_stream_t stream = fixture.stream;

    assert_int_equal(
        rmm_device_buffer_init(NULL, 1, stream, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_buffer_resize(NULL, 1, stream), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_buffer_reserve(NULL, 1, stream), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_buffer_shrink_to_fit(NULL, stream), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_buffer_copy(&buffer, NULL, stream, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_buffer_copy(NULL, &buffer, stream, NULL), RMM_ERR_INVALID_ARGUMENT);
}

/* --- in a forked child -------------------------------------------------------------- */

/* 0: refused by the resource, and the driver was asked nothing. */
static int use_in_child(rmm_device_buffer_t *inherited, rmm_resource_t *mr)
{
    rmm_device_buffer_t fresh = RMM_DEVICE_BUFFER_INIT;

    if (!rmm_sim_fail("device_get:1,device_set:1,stream_synchronize:1,mem_free:1")) {
        return 1;
    }
    if (rmm_device_buffer_init(&fresh, 1000, NULL, mr) != RMM_ERR_UNSUPPORTED ||
        strstr(rmm_last_error_message(), "fork()") == NULL) {
        return 2;
    }
    if (rmm_device_buffer_resize(inherited, 5000, NULL) != RMM_ERR_UNSUPPORTED) {
        return 3;
    }
    rmm_device_buffer_fini(inherited);
    return rmm__sim_fault_has_struck() ? 4 : 0;
}

static void a_forked_child_asks_the_driver_nothing(void **state)
{
    rmm_resource_t *mr = make_cuda();
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    pid_t pid;

    assert_ok(rmm_device_buffer_init(&buffer, 1000, NULL, mr));
    pid = fork_child();
    if (pid == 0) {
        alarm(100);
        _exit(use_in_child(&buffer, mr));
    }
    assert_int_equal(exit_status_of(pid), 0);
    rmm_device_buffer_fini(&buffer);
    rmm_resource_release(mr);
}

#define FOR_BOTH(name)                                                                 \
    {"cuda: " #name, name, set_up_cuda, container_tear_down, NULL},                    \
    {                                                                                  \
        "managed: " #name, name, set_up_managed, container_tear_down, NULL             \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forked_child_asks_the_driver_nothing),
        FOR_BOTH(empty_buffer_has_no_memory),
        FOR_BOTH(default_memory_resource_is_that_of_the_device),
        FOR_BOTH(explicit_memory_resource_is_retained),
        FOR_BOTH(copies_from_raw_host_pointer),
        FOR_BOTH(copies_from_raw_device_pointer),
        FOR_BOTH(copy_from_nullptr_of_no_bytes_is_empty),
        FOR_BOTH(copy_from_nullptr_non_zero_is_refused_and_leaks_nothing),
        FOR_BOTH(refuses_more_than_there_is_and_is_untouched),
        FOR_BOTH(copy_is_deep_and_takes_the_default_resource),
        FOR_BOTH(copy_with_explicit_resource_has_the_capacity_of_the_size),
        FOR_BOTH(copy_frees_what_the_target_held),
        FOR_BOTH(move_constructor_leaves_the_source_empty),
        FOR_BOTH(move_assignment_frees_the_old_memory_on_its_old_stream),
        FOR_BOTH(self_move_assignment_changes_nothing),
        FOR_BOTH(a_moved_from_buffer_can_be_used_again),
        FOR_BOTH(resize_smaller_keeps_memory_and_shrink_to_fit_gives_it_back),
        FOR_BOTH(resize_to_nothing_and_shrink_to_fit_leaves_no_memory),
        FOR_BOTH(resize_bigger_has_exactly_that_capacity),
        FOR_BOTH(reserve_smaller_does_nothing),
        FOR_BOTH(reserve_bigger_keeps_the_size_and_the_contents),
        FOR_BOTH(set_and_get_stream),
        FOR_BOTH(default_and_explicit_alignments_are_kept),
        FOR_BOTH(too_large_an_alignment_is_bad_alloc_unless_empty),
        FOR_BOTH(a_pool_gives_a_larger_alignment),
        FOR_BOTH(invalid_alignment_is_refused),
        FOR_BOTH(default_constructed_grows_from_the_current_resource),
        FOR_BOTH(an_empty_buffer_grows_from_its_own_resource),
        FOR_BOTH(a_reallocation_copies_behind_the_work_of_its_stream),
        FOR_BOTH(nothing_waits_for_the_stream),
        FOR_BOTH(host_memory_outlives_the_copies_that_use_it),
        FOR_BOTH(refuses_null_buffers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
