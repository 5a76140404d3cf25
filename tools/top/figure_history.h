/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Earlier figures of each program on a device and of each device, from the last
 * HISTORY_SAMPLES snapshots, for rates and for drawings of memory over time. A program or device
 * that the newest snapshot lacks is forgotten.
 *
 * Cost: 2 KB each.
 */
#ifndef RMM_TOP_FIGURE_HISTORY_H
#define RMM_TOP_FIGURE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/node.h"

#define HISTORY_SAMPLES 120u
#define HISTORY_DEVICES 0u /* in place of a program's id */

typedef struct history_sample {
    uint64_t time_ns, current_bytes, total_count;
} history_sample_t;

typedef struct history_ring {
    uint64_t id; /* of a program, or HISTORY_DEVICES */
    uint32_t device;
    bool is_seen;
    uint32_t next, count;
    history_sample_t samples[HISTORY_SAMPLES];
} history_ring_t;

typedef struct history {
    history_ring_t **rings; /* sorted by id and device */
    uint32_t count, room;
    uint32_t layout; /* of the newest snapshot; with another one history begins anew */
} history_t;

void history_init(history_t *history);
void history_fini(history_t *history);

/* False: no memory; what is missing has no history. */
bool history_add(history_t *history, const node_t *node);

/* Allocations each second between the last two snapshots. False: there are not two, or the count
 * went backwards. */
bool history_rate(
    const history_t *history, uint64_t id, uint32_t device, double *per_second);

/* The last of these rates, in whole allocations, the newest last; FIGURE_UNKNOWN where there is
 * none. Returns how many, at most `room`. */
size_t history_rates(
    const history_t *history, uint64_t id, uint32_t device, uint64_t *values,
    size_t room);

/* The last current_bytes, the newest last; returns how many, at most `room`. */
size_t history_used(
    const history_t *history, uint64_t id, uint32_t device, uint64_t *values,
    size_t room);

#endif /* RMM_TOP_FIGURE_HISTORY_H */
