/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills of the program: in stream order, between all kinds of memory, within the
 * bounds of a buffer.
 */
#include "sim/containers/container_harness.h"

#include "driver/sim/control.h"

#define BYTES ((size_t)4096)

static unsigned char pattern[BYTES];

/* Late, so that what does not keep the order of its stream reads old bytes. */
TEST_CASE(copies_and_fills_keep_the_order_of_their_stream)
{
    rmm_stream_t stream = make_stream(0);
    rmm_resource_t *pool = make_pool(0, 0);
    unsigned char *block = take(pool, BYTES, stream);
    unsigned char back[BYTES];

    pattern_fill(pattern, BYTES, 1);
    assert_ok(rmm_memset_async(block, 7, BYTES, stream));
    assert_ok(rmm_memcpy_async(block, pattern, BYTES / 2, stream));
    assert_ok(rmm_memcpy_async(back, block, BYTES, stream));
    assert_ok(rmm_memset_async(block, 9, BYTES, stream)); /* behind the copy */
    assert_ok(rmm_stream_synchronize(stream));
    assert_memory_equal(back, pattern, BYTES / 2);
    for (size_t i = BYTES / 2; i < BYTES; i++) {
        assert_int_equal(back[i], 7);
    }
    give(pool, block, BYTES, stream);
    assert_cuda(sim_driver()->stream_destroy(stream));
    rmm_resource_release(pool);
    assert_int_equal(rmm_sim_violations(), 0);
}

static void copy_through(rmm_resource_t *from, rmm_resource_t *to)
{
    unsigned char *source = take(from, BYTES, NULL);
    unsigned char *target = take(to, BYTES, NULL);

    pattern_fill(pattern, BYTES, 2);
    assert_ok(rmm_memcpy_async(source, pattern, BYTES, NULL));
    assert_ok(rmm_memcpy_async(target, source, BYTES, NULL));
    assert_holds(target, pattern, BYTES, NULL);
    give(from, source, BYTES, NULL);
    give(to, target, BYTES, NULL);
}

TEST_CASE(the_direction_follows_from_the_addresses)
{
    rmm_resource_t *mrs[3];

    assert_ok(rmm_cuda_resource_create(&mrs[0]));
    assert_ok(rmm_pinned_resource_create(&mrs[1]));
    assert_ok(rmm_managed_resource_create(&mrs[2]));
    for (int i = 0; i < 9; i++) {
        copy_through(mrs[i / 3], mrs[i % 3]);
    }
    for (int i = 0; i < 3; i++) {
        rmm_resource_release(mrs[i]);
    }
    assert_int_equal(rmm_sim_violations(), 0);
}

/* The stack of a function that has returned belongs to others. */
TEST_CASE(a_copy_that_waits_is_over_even_where_the_wait_fails)
{
    rmm_resource_t *cuda = make_cuda();
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    unsigned char *block = take(cuda, BYTES, stream);
    unsigned char host[BYTES], back[BYTES];

    pattern_fill(pattern, BYTES, 6);
    memcpy(host, pattern, BYTES);
    assert_ok(rmm_memcpy(block, host, BYTES, stream));
    memset(host, 0, BYTES);
    assert_ok(rmm_memcpy(back, block, BYTES, stream));
    assert_memory_equal(back, pattern, BYTES);
    assert_ok(rmm_memcpy(NULL, NULL, 0, stream));

    assert_true(rmm_sim_fail("stream_synchronize:1"));
    assert_int_equal(rmm_memcpy(back, block, BYTES, stream), RMM_ERR_CUDA);
    assert_true(rmm__sim_fault_has_struck());
    memset(back, 0, BYTES);
    assert_true(rmm_sim_fail("stream_synchronize:1"));
    memcpy(host, pattern, BYTES);
    assert_int_equal(rmm_memcpy(block, host, BYTES, stream), RMM_ERR_CUDA);
    memset(host, 0, BYTES);
    assert_true(rmm_sim_fail(NULL));
    assert_holds(block, pattern, BYTES, stream);
    assert_memory_equal(back, host, BYTES); /* both are zeros still */

    assert_ok(rmm_stream_synchronize(stream));
    give(cuda, block, BYTES, stream);
    assert_ok(rmm_stream_destroy(stream));
    rmm_resource_release(cuda);
    assert_int_equal(rmm_sim_violations(), 0);
}

