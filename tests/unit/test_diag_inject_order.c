/* SPDX-License-Identifier: Apache-2.0 */
/* Mode order of librmm-inject on the calls that CUPTI tells it of: see inject_fixture.h. */
#include "unit/inject_fixture.h"

#define STREAM(number) ((CUstream)(uintptr_t)(0x5000 + 16 * (number)))
#define FIRST_EVENT ((CUevent)(uintptr_t)0x7000)

enum { A = 1, B, C };

static void make_stream(CUstream stream)
{
    cuStreamCreateWithPriority_params params = {&stream, CU_STREAM_NON_BLOCKING, 0};

    call(CUPTI_DRIVER_TRACE_CBID_cuStreamCreateWithPriority, &params, NULL);
}

static uint32_t access_flags; /* of the blocks that are allocated */

static void allocate_on_a_at(uint64_t address)
{
    rmm_diag_block_v1_t block = {
        .address = address,
        .bytes = 4096,
        .stream_id = 77,
        .resource_id = 1,
        .stream = (rmm_stream_t)STREAM(A),
        .flags = RMM_DIAG_BLOCK_IN_STREAM_ORDER | access_flags};

    hooks.on_alloc(hooks.context, &block);
}

/* Block 0 is allocated on A anew. */
static void allocate_on_a(void)
{
    allocate_on_a_at(BASE);
}

static void start_order(void)
{
    start("order");
    assert_string_equal(header()->source, "active");
    assert_string_equal(header()->mode, "order");
    make_stream(STREAM(A));
    make_stream(STREAM(B));
    make_stream(STREAM(C));
    allocate_on_a();
}

/* B uses the block now, and that is an error or not. */
static void expect_ordered(bool is_ordered)
{
    uint64_t before = header()->findings_total;

    launch_reduce_on(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, STREAM(B));
    assert_int_equal(header()->findings_total - before, is_ordered ? 0 : 1);
}

CASE(finds_a_use_that_nothing_orders)
{
    start_order();
    expect_ordered(false);
    assert_int_equal(finding(0)->kind, RMM_DIAG_USE_UNORDERED);
    assert_int_equal(finding(0)->confidence, RMM_DIAG_LIKELY);
    assert_int_equal(finding(0)->other_stream_id, 77);
    assert_int_equal(finding(0)->stream_id, (uint64_t)(uintptr_t)STREAM(B));
    assert_string_equal(kernel_name(finding(0)->user), "reduce");
}

/* B may still use the block when A frees it. */
static void free_under_a_use(void)
{
    rmm_diag_block_v1_t block = {
        .address = BASE,
        .bytes = 4096,
        .stream_id = 77,
        .resource_id = 1,
        .stream = (rmm_stream_t)STREAM(A),
        .flags = RMM_DIAG_BLOCK_IN_STREAM_ORDER};

    launch_reduce_on(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, STREAM(B));
    hooks.on_free(hooks.context, &block);
}

CASE(finds_a_free_under_a_use)
{
    start_order();
    free_under_a_use();
    assert_int_equal(header()->findings_total, 2); /* the use is not ordered either */
    assert_int_equal(finding(1)->kind, RMM_DIAG_FREE_UNORDERED);
    assert_int_equal(finding(1)->access, RMM_DIAG_FREES);
}

CASE(a_free_is_not_judged_after_order_was_switched_off)
{
    uint64_t before;

    start_order();
    launch_reduce_on(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, STREAM(B));
    before = header()->findings_total;
    want(RMM_DIAG_MODE_BOUNDS);
    free_under_a_use();
    assert_int_equal(header()->modes_on, RMM_DIAG_MODE_BOUNDS);
    assert_int_equal(header()->findings_total, before);
}

/* An int in a struct, and padding with the upper half of an old pointer. */
CASE(a_small_number_is_no_pointer_to_a_block_that_crosses_4_gib)
{
    uint64_t window = BASE + (UINT64_C(1) << 32);

    start_order();
    allocate_on_a_at(window - 2048);
    launch_reduce_with(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, STREAM(B), window + 64);
    assert_int_equal(header()->findings_total, 0);
    launch_reduce_with(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, STREAM(B), window - 64);
    assert_int_equal(header()->findings_total, 1);
}

