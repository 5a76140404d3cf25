/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs: tasks, each with the tasks that come before it. A node's parents have lower
 * numbers, because work is captured in the order of the calls.
 *
 * There is no difference between a graph and an executable: a copy has launches of its own, as
 * either has.
 *
 * A watcher of a graph is a task whose end is the news: the graph holds it, so do its copies
 * and a larger graph that it was captured into, and every launch holds it to its end.
 *
 * Locking: rmm__sim_lock.
 */
#include "driver/sim/graph.h"

#include <stdlib.h>
#include <string.h>

#define GRAPH_TAG 0x4752u /* "GR" */

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

sim_graph_t *
rmm__sim_graph_find_locked(rmm_sim_graph_t handle, const char *call, int *error)
{
    return rmm__sim_find_locked(&graphs, handle, call, error);
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

/* A launch that is under way continues: it shares the tasks. */
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
