/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job is, and its name; jobs.h has the list of jobs and what happens to it.
 */
#ifndef RMM_FUSEFS_JOB_H
#define RMM_FUSEFS_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/history.h"
#include "node/cgroup.h"

#define JOBS_ENDED_SHOWN_NS (600ull * 1000000000u)
#define JOB_POD_BYTES 320 /* 63 and 253 characters */
#define JOB_NAME_BYTES CGROUP_UNIT_BYTES

typedef enum job_kind {
    JOB_USER,
    JOB_SLURM_JOB,
    JOB_SLURM_STEP,
    JOB_POD,
    JOB_CONTAINER,
    JOB_UNIT,
    JOB_LABEL, /* RMM_JOB of its programs */
    JOB_KIND_COUNT
} job_kind_t;

typedef struct job {
    uint64_t serial; /* never given again */
    job_kind_t kind;
    uid_t uid;
    char name[JOB_NAME_BYTES];
    uint32_t processes;           /* live ones */
    char pod[JOB_POD_BYTES];      /* of a pod: "namespace/name"; "": unknown */
    bool is_pod_asked;            /* for its name */
    uint64_t ended_ns;            /* CLOCK_BOOTTIME; 0: it has processes */
    _Atomic(uint64_t) peak_bytes; /* sum over GPUs */
    _Atomic(uint64_t) host_peak_bytes;
    history_t history;                    /* of the sum over GPUs; 0 after the end */
    uint64_t look_bytes, look_host_bytes; /* while a look adds them up */
} job_t;

typedef struct jobs {
    job_t **items; /* in the order of their serials */
    uint32_t count, capacity;
    uint64_t last_serial;
    bool has_logged_full;
    uint32_t next_placed; /* index of the process whose groups are read next */
} jobs_t;

const char *job_kind_name(job_kind_t kind);
/* The name of the job of that kind in which a process of the user would be; false: none. */
bool job_name(
    const cgroup_t *group, uid_t uid, job_kind_t kind, char name[JOB_NAME_BYTES]);

#endif /* RMM_FUSEFS_JOB_H */
