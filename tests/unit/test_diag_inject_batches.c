/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that are given many ranges at once, and copies of which one side is an array: what
 * librmm-inject reads of their parameters.
 */
#include "unit/inject_fixture.h"

#define BLOCK_BYTES 4096u
#define OTHER (BASE + 8 * BLOCK_BYTES)
#define FIRST_STREAM ((CUstream)(uintptr_t)0x77)

/* The call is about to be made, and has succeeded. */
#define MAKE(name, ...)                                                                \
    do {                                                                               \
        const name##_params made_params = {__VA_ARGS__};                               \
        enter(CUPTI_DRIVER_TRACE_CBID_##name, &made_params, #name);                    \
        call(CUPTI_DRIVER_TRACE_CBID_##name, &made_params, #name);                     \
    } while (0)

static void start_with_blocks(void)
{
    start("usage,bounds,order");
    add_block(BASE, BLOCK_BYTES);
    add_block(OTHER, BLOCK_BYTES);
}

static void
expect_finding(uint32_t i, uint32_t access, uint64_t address, uint64_t bytes)
{
    assert_int_equal(header()->findings_total, i + 1);
    assert_int_equal(finding(i)->kind, RMM_DIAG_OUT_OF_BOUNDS);
    assert_int_equal(finding(i)->access, access);
    assert_int_equal(finding(i)->address, address);
    assert_int_equal(finding(i)->bytes, bytes);
}

CASE(the_memory_of_a_copy_with_an_array_is_looked_at)
{
    const CUarray array = (CUarray)(uintptr_t)0x99;

    start_with_blocks();
    MAKE(cuMemcpyDtoA_v2, array, 64, BASE, BLOCK_BYTES);
    MAKE(cuMemcpyAtoD_v2, BASE, array, 64, BLOCK_BYTES);
    assert_int_equal(header()->findings_total, 0);
    assert_int_equal(row_of(BASE)->copies, 2);
    MAKE(cuMemcpyDtoA_v2, array, 64, BASE, BLOCK_BYTES + 1);
    expect_finding(0, RMM_DIAG_READS, BASE, BLOCK_BYTES + 1);
    MAKE(cuMemcpyAtoD_v2, BASE + 1, array, 64, BLOCK_BYTES);
    expect_finding(1, RMM_DIAG_WRITES, BASE + 1, BLOCK_BYTES);
    MAKE(cuMemcpyHtoA_v2, array, 0, (const void *)(uintptr_t)OTHER, BLOCK_BYTES + 2);
    expect_finding(2, RMM_DIAG_READS, OTHER, BLOCK_BYTES + 2);
    MAKE(
        cuMemcpyAtoHAsync_v2, (void *)(uintptr_t)OTHER, array, 0, BLOCK_BYTES + 3,
        FIRST_STREAM);
    expect_finding(3, RMM_DIAG_WRITES, OTHER, BLOCK_BYTES + 3);
}

/* When it is made: a graph's launch would come too late, and is not looked at. */
CASE(a_node_of_a_graph_is_checked_and_is_no_use)
{
    CUDA_MEMCPY3D copy = {
        .srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = OTHER,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = BASE,
        .WidthInBytes = BLOCK_BYTES,
        .Height = 1,
        .Depth = 1};
    CUDA_MEMSET_NODE_PARAMS fill = {
        .dst = BASE, .pitch = 1024, .elementSize = 4, .width = 256, .height = 4};

    start_with_blocks();
    MAKE(cuGraphAddMemcpyNode, .copyParams = &copy);
    MAKE(cuGraphAddMemsetNode, .memsetParams = &fill);
    MAKE(cuGraphAddMemcpyNode, .copyParams = NULL);
    MAKE(cuGraphExecMemsetNodeSetParams, .memsetParams = NULL);
    assert_int_equal(header()->findings_total, 0);
    assert_int_equal(row_of(BASE)->copies + row_of(BASE)->fills, 0);
    copy.srcXInBytes = 1;
    MAKE(cuGraphExecMemcpyNodeSetParams, .copyParams = &copy);
    expect_finding(0, RMM_DIAG_READS, OTHER + 1, BLOCK_BYTES);
    fill.pitch++;
    MAKE(cuGraphMemsetNodeSetParams, .nodeParams = &fill);
    expect_finding(1, RMM_DIAG_WRITES, BASE, 3 * 1025 + 1024);
}

#if CUDA_VERSION >= 12030
CASE(so_is_one_of_any_kind)
{
    CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_MEMSET};

    start_with_blocks();
    node.memset.dst = BASE;
    node.memset.elementSize = 1;
    node.memset.width = BLOCK_BYTES + 1;
    node.memset.height = 1;
    MAKE(cuGraphAddNode_v2, .nodeParams = &node);
    expect_finding(0, RMM_DIAG_WRITES, BASE, BLOCK_BYTES + 1);
    node.type = CU_GRAPH_NODE_TYPE_MEMCPY;
    node.memcpy.copyParams = (CUDA_MEMCPY3D){
        .srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = OTHER,
        .dstMemoryType = CU_MEMORYTYPE_HOST,
        .WidthInBytes = BLOCK_BYTES + 2,
        .Height = 1,
        .Depth = 1};
    MAKE(cuGraphExecNodeSetParams, .nodeParams = &node);
    expect_finding(1, RMM_DIAG_READS, OTHER, BLOCK_BYTES + 2);
    node.type = CU_GRAPH_NODE_TYPE_EMPTY;
    MAKE(cuGraphNodeSetParams, .nodeParams = &node);
    MAKE(cuGraphNodeSetParams, .nodeParams = NULL);
    assert_int_equal(header()->findings_total, 2);
}
#endif

#if CUDA_VERSION >= 12080
static CUDA_MEMCPY3D_BATCH_OP box(uint64_t to, uint64_t from, CUextent3D extent)
{
    CUDA_MEMCPY3D_BATCH_OP copy = {.extent = extent};

    copy.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    copy.dst.op.ptr.ptr = to;
    copy.src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    copy.src.op.ptr.ptr = from;
    return copy;
}

CASE(each_box_of_a_batch_is_checked_with_its_pitches)
{
    const CUextent3D extent = {64, 8, 8};
    CUDA_MEMCPY3D_BATCH_OP copies[] = {
        box(BASE, OTHER, extent), box(BASE, OTHER, extent), box(BASE, OTHER, extent)};

    start_with_blocks();
    copies[1].src.op.ptr.rowLength = 64;
    copies[1].src.op.ptr.layerHeight = 8;
    MAKE(cuMemcpy3DBatchAsync, .numOps = 3, .opList = copies, .hStream = FIRST_STREAM);
    MAKE(cuMemcpy3DBatchAsync, .numOps = 3, .hStream = FIRST_STREAM);
    assert_int_equal(header()->findings_total, 0); /* packed: as large as the blocks */
    assert_int_equal(row_of(BASE)->copies, 3);
    copies[1].src.op.ptr.rowLength = 65;
    MAKE(cuMemcpy3DBatchAsync, .numOps = 3, .opList = copies, .hStream = FIRST_STREAM);
    expect_finding(0, RMM_DIAG_READS, OTHER, 63 * 65 + 64);
    copies[1].src.op.ptr.rowLength = 0;
    copies[2].dst.op.ptr.layerHeight = 9;
    MAKE(cuMemcpy3DBatchAsync, .numOps = 3, .opList = copies, .hStream = FIRST_STREAM);
    expect_finding(1, RMM_DIAG_WRITES, BASE, (7 * 9 + 8) * 64);
    copies[2].src.type = CU_MEMCPY_OPERAND_TYPE_ARRAY; /* the unit is not known */
    MAKE(cuMemcpy3DBatchAsync, .numOps = 3, .opList = copies, .hStream = FIRST_STREAM);
    assert_int_equal(header()->findings_total, 2);
}

CASE(what_is_decompressed_is_read_to_its_end)
{
    CUmemDecompressParams streams[2] = {
        {.src = (void *)(uintptr_t)OTHER,
         .srcNumBytes = BLOCK_BYTES,
         .dst = (void *)(uintptr_t)BASE,
         .dstNumBytes = 16 * BLOCK_BYTES}}; /* a hint, not what is written */

    start_with_blocks();
    streams[1] = streams[0];
    MAKE(
        cuMemBatchDecompressAsync, .paramsArray = streams, .count = 2,
        .stream = FIRST_STREAM);
    MAKE(cuMemBatchDecompressAsync, .count = 2, .stream = FIRST_STREAM);
    assert_int_equal(header()->findings_total, 0);
    assert_int_equal(row_of(BASE)->copies, 2);
    streams[1].srcNumBytes++;
    MAKE(
        cuMemBatchDecompressAsync, .paramsArray = streams, .count = 2,
        .stream = FIRST_STREAM);
    expect_finding(0, RMM_DIAG_READS, OTHER, BLOCK_BYTES + 1);
}
#endif

#if CUDA_VERSION >= 13000
CASE(each_block_of_a_batch_is_prefetched_or_discarded)
{
    CUdeviceptr blocks[] = {BASE, OTHER};
    size_t sizes[] = {BLOCK_BYTES, BLOCK_BYTES};

    start_with_blocks();
    MAKE(
        cuMemPrefetchBatchAsync, .dptrs = blocks, .sizes = sizes, .count = 2,
        .hStream = FIRST_STREAM);
    MAKE(cuMemPrefetchBatchAsync, .count = 2, .hStream = FIRST_STREAM);
    MAKE(
        cuMemDiscardBatchAsync, .dptrs = blocks, .sizes = sizes, .count = 2,
        .hStream = FIRST_STREAM);
    assert_int_equal(header()->findings_total, 0);
    assert_int_equal(row_of(OTHER)->prefetches, 1);
    assert_int_equal(row_of(OTHER)->fills, 1);
    sizes[1]++;
    MAKE(
        cuMemPrefetchBatchAsync, .dptrs = blocks, .sizes = sizes, .count = 2,
        .hStream = FIRST_STREAM);
    expect_finding(0, RMM_DIAG_READS, OTHER, BLOCK_BYTES + 1);
    MAKE(
        cuMemDiscardBatchAsync, .dptrs = blocks, .sizes = sizes, .count = 2,
        .hStream = FIRST_STREAM);
    expect_finding(1, RMM_DIAG_WRITES, OTHER, BLOCK_BYTES + 1);
    MAKE(
        cuMemDiscardAndPrefetchBatchAsync, .dptrs = blocks, .sizes = sizes, .count = 2,
        .hStream = FIRST_STREAM);
    expect_finding(2, RMM_DIAG_WRITES, OTHER, BLOCK_BYTES + 1);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_memory_of_a_copy_with_an_array_is_looked_at),
        cmocka_unit_test(a_node_of_a_graph_is_checked_and_is_no_use),
#if CUDA_VERSION >= 12030
        cmocka_unit_test(so_is_one_of_any_kind),
#endif
#if CUDA_VERSION >= 12080
        cmocka_unit_test(each_box_of_a_batch_is_checked_with_its_pitches),
        cmocka_unit_test(what_is_decompressed_is_read_to_its_end),
#endif
#if CUDA_VERSION >= 13000
        cmocka_unit_test(each_block_of_a_batch_is_prefetched_or_discarded),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
