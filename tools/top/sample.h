/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes snapshots of the node, straight from the segments of the programs that run; no daemon is
 * needed.
 *
 * What a program says of itself may be wrong. A figure that no address space can hold is not
 * known, and the program is counted in node_t.refused.
 *
 * Cost: some 20 us a program, and some 5 us a resource. Threads: one.
 */
#ifndef RMM_TOP_SAMPLE_H
#define RMM_TOP_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "top/node.h"
#include "top/segments.h"

#define SAMPLE_GPUS_MAX 128u
#define SAMPLE_RESOURCES_MAX 2048u /* of one program */

typedef struct sampler {
    segments_t segments;
    node_device_t gpus[SAMPLE_GPUS_MAX]; /* the numbers stay while this program runs */
    uint32_t gpu_count;
} sampler_t;

/* False with one line in message. */
bool sampler_init(sampler_t *sampler, char *message, size_t message_bytes);
void sampler_fini(sampler_t *sampler);

/* Fill `node` anew. False: no memory. */
bool sampler_take(sampler_t *sampler, node_t *node);

#endif /* RMM_TOP_SAMPLE_H */
