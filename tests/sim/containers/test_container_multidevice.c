/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers while another device is current than their own: RMM's cases of
 * container_multidevice, for every pair of four devices. Memory comes from and goes back
 * to the owning device, with that device current in the resource, and the caller's device
 * is as it was; default streams are those of the owning device.
 */
#include "sim/containers/container_harness.h"

#include "driver/sim/control.h"

enum { DEVICES = 4, BYTES = 4096 };

typedef union any {
    rmm_device_buffer_t buffer;
    rmm_device_array_t array;
    rmm_device_scalar_t scalar;
} any_t;

/* A kind of container, as far as the cases use it. */
typedef struct kind {
    const char *name;
    rmm_status_t (*init)(any_t *, rmm_stream_t, rmm_resource_t *);
    void (*fini)(any_t *);
    void (*move)(any_t *, any_t *);
    rmm_status_t (*copy)(any_t *, const any_t *, rmm_stream_t);
    rmm_status_t (*resize)(any_t *, size_t, rmm_stream_t); /* NULL: of one size */
    rmm_status_t (*shrink)(any_t *, rmm_stream_t);
    void *(*data)(const any_t *);
} kind_t;

static rmm_status_t buffer_init(any_t *any, rmm_stream_t stream, rmm_resource_t *mr)
{
    return rmm_device_buffer_init(&any->buffer, BYTES, stream, mr);
}

static void buffer_fini(any_t *any)
{
    rmm_device_buffer_fini(&any->buffer);
}

static void buffer_move(any_t *to, any_t *from)
{
    rmm_device_buffer_move(&to->buffer, &from->buffer);
}

static rmm_status_t buffer_copy(any_t *to, const any_t *from, rmm_stream_t stream)
{
    rmm_resource_t *mr = rmm_device_buffer_resource(&from->buffer);

    return rmm_device_buffer_copy(&to->buffer, &from->buffer, stream, mr);
}

static rmm_status_t buffer_resize(any_t *any, size_t bytes, rmm_stream_t stream)
{
    return rmm_device_buffer_resize(&any->buffer, bytes, stream);
}

static rmm_status_t buffer_shrink(any_t *any, rmm_stream_t stream)
{
    return rmm_device_buffer_shrink_to_fit(&any->buffer, stream);
}

static void *buffer_data(const any_t *any)
{
    return rmm_device_buffer_data(&any->buffer);
}

static rmm_status_t array_init(any_t *any, rmm_stream_t stream, rmm_resource_t *mr)
{
    return rmm_device_array_init(&any->array, 8, BYTES / 8, stream, mr);
}

static void array_fini(any_t *any)
{
    rmm_device_array_fini(&any->array);
}

static void array_move(any_t *to, any_t *from)
{
    rmm_device_array_move(&to->array, &from->array);
}

static rmm_status_t array_copy(any_t *to, const any_t *from, rmm_stream_t stream)
{
    rmm_resource_t *mr = rmm_device_array_resource(&from->array);

    return rmm_device_array_copy(&to->array, &from->array, stream, mr);
}

static rmm_status_t array_resize(any_t *any, size_t bytes, rmm_stream_t stream)
{
    return rmm_device_array_resize(&any->array, bytes / 8, stream);
}

static rmm_status_t array_shrink(any_t *any, rmm_stream_t stream)
{
    return rmm_device_array_shrink_to_fit(&any->array, stream);
}

static void *array_data(const any_t *any)
{
    return rmm_device_array_data(&any->array);
}

static rmm_status_t scalar_init(any_t *any, rmm_stream_t stream, rmm_resource_t *mr)
{
    return rmm_device_scalar_init(&any->scalar, BYTES, stream, mr);
}

static void scalar_fini(any_t *any)
{
    rmm_device_scalar_fini(&any->scalar);
}

static void scalar_move(any_t *to, any_t *from)
{
    rmm_device_scalar_move(&to->scalar, &from->scalar);
}

static rmm_status_t scalar_copy(any_t *to, const any_t *from, rmm_stream_t stream)
{
    rmm_resource_t *mr = rmm_device_scalar_resource(&from->scalar);

    return rmm_device_scalar_copy(&to->scalar, &from->scalar, stream, mr);
}

static void *scalar_data(const any_t *any)
{
    return rmm_device_scalar_data(&any->scalar);
}

