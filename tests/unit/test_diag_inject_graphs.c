/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captured graphs of librmm-inject on the calls that CUPTI tells it of, with a driver that the test
 * plays: it says which stream is captured into which graph.
 */
#include "unit/inject_fixture.h"

#include <malloc.h>

#define STREAM ((CUstream)(uintptr_t)0x5000)
#define OTHER ((CUstream)(uintptr_t)0x6000)
#define THIRD ((CUstream)(uintptr_t)0x6800)
#define GRAPH ((CUgraph)(uintptr_t)0x11000)
#define OTHER_GRAPH ((CUgraph)(uintptr_t)0x12000)
#define EXEC ((CUgraphExec)(uintptr_t)0x21000)
#define OTHER_EXEC ((CUgraphExec)(uintptr_t)0x22000)

static fake_cuda_control_t *cuda;

/* The driver answers `result`. */
static void
answer(CUpti_CallbackId id, const void *params, const char *name, CUresult result)
{
    CUpti_CallbackData data = call_data(params, name, &result);

    enter(id, params, name);
    data.functionName = name;
    lib.call(CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
}

#define MAKE(call, ...)                                                                \
    answer(                                                                            \
        CUPTI_DRIVER_TRACE_CBID_##call, &(call##_params){__VA_ARGS__}, #call,          \
        CUDA_SUCCESS)

static void start_usage(void)
{
    fake_cuda_control_t *(*control)(void) = NULL;

    get(load("RMM_TEST_FAKE_CUDA"), "fake_cuda_control", &control);
    cuda = control();
    start("usage,bounds,order");
    assert_string_equal(header()->source, "active");
    add_block(BASE, 4096);
}

static void launch(CUstream stream)
{
    launch_reduce_on(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, stream);
}

static void begin(CUstream stream, CUgraph graph)
{
    cuda->captured = stream;
    cuda->graph = graph;
    MAKE(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static void end_as(CUstream stream, CUresult result)
{
    CUgraph graph = cuda->graph;
    cuStreamEndCapture_params params = {stream, &graph};

    cuda->graph = NULL;
    answer(CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture, &params, NULL, result);
}

/* A kernel, a copy from the host, and a fill. */
static void capture_all(void)
{
    begin(STREAM, GRAPH);
    launch(STREAM);
    MAKE(cuMemcpyHtoDAsync_v2, BASE, (void *)(uintptr_t)0x1000, 64, STREAM);
    MAKE(cuMemsetD8Async, BASE, 0, 64, STREAM);
    end_as(STREAM, CUDA_SUCCESS);
}

static void instantiate(CUgraph graph, CUgraphExec exec)
{
    MAKE(cuGraphInstantiateWithFlags, &exec, graph, 0);
}

static void run(CUgraphExec exec)
{
    MAKE(cuGraphLaunch, exec, STREAM);
}

static void expect_counts(uint64_t uses, uint64_t launched, uint64_t unseen)
{
    assert_int_equal(row_of(BASE)->launches, uses);
    assert_int_equal(header()->graph_launches, launched);
    assert_int_equal(header()->graphs_unseen, unseen);
}

CASE(a_replay_uses_what_was_captured)
{
    start_usage();
    capture_all();
    expect_counts(0, 0, 0);
    instantiate(GRAPH, EXEC);
    run(EXEC);
    run(EXEC);
    expect_counts(2, 2, 0);
    assert_int_equal(row_of(BASE)->copies, 2);
    assert_int_equal(row_of(BASE)->fills, 2);
    assert_int_equal(header()->findings_total, 0);
}

CASE(all_ways_to_instantiate_are_known)
{
    CUgraphExec exec = EXEC;
    CUDA_GRAPH_INSTANTIATE_PARAMS more = {0};

    start_usage();
    capture_all();
    MAKE(cuGraphInstantiate, .phGraphExec = &exec, .hGraph = GRAPH);
    run(EXEC);
    MAKE(cuGraphExecDestroy, EXEC);
    MAKE(cuGraphInstantiate_v2, .phGraphExec = &exec, .hGraph = GRAPH);
    run(EXEC);
    MAKE(cuGraphExecDestroy, EXEC);
    MAKE(cuGraphInstantiateWithParams, &exec, GRAPH, &more);
    run(EXEC);
    MAKE(cuGraphExecDestroy, EXEC);
    MAKE(cuGraphInstantiateWithParams_ptsz, &exec, GRAPH, &more);
    run(EXEC);
    expect_counts(4, 4, 0);
}

/* Programs with a runtime of before make them; cuda.h gives their names to newer versions. */
CASE(older_versions_of_calls_are_followed)
{
    static const CUpti_CallbackId ids[] = {
        CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture,
        CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate,
        CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate,
        CUPTI_DRIVER_TRACE_CBID_cuGraphAddKernelNode,
        CUPTI_DRIVER_TRACE_CBID_cuGraphKernelNodeSetParams,
        CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams,
#if CUDA_VERSION >= 12020
        CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode,
#endif
        CUPTI_DRIVER_TRACE_CBID_cuEventDestroy,
        CUPTI_DRIVER_TRACE_CBID_cuEventElapsedTime,
        CUPTI_DRIVER_TRACE_CBID_cuStreamDestroy,
        CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue32,
        CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue64,
        CUPTI_DRIVER_TRACE_CBID_cuStreamBatchMemOp
    };

    start_usage();
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        assert_true(lib.enabled(CUPTI_CB_DOMAIN_DRIVER_API, ids[i]));
    }
}

CASE(an_instantiation_that_fails_makes_nothing)
{
    CUgraphExec exec = EXEC;
    cuGraphInstantiateWithFlags_params params = {&exec, GRAPH, 0};

    start_usage();
    capture_all();
    answer(
        CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags, &params, NULL,
        CUDA_ERROR_OUT_OF_MEMORY);
    run(EXEC);
    expect_counts(0, 1, 1);
}

CASE(executables_outlive_their_graph_and_each_other)
{
    start_usage();
    capture_all();
    instantiate(GRAPH, EXEC);
    instantiate(GRAPH, OTHER_EXEC);
    MAKE(cuGraphDestroy, GRAPH);
    run(EXEC);
    run(OTHER_EXEC);
    expect_counts(2, 2, 0);
    MAKE(cuGraphExecDestroy, EXEC);
    run(OTHER_EXEC);
    expect_counts(3, 3, 0);
    run(EXEC);
    expect_counts(3, 4, 1);
}

CASE(a_free_under_an_executable_is_a_finding_and_so_is_its_launch)
{
    start_usage();
    capture_all();
    instantiate(GRAPH, EXEC);
    MAKE(cuGraphDestroy, GRAPH);
    remove_block(BASE, 4096);
    assert_int_equal(header()->findings_total, 1);
    assert_int_equal(finding(0)->kind, RMM_DIAG_FREE_UNDER_GRAPH);
    run(EXEC);
    assert_int_equal(header()->findings_total, 4); /* the kernel, the copy, the fill */
    assert_int_equal(finding(1)->kind, RMM_DIAG_USE_AFTER_FREE);
    assert_int_equal(finding(1)->call, RMM_DIAG_GRAPH_LAUNCH);
    assert_string_equal(kernel_name(finding(1)->user), "reduce");
}

/* A clone is a template, as the graph that was captured is. */
CASE(a_clone_has_the_nodes_but_cannot_be_launched_itself)
{
    CUgraph clone = OTHER_GRAPH;

    start_usage();
    capture_all();
    MAKE(cuGraphClone, &clone, GRAPH);
    MAKE(cuGraphDestroy, GRAPH);
    instantiate(OTHER_GRAPH, EXEC);
    run(EXEC);
    expect_counts(1, 1, 0);
    MAKE(cuGraphExecDestroy, EXEC);
    remove_block(BASE, 4096);
    assert_int_equal(header()->findings_total, 0);
}

CASE(a_graph_that_is_launched_into_a_capture_is_a_part_of_it)
{
    start_usage();
    capture_all();
    instantiate(GRAPH, EXEC);
    begin(STREAM, OTHER_GRAPH);
    run(EXEC);
    launch(STREAM);
    end_as(STREAM, CUDA_SUCCESS);
    expect_counts(0, 1, 0);
    instantiate(OTHER_GRAPH, OTHER_EXEC);
    MAKE(cuGraphExecDestroy, EXEC);
    run(OTHER_EXEC);
    expect_counts(2, 2, 0);
    assert_int_equal(row_of(BASE)->copies, 1);
}

CASE(a_graph_has_the_nodes_of_its_parts)
{
    CUgraph made = OTHER_GRAPH;

    start_usage();
    MAKE(cuGraphCreate, &made, 0);
    capture_all();
    MAKE(cuGraphAddChildGraphNode, .hGraph = OTHER_GRAPH, .childGraph = GRAPH);
    MAKE(cuGraphAddChildGraphNode, .hGraph = OTHER_GRAPH, .childGraph = GRAPH);
    MAKE(cuGraphDestroy, GRAPH);
    instantiate(OTHER_GRAPH, EXEC);
    run(EXEC);
    expect_counts(2, 1, 0);
    MAKE(cuGraphChildGraphNodeGetGraph, .hNode = NULL); /* the part may be changed */
    run(EXEC);
    expect_counts(2, 2, 1);
}

/* Of an executable only it; of a node or a graph, whose executables share what is known. */
CASE(a_graph_whose_nodes_the_program_changes_is_not_known)
{
    start_usage();
    capture_all();
    instantiate(GRAPH, EXEC);
    MAKE(cuGraphExecKernelNodeSetParams_v2, .hGraphExec = EXEC);
    run(EXEC);
    expect_counts(0, 1, 1);
    capture_all();
    MAKE(cuGraphAddChildGraphNode, .hGraph = GRAPH);
    instantiate(GRAPH, EXEC);
    run(EXEC);
    expect_counts(0, 2, 2);
    capture_all();
    instantiate(GRAPH, EXEC);
    MAKE(cuGraphDestroyNode, .hNode = NULL);
    run(EXEC);
    expect_counts(0, 3, 3);
}

CASE(an_update_gives_an_executable_the_nodes_of_the_other_graph)
{
    cuGraphExecUpdate_v2_params refused = {.hGraphExec = EXEC, .hGraph = OTHER_GRAPH};

    start_usage();
    capture_all();
    instantiate(GRAPH, EXEC);
    begin(STREAM, OTHER_GRAPH);
    launch(STREAM);
    launch(STREAM);
    end_as(STREAM, CUDA_SUCCESS);
    answer(
        CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate_v2, &refused, NULL,
        CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    run(EXEC);
    expect_counts(1, 1, 0);
    MAKE(cuGraphExecUpdate_v2, .hGraphExec = EXEC, .hGraph = OTHER_GRAPH);
    run(EXEC);
    expect_counts(3, 2, 0);
}

/* While STREAM captures, OTHER is asked to end in vain. */
static void end_other_as(CUresult result)
{
    cuStreamEndCapture_params params = {.hStream = OTHER};

    answer(CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture, &params, NULL, result);
}

CASE(a_stream_that_did_not_capture_ends_no_capture)
{
    static const CUresult refusals[] = {
        CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
        CUDA_ERROR_ILLEGAL_STATE, CUDA_ERROR_INVALID_HANDLE};

    start_usage();
    begin(STREAM, GRAPH);
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        end_other_as(refusals[i]);
        launch(STREAM);
    }
    end_as(STREAM, CUDA_SUCCESS);
    expect_counts(0, 0, 0);
    instantiate(GRAPH, EXEC);
    run(EXEC);
    expect_counts(4, 1, 0);
}

CASE(the_driver_is_asked_only_while_a_capture_is_under_way)
{
    static const CUresult ends[] = {
        CUDA_SUCCESS, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
        CUDA_ERROR_STREAM_CAPTURE_UNJOINED};
    uint32_t asked = 0;

    start_usage();
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        begin(STREAM, GRAPH);
        launch(OTHER);
        end_as(STREAM, ends[i]);
        asked = cuda->capture_queries;
        launch(OTHER);
        assert_int_equal(cuda->capture_queries, asked);
    }
    assert_int_equal(asked, 6);
    expect_counts(6, 0, 0);
}

/* With no mode on, launches are not seen: a block applies the request. */
static void switch_to(uint32_t modes)
{
    want(modes);
    add_block(BASE + 8192, 64);
    remove_block(BASE + 8192, 64);
}

/* Three captures that the modes' switch meets at other moments. The driver says of STREAM that it
 * is captured for as long as `graph` is set. */
CASE(captures_are_counted_while_all_modes_are_off)
{
    uint32_t asked = 0;

    start_usage();
    begin(STREAM, GRAPH); /* ends while the modes are off */
    switch_to(0);
    end_as(STREAM, CUDA_SUCCESS);
    switch_to(RMM_DIAG_MODE_USAGE);
    launch(OTHER);
    asked = cuda->capture_queries;
    launch(OTHER);
    assert_int_equal(cuda->capture_queries, asked); /* no capture is under way */

    switch_to(0);
    MAKE(cuStreamBeginCapture_v2, OTHER, CU_STREAM_CAPTURE_MODE_GLOBAL);
    switch_to(RMM_DIAG_MODE_USAGE);
    begin(STREAM, GRAPH);
    MAKE(cuStreamEndCapture, OTHER, NULL);
    launch(STREAM); /* still recorded */
    end_as(STREAM, CUDA_SUCCESS);
    expect_counts(2, 0, 0);
    instantiate(GRAPH, EXEC);
    run(EXEC);
    expect_counts(3, 1, 0);
}

/* Of a capture that was under way before the diagnosis was, only the end is seen. */
CASE(the_end_of_a_capture_that_began_unseen_ends_no_other_one)
{
    start_usage();
    begin(STREAM, GRAPH);
    end_other_as(CUDA_SUCCESS);
    launch(STREAM);
    end_as(STREAM, CUDA_SUCCESS);
    expect_counts(0, 0, 0);
    instantiate(GRAPH, EXEC);
    run(EXEC);
    expect_counts(1, 1, 0);
}

CASE(any_number_of_captures_may_be_under_way)
{
    enum { CAPTURES = 100 };
    uint32_t asked = 0;

    start_usage();
    for (uintptr_t i = 0; i < CAPTURES; i++) {
        begin((CUstream)(0x7000 + i), GRAPH);
    }
    for (uintptr_t i = 0; i < CAPTURES; i++) {
        asked = cuda->capture_queries;
        launch(OTHER);
        assert_int_equal(cuda->capture_queries, asked + 1);
        end_as((CUstream)(0x7000 + i), CUDA_SUCCESS);
    }
    asked = cuda->capture_queries;
    launch(OTHER);
    assert_int_equal(cuda->capture_queries, asked);
}

#if CUDA_VERSION >= 12030
CASE(a_capture_into_a_graph_ends_no_other_one)
{
    start_usage();
    begin(STREAM, GRAPH);
    MAKE(cuStreamBeginCaptureToGraph, .hStream = OTHER, .hGraph = OTHER_GRAPH);
    end_other_as(CUDA_SUCCESS);
    launch(STREAM);
    expect_counts(0, 0, 0);
    end_as(STREAM, CUDA_SUCCESS);
    instantiate(GRAPH, EXEC);
    run(EXEC);
    expect_counts(1, 1, 0);
    instantiate(OTHER_GRAPH, OTHER_EXEC); /* what was in it before is not known */
    run(OTHER_EXEC);
    expect_counts(1, 2, 1);
}
#endif

/* 0 with the address sanitizer. */
static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

CASE(the_memory_for_huge_graphs_is_bounded)
{
    enum { NODES = 100000, MOST = 16 << 20 };
    size_t before;

    start_usage();
    before = heap_bytes();
    begin(STREAM, GRAPH);
    for (int i = 0; i < NODES; i++) {
        launch(STREAM);
        assert_true(i % 1000 != 0 || heap_bytes() < before + MOST);
    }
    end_as(STREAM, CUDA_SUCCESS);
    instantiate(GRAPH, EXEC);
    run(EXEC);
    assert_int_equal(header()->graphs_unseen, 1);
    MAKE(cuGraphExecDestroy, EXEC);
    MAKE(cuGraphDestroy, GRAPH);
    capture_all();
    instantiate(GRAPH, EXEC);
    run(EXEC);
    assert_int_equal(header()->graphs_unseen, 1);
    assert_int_equal(row_of(BASE)->copies, 1);
}

/* The graph's memory, which any stream may use that follows a launch of the graph. */
static void allocate_captured(uint64_t address, CUstream stream)
{
    rmm_diag_block_v1_t block = {
        .address = address,
        .bytes = 4096,
        .stream_id = (uint64_t)(uintptr_t)stream,
        .resource_id = 1,
        .stream = (rmm_stream_t)stream,
        .flags = RMM_DIAG_BLOCK_IN_STREAM_ORDER};

    hooks.on_alloc(hooks.context, &block);
}

/* OTHER joins by an event that is no longer among those that are kept. */
CASE(a_stream_joins_a_capture_by_an_event_that_was_forgotten)
{
    const CUevent event = (CUevent)(uintptr_t)0x7000;
    CUstream streams[] = {STREAM, OTHER, THIRD};

    start_usage();
    remove_block(BASE, 4096);
    for (int i = 0; i < 3; i++) {
        MAKE(cuStreamCreate, &streams[i], CU_STREAM_NON_BLOCKING);
    }
    begin(STREAM, GRAPH);
    MAKE(cuEventRecord, event, STREAM);
    for (uintptr_t i = 1; i < 20000; i++) {
        MAKE(cuEventRecord, (CUevent)(0x7000 + 16 * i), THIRD);
    }
    cuda->captured = OTHER;
    MAKE(cuStreamWaitEvent, OTHER, event, 0);
    MAKE(cuLaunchHostFunc, OTHER, NULL, NULL); /* which is no wait of the host */
    allocate_captured(BASE, OTHER);
    cuda->captured = STREAM;
    end_as(STREAM, CUDA_SUCCESS);
    instantiate(GRAPH, EXEC);
    MAKE(cuGraphLaunch, EXEC, THIRD);
    launch(THIRD);
    assert_int_equal(row_of(BASE)->launches, 1);
    assert_int_equal(header()->findings_total, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replay_uses_what_was_captured),
        cmocka_unit_test(all_ways_to_instantiate_are_known),
        cmocka_unit_test(older_versions_of_calls_are_followed),
        cmocka_unit_test(an_instantiation_that_fails_makes_nothing),
        cmocka_unit_test(executables_outlive_their_graph_and_each_other),
        cmocka_unit_test(a_free_under_an_executable_is_a_finding_and_so_is_its_launch),
        cmocka_unit_test(a_clone_has_the_nodes_but_cannot_be_launched_itself),
        cmocka_unit_test(a_graph_that_is_launched_into_a_capture_is_a_part_of_it),
        cmocka_unit_test(a_graph_has_the_nodes_of_its_parts),
        cmocka_unit_test(a_graph_whose_nodes_the_program_changes_is_not_known),
        cmocka_unit_test(an_update_gives_an_executable_the_nodes_of_the_other_graph),
        cmocka_unit_test(a_stream_that_did_not_capture_ends_no_capture),
        cmocka_unit_test(the_driver_is_asked_only_while_a_capture_is_under_way),
        cmocka_unit_test(captures_are_counted_while_all_modes_are_off),
        cmocka_unit_test(the_end_of_a_capture_that_began_unseen_ends_no_other_one),
        cmocka_unit_test(any_number_of_captures_may_be_under_way),
#if CUDA_VERSION >= 12030
        cmocka_unit_test(a_capture_into_a_graph_ends_no_other_one),
#endif
        cmocka_unit_test(the_memory_for_huge_graphs_is_bounded),
        cmocka_unit_test(a_stream_joins_a_capture_by_an_event_that_was_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
