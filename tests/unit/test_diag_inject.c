/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librmm-inject itself, loaded as the CUDA driver loads it, with a fake CUPTI and a fake
 * librmm-c. It keeps its state for the life of a process, so each case runs in a child.
 */
#include "unit/inject_fixture.h"

CASE(does_nothing_unless_asked)
{
    load_all();
    unsetenv("RMM_DIAG");
    lib.injected(attach);
    setenv("RMM_DIAG", "", 1);
    lib.injected(attach);
    assert_null(hooks.on_alloc);
    assert_int_equal(lib.control()->subscribed, 0);
}

CASE(without_the_library_it_stays_idle)
{
    setenv("RMM_DIAG", "usage", 1);
    load_all(); /* and nobody calls rmm_diag_injected_v1() */
    assert_int_equal(lib.control()->subscribed, 0);
}

CASE(stays_idle_where_it_may_not_attach)
{
    load_all();
    setenv("RMM_DIAG", "usage", 1);
    lib.injected(refuse);
    assert_int_equal(lib.control()->subscribed, 0);
    assert_null(side_memory);
}

CASE(attaches_to_the_first_of_two_libraries)
{
    void *first = NULL;

    start("usage");
    first = side_memory;
    lib.injected(attach);
    assert_ptr_equal(side_memory, first);
    assert_int_equal(lib.control()->subscribed, 1);
}

CASE(an_unknown_mode_is_reported_and_changes_nothing)
{
    start("usage,boundaries");
    assert_int_equal(header()->ready, 1);
    assert_string_equal(header()->source, "error:RMM_DIAG: no mode \"boundaries\"");
    assert_int_equal(lib.control()->subscribed, 0);
    add_block(BASE, 4096);
    assert_int_equal(header()->rows.used, 0);
}

CASE(names_the_tool_that_was_first)
{
    load_all();
    lib.control()->subscribe_result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    lib.control()->rival = "CUPTI for Nsight Systems";
    setenv("RMM_DIAG", "usage", 1);
    lib.injected(attach);
    assert_int_equal(header()->ready, 1);
    assert_string_equal(header()->source, "conflict:CUPTI for Nsight Systems");
    assert_string_equal(header()->mode, "usage");
    add_block(BASE, 4096);
    remove_block(BASE, 4096);
    assert_int_equal(header()->rows.used, 0);
}

CASE(subscribes_beside_others_where_cupti_can)
{
    load_all();
    lib.control()->knows_several = true;
    lib.control()->rival = "CUPTI for a profiler"; /* subscribes beside it */
    setenv("RMM_DIAG", "usage", 1);
    lib.injected(attach);
    assert_string_equal(header()->source, "active");
    assert_false(lib.control()->is_alone);
    assert_int_equal(lib.control()->attempts, 1);
}

CASE(subscribes_alone_where_cupti_cannot_serve_several)
{
    load_all();
    lib.control()->knows_several = true;
    lib.control()->must_be_alone = true;
    setenv("RMM_DIAG", "usage", 1);
    lib.injected(attach);
    assert_string_equal(header()->source, "active");
    assert_true(lib.control()->is_alone);
    assert_int_equal(lib.control()->attempts, 2);
}

CASE(subscribes_alone_to_an_older_cupti)
{
    load_all();
    setenv("RMM_DIAG", "usage", 1);
    lib.injected(attach);
    assert_string_equal(header()->source, "active");
    assert_true(lib.control()->is_alone);
    assert_string_equal(lib.control()->name, "rmm-c");
}

CASE(says_why_cupti_refuses)
{
    load_all();
    lib.control()->subscribe_result = CUPTI_ERROR_NOT_INITIALIZED;
    setenv("RMM_DIAG", "usage", 1);
    lib.injected(attach);
    assert_string_equal(
        header()->source, "error:cuptiSubscribe: CUPTI_ERROR_NOT_INITIALIZED (15)");
}

CASE(lets_go_of_cupti_when_callbacks_cannot_be_had)
{
    load_all();
    lib.control()->enable_result = CUPTI_ERROR_UNKNOWN;
    setenv("RMM_DIAG", "usage", 1);
    lib.injected(attach);
    assert_string_equal(
        header()->source, "error:cuptiEnableCallback: CUPTI_ERROR_OTHER (999)");
    assert_int_equal(lib.control()->subscribed, 1);
    assert_int_equal(lib.control()->unsubscribed, 1);
}