/* The block in a struct of so many bytes. */
static void launch_on_b_with_struct(const fake_function_t *function)
{
    uint64_t words[16] = {0, BASE};
    void *addresses[] = {words};
    cuLaunchKernel_params params = {
        .f = (CUfunction)(uintptr_t)function,
        .hStream = STREAM(B),
        .kernelParams = addresses};

    call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &params, "with_struct");
}

CASE(large_structs_are_not_judged)
{
    static const fake_function_t large = {.count = 1, .sizes = {128}};
    static const fake_function_t small = {.count = 1, .sizes = {120}};

    start_order();
    launch_on_b_with_struct(&large);
    assert_int_equal(header()->findings_total, 0);
    assert_int_equal(header()->unjudged, 1);
    launch_on_b_with_struct(&small);
    assert_int_equal(header()->findings_total, 1);
    assert_int_equal(header()->unjudged, 1);
}

CASE(events_order_streams)
{
    cuEventRecord_params record = {FIRST_EVENT, STREAM(A)};
    cuStreamWaitEvent_params wait = {STREAM(B), FIRST_EVENT, 0};
    cuEventDestroy_v2_params destroy = {FIRST_EVENT};

    start_order();
    call(CUPTI_DRIVER_TRACE_CBID_cuEventRecord, &record, NULL);
    expect_ordered(false);
    call(CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent_ptsz, &wait, NULL);
    expect_ordered(true);
    allocate_on_a();
    call(CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent, &wait, NULL);
    expect_ordered(false);
    enter(CUPTI_DRIVER_TRACE_CBID_cuEventDestroy_v2, &destroy, NULL);
    call(CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent, &wait, NULL);
    expect_ordered(true); /* whose event is it now? */
}

/* What the program did on A is done, each time; parameters fit all of them. */
CASE(the_host_waits_in_many_ways)
{
    static const CUpti_CallbackId on_stream[] = {
        CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize,
        CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuStreamQuery,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchHostFunc,
        CUPTI_DRIVER_TRACE_CBID_cuStreamAddCallback,
        CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue32_v2,
        CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize,
        CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2,
        CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost,
        CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeer};
    static const CUpti_CallbackId on_event[] = {
        CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize,
        CUPTI_DRIVER_TRACE_CBID_cuEventQuery};
    cuEventRecordWithFlags_params record = {FIRST_EVENT, STREAM(A), 0};
    CUstream parameters[8] = {STREAM(A)};
    CUevent event = FIRST_EVENT;

    start_order();
    for (size_t i = 0; i < sizeof(on_stream) / sizeof(on_stream[0]); i++) {
        allocate_on_a();
        expect_ordered(false);
        enter(on_stream[i], parameters, NULL); /* of some the way in counts */
        call(on_stream[i], parameters, NULL);
        expect_ordered(true);
    }
    for (size_t i = 0; i < sizeof(on_event) / sizeof(on_event[0]); i++) {
        allocate_on_a();
        call(CUPTI_DRIVER_TRACE_CBID_cuEventRecordWithFlags, &record, NULL);
        expect_ordered(false);
        call(on_event[i], &event, NULL);
        expect_ordered(true);
    }
}

/* The host function may run, and let another thread go on, before the call returns. */
CASE(what_a_host_function_tells_is_known_before_the_call)
{
    CUstream parameters[8] = {STREAM(A)};

    start_order();
    enter(CUPTI_DRIVER_TRACE_CBID_cuLaunchHostFunc, parameters, NULL);
    expect_ordered(true);
}

/* It is done when the call returns, although it is called asynchronous. */
CASE(a_copy_to_pageable_memory_is_waited_for)
{
    char host[100];
    cuMemcpyDtoHAsync_v2_params copy = {host, BASE, sizeof(host), STREAM(A)};

    start_order();
    call(CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2, &copy, "cuMemcpyDtoHAsync_v2");
    expect_ordered(true);
}

CASE(a_wait_that_failed_orders_nothing)
{
    CUresult result = CUDA_ERROR_NOT_READY;
    CUstream stream = STREAM(A);
    CUpti_CallbackData data = call_data(&stream, NULL, &result);

    start_order();
    lib.call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuStreamQuery, &data);
    expect_ordered(false);
}

