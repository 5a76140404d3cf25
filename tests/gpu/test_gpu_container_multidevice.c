/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers on two real GPUs while the other one is current: memory stays on the owning
 * device, default streams are that device's, copies cross devices.
 *
 * With fewer than two GPUs the program says so and exits 77.
 */
#include "gpu/gpu_harness.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

#include <rmm/rmm.h>

#include "driver/driver.h"

enum { BYTES = 1000000 };

static unsigned char pattern[BYTES];
static unsigned char found[BYTES];

/* Device 0 is current again after each case. */
static int set_up(void **state)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);

    assert_non_null(driver);
    assert_string_equal(driver->name, "cuda");
    for (size_t i = 0; i < BYTES; i++) {
        pattern[i] = (unsigned char)(i * 13 + 5);
    }
    memset(found, 0, BYTES);
    assert_cuda(cudaSetDevice(0));
    return 0;
}

static void assert_on_device(const void *ptr, int device)
{
    struct cudaPointerAttributes attributes;

    assert_cuda(cudaPointerGetAttributes(&attributes, ptr));
    assert_int_equal(attributes.type, cudaMemoryTypeDevice);
    assert_int_equal(attributes.device, device);
}

static void assert_current(int device)
{
    int current = -1;

    assert_cuda(cudaGetDevice(&current));
    assert_int_equal(current, device);
}

static void assert_pattern(const void *ptr)
{
    assert_cuda(cudaMemcpy(found, ptr, BYTES, cudaMemcpyDefault));
    assert_memory_equal(found, pattern, BYTES);
}

static rmm_resource_t *make_pool(void)
{
    rmm_resource_t *cuda;
    rmm_resource_t *pool;

    assert_ok(rmm_cuda_resource_create(&cuda));
    assert_ok(rmm_pool_resource_create(cuda, NULL, &pool));
    rmm_resource_release(cuda);
    return pool;
}

static void a_buffer_stays_on_its_device(void **state)
{
    for (int owner = 0; owner < 2; owner++) {
        rmm_device_buffer_t buffer;
        rmm_device_buffer_t moved = RMM_DEVICE_BUFFER_INIT;
        rmm_stream_t stream;
        rmm_resource_t *pool;

        assert_cuda(cudaSetDevice(owner));
        pool = make_pool();
        assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
        assert_ok(
            rmm_device_buffer_init_copy_from(&buffer, pattern, BYTES, stream, pool));
        assert_cuda(cudaSetDevice(1 - owner));
        assert_on_device(rmm_device_buffer_data(&buffer), owner);
        assert_ok(rmm_device_buffer_resize(&buffer, 2 * BYTES, stream));
        assert_on_device(rmm_device_buffer_data(&buffer), owner);
        assert_ok(rmm_device_buffer_resize(&buffer, BYTES, stream));
        assert_ok(rmm_device_buffer_shrink_to_fit(&buffer, stream));
        rmm_device_buffer_move(&moved, &buffer);
        assert_on_device(rmm_device_buffer_data(&moved), owner);
        assert_ok(rmm_stream_synchronize(stream));
        assert_pattern(rmm_device_buffer_data(&moved));
        rmm_device_buffer_fini(&moved);
        assert_current(1 - owner);
        assert_ok(rmm_stream_destroy(stream));
        rmm_resource_release(pool);
    }
}

/* Work on the owner's default stream takes some milliseconds; the copy waits for it. */
static void the_default_stream_is_that_of_the_owning_device(void **state)
{
    for (int owner = 0; owner < 2; owner++) {
        const size_t large = 512 * MIB;
        rmm_device_array_t array;
        unsigned char last = 0;

        assert_cuda(cudaSetDevice(owner));
        assert_ok(rmm_device_array_init(&array, 1, large, RMM_STREAM_LEGACY, NULL));
        for (int i = 0; i < 20; i++) {
            assert_cuda(cudaMemsetAsync(
                rmm_device_array_data(&array), i, large, cudaStreamLegacy));
        }
        assert_cuda(cudaSetDevice(1 - owner));
        assert_ok(rmm_device_array_resize(&array, large + 1, RMM_STREAM_LEGACY));
        assert_ok(
            rmm_device_array_get_element(&array, large - 1, &last, RMM_STREAM_LEGACY));
        assert_int_equal(last, 19);
        assert_on_device(rmm_device_array_data(&array), owner);
        rmm_device_array_fini(&array);
        assert_current(1 - owner);
    }
}

static void a_copy_crosses_devices(void **state)
{
    rmm_device_buffer_t source;
    rmm_device_buffer_t copy = RMM_DEVICE_BUFFER_INIT;

    assert_ok(rmm_device_buffer_init_copy_from(
        &source, pattern, BYTES, RMM_STREAM_LEGACY, NULL));
    assert_ok(rmm_stream_synchronize(RMM_STREAM_LEGACY));
    assert_ok(rmm_device_set(1));
    assert_ok(rmm_device_buffer_copy(&copy, &source, RMM_STREAM_LEGACY, NULL));
    assert_on_device(rmm_device_buffer_data(&source), 0);
    assert_on_device(rmm_device_buffer_data(&copy), 1);
    assert_int_equal(rmm_device_buffer_device(&copy), 1);
    assert_ok(rmm_stream_synchronize(RMM_STREAM_LEGACY));
    assert_pattern(rmm_device_buffer_data(&copy));
    rmm_device_buffer_fini(&copy);
    rmm_device_buffer_fini(&source);
}

static void a_scope_and_a_scalar_find_their_device(void **state)
{
    RMM_DEVICE_SCALAR(int) scalar;
    rmm_device_scope_t scope;
    const int number = 42;
    int value = 0;

    assert_ok(rmm_device_scope_enter(1, &scope));
    assert_current(1);
    assert_ok(
        rmm_device_scalar_int_init_value(&scalar, &number, RMM_STREAM_LEGACY, NULL));
    rmm_device_scope_leave(&scope);
    assert_current(0);
    assert_on_device(rmm_device_scalar_int_data(&scalar), 1);
    assert_ok(rmm_device_scalar_int_value(&scalar, &value, RMM_STREAM_LEGACY));
    assert_int_equal(value, 42);
    rmm_device_scalar_int_fini(&scalar);
    assert_current(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_buffer_stays_on_its_device, set_up),
        cmocka_unit_test_setup(the_default_stream_is_that_of_the_owning_device, set_up),
        cmocka_unit_test_setup(a_copy_crosses_devices, set_up),
        cmocka_unit_test_setup(a_scope_and_a_scalar_find_their_device, set_up),
    };
    rmm_status_t status;
    int count = 0;

    if (rmm__driver(&status) == NULL && status == RMM_ERR_NO_DEVICE) {
        printf("skipped: %s\n", rmm_last_error_message());
        return SKIPPED;
    }
    if (rmm_device_count(&count) == RMM_OK && count < 2) {
        printf("skipped: %d GPU here, the cases need 2\n", count);
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
