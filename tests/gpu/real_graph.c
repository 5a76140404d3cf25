/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/real_graph.h"

#include <cuda_runtime_api.h>

int real_graph_begin(rmm_stream_t stream)
{
    return (int)cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
}

int real_graph_end(rmm_stream_t stream, real_graph_t *graph)
{
    cudaGraph_t captured = NULL;
    cudaGraphExec_t executable = NULL;
    cudaError_t error = cudaStreamEndCapture(stream, &captured);

    if (error == cudaSuccess) {
        error = cudaGraphInstantiate(&executable, captured, 0);
    }
    graph->captured = captured;
    graph->executable = executable;
    return (int)error;
}

int real_graph_launch(const real_graph_t *graph, rmm_stream_t stream)
{
    return (int)cudaGraphLaunch(graph->executable, stream);
}

int real_graph_destroy(real_graph_t *graph)
{
    cudaError_t error = cudaGraphExecDestroy(graph->executable);

    return error != cudaSuccess ? (int)error : (int)cudaGraphDestroy(graph->captured);
}
