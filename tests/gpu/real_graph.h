/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph capture on a real GPU, for tests that run on the simulated one as well and so have
 * no CUDA header. Each answers a cudaError_t.
 */
#ifndef RMM_TESTS_GPU_REAL_GRAPH_H
#define RMM_TESTS_GPU_REAL_GRAPH_H

#include <rmm/stream.h>

typedef struct real_graph {
    void *captured, *executable; /* cudaGraph_t, cudaGraphExec_t */
} real_graph_t;

/* In the global mode, which forbids most, to other threads as well. */
int real_graph_begin(rmm_stream_t stream);
int real_graph_end(rmm_stream_t stream, real_graph_t *graph);
int real_graph_launch(const real_graph_t *graph, rmm_stream_t stream);
int real_graph_destroy(real_graph_t *graph);

#endif /* RMM_TESTS_GPU_REAL_GRAPH_H */
