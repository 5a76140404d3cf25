/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts that end while the diagnosis is on: what librmm-inject forgets of them, and what it
 * keeps of others.
 */
#include "unit/inject_fixture.h"

#define BLOCK_BYTES 4096u
#define CBID(call) CUPTI_DRIVER_TRACE_CBID_##call
#define PRIMARY ((CUcontext)(uintptr_t)3)
#define OTHER_CONTEXT ((CUcontext)(uintptr_t)5)

static void end_context(CUcontext context)
{
    const CUpti_ResourceData resource = {.context = context};

    lib.call(
        CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING,
        &resource);
}

/* The program gives up the primary context of device 0; `ends` if it was the last to have it. */
static void release(CUpti_CallbackId id, bool ends, CUresult result)
{
    const cuDevicePrimaryCtxRelease_v2_params params = {0};
    CUpti_CallbackData data = call_data(&params, NULL, &result);

    enter(id, &params, "release");
    if (ends) {
        end_context(PRIMARY);
    }
    lib.call(CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
}

CASE(the_last_release_of_the_primary_context_resets_the_gpu)
{
    static const CUpti_CallbackId ids[] = {
        CBID(cuDevicePrimaryCtxRelease), CBID(cuDevicePrimaryCtxRelease_v2)};
    const cuMemcpy_params copy = {BASE, BASE, BLOCK_BYTES + 1};

    start("usage,bounds");
    for (uint32_t i = 0; i < 2; i++) {
        add_block(BASE, BLOCK_BYTES);
        release(ids[i], false, CUDA_SUCCESS);
        assert_non_null(row_of(BASE));
        release(ids[i], true, CUDA_SUCCESS);
        assert_null(row_of(BASE));
        enter(CBID(cuMemcpy), &copy, "copy");
        assert_int_equal(header()->device_resets, i + 1);
    }
    assert_int_equal(header()->findings_total, 0);
}

CASE(another_context_that_ended_before_is_no_reset)
{
    start("usage,bounds");
    add_block(BASE, BLOCK_BYTES);
    end_context(OTHER_CONTEXT);
    release(CBID(cuDevicePrimaryCtxRelease_v2), false, CUDA_SUCCESS);
    assert_non_null(row_of(BASE));
    release(CBID(cuDevicePrimaryCtxRelease_v2), true, CUDA_ERROR_INVALID_DEVICE);
    assert_non_null(row_of(BASE));
    assert_int_equal(header()->device_resets, 0);
}

/* The driver may give their handles to other functions, with other parameters. */
CASE(functions_of_a_context_that_ended_are_asked_for_again)
{
    static fake_function_t function = {.count = 2, .offsets = {0, 8}, .sizes = {4, 8}};
    uint64_t pointer = BASE;
    void *addresses[] = {&pointer};
    const cuLaunchKernel_params launch = {
        .f = (CUfunction)(uintptr_t)&function, .kernelParams = addresses};
    uint32_t asked = 0;

    start("usage");
    add_block(BASE, BLOCK_BYTES);
    launch_through(CBID(cuLaunchKernel), &function, BASE, "first");
    asked = lib.queries();
    end_context(OTHER_CONTEXT);
    function = (fake_function_t){.count = 1, .offsets = {0}, .sizes = {8}};
    call(CBID(cuLaunchKernel), &launch, "second"); /* has no second parameter */
    assert_true(lib.queries() > asked);
    assert_int_equal(row_of(BASE)->launches, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_release_of_the_primary_context_resets_the_gpu),
        cmocka_unit_test(another_context_that_ended_before_is_no_reset),
        cmocka_unit_test(functions_of_a_context_that_ended_are_asked_for_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
