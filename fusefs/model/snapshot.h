/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of the whole node at one time: what `metrics`, `json`, `top` and the other texts
 * about all processes are made from. Each level is read once, so its figures agree as they do
 * in its `stat`; a device is the sum of the processes that the snapshot shows. Levels of
 * different processes may be a few milliseconds apart.
 *
 * A snapshot is plain data: nothing in it refers to the model, so a text is rendered without
 * the model's lock. It is read in pieces of PIECE_LEVELS levels, and other threads
 * get the lock between two pieces.
 *
 * Bounds: a maximum number of devices of processes and of resources. If there are more, each
 * user has a share of them (shares.h), and those left out are counted. A device is the sum of all
 * processes, including those left out. The free memory of omitted resources is unknown in their
 * process and missing in the sum of the device.
 *
 * Cost: one read of each segment's locations and resources, about 15 us for a process with four
 * pools. Memory: some 300 bytes a level.
 */
#ifndef RMM_FUSEFS_SNAPSHOT_H
#define RMM_FUSEFS_SNAPSHOT_H

#include <stdatomic.h>

#include "model/allowances.h"
#include "model/level_figures.h"
#include "model/newer_stats.h"
#include "model/tree.h"
#include "support/shares.h"

#define SNAPSHOT_LOCATIONS_MAX 6144u
#define SNAPSHOT_RESOURCES_MAX 12288u
#define SNAPSHOT_OF_PROCESS_MAX 2048u /* resources of one process */

typedef struct snapshot_device {
    uint32_t device;
    char name[16]; /* "gpu0", "host" */
    char uuid[48], pci_bus_id[24], model[64];
    uint64_t capacity_bytes; /* 0: unknown */
    device_sum_t sum;        /* while it is being read */
    figures_t figures;
    uint32_t newer; /* here and below: head of a chain of newer_stats */
} snapshot_device_t;

typedef struct snapshot_process {
    pid_t pid;
    uid_t uid;
    uint64_t start_time_ns;
    char name[32], comm[32];
    placement_t *placement;        /* NULL: unknown */
    uint64_t jobs[JOB_KIND_COUNT]; /* serials; 0: in none of that kind */
    const char *state;
    bool is_live, is_readable;
    uint32_t location, location_count; /* its first in locations */
    uint32_t resource, resource_count; /* its first in resources */
} snapshot_process_t;

/* A process on a device. */
typedef struct snapshot_location {
    uint32_t device; /* index in devices */
    figures_t figures;
    uint64_t share_bytes; /* of the limits of groups; FIGURE_UNKNOWN: none */
    uint32_t newer;
} snapshot_location_t;

typedef struct snapshot_resource {
    uint32_t device;
    uint32_t member_serial; /* whose resource it is, as node_t has it */
    uint32_t instance_id, upstream_id;
    uint64_t hash; /* of device and name: no two of a process are equal */
    char name[TREE_NAME_BYTES];
    char type[24];
    figures_t figures;
    uint32_t newer;
} snapshot_resource_t;

/* A job: live, or ended not long ago. */
typedef struct snapshot_job {
    uint64_t serial;
    job_kind_t kind;
    uid_t uid;
    char name[JOB_NAME_BYTES], pod[JOB_POD_BYTES];
    uint32_t processes;                                            /* live ones */
    uint64_t current_bytes, reserved_bytes, host_bytes, oom_count; /* of these */
    uint64_t peak_bytes, host_peak_bytes;
    uint64_t ended_ns_ago; /* FIGURE_UNKNOWN: it is live */
} snapshot_job_t;

/* A limit of a group, and its programs. */
typedef struct snapshot_limit {
    limit_t limit;
    /* Both where they are the most, if it is for each GPU: held, and held or shared out. */
    uint64_t held_bytes, given_bytes;
    uint32_t processes;
} snapshot_limit_t;

typedef struct snapshot {
    snapshot_device_t *devices; /* gpus by number, then host memory */
    snapshot_process_t *processes;
    snapshot_location_t *locations;
    snapshot_resource_t *resources;
    snapshot_job_t *jobs; /* in the order of their serials */
    snapshot_limit_t *limits;
    uint32_t limit_count;
    uint32_t device_count, process_count, location_count, resource_count, job_count;
    uint32_t process_room, location_room, resource_room, job_room;
    shares_t location_shares, resource_shares; /* refused: what is left out */
    allowances_t allowances;                   /* of retries */
    uint64_t segments, segments_rejected, start_seconds;
    memory_t *memory; /* the model's */
    hiding_t hiding;
    newer_stats_t newer_stats;
    uint64_t done_serial, last_serial; /* processes behind the one, up to the other */
    bool failed;                       /* there was no memory for all of it */
    uint64_t begun_ns;                 /* CLOCK_MONOTONIC */
    uint64_t useful_ns;                /* how long others may use it */
    atomic_uint references;            /* last here: not in copies */
} snapshot_t;

/* By the serial in a process; NULL: there is none, or it is not shown. */
const snapshot_job_t *snapshot_job(const snapshot_t *snapshot, uint64_t serial);

/* NULL: no memory. `memory`: limits the snapshot's. Model lock held, shared is enough, here and
 * in snapshot_continue(). */
snapshot_t *snapshot_begin(const model_t *model, memory_t *memory);
/* The next piece. False: it was the last one, or the snapshot has failed. */
bool snapshot_continue(snapshot_t *snapshot, model_t *model);

/* The caller of snapshot_begin() has the first reference; NULL is taken. */
snapshot_t *snapshot_retain(snapshot_t *snapshot);
void snapshot_release(snapshot_t *snapshot);

#endif /* RMM_FUSEFS_SNAPSHOT_H */
