/* SPDX-License-Identifier: Apache-2.0 */
/* What only CUDA 13 has; see gpu.h. */
#include "gpu/faults/gpu.h"

#include "gpu/faults/cuda_calls.h"

bool gpu_is_cuda_13(void)
{
    return true;
}

rmm_stream_t gpu_green_stream_create(void)
{
    enum { PROCESSORS = 16 };
    unsigned groups = 1;
    CUdevice device = 0;
    CUdevResource all, some;
    CUdevResourceDesc description = NULL;
    CUgreenCtx context = NULL;
    CUstream stream = NULL;

    MUST_DRIVER(cuDeviceGet, &device, 0);
    MUST_DRIVER(cuDeviceGetDevResource, device, &all, CU_DEV_RESOURCE_TYPE_SM);
    MUST_DRIVER(cuDevSmResourceSplitByCount, &some, &groups, &all, NULL, 0, PROCESSORS);
    MUST_DRIVER(cuDevResourceGenerateDesc, &description, &some, 1);
    MUST_DRIVER(
        cuGreenCtxCreate, &context, description, device, CU_GREEN_CTX_DEFAULT_STREAM);
    MUST_DRIVER(cuGreenCtxStreamCreate, &stream, context, CU_STREAM_NON_BLOCKING, 0);
    return stream;
}

/* --- graphs --------------------------------------------------------------------------- */

static cudaGraph_t end_capture(rmm_stream_t stream)
{
    cudaGraph_t graph = NULL;

    MUST_CUDA(cudaStreamEndCapture(stream, &graph));
    return graph;
}

static gpu_graph_t make_executable(cudaGraph_t graph)
{
    cudaGraphExec_t executable = NULL;

    MUST_CUDA(cudaGraphInstantiate(&executable, graph, 0));
    MUST_CUDA(cudaGraphDestroy(graph));
    return (gpu_graph_t)executable;
}

gpu_graph_t gpu_capture_child(rmm_stream_t stream)
{
    cudaGraph_t part = end_capture(stream), graph = NULL;
    cudaGraphNode_t node = NULL;

    MUST_CUDA(cudaGraphCreate(&graph, 0));
    MUST_CUDA(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, part));
    MUST_CUDA(cudaGraphDestroy(part));
    return make_executable(graph);
}

/* Returns the body, which `graph` runs once. */
static cudaGraph_t add_condition(cudaGraph_t graph)
{
    cudaGraphNode_t node = NULL;
    struct cudaGraphNodeParams parameters = {.type = cudaGraphNodeTypeConditional};

    MUST_CUDA(cudaGraphConditionalHandleCreate(
        &parameters.conditional.handle, graph, 1, cudaGraphCondAssignDefault));
    parameters.conditional.type = cudaGraphCondTypeIf;
    parameters.conditional.size = 1;
    MUST_CUDA(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &parameters));
    return parameters.conditional.phGraph_out[0];
}

gpu_graph_t gpu_capture_condition(rmm_stream_t stream)
{
    cudaGraph_t part = end_capture(stream), graph = NULL;
    cudaGraphNode_t node = NULL;

    MUST_CUDA(cudaGraphCreate(&graph, 0));
    MUST_CUDA(cudaGraphAddChildGraphNode(&node, add_condition(graph), NULL, 0, part));
    MUST_CUDA(cudaGraphDestroy(part));
    return make_executable(graph);
}

gpu_graph_t gpu_capture_into_body(rmm_stream_t stream, const void *block)
{
    cudaGraph_t graph = NULL;

    MUST_CUDA(cudaGraphCreate(&graph, 0));
    MUST_CUDA(cudaStreamBeginCaptureToGraph(
        stream, add_condition(graph), NULL, NULL, 0, cudaStreamCaptureModeRelaxed));
    gpu_launch(GPU_KERNEL_reduce, block, NULL, stream);
    (void)end_capture(stream); /* the body again, which is the graph's */
    return make_executable(graph);
}

gpu_graph_t gpu_capture_moved(rmm_stream_t stream, const void *block)
{
    const void *second = NULL;
    void *values[] = {&block, &second};
    cudaGraph_t graph = end_capture(stream);
    cudaGraphExec_t executable = NULL;
    cudaGraphNode_t node = NULL;
    size_t count = 1;
    struct cudaKernelNodeParams parameters;

    MUST_CUDA(cudaGraphInstantiate(&executable, graph, 0));
    MUST_CUDA(cudaGraphGetNodes(graph, &node, &count));
    MUST_CUDA(cudaGraphKernelNodeGetParams(node, &parameters));
    parameters.kernelParams = values;
    MUST_CUDA(cudaGraphExecKernelNodeSetParams(executable, node, &parameters));
    MUST_CUDA(cudaGraphDestroy(graph));
    return (gpu_graph_t)executable;
}

void gpu_capture_update(rmm_stream_t stream, gpu_graph_t graph)
{
    cudaGraph_t other = end_capture(stream);
    cudaGraphExecUpdateResultInfo result;

    MUST_CUDA(cudaGraphExecUpdate((cudaGraphExec_t)graph, other, &result));
    MUST_CUDA(cudaGraphDestroy(other));
}