CASE(takes_a_smaller_side_file_where_there_is_no_room)
{
    side_files_to_refuse = 2;
    start("usage");
    assert_string_equal(header()->source, "active");
    assert_int_equal(header()->rows.count, 2048);
    assert_int_equal(header()->file_bytes, side_bytes);
}

CASE(gives_up_in_silence_without_any_side_file)
{
    side_files_to_refuse = 100;
    start("usage");
    assert_int_equal(lib.control()->subscribed, 0);
    add_block(BASE, 4096); /* the hooks stay, and do nothing */
    remove_block(BASE, 4096);
}

CASE(counts_launches_of_every_kind_of_call)
{
    start("usage");
    assert_string_equal(header()->source, "active");
    assert_string_equal(lib.control()->name, "rmm-c");
    add_block(BASE, 4096);
    launch_through(
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &function_of_two, BASE, "first");
    launch_through(
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz, &kernel_of_two, BASE + 100, "k");
    {
        uint64_t pointer = BASE + 200;
        int number = 1;
        void *addresses[] = {&number, &pointer};
        CUlaunchConfig config = {.hStream = NULL};
        cuLaunchKernelEx_params ex = {
            .config = &config,
            .f = (CUfunction)(uintptr_t)&kernel_of_two,
            .kernelParams = addresses};
        cuLaunchCooperativeKernel_params cooperative = {
            .f = (CUfunction)(uintptr_t)&function_of_two, .kernelParams = addresses};

        call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, &ex, "k");
        call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz, &ex, "k");
        call(CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel, &cooperative, "k");
        call(
            CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz, &cooperative,
            "last");
    }
    assert_int_equal(header()->launches, 6);
    assert_int_equal(header()->parameter_failures, 0);
    assert_int_equal(row_of(BASE)->launches, 6);
    assert_string_equal(kernel_name(row_of(BASE)->first_user), "first");
    assert_string_equal(kernel_name(row_of(BASE)->last_user), "last");
}

/* --- copies, fills and prefetches --------------------------------------------------------- */

#define BLOCK_BYTES 4096u

/* Every such call, once with ranges that fit and once with ranges that are a byte, or an
 * element, too long: `more` is 0 or 1. */
static void enter_copies(uint64_t to, uint64_t from, size_t more)
{
    size_t bytes = BLOCK_BYTES + more;
    cuMemcpy_params plain = {to, from, bytes};
    cuMemcpyAsync_params async = {to, from, bytes, NULL};
    cuMemcpyPeer_params peer = {to, NULL, from, NULL, bytes};
    cuMemcpyPeerAsync_params peer_async = {to, NULL, from, NULL, bytes, NULL};

    static const CUpti_CallbackId same_as_plain[] = {
        CUPTI_DRIVER_TRACE_CBID_cuMemcpy,
        CUPTI_DRIVER_TRACE_CBID_cuMemcpy_ptds,
        CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2,
        CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2_ptds,
        CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2,
        CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2_ptds,
        CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoD_v2,
        CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoD_v2_ptds};
    static const CUpti_CallbackId same_as_async[] = {
        CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync,
        CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
        CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,
        CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2,
        CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2_ptsz};

    for (size_t i = 0; i < sizeof(same_as_plain) / sizeof(same_as_plain[0]); i++) {
        enter(same_as_plain[i], &plain, "copy");
        enter(same_as_async[i], &async, "copy");
    }
    enter(CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeer, &peer, "copy");
    enter(CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeerAsync_ptsz, &peer_async, "copy");
}
enum { COPIES = 18 };

CASE(checks_every_kind_of_copy)
{
    start("bounds");
    assert_string_equal(header()->source, "active");
    assert_string_equal(header()->mode, "bounds");
    add_block(BASE, BLOCK_BYTES);
    add_block(BASE + 2 * BLOCK_BYTES, BLOCK_BYTES);
    enter_copies(BASE, BASE + 2 * BLOCK_BYTES, 0);
    assert_int_equal(header()->findings_total, 0);
    enter_copies(BASE, BASE + 2 * BLOCK_BYTES, 1);
    assert_int_equal(header()->findings_total, 2 * COPIES);
    assert_int_equal(header()->findings.used, 2); /* the destination, the source */
    assert_int_equal(finding(0)->count, COPIES);
    assert_int_equal(finding(0)->access, RMM_DIAG_WRITES);
    assert_int_equal(finding(1)->access, RMM_DIAG_READS);
    assert_string_equal((const char *)(uintptr_t)finding(0)->function, "copy");
}