TEST_CASE(null_is_refused_unless_there_are_no_bytes)
{
    unsigned char byte = 0;

    assert_int_equal(rmm_memcpy_async(NULL, &byte, 1, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_memcpy_async(&byte, NULL, 1, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_memcpy(NULL, &byte, 1, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_memcpy(&byte, NULL, 1, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_memset_async(NULL, 0, 1, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_ok(rmm_memcpy_async(NULL, NULL, 0, NULL));
    assert_ok(rmm_memset_async(NULL, 0, 0, NULL));
}

TEST_CASE(a_failing_driver_is_a_cuda_error)
{
    rmm_resource_t *cuda = make_cuda();
    unsigned char *block = take(cuda, BYTES, NULL);

    assert_true(rmm_sim_fail("memcpy_async:1,memset_async:1"));
    assert_int_equal(rmm_memcpy_async(block, pattern, 1, NULL), RMM_ERR_CUDA);
    assert_int_equal(rmm_memset_async(block, 0, 1, NULL), RMM_ERR_CUDA);
    assert_true(rmm_sim_fail(NULL));
    give(cuda, block, BYTES, NULL);
    rmm_resource_release(cuda);
}

/* --- buffers -------------------------------------------------------------------------- */

TEST_CASE(a_buffer_is_written_and_read_back)
{
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    rmm_stream_t stream = make_stream(0);
    unsigned char back[BYTES] = {0};

    pattern_fill(pattern, BYTES, 3);
    assert_ok(rmm_device_buffer_init(&buffer, BYTES, stream, NULL));
    assert_ok(rmm_device_buffer_copy_from_host(
        &buffer, 0, pattern + 100, BYTES - 100, stream));
    assert_ok(
        rmm_device_buffer_copy_from_host(&buffer, BYTES - 100, pattern, 100, stream));
    assert_ok(rmm_device_buffer_copy_to_host(&buffer, 0, back, BYTES - 100, stream));
    assert_memory_equal(back, pattern + 100, BYTES - 100); /* it has waited */
    assert_ok(rmm_device_buffer_copy_to_host(&buffer, BYTES - 100, back, 100, stream));
    assert_memory_equal(back, pattern, 100);
    rmm_device_buffer_fini(&buffer);
    assert_cuda(sim_driver()->stream_destroy(stream));
    assert_int_equal(rmm_sim_violations(), 0);
}

/* What the host's memory is read for is done when the call returns. */
TEST_CASE(what_was_copied_from_may_change_at_once)
{
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    rmm_stream_t stream = make_stream(0);
    unsigned char expected[BYTES];

    pattern_fill(pattern, BYTES, 4);
    memcpy(expected, pattern, BYTES);
    assert_ok(rmm_device_buffer_init(&buffer, BYTES, stream, NULL));
    assert_ok(rmm_device_buffer_copy_from_host(&buffer, 0, pattern, BYTES, stream));
    memset(pattern, 0, BYTES);
    assert_holds(rmm_device_buffer_data(&buffer), expected, BYTES, stream);
    rmm_device_buffer_fini(&buffer);
    assert_cuda(sim_driver()->stream_destroy(stream));
}

TEST_CASE(a_range_beyond_the_buffer_is_out_of_range)
{
    static const size_t wrong[][2] = {{0, BYTES + 1}, {1, BYTES},    {BYTES, 1},
                                      {BYTES + 1, 0}, {SIZE_MAX, 2}, {2, SIZE_MAX}};
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    unsigned char back[BYTES];

    memset(back, 1, BYTES);
    assert_ok(rmm_device_buffer_init(&buffer, BYTES, NULL, NULL));
    assert_ok(
        rmm_device_buffer_reserve(&buffer, 4 * BYTES, NULL)); /* no room to copy */
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(
            rmm_device_buffer_copy_to_host(
                &buffer, wrong[i][0], back, wrong[i][1], NULL),
            RMM_ERR_OUT_OF_RANGE);
        assert_int_equal(
            rmm_device_buffer_copy_from_host(
                &buffer, wrong[i][0], back, wrong[i][1], NULL),
            RMM_ERR_OUT_OF_RANGE);
        assert_int_equal(back[0], 1);
    }
    assert_ok(rmm_device_buffer_copy_to_host(&buffer, BYTES, NULL, 0, NULL));
    assert_ok(rmm_device_buffer_copy_from_host(&buffer, 0, NULL, 0, NULL));
    assert_int_equal(
        rmm_device_buffer_copy_to_host(&buffer, 0, NULL, 1, NULL),
        RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_buffer_copy_from_host(&buffer, 0, NULL, 1, NULL),
        RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_buffer_copy_to_host(NULL, 0, back, 1, NULL),
        RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_device_buffer_copy_from_host(NULL, 0, back, 1, NULL),
        RMM_ERR_INVALID_ARGUMENT);
    rmm_device_buffer_fini(&buffer);
}

/* Its default stream is that of the buffer's device, whatever device is current. */
TEST_CASE(a_buffer_is_copied_on_its_own_device)
{
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    unsigned char back[BYTES];

    pattern_fill(pattern, BYTES, 5);
    assert_ok(rmm_device_set(1));
    assert_ok(rmm_device_buffer_init(&buffer, BYTES, NULL, NULL));
    assert_ok(rmm_device_set(0));
    assert_ok(rmm_device_buffer_copy_from_host(&buffer, 0, pattern, BYTES, NULL));
    assert_ok(rmm_device_buffer_copy_to_host(&buffer, 0, back, BYTES, NULL));
    assert_memory_equal(back, pattern, BYTES);
    rmm_device_buffer_fini(&buffer);
    assert_int_equal(rmm_sim_violations(), 0);
}
