/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs: tasks, each with the tasks that come before it. A node's parents have lower
 * numbers, because work is captured in the order of the calls.
 *
 * A launch queues the tasks on one stream, in an order that the edges allow and the seed
 * draws: a program that forgot an edge meets another order every time. As in CUDA,
 * launches of one graph do not overlap, whatever their streams. There is no difference
 * between a graph and an executable: a copy has launches of its own, as either has.
 *
 * A watcher of a graph is a task whose end is the news: the graph holds it, so do its copies
 * and a larger graph that it was captured into, and every launch holds it to its end.
 *
 * Locking: rmm__sim_lock.
 */
#include "driver/sim/internal.h"

#include <stdlib.h>
#include <string.h>

#define GRAPH_TAG 0x4752u /* "GR" */

typedef struct sim_node {
    sim_task_t *task; /* owned reference */
    sim_nodes_t parents;
} sim_node_t;

struct sim_graph {
    sim_node_t *nodes;
    uint32_t count, capacity;
    sim_task_t **kept; /* owned references */
    uint32_t kept_count;
    sim_item_t *last_end; /* of the latest launch; owned reference */
};

static sim_table_t graphs = {.what = "graph", .tag = GRAPH_TAG};

/* ---- sets of nodes ---- */

static bool nodes_add(sim_nodes_t *nodes, uint32_t id)
{
    for (uint32_t i = 0; i < nodes->count; i++) {
        if (nodes->ids[i] == id) {
            return true;
        }
    }
    if (nodes->count == nodes->capacity) {
        uint32_t capacity = nodes->capacity == 0 ? 4 : 2 * nodes->capacity;
        uint32_t *ids = realloc(nodes->ids, capacity * sizeof(*ids));

        if (ids == NULL) {
            return false;
        }
        nodes->ids = ids;
        nodes->capacity = capacity;
    }
    nodes->ids[nodes->count++] = id;
    return true;
}

bool rmm__sim_nodes_merge(sim_nodes_t *into, const sim_nodes_t *from)
{
    for (uint32_t i = 0; i < from->count; i++) {
        if (!nodes_add(into, from->ids[i])) {
            return false;
        }
    }
    return true;
}

bool rmm__sim_nodes_copy(sim_nodes_t *into, const sim_nodes_t *from)
{
    into->count = 0;
    return rmm__sim_nodes_merge(into, from);
}

void rmm__sim_nodes_clear(sim_nodes_t *nodes)
{
    free(nodes->ids);
    *nodes = (sim_nodes_t){.count = 0};
}

/* ---- building ---- */

sim_graph_t *rmm__sim_graph_create(void)
{
    return calloc(1, sizeof(sim_graph_t));
}

void rmm__sim_graph_free_locked(sim_graph_t *graph)
{
    for (uint32_t i = 0; i < graph->count; i++) {
        rmm__sim_task_release_locked(graph->nodes[i].task);
        rmm__sim_nodes_clear(&graph->nodes[i].parents);
    }
    for (uint32_t i = 0; i < graph->kept_count; i++) {
        rmm__sim_task_release_locked(graph->kept[i]);
    }
    rmm__sim_item_release_locked(graph->last_end);
    free(graph->kept);
    free(graph->nodes);
    free(graph);
}

bool rmm__sim_graph_keep_locked(sim_graph_t *graph, sim_task_t *task)
{
    sim_task_t **kept =
        realloc(graph->kept, (graph->kept_count + 1u) * sizeof(*graph->kept));

    if (kept == NULL) {
        return false;
    }
    graph->kept = kept;
    kept[graph->kept_count++] = task;
    task->references++;
    return true;
}

static bool reserve(sim_graph_t *graph)
{
    uint32_t capacity = graph->capacity == 0 ? 16 : 2 * graph->capacity;
    sim_node_t *nodes;

    if (graph->count < graph->capacity) {
        return true;
    }
    nodes = realloc(graph->nodes, capacity * sizeof(*nodes));
    if (nodes != NULL) {
        graph->nodes = nodes;
        graph->capacity = capacity;
    }
    return nodes != NULL;
}