CASE(checks_every_kind_of_fill_and_prefetch)
{
    start("bounds");
    add_block(BASE, BLOCK_BYTES);
    for (uint32_t more = 0; more < 2; more++) {
        cuMemsetD8_v2_params d8 = {BASE, 1, BLOCK_BYTES + more};
        cuMemsetD16Async_params d16 = {BASE, 1, BLOCK_BYTES / 2 + more, NULL};
        cuMemsetD32_v2_params d32 = {BASE, 1, BLOCK_BYTES / 4 + more};
        /* 4 rows of 1000 bytes, 1024 apart; then the last begins beyond the block */
        cuMemsetD2D8Async_params rows = {BASE, 1024, 1, 1000, 4 + more, NULL};
        cuMemsetD2D32_v2_params wide = {BASE, 1024, 1, 256, 4 + more};
        cuMemPrefetchAsync_params prefetch = {BASE, BLOCK_BYTES + more, 0, NULL};

        enter(CUPTI_DRIVER_TRACE_CBID_cuMemsetD8_v2, &d8, "d8");
        enter(CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async_ptsz, &d16, "d16");
        enter(CUPTI_DRIVER_TRACE_CBID_cuMemsetD32_v2_ptds, &d32, "d32");
        enter(CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D8Async, &rows, "rows");
        enter(CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D32_v2, &wide, "wide");
        enter(CUPTI_DRIVER_TRACE_CBID_cuMemPrefetchAsync, &prefetch, "prefetch");
        assert_int_equal(header()->findings_total, more * 6);
    }
    assert_int_equal(finding(0)->bytes, BLOCK_BYTES + 1);
    assert_int_equal(finding(1)->bytes, BLOCK_BYTES + 2);
    assert_int_equal(finding(2)->bytes, BLOCK_BYTES + 4);
    assert_int_equal(finding(3)->bytes, 4 * 1024 + 1000);
    assert_int_equal(finding(4)->bytes, 4 * 1024 + 1024);
    assert_int_equal(finding(5)->call, RMM_DIAG_PREFETCH);
}

CASE(checks_both_sides_of_copies_with_pitches)
{
    char host[16];
    /* the last of four rows ends with the block */
    CUDA_MEMCPY2D flat = {
        .srcMemoryType = CU_MEMORYTYPE_HOST,
        .srcHost = host,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = BASE,
        .dstXInBytes = 24,
        .dstPitch = 1024,
        .WidthInBytes = 1000,
        .Height = 4};
    CUDA_MEMCPY3D box = {
        .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
        .srcDevice = BASE,
        .srcPitch = 256,
        .srcHeight = 8,
        .srcZ = 1,
        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
        .WidthInBytes = 256,
        .Height = 8,
        .Depth = 1};
    cuMemcpy2DAsync_v2_params flat_call = {.pCopy = &flat};
    cuMemcpy3D_v2_params box_call = {.pCopy = &box};
    cuMemcpy3D_v2_params none = {.pCopy = NULL};

    start("bounds");
    add_block(BASE, BLOCK_BYTES);
    enter(CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DAsync_v2, &flat_call, "flat");
    enter(CUPTI_DRIVER_TRACE_CBID_cuMemcpy3D_v2, &box_call, "box");
    enter(CUPTI_DRIVER_TRACE_CBID_cuMemcpy3D_v2, &none, "box");
    assert_int_equal(header()->findings_total, 0);
    flat.dstXInBytes = 25;
    enter(CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DAsync_v2_ptsz, &flat_call, "flat");
    assert_int_equal(header()->findings_total, 1);
    assert_int_equal(finding(0)->address, BASE + 25);
    assert_int_equal(finding(0)->bytes, 3 * 1024 + 1000);
    box.Depth = 2;
    enter(CUPTI_DRIVER_TRACE_CBID_cuMemcpy3D_v2_ptds, &box_call, "box");
    assert_int_equal(header()->findings_total, 2);
    assert_int_equal(finding(1)->access, RMM_DIAG_READS);
    box.Depth = 0; /* nothing is copied */
    enter(CUPTI_DRIVER_TRACE_CBID_cuMemcpy3D_v2, &box_call, "box");
    assert_int_equal(header()->findings_total, 2);
}