static const kind_t kinds[] = {
    {"buffer", buffer_init, buffer_fini, buffer_move, buffer_copy, buffer_resize,
     buffer_shrink, buffer_data},
    {"array", array_init, array_fini, array_move, array_copy, array_resize,
     array_shrink, array_data},
    {"scalar", scalar_init, scalar_fini, scalar_move, scalar_copy, NULL, NULL,
     scalar_data},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static const any_t nothing = {.array = RMM_DEVICE_ARRAY_INIT(8)};

/* --- one pair of devices ---------------------------------------------------------- */

typedef struct pair {
    const kind_t *kind;
    int owner, active;
    recorder_t recorder;
    rmm_stream_t stream; /* of the owner */
} pair_t;

static void open_pair(pair_t *pair)
{
    assert_ok(rmm_device_set(pair->owner));
    recorder_open(&pair->recorder);
    pair->stream = make_stream(RMM_STREAM_NON_BLOCKING);
}

static void close_pair(pair_t *pair)
{
    assert_int_equal(pair->recorder.free_device, pair->owner);
    recorder_close(&pair->recorder);
    assert_ok(rmm_stream_destroy(pair->stream));
}

/* The container's memory is where it belongs, and the caller's device is current. */
static void assert_in_place(const pair_t *pair, size_t bytes)
{
    int device = -1;

    assert_ok(rmm_device_current(&device));
    assert_int_equal(device, pair->active);
    assert_int_equal(pair->recorder.alloc_device, pair->owner);
    for (int i = 0; i < DEVICES; i++) {
        if (i == pair->owner) {
            assert_true(rmm_sim_allocated_bytes(i) >= bytes);
        } else {
            assert_int_equal(rmm_sim_allocated_bytes(i), 0);
        }
    }
    if (bytes == 0) {
        assert_int_equal(rmm_sim_allocated_bytes(pair->owner), 0);
    }
}

static void activate(const pair_t *pair)
{
    assert_ok(rmm_device_set(pair->active));
}

static void for_every_pair(void (*scenario)(pair_t *pair))
{
    for (size_t k = 0; k < KINDS; k++) {
        for (int owner = 0; owner < DEVICES; owner++) {
            for (int active = 0; active < DEVICES; active++) {
                pair_t pair = {.kind = &kinds[k], .owner = owner, .active = active};

                open_pair(&pair);
                scenario(&pair);
                close_pair(&pair);
            }
        }
    }
    assert_ok(rmm_device_set(0));
    assert_int_equal(rmm_sim_violations(), 0);
}

static void create_destroy(pair_t *pair)
{
    any_t any;

    assert_ok(pair->kind->init(&any, pair->stream, pair->recorder.mr));
    activate(pair);
    assert_in_place(pair, BYTES);
    pair->kind->fini(&any);
    assert_in_place(pair, 0);
}

TEST_CASE(create_and_destroy_on_the_owning_device)
{
    for_every_pair(create_destroy);
}

/* The resource says whose it is, not what is current when the container is made. */
static void create_elsewhere(pair_t *pair)
{
    any_t any;

    activate(pair);
    assert_ok(pair->kind->init(&any, pair->stream, pair->recorder.mr));
    assert_in_place(pair, BYTES);
    pair->kind->fini(&any);
    assert_in_place(pair, 0);
}

TEST_CASE(a_resource_of_another_device_decides)
{
    for_every_pair(create_elsewhere);
}

static void create_move_destroy(pair_t *pair)
{
    any_t any;
    any_t moved = nothing;

    assert_ok(pair->kind->init(&any, pair->stream, pair->recorder.mr));
    activate(pair);
    pair->kind->move(&moved, &any);
    assert_in_place(pair, BYTES);
    pair->kind->fini(&any);
    pair->kind->fini(&moved);
    assert_in_place(pair, 0);
}

TEST_CASE(create_move_and_destroy_on_the_owning_device)
{
    for_every_pair(create_move_destroy);
}

static void copy_elsewhere(pair_t *pair)
{
    any_t any;
    any_t copy = nothing;

    assert_ok(pair->kind->init(&any, pair->stream, pair->recorder.mr));
    activate(pair);
    assert_ok(pair->kind->copy(&copy, &any, pair->stream));
    assert_in_place(pair, 2 * BYTES);
    pair->kind->fini(&any);
    pair->kind->fini(&copy);
    assert_in_place(pair, 0);
}

TEST_CASE(copies_on_the_owning_device)
{
    for_every_pair(copy_elsewhere);
}

static void resize_elsewhere(pair_t *pair)
{
    any_t any;

    assert_ok(pair->kind->init(&any, pair->stream, pair->recorder.mr));
    activate(pair);
    if (pair->kind->resize != NULL) {
        assert_ok(pair->kind->resize(&any, 2 * BYTES, pair->stream));
        assert_in_place(pair, 2 * BYTES);
        assert_int_equal(pair->recorder.free_device, pair->owner);
    }
    pair->kind->fini(&any);
    assert_in_place(pair, 0);
}

TEST_CASE(resizes_on_the_owning_device)
{
    for_every_pair(resize_elsewhere);
}

static void shrink_elsewhere(pair_t *pair)
{
    any_t any;

    assert_ok(pair->kind->init(&any, pair->stream, pair->recorder.mr));
    if (pair->kind->resize != NULL) {
        assert_ok(pair->kind->resize(&any, BYTES / 2, pair->stream));
        activate(pair);
        assert_ok(pair->kind->shrink(&any, pair->stream));
        assert_in_place(pair, BYTES / 2);
        assert_int_equal(pair->recorder.free_device, pair->owner);
    }
    activate(pair);
    pair->kind->fini(&any);
    assert_in_place(pair, 0);
}

TEST_CASE(shrinks_on_the_owning_device)
{
    for_every_pair(shrink_elsewhere);
}

/* A kernel on the owner's default stream, a copy on "the default stream" while another
 * device is current: behind the kernel. The other device's would not wait. */
static void use_default_stream(pair_t *pair)
{
    for (unsigned seed = 1; seed <= 10; seed++) {
        uint64_t mixups = 0;
        uint64_t number = 1000 + seed;
        any_t any;
        any_t copy = nothing;

        rmm__sim_reseed(seed);
        assert_ok(rmm_device_set(pair->owner));
        assert_ok(pair->kind->init(&any, NULL, pair->recorder.mr));
        launch_fill(pair->kind->data(&any), BYTES, number, NULL);
        activate(pair);
        assert_ok(pair->kind->copy(&copy, &any, NULL));
        if (pair->kind->resize != NULL) {
            assert_ok(pair->kind->resize(&any, 2 * BYTES, NULL));
        }
        assert_ok(rmm_device_set(pair->owner));
        launch_check(pair->kind->data(&any), BYTES, number, &mixups, NULL);
        launch_check(pair->kind->data(&copy), BYTES, number, &mixups, NULL);
        assert_ok(rmm_stream_synchronize(NULL));
        activate(pair);
        pair->kind->fini(&any);
        pair->kind->fini(&copy);
        assert_int_equal(mixups, 0);
    }
    assert_in_place(pair, 0);
}

TEST_CASE(the_default_stream_is_that_of_the_owning_device)
{
    for_every_pair(use_default_stream);
}

TEST_CASE(elements_go_through_the_owning_device)
{
    for (int owner = 0; owner < DEVICES; owner++) {
        rmm_device_array_t array;
        uint64_t value = 42;
        uint64_t found = 0;
        int device = -1;

        assert_ok(rmm_device_set(owner));
        assert_ok(rmm_device_array_init(&array, 8, 4, NULL, NULL));
        launch_fill(rmm_device_array_data(&array), 32, 7, NULL);
        assert_ok(rmm_device_set((owner + 1) % DEVICES));
        assert_ok(rmm_device_array_set_element(&array, 1, &value, NULL));
        assert_ok(rmm_device_array_set_element_to_zero_async(&array, 2, NULL));
        assert_ok(rmm_device_array_front(&array, &found, NULL));
        assert_int_equal(found, 7);
        assert_ok(rmm_device_array_get_element(&array, 1, &found, NULL));
        assert_int_equal(found, 42);
        assert_ok(rmm_device_array_get_element(&array, 2, &found, NULL));
        assert_int_equal(found, 0);
        rmm_device_array_fini(&array);
        assert_ok(rmm_device_current(&device));
        assert_int_equal(device, (owner + 1) % DEVICES);
        assert_int_equal(rmm_sim_allocated_bytes(owner), 0);
    }
    assert_ok(rmm_device_set(0));
}

/* Also memory that every device can use belongs to the device of its resource; plain host
 * memory to the one where the buffer was made. */
TEST_CASE(host_memory_has_a_device_as_well)
{
    rmm_resource_t *resources[2];
    const int expected[] = {1, 2};

    assert_ok(rmm_device_set(1));
    assert_ok(rmm_pinned_resource_create(&resources[0]));
    assert_ok(rmm_host_resource_create(&resources[1]));
    for (int i = 0; i < 2; i++) {
        rmm_device_buffer_t buffer;

        assert_ok(rmm_device_set(2));
        assert_ok(rmm_device_buffer_init(&buffer, BYTES, NULL, resources[i]));
        assert_ok(rmm_device_set(3));
        assert_int_equal(rmm_device_buffer_device(&buffer), expected[i]);
        assert_ok(rmm_device_buffer_resize(&buffer, 2 * BYTES, NULL));
        assert_int_equal(rmm_device_buffer_device(&buffer), expected[i]);
        rmm_device_buffer_fini(&buffer);
        rmm_resource_release(resources[i]);
    }
    assert_ok(rmm_device_set(0));
}

TEST_CASE(a_copy_may_cross_devices)
{
    rmm_device_buffer_t source;
    rmm_device_buffer_t copy = RMM_DEVICE_BUFFER_INIT;
    unsigned char pattern[BYTES];

    pattern_fill(pattern, BYTES, 3);
    assert_ok(rmm_device_set(1));
    assert_ok(rmm_device_buffer_init_copy_from(&source, pattern, BYTES, NULL, NULL));
    assert_ok(rmm_stream_synchronize(NULL));
    assert_ok(rmm_device_set(2));
    assert_ok(rmm_device_buffer_copy(&copy, &source, NULL, NULL));
    assert_int_equal(rmm_device_buffer_device(&copy), 2);
    assert_holds(rmm_device_buffer_data(&copy), pattern, BYTES, NULL);
    rmm_device_buffer_fini(&source);
    rmm_device_buffer_fini(&copy);
    assert_ok(rmm_device_set(0));
}
