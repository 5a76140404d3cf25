/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last allocations that programs were refused for want of memory, each with what every
 * program held on that device at the time: what the files `oom` and `oom.json` show. They stay
 * when the program has ended, however it ended, as long as the daemon runs.
 *
 * A user's refusals do not displace those of others: when the list is full, the user with the most
 * entries, the new one included, loses the oldest.
 *
 * programs/refused.h finds them. Threads: the model's lock is held, alone by what changes the
 * list.
 */
#ifndef RMM_FUSEFS_REFUSALS_H
#define RMM_FUSEFS_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "node/cgroup.h"

#define REFUSALS_MAX 64u
#define REFUSAL_HOLDERS_MAX 16u

typedef struct refusal_holder {
    uid_t uid;
    char process[32], comm[32];
    uint64_t current_bytes,
        held_bytes; /* held: from the driver, or live where that is more */
} refusal_holder_t;

/* What the programs held on a device, the largest first. */
typedef struct refusal_scene {
    uint64_t clock_ns; /* CLOCK_BOOTTIME */
    refusal_holder_t holders[REFUSAL_HOLDERS_MAX];
    uint32_t count;
    uint32_t more; /* programs that are not in the list, and what they held */
    uint64_t more_bytes;
} refusal_scene_t;

typedef struct refusal {
    uint64_t serial; /* from 1, in the order in which they were found */
    uint64_t time_ns;
    uint64_t bytes, device_free_bytes;      /* 0: unknown */
    uint64_t current_bytes, reserved_bytes; /* of the resource */
    uint32_t instance_id;
    char type[24], name[64];
    uid_t uid;
    char process[32], comm[32];
    char job[CGROUP_UNIT_BYTES]; /* Slurm's; "": none */
    uint32_t device;             /* index, DEVICE_HOST, or DEVICE_NONE: unknown */
    refusal_scene_t scene;
} refusal_t;

typedef struct refusals {
    refusal_t *items[REFUSALS_MAX]; /* the oldest first */
    uint32_t count;
    uint64_t last_serial;
    uint64_t lost; /* overwritten before they were read, or there was no memory */
    bool is_due;   /* a member was touched */
} refusals_t;

void refusals_fini(refusals_t *refusals);

/* A copy. Without memory it is counted as lost. */
void refusals_add(refusals_t *refusals, const refusal_t *refusal);

#endif /* RMM_FUSEFS_REFUSALS_H */