#if CUDA_VERSION >= 12080

CASE(checks_each_copy_of_a_batch)
{
    CUdeviceptr to[] = {BASE, BASE, BASE + 1}, from[] = {1, 2, 3};
    size_t sizes[] = {BLOCK_BYTES, 1, BLOCK_BYTES};
    cuMemcpyBatchAsync_params batch = {
        .dsts = to, .srcs = from, .sizes = sizes, .count = 3};
    cuMemcpyBatchAsync_params none = {.count = 3};

    start("bounds");
    add_block(BASE, BLOCK_BYTES);
    enter(CUPTI_DRIVER_TRACE_CBID_cuMemcpyBatchAsync, &batch, "batch");
    enter(CUPTI_DRIVER_TRACE_CBID_cuMemcpyBatchAsync, &none, "batch");
    assert_int_equal(header()->findings_total, 1);
    assert_int_equal(finding(0)->address, BASE + 1);
}

#endif

CASE(looks_for_nothing_but_what_was_asked)
{
    cuMemcpy_params copy = {BASE, BASE, BLOCK_BYTES + 1};

    start("bounds");
    add_block(BASE, BLOCK_BYTES);
    launch_through(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &function_of_two, BASE, "k");
    assert_int_equal(header()->launches, 0); /* looked at for freed blocks only */
    assert_false(
        lib.enabled(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuEventRecord));
    call(CUPTI_DRIVER_TRACE_CBID_cuMemcpy, &copy, NULL); /* the way out */
    assert_int_equal(header()->findings_total, 0);
    assert_int_equal(header()->copies, 0);
}

/* Addresses are handed out again, by calls that are not followed without mode driver. */
CASE(after_a_reset_of_the_gpu_its_blocks_are_forgotten)
{
    static const CUpti_CallbackId resets[] = {
        CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset,
        CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset_v2};
    const cuDevicePrimaryCtxReset_v2_params reset = {0}, other = {1};
    cuMemcpy_params copy = {BASE, BASE, BLOCK_BYTES + 1};

    start("usage,bounds");
    for (uint32_t i = 0; i < 2; i++) {
        add_block(BASE, BLOCK_BYTES);
        assert_true(lib.enabled(CUPTI_CB_DOMAIN_DRIVER_API, resets[i]));
        enter(resets[i], &reset, "reset"); /* may be refused yet */
        call(resets[i], &other, NULL);
        assert_non_null(row_of(BASE));
        call(resets[i], &reset, NULL);
        assert_null(row_of(BASE));
        enter(CUPTI_DRIVER_TRACE_CBID_cuMemcpy, &copy, "copy");
        launch_through(
            CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &function_of_two, BASE, "k");
        remove_block(BASE, BLOCK_BYTES);
        assert_int_equal(header()->device_resets, 2 * (i + 1));
        assert_int_equal(header()->blocks_reset, i + 1);
    }
    assert_int_equal(header()->findings_total, 0);
    assert_string_equal(header()->source, "active");
}

