/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every container call with every driver call and every request for host memory inside it
 * failing in turn, until the call gets through: the status is one of the contract, what
 * the call was to change is byte for byte as it was, and once all has ended the resource
 * has everything back, references included.
 *
 * Device 1 is current and the containers are of device 0, so that the change of device is
 * among what fails. The resource is a pool, because a pool keeps what the driver refuses
 * to take back, so that a count of its blocks is exact.
 */
#include "sim/containers/container_harness.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/memory.h>

#include "base/resource_impl.h"
#include "core/host_memory.h"
#include "driver/sim/control.h"

enum { BYTES = 1000, MAX_ROUNDS = 200 };

typedef struct scene {
    rmm_resource_t *mr, *mr_of_1; /* the latter is device 1's default */
    rmm_stream_t stream, other;
    /* what calls change, and what they read */
    rmm_device_buffer_t empty, plain, spare;
    rmm_device_array_t array;
    rmm_device_scalar_t scalar;
    rmm_stream_pool_t *stream_pool;
    unsigned char pattern[BYTES];
    uint64_t value;
} scene_t;

static rmm_status_t init(scene_t *s)
{
    return rmm_device_buffer_init(&s->spare, BYTES, s->stream, s->mr);
}

static rmm_status_t init_default(scene_t *s)
{
    return rmm_device_buffer_init(&s->spare, BYTES, s->stream, NULL);
}

static rmm_status_t init_copy_from(scene_t *s)
{
    return rmm_device_buffer_init_copy_from(
        &s->spare, s->pattern, BYTES, s->stream, s->mr);
}

static rmm_status_t copy_onto_empty(scene_t *s)
{
    return rmm_device_buffer_copy(&s->empty, &s->plain, s->stream, s->mr);
}

static rmm_status_t copy_onto_itself(scene_t *s)
{
    return rmm_device_buffer_copy(&s->plain, &s->plain, s->stream, s->mr);
}

static rmm_status_t copy_on_another_stream(scene_t *s)
{
    return rmm_device_buffer_copy(&s->empty, &s->plain, s->other, s->mr);
}

static rmm_status_t copy_to_another_device(scene_t *s)
{
    return rmm_device_buffer_copy(
        &s->empty, &s->plain, RMM_STREAM_PER_THREAD, s->mr_of_1);
}

/* It cannot fail, and sets the stream. */
static rmm_status_t set_stream(scene_t *s)
{
    rmm_device_buffer_set_stream(&s->plain, s->other);
    assert_ptr_equal(rmm_device_buffer_stream(&s->plain), s->other);
    return RMM_OK;
}

static rmm_status_t resize(scene_t *s)
{
    return rmm_device_buffer_resize(&s->plain, 3 * BYTES, s->other);
}

static rmm_status_t resize_empty(scene_t *s)
{
    return rmm_device_buffer_resize(&s->empty, BYTES, s->other);
}

static rmm_status_t reserve(scene_t *s)
{
    return rmm_device_buffer_reserve(&s->plain, 3 * BYTES, s->other);
}

static rmm_status_t shrink(scene_t *s)
{
    return rmm_device_buffer_shrink_to_fit(&s->plain, s->other);
}

static rmm_status_t move_onto_full(scene_t *s)
{
    rmm_device_buffer_move(&s->array.buffer, &s->plain);
    return RMM_OK;
}

static rmm_status_t end(scene_t *s)
{
    rmm_device_buffer_fini(&s->plain);
    return RMM_OK;
}

static rmm_status_t array_resize(scene_t *s)
{
    return rmm_device_array_resize(&s->array, 1000, s->other);
}

static rmm_status_t array_set(scene_t *s)
{
    return rmm_device_array_set_element(&s->array, 1, &s->value, s->stream);
}

static rmm_status_t array_set_async(scene_t *s)
{
    return rmm_device_array_set_element_async(&s->array, 1, &s->value, s->stream);
}

static rmm_status_t array_zero(scene_t *s)
{
    return rmm_device_array_set_element_to_zero_async(&s->array, 1, s->stream);
}

/* The host memory is gone when the call is: nothing may write to it later. */
static rmm_status_t array_get(scene_t *s)
{
    uint64_t *value = test_malloc(sizeof(*value));
    rmm_status_t status = rmm_device_array_back(&s->array, value, s->stream);

    test_free(value);
    return status;
}

static rmm_status_t scalar_value(scene_t *s)
{
    uint64_t *value = test_malloc(sizeof(*value));
    rmm_status_t status = rmm_device_scalar_value(&s->scalar, value, s->stream);

    test_free(value);
    return status;
}

static rmm_status_t scalar_copy(scene_t *s)
{
    return rmm_device_scalar_copy(&s->scalar, &s->scalar, s->stream, s->mr);
}

static rmm_status_t prefetch(scene_t *s)
{
    return rmm_device_array_prefetch(&s->array, 1, 2, 1, s->stream);
}