CASE(a_copy_that_is_not_asynchronous_orders_its_stream)
{
    cuMemcpyDtoH_v2_params copy = {NULL, BASE, 100};
    cuStreamCreate_params blocking = {&(CUstream){STREAM(A)}, 0};

    start_order();
    call(CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2, &copy, NULL);
    expect_ordered(false); /* A does not block */
    call(CUPTI_DRIVER_TRACE_CBID_cuStreamCreate, &blocking, NULL);
    allocate_on_a();
    call(CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2, &copy, NULL);
    expect_ordered(true);
}

/* cudaMemset() returns before memory of the GPU is filled, and B does not wait for the stream. */
CASE(a_fill_of_what_only_the_gpu_can_access_is_not_waited_for)
{
    cuMemsetD8_v2_params fill = {BASE, 0, 4096};

    for (int i = 0; i < 2; i++) {
        access_flags = i == 0 ? RMM_DIAG_BLOCK_GPU_ONLY : 0;
        if (i == 0) {
            start_order();
        }
        allocate_on_a();
        call(CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, NULL, NULL);
        call(CUPTI_DRIVER_TRACE_CBID_cuMemsetD8_v2, &fill, "cuMemsetD8_v2");
        expect_ordered(i == 1);
    }
    access_flags = RMM_DIAG_BLOCK_GPU_ONLY;
    allocate_on_a();
    call(CUPTI_DRIVER_TRACE_CBID_cuMemsetD8_v2, &fill, "cuMemsetD8_v2");
    call(CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, NULL, NULL);
    access_flags = 0;
    expect_ordered(true);
}

CASE(what_waits_for_the_unseen_is_not_judged)
{
    static const CUpti_CallbackId calls[] = {
        CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue32_v2,
        CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue64_v2_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuStreamBatchMemOp_v2};
    CUstream parameters[8] = {STREAM(B)};

    start_order();
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        allocate_on_a();
        expect_ordered(false);
        call(calls[i], parameters, NULL);
        expect_ordered(true);
        call(CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, parameters, NULL);
    }
    assert_int_equal(header()->unjudged, sizeof(calls) / sizeof(calls[0]));
}

CASE(events_of_other_processes_end_all_judging)
{
    cuIpcOpenEventHandle_params params = {0};

    start_order();
    expect_ordered(false);
    call(CUPTI_DRIVER_TRACE_CBID_cuIpcOpenEventHandle, &params, NULL);
    expect_ordered(true);
}

CASE(events_that_graphs_record_end_all_judging)
{
    cuEventRecordWithFlags_params record = {
        FIRST_EVENT, STREAM(A), CU_EVENT_RECORD_EXTERNAL};

    start_order();
    call(CUPTI_DRIVER_TRACE_CBID_cuEventRecordWithFlags, &record, NULL);
    expect_ordered(true);
}

/* What these nodes wait for may be any stream's work. */
CASE(waits_that_are_nodes_of_graphs_end_all_judging)
{
    static const CUpti_CallbackId ids[] = {
        CUPTI_DRIVER_TRACE_CBID_cuGraphAddBatchMemOpNode,
        CUPTI_DRIVER_TRACE_CBID_cuGraphAddExternalSemaphoresWaitNode,
        CUPTI_DRIVER_TRACE_CBID_cuGraphAddEventWaitNode,
    };
    const char nothing[256] = {0};

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        pid_t child = fork();
        int status = 0;

        if (child == 0) {
            start_order();
            expect_ordered(false);
            call(ids[i], nothing, NULL);
            expect_ordered(true);
            _exit(42);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(WEXITSTATUS(status), 42);
    }
}

CASE(a_captured_wait_for_a_value_ends_all_judging)
{
    cuStreamBeginCapture_v2_params begin = {STREAM(B), CU_STREAM_CAPTURE_MODE_RELAXED};
    cuStreamWaitValue32_v2_params wait = {.stream = STREAM(B)};
    cuStreamEndCapture_params end = {STREAM(B), NULL};

    start_order();
    expect_ordered(false);
    call(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, &begin, NULL);
    call(CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue32_v2, &wait, NULL);
    call(CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture, &end, NULL);
    expect_ordered(true);
}

