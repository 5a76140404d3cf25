/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMM's cases of host_mr_ref, mr_ref_default, resource_ref_conversion, cuda_stream and
 * error_macros.
 */
#include "conformance/rmm_cases.h"

#include <pthread.h>

/* --- host_mr_ref_tests: over host and pinned memory --------------------------------- */

static void for_host_memory(void (*body)(rmm_resource_t *mr))
{
    rmm_resource_t *mr;

    assert_ok(rmm_host_resource_create(&mr));
    body(mr);
    rmm_resource_release(mr);
    mr = pinned_resource();
    body(mr);
    rmm_resource_release(mr);
}

static void equals_itself(rmm_resource_t *mr)
{
    assert_true(rmm_resource_is_equal(mr, mr));
}

static void host_self_equality(void **state)
{
    for_host_memory(equals_itself);
}

static void gives_no_bytes(rmm_resource_t *mr)
{
    void *ptr = &ptr;

    assert_ok(rmm_resource_alloc_sync(mr, 0, 0, &ptr));
    assert_null(ptr);
    give(mr, ptr, 0);
}

static void host_allocate_zero_bytes(void **state)
{
    for_host_memory(gives_no_bytes);
}

/* Not a device's: the host writes and reads it. */
static void host_uses(rmm_resource_t *mr, size_t bytes)
{
    unsigned char *ptr = take(mr, bytes);

    ptr[0] = 3;
    ptr[bytes - 1] = 4;
    assert_int_equal(ptr[bytes - 1], 4);
    assert_true((rmm_resource_properties(mr) & RMM_HOST_ACCESSIBLE) != 0);
    give(mr, ptr, bytes);
}

#define HOST_SIZE(name, bytes)                                                         \
    static void uses_##name(rmm_resource_t *mr)                                        \
    {                                                                                  \
        host_uses(mr, bytes);                                                          \
    }                                                                                  \
                                                                                       \
    static void host_allocate_##name(void **state)                                     \
    {                                                                                  \
        (void)state;                                                                   \
        for_host_memory(uses_##name);                                                  \
    }

HOST_SIZE(word, 4)
HOST_SIZE(kb, KIB)
HOST_SIZE(mb, MIB)
HOST_SIZE(gb, GIB)

static void refuses_a_pib(rmm_resource_t *mr)
{
    refuse(mr, PIB);
}

static void host_allocate_too_much(void **state)
{
    for_host_memory(refuses_a_pib);
}

static void gives_each_alignment(rmm_resource_t *mr)
{
    unsigned seed = 1;

    for (int trial = 0; trial < 100; trial++) {
        for (size_t align = 16; align <= 256; align *= 2) {
            size_t bytes = 1 + (size_t)rand_r(&seed) % (10 * MIB);
            void *ptr;

            assert_ok(rmm_resource_alloc_sync(mr, bytes, align, &ptr));
            assert_int_equal((uintptr_t)ptr % align, 0);
            rmm_resource_dealloc_sync(mr, ptr, bytes, align);
        }
    }
}

static void host_alignment_test(void **state)
{
    for_host_memory(gives_each_alignment);
}

/* --- mr_ref_default_tests ----------------------------------------------------------- */

static void *use_current(void *argument)
{
    static const size_t sizes[] = {100, MIB};
    rmm_resource_t *mr = NULL;
    void *ptr;

    if (rmm_get_current_device_resource(&mr) != RMM_OK) {
        return NULL;
    }
    for (size_t i = 0; i < 2; i++) {
        if (rmm_resource_alloc_sync(mr, sizes[i], 0, &ptr) != RMM_OK ||
            (uintptr_t)ptr % RMM_ALIGN_DEFAULT != 0 ||
            gpu()->memset_async(ptr, 1, sizes[i], NULL) != RMM_DRIVER_OK) {
            argument = NULL;
        } else {
            rmm_resource_dealloc_sync(mr, ptr, sizes[i], 0);
        }
    }
    rmm_resource_release(mr);
    return argument;
}

static void *current_is_cuda(void *argument)
{
    rmm_resource_t *mr = NULL;

    if (rmm_get_current_device_resource(&mr) != RMM_OK ||
        strcmp(rmm_resource_type(mr), "cuda") != 0) {
        argument = NULL;
    }
    rmm_resource_release(mr);
    return argument;
}

/* Each returns its argument if all is well. */
static void on_threads(void *(*body)(void *), int count)
{
    pthread_t threads[4];
    int tokens[4];
    void *result;

    for (int i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, body, &tokens[i]), 0);
    }
    for (int i = 0; i < count; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, &tokens[i]);
    }
}

static void use_current_device_resource(void **state)
{
    int token;

    assert_non_null(use_current(&token));
}

static void get_current_device_resource(void **state)
{
    int token;

    assert_non_null(current_is_cuda(&token));
}