static rmm_status_t create_stream_pool(scene_t *s)
{
    return rmm_stream_pool_create(3, 0, &s->stream_pool);
}

typedef struct call {
    const char *name;
    rmm_status_t (*run)(scene_t *scene);
    uint64_t at_least; /* driver calls that it makes */
} call_t;

static const call_t calls[] = {
    {"init", init, 3},
    {"init_default", init_default, 1},
    {"init_copy_from", init_copy_from, 4},
    {"copy_onto_empty", copy_onto_empty, 4},
    {"copy_onto_itself", copy_onto_itself, 6},
    {"copy_on_another_stream", copy_on_another_stream, 15},
    {"copy_to_another_device", copy_to_another_device, 20},
    {"set_stream", set_stream, 8},
    {"resize", resize, 6},
    {"resize_empty", resize_empty, 3},
    {"reserve", reserve, 6},
    {"shrink", shrink, 6},
    {"move_onto_full", move_onto_full, 3},
    {"end", end, 3},
    {"array_resize", array_resize, 6},
    {"array_set", array_set, 5},
    {"array_set_async", array_set_async, 4},
    {"array_zero", array_zero, 4},
    {"array_get", array_get, 5},
    {"scalar_value", scalar_value, 5},
    {"scalar_copy", scalar_copy, 6},
    {"prefetch", prefetch, 5},
    {"create_stream_pool", create_stream_pool, 3},
};

/* --- the scene -------------------------------------------------------------------- */

static void open_scene(scene_t *s)
{
    *s = (scene_t){
        .empty = RMM_DEVICE_BUFFER_INIT,
        .spare = RMM_DEVICE_BUFFER_INIT,
        .value = 42,
    };
    pattern_fill(s->pattern, BYTES, 5);
    assert_ok(rmm_device_set(0));
    s->mr = make_pool(MIB, 0);
    s->stream = make_stream(RMM_STREAM_NON_BLOCKING);
    s->other = make_stream(RMM_STREAM_NON_BLOCKING);
    assert_ok(rmm_device_set(1));
    s->mr_of_1 = make_pool(MIB, 0);
    assert_ok(rmm_set_per_device_resource(1, s->mr_of_1, NULL));
    assert_ok(rmm_device_set(0));
    assert_ok(rmm_device_buffer_init_copy_from(
        &s->plain, s->pattern, BYTES, s->stream, s->mr));
    assert_ok(rmm_device_buffer_reserve(&s->plain, 2 * BYTES, s->stream));
    assert_ok(rmm_device_array_init(&s->array, 8, 100, s->stream, s->mr));
    assert_ok(rmm_device_scalar_init_value(&s->scalar, 8, &s->value, s->stream, s->mr));
    assert_ok(rmm_stream_synchronize(s->stream));
    assert_ok(rmm_device_set(1));
}

static void end_scene(scene_t *s)
{
    assert_ok(
        rmm_device_set(0)); /* where the fault hit, the way back may have failed */
    rmm_device_buffer_fini(&s->empty);
    rmm_device_buffer_fini(&s->plain);
    rmm_device_buffer_fini(&s->spare);
    rmm_device_array_fini(&s->array);
    rmm_device_scalar_fini(&s->scalar);
    rmm_stream_pool_destroy(s->stream_pool);
    assert_ok(rmm_reset_per_device_resource(1));
    assert_ok(rmm_stream_destroy(s->stream));
    assert_ok(rmm_stream_destroy(s->other));
    assert_int_equal(stats_of(s->mr).current_count, 0);
    assert_int_equal(stats_of(s->mr).current_bytes, 0);
    assert_int_equal(stats_of(s->mr).invalid_free_count, 0);
    assert_int_equal(atomic_load(&s->mr->references), 1);
    rmm_resource_release(s->mr);
    assert_int_equal(stats_of(s->mr_of_1).current_count, 0);
    rmm_resource_release(s->mr_of_1);
    assert_int_equal(rmm__sim_library_events(), 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

static bool is_clean(rmm_status_t status)
{
    return status == RMM_OK || status == RMM_ERR_OUT_OF_MEMORY ||
           status == RMM_ERR_BAD_ALLOC || status == RMM_ERR_OUT_OF_HOST_MEMORY ||
           status == RMM_ERR_CUDA;
}

/* True if the fault struck. The driver's if nth_host is 0. */
static bool run_with_fault(const call_t *call, const char *plan, uint64_t nth_host)
{
    scene_t *scene = test_malloc(sizeof(*scene));
    scene_t *before = test_malloc(sizeof(*before));
    rmm_status_t status;
    bool struck;

    open_scene(scene);
    memcpy(before, scene, sizeof(*before));
    assert_true(rmm_sim_fail(plan));
    rmm__host_memory_fail(nth_host);
    status = call->run(scene);
    struck = rmm__sim_fault_has_struck() ||
             (nth_host != 0 && rmm__host_memory_fail_struck());
    assert_true(rmm_sim_fail(NULL));
    rmm__host_memory_fail(0);

    assert_true(is_clean(status));
    if (status != RMM_OK) {
        assert_true(struck);
        if (memcmp(scene, before, sizeof(*before)) != 0) {
            fail_msg(
                "%s: failed by %s, host %d: changed something", call->name,
                plan != NULL ? plan : "-", (int)nth_host);
        }
        assert_holds(
            rmm_device_buffer_data(&scene->plain), scene->pattern, BYTES,
            scene->stream);
    }
    end_scene(scene);
    test_free(scene);
    test_free(before);
    return struck;
}

TEST_CASE(every_driver_call_of_every_container_call_may_fail)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        uint64_t nth = 1;
        char plan[32];

        do {
            assert_true(nth < MAX_ROUNDS);
            snprintf(plan, sizeof(plan), "any:%d", (int)nth);
        } while (run_with_fault(&calls[i], plan, 0) && nth++);
        if (nth - 1 < calls[i].at_least) {
            fail_msg("%s made %d driver calls only", calls[i].name, (int)nth - 1);
        }
    }
}