#if CUDA_VERSION >= 12040
/* For all streams of it, which are not told. */
CASE(events_of_a_green_context_end_all_judging)
{
    const char nothing[64] = {0};

    start_order();
    expect_ordered(false);
    call(CUPTI_DRIVER_TRACE_CBID_cuGreenCtxWaitEvent, nothing, NULL);
    expect_ordered(true);
}
#endif

CASE(an_event_that_a_launch_records_is_not_known)
{
    cuEventRecord_params record = {FIRST_EVENT, STREAM(C)};
    cuStreamWaitEvent_params wait = {STREAM(B), FIRST_EVENT, 0};
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT};
    CUlaunchConfig config = {.hStream = STREAM(A), .attrs = &attribute, .numAttrs = 1};
    cuLaunchKernelEx_params launch = {
        .config = &config, .f = (CUfunction)(uintptr_t)&function_of_two};
    uint64_t pointer = BASE;
    int number = 5;
    void *addresses[] = {&number, &pointer};

    start_order();
    attribute.value.programmaticEvent.event = FIRST_EVENT;
    launch.kernelParams = addresses;
    call(CUPTI_DRIVER_TRACE_CBID_cuEventRecord, &record, NULL);
    call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, &launch, "reduce");
    call(CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent, &wait, NULL);
    expect_ordered(true);
}

CASE(captured_calls_are_left_out)
{
    cuStreamBeginCapture_v2_params begin = {STREAM(B), CU_STREAM_CAPTURE_MODE_RELAXED};
    cuStreamEndCapture_params end = {STREAM(B), NULL};

    start_order();
    call(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, &begin, NULL);
    expect_ordered(true);
    call(CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture, &end, NULL);
    expect_ordered(false);
}

CASE(a_capture_that_another_thread_may_not_end_goes_on)
{
    cuStreamBeginCapture_v2_params begin = {STREAM(B), CU_STREAM_CAPTURE_MODE_RELAXED};
    cuStreamEndCapture_params end = {STREAM(B), NULL};
    CUresult result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    CUpti_CallbackData data = call_data(&end, NULL, &result);

    start_order();
    call(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, &begin, NULL);
    lib.call(
        CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture, &data);
    expect_ordered(true);
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    lib.call(
        CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture, &data);
    expect_ordered(false);
}

CASE(a_threads_default_stream_is_a_stream_of_its_own)
{
    cuEventRecord_params record = {FIRST_EVENT, STREAM(A)};
    cuStreamWaitEvent_params wait = {NULL, FIRST_EVENT, 0};

    start_order();
    launch_reduce_on(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz, NULL);
    assert_int_equal(header()->findings_total, 1);
    launch_reduce_on(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, NULL);
    assert_int_equal(header()->findings_total, 2);
    call(CUPTI_DRIVER_TRACE_CBID_cuEventRecord, &record, NULL);
    call(CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent_ptsz, &wait, NULL);
    launch_reduce_on(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz, NULL);
    launch_reduce_on(
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, (CUstream)RMM_STREAM_PER_THREAD);
    assert_int_equal(header()->findings_total, 2);
}

CASE(a_stream_that_is_destroyed_leaves_its_handle)
{
    cuStreamDestroy_v2_params destroy = {STREAM(B)};
    cuStreamCreate_params create = {&(CUstream){STREAM(B)}, 0};

    start_order();
    enter(CUPTI_DRIVER_TRACE_CBID_cuStreamDestroy_v2, &destroy, NULL);
    call(CUPTI_DRIVER_TRACE_CBID_cuStreamCreate, &create, NULL);
    expect_ordered(false);
}

/* --- streams that are older than the diagnosis ------------------------------------------ */

static fake_cuda_control_t *start_with_streams(const char *mode, unsigned flags)
{
    fake_cuda_control_t *(*control)(void) = NULL;

    get(load("RMM_TEST_FAKE_CUDA"), "fake_cuda_control", &control);
    control()->knows_streams = true;
    control()->stream_flags = flags;
    start(mode);
    assert_string_equal(header()->source, "active");
    return control();
}

static uint64_t id_of(CUstream stream)
{
    return (uintptr_t)stream / 16;
}

