/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated GPU; see gpu.h. */
#include "gpu/faults/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/rmm.h>
#include <rmm/sim.h>

#include "driver/sim/control.h"

static void must(int error, const char *what)
{
    if (error != 0) {
        fprintf(stderr, "%s: error %d: %s\n", what, error, rmm_last_error_message());
        exit(EXIT_FAILURE);
    }
}

#define MUST(call) must((int)(call), #call)

bool gpu_is_there(void)
{
    return rmm_sim_active();
}

/* --- calls ------------------------------------------------------------------------------ */

static const char *const names[] = {
    [GPU_SET] = "memset_async",
    [GPU_COPY_TO] = "memcpy_async",
    [GPU_COPY_FROM] = "memcpy_async",
    [GPU_PREFETCH] = "mem_prefetch"};

const char *gpu_call_name(gpu_call_t call)
{
    return (size_t)call < sizeof(names) / sizeof(names[0]) ? names[call] : NULL;
}

/* The simulated GPU refuses what leaves its memory. */
void gpu_call(
    gpu_call_t call, void *block, void *other, size_t bytes, rmm_stream_t stream)
{
    switch (call) {
    case GPU_SET:
        (void)!rmm_memset_async(block, 1, bytes, stream);
        break;
    case GPU_COPY_TO:
        (void)!rmm_memcpy_async(block, other, bytes, stream);
        break;
    case GPU_COPY_FROM:
        (void)!rmm_memcpy_async(other, block, bytes, stream);
        break;
    case GPU_PREFETCH:
        (void)!rmm_prefetch(block, bytes, 0, stream);
        break;
    default:
        abort(); /* it has no name */
    }
}

/* --- kernels ---------------------------------------------------------------------------- */

#define KERNEL_NAME(name) [GPU_KERNEL_##name] = #name,

const char *gpu_kernel_name(gpu_kernel_t kernel)
{
    static const char *const kernels[] = {GPU_KERNELS(KERNEL_NAME)};

    return kernels[kernel];
}

static void do_nothing(const void *const *params)
{
    (void)params;
}

void gpu_launch(
    gpu_kernel_t kernel, const void *first, const void *second, rmm_stream_t stream)
{
    const void *params[] = {&first, &second};
    const size_t bytes[] = {sizeof(first), sizeof(second)};

    MUST(rmm_sim_launch(gpu_kernel_name(kernel), do_nothing, stream, params, bytes, 2));
}

void gpu_launch_pair(const gpu_pair_t *pair, rmm_stream_t stream)
{
    const void *params[] = {pair};
    const size_t bytes[] = {sizeof(*pair)};

    MUST(rmm_sim_launch("mix", do_nothing, stream, params, bytes, 1));
}

void gpu_launch_parts(const gpu_parts_t *parts, rmm_stream_t stream)
{
    const void *params[] = {parts};
    const size_t bytes[] = {sizeof(*parts)};

    MUST(rmm_sim_launch("gather", do_nothing, stream, params, bytes, 1));
}

/* There is one way only. */
bool gpu_has_way(gpu_way_t way)
{
    return way == GPU_NO_WAY;
}

void gpu_launch_by(gpu_way_t way, const void *block, rmm_stream_t stream)
{
    (void)way, (void)block, (void)stream;
    abort(); /* gpu_has_way() */
}

static void write_bytes(const void *const *params)
{
    memset(*(void *const *)params[0], 1, *(const size_t *)params[1]);
}

void gpu_poke(void *block, size_t bytes, rmm_stream_t stream)
{
    const void *params[] = {&block, &bytes};
    const size_t sizes[] = {sizeof(block), sizeof(bytes)};

    MUST(rmm_sim_launch("poke", write_bytes, stream, params, sizes, 2));
}

/* --- order ------------------------------------------------------------------------------ */

gpu_event_t gpu_event_create(void)
{
    rmm_sim_event_t event = NULL;

    MUST(rmm_sim_event_create(&event));
    return (gpu_event_t)event;
}

void gpu_event_destroy(gpu_event_t event)
{
    MUST(rmm_sim_event_destroy((rmm_sim_event_t)event));
}

void gpu_event_record(gpu_event_t event, rmm_stream_t stream)
{
    MUST(rmm_sim_event_record((rmm_sim_event_t)event, stream));
}

void gpu_event_wait(rmm_stream_t stream, gpu_event_t event)
{
    MUST(rmm_sim_stream_wait_event(stream, (rmm_sim_event_t)event));
}

void gpu_synchronize(void)
{
    MUST(rmm_sim_device_synchronize());
}

bool gpu_has_wait(gpu_wait_t wait)
{
    return wait <= GPU_WAIT_DEVICE;
}

void gpu_wait(gpu_wait_t wait, rmm_stream_t first, rmm_stream_t later)
{
    gpu_event_t event = NULL;

    switch (wait) {
    case GPU_WAIT_EVENT:
        event = gpu_event_create();
        gpu_event_record(event, first);
        gpu_event_wait(later, event);
        gpu_event_destroy(event);
        break;
    case GPU_WAIT_STREAM:
        MUST(rmm_stream_synchronize(first));
        break;
    case GPU_WAIT_DEVICE:
        gpu_synchronize();
        break;
    default:
        abort(); /* gpu_has_wait() */
    }
}

void gpu_capture_begin(rmm_stream_t stream)
{
    MUST(rmm_sim_begin_capture(stream, 2));
}

gpu_graph_t gpu_capture_keep(rmm_stream_t stream)
{
    rmm_sim_graph_t graph = NULL, executable = NULL;

    MUST(rmm_sim_end_capture(stream, &graph));
    MUST(rmm__sim_graph_copy(graph, &executable));
    MUST(rmm_sim_graph_destroy(graph));
    return (gpu_graph_t)executable;
}

void gpu_graph_launch(gpu_graph_t graph, rmm_stream_t on)
{
    MUST(rmm_sim_graph_launch((rmm_sim_graph_t)graph, on));
}

void gpu_graph_destroy(gpu_graph_t graph)
{
    MUST(rmm_sim_graph_destroy((rmm_sim_graph_t)graph));
}

void gpu_capture_end(rmm_stream_t stream, int launches, rmm_stream_t on)
{
    gpu_graph_t graph = gpu_capture_keep(stream);

    for (int i = 0; i < launches; i++) {
        gpu_graph_launch(graph, on);
    }
    MUST(rmm_stream_synchronize(on));
    gpu_graph_destroy(graph);
}
