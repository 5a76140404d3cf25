/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launch of a graph queues its tasks on one stream, in an order that the edges allow and the
 * seed draws: a program that forgot an edge runs in another order every time. As in CUDA, launches
 * of one graph do not overlap, whatever their streams.
 */
#include "driver/sim/graph.h"

#include <stdlib.h>

/* For each node the number of parents that have not come yet, its children after. */
typedef struct sim_launch {
    uint32_t *missing;  /* count */
    uint32_t *ready;    /* count */
    uint32_t *first;    /* count + 1: node i's children are first[i] up to first[i+1] */
    uint32_t *children; /* all edges */
    uint32_t ready_count;
} sim_launch_t;

static bool launch_init(sim_launch_t *launch, const sim_graph_t *graph)
{
    size_t edges = 0;

    for (uint32_t i = 0; i < graph->count; i++) {
        edges += graph->nodes[i].parents.count;
    }
    launch->ready_count = 0;
    launch->missing = calloc(3u * graph->count + 1 + edges, sizeof(uint32_t));
    if (launch->missing == NULL) {
        return false;
    }
    launch->ready = launch->missing + graph->count;
    launch->first = launch->ready + graph->count;
    launch->children = launch->first + graph->count + 1;
    return true;
}

/* Turn the lists of parents into lists of children: count, sum up, fill from the end. */
static void launch_link(sim_launch_t *launch, const sim_graph_t *graph)
{
    for (uint32_t i = 0; i < graph->count; i++) {
        const sim_nodes_t *parents = &graph->nodes[i].parents;

        launch->missing[i] = parents->count;
        if (parents->count == 0) {
            launch->ready[launch->ready_count++] = i;
        }
        for (uint32_t p = 0; p < parents->count; p++) {
            launch->first[parents->ids[p]]++;
        }
    }
    for (uint32_t i = 1; i <= graph->count; i++) {
        launch->first[i] += launch->first[i - 1];
    }
    for (uint32_t i = graph->count; i-- > 0;) {
        const sim_nodes_t *parents = &graph->nodes[i].parents;

        for (uint32_t p = 0; p < parents->count; p++) {
            launch->children[--launch->first[parents->ids[p]]] = i;
        }
    }
}

/* The next node in a drawn order; only while one is left. */
static uint32_t launch_next(sim_launch_t *launch)
{
    uint64_t place = rmm__sim_draw_locked(launch->ready_count);
    uint32_t node = launch->ready[place];

    launch->ready[place] = launch->ready[--launch->ready_count];
    for (uint32_t c = launch->first[node]; c < launch->first[node + 1]; c++) {
        if (--launch->missing[launch->children[c]] == 0) {
            launch->ready[launch->ready_count++] = launch->children[c];
        }
    }
    return node;
}

static int submit_all(const sim_graph_t *graph, sim_stream_t *stream)
{
    sim_launch_t launch;
    int error = RMM_DRIVER_OK;
    bool capturing;

    if (!launch_init(&launch, graph)) {
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    launch_link(&launch, graph);
    for (uint32_t i = 0; i < graph->count && error == RMM_DRIVER_OK; i++) {
        error = rmm__sim_submit_locked(
            stream, graph->nodes[launch_next(&launch)].task, &capturing);
    }
    free(launch.missing);
    return error;
}

/* The larger graph that this one becomes part of. */
static int submit_into_capture(const sim_graph_t *graph, sim_stream_t *stream)
{
    sim_graph_t *larger = rmm__sim_capture_graph_locked(stream);
    int error = submit_all(graph, stream);

    for (uint32_t i = 0; i < graph->kept_count && error == RMM_DRIVER_OK; i++) {
        if (!rmm__sim_graph_keep_locked(larger, graph->kept[i])) {
            error = RMM_DRIVER_MEMORY_ALLOCATION;
        }
    }
    return error;
}

static int submit_kept(const sim_graph_t *graph, sim_stream_t *stream)
{
    int error = RMM_DRIVER_OK;

    for (uint32_t i = 0; i < graph->kept_count && error == RMM_DRIVER_OK; i++) {
        error = rmm__sim_queue_locked(stream, graph->kept[i], NULL, NULL);
    }
    return error;
}

static int launch_locked(sim_graph_t *graph, sim_stream_t *stream)
{
    int error = RMM_DRIVER_OK;
    sim_item_t *end = NULL;

    if (stream->capture != NULL) {
        return submit_into_capture(graph, stream);
    }
    if (graph->last_end != NULL && !rmm__sim_item_is_done(graph->last_end)) {
        error = rmm__sim_queue_locked(stream, NULL, graph->last_end, NULL);
    }
    if (error == RMM_DRIVER_OK) {
        error = submit_all(graph, stream);
    }
    if (error == RMM_DRIVER_OK) {
        error = submit_kept(graph, stream);
    }
    if (error == RMM_DRIVER_OK) {
        error = rmm__sim_queue_locked(stream, NULL, NULL, &end);
    }
    if (error == RMM_DRIVER_OK) {
        rmm__sim_item_release_locked(graph->last_end);
        graph->last_end = end;
    }
    return error;
}

int rmm__sim_graph_launch(rmm_sim_graph_t graph_handle, rmm_stream_t handle)
{
    int error;
    const uint64_t word = (uint64_t)(uintptr_t)graph_handle;
    sim_observation_t observation = {
        .kind = RMM_DIAG_GRAPH_LAUNCH,
        .stream = handle,
        .words = &word,
        .word_count = 1};
    sim_stream_t *stream = rmm__sim_enter_stream(handle, "graph_launch", &error);
    sim_graph_t *graph;

    if (stream == NULL) {
        return error;
    }
    graph = rmm__sim_graph_find_locked(graph_handle, "graph_launch", &error);
    if (graph != NULL) {
        error = launch_locked(graph, stream);
    }
    observation.device = stream->device;
    observation.graph = rmm__sim_captured_graph(rmm__sim_capture_id_locked(stream));
    observation.capturing = observation.graph != 0;
    rmm__sim_leave();
    if (error == RMM_DRIVER_OK) {
        rmm__sim_tell(&observation);
    }
    return error;
}
