/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of rmm-top, made by hand. */
#ifndef RMM_TESTS_UNIT_TOP_NODE_H
#define RMM_TESTS_UNIT_TOP_NODE_H

#include <stdio.h>
#include <string.h>

#include "harness/harness.h"
#include "node/node.h"

/* Empty but for host memory and so many GPUs of 1000 bytes, of which nothing is used. */
static inline void top_node_begin(node_t *node, uint32_t gpus)
{
    node_clear(node);
    for (uint32_t i = 0; i <= gpus; i++) {
        node_device_t *device = node_add_device(node);
        assert_non_null(device);
        device->is_host = i == NODE_HOST;
        device->capacity_bytes = i == NODE_HOST ? FIGURE_UNKNOWN : 1000;
        device->device_free_bytes = FIGURE_UNKNOWN;
        if (i == NODE_HOST) {
            strcpy(device->name, "host");
        } else {
            snprintf(device->name, sizeof(device->name), "gpu%u", i - 1);
        }
    }
}

/* A program of one device: reserved is twice, the peak four times what it holds. */
static inline node_use_t *top_node_program(
    node_t *node, uint64_t id, const char *command, uint32_t device, uint64_t bytes)
{
    node_process_t *process = node_add_process(node);
    assert_non_null(process);
    process->id = id;
    process->pid = (pid_t)(100 + id);
    strcpy(process->user, "someone");
    snprintf(process->comm, sizeof(process->comm), "%s", command);
    snprintf(process->command, sizeof(process->command), "%s", command);
    node_use_t *use = node_add_use(node);
    assert_non_null(use);
    use->process = node->process_count - 1;
    use->device = device;
    use->figures.current_bytes = bytes;
    use->figures.reserved_bytes = 2 * bytes;
    use->figures.cached_bytes = bytes;
    use->figures.peak_bytes = 4 * bytes;
    figures_add(&node->devices[device].figures, &use->figures);
    return use;
}

/* Of the last program. */
static inline node_resource_t *top_node_resource(
    node_t *node, uint32_t instance_id, uint32_t upstream_id, const char *name)
{
    node_resource_t *resource = node_add_resource(node);
    assert_non_null(resource);
    resource->process = node->process_count - 1;
    resource->device = 1;
    resource->instance_id = instance_id;
    resource->upstream_id = upstream_id;
    snprintf(resource->name, sizeof(resource->name), "%s", name);
    strcpy(resource->type, "pool");
    return resource;
}

#endif /* RMM_TESTS_UNIT_TOP_NODE_H */