/* Memory of another process has no block here, and lies where a block may have been. */
CASE(imported_memory_has_no_findings)
{
    CUdeviceptr imported = BASE + BLOCK_BYTES;
    cuIpcOpenMemHandle_v2_params open = {.pdptr = &imported};
    cuIpcCloseMemHandle_params close_handle = {imported};
    cuMemcpy_params in = {imported, BASE, BLOCK_BYTES},
                    out = {BASE, imported, BLOCK_BYTES},
                    within = {imported, imported + 8, 64 * BLOCK_BYTES};

    start("usage,bounds,order");
    add_block(imported, BLOCK_BYTES);
    remove_block(imported, BLOCK_BYTES); /* back to the driver */
    add_block(BASE, BLOCK_BYTES);
    call(CUPTI_DRIVER_TRACE_CBID_cuIpcOpenMemHandle_v2, &open, NULL);
    enter(CUPTI_DRIVER_TRACE_CBID_cuMemcpy, &in, "copy");
    call(CUPTI_DRIVER_TRACE_CBID_cuMemcpy, &in, NULL);
    enter(CUPTI_DRIVER_TRACE_CBID_cuMemcpy, &out, "copy");
    call(CUPTI_DRIVER_TRACE_CBID_cuMemcpy, &out, NULL);
    enter(CUPTI_DRIVER_TRACE_CBID_cuMemcpy, &within, "copy");
    launch_through(
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &function_of_two, imported + 8, "k");
    call(CUPTI_DRIVER_TRACE_CBID_cuIpcCloseMemHandle, &close_handle, NULL);
    assert_int_equal(header()->findings_total, 0);
    assert_int_equal(row_of(BASE)->copies, 2);
    assert_int_equal(row_of(BASE)->launches, 0);
}

static bool follows(CUpti_CallbackId id)
{
    return lib.enabled(CUPTI_CB_DOMAIN_DRIVER_API, id);
}