static void set_current_device_resource(void **state)
{
    rmm_resource_t *cuda = cuda_resource();
    rmm_resource_t *current;
    void *ptr;

    assert_ok(rmm_set_current_device_resource(cuda, NULL));
    assert_ok(rmm_get_current_device_resource(&current));
    assert_true(rmm_resource_is_equal(cuda, current));
    ptr = take(current, 1024);
    use(ptr, 1024, NULL);
    give(current, ptr, 1024);
    assert_ok(rmm_reset_current_device_resource());
    rmm_resource_release(current);
    rmm_resource_release(cuda);
}

static void use_current_device_resource_mt(void **state)
{
    on_threads(use_current, 4);
}

static void current_device_resource_is_cuda_mt(void **state)
{
    on_threads(current_is_cuda, 4);
}

/* --- resource_ref_conversion_tests: what is left of them without types -------------- */

static void host_device_to_device(void **state)
{
    rmm_resource_t *mr = pinned_resource();
    rmm_stream_t stream;
    void *ptr;

    assert_int_equal(
        rmm_resource_properties(mr), RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE);
    ptr = take(mr, 1024);
    use(ptr, 1024, NULL);
    assert_int_equal(*(unsigned char *)ptr, 7); /* by the host */
    give(mr, ptr, 1024);
    assert_ok(rmm_stream_create(0, &stream));
    assert_ok(rmm_resource_alloc(mr, 1024, 0, stream, &ptr));
    use(ptr, 1024, stream);
    rmm_resource_dealloc(mr, ptr, 1024, 0, stream);
    assert_ok(rmm_stream_destroy(stream));
    rmm_resource_release(mr);
}

/* A pool has the properties of what it is built on. */
static void forward_property(void **state)
{
    rmm_resource_t *device;
    rmm_resource_t *both;

    assert_ok(pool_over(cuda_resource(), 0, 0, &device));
    assert_ok(pool_over(pinned_resource(), 0, 0, &both));
    assert_int_equal(rmm_resource_properties(device), RMM_DEVICE_ACCESSIBLE);
    assert_int_equal(
        rmm_resource_properties(both), RMM_DEVICE_ACCESSIBLE | RMM_HOST_ACCESSIBLE);
    rmm_resource_release(device);
    rmm_resource_release(both);
}

/* Asking a resource what it is; a function of one type refuses another. */
static void checked_down_cast(void **state)
{
    rmm_resource_t *cuda = cuda_resource();
    rmm_resource_t *binning;

    assert_ok(rmm_binning_resource_create(cuda, NULL, &binning));
    assert_string_equal(rmm_resource_type(binning), "binning");
    assert_string_equal(rmm_resource_type(rmm_resource_upstream(binning)), "cuda");
    assert_ok(rmm_binning_resource_add_bin(binning, 1024, NULL));
    assert_int_equal(
        rmm_binning_resource_add_bin(cuda, 1024, NULL), RMM_ERR_INVALID_ARGUMENT);
    rmm_resource_release(binning);
    rmm_resource_release(cuda);
}

/* --- cuda_stream_tests -------------------------------------------------------------- */

static void stream_equality(void **state)
{
    rmm_stream_t first;
    rmm_stream_t second;

    assert_ok(rmm_stream_create(0, &first));
    assert_ok(rmm_stream_create(0, &second));
    assert_ptr_not_equal(first, second);
    assert_false(rmm_stream_is_default(first));
    assert_false(rmm_stream_is_per_thread_default(first));
    assert_true(rmm_stream_is_default(NULL));
    assert_true(rmm_stream_is_default(RMM_STREAM_LEGACY));
    assert_false(rmm_stream_is_default(RMM_STREAM_PER_THREAD));
    assert_true(rmm_stream_is_per_thread_default(RMM_STREAM_PER_THREAD));
    assert_ok(rmm_stream_destroy(first));
    assert_ok(rmm_stream_destroy(second));
}

static void creates_with_flags(uint32_t flags)
{
    rmm_stream_t stream;
    uint32_t found = 99;

    assert_ok(rmm_stream_create(flags, &stream));
    assert_int_equal(gpu()->stream_flags(stream, &found), RMM_DRIVER_OK);
    assert_int_equal(found, flags);
    assert_ok(rmm_stream_destroy(stream));
}

static void stream_create_default(void **state)
{
    creates_with_flags(0);
}

static void stream_create_non_blocking(void **state)
{
    creates_with_flags(RMM_STREAM_NON_BLOCKING);
}

static void stream_sync(void **state)
{
    rmm_stream_t stream;

    assert_ok(rmm_stream_create(0, &stream));
    assert_ok(rmm_stream_synchronize(stream));
    assert_ok(rmm_stream_synchronize(NULL));
    assert_ok(rmm_stream_synchronize(RMM_STREAM_PER_THREAD));
    assert_ok(rmm_stream_destroy(stream));
}

