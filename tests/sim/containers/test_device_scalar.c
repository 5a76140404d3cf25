/* SPDX-License-Identifier: Apache-2.0 */
/* Device scalars: RMM's cases of its device_scalar. */
#include "sim/containers/container_harness.h"

#include <math.h>
#include <string.h>

#include "driver/sim/control.h"

typedef struct over_aligned {
    _Alignas(512) char bytes[512];
} over_aligned_t;

RMM_DEVICE_SCALAR_DEFINE(over_aligned, over_aligned_t);

static rmm_device_scalar_int_t make(int value)
{
    rmm_device_scalar_int_t scalar;

    assert_ok(
        rmm_device_scalar_int_init_value(&scalar, &value, fixture.stream, fixture.mr));
    assert_ok(rmm_stream_synchronize(fixture.stream)); /* `value` ends here */
    return scalar;
}

static void assert_value(const RMM_DEVICE_SCALAR(int) * scalar, int expected)
{
    int value = ~expected;

    assert_ok(rmm_device_scalar_int_value(scalar, &value, fixture.stream));
    assert_int_equal(value, expected);
}

#define CASE(name) TEST_CASE_WITH(name, container_set_up, container_tear_down)

CASE(an_uninitialized_scalar_has_memory)
{
    rmm_device_scalar_t scalar;

    assert_ok(rmm_device_scalar_init(&scalar, 8, fixture.stream, fixture.mr));
    assert_non_null(rmm_device_scalar_data(&scalar));
    assert_int_equal(rmm_device_scalar_size(&scalar), 1);
    assert_ptr_equal(rmm_device_scalar_resource(&scalar), fixture.mr);
    assert_int_equal(stats_of(fixture.mr).current_bytes, 8);
    rmm_device_scalar_fini(&scalar);
    assert_null(rmm_device_scalar_data(&scalar));
    assert_int_equal(
        rmm_device_scalar_init(&scalar, 0, fixture.stream, fixture.mr),
        RMM_ERR_INVALID_ARGUMENT);
}

CASE(a_scalar_has_its_initial_value)
{
    rmm_device_scalar_int_t scalar = make(42);

    assert_value(&scalar, 42);
    rmm_device_scalar_int_fini(&scalar);
}

CASE(data_of_a_const_scalar_is_where_the_value_lies)
{
    const rmm_device_scalar_int_t scalar = make(42);
    rmm_device_scalar_int_t end = scalar; /* to end it: the struct is not used again */
    const int *data = rmm_device_scalar_int_data(&scalar);
    const int expected = 42;

    assert_holds(data, &expected, sizeof(expected), fixture.stream);
    rmm_device_scalar_int_fini(&end);
}

CASE(a_copy_has_the_value_and_memory_of_its_own)
{
    rmm_device_scalar_int_t scalar = make(42);
    rmm_device_scalar_int_t copy = RMM_DEVICE_SCALAR_OF_INIT(int);

    assert_ok(rmm_device_scalar_int_copy(&copy, &scalar, fixture.stream, fixture.mr));
    assert_ptr_not_equal(
        rmm_device_scalar_int_data(&copy), rmm_device_scalar_int_data(&scalar));
    rmm_device_scalar_int_fini(&scalar);
    assert_value(&copy, 42);
    rmm_device_scalar_int_fini(&copy);
}

CASE(a_move_leaves_no_data)
{
    rmm_device_scalar_int_t scalar = make(42);
    rmm_device_scalar_int_t moved = RMM_DEVICE_SCALAR_OF_INIT(int);
    int *data = rmm_device_scalar_int_data(&scalar);
    int value = 7;

    rmm_device_scalar_int_move(&moved, &scalar);
    assert_ptr_equal(rmm_device_scalar_int_data(&moved), data);
    assert_null(rmm_device_scalar_int_data(&scalar));
    assert_value(&moved, 42);
    assert_int_equal(
        rmm_device_scalar_int_value(&scalar, &value, fixture.stream),
        RMM_ERR_OUT_OF_RANGE);
    assert_int_equal(
        rmm_device_scalar_int_set_value_async(&scalar, &value, fixture.stream),
        RMM_ERR_OUT_OF_RANGE);
    assert_int_equal(value, 7);
    rmm_device_scalar_int_fini(&scalar);
    rmm_device_scalar_int_fini(&moved);
}

