/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory in a graph: allocate and free on a capturing stream as on any other. The pool leaves the
 * memory that the graph uses to the graph as long as it exists, and gives it to nobody else.
 *
 * The calls rmm_sim_... stand for those of CUDA that their comments name; with a GPU use these.
 */
#include <rmm/rmm.h>
#include <rmm/sim.h>
#include <stdio.h>

/* The captured work: a temporary block is filled, copied to `result`, and freed. */
static rmm_status_t work(rmm_resource_t *pool, void *result, rmm_stream_t stream)
{
    void *temporary;
    rmm_status_t status = rmm_resource_alloc(pool, 1000, 0, stream, &temporary);
    if (status != RMM_OK) {
        return status;
    }
    status = rmm_memset_async(temporary, 7, 1000, stream);
    if (status == RMM_OK) {
        status = rmm_memcpy_async(result, temporary, 1000, stream);
    }
    rmm_resource_dealloc(pool, temporary, 1000, 0, stream); /* now it is the graph's */
    return status;
}

int main(void)
{
    rmm_resource_t *cuda, *pool;
    rmm_stream_t stream;
    rmm_sim_graph_t graph;
    unsigned char last = 0;
    void *result;

    if (!rmm_sim_active()) {
        return fprintf(
                   stderr,
                   "this example captures on the simulated GPU: RMM_DRIVER=sim\n"),
               1;
    }
    if (rmm_cuda_resource_create(&cuda) ||
        rmm_pool_resource_create(cuda, NULL, &pool) ||
        rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream) ||
        rmm_resource_alloc(pool, 1000, 0, stream, &result) ||
        rmm_sim_begin_capture(stream, 0) || /* cudaStreamBeginCapture() */
        work(pool, result, stream) ||
        rmm_sim_end_capture(
            stream, &graph) || /* cudaStreamEndCapture(), cudaGraphInstantiate() */
        rmm_sim_graph_launch(graph, stream) || /* cudaGraphLaunch() */
        rmm_sim_graph_launch(graph, stream) ||
        rmm_memcpy_async(&last, (char *)result + 999, 1, stream) ||
        rmm_stream_synchronize(stream)) {
        return fprintf(stderr, "%s\n", rmm_last_error_message()), 1;
    }
    printf("two launches of the graph; the last byte is %d\n", last);
    rmm_sim_graph_destroy(
        graph); /* cudaGraphExecDestroy(): its memory returns to the pool */
    rmm_resource_dealloc(pool, result, 1000, 0, stream);
    rmm_stream_destroy(stream);
    rmm_resource_release(pool);
    rmm_resource_release(cuda);
    return rmm_sim_violations() == 0 ? 0 : 1;
}