/* On a real GPU such a call crashes in the driver, so it is never made: see
 * sim.sim_handles and the pools' own tests. */
static void stream_sync_of_a_destroyed_one(void **state)
{
    rmm_stream_t stream;

    if (!rmm_sim_active()) {
        print_message("only the simulated GPU survives that\n");
        return;
    }
    assert_ok(rmm_stream_create(0, &stream));
    assert_ok(rmm_stream_destroy(stream));
    assert_int_equal(rmm_stream_synchronize(stream), RMM_ERR_CUDA);
}

/* --- error_macros_tests ------------------------------------------------------------- */

static void expects_throw(void **state)
{
    rmm_resource_t *mr = NULL;

    assert_int_equal(
        rmm_pool_resource_create(NULL, NULL, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_null(mr);
    assert_non_null(strstr(rmm_last_error_message(), "upstream is NULL"));
}

static void cuda_try_throw(void **state)
{
    assert_int_equal(
        rmm__driver_error(gpu(), RMM_DRIVER_INVALID_VALUE, "a call"), RMM_ERR_CUDA);
    assert_int_equal(rmm_last_cuda_error(), RMM_DRIVER_INVALID_VALUE);
    assert_non_null(strstr(rmm_last_error_message(), "a call"));
    assert_non_null(strstr(rmm_last_error_message(), "cudaErrorInvalidValue"));
}

static void cuda_try_alloc_out_of_memory(void **state)
{
    rmm_resource_t *cuda = cuda_resource();

    refuse(cuda, PIB);
    assert_int_equal(rmm_last_cuda_error(), RMM_DRIVER_MEMORY_ALLOCATION);
    assert_non_null(strstr(rmm_last_error_message(), "cudaMalloc"));
    assert_non_null(strstr(rmm_last_error_message(), "1125899906842624 bytes"));
    assert_true(rmm_status_is_alloc_failure(RMM_ERR_OUT_OF_MEMORY));
    give(cuda, take(cuda, 1000), 1000); /* no error is left behind */
    rmm_resource_release(cuda);
}

static void cuda_try_alloc_bad_alloc(void **state)
{
    rmm_resource_t *cuda = cuda_resource();
    void *ptr = NULL;

    assert_int_equal(rmm_resource_alloc_sync(cuda, 1000, 512, &ptr), RMM_ERR_BAD_ALLOC);
    assert_null(ptr);
    assert_true(rmm_status_is_alloc_failure(RMM_ERR_BAD_ALLOC));
    rmm_resource_release(cuda);
}

/* clang-format off */
static const struct CMUnitTest tests[] = {
    CASE("MRRefTest.SelfEquality", host_self_equality),
    CASE("MRRefTest.AllocateZeroBytes", host_allocate_zero_bytes),
    CASE("MRRefTest.AllocateWord", host_allocate_word),
    CASE("MRRefTest.AllocateKB", host_allocate_kb),
    CASE("MRRefTest.AllocateMB", host_allocate_mb),
    CASE("MRRefTest.AllocateGB", host_allocate_gb),
    CASE("MRRefTest.AllocateTooMuch", host_allocate_too_much),
    CASE("MRRefTest.AlignmentTest", host_alignment_test),
    CASE("DefaultTest.UseCurrentDeviceResourceRef", use_current_device_resource),
    CASE("DefaultTest.GetCurrentDeviceResourceRef", get_current_device_resource),
    CASE("DefaultTest.SetCurrentDeviceResourceRef", set_current_device_resource),
    CASE("DefaultTest.UseCurrentDeviceResourceRef_mt", use_current_device_resource_mt),
    CASE("DefaultTest.CurrentDeviceResourceRefIsCUDA_mt", current_device_resource_is_cuda_mt),
    CASE("ResourceRefConversion.HostDeviceToDevice", host_device_to_device),
    CASE("ResourceRefConversion.ForwardProperty", forward_property),
    CASE("ResourceRefConversion.ResourceCast", checked_down_cast),
    CASE("CudaStreamTest.Equality", stream_equality),
    CASE("CudaStreamTest.TestCreateDefault", stream_create_default),
    CASE("CudaStreamTest.TestCreateNonBlocking", stream_create_non_blocking),
    CASE("CudaStreamTest.TestSyncNoThrow", stream_sync),
    CASE("CudaStreamDeathTest.TestSyncNoThrow", stream_sync_of_a_destroyed_one),
    CASE("ErrorMacros.ExpectsThrow", expects_throw),
    CASE("ErrorMacros.CudaTryThrow", cuda_try_throw),
    CASE("ErrorMacros.CudaTryAllocOutOfMemory", cuda_try_alloc_out_of_memory),
    CASE("ErrorMacros.CudaTryAllocBadAlloc", cuda_try_alloc_bad_alloc),
};
/* clang-format on */

int main(void)
{
    int result = begin_cases();

    return result != 0 ? result : cmocka_run_group_tests(tests, NULL, NULL);
}
