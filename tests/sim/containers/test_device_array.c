/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device arrays: RMM's cases of its device_uvector for five element types, sizes that
 * overflow, and when host memory is read and written.
 */
#include "sim/containers/container_harness.h"

#include <math.h>

#include "driver/sim/control.h"

typedef struct over_aligned {
    _Alignas(512) char bytes[512];
} over_aligned_t;

typedef struct point {
    double x, y, z;
} point_t;

RMM_DEVICE_ARRAY_DEFINE(over_aligned, over_aligned_t);
RMM_DEVICE_ARRAY_DEFINE(point, struct point);
RMM_DEVICE_ARRAY_DEFINE(text, const char *);

static rmm_device_array_t make(size_t element_bytes, size_t count)
{
    rmm_device_array_t array;

    assert_ok(rmm_device_array_init(
        &array, element_bytes, count, fixture.stream, fixture.mr));
    return array;
}

/* 0, 1, 2, ... */
static RMM_DEVICE_ARRAY(int32_t) make_counting(int32_t count)
{
    RMM_DEVICE_ARRAY(int32_t) array;

    assert_ok(rmm_device_array_int32_t_init(
        &array, (size_t)count, fixture.stream, fixture.mr));
    for (int32_t i = 0; i < count; i++) {
        assert_ok(
            rmm_device_array_int32_t_set_element(&array, (size_t)i, i, fixture.stream));
    }
    return array;
}

static void assert_counting(const RMM_DEVICE_ARRAY(int32_t) * array, int count)
{
    for (int i = 0; i < count; i++) {
        int32_t value = -1;

        assert_ok(rmm_device_array_int32_t_get_element(
            array, (size_t)i, &value, fixture.stream));
        assert_int_equal(value, i);
    }
}

#define CASE(name) TEST_CASE_WITH(name, container_set_up, container_tear_down)

CASE(memory_resource_is_the_one_given)
{
    rmm_device_array_t array = make(4, 128);

    assert_ptr_equal(rmm_device_array_resource(&array), fixture.mr);
    rmm_device_array_fini(&array);
    assert_ok(rmm_device_array_init(&array, 4, 1, fixture.stream, NULL));
    assert_non_null(rmm_device_array_resource(&array));
    rmm_device_array_fini(&array);
}

CASE(zero_size_constructor_makes_an_empty_array)
{
    rmm_device_array_t array = make(8, 0);

    assert_int_equal(rmm_device_array_size(&array), 0);
    assert_true(rmm_device_array_is_empty(&array));
    assert_null(rmm_device_array_data(&array));
    assert_null(rmm_device_array_element(&array, 0));
    rmm_device_array_fini(&array);
}

CASE(non_zero_size_constructor_takes_count_times_element)
{
    const size_t element_bytes[] = {1, 4, 8, 3, sizeof(point_t)};

    for (size_t i = 0; i < 5; i++) {
        rmm_device_array_t array = make(element_bytes[i], 12345);

        assert_int_equal(rmm_device_array_size(&array), 12345);
        assert_int_equal(rmm_device_array_capacity(&array), 12345);
        assert_false(rmm_device_array_is_empty(&array));
        assert_non_null(rmm_device_array_data(&array));
        assert_int_equal(stats_of(fixture.mr).current_bytes, 12345 * element_bytes[i]);
        rmm_device_array_fini(&array);
    }
}

CASE(a_size_that_overflows_is_refused)
{
    const size_t count = SIZE_MAX / 8 + 1;
    rmm_device_array_t array = make(8, 10);
    rmm_device_array_t before = array;
    rmm_device_array_t none = RMM_DEVICE_ARRAY_INIT(8);

    assert_int_equal(
        rmm_device_array_init(&none, 8, count, fixture.stream, fixture.mr),
        RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_array_reserve(&array, count, fixture.other),
        RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_array_resize(&array, count, fixture.other),
        RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_array_init(&none, 8, count - 1, fixture.stream, fixture.mr),
        RMM_ERR_OUT_OF_MEMORY);
    assert_memory_equal(&array, &before, sizeof(array));
    rmm_device_array_fini(&array);
}

CASE(no_element_size_is_refused)
{
    rmm_device_array_t array = RMM_DEVICE_ARRAY_INIT(0);

    assert_int_equal(
        rmm_device_array_init(&array, 0, 1, fixture.stream, NULL),
        RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_array_resize(&array, 1, fixture.stream), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_device_array_size(&array), 0);
    assert_int_equal(rmm_device_array_capacity(&array), 0);
}