static void allocate_on_default(void)
{
    rmm_diag_block_v1_t block = {
        .address = BASE,
        .bytes = 4096,
        .resource_id = 1,
        .flags = RMM_DIAG_BLOCK_IN_STREAM_ORDER};

    hooks.on_alloc(hooks.context, &block);
}

CASE(the_driver_says_whether_an_old_stream_waits_for_the_default_stream)
{
    (void)start_with_streams("order", CU_STREAM_NON_BLOCKING);
    allocate_on_default();
    expect_ordered(false);
    assert_int_equal(finding(0)->stream_id, id_of(STREAM(B)));
    assert_int_equal(finding(0)->other_stream_id, 0);
}

CASE(an_old_stream_that_waits_for_the_default_stream_is_ordered)
{
    (void)start_with_streams("order", 0);
    allocate_on_default();
    expect_ordered(true);
}

CASE(a_stream_is_asked_for_once_and_again_if_its_handle_is_anothers)
{
    cuStreamDestroy_v2_params destroy = {STREAM(B)};
    cuStreamCreate_params create = {&(CUstream){STREAM(B)}, CU_STREAM_NON_BLOCKING};
    fake_cuda_control_t *cuda = start_with_streams("usage", CU_STREAM_NON_BLOCKING);

    for (int i = 0; i < 3; i++) {
        launch_reduce_on(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, STREAM(B));
    }
    assert_int_equal(cuda->stream_queries, 1);
    enter(CUPTI_DRIVER_TRACE_CBID_cuStreamDestroy_v2, &destroy, NULL);
    assert_int_equal(cuda->stream_queries, 1); /* it may be gone */
    call(CUPTI_DRIVER_TRACE_CBID_cuStreamCreate, &create, NULL);
    assert_int_equal(cuda->stream_queries, 2);
    launch_reduce_on(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, STREAM(B));
    launch_reduce_on(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, NULL);
    launch_reduce_on(
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, (CUstream)RMM_STREAM_LEGACY);
    assert_int_equal(cuda->stream_queries, 2);
}

/* Asking for the id would ruin the capture. */
CASE(a_stream_that_captures_is_not_asked_for)
{
    fake_cuda_control_t *cuda = start_with_streams("order", CU_STREAM_NON_BLOCKING);
    cuStreamBeginCapture_v2_params begin = {STREAM(A), CU_STREAM_CAPTURE_MODE_GLOBAL};

    cuda->capture_status = CU_STREAM_CAPTURE_STATUS_ACTIVE; /* begun before */
    launch_reduce_on(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, STREAM(B));
    assert_int_equal(cuda->stream_queries, 0);
    cuda->capture_status = CU_STREAM_CAPTURE_STATUS_NONE;
    call(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, &begin, NULL);
    launch_reduce_on(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, STREAM(B));
    assert_int_equal(cuda->stream_queries, 0);
}

/* --- several devices -------------------------------------------------------------------- */

/* As call(), with the context of this device as the current one. */
static void call_on(uint32_t device, CUpti_CallbackId id, const void *params)
{
    CUresult result = CUDA_SUCCESS;
    CUpti_CallbackData data = call_data(params, NULL, &result);

    data.context = (CUcontext)(uintptr_t)device;
    data.contextUid = device + 100;
    lib.call(CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
}

enum { HERE = 3, ELSEWHERE = 4 }; /* call() is made on device 3 */

CASE(a_wait_for_another_device_orders_nothing)
{
    const CUpti_CallbackId wait = CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize;

    start_order();
    call_on(ELSEWHERE, wait, NULL);
    expect_ordered(false);
    allocate_on_a();
    call_on(HERE, wait, NULL);
    expect_ordered(true);
}

#if CUDA_VERSION >= 13000
CASE(a_wait_for_a_context_is_one_for_its_device)
{
    const CUpti_CallbackId wait = CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize_v2;
    const cuCtxSynchronize_v2_params here = {(CUcontext)(uintptr_t)HERE};
    const cuCtxSynchronize_v2_params elsewhere = {(CUcontext)(uintptr_t)ELSEWHERE};
    const cuCtxSynchronize_v2_params current = {NULL};

    start_order();
    call_on(HERE, wait, &elsewhere);
    expect_ordered(false);
    allocate_on_a();
    call_on(ELSEWHERE, wait, &current);
    expect_ordered(false);
    call_on(ELSEWHERE, wait, &here);
    expect_ordered(true);
    allocate_on_a();
    call_on(HERE, wait, &current);
    expect_ordered(true);
}
#endif

/* CUDA does not say which devices these wait for. */
CASE(a_free_while_another_device_is_current_counts_as_a_wait)
{
    static const CUpti_CallbackId waits[] = {
        CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2, CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost,
        CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeer};
    uint64_t parameters[8] = {0};

    start_order();
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        allocate_on_a();
        call_on(ELSEWHERE, waits[i], parameters);
        expect_ordered(true);
    }
}

