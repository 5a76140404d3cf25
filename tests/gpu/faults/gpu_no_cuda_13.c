/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated GPU, whose graphs are captured and run as they are, and older toolkits: nothing
 * below gpu_is_cuda_13() is called. See gpu.h.
 */
#include <stdlib.h>

#include "gpu/faults/faults.h"

const fault_table_t faults_driver = {NULL, 0};

bool gpu_is_cuda_13(void)
{
    return false;
}

rmm_stream_t gpu_green_stream_create(void)
{
    abort();
}

gpu_graph_t gpu_capture_child(rmm_stream_t stream)
{
    (void)stream;
    abort();
}

gpu_graph_t gpu_capture_condition(rmm_stream_t stream)
{
    (void)stream;
    abort();
}

gpu_graph_t gpu_capture_moved(rmm_stream_t stream, const void *block)
{
    (void)stream, (void)block;
    abort();
}

void gpu_capture_update(rmm_stream_t stream, gpu_graph_t graph)
{
    (void)stream, (void)graph;
    abort();
}

gpu_graph_t gpu_capture_into_body(rmm_stream_t stream, const void *block)
{
    (void)stream, (void)block;
    abort();
}
