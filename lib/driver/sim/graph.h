/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a graph, for graph.c, which makes it, and graph_launch.c.
 *
 * Locking: all under rmm__sim_lock.
 */
#ifndef RMM_DRIVER_SIM_GRAPH_H
#define RMM_DRIVER_SIM_GRAPH_H

#include "driver/sim/internal.h"

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

sim_graph_t *
rmm__sim_graph_find_locked(rmm_sim_graph_t handle, const char *call, int *error);

#endif /* RMM_DRIVER_SIM_GRAPH_H */