CASE(is_switched_while_the_program_runs)
{
    start("off");
    assert_string_equal(header()->source, "active");
    assert_false(follows(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
    assert_false(follows(CUPTI_DRIVER_TRACE_CBID_cuMemcpy));
    add_block(BASE, BLOCK_BYTES);
    assert_int_equal(header()->rows.used, 1);

    want(RMM_DIAG_MODE_BOUNDS);
    add_block(BASE + BLOCK_BYTES, BLOCK_BYTES);
    assert_true(follows(CUPTI_DRIVER_TRACE_CBID_cuMemcpy));
    assert_true(follows(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
    assert_false(follows(CUPTI_DRIVER_TRACE_CBID_cuEventRecord));
    want(RMM_DIAG_MODE_USAGE);
    remove_block(BASE + BLOCK_BYTES, BLOCK_BYTES);
    assert_true(follows(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
    launch_through(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &function_of_two, BASE, "k");
    assert_int_equal(header()->launches, 1);

    want(0); /* the launch itself applies it */
    launch_through(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &function_of_two, BASE, "k");
    assert_int_equal(header()->launches, 1);
    assert_int_equal(header()->modes_applied, header()->modes_wanted);
    assert_false(follows(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
    assert_false(follows(CUPTI_DRIVER_TRACE_CBID_cuMemcpy));
}

#if CUDA_VERSION >= 12080

CASE(does_without_calls_that_an_older_cupti_does_not_know)
{
    load_all();
    lib.control()->unknown_call = CUPTI_DRIVER_TRACE_CBID_cuMemcpyBatchAsync;
    setenv("RMM_DIAG", "bounds", 1);
    lib.injected(attach);
    assert_string_equal(header()->source, "active");
}

#endif

CASE(says_that_cupti_does_not_know_a_call_of_old)
{
    load_all();
    lib.control()->unknown_call = CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync;
    setenv("RMM_DIAG", "bounds", 1);
    lib.injected(attach);
    assert_string_equal(
        header()->source, "error:cuptiEnableCallback: CUPTI_ERROR_OTHER (1)");
}

/* The way in and the way out of a call that the driver answers with `result`. */
static void
both_ways(CUpti_CallbackId id, const void *params, const char *name, CUresult result)
{
    CUpti_CallbackData data = call_data(params, NULL, &result);

    enter(id, params, name);
    data.functionName = name;
    lib.call(CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
}

#define SUCCEEDS(call, params, name)                                                   \
    both_ways(CUPTI_DRIVER_TRACE_CBID_##call, params, name, CUDA_SUCCESS)

static void copy_two(void)
{
#if CUDA_VERSION >= 12080
    CUdeviceptr to[] = {BASE, BASE + 64}, from[] = {BASE + 4096, BASE + 4096};
    size_t sizes[] = {16, 16};
    cuMemcpyBatchAsync_params batch = {
        .dsts = to, .srcs = from, .sizes = sizes, .count = 2};

    SUCCEEDS(cuMemcpyBatchAsync, &batch, "batch");
#else
    cuMemcpyAsync_params copies[] = {
        {BASE, BASE + 4096, 16, NULL}, {BASE + 64, BASE + 4096, 16, NULL}};

    SUCCEEDS(cuMemcpyAsync, &copies[0], "first");
    SUCCEEDS(cuMemcpyAsync, &copies[1], "second");
#endif
}

static void make_calls(void)
{
    cuMemcpyAsync_params copy = {BASE, BASE + 4096, 100, NULL};
    cuMemsetD32_v2_params fill = {BASE + 4096, 0, 10};

    SUCCEEDS(cuMemcpyAsync, &copy, "copy");
    both_ways(CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync, &copy, "no", CUDA_ERROR_UNKNOWN);
    SUCCEEDS(cuMemsetD32_v2_ptds, &fill, "fill");
    SUCCEEDS(cuGraphLaunch, &(cuGraphLaunch_params){0}, NULL);
    copy_two();
}

static void expect_uses(const char *modes)
{
    start(modes);
    add_block(BASE, 4096);
    add_block(BASE + 4096, 4096);
    make_calls();
    assert_int_equal(row_of(BASE)->copies, 3);
    assert_int_equal(row_of(BASE + 4096)->fills, 1);
    assert_int_equal(header()->graph_launches, 1);
}

CASE(usage_alone_counts_the_copies_that_succeeded)
{
    expect_uses("usage");
}

CASE(a_copy_that_bounds_looked_at_is_one_use)
{
    expect_uses("usage,bounds");
}

CASE(ignores_the_entry_of_a_launch_and_refused_launches)
{
    uint64_t pointer = BASE;
    int number = 1;
    void *addresses[] = {&number, &pointer};
    cuLaunchKernel_params params = {
        .f = (CUfunction)(uintptr_t)&function_of_two, .kernelParams = addresses};
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    CUpti_CallbackData data = call_data(&params, "k", &result);

    start("usage");
    add_block(BASE, 4096);
    lib.call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &data);
    result = CUDA_SUCCESS;
    data.callbackSite = CUPTI_API_ENTER;
    data.functionReturnValue = NULL;
    lib.call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &data);
    assert_int_equal(header()->launches, 0);
    assert_int_equal(row_of(BASE)->launches, 0);
}

CASE(ignores_what_it_launches_itself)
{
    uint64_t pointer = BASE;
    int number = 1;
    void *addresses[] = {&number, &pointer};
    cuLaunchKernel_params params = {
        .f = (CUfunction)(uintptr_t)&function_of_two, .kernelParams = addresses};
    CUresult result = CUDA_SUCCESS;
    CUpti_CallbackData data = call_data(&params, "own", &result);

    start("usage");
    add_block(BASE, 4096);
    lib.control()->meanwhile = &data;
    launch_through(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &kernel_of_two, BASE, "k");
    assert_null(lib.control()->meanwhile);
    assert_int_equal(header()->launches, 1);
    assert_string_equal(kernel_name(row_of(BASE)->last_user), "k");
}

CASE(asks_the_driver_once_a_function_and_again_after_an_unload)
{
    uint32_t asked = 0;

    start("usage");
    launch_through(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &kernel_of_two, BASE, "k");
    asked = lib.queries();
    assert_true(asked > 0);
    launch_through(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &kernel_of_two, BASE, "k");
    assert_int_equal(lib.queries(), asked);
    lib.call(
        CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, NULL);
    launch_through(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &kernel_of_two, BASE, "k");
    assert_true(lib.queries() > asked);
}

CASE(reads_packed_parameters)
{
    uint64_t buffer[2] = {1, BASE + 16};
    size_t bytes = sizeof(buffer);
    int asked = 0;
    void *extra[] = {
        CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
        CU_LAUNCH_PARAM_END};
    cuLaunchKernel_params params = {
        .f = (CUfunction)(uintptr_t)&function_of_two, .extra = extra};

    start("usage");
    add_block(BASE, 4096);
    call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &params, "packed");
    assert_int_equal(row_of(BASE)->launches, 1);
    asked = lib.queries();
    assert_true(asked > 0);
    call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &params, "packed");
    assert_int_equal(lib.queries(), asked);
}

CASE(a_launch_that_cannot_be_read_is_counted_as_such)
{
    void *extra[] = {(void *)99, NULL, NULL};
    cuLaunchKernel_params params = {
        .f = (CUfunction)(uintptr_t)&function_of_two, .extra = extra};

    start("usage");
    call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &params, "odd");
    assert_int_equal(header()->launches, 1);
    assert_int_equal(header()->parameter_failures, 1);
}

CASE(a_forked_child_touches_nothing)
{
    pid_t child = 0;
    int status = 0;

    start("usage");
    add_block(BASE, 4096);
    child = fork();
    if (child == 0) {
        uint64_t launches = header()->launches;

        launch_through(
            CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &function_of_two, BASE, "k");
        add_block(BASE + 4096, 4096);
        _exit(header()->launches == launches && header()->rows.used == 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    launch_through(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &function_of_two, BASE, "k");
    assert_int_equal(row_of(BASE)->launches, 1);
}

CASE(on_the_simulated_gpu_cupti_is_left_alone)
{
    uint64_t words[] = {BASE};
    rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = RMM_DIAG_LAUNCH,
        .name = "simulated",
        .words = words,
        .word_count = 1,
    };
    pid_t child = 0;
    int status = 0;

    driver_name = "sim";
    start("usage");
    assert_string_equal(header()->source, "active");
    assert_int_equal(lib.control()->subscribed, 0);
    assert_non_null(observer);
    add_block(BASE, 4096);
    observer(observer_context, &event);
    assert_int_equal(row_of(BASE)->launches, 1);
    assert_string_equal(kernel_name(row_of(BASE)->first_user), "simulated");
    child = fork();
    if (child == 0) {
        observer(observer_context, &event);
        _exit(header()->launches == 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#if CUDA_VERSION >= 12080
        cmocka_unit_test(checks_each_copy_of_a_batch),
        cmocka_unit_test(does_without_calls_that_an_older_cupti_does_not_know),
#endif
        cmocka_unit_test(does_nothing_unless_asked),
        cmocka_unit_test(without_the_library_it_stays_idle),
        cmocka_unit_test(stays_idle_where_it_may_not_attach),
        cmocka_unit_test(attaches_to_the_first_of_two_libraries),
        cmocka_unit_test(an_unknown_mode_is_reported_and_changes_nothing),
        cmocka_unit_test(names_the_tool_that_was_first),
        cmocka_unit_test(subscribes_beside_others_where_cupti_can),
        cmocka_unit_test(subscribes_alone_where_cupti_cannot_serve_several),
        cmocka_unit_test(subscribes_alone_to_an_older_cupti),
        cmocka_unit_test(says_why_cupti_refuses),
        cmocka_unit_test(lets_go_of_cupti_when_callbacks_cannot_be_had),
        cmocka_unit_test(takes_a_smaller_side_file_where_there_is_no_room),
        cmocka_unit_test(gives_up_in_silence_without_any_side_file),
        cmocka_unit_test(counts_launches_of_every_kind_of_call),
        cmocka_unit_test(checks_every_kind_of_copy),
        cmocka_unit_test(checks_every_kind_of_fill_and_prefetch),
        cmocka_unit_test(checks_both_sides_of_copies_with_pitches),
        cmocka_unit_test(looks_for_nothing_but_what_was_asked),
        cmocka_unit_test(after_a_reset_of_the_gpu_its_blocks_are_forgotten),
        cmocka_unit_test(imported_memory_has_no_findings),
        cmocka_unit_test(is_switched_while_the_program_runs),
        cmocka_unit_test(says_that_cupti_does_not_know_a_call_of_old),
        cmocka_unit_test(usage_alone_counts_the_copies_that_succeeded),
        cmocka_unit_test(a_copy_that_bounds_looked_at_is_one_use),
        cmocka_unit_test(ignores_the_entry_of_a_launch_and_refused_launches),
        cmocka_unit_test(ignores_what_it_launches_itself),
        cmocka_unit_test(asks_the_driver_once_a_function_and_again_after_an_unload),
        cmocka_unit_test(reads_packed_parameters),
        cmocka_unit_test(a_launch_that_cannot_be_read_is_counted_as_such),
        cmocka_unit_test(a_forked_child_touches_nothing),
        cmocka_unit_test(on_the_simulated_gpu_cupti_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