TEST_CASE(every_host_allocation_of_every_container_call_may_fail)
{
    uint64_t struck = 0;

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        uint64_t nth = 1;

        while (run_with_fault(&calls[i], NULL, nth)) {
            assert_true(++nth < MAX_ROUNDS);
            struck++;
        }
    }
    assert_true(struck >= 2); /* those of the stream pool at least */
}

/* With the cuda resource an allocation is a driver call that may say "out of memory". */
TEST_CASE(a_driver_out_of_memory_changes_nothing)
{
    rmm_resource_t *cuda;
    rmm_device_buffer_t buffer;
    rmm_device_buffer_t before;
    unsigned char pattern[BYTES];

    assert_ok(rmm_device_set(0));
    cuda = make_cuda();
    pattern_fill(pattern, BYTES, 9);
    assert_ok(rmm_device_buffer_init_copy_from(&buffer, pattern, BYTES, NULL, cuda));
    before = buffer;
    assert_true(rmm_sim_fail("mem_alloc:1"));
    assert_int_equal(
        rmm_device_buffer_resize(&buffer, 2 * BYTES, NULL), RMM_ERR_OUT_OF_MEMORY);
    assert_true(rmm_sim_fail("memcpy_async:1:999"));
    assert_int_equal(rmm_device_buffer_resize(&buffer, 2 * BYTES, NULL), RMM_ERR_CUDA);
    assert_int_equal(rmm_last_cuda_error(), 999);
    assert_true(rmm_sim_fail(NULL));
    assert_memory_equal(&buffer, &before, sizeof(buffer));
    assert_holds(rmm_device_buffer_data(&buffer), pattern, BYTES, NULL);
    assert_int_equal(stats_of(cuda).current_bytes, BYTES);
    rmm_device_buffer_fini(&buffer);
    rmm_resource_release(cuda);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

/* Of plain host memory the current device decides, which is asked last. */
TEST_CASE(a_device_that_cannot_be_identified_keeps_no_reference)
{
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    rmm_resource_t *host;
    uint32_t before;

    assert_ok(rmm_host_resource_create(&host));
    before = atomic_load(&host->references);
    assert_true(rmm_sim_fail("device_get:1"));
    assert_int_equal(rmm_device_buffer_init(&buffer, BYTES, NULL, host), RMM_ERR_CUDA);
    assert_true(rmm_sim_fail(NULL));
    assert_int_equal(atomic_load(&host->references), before);
    rmm_resource_release(host);
}

static rmm_status_t
heap_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    return posix_memalign(ptr_out, RMM_ALIGN_DEFAULT, bytes) == 0
               ? RMM_OK
               : RMM_ERR_OUT_OF_MEMORY;
}

static void heap_free(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    *(unsigned char *)payload = ((unsigned char *)ptr)[bytes - 1];
    free(ptr);
}

/* The heap would otherwise get a block back that a queued fill still writes to. */
TEST_CASE(host_memory_waits_for_its_stream_where_its_device_is_refused)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    unsigned char last_byte = 0;
    rmm_resource_t *heap;

    options.alloc = heap_alloc;
    options.dealloc = heap_free;
    options.payload = &last_byte;
    options.properties = RMM_HOST_ACCESSIBLE;
    assert_ok(rmm_callback_resource_create(&options, &heap));
    assert_ok(rmm_device_buffer_init(&buffer, BYTES, stream, heap));
    memset(rmm_device_buffer_data(&buffer), 0, BYTES);
    assert_ok(rmm_memset_async(rmm_device_buffer_data(&buffer), 7, BYTES, stream));
    assert_true(rmm_sim_fail("device_get:1"));
    rmm_device_buffer_fini(&buffer);
    assert_true(rmm_sim_fail(NULL));
    assert_int_equal(last_byte, 7);
    rmm_resource_release(heap);
    assert_ok(rmm_stream_destroy(stream));
}