CASE(messages_are_about_a_scalar_not_an_array)
{
    static const char no_value[] =
        "device scalar: no value, it was moved from or has ended";
    rmm_device_scalar_int_t scalar = RMM_DEVICE_SCALAR_OF_INIT(int);
    rmm_device_scalar_t nothing;
    int value = 7;

    assert_int_equal(
        rmm_device_scalar_int_value(&scalar, &value, fixture.stream),
        RMM_ERR_OUT_OF_RANGE);
    assert_string_equal(rmm_last_error_message(), no_value);
    assert_int_equal(
        rmm_device_scalar_int_set_value_async(&scalar, &value, fixture.stream),
        RMM_ERR_OUT_OF_RANGE);
    assert_string_equal(rmm_last_error_message(), no_value);
    assert_int_equal(
        rmm_device_scalar_int_set_value_to_zero_async(&scalar, fixture.stream),
        RMM_ERR_OUT_OF_RANGE);
    assert_string_equal(rmm_last_error_message(), no_value);
    assert_int_equal(
        rmm_device_scalar_init(&nothing, 0, fixture.stream, fixture.mr),
        RMM_ERR_INVALID_ARGUMENT);
    assert_null(strstr(rmm_last_error_message(), "array"));
}

CASE(a_value_can_be_set)
{
    rmm_device_scalar_int_t scalar = make(42);
    const int value = -7;

    assert_ok(rmm_device_scalar_int_set_value_async(&scalar, &value, fixture.stream));
    assert_value(&scalar, -7);
    rmm_device_scalar_int_fini(&scalar);
}

CASE(a_value_can_be_set_to_zero)
{
    rmm_device_scalar_int_t scalar = make(42);

    assert_ok(rmm_device_scalar_int_set_value_to_zero_async(&scalar, fixture.stream));
    assert_value(&scalar, 0);
    rmm_device_scalar_int_fini(&scalar);
}

CASE(negative_zero_stays_negative)
{
    rmm_device_scalar_double_t scalar;
    const double minus = -0.0;
    double value = 1.0;

    assert_ok(rmm_device_scalar_double_init_value(
        &scalar, &minus, fixture.stream, fixture.mr));
    assert_ok(rmm_device_scalar_double_value(&scalar, &value, fixture.stream));
    assert_true(value == 0.0 && signbit(value));
    rmm_device_scalar_double_fini(&scalar);
}

CASE(set_and_get_stream)
{
    rmm_device_scalar_int_t scalar = make(1);

    assert_ptr_equal(rmm_device_scalar_stream(&scalar.scalar), fixture.stream);
    rmm_device_scalar_set_stream(&scalar.scalar, fixture.other);
    assert_ptr_equal(rmm_device_scalar_stream(&scalar.scalar), fixture.other);
    rmm_device_scalar_int_fini(&scalar);
}

CASE(alignment_is_that_of_the_type)
{
    rmm_device_scalar_char_t small;
    rmm_device_scalar_over_aligned_t large;
    over_aligned_t value = {{1}};
    rmm_resource_t *pool = make_pool(0, 0);

    assert_ok(rmm_device_scalar_char_init(&small, fixture.stream, fixture.mr));
    rmm_device_scalar_char_fini(&small);
    assert_int_equal(
        rmm_device_scalar_over_aligned_init(&large, fixture.stream, fixture.mr),
        RMM_ERR_BAD_ALLOC);
    assert_ok(rmm_device_scalar_over_aligned_init_value(
        &large, &value, fixture.stream, pool));
    assert_int_equal((uintptr_t)rmm_device_scalar_over_aligned_data(&large) % 512, 0);
    assert_ok(rmm_stream_synchronize(fixture.stream));
    rmm_device_scalar_over_aligned_fini(&large);
    rmm_resource_release(pool);
}

/* A kernel's result is read behind the kernel, without another synchronise. */
CASE(a_value_is_read_after_queued_work)
{
    for (unsigned seed = 1; seed <= 20; seed++) {
        rmm_device_scalar_uint64_t_t scalar;
        uint64_t value = 0;

        rmm__sim_reseed(seed);
        assert_ok(rmm_device_scalar_uint64_t_init(&scalar, fixture.stream, fixture.mr));
        launch_fill(
            rmm_device_scalar_uint64_t_data(&scalar), 8, 1000 + seed, fixture.stream);
        assert_ok(rmm_device_scalar_uint64_t_value(&scalar, &value, fixture.stream));
        assert_int_equal(value, 1000 + seed);
        rmm_device_scalar_uint64_t_fini(&scalar);
    }
}