int rmm__sim_graph_add_locked(sim_graph_t *graph, sim_task_t *task, sim_nodes_t *tails)
{
    sim_nodes_t self = {.count = 0};
    sim_node_t *node;

    if (!reserve(graph) || !nodes_add(&self, graph->count)) {
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    node = &graph->nodes[graph->count++];
    task->references++;
    *node = (sim_node_t){.task = task, .parents = *tails};
    *tails = self;
    return RMM_DRIVER_OK;
}

bool rmm__sim_graph_ends_in(const sim_graph_t *graph, const sim_nodes_t *tails)
{
    bool *reached = calloc(graph->count + 1u, sizeof(*reached));
    bool all = reached != NULL;

    for (uint32_t i = 0; all && i < tails->count; i++) {
        reached[tails->ids[i]] = true;
    }
    for (uint32_t i = graph->count; all && i-- > 0;) {
        const sim_nodes_t *parents = &graph->nodes[i].parents;

        all = reached[i];
        for (uint32_t p = 0; p < parents->count; p++) {
            reached[parents->ids[p]] = true;
        }
    }
    free(reached);
    return all;
}

int rmm__sim_graph_publish_locked(sim_graph_t *graph, rmm_sim_graph_t *graph_out)
{
    sim_entry_t *entry = rmm__sim_entry_take_locked(&graphs, graph);

    if (entry == NULL) {
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    *graph_out = rmm__sim_entry_handle(&graphs, entry);
    return RMM_DRIVER_OK;
}

static bool copy_node(sim_graph_t *copy, const sim_node_t *node)
{
    sim_nodes_t parents = {.count = 0};

    if (!rmm__sim_nodes_copy(&parents, &node->parents) ||
        rmm__sim_graph_add_locked(copy, node->task, &parents) != RMM_DRIVER_OK) {
        rmm__sim_nodes_clear(&parents);
        return false;
    }
    rmm__sim_nodes_clear(&parents); /* the node itself; the rest went into the graph */
    return true;
}

static sim_graph_t *copy_of(const sim_graph_t *graph)
{
    sim_graph_t *copy = rmm__sim_graph_create();
    bool whole = copy != NULL;

    for (uint32_t i = 0; whole && i < graph->count; i++) {
        whole = copy_node(copy, &graph->nodes[i]);
    }
    for (uint32_t i = 0; whole && i < graph->kept_count; i++) {
        whole = rmm__sim_graph_keep_locked(copy, graph->kept[i]);
    }
    if (!whole && copy != NULL) {
        rmm__sim_graph_free_locked(copy);
        copy = NULL;
    }
    return copy;
}

/* ---- launching ---- */

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
    graph = rmm__sim_find_locked(&graphs, graph_handle, "graph_launch", &error);
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

int rmm__sim_graph_copy(rmm_sim_graph_t handle, rmm_sim_graph_t *copy_out)
{
    int error;
    sim_graph_t *graph = rmm__sim_enter_object(&graphs, handle, "graph_copy", &error);
    sim_graph_t *copy;

    if (graph == NULL) {
        return error;
    }
    copy = copy_of(graph);
    error = copy != NULL ? rmm__sim_graph_publish_locked(copy, copy_out)
                         : RMM_DRIVER_MEMORY_ALLOCATION;
    if (error != RMM_DRIVER_OK && copy != NULL) {
        rmm__sim_graph_free_locked(copy);
    }
    rmm__sim_leave();
    if (error == RMM_DRIVER_OK) {
        rmm__sim_tell_graph(
            RMM_DIAG_GRAPH_MADE, (uint64_t)(uintptr_t)*copy_out,
            (uint64_t)(uintptr_t)handle);
    }
    return error;
}

/* What was launched still runs: it shares the tasks. */
int rmm__sim_graph_destroy(rmm_sim_graph_t handle)
{
    int error;
    sim_graph_t *graph;

    rmm__sim_tell_graph(RMM_DIAG_GRAPH_ENDS, (uint64_t)(uintptr_t)handle, 0);
    graph = rmm__sim_enter_object(&graphs, handle, "graph_destroy", &error);

    if (graph != NULL) {
        rmm__sim_graph_free_locked(graph);
        rmm__sim_entry_give_locked(&graphs, rmm__sim_entry(&graphs, handle));
        rmm__sim_leave();
    }
    return error;
}