CASE(copy_constructor_copies_the_elements)
{
    RMM_DEVICE_ARRAY(int32_t) array = make_counting(10);
    RMM_DEVICE_ARRAY(int32_t) copy = RMM_DEVICE_ARRAY_OF_INIT(int32_t);

    assert_ok(rmm_device_array_int32_t_copy(&copy, &array, fixture.stream, fixture.mr));
    assert_ok(rmm_device_array_int32_t_set_element(&array, 0, 99, fixture.stream));
    assert_int_equal(rmm_device_array_int32_t_size(&copy), 10);
    assert_counting(&copy, 10);
    rmm_device_array_int32_t_fini(&copy);
    rmm_device_array_int32_t_fini(&array);
}

CASE(move_leaves_an_empty_array_that_can_grow)
{
    RMM_DEVICE_ARRAY(int32_t) array = make_counting(10);
    RMM_DEVICE_ARRAY(int32_t) moved = RMM_DEVICE_ARRAY_OF_INIT(int32_t);

    rmm_device_array_int32_t_move(&moved, &array);
    assert_true(rmm_device_array_int32_t_is_empty(&array));
    assert_counting(&moved, 10);
    assert_ok(rmm_device_array_int32_t_resize(&array, 3, fixture.stream));
    assert_int_equal(rmm_device_array_int32_t_size(&array), 3);
    rmm_device_array_int32_t_fini(&array);
    rmm_device_array_int32_t_fini(&moved);
}

CASE(resize_smaller_keeps_the_capacity)
{
    RMM_DEVICE_ARRAY(int32_t) array = make_counting(10);
    int32_t *data = rmm_device_array_int32_t_data(&array);

    assert_ok(rmm_device_array_int32_t_resize(&array, 5, fixture.stream));
    assert_int_equal(rmm_device_array_int32_t_size(&array), 5);
    assert_int_equal(rmm_device_array_int32_t_capacity(&array), 10);
    assert_ptr_equal(rmm_device_array_int32_t_data(&array), data);
    assert_ok(rmm_device_array_int32_t_shrink_to_fit(&array, fixture.stream));
    assert_int_equal(rmm_device_array_int32_t_capacity(&array), 5);
    assert_counting(&array, 5);
    rmm_device_array_int32_t_fini(&array);
}

CASE(resize_larger_and_reserve_larger_keep_the_contents)
{
    RMM_DEVICE_ARRAY(int32_t) array = make_counting(10);

    assert_ok(rmm_device_array_int32_t_resize(&array, 15, fixture.stream));
    assert_int_equal(rmm_device_array_int32_t_size(&array), 15);
    assert_int_equal(rmm_device_array_int32_t_capacity(&array), 15);
    assert_counting(&array, 10);
    assert_ok(rmm_device_array_int32_t_reserve(&array, 3, fixture.stream));
    assert_int_equal(rmm_device_array_int32_t_capacity(&array), 15);
    assert_ok(rmm_device_array_int32_t_reserve(&array, 30, fixture.stream));
    assert_int_equal(rmm_device_array_int32_t_size(&array), 15);
    assert_int_equal(rmm_device_array_int32_t_capacity(&array), 30);
    assert_counting(&array, 10);
    rmm_device_array_int32_t_fini(&array);
}

CASE(resize_to_zero_keeps_the_capacity_until_it_is_shrunk)
{
    rmm_device_array_t array = make(4, 10);

    assert_ok(rmm_device_array_resize(&array, 0, fixture.stream));
    assert_int_equal(rmm_device_array_size(&array), 0);
    assert_true(rmm_device_array_is_empty(&array));
    assert_int_equal(rmm_device_array_capacity(&array), 10);
    assert_ok(rmm_device_array_shrink_to_fit(&array, fixture.stream));
    assert_int_equal(rmm_device_array_capacity(&array), 0);
    rmm_device_array_fini(&array);
}