CASE(asks_for_order_only_where_it_is_wanted)
{
    start("usage,bounds");
    assert_false(
        lib.enabled(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuEventRecord));
}

/* A copy between devices is looked at by `usage` as well. */
CASE(switching_order_off_leaves_the_calls_that_others_need)
{
    const CUpti_CallbackId shared = CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeer;

    start("usage,order");
    assert_true(lib.enabled(CUPTI_CB_DOMAIN_DRIVER_API, shared));
    want(RMM_DIAG_MODE_USAGE);
    add_block(BASE, 4096); /* applies it */
    assert_false(
        lib.enabled(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuEventRecord));
    assert_true(lib.enabled(CUPTI_CB_DOMAIN_DRIVER_API, shared));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_a_use_that_nothing_orders),
        cmocka_unit_test(finds_a_free_under_a_use),
        cmocka_unit_test(a_free_is_not_judged_after_order_was_switched_off),
        cmocka_unit_test(a_small_number_is_no_pointer_to_a_block_that_crosses_4_gib),
        cmocka_unit_test(large_structs_are_not_judged),
        cmocka_unit_test(events_order_streams),
        cmocka_unit_test(the_host_waits_in_many_ways),
        cmocka_unit_test(what_a_host_function_tells_is_known_before_the_call),
        cmocka_unit_test(a_copy_to_pageable_memory_is_waited_for),
        cmocka_unit_test(a_wait_that_failed_orders_nothing),
        cmocka_unit_test(a_copy_that_is_not_asynchronous_orders_its_stream),
        cmocka_unit_test(a_fill_of_what_only_the_gpu_can_access_is_not_waited_for),
        cmocka_unit_test(what_waits_for_the_unseen_is_not_judged),
        cmocka_unit_test(events_of_other_processes_end_all_judging),
        cmocka_unit_test(events_that_graphs_record_end_all_judging),
        cmocka_unit_test(waits_that_are_nodes_of_graphs_end_all_judging),
        cmocka_unit_test(a_captured_wait_for_a_value_ends_all_judging),
#if CUDA_VERSION >= 12040
        cmocka_unit_test(events_of_a_green_context_end_all_judging),
#endif
        cmocka_unit_test(an_event_that_a_launch_records_is_not_known),
        cmocka_unit_test(captured_calls_are_left_out),
        cmocka_unit_test(a_capture_that_another_thread_may_not_end_goes_on),
        cmocka_unit_test(a_threads_default_stream_is_a_stream_of_its_own),
        cmocka_unit_test(a_stream_that_is_destroyed_leaves_its_handle),
        cmocka_unit_test(
            the_driver_says_whether_an_old_stream_waits_for_the_default_stream),
        cmocka_unit_test(an_old_stream_that_waits_for_the_default_stream_is_ordered),
        cmocka_unit_test(
            a_stream_is_asked_for_once_and_again_if_its_handle_is_anothers),
        cmocka_unit_test(a_stream_that_captures_is_not_asked_for),
        cmocka_unit_test(a_wait_for_another_device_orders_nothing),
#if CUDA_VERSION >= 13000
        cmocka_unit_test(a_wait_for_a_context_is_one_for_its_device),
#endif
        cmocka_unit_test(a_free_while_another_device_is_current_counts_as_a_wait),
        cmocka_unit_test(asks_for_order_only_where_it_is_wanted),
        cmocka_unit_test(switching_order_off_leaves_the_calls_that_others_need),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
