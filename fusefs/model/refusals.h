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

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "node/cgroup.h"

#define REFUSALS_MAX 64u
#define REFUSAL_HOLDERS_MAX 16u
#define REFUSAL_GROUPS_MAX 8u
#define REFUSAL_STACK_BYTES 960u

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

/* Live blocks of the program, of one stack, resource and kernel. */
typedef struct refusal_group {
    uint64_t bytes, count;
    uint32_t resource_id;
    char kernel[124];                /* that used them first; "": none, or unknown */
    char stack[REFUSAL_STACK_BYTES]; /* PATH+OFFSET;..., innermost first; "": unknown */
} refusal_group_t;

/* The largest groups; of refusals that follow each other the same (programs/refused_blocks.h). */
typedef struct refusal_blocks {
    uint32_t references; /* the model's lock is held alone */
    uint32_t count;
    uint64_t clock_ns;   /* CLOCK_BOOTTIME */
    uint64_t more_bytes; /* of blocks in no group of these */
    refusal_group_t groups[REFUSAL_GROUPS_MAX];
} refusal_blocks_t;

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
    char limit[80];              /* whose limit refused it: "user 1001"; "": none did */
    uint64_t limit_bytes;
    uint32_t device; /* index, DEVICE_HOST, or DEVICE_NONE: unknown */
    refusal_scene_t scene;
    uint64_t member_serial; /* both: whose blocks, where */
    uint32_t location;
    bool wants_blocks;        /* they are not read yet */
    refusal_blocks_t *blocks; /* NULL: none are known */
} refusal_t;

typedef struct refusals {
    refusal_t *items[REFUSALS_MAX]; /* the oldest first */
    uint32_t count;
    uint64_t last_serial;
    uint64_t lost; /* overwritten before they were read, or there was no memory */
    bool is_due;   /* a member was touched */
    atomic_bool wants_blocks;    /* one of these may */
    pthread_mutex_t blocks_lock; /* of refused_blocks.c; the model's comes after it */
    uint64_t blocks_debt_ns, blocks_debt_at_ns; /* under it */
} refusals_t;

void refusals_init(refusals_t *refusals);
void refusals_fini(refusals_t *refusals);

/* A copy. Without memory it is counted as lost. */
void refusals_add(refusals_t *refusals, const refusal_t *refusal);

#endif /* RMM_FUSEFS_REFUSALS_H */