CASE(release_hands_the_memory_to_a_buffer)
{
    RMM_DEVICE_ARRAY(int32_t) array = make_counting(10);
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    void *data = rmm_device_array_int32_t_data(&array);
    const int32_t expected[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

    rmm_device_array_int32_t_release(&array, &buffer);
    assert_int_equal(rmm_device_array_int32_t_size(&array), 0);
    assert_int_equal(rmm_device_array_int32_t_capacity(&array), 0);
    assert_int_equal(rmm_device_buffer_size(&buffer), 10 * sizeof(int32_t));
    assert_ptr_equal(rmm_device_buffer_data(&buffer), data);
    rmm_device_array_int32_t_fini(&array);
    assert_holds(data, expected, sizeof(expected), fixture.stream);
    rmm_device_buffer_fini(&buffer);
}

CASE(element_pointers_are_an_element_apart)
{
    rmm_device_array_point_t array;

    assert_ok(rmm_device_array_point_init(&array, 10, fixture.stream, fixture.mr));
    for (size_t i = 0; i <= 10; i++) { /* the end as well */
        assert_ptr_equal(
            rmm_device_array_point_element(&array, i),
            rmm_device_array_point_data(&array) + i);
    }
    rmm_device_array_point_fini(&array);
}

CASE(out_of_bounds_elements_are_out_of_range)
{
    rmm_device_array_t array = make(4, 10);
    rmm_device_array_t empty = make(4, 0);
    int32_t value = 7;
    rmm_stream_t stream = fixture.stream;

    for (size_t i = 10; i != 9; i = i == 10 ? SIZE_MAX : 9) {
        assert_int_equal(
            rmm_device_array_set_element(&array, i, &value, stream),
            RMM_ERR_OUT_OF_RANGE);
        assert_int_equal(
            rmm_device_array_set_element_async(&array, i, &value, stream),
            RMM_ERR_OUT_OF_RANGE);
        assert_int_equal(
            rmm_device_array_set_element_to_zero_async(&array, i, stream),
            RMM_ERR_OUT_OF_RANGE);
        assert_int_equal(
            rmm_device_array_get_element(&array, i, &value, stream),
            RMM_ERR_OUT_OF_RANGE);
    }
    assert_int_equal(
        rmm_device_array_front(&empty, &value, stream), RMM_ERR_OUT_OF_RANGE);
    assert_int_equal(
        rmm_device_array_back(&empty, &value, stream), RMM_ERR_OUT_OF_RANGE);
    assert_int_equal(value, 7);
    rmm_device_array_fini(&empty);
    rmm_device_array_fini(&array);
}

CASE(sets_and_gets_elements)
{
    rmm_device_array_point_t array;

    assert_ok(rmm_device_array_point_init(&array, 100, fixture.stream, fixture.mr));
    for (size_t i = 0; i < 100; i++) {
        point_t point = {(double)i, 2.0 * (double)i, -1.0};

        assert_ok(rmm_device_array_point_set_element(&array, i, point, fixture.stream));
    }
    for (size_t i = 0; i < 100; i++) {
        point_t point = {0, 0, 0};

        assert_ok(
            rmm_device_array_point_get_element(&array, i, &point, fixture.stream));
        assert_true(point.x == (double)i && point.y == 2.0 * (double)i);
        assert_true(point.z == -1.0);
    }
    rmm_device_array_point_fini(&array);
}

CASE(sets_elements_without_waiting)
{
    int32_t values[64];
    int32_t found[64];

    for (unsigned seed = 1; seed <= 20; seed++) {
        rmm_device_array_t array = make(4, 64);

        rmm__sim_reseed(seed);
        for (int i = 0; i < 64; i++) {
            values[i] = i * (int)seed;
            found[i] = -1;
            assert_ok(rmm_device_array_set_element_async(
                &array, (size_t)i, &values[i], fixture.stream));
        }
        for (size_t i = 0; i < 64; i++) {
            assert_ok(
                rmm_device_array_get_element(&array, i, &found[i], fixture.stream));
        }
        assert_memory_equal(values, found, sizeof(values));
        rmm_device_array_fini(&array);
    }
}

CASE(async_calls_do_not_wait_and_the_others_do)
{
    journal_t *journal = test_calloc(1, sizeof(*journal));
    rmm_device_array_t array = make(4, 4);
    rmm_sim_graph_t graph;
    int32_t value = 5;
    int32_t found = 0;

    assert_cuda(rmm_sim_begin_capture(fixture.stream, 0)); /* where none may wait */
    assert_ok(rmm_device_array_set_element_async(&array, 1, &value, fixture.stream));
    assert_ok(rmm_device_array_set_element_to_zero_async(&array, 2, fixture.stream));
    assert_cuda(rmm_sim_end_capture(fixture.stream, &graph));
    assert_cuda(rmm_sim_graph_launch(graph, fixture.stream));
    assert_cuda(launch_mark(journal, 1, fixture.stream));
    assert_ok(rmm_device_array_get_element(&array, 1, &found, fixture.stream));
    assert_int_equal(journal->count, 1);
    assert_int_equal(found, 5);
    assert_cuda(launch_mark(journal, 2, fixture.stream));
    assert_ok(rmm_device_array_set_element(&array, 1, &found, fixture.stream));
    assert_int_equal(journal->count, 2);
    assert_cuda(rmm_sim_graph_destroy(graph));
    rmm_device_array_fini(&array);
    test_free(journal);
}

CASE(sets_an_element_to_zero)
{
    RMM_DEVICE_ARRAY(int32_t) array = make_counting(10);
    int32_t value = -1;

    assert_ok(
        rmm_device_array_int32_t_set_element_to_zero_async(&array, 5, fixture.stream));
    assert_ok(rmm_device_array_int32_t_get_element(&array, 5, &value, fixture.stream));
    assert_int_equal(value, 0);
    assert_ok(rmm_device_array_int32_t_get_element(&array, 6, &value, fixture.stream));
    assert_int_equal(value, 6);
    rmm_device_array_int32_t_fini(&array);
}

CASE(preserves_float_and_double_negative_zero)
{
    rmm_device_array_float_t floats;
    rmm_device_array_double_t doubles;
    float small = 1.0f;
    double large = 1.0;
    const double minus = -0.0;

    assert_ok(rmm_device_array_float_init(&floats, 1, fixture.stream, NULL));
    assert_ok(rmm_device_array_double_init(&doubles, 1, fixture.stream, NULL));
    assert_ok(rmm_device_array_float_set_element(&floats, 0, -0.0f, fixture.stream));
    assert_ok(
        rmm_device_array_double_set_element_async(&doubles, 0, &minus, fixture.stream));
    assert_ok(rmm_device_array_float_front(&floats, &small, fixture.stream));
    assert_ok(rmm_device_array_double_back(&doubles, &large, fixture.stream));
    assert_true(small == 0.0f && signbit(small));
    assert_true(large == 0.0 && signbit(large));
    rmm_device_array_float_fini(&floats);
    rmm_device_array_double_fini(&doubles);
}

CASE(front_and_back_are_the_first_and_the_last_element)
{
    RMM_DEVICE_ARRAY(int32_t) array = make_counting(10);
    int32_t front = -1;
    int32_t back = -1;

    assert_ok(rmm_device_array_int32_t_front(&array, &front, fixture.stream));
    assert_ok(rmm_device_array_int32_t_back(&array, &back, fixture.stream));
    assert_int_equal(front, 0);
    assert_int_equal(back, 9);
    rmm_device_array_int32_t_fini(&array);
}

CASE(set_and_get_stream)
{
    rmm_device_array_t array = make(4, 10);

    assert_ptr_equal(rmm_device_array_stream(&array), fixture.stream);
    rmm_device_array_set_stream(&array, fixture.other);
    assert_ptr_equal(rmm_device_array_stream(&array), fixture.other);
    assert_ok(rmm_device_array_resize(&array, 20, fixture.stream));
    assert_ptr_equal(rmm_device_array_stream(&array), fixture.stream);
    rmm_device_array_fini(&array);
}

/* Pointers from data to data + size are what RMM's iterators and spans are. */
CASE(the_elements_are_one_range)
{
    RMM_DEVICE_ARRAY(int32_t) array = make_counting(10);
    const int32_t *begin = rmm_device_array_int32_t_data(&array);
    const int32_t *end =
        rmm_device_array_int32_t_element(&array, rmm_device_array_int32_t_size(&array));
    const int32_t expected[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

    assert_int_equal(end - begin, 10);
    assert_holds(begin, expected, sizeof(expected), fixture.stream);
    rmm_device_array_int32_t_fini(&array);
}

CASE(alignment_is_that_of_the_type)
{
    rmm_device_array_char_t chars;
    rmm_device_array_over_aligned_t large;
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    rmm_resource_t *pool = make_pool(0, 0);

    assert_ok(rmm_device_array_char_init(&chars, 10, fixture.stream, fixture.mr));
    rmm_device_array_char_release(&chars, &buffer);
    assert_int_equal(rmm_device_buffer_alignment(&buffer), 1);
    rmm_device_buffer_fini(&buffer);
    assert_int_equal(
        rmm_device_array_over_aligned_init(&large, 10, fixture.stream, fixture.mr),
        RMM_ERR_BAD_ALLOC);
    assert_ok(rmm_device_array_over_aligned_init(&large, 10, fixture.stream, pool));
    assert_int_equal((uintptr_t)rmm_device_array_over_aligned_data(&large) % 512, 0);
    rmm_device_array_over_aligned_fini(&large);
    rmm_resource_release(pool);
}

static void assert_grows_aligned(RMM_DEVICE_ARRAY(over_aligned) * array)
{
    for (size_t count = 1; count < 4; count++) { /* next to a block of 256 bytes */
        assert_ok(rmm_device_array_over_aligned_resize(array, count, fixture.stream));
        assert_int_equal((uintptr_t)rmm_device_array_over_aligned_data(array) % 512, 0);
    }
}

/* Empty, moved from, released and ended arrays have no memory, but can get some. */
CASE(an_array_without_memory_grows_as_its_type_is_aligned)
{
    RMM_DEVICE_ARRAY(over_aligned) array = RMM_DEVICE_ARRAY_OF_INIT(over_aligned_t);
    RMM_DEVICE_ARRAY(over_aligned) other = RMM_DEVICE_ARRAY_OF_INIT(over_aligned_t);
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    rmm_resource_t *pool = NULL, *previous = NULL;
    void *odd = NULL;

    assert_ok(rmm_pool_resource_create(fixture.mr, NULL, &pool));
    assert_ok(rmm_set_current_device_resource(pool, &previous));
    assert_ok(rmm_resource_alloc(pool, 256, 0, fixture.stream, &odd));
    assert_grows_aligned(&array);
    rmm_device_array_over_aligned_move(&other, &array);
    assert_grows_aligned(&array);
    rmm_device_array_over_aligned_release(&array, &buffer);
    assert_grows_aligned(&array);
    rmm_device_array_over_aligned_fini(&array);
    assert_grows_aligned(&array);
    rmm_device_array_over_aligned_fini(&array);
    rmm_device_array_over_aligned_fini(&other);
    rmm_device_buffer_fini(&buffer);
    rmm_resource_dealloc(pool, odd, 256, 0, fixture.stream);
    assert_ok(rmm_set_current_device_resource(previous, NULL));
    rmm_resource_release(previous);
    rmm_resource_release(pool);
}

/* bool is a macro in C, and an address is a type of two words. */
CASE(types_may_be_macros_and_pointers)
{
    RMM_DEVICE_ARRAY(bool) bools = RMM_DEVICE_ARRAY_OF_INIT(bool);
    RMM_DEVICE_ARRAY(text) texts = RMM_DEVICE_ARRAY_OF_INIT(const char *);
    const char *const text = "kept";
    const char *found = NULL;
    bool is_set = false;

    assert_ok(rmm_device_array_bool_resize(&bools, 2, fixture.stream));
    assert_ok(rmm_device_array_bool_set_element(&bools, 1, true, fixture.stream));
    assert_ok(rmm_device_array_bool_back(&bools, &is_set, fixture.stream));
    assert_true(is_set);
    assert_ok(rmm_device_array_text_resize(&texts, 1, fixture.stream));
    assert_ok(
        rmm_device_array_text_set_element_async(&texts, 0, &text, fixture.stream));
    assert_ok(rmm_device_array_text_front(&texts, &found, fixture.stream));
    assert_ptr_equal(found, text);
    rmm_device_array_text_fini(&texts);
    rmm_device_array_bool_fini(&bools);
}

CASE(refuses_null)
{
    rmm_device_array_t array = make(4, 1);
    int32_t value = 0;
    rmm_stream_t stream = fixture.stream;

    assert_int_equal(
        rmm_device_array_init(NULL, 4, 1, stream, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_array_set_element(NULL, 0, &value, stream),
        RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_array_set_element(&array, 0, NULL, stream),
        RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_array_get_element(&array, 0, NULL, stream),
        RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_array_back(NULL, &value, stream), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_array_resize(NULL, 1, stream), RMM_ERR_INVALID_ARGUMENT);
    rmm_device_array_fini(NULL);
    rmm_device_array_fini(&array);
}
