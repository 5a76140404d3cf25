/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes snapshots of the node, straight from the segments of the programs; no daemon is needed.
 *
 * A program's figures may be wrong. A figure that no address space can hold is not
 * known, and the program is counted in node_t.refused. The time that a snapshot takes is bounded,
 * whatever programs write: segments_t bounds their number, SAMPLER_RESOURCES_MAX the resources of
 * one, and slots that are always being written are read a bounded number of times.
 *
 * Cost: some 20 us a program, and some 5 us a resource. Threads: one at a time.
 */
#ifndef RMM_NODE_SAMPLER_H
#define RMM_NODE_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/gpus.h"
#include "node/node.h"
#include "node/segments.h"

#define SAMPLER_RESOURCES_MAX 2048u /* of one program */

typedef struct sampler {
    segments_t segments;
    gpu_t gpus[GPUS_MAX]; /* the numbers stay while the sampler lives */
    uint32_t gpu_count;
} sampler_t;

/* Over the directories in which programs publish. False with one line in message. */
bool sampler_init(sampler_t *sampler, char *message, size_t message_bytes);
/* Over one directory. Returns 0 or an errno. */
int sampler_init_at(sampler_t *sampler, const char *path);
void sampler_fini(sampler_t *sampler);

/* Fill `node` anew, but for time_ns; its processes are in the order of sampler->segments.list.
 * False: no memory. */
bool sampler_take(sampler_t *sampler, node_t *node);

#endif /* RMM_NODE_SAMPLER_H */
